//===- Dataset.h - Text as bytes --------------------------------*- C++ -*-===//
//
// Every byte of a text file is a token. The end of the text is held out:
// never sampled in training, and evaluated in full.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_DATASET_H
#define FSDP_RUNTIME_DATASET_H

#include "fsdp/Runtime/Mesh.h"
#include <memory>
#include <string>
#include <string_view>

namespace fsdp::rt {

/// Marks a target that does not count towards the loss.
inline constexpr int32_t kIgnoredTarget = -100;

/// Where a rank's piece of a batch goes: row-major [rows, sequence].
struct Batch {
  int64_t rows, sequence;
  int32_t *tokens, *targets;
};

/// Which of the equal pieces of the global batch a rank gets: of its rows, and
/// of the sequence of each. Ranks with equal coordinates get the same.
struct DataShard {
  Coordinate rows, columns;

  /// Different pieces.
  int64_t count() const { return rows.count * columns.count; }
};

class ByteDataset {
public:
  /// Maps the file. `fraction` of its bytes, rounded, are held out. Throws
  /// fsdp::Error if the file is missing, is no regular file, or has no room for
  /// one training window of `sequence` bytes and the byte after it.
  ByteDataset(const std::string &path, double fraction, int64_t sequence);

  std::string_view text() const { return {data.get(), size}; }
  std::string_view trainText() const { return text().substr(0, trainSize); }
  std::string_view heldOutText() const { return text().substr(trainSize); }

  /// Fills `batch` with a shard of windows of the training text at uniform
  /// offsets that depend on seed, step and row of the global batch alone.
  void sampleTraining(uint64_t seed, int64_t step, const DataShard &shard,
                      const Batch &batch) const;

  /// Number of evaluation rounds after which every held-out byte but the
  /// first was predicted exactly once.
  int64_t heldOutRounds(const DataShard &shard, const Batch &batch) const;

  /// Fills `batch` with a shard of the windows of round `round`; places without
  /// a byte to predict are ignored targets. Returns its number of predictions.
  int64_t fillHeldOut(int64_t round, const DataShard &shard,
                      const Batch &batch) const;

  /// The predictions of all shards in round `round`, each counted once.
  int64_t heldOutPredictions(int64_t round, const DataShard &shard,
                             const Batch &batch) const;

private:
  size_t size = 0, trainSize = 0;
  std::shared_ptr<const char> data; // unmaps itself
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DATASET_H
