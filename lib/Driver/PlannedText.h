//===- PlannedText.h - Text that passes have planned ------------*- C++ -*-===//
//
// What the compiler reads may have been printed by it (--emit=schedule, mlir),
// and edited since. What is planned already cannot be planned otherwise.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_LIB_DRIVER_PLANNEDTEXT_H
#define FSDP_LIB_DRIVER_PLANNEDTEXT_H

#include "fsdp/Driver/Stages.h"
#include "mlir/IR/BuiltinOps.h"

namespace fsdp {

/// Programs in bytes: nothing is left for the passes to do.
bool isPlannedExec(mlir::ModuleOp module);

/// fsdp-plan wrote on it what its programs have to compute; its plan has been
/// applied.
bool isSchedule(mlir::ModuleOp module);

/// The error of a request that asks for what comes before such a text, or sets
/// what only passes before it read.
llvm::Error checkOptionsOfExecText(const Request &request);
llvm::Error checkOptionsOfSchedule(const Request &request);

} // namespace fsdp

#endif // FSDP_LIB_DRIVER_PLANNEDTEXT_H
