//===- Declarations.h - What a module declares ------------------*- C++ -*-===//
#ifndef FSDP_PASSES_GRAPH_DECLARATIONS_H
#define FSDP_PASSES_GRAPH_DECLARATIONS_H

#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace fsdp {

/// The last nn.parameter or nn.buffer of `module`, after which others may be
/// declared; null if it has none.
inline mlir::Operation *lastDeclaration(mlir::ModuleOp module) {
  mlir::Operation *last = nullptr;
  for (mlir::Operation &op : *module.getBody())
    if (mlir::isa<nn::ParameterOp, nn::BufferOp>(op))
      last = &op;
  return last;
}

/// Says why `program` has no nn.gradient. Where all parameters are frozen, the
/// user may also do `otherwise`.
inline mlir::InFlightDiagnostic emitNoGradient(mlir::func::FuncOp program,
                                               llvm::StringRef otherwise) {
  auto module = program->getParentOfType<mlir::ModuleOp>();
  auto parameters = module.getOps<nn::ParameterOp>();
  bool allFrozen = llvm::all_of(parameters, [](nn::ParameterOp parameter) {
    return parameter->hasAttr(nn::kFrozenAttr);
  });
  auto diagnostic = program.emitError("program @") << program.getSymName();
  if (parameters.empty() || !allFrozen)
    return std::move(diagnostic)
           << " has no nn.gradient; run nn-differentiate first";
  return std::move(diagnostic) << " has nothing to train: every parameter is "
                                  "frozen; leave one trained in the policy, or "
                               << otherwise;
}

} // namespace fsdp

#endif // FSDP_PASSES_GRAPH_DECLARATIONS_H
