//===- Trace.h - From a model to its graph ----------------------*- C++ -*-===//
//
// The entry of the compiler: runs a model's forward once and returns the
// module that holds its parameters, buffers and the program @forward, in f32.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TRACE_TRACE_H
#define FSDP_TRACE_TRACE_H

#include "fsdp/Families/ModelSpec.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace fsdp {

namespace model {
class Model;
} // namespace model

struct TraceOptions {
  int64_t batch = 0;  // of all ranks; 0: the model's default
  int64_t seqLen = 0; // 0: the model's default; an MLP has none
};

/// Traces `spec`. The context gets the dialects it needs. Fails if the sizes
/// do not fit together.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
traceModel(mlir::MLIRContext &context, const ModelSpec &spec,
           const TraceOptions &options = {});

/// Traces a model written in C++.
mlir::OwningOpRef<mlir::ModuleOp> traceModel(mlir::MLIRContext &context,
                                             const model::Model &model,
                                             llvm::StringRef name);

} // namespace fsdp

#endif // FSDP_TRACE_TRACE_H
