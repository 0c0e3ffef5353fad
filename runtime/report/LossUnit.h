//===- LossUnit.h - In what a loss is told ----------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_REPORT_LOSSUNIT_H
#define FSDP_RUNTIME_REPORT_LOSSUNIT_H

#include "fsdp/Config/RunConfig.h"

namespace fsdp {

/// Whether the tokens of a run are ids of a vocabulary, and not bytes.
bool isIds(const RunConfig &config);

/// In what the loss on a dataset's tokens is told.
struct LossUnit {
  const char *tokens;  // "text" or "ids"
  const char *counted; // "bytes" or "labels"
  const char *name;    // "bits per byte" or "nats per token"
  const char *key;     // "bits_per_byte" or "nats_per_token"
  double nats;         // that it has
};
const LossUnit &lossUnit(const RunConfig &config);

} // namespace fsdp

#endif // FSDP_RUNTIME_REPORT_LOSSUNIT_H
