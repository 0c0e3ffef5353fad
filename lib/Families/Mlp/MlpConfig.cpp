//===- MlpConfig.cpp - Sizes of the MLP -----------------------------------===//
#include "lib/Families/ModelFields.h"

namespace fsdp {

std::vector<FieldOf<MlpConfig>> fields(const MlpConfig &) {
  using C = MlpConfig;
  return {
      {"dim", "width of every layer", &C::dim},
      {"n_layers", "pairs of linear and ReLU", &C::layers, kMaxLayers},
  };
}

MlpConfig baseOf(const MlpConfig &) { return MlpConfig(); }

llvm::Error verifyConfig(const MlpConfig &) { return llvm::Error::success(); }

} // namespace fsdp
