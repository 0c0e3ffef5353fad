//===- TraceModel.h - From the name of a model to its graph -----*- C++ -*-===//
//
// Looks a model's family up, builds its module and traces it: the entry of the
// compiler.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_FAMILIES_TRACEMODEL_H
#define FSDP_FAMILIES_TRACEMODEL_H

#include "fsdp/Families/ModelSpec.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace fsdp {

struct TraceOptions {
  int64_t batch = 0;  // of all ranks; 0: the model's default
  int64_t seqLen = 0; // 0: the model's default; an MLP has none
};

/// Traces `spec`. The context gets the dialects it needs. Fails if the sizes
/// do not fit together.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
traceModel(mlir::MLIRContext &context, const ModelSpec &spec,
           const TraceOptions &options = {});

} // namespace fsdp

#endif // FSDP_FAMILIES_TRACEMODEL_H
