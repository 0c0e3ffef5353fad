//===- RecordedLowerings.h - Which op becomes which operation ---*- C++ -*-===//
#ifndef FSDP_DIALECTS_EXEC_RECORDEDLOWERINGS_H
#define FSDP_DIALECTS_EXEC_RECORDEDLOWERINGS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringMap.h"

namespace fsdp::exec {

/// The operations of the runtime whose records say what lowers to them as it
/// is, by the name of that.
class RecordedLowerings {
public:
  explicit RecordedLowerings(mlir::MLIRContext *context);

  /// That of `op`, if there is one.
  std::optional<mlir::OperationName> of(mlir::Operation *op) const;

private:
  llvm::StringMap<mlir::OperationName> bySource;
};

} // namespace fsdp::exec

#endif // FSDP_DIALECTS_EXEC_RECORDEDLOWERINGS_H
