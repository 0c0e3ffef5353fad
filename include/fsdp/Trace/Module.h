//===- Module.h - Models as trees of modules --------------------*- C++ -*-===//
//
// A model is a tree of modules with named parameters. A module's members
// register themselves with it when they are constructed, so the order of the
// members in the class *is* the registration order, which fixes the order of
// the declarations in the graph and of the tensors inside a bucket:
//
//   class FeedForward : public Layer<FeedForward> {
//   public:
//     FeedForward(Module &parent, StringRef name, int64_t dim, int64_t hidden)
//         : Layer(parent, name), w1(*this, "w1", dim, hidden, normal(0.02)),
//           w2(*this, "w2", hidden, dim, normal(0.02)) {}
//     Tensor forward(Tensor x) const { return w2(relu(w1(x))); }
//   private:
//     Linear w1, w2;
//   };
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TRACE_MODULE_H
#define FSDP_TRACE_MODULE_H

#include "fsdp/Trace/Tracer.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/iterator.h"
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::model {

//===----------------------------------------------------------------------===//
// Initialisers
//===----------------------------------------------------------------------===//

/// How a tensor starts; becomes an attribute once there is a context.
using Init = std::function<mlir::Attribute(mlir::MLIRContext *)>;

Init zeros();
Init ones();
/// Normal distribution around 0; values beyond `cut` standard deviations are
/// drawn again (0: none are).
Init normal(double std, double cut = 0);
/// Uniform on [-bound, bound).
Init uniform(double bound);

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// A tensor that persists between steps; f32. Its owner refers to it.
struct Variable {
  Variable(const Module &owner, llvm::StringRef name,
           llvm::ArrayRef<int64_t> shape, Init init);
  Variable(const Variable &) = delete;
  Variable &operator=(const Variable &) = delete;

  std::string name; // with the module's path: "layers.0.attention.wq.weight"
  llvm::SmallVector<int64_t> shape;
  Init init;
};

/// A node of the model's tree. Modules have an address for life: parents and
/// owners are referred to.
class Module {
public:
  /// The root of a tree; its path is empty.
  Module() = default;
  /// A child; its path is the parent's, a dot and `name`.
  Module(Module &parent, llvm::StringRef name);
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  llvm::StringRef path() const { return modulePath; }
  /// The path of a member called `name`.
  std::string pathOf(llvm::StringRef name) const;

  /// Own parameters and buffers first, then those of the children, each in
  /// the order of registration.
  void visit(llvm::function_ref<void(const Parameter &)> onParameter,
             llvm::function_ref<void(const Buffer &)> onBuffer) const;

private:
  friend struct Parameter;
  friend struct Buffer;

  std::string modulePath;
  std::vector<const Parameter *> parameters;
  std::vector<const Buffer *> buffers;
  std::vector<const Module *> children;
};

/// A trained tensor.
struct Parameter : Variable {
  Parameter(Module &owner, llvm::StringRef name, llvm::ArrayRef<int64_t> shape,
            Init init);
};

/// A tensor that is not trained.
struct Buffer : Variable {
  Buffer(Module &owner, llvm::StringRef name, llvm::ArrayRef<int64_t> shape,
         Init init);
};

/// A module with a `forward` over tensors. Calling it runs `forward` with the
/// module's path as the location of the ops it builds.
template <typename Self> class Layer : public Module {
public:
  using Module::Module;

  template <typename... Rest> Tensor operator()(Tensor x, Rest... rest) const {
    Tracer::Scope scope(x.tracer(), path());
    return static_cast<const Self *>(this)->forward(x, rest...);
  }
};

/// Numbered modules of one kind: "layers.0", "layers.1", ….
template <typename T> class ModuleList : public Module {
public:
  /// `make(list, number)` gives a std::unique_ptr<T> named after its number.
  template <typename MakeFn>
  ModuleList(Module &parent, llvm::StringRef name, int64_t count, MakeFn make)
      : Module(parent, name) {
    for (int64_t number = 0; number < count; ++number)
      modules.push_back(make(*this, number));
  }

  auto begin() const { return items().begin(); }
  auto end() const { return items().end(); }

private:
  auto items() const { return llvm::make_pointee_range(modules); }
  std::vector<std::unique_ptr<const T>> modules;
};

/// A named input or output of a program.
struct NamedType {
  std::string name;
  mlir::RankedTensorType type;
};
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// The root of a tree: what becomes a program.
class Model : public Module {
public:
  virtual ~Model() = default;
  /// What a step is fed with, in the order of forward's inputs.
  virtual std::vector<NamedType> inputs(mlir::MLIRContext *context) const = 0;
  /// The results of a step; the loss, a tensor of rank 0, comes first.
  virtual std::vector<NamedTensor>
  forward(llvm::ArrayRef<Tensor> inputs) const = 0;
};

//===----------------------------------------------------------------------===//
// Layers that every model shares
//===----------------------------------------------------------------------===//

/// x W^T, and + b if a bias initialiser is given.
class Linear : public Layer<Linear> {
public:
  Linear(Module &parent, llvm::StringRef name, int64_t in, int64_t out,
         Init init);
  Linear(Module &parent, llvm::StringRef name, int64_t in, int64_t out,
         Init init, Init biasInit);
  Tensor forward(Tensor x) const;

private:
  Parameter weight;
  std::optional<Parameter> bias;
};

/// Rows of a table.
class Embedding : public Layer<Embedding> {
public:
  Embedding(Module &parent, llvm::StringRef name, int64_t rows, int64_t dim,
            Init init);
  Tensor forward(Tensor indices) const;
  /// x W^T: scores every row of the table, as tied output layers do.
  Tensor scores(Tensor x) const;

private:
  Parameter weight;
};

/// x / sqrt(mean(x^2) + eps) * w (Zhang and Sennrich, 2019).
class RMSNorm : public Layer<RMSNorm> {
public:
  RMSNorm(Module &parent, llvm::StringRef name, int64_t dim, double eps);
  Tensor forward(Tensor x) const;

private:
  Parameter weight;
  double eps;
};

/// (x - mean) / sqrt(var + eps) * w + b (Ba et al., 2016).
class LayerNorm : public Layer<LayerNorm> {
public:
  LayerNorm(Module &parent, llvm::StringRef name, int64_t dim, double eps);
  Tensor forward(Tensor x) const;

private:
  Parameter weight, bias;
  double eps;
};

} // namespace fsdp::model

#endif // FSDP_TRACE_MODULE_H
