//===- Tracer.cpp - Builds nn ops from the vocabulary of models -----------===//
#include "fsdp/Trace/Tracer.h"
#include "dialects/NN/ModulePath.h"
#include "dialects/NN/NN.h"
#include "fsdp/Trace/Module.h"

using namespace mlir;

namespace fsdp::model {

Tracer::Tracer(ModuleOp module, OpBuilder builder)
    : module(module), ops(builder), location(module.getLoc()) {}

/// The call of `path` that begins. A module that goes on where it stands is not
/// called again.
StringAttr Tracer::enter(StringRef path) {
  if (running && nn::withoutCall(running) == path)
    return running;
  return ops.getStringAttr(nn::callPath(path, ++calls[path]));
}

Tracer::Scope::Scope(Tracer &tracer, llvm::StringRef path)
    : tracer(tracer), outerLocation(tracer.location),
      outerModule(tracer.running) {
  tracer.running = tracer.enter(path);
  tracer.location = NameLoc::get(tracer.ops.getStringAttr(path));
}

Tracer::Scope::~Scope() {
  tracer.location = outerLocation;
  tracer.running = outerModule;
}

void Tracer::stamp(Operation *op) const {
  if (running)
    nn::setModule(op, running);
}

/// A model is traced in f32; nn-precision decides what is computed in.
static RankedTensorType typeOf(const Variable &variable, OpBuilder &builder) {
  return RankedTensorType::get(variable.shape, builder.getF32Type());
}

void Tracer::declare(const Module &root) {
  OpBuilder declarations = OpBuilder::atBlockEnd(module.getBody());
  MLIRContext *context = module.getContext();
  auto locOf = [&](const Variable &variable) {
    return NameLoc::get(declarations.getStringAttr(variable.name));
  };
  root.visit(
      [&](const Parameter &parameter) {
        nn::ParameterOp::create(declarations, locOf(parameter), parameter.name,
                                typeOf(parameter, declarations),
                                parameter.init(context));
      },
      [&](const Buffer &buffer) {
        nn::BufferOp::create(declarations, locOf(buffer), buffer.name,
                             typeOf(buffer, declarations),
                             buffer.init(context));
      });
}

Tensor Tracer::use(const Parameter &parameter) {
  auto read =
      nn::ReadOp::create(ops, location, typeOf(parameter, ops), parameter.name);
  stamp(read);
  return {read, *this};
}

Tensor Tracer::use(const Buffer &buffer) {
  StringAttr name = ops.getStringAttr(buffer.name);
  auto read = nn::ReadOp::create(ops, NameLoc::get(name), typeOf(buffer, ops),
                                 buffer.name);
  nn::setModule(read, name);
  return {read, *this};
}

//===----------------------------------------------------------------------===//
// One function per nn op
//===----------------------------------------------------------------------===//

Tensor operator+(Tensor lhs, Tensor rhs) {
  return build<nn::AddOp>(lhs, lhs.value(), rhs.value());
}

Tensor addToResidual(Tensor stream, Tensor branch) {
  Tensor sum = stream + branch;
  Operation *add = sum.value().getDefiningOp();
  add->setAttr(nn::kResidualAttr, UnitAttr::get(add->getContext()));
  return sum;
}

Tensor operator*(Tensor lhs, Tensor rhs) {
  return build<nn::MulOp>(lhs, lhs.value(), rhs.value());
}

Tensor operator/(Tensor lhs, Tensor rhs) {
  return build<nn::DivOp>(lhs, lhs.value(), rhs.value());
}

Tensor constantLike(Tensor x, double value) {
  return build<nn::ConstantOp>(x, x.type(), value);
}

/// x's type with another shape.
static RankedTensorType withShape(Tensor x, llvm::ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, x.type().getElementType());
}

Tensor reshape(Tensor x, llvm::ArrayRef<int64_t> shape) {
  return build<nn::ReshapeOp>(x, withShape(x, shape), x.value());
}

Tensor slice(Tensor x, llvm::ArrayRef<int64_t> offsets,
             llvm::ArrayRef<int64_t> sizes) {
  return build<nn::SliceOp>(x, withShape(x, sizes), x.value(), offsets);
}

Tensor concat(Tensor first, Tensor second) {
  auto shape = llvm::to_vector(first.shape());
  int64_t last = shape.size() - 1;
  shape[last] += second.size(last);
  return build<nn::ConcatOp>(first, withShape(first, shape),
                             ValueRange{first.value(), second.value()}, last);
}

Tensor broadcast(Tensor x, llvm::ArrayRef<int64_t> dims,
                 llvm::ArrayRef<int64_t> shape) {
  return build<nn::BroadcastOp>(x, withShape(x, shape), x.value(), dims);
}

Tensor tanh(Tensor x) { return build<nn::TanhOp>(x, x.value()); }

Tensor relu(Tensor x) { return build<nn::ReluOp>(x, x.value()); }

Tensor silu(Tensor x) { return build<nn::SiluOp>(x, x.value()); }

Tensor gelu(Tensor x) {
  return build<nn::GeluOp>(x, x.value(), nn::GeluForm::Exact);
}

Tensor geluTanh(Tensor x) {
  return build<nn::GeluOp>(x, x.value(), nn::GeluForm::Tanh);
}

Tensor linear(Tensor x, Tensor weight) {
  return build<nn::LinearOp>(x, x.value(), weight.value());
}

Tensor linear(Tensor x, Tensor weight, Tensor bias) {
  return build<nn::LinearOp>(x, x.value(), weight.value(), bias.value());
}

Tensor embedding(Tensor indices, Tensor table) {
  return build<nn::EmbeddingOp>(indices, indices.value(), table.value());
}

Tensor rmsNorm(Tensor x, Tensor weight, double eps, bool plusOne) {
  return build<nn::RMSNormOp>(x, x.value(), weight.value(), eps, plusOne);
}

Tensor layerNorm(Tensor x, Tensor weight, Tensor bias, double eps) {
  return build<nn::LayerNormOp>(x, x.value(), weight.value(), bias.value(),
                                eps);
}

Tensor rotary(Tensor x, Tensor table, bool halves) {
  return build<nn::RotaryOp>(x, x.value(), table.value(),
                             halves ? nn::RotaryPairs::Halves
                                    : nn::RotaryPairs::Adjacent);
}

Tensor attention(Tensor q, Tensor k, Tensor v, double scale,
                 const nn::AttentionView &view) {
  return build<nn::AttentionOp>(q, q.value(), k.value(), v.value(), scale,
                                view);
}

Tensor causalAttention(Tensor q, Tensor k, Tensor v, double scale) {
  return build<nn::AttentionOp>(q, q.value(), k.value(), v.value(), scale,
                                /*causal=*/true);
}

Tensor crossEntropy(Tensor logits, Tensor targets) {
  Value label = targets.value();
  Tensor rows = build<nn::CrossEntropyOp>(logits, logits.value(), label);
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, rows.shape().size()));
  Tensor sum = build<nn::SumOp>(rows, rows.value(), dims);
  Tensor count = build<nn::CountLabelsOp>(targets, label);
  return build<nn::DivideByCountOp>(sum, sum.value(), count.value());
}

Tensor mseLoss(Tensor prediction, Tensor target) {
  return build<nn::MSELossOp>(prediction, prediction.value(), target.value());
}

} // namespace fsdp::model
