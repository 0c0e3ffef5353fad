//===- StepWriter.h - Steps with their buffers ------------------*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_PROBLEM_STEPWRITER_H
#define FSDP_LIB_SCHEDULE_PROBLEM_STEPWRITER_H

#include "Draft.h"
#include <algorithm>

namespace fsdp::problem {

/// Bytes of a buffer or a range.
struct Place {
  Place() = default;
  Place(Id root, int64_t begin) : root(root), begin(begin) {}

  Id root = kNone;
  bool isSplat = false; ///< A constant, with a buffer or not.
  int64_t begin = 0;
  bool isSet() const { return root != kNone; }
  bool isAt(Place other) const {
    return root == other.root && begin == other.begin;
  }
};

/// Roots above buffers: the ranges of names, and those of their gradients.
inline constexpr Id kRange = Id(1) << 31, kGradientRange = kRange | Id(1) << 30;
inline bool isBuffer(Id root) { return root < kRange; }

/// Adds steps and buffers to the sequence of a draft, one after another.
class StepWriter {
public:
  explicit StepWriter(Draft &draft) : draft(draft) {}

protected:
  /// With the sequence that the draft has now.
  void beginSequence() {
    sequence = draft.sequence;
    isAfterCast = false;
  }

  Id newBuffer(int64_t bytes, Id node) {
    const Node &of = draft.nodes[node];
    sequence->buffers.push_back({bytes, of.op, of.isAgain});
    return sequence->buffers.size() - 1;
  }

  void beginStep(StepKind kind, Id node,
                 rt::Stream stream = rt::Stream::Compute) {
    step = Step();
    counted.clear();
    step.kind = kind;
    step.stream = stream;
    step.uses = {Id(sequence->uses.size()), 0};
    step.members = {Id(sequence->members.size()), 0};
    isCast = false;
    if (node == kNone)
      return;
    const Node &of = draft.nodes[node];
    if (of.kind == NodeKind::Fused) {
      for (Id i = of.list.begin; i < of.list.end(); ++i)
        sequence->members.push_back({draft.nodes[draft.lists[i]].op,
                                     draft.nodes[draft.lists[i]].isAgain});
    } else if (of.list.count != 0) {
      for (Id i = of.list.begin; i < of.list.end(); ++i)
        sequence->members.push_back({draft.lists[i], of.isAgain});
    } else if (of.op != kNone) {
      sequence->members.push_back({of.op, of.isAgain});
    }
    step.members.count = sequence->members.size() - step.members.begin;
    isCast = kind == StepKind::Work && step.members.count == 1 &&
             draft.is(node, kNarrows);
  }

  void touches(Place place) {
    if (isBuffer(place.root))
      sequence->uses.push_back(place.root);
  }
  void writes(Place place) {
    size_t before = sequence->uses.size();
    touches(place);
    step.written += sequence->uses.size() - before;
  }
  void workspace(int64_t bytes, Id node) {
    touches({newBuffer(bytes, node), 0});
    ++step.workspaces;
  }

  /// What exec-batch-casts does: work that only rounds from f32 to bf16 joins
  /// such work just before.
  Id endStep() {
    std::vector<Step> &steps = sequence->steps;
    step.uses.count = sequence->uses.size() - step.uses.begin;
    if (isCast && isAfterCast) {
      // Their uses and members follow each other.
      Step &all = steps.back();
      all.kind = StepKind::Narrow;
      all.uses.count = step.uses.end() - all.uses.begin;
      all.members.count = step.members.end() - all.members.begin;
      all.written += step.written;
      all.bytes += step.bytes;
    } else {
      steps.push_back(step);
    }
    isAfterCast = isCast;
    return steps.size() - 1;
  }

  /// Counts what a kernel reads, each place once.
  void countRead(Place place, int64_t bytes) {
    if (std::any_of(counted.begin(), counted.end(),
                    [&](Place other) { return place.isAt(other); }))
      return;
    counted.push_back(place);
    step.bytes += bytes;
  }

  /// `bytes` of `from`; nothing is read where that is no place.
  void copy(Place from, Place to, int64_t bytes) {
    beginStep(StepKind::Copy, kNone);
    if (from.isSet())
      touches(from);
    writes(to);
    step.bytes = from.isSet() ? 2 * bytes : bytes;
    endStep();
  }
  void fill(Place to, int64_t bytes) { copy(Place(), to, bytes); }

  Draft &draft;
  Sequence *sequence = nullptr;
  Step step;

private:
  std::vector<Place> counted;               // by countRead
  bool isCast = false, isAfterCast = false; // the step, and the one before
};

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_PROBLEM_STEPWRITER_H
