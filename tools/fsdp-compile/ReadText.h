//===- ReadText.h - The module of a text file -------------------*- C++ -*-===//
#ifndef FSDP_TOOLS_FSDP_COMPILE_READTEXT_H
#define FSDP_TOOLS_FSDP_COMPILE_READTEXT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/SourceMgr.h"

namespace fsdp {

/// Parses the main file of `sources` and verifies it. Text states the module
/// of the model in the names of values (`%layers.0.attention.wq_3`); here they
/// become locations again, so that reports and generated code can use them.
/// Null on failure: a diagnostic was emitted.
mlir::OwningOpRef<mlir::ModuleOp> readText(llvm::SourceMgr &sources,
                                           mlir::MLIRContext *context);

} // namespace fsdp

#endif // FSDP_TOOLS_FSDP_COMPILE_READTEXT_H
