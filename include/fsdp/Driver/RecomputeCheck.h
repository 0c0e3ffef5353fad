//===- RecomputeCheck.h - Whether recomputation saves memory ----*- C++ -*-===//
#ifndef FSDP_DRIVER_RECOMPUTECHECK_H
#define FSDP_DRIVER_RECOMPUTECHECK_H

#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"

namespace fsdp {

/// What is computed again may need more memory than what it saves: the values
/// that it needs live longer. So the same program is planned without its plan's
/// recompute rules.
class RecomputeCheck {
public:
  /// Keeps, while `passes` run, the program as it comes to fsdp-plan.
  RecomputeCheck(mlir::PassManager &passes, const CompileOptions &options);

  /// Bytes of the arena without those rules; nothing if they change nothing, or
  /// if the rest of the plan needs them.
  std::optional<int64_t> arenaWithoutRules();

private:
  struct Kept {
    mlir::OwningOpRef<mlir::ModuleOp> program;
    mlir::Attribute plan;
  };
  class Keeper;

  const CompileOptions &options;
  Kept kept;
};

} // namespace fsdp

#endif // FSDP_DRIVER_RECOMPUTECHECK_H
