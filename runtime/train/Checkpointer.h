//===- Checkpointer.h - Checkpoints of a run, while it runs -----*- C++ -*-===//
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
#ifndef FSDP_RUNTIME_TRAIN_CHECKPOINTER_H
#define FSDP_RUNTIME_TRAIN_CHECKPOINTER_H

#include "CheckpointWriter.h"
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

class Checkpointer : public CheckpointWriter {
public:
  /// Takes and touches the staging memory. Collective. Throws fsdp::Error if
  /// there is none.
  Checkpointer(const Rank &rank, const RunConfig &config);
  ~Checkpointer() override;
  Checkpointer(const Checkpointer &) = delete;
  Checkpointer &operator=(const Checkpointer &) = delete;

  /// Of this rank.
  uint64_t stagingBytes() const { return staging.size(); }
  int64_t lastStep() const override { return last; }
  void save(const checkpoint::RunState &state, SaveContents contents) override;
  bool hasFailed() const override;
  void finish() override;
  /// A call to the file system that hangs is named, and ends the job, as in a
  /// save.
  void exportSaved(int64_t step) override;

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

#endif // FSDP_RUNTIME_TRAIN_CHECKPOINTER_H
