//===- PackedArena.h - The arena that a candidate would have ----*- C++ -*-===//
//
// exec-plan-memory without a module: the live ranges of a problem's buffers are
// those of the compiler's, and are packed by the same solvers, the programs in
// the same order. So a decider learns what leaves gaps without compiling.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_PACKEDARENA_H
#define FSDP_SCHEDULE_PACKEDARENA_H

#include "fsdp/Schedule/ProblemEvaluator.h"

namespace fsdp::schedule {

class PackedArena {
public:
  /// Of `problem`, which outlives it. Throws fsdp::Error if its target is
  /// unknown.
  explicit PackedArena(const problem::Problem &problem);

  /// The bytes of the arena under `candidate`, whose decisions can be applied.
  /// Packing ends where no more than `enough` bytes are needed: an arena of at
  /// most so many may be smaller still when it is compiled. With `onlyEnough` a
  /// larger one may be, too: packing then ends where it would hardly get there.
  int64_t bytes(const problem::Candidate &candidate, int64_t enough = 0,
                bool onlyEnough = false);

private:
  const problem::Problem &problem;
  problem::Evaluator evaluator;
  int64_t alignment;
};

} // namespace fsdp::schedule

#endif // FSDP_SCHEDULE_PACKEDARENA_H
