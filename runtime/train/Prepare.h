//===- Prepare.h - Everything that can be wrong before a run ----*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_PREPARE_H
#define FSDP_RUNTIME_TRAIN_PREPARE_H

#include "Options.h"
#include "fsdp/Artifact/Loader.h"
#include "fsdp/Config/RunConfig.h"
#include "fsdp/Data/Dataset.h"
#include "runtime/checkpoint/store/RunState.h"

namespace fsdp {

/// A run whose configuration, artifact and text exist and agree.
struct PreparedRun {
  RunConfig config; // sample.length is set
  std::unique_ptr<rt::ArtifactFolder> artifact;
  std::unique_ptr<rt::Dataset> data;     // null with --program
  const rt::ByteDataset *text = nullptr; // `data`, if they are bytes
  /// stateOf() a run with checkpoints.
  std::optional<checkpoint::RunState> state;
  std::string precisionLine;
  std::vector<std::string> warnings;
};

/// Throws fsdp::Error with the first thing that is wrong for `ranks` ranks.
/// It runs before the ranks are started, so that a mistake gives one message,
/// and again in each of them.
PreparedRun prepareRun(std::unique_ptr<rt::ArtifactFolder> artifact,
                       const RunOptions &options, int64_t ranks);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_PREPARE_H
