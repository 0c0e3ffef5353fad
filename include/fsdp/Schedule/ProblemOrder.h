//===- ProblemOrder.h - The order that decisions give -----------*- C++ -*-===//
//
// What fsdp-remat, fsdp-bucket, fsdp-overlap, nn-fuse, exec-lower and
// exec-batch-casts turn a program and what is decided about it into, as one
// function of a Problem and a Candidate: work and waits in order of issue, and
// the buffers of each. The passes do the same to IR; a test compares both
// (test/unit/compiler/ProblemTest.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_PROBLEMORDER_H
#define FSDP_SCHEDULE_PROBLEMORDER_H

#include "fsdp/Schedule/Problem.h"

namespace fsdp::problem {

/// What is decided about an op: the fields of dist::Decision.
struct Decision {
  std::string bucket;
  bool merge = true;
  bool overlap = false;
  int64_t prefetch = 0, defer = 0;
  std::string startAfter, awaitBefore;
  bool recompute = false;
  bool operator==(const Decision &other) const;
};

/// What is decided about the ops of a program, as numbers of
/// Candidate::decisions; kNone: nothing.
struct ProgramDecisions {
  std::vector<Id> of;
  std::vector<Id> again; ///< About the clone of a collective.
};

struct Candidate {
  std::vector<Decision> decisions;
  std::vector<ProgramDecisions> programs; ///< As Problem::programs.

  /// About no op yet.
  explicit Candidate(const Problem &problem);
  Candidate() = default;
  /// The number of a decision, a new one if it has none.
  Id add(const Decision &decision);
};

/// What a buffer is for, as far as its uses tell (memory's BufferKind).
enum class BufferKind : uint8_t { Activation, Gathered, Gradient, Workspace };

struct Buffer {
  int64_t bytes = 0;
  Id op = kNone; ///< That produces it.
  bool isAgain = false;
};

enum class StepKind : uint8_t {
  Work,   ///< An op, or the kernel of several.
  Start,  ///< Of a collective that runs beside compute.
  Await,  ///< Of one.
  Copy,   ///< What lowering adds: copies, fills, constants for libraries.
  Narrow, ///< Several casts at once.
};

/// What a step is as a collective.
enum class CollectiveRole : uint8_t { None, Gather, Reduce };

struct Member {
  Id op = kNone;
  bool isAgain = false;
};

/// Work, or a wait, at its place in the order of issue.
struct Step {
  StepKind kind = StepKind::Work;
  CollectiveRole collective = CollectiveRole::None;
  rt::Stream stream = rt::Stream::Compute;
  /// The first of these in Sequence::uses are read, then come those that are
  /// written, then workspaces.
  Span uses;
  uint16_t written = 0, workspaces = 0;
  Id start = kNone; ///< Of an Await: the step that it waits for.
  /// That a kernel or a copy reads and writes, each tensor once; an op that a
  /// library computes has its own.
  int64_t bytes = 0;
  bool isAwaited = false; ///< Of a Start.
  Span members;           ///< In Sequence::members: the ops, in order.
};

struct Sequence {
  /// Why the decisions cannot be applied; empty if they can.
  std::string refusal;
  /// The addresses of decisions that no op of this program has: with those of
  /// another they may be.
  std::vector<std::string> unknown;
  std::vector<Step> steps;
  std::vector<Id> uses; ///< Buffers, of tensors of the model none.
  std::vector<Buffer> buffers;
  std::vector<Member> members;
};

/// The order of issue of program number `program`.
Sequence order(const Problem &problem, const Candidate &candidate,
               size_t program);

/// Why decisions cannot be applied, by the sequences of all programs: one is
/// refused, or an address is unknown in each. Empty if they can.
std::string refusalOf(const std::vector<Sequence> &sequences);

} // namespace fsdp::problem

#endif // FSDP_SCHEDULE_PROBLEMORDER_H
