//===- RunState.h - Where a run stands --------------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CHECKPOINT_STORE_RUNSTATE_H
#define FSDP_RUNTIME_CHECKPOINT_STORE_RUNSTATE_H

#include "fsdp/Support/Checksum.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace fsdp::checkpoint {

/// All that the next step depends on besides the tensors. Data, initial values
/// and samples are functions of a seed and of counters (Philox), so that the
/// position in the data and the state of the generator are these.
struct RunState {
  /// Whether `step` and `optimizerStart` alone are known, as of checkpoints of
  /// PyTorch; all else is then unset.
  bool stepsAlone = false;
  int64_t step = 0;   // steps that are over
  int64_t tokens = 0; // of all of them
  /// The step with which the learning rate's schedule began.
  int64_t scheduleStart = 0;
  /// Steps, without those skipped, that the optimizer's moments do not have:
  /// those before they began anew.
  int64_t optimizerStart = 0;
  uint64_t seed = 0;
  /// The text or the ids that are trained on.
  std::string dataset, datasetPath;
  int64_t datasetBytes = 0, trainBytes = 0;
  /// checksumOf all of the file; unset: by a program that kept none.
  std::optional<uint64_t> datasetChecksum;
  /// Of a dataset of ids: their type, and checksumOf the mask; unset: all are
  /// labels.
  std::string idsType;
  /// "shuffle" or "documents"; empty: windows are drawn.
  std::string dataOrder;
  /// "padded" or "best_fit"; empty: rows are windows.
  std::string packing;
  std::optional<uint64_t> maskChecksum;
  /// Rows and sequence of the global batch of a step.
  int64_t globalBatch = 0, sequence = 0;
  /// Steps that were left out because something was not finite.
  int64_t skippedSteps = 0;
  /// "dp_replicate=2 x dp_shard=2": what wrote it.
  std::string mesh;
  int64_t ranks = 1;
  /// All settings as "section.key" -> text.
  std::map<std::string, std::string> config;
};

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_STORE_RUNSTATE_H
