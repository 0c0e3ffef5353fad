//===- Trace.h - From a model to its graph ----------------------*- C++ -*-===//
//
// Runs a model's forward once and returns the module that holds its parameters,
// buffers and the program @forward, in f32.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TRACE_TRACE_H
#define FSDP_TRACE_TRACE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"

namespace fsdp {

namespace model {
class Model;
} // namespace model

/// Traces a model written in C++. The context gets the dialects it needs.
mlir::OwningOpRef<mlir::ModuleOp> traceModel(mlir::MLIRContext &context,
                                             const model::Model &model,
                                             llvm::StringRef name);

} // namespace fsdp

#endif // FSDP_TRACE_TRACE_H
