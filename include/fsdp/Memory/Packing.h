//===- Packing.h - Offsets for live ranges in one arena ---------*- C++ -*-===//
//
// Dynamic storage allocation, off line: every buffer is live over a known range
// of positions and needs a number of bytes; two that are live at the same
// position must not share a byte. Problem / check / solve / verify: the
// solvers are interchangeable, `solvePacking` keeps the smallest plan, and
// `verifyPacking` knows nothing of how a plan was found.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_MEMORY_PACKING_H
#define FSDP_MEMORY_PACKING_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsdp {

/// Bytes that live over the positions [begin, end) of a program.
struct LiveRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t bytes = 0;
};

struct PackingProblem {
  std::vector<LiveRange> liveRanges;
  /// Every offset is a multiple of this power of two.
  int64_t alignment = 64;
};

struct PackingPlan {
  /// Offset in bytes of every live range, in the order of the problem.
  std::vector<int64_t> offsets;
  /// Bytes from 0 to the end of the highest live range, rounded to alignment.
  int64_t peak = 0;
  /// The solver that found it.
  std::string solver;
};

/// The position at which most bytes live, and how many: no plan can be
/// smaller.
struct MaxLive {
  int64_t bytes = 0;
  int64_t position = 0;
};

/// The order in which live ranges are placed, one after another: largest first,
/// longest-lived first, largest product of both first, first used first, or
/// those first that live where most bytes live (then first used first).
enum class PackingOrder { Bytes, Duration, Area, Time, Contention };

/// Which of the gaps that are wide enough a live range goes to.
enum class PackingFit { Smallest, Lowest };

/// What is wrong with the problem, if anything. Every solver takes a problem
/// that passes; the bytes of one together fit an arena, so that no offset
/// overflows.
std::optional<std::string> checkPacking(const PackingProblem &problem);

MaxLive maxLive(const PackingProblem &problem);

/// Places live ranges in the given order.
PackingPlan packInOrder(const PackingProblem &problem, PackingOrder order,
                        PackingFit fit);

/// Places live ranges in an explicit order: a permutation of the indices.
PackingPlan packInOrder(const PackingProblem &problem,
                        const std::vector<uint32_t> &order, PackingFit fit);

/// Improves an order: a live range that reaches the peak goes before one that
/// was in its way, and a change is kept when the peak does not grow.
/// Deterministic.
PackingPlan packByLocalSearch(const PackingProblem &problem, PackingOrder start,
                              PackingFit fit, int iterations);

/// The smallest plan of all solvers. Stops at the first that reaches maxLive
/// or needs no more than `enough` bytes. `onlyEnough`: a plan that needs more,
/// and more than maxLive, is of no use, and is not searched on where that
/// hardly leads there.
PackingPlan solvePacking(const PackingProblem &problem, int64_t enough = 0,
                         bool onlyEnough = false);

/// What is wrong with the plan, if anything: alignment, peak, or two
/// live ranges that live together and share bytes.
std::optional<std::string> verifyPacking(const PackingProblem &problem,
                                         const PackingPlan &plan);

} // namespace fsdp

#endif // FSDP_MEMORY_PACKING_H
