//===- EmitExpression.h - Scalar code of kernels ----------------*- C++ -*-===//
#ifndef FSDP_LIB_TARGET_EMITEXPRESSION_H
#define FSDP_LIB_TARGET_EMITEXPRESSION_H

#include "Emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace fsdp::emit {

/// How tightly an expression binds, tightest first.
enum class Precedence {
  Primary,
  Unary,
  Product,
  Sum,
  Compare,
  And,
  Or,
  Select
};

/// A buffer of a kernel in the text.
struct KernelArgument {
  std::string name;  // of the pointer
  std::string index; // at the current position
  /// The vector that holds the current position at `i`, if one does.
  std::string vector;
  mlir::MemRefType type;
  bool isOutput = false;
};

/// Spells scalar ops as statements and expressions of one kernel.
class ExpressionEmitter {
public:
  explicit ExpressionEmitter(llvm::raw_ostream &os) : os(os) {}

  llvm::DenseMap<mlir::Value, KernelArgument> arguments;
  NameScope names;

  /// Any op of arith, math, exec.load or exec.column.
  mlir::LogicalResult scalar(mlir::Operation *op);
  void store(exec::StoreOp op);
  /// The text of `value`, in parentheses if it binds weaker than `weakest`.
  std::string text(mlir::Value value, Precedence weakest);
  /// Says how `value` is spelled.
  void bind(mlir::Value value, std::string text,
            Precedence precedence = Precedence::Primary);

  /// Starts a line.
  llvm::raw_ostream &indent() { return os.indent(2 * depth); }
  int depth = 1;

private:
  struct Expression {
    std::string text;
    Precedence precedence = Precedence::Primary;
  };

  void define(mlir::Operation *op, std::string text, Precedence precedence,
              llvm::StringRef wanted, bool readsOutput = false);
  void binary(mlir::Operation *op, llvm::StringRef symbol, Precedence p);
  void call(mlir::Operation *op, llvm::StringRef function);
  mlir::LogicalResult constant(mlir::arith::ConstantOp op);
  void compare(mlir::arith::CmpFOp op);
  void select(mlir::arith::SelectOp op);
  void widen(mlir::arith::ExtFOp op);
  void load(exec::LoadOp op);
  std::string stored(mlir::Value value, const KernelArgument &arg);
  static std::string element(const KernelArgument &arg);

  llvm::raw_ostream &os;
  llvm::DenseMap<mlir::Value, Expression> known;
};

} // namespace fsdp::emit

#endif // FSDP_LIB_TARGET_EMITEXPRESSION_H
