//===- EmitKernel.h - What the kernels of both targets share ----*- C++ -*-===//
#ifndef FSDP_LIB_TARGET_EMITKERNEL_H
#define FSDP_LIB_TARGET_EMITKERNEL_H

#include "EmitExpression.h"

namespace fsdp::emit {

/// Spells the body of a kernel. A target says how a kernel is declared and
/// how its rows and columns are visited; the scalar code in between is the
/// same text everywhere, and so are its bits.
class KernelEmitter {
public:
  /// `user` is the module of the kernel's first launch, if that says one.
  KernelEmitter(exec::KernelOp kernel, llvm::StringRef user,
                llvm::raw_ostream &os)
      : kernel(kernel), user(user), os(os), code(os) {}
  virtual ~KernelEmitter() = default;

  virtual mlir::LogicalResult emit(llvm::StringRef name) = 0;

protected:
  /// Between the head and the end of a loop over the columns of a row.
  virtual void beginMap(exec::MapOp op) = 0;
  virtual void endMap(exec::MapOp op) = 0;
  /// A store at the top level of a row.
  virtual void storeOfRow(exec::StoreOp op) = 0;
  /// A reduction over the columns of a row.
  virtual mlir::LogicalResult reduce(exec::ReduceOp op);
  /// exec.reduce_rows of a column reduction.
  virtual mlir::LogicalResult columnReduction(exec::ReduceRowsOp op) = 0;
  /// exec.reduce_rows of another kernel: one more row of a block.
  virtual mlir::LogicalResult combineRow(exec::ReduceRowsOp op) = 0;

  /// Names every argument and its index.
  void nameArguments();
  /// The comment above a kernel.
  void describe();
  /// `constexpr int64_t NAME = VALUE;`
  void constant(llvm::StringRef name, int64_t value);
  /// `first` is the index of the row's first element.
  void declareFirst();

  /// One op at the top level of a row.
  mlir::LogicalResult rowOp(mlir::Operation &op);
  /// The body of a column reduction.
  mlir::LogicalResult columnReductions();
  mlir::LogicalResult mapBody(exec::MapOp op);
  /// The ops of a lambda's body and its `return`, or what else is done with the
  /// result: what stands before and after it.
  mlir::LogicalResult yielding(mlir::Block &body,
                               llvm::StringRef taken = "return ",
                               llvm::StringRef end = ";");

  exec::KernelOp kernel;
  llvm::StringRef user;
  llvm::raw_ostream &os;
  ExpressionEmitter code;
  bool hasElements = false;

private:
  void nameArgument(unsigned position, mlir::BlockArgument arg);
};

/// How the kernel addresses the argument of this number.
exec::Access accessOf(exec::KernelOp kernel, unsigned position);
/// "float", "BF16", … : the type of a buffer's elements.
llvm::StringRef storageType(mlir::Type type);
/// "sum" or "max".
llvm::StringRef combineName(exec::ReduceKind kind);
/// "math::AddRows" or "math::MaxRows".
llvm::StringRef combineType(exec::ReduceKind kind);
/// The function of a column reduction: "math::sumRows".
std::string reduceRowsName(exec::ReduceRowsOp op);
/// Whether the kernel also gives what blocks of its rows combine to.
bool combinesBlocks(exec::KernelOp kernel);
/// Whether its rows are such blocks, which it combines in order.
bool isInOrder(exec::KernelOp kernel);

} // namespace fsdp::emit

#endif // FSDP_LIB_TARGET_EMITKERNEL_H
