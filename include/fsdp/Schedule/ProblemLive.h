//===- ProblemLive.h - Bytes that a sequence keeps alive --------*- C++ -*-===//
//
// A buffer lives from its first to its last use; what is in flight holds its
// buffers until it is awaited, or until a later one of its stream is where
// nobody awaits it (memory's Lifetimes.h).
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_PROBLEMLIVE_H
#define FSDP_SCHEDULE_PROBLEMLIVE_H

#include "fsdp/Schedule/ProblemOrder.h"

namespace fsdp::problem {

/// [begin, end) in steps.
struct LiveRange {
  Id begin = 0, end = 0;
};

struct Live {
  std::vector<LiveRange> ranges; ///< Of each buffer.
  std::vector<BufferKind> kinds;
  std::vector<int64_t> bytes; ///< Alive at each step, each buffer aligned.
  int64_t peak = 0;           ///< The most of these.
  Id at = 0;                  ///< The first step where they are.
};

Live live(const Problem &problem, const Sequence &sequence);

/// The buffers alive at the peak, largest first.
std::vector<Id> heldAtPeak(const Sequence &sequence, const Live &live);

/// What no plan of memory can beat, for each program: its peak, persistent
/// bytes, and the outputs that only one program uses, of the programs planned
/// before it too. exec-plan-memory begins with the program of the largest peak.
std::vector<int64_t> lowerBounds(const Problem &problem,
                                 const std::vector<int64_t> &peaks);

} // namespace fsdp::problem

#endif // FSDP_SCHEDULE_PROBLEMLIVE_H
