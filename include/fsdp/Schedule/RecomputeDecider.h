//===- RecomputeDecider.h - What to compute again in a budget ---*- C++ -*-===//
#ifndef FSDP_SCHEDULE_RECOMPUTEDECIDER_H
#define FSDP_SCHEDULE_RECOMPUTEDECIDER_H

#include "fsdp/Machine/CostModel.h"
#include "fsdp/Schedule/ProblemEvaluator.h"
#include "fsdp/Schedule/RecomputeOptions.h"
#include "fsdp/Support/LeasePool.h"
#include <memory>

namespace fsdp::problem {

struct Decided {
  /// The option of each block (RecomputeOptions::sets).
  std::vector<uint32_t> choice;
  /// What no arena with these decisions can beat, of all programs.
  int64_t bytes = 0;
};

/// What the blocks of a problem compute again so that the step computes least
/// in a budget of memory. Communication has no time here: how long a step takes
/// beside it is not asked. What is const may be called by several threads.
class RecomputeDecider {
public:
  /// `base` decides about all else and recomputes no values. The problem
  /// outlives this. Throws fsdp::Error if no program is trained, or the one
  /// that is has no chain of blocks.
  RecomputeDecider(const Problem &problem, Candidate base,
                   const CostModel &cost, int threads = 1);

  /// In `budget` bytes for all that the arena holds; nothing if that is too
  /// little.
  std::optional<Decided> decide(int64_t budget) const;
  /// The one that needs the fewest bytes.
  Decided least() const;

  const RecomputeOptions &options() const { return found; }
  /// The bytes of a budget that blocks may have, where nothing but `base` is
  /// decided; at least what they need, which may be less than it looks beside
  /// other programs.
  int64_t roomIn(int64_t budget) const;
  /// The least that blocks need.
  int64_t leastRoom() const { return frontier.points().front().bytes; }
  /// What to try after `room`, which gave `excess` bytes too many: the least
  /// that blocks need is not missed, as bytes beside theirs change, too.
  int64_t smallerRoom(int64_t room, int64_t excess) const;
  /// What blocks choose in so many bytes; nothing if that is too little.
  std::optional<std::vector<uint32_t>> choose(int64_t room) const {
    return frontier.choose(room);
  }

private:
  Decided decided(std::vector<uint32_t> choice) const;

  const Problem &problem;
  Candidate base;
  RecomputeOptions found;
  Frontier frontier;
  std::unique_ptr<LeasePool<Evaluator>> evaluators; // they keep no result
};

} // namespace fsdp::problem

#endif // FSDP_SCHEDULE_RECOMPUTEDECIDER_H
