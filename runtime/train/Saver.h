//===- Saver.h - Checkpoints of a run, while it runs ------------*- C++ -*-===//
//
// A save begins between two steps. Each rank copies the boxes that it writes to
// staging memory, and a thread writes them while the next steps run; with
// checkpoint.async_mode = "disabled" they are written from the arena before the
// next step. One save is on its way at a time: the next one waits for it. The
// first rank commits when all parts are there.
//
// A rank that cannot write its part says so at the end of the next step, where
// all ranks hear of it; nothing else is said while a save is on its way.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_TRAIN_SAVER_H
#define FSDP_RUNTIME_TRAIN_SAVER_H

#include "FolderLock.h"
#include "Rank.h"
#include "SaveWatch.h"
#include "fsdp/Config/RunConfig.h"
#include "runtime/checkpoint/native/CheckpointFolder.h"
#include <chrono>
#include <future>
#include <memory>
#include <thread>

namespace fsdp {

/// What a checkpoint has: all that a run needs to go on, the parameters, or the
/// parameters in checkpoint.export_dtype.
enum class SaveContents { Everything, Parameters, Export };

class Saver {
public:
  /// Takes and touches the staging memory. Collective. Throws fsdp::Error if
  /// there is none.
  Saver(const Rank &rank, const RunConfig &config);
  ~Saver();
  Saver(const Saver &) = delete;
  Saver &operator=(const Saver &) = delete;

  /// Of this rank.
  uint64_t stagingBytes() const { return staging.size(); }
  /// The step of the newest save that was begun and is not known to have
  /// failed; -1: none.
  int64_t lastStep() const { return last; }

  /// Begins a save. Collective, between steps. Throws fsdp::Error if this save
  /// or the one before failed, unless checkpoint.on_error says to go on.
  void save(const checkpoint::RunState &state, SaveContents contents);
  /// True once this rank knows that the save on its way fails. Then all ranks
  /// call finish().
  bool hasFailed() const;
  /// Waits for the save on its way, and throws as save() does. Collective.
  void finish();
  /// Calls `act`, which writes `work` ("the export of step 4") while no save is
  /// on its way: a call to the file system that hangs is named, and ends the
  /// job, as in a save.
  void watchWork(const std::string &work, const std::function<void()> &act);

private:
  using Clock = std::chrono::steady_clock;
  struct Piece {
    checkpoint::OwnedBox box;
    uint64_t place; // in the staging memory
  };
  struct Running;

  std::vector<checkpoint::SavedChunk> chunksOf(SaveContents contents) const;
  std::function<void(const rt::TakePiece &)> sourceOf(const Piece &piece) const;
  void copyToStaging(SaveContents contents);
  static void writeOwnPart(Running &save);
  void commit(Running &save) const;
  void waitForLast(int64_t step);
  bool handle(const std::string &problem, const Running &save);
  void abandon(const Running &save);
  void removeAbandoned();

  const Rank &rank;
  const RunConfig &config;
  std::string folder, attempt;
  std::unique_ptr<FolderLock> lock; // the first rank has its own
  bool isAsync;
  SaveWatch watch;
  std::vector<Piece> pieces;
  std::vector<std::byte> staging;
  std::unique_ptr<Running> running;
  /// Saves that failed and whose files could not be removed.
  std::vector<checkpoint::SaveRequest> abandoned;
  int64_t last = -1;
};

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_SAVER_H
