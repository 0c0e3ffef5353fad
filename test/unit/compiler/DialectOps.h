//===- DialectOps.h - All ops of a dialect ----------------------*- C++ -*-===//
#ifndef FSDP_TEST_UNIT_COMPILER_DIALECTOPS_H
#define FSDP_TEST_UNIT_COMPILER_DIALECTOPS_H

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include <gtest/gtest.h>

namespace fsdp {

/// The ops of a dialect that is loaded. MLIR 22's
/// getRegisteredOperationsByDialect finds none: its binary search takes the
/// result of a comparison, which is not 0 for what is greater either, for
/// "less".
inline llvm::SmallVector<mlir::RegisteredOperationName>
opsOf(mlir::MLIRContext &context, llvm::StringRef dialect) {
  llvm::SmallVector<mlir::RegisteredOperationName> ops;
  for (mlir::RegisteredOperationName op : context.getRegisteredOperations())
    if (op.getDialectNamespace() == dialect)
      ops.push_back(op);
  EXPECT_FALSE(ops.empty()) << "no ops of " << dialect.str();
  return ops;
}

} // namespace fsdp

#endif // FSDP_TEST_UNIT_COMPILER_DIALECTOPS_H
