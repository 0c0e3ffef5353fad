//===- Data.h - The tokens of a run, and what its loss is of ----*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_DATA_H
#define FSDP_RUNTIME_TRAIN_DATA_H

#include "Options.h"
#include "fsdp/Artifact/Manifest.h"
#include "fsdp/Config/RunConfig.h"
#include "fsdp/Data/Dataset.h"

namespace fsdp {

/// In what order a run sees the windows of its data.
rt::WindowOrder orderOf(const RunConfig &config);

/// Opens the tokens of a run. Bytes are refused where the model is one of token
/// ids: it has a tokenizer, or another vocabulary than that of bytes and nobody
/// has asked for bytes in words. Adds a line for the user to `warnings` where
/// ids cannot be compared with a vocabulary. Throws fsdp::Error.
std::unique_ptr<rt::Dataset> openDataset(const RunConfig &config,
                                         const RunOptions &options,
                                         const rt::Manifest &manifest,
                                         std::vector<std::string> &warnings);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_DATA_H
