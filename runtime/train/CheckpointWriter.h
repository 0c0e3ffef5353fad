//===- CheckpointWriter.h - What writes checkpoints -------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_CHECKPOINTWRITER_H
#define FSDP_RUNTIME_TRAIN_CHECKPOINTWRITER_H

#include "runtime/checkpoint/store/RunState.h"
#include <cstdint>

namespace fsdp {

/// What a checkpoint has: all that a run needs to go on, the parameters, or the
/// parameters in checkpoint.export_dtype.
enum class SaveContents { Everything, Parameters, Export };

/// Writes checkpoints while a run goes on. A Checkpointer, or a test's.
class CheckpointWriter {
public:
  virtual ~CheckpointWriter() = default;

  /// The step of the newest save that was begun and is not known to have
  /// failed; -1: none.
  virtual int64_t lastStep() const = 0;
  /// Begins a save. Collective, between steps. Throws fsdp::Error if this save
  /// or the one before failed, unless checkpoint.on_error says to go on.
  virtual void save(const checkpoint::RunState &state,
                    SaveContents contents) = 0;
  /// True once this rank knows that the save on its way fails. Then all ranks
  /// call finish().
  virtual bool hasFailed() const = 0;
  /// Waits for the save on its way, and throws as save() does. Collective.
  virtual void finish() = 0;
  /// Writes the directory of Hugging Face of a step that is saved, while no
  /// save is on its way. Of one rank; see LastExport.h. Throws fsdp::Error.
  virtual void exportSaved(int64_t step) = 0;
};

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_CHECKPOINTWRITER_H
