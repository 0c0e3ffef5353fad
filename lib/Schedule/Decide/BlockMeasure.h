//===- BlockMeasure.h - Where the bytes of a sequence belong ----*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_DECIDE_BLOCKMEASURE_H
#define FSDP_LIB_SCHEDULE_DECIDE_BLOCKMEASURE_H

#include "fsdp/Schedule/RecomputeOptions.h"
#include "fsdp/Schedule/StepTimes.h"

namespace fsdp::problem {

/// What the blocks of one sequence keep, work with and cost, and the bytes
/// that belong to none.
struct BlockMeasure {
  std::vector<BlockOption> blocks;
  std::vector<int64_t> beside;
  int64_t loss = 0, fixed = 0;
};

/// `live` is that of the sequence. Throws fsdp::Error if the blocks do not
/// compute one after another, forward and then backward in reverse.
BlockMeasure measureBlocks(const Problem &problem, const Blocks &blocks,
                           const Sequence &sequence, const Live &live,
                           const StepDuration &duration);

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_DECIDE_BLOCKMEASURE_H
