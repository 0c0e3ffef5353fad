//===- MlpModel.cpp - The MLP of FSDP tutorials ---------------------------===//
#include "fsdp/Families/MlpModel.h"
#include "fsdp/Support/RangeNames.h"
#include <cmath>

using namespace mlir;

namespace fsdp::model {

// PyTorch's default for linear layers.
static Init linearDefault(int64_t in) {
  return uniform(1 / std::sqrt(static_cast<double>(in)));
}

Mlp::Mlp(const MlpConfig &config, int64_t batch)
    : batch(batch), dim(config.dim),
      layers(*this, "layers", config.layers, [&](Module &list, int64_t layer) {
        return std::make_unique<Linear>(list, std::to_string(layer), dim, dim,
                                        linearDefault(dim), linearDefault(dim));
      }) {}

std::vector<NamedType> Mlp::inputs(MLIRContext *context) const {
  auto type = RankedTensorType::get({batch, dim}, Float32Type::get(context));
  return {{"x", type}, {"y", type}};
}

std::vector<NamedTensor> Mlp::forward(ArrayRef<Tensor> inputs) const {
  Tensor h = inputs[0], y = inputs[1];
  Tracer &tracer = h.tracer();
  for (const Linear &layer : layers) {
    Tracer::Scope scope(tracer, layer.path());
    h = relu(layer(h));
  }

  Tracer::Scope scope(tracer, "loss");
  return {{range_name::kLoss, mseLoss(h, y)}, {"prediction", h}};
}

} // namespace fsdp::model
