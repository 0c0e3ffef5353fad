//===- Data.h - The tokens of a run, and what its loss is of ----*- C++ -*-===//
#ifndef FSDP_TRAINING_DATA_H
#define FSDP_TRAINING_DATA_H

#include "Options.h"
#include "fsdp/Config/RunConfig.h"
#include "fsdp/Runtime/Dataset.h"
#include "fsdp/Runtime/Manifest.h"

namespace fsdp {

/// In what the loss on a dataset's tokens is told.
struct LossUnit {
  const char *tokens;  // "text" or "ids"
  const char *counted; // "bytes" or "labels"
  const char *name;    // "bits per byte" or "nats per token"
  const char *key;     // "bits_per_byte" or "nats_per_token"
  double nats;         // that it has
};
const LossUnit &lossUnit(const RunConfig &config);

/// Opens the tokens of a run. Bytes are refused where the model is one of token
/// ids: it has a tokenizer, or another vocabulary than that of bytes and nobody
/// has asked for bytes in words. Adds a line for the user to `warnings` where
/// ids cannot be compared with a vocabulary. Throws fsdp::Error.
std::unique_ptr<rt::Dataset> openDataset(const RunConfig &config,
                                         const RunOptions &options,
                                         const rt::Manifest &manifest,
                                         std::vector<std::string> &warnings);

} // namespace fsdp

#endif // FSDP_TRAINING_DATA_H
