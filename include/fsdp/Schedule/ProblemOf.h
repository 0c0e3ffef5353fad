//===- ProblemOf.h - Problems and candidates of modules ---------*- C++ -*-===//
#ifndef FSDP_SCHEDULE_PROBLEMOF_H
#define FSDP_SCHEDULE_PROBLEMOF_H

#include "dialects/Exec/RecordedLowerings.h"
#include "fsdp/Schedule/ProblemOrder.h"
#include "fsdp/Target/TargetInfo.h"
#include "mlir/IR/BuiltinOps.h"

namespace fsdp::schedule {

/// What exec-lower is told beside the target, and whether nn-fuse runs.
struct LoweringOptions {
  exec::AttentionOptions attention;
  bool fastReductions = false;
  bool fuses = true;
};

/// The programs of `module`, which is one after fsdp-address. Emits an error
/// where an op has no place in a Problem: one that exec-lower refuses too.
mlir::FailureOr<problem::Problem> problemOf(mlir::ModuleOp module,
                                            const TargetInfo &target,
                                            const LoweringOptions &options);

/// What the decisions on the ops of `module` say (fsdp-plan), which is that of
/// `problem` otherwise.
problem::Candidate candidateOf(const problem::Problem &problem,
                               mlir::ModuleOp module);

/// What a library of the target computes and needs for an op.
struct LibraryWork {
  int64_t workspaceBytes = 0;
  std::optional<problem::Math> math;
};

/// That of `op`; nothing for an op that no library computes.
mlir::FailureOr<LibraryWork>
libraryWorkOf(mlir::Operation *op, const exec::RecordedLowerings &recorded,
              const TargetInfo &target, const LoweringOptions &options);

} // namespace fsdp::schedule

#endif // FSDP_SCHEDULE_PROBLEMOF_H
