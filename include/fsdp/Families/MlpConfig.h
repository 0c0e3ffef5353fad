//===- MlpConfig.h - Sizes of the MLP ---------------------------*- C++ -*-===//
#ifndef FSDP_FAMILIES_MLPCONFIG_H
#define FSDP_FAMILIES_MLPCONFIG_H

#include <cstdint>

namespace fsdp {

/// `layers` x (Linear + ReLU) with a squared error: the MLP of FSDP tutorials.
struct MlpConfig {
  int64_t dim = 16384;
  int64_t layers = 8;
};

} // namespace fsdp

#endif // FSDP_FAMILIES_MLPCONFIG_H
