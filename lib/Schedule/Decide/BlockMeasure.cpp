//===- BlockMeasure.cpp - Where the bytes of a sequence belong ------------===//
//
// The steps of a sequence are cut into regions: what comes before the blocks,
// each block forward, the loss, each block backward, what comes behind. A
// buffer that begins before the loss and ends in a block's backward region is
// what that block keeps; one that begins behind the forward pass and outlives
// the backward pass is a gradient beside the blocks before.
//
//===----------------------------------------------------------------------===//
#include "BlockMeasure.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Target/Target.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

namespace {

class Measurer {
public:
  Measurer(const Problem &problem, const Blocks &blocks,
           const Sequence &sequence, const Live &live)
      : problem(problem), program(problem.programs[blocks.program]),
        blocks(blocks), sequence(sequence), live(live),
        alignment(rt::findTarget(problem.target)->alignment),
        count(blocks.all.size()), forward(count, kNone),
        backward(count, kNone) {}

  BlockMeasure run(const StepDuration &duration) {
    findRegions();
    checkRegions();
    measured.blocks.resize(count);
    measured.beside.resize(count);
    attribute();
    measure();
    for (size_t i = 0; i < count; ++i) {
      measured.blocks[i].time = timeOf(forward[i], endForward(i), duration) +
                                timeOf(backward[i], endBackward(i), duration);
    }
    return std::move(measured);
  }

private:
  Id endForward(size_t i) const {
    return i + 1 < count ? forward[i + 1] : head;
  }
  Id endBackward(size_t i) const { return i > 0 ? backward[i - 1] : tail; }

  /// The op that says where a step belongs; null for communication and what
  /// moves along with it.
  const Op *computedBy(const Step &step) const {
    if (step.kind != StepKind::Work || step.members.count == 0 ||
        step.collective != CollectiveRole::None)
      return nullptr;
    const Op &op = program.ops[sequence.members[step.members.begin].op];
    return op.is(kAddressed) ? &op : nullptr;
  }

  void findRegions() {
    std::vector<Id> numberOf(problem.numNames(), kNone);
    for (Id i = 0; i < count; ++i)
      numberOf[blocks.all[i].name] = i;
    auto begin = [](Id &place, Id step) { place = std::min(place, step); };
    for (Id number = 0; number < sequence.steps.size(); ++number) {
      const Step &step = sequence.steps[number];
      const Op *op = computedBy(step);
      if (!op)
        continue;
      Id block = op->block == kNone ? kNone : numberOf[op->block];
      bool isForward = op->phase == Phase::Forward &&
                       !sequence.members[step.members.begin].isAgain;
      if (block != kNone)
        begin(isForward ? forward[block] : backward[block], number);
      else if (forward[count - 1] != kNone && backward[count - 1] == kNone)
        begin(head, number);
      else if (backward[0] != kNone)
        begin(tail, number);
    }
  }

  void checkRegions() const {
    std::vector<Id> order = forward;
    order.push_back(head);
    order.insert(order.end(), backward.rbegin(), backward.rend());
    order.push_back(tail);
    if (!std::is_sorted(order.begin(), order.end()) ||
        std::count(order.begin(), order.end(), kNone) > 0)
      throw Error("program @" + std::string(problem.text(program.name)) +
                  " does not compute its blocks one after another, then the "
                  "loss, then the blocks in reverse; decide by rule "
                  "(compile.plan = \"rule\")");
  }

  int64_t bytesOf(Id buffer) const {
    return (sequence.buffers[buffer].bytes + alignment - 1) / alignment *
           alignment;
  }

  /// The block whose backward region has step `number`, which is behind the
  /// loss and before the tail.
  size_t blockBehind(Id number) const {
    auto at = std::partition_point(backward.begin(), backward.end(),
                                   [&](Id begin) { return begin > number; });
    return at - backward.begin();
  }

  void attribute() {
    for (Id i = 0; i < sequence.buffers.size(); ++i) {
      const LiveRange &range = live.ranges[i];
      if (range.end == 0)
        continue;
      Id last = range.end - 1, begin = range.begin;
      if (begin < head && last >= backward[count - 1] && last < tail)
        measured.blocks[blockBehind(last)].keep += bytesOf(i);
      if (begin >= head && begin < tail && last >= tail)
        for (size_t j = 0; j < count && backward[j] > begin; ++j)
          measured.beside[j] += bytesOf(i);
    }
  }

  int64_t most(Id begin, Id end) const {
    int64_t bytes = 0;
    for (Id i = begin; i < end; ++i)
      bytes = std::max(bytes, live.bytes[i]);
    return bytes;
  }

  void measure() {
    int64_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
      measured.blocks[i].work = std::max(most(forward[i], endForward(i)) - kept,
                                         most(backward[i], endBackward(i)) -
                                             kept - measured.beside[i]);
      kept += measured.blocks[i].keep;
    }
    measured.loss = most(head, backward[count - 1]) - kept;
    measured.fixed =
        std::max(most(0, forward[0]), most(tail, sequence.steps.size()));
  }

  Duration timeOf(Id begin, Id end, const StepDuration &duration) const {
    Duration time;
    for (Id i = begin; i < end; ++i)
      time += duration(sequence, sequence.steps[i]);
    return time;
  }

  const Problem &problem;
  const Program &program;
  const Blocks &blocks;
  const Sequence &sequence;
  const Live &live;
  int64_t alignment;
  size_t count;
  std::vector<Id> forward, backward; ///< The first step of each block.
  Id head = kNone, tail = kNone;
  BlockMeasure measured;
};

} // namespace

BlockMeasure fsdp::problem::measureBlocks(const Problem &problem,
                                          const Blocks &blocks,
                                          const Sequence &sequence,
                                          const Live &live,
                                          const StepDuration &duration) {
  return Measurer(problem, blocks, sequence, live).run(duration);
}
