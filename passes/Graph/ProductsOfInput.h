//===- ProductsOfInput.h - Products of one input ----------------*- C++ -*-===//
//
// What nn-wide-products asks of products that may become one, and how it writes
// what they become.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_PASSES_GRAPH_PRODUCTSOFINPUT_H
#define FSDP_PASSES_GRAPH_PRODUCTSOFINPUT_H

#include "dialects/NN/ModulePath.h"
#include "dialects/NN/NN.h"
#include "llvm/ADT/SetVector.h"

namespace fsdp::wide {

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// Where ops of one block are replaced by one: behind the last of them. What
/// uses their results before that has to move.
class JoinPlace {
public:
  explicit JoinPlace(llvm::ArrayRef<mlir::Operation *> ops);

  /// Finds what has to move; false if an op depends on another one, or one that
  /// has effects would have to move.
  [[nodiscard]] bool find();
  /// Moves what find() finds, in its order, and creates next in between.
  void open(mlir::OpBuilder &builder);

  mlir::Operation *getFirst() const { return first; }
  mlir::Operation *getLast() const { return last; }
  llvm::ArrayRef<mlir::Operation *> getOps() const { return ops; }

private:
  llvm::SmallVector<mlir::Operation *> ops;
  mlir::Operation *first = nullptr, *last = nullptr;
  llvm::SmallSetVector<mlir::Operation *, 8> users;
};

/// Creates what products become.
class JoinWriter {
public:
  explicit JoinWriter(mlir::MLIRContext *context);

  /// Creates next what replaces the ops of `place`, in their common module.
  void beginAt(JoinPlace &place);
  /// Before `op`, in its module.
  void beginBefore(mlir::Operation *op);

  template <typename OpT, typename... Args> OpT create(Args &&...args) {
    nn::ModuleScope scope(b, module);
    return OpT::create(b, loc, std::forward<Args>(args)...);
  }

  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  /// All dimensions but the last as one.
  mlir::Value asMatrix(mlir::Value value);
  /// Matrices below each other.
  mlir::Value concat(mlir::ValueRange parts);

  /// Uses of `value` read `by` in its shape.
  void replace(mlir::Value value, mlir::Value by);
  /// `values` become the rows of the matrix `whole`, one after another.
  void replaceByRows(mlir::ValueRange values, mlir::Value whole);

private:
  mlir::OpBuilder b;
  mlir::StringAttr module;
  mlir::Location loc;
};

/// Products `input` weight^T without a bias, with their gradients: one for
/// each product, or none at all.
struct ProductsOfInput {
  mlir::Value input;
  llvm::SmallVector<nn::LinearOp> forward;
  llvm::SmallVector<nn::LinearInputGradOp> inputGrads;
  llvm::SmallVector<nn::LinearWeightGradOp> weightGrads;
  nn::AddOp inputGrad; ///< The sum of inputGrads.

  /// Finds the gradients; false if the products cannot be one.
  bool complete();

  bool hasGradients() const { return !inputGrads.empty(); }
  llvm::SmallVector<mlir::Value> cotangents() const;
  JoinPlace forwardPlace() const;
  JoinPlace gradientPlace() const;
  bool havePlaces() const;

  /// The weights below each other.
  mlir::Value createWeight(JoinWriter &writer) const;
  /// The same for the gradients: where the weights are copied, once more, so
  /// that no copy lives from here until then.
  mlir::Value weightForGradients(JoinWriter &writer, mlir::Value weight) const;
  /// `allWeights` is null where the weights have no gradients.
  void replaceGradients(JoinWriter &writer, mlir::Value input,
                        mlir::Value allWeights) const;

private:
  bool addGradients(nn::LinearOp op);
};

} // namespace fsdp::wide

#endif // FSDP_PASSES_GRAPH_PRODUCTSOFINPUT_H
