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

/// --emit=schedule printed it: its plan has been applied.
bool isSchedule(mlir::ModuleOp module);

/// The error of a request that asks for what comes before such a text, or sets
/// what only passes before it read.
llvm::Error checkOptionsOfExecText(const Request &request);
llvm::Error checkOptionsOfSchedule(const Request &request);

/// The error of a request that states sizes or ranks beside a text of a model,
/// which has its own sizes and takes its mesh from --mesh.
llvm::Error checkOptionsOfGraph(const Request &request);

/// Writes on a schedule what lowering it needs of the settings, and takes it
/// back into the settings. A text that states too little, or what no setting
/// may be, is an error.
void stateLowering(mlir::ModuleOp module, CompileOptions options);
llvm::Error takeLowering(mlir::ModuleOp module, CompileOptions &options);

} // namespace fsdp

#endif // FSDP_LIB_DRIVER_PLANNEDTEXT_H
