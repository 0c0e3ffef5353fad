//===- Declarations.h - What a module declares ------------------*- C++ -*-===//
#ifndef FSDP_PASSES_GRAPH_DECLARATIONS_H
#define FSDP_PASSES_GRAPH_DECLARATIONS_H

#include "dialects/NN/NN.h"
#include "mlir/IR/BuiltinOps.h"

namespace fsdp {

/// The last nn.parameter or nn.buffer of `module`, behind which others may be
/// declared; null if it has none.
inline mlir::Operation *lastDeclaration(mlir::ModuleOp module) {
  mlir::Operation *last = nullptr;
  for (mlir::Operation &op : *module.getBody())
    if (mlir::isa<nn::ParameterOp, nn::BufferOp>(op))
      last = &op;
  return last;
}

} // namespace fsdp

#endif // FSDP_PASSES_GRAPH_DECLARATIONS_H
