//===- MlpConfig.cpp - Sizes of the MLP -----------------------------------===//
#include "lib/Families/ModelFields.h"

using llvm::ArrayRef;

namespace fsdp {

std::vector<RegisteredModel> mlpModels() {
  return {
      {{"odsc_mlp", MlpConfig(), /*batch=*/8192, /*seqLen=*/1},
       "8 x (Linear 16384 + ReLU), squared error"},
  };
}

ArrayRef<FieldOf<MlpConfig>> fields(const MlpConfig &) {
  using C = MlpConfig;
  static const FieldOf<C> all[] = {
      {"dim", "width of every layer", &C::dim},
      {"n_layers", "pairs of linear and ReLU", &C::layers, kMaxLayers},
  };
  return all;
}

llvm::Error verifyConfig(const MlpConfig &) { return llvm::Error::success(); }

} // namespace fsdp
