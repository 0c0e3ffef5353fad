//===- LossUnit.cpp - In what a loss is told ------------------------------===//
#include "LossUnit.h"
#include <cmath>

using namespace fsdp;

bool fsdp::isIds(const RunConfig &config) {
  return config.training.dataset != DatasetKind::Bytes;
}

const LossUnit &fsdp::lossUnit(const RunConfig &config) {
  static const LossUnit bytes{"text", "bytes", "bits per byte", "bits_per_byte",
                              M_LN2};
  static const LossUnit ids{"ids", "labels", "nats per token", "nats_per_token",
                            1};
  return isIds(config) ? ids : bytes;
}
