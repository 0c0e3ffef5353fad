//===- Module.cpp - Models as trees of modules ----------------------------===//
#include "fsdp/Trace/Module.h"
#include "dialects/NN/NN.h"

using namespace mlir;

namespace fsdp::model {

//===----------------------------------------------------------------------===//
// Initialisers
//===----------------------------------------------------------------------===//

Init zeros() {
  return [](MLIRContext *context) { return nn::ZerosAttr::get(context); };
}

Init ones() {
  return [](MLIRContext *context) { return nn::OnesAttr::get(context); };
}

Init normal(double std, double cut) {
  return [=](MLIRContext *context) {
    return nn::NormalAttr::get(context, std, cut);
  };
}

Init uniform(double bound) {
  return [=](MLIRContext *context) {
    return nn::UniformAttr::get(context, bound);
  };
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

Module::Module(Module &parent, StringRef name)
    : modulePath(parent.pathOf(name)) {
  parent.children.push_back(this);
}

std::string Module::pathOf(StringRef name) const {
  return modulePath.empty() ? name.str() : modulePath + "." + name.str();
}

void Module::visit(llvm::function_ref<void(const Parameter &)> onParameter,
                   llvm::function_ref<void(const Buffer &)> onBuffer) const {
  for (const Parameter *parameter : parameters)
    onParameter(*parameter);
  for (const Buffer *buffer : buffers)
    onBuffer(*buffer);
  for (const Module *child : children)
    child->visit(onParameter, onBuffer);
}

Variable::Variable(const Module &owner, StringRef name, ArrayRef<int64_t> shape,
                   Init init)
    : name(owner.pathOf(name)), shape(shape), init(std::move(init)) {}

Parameter::Parameter(Module &owner, StringRef name, ArrayRef<int64_t> shape,
                     Init init)
    : Variable(owner, name, shape, std::move(init)) {
  owner.parameters.push_back(this);
}

Buffer::Buffer(Module &owner, StringRef name, ArrayRef<int64_t> shape,
               Init init)
    : Variable(owner, name, shape, std::move(init)) {
  owner.buffers.push_back(this);
}

//===----------------------------------------------------------------------===//
// Layers that every model shares
//===----------------------------------------------------------------------===//

Linear::Linear(Module &parent, StringRef name, int64_t in, int64_t out,
               Init init)
    : Layer(parent, name), weight(*this, "weight", {out, in}, std::move(init)) {
}

Linear::Linear(Module &parent, StringRef name, int64_t in, int64_t out,
               Init init, Init biasInit)
    : Linear(parent, name, in, out, std::move(init)) {
  bias.emplace(*this, "bias", ArrayRef<int64_t>(out), std::move(biasInit));
}

Tensor Linear::forward(Tensor x) const {
  Tensor w = x.tracer().use(weight);
  return bias ? linear(x, w, x.tracer().use(*bias)) : linear(x, w);
}

Embedding::Embedding(Module &parent, StringRef name, int64_t rows, int64_t dim,
                     Init init)
    : Layer(parent, name),
      weight(*this, "weight", {rows, dim}, std::move(init)) {}

Tensor Embedding::forward(Tensor indices) const {
  return embedding(indices, indices.tracer().use(weight));
}

Tensor Embedding::scores(Tensor x) const {
  Tracer::Scope scope(x.tracer(), path());
  return linear(x, x.tracer().use(weight));
}

RMSNorm::RMSNorm(Module &parent, StringRef name, int64_t dim, double eps)
    : Layer(parent, name), weight(*this, "weight", dim, ones()), eps(eps) {}

Tensor RMSNorm::forward(Tensor x) const {
  return rmsNorm(x, x.tracer().use(weight), eps);
}

LayerNorm::LayerNorm(Module &parent, StringRef name, int64_t dim, double eps)
    : Layer(parent, name), weight(*this, "weight", dim, ones()),
      bias(*this, "bias", dim, zeros()), eps(eps) {}

Tensor LayerNorm::forward(Tensor x) const {
  Tensor w = x.tracer().use(weight);
  return layerNorm(x, w, x.tracer().use(bias), eps);
}

} // namespace fsdp::model
