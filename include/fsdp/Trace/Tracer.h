//===- Tracer.h - The graph under construction ------------------*- C++ -*-===//
//
// Running a model's `forward` over `Tensor`s builds `nn` ops instead of
// computing: that is all tracing is. A Tensor is an SSA value that knows the
// tracer it belongs to, so that models can be written as formulas.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TRACE_TRACER_H
#define FSDP_TRACE_TRACER_H

#include "dialects/NN/AttentionView.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"

namespace fsdp::model {

struct Buffer;
class Module;
struct Parameter;
class Tracer;

/// A logical tensor of the graph being traced. Cheap to copy.
class Tensor {
public:
  Tensor(mlir::Value value, Tracer &tracer) : ssa(value), owner(&tracer) {}

  mlir::Value value() const { return ssa; }
  Tracer &tracer() const { return *owner; }
  mlir::RankedTensorType type() const {
    return mlir::cast<mlir::RankedTensorType>(ssa.getType());
  }
  llvm::ArrayRef<int64_t> shape() const { return type().getShape(); }
  int64_t size(unsigned dim) const { return shape()[dim]; }

private:
  mlir::Value ssa;
  Tracer *owner;
};

/// Where ops go, and which module they come from.
class Tracer {
public:
  /// Appends declarations to `module`; `builder` stands where ops go.
  Tracer(mlir::ModuleOp module, mlir::OpBuilder builder);

  mlir::OpBuilder &builder() { return ops; }
  /// The module whose forward is running, as a NameLoc.
  mlir::Location loc() const { return location; }
  /// Makes `op` one of the call whose forward is running (`nn.module`); ops of
  /// the root belong to none.
  void stamp(mlir::Operation *op) const;

  /// Declares every parameter and buffer of `module` and of its children, in
  /// registration order.
  void declare(const Module &module);

  /// A use of a parameter: its present value.
  Tensor use(const Parameter &parameter);
  /// A use of a buffer. Wherever it is used, it belongs to the path of its own
  /// name.
  Tensor use(const Buffer &buffer);

  /// A call of the module `path`: while it lives, new ops belong to it. The
  /// second call of a module is "path#2", and so on; the parts of a module are
  /// counted each by itself.
  class Scope {
  public:
    Scope(Tracer &tracer, llvm::StringRef path);
    ~Scope();
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    Tracer &tracer;
    mlir::Location outerLocation;
    mlir::StringAttr outerModule;
  };

private:
  mlir::StringAttr enter(llvm::StringRef path);

  mlir::ModuleOp module;
  mlir::OpBuilder ops;
  mlir::Location location;
  mlir::StringAttr running; // null in the root's forward
  llvm::StringMap<unsigned> calls;
};

//===----------------------------------------------------------------------===//
// The vocabulary of models: a function for each nn op that they use
//===----------------------------------------------------------------------===//

/// Builds an OpTy from `arguments` where the tracer of `x` stands and gives
/// its first result, the only one that models use. Of an op without a name
/// below: build<nn::TanhOp>(x, x.value()).
template <typename OpTy, typename... Args>
Tensor build(Tensor x, Args &&...arguments) {
  Tracer &tracer = x.tracer();
  auto op = OpTy::create(tracer.builder(), tracer.loc(),
                         std::forward<Args>(arguments)...);
  tracer.stamp(op);
  return {op->getResult(0), tracer};
}

Tensor operator+(Tensor lhs, Tensor rhs);
Tensor operator*(Tensor lhs, Tensor rhs);
Tensor operator/(Tensor lhs, Tensor rhs);
/// A tensor of x's shape whose elements are all `value`.
Tensor constantLike(Tensor x, double value);

/// stream + branch: what a block gives, added to the model's residual stream
/// [batch, sequence, features]. A placement policy can say where that lies.
Tensor addToResidual(Tensor stream, Tensor branch);

/// The same elements in row-major order under another shape.
Tensor reshape(Tensor x, llvm::ArrayRef<int64_t> shape);

/// The box of x from `offsets` on in the shape `sizes`.
Tensor slice(Tensor x, llvm::ArrayRef<int64_t> offsets,
             llvm::ArrayRef<int64_t> sizes);
/// Joins two tensors along their last dimension.
Tensor concat(Tensor first, Tensor second);
/// Repeats x, whose dimension i is dimension dims[i] of `shape`.
Tensor broadcast(Tensor x, llvm::ArrayRef<int64_t> dims,
                 llvm::ArrayRef<int64_t> shape);

Tensor tanh(Tensor x);
Tensor relu(Tensor x);
Tensor silu(Tensor x);
/// x Phi(x), and its form by tanh.
Tensor gelu(Tensor x);
Tensor geluTanh(Tensor x);

/// x W^T + b, with W stored [out, in].
Tensor linear(Tensor x, Tensor weight);
Tensor linear(Tensor x, Tensor weight, Tensor bias);

/// Rows of `table` by index.
Tensor embedding(Tensor indices, Tensor table);

/// `plusOne`: 1 + weight takes the place of the weight.
Tensor rmsNorm(Tensor x, Tensor weight, double eps, bool plusOne = false);
Tensor layerNorm(Tensor x, Tensor weight, Tensor bias, double eps);

/// Rotates pairs of x [batch, sequence, heads, head_dim] by the angles in
/// `table` [sequence, head_dim / 2, 2]: neighbours, or elements at the same
/// place of a head's halves.
Tensor rotary(Tensor x, Tensor table, bool halves);

/// softmax(scale q k^T) v of what `view` sees; q is [batch, sequence, heads,
/// head_dim], k and v may have fewer heads.
Tensor attention(Tensor q, Tensor k, Tensor v, double scale,
                 const nn::AttentionView &view);
/// The same where later positions are hidden.
Tensor causalAttention(Tensor q, Tensor k, Tensor v, double scale);

/// Mean negative log-likelihood of `targets` [rows] under `logits` [rows,
/// classes], in f32; rows with target -100 do not count.
Tensor crossEntropy(Tensor logits, Tensor targets);
/// Mean squared difference.
Tensor mseLoss(Tensor prediction, Tensor target);

} // namespace fsdp::model

#endif // FSDP_TRACE_TRACER_H
