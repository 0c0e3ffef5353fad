//===- Dataset.h - Tokens to train on ---------------------------*- C++ -*-===//
//
// Tokens lie one behind the other in a file: the bytes of a text, or token ids
// that a tokenizer made. Their end is held out: never sampled in training, and
// evaluated in full.
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

class Dataset {
public:
  virtual ~Dataset() = default;

  /// Tokens that are trained on, and those behind them.
  int64_t trainTokens() const { return numTrain; }
  int64_t heldOutTokens() const { return numTokens - numTrain; }
  /// The bytes of the file, of which a checkpoint keeps the checksum.
  virtual std::string_view fileBytes() const = 0;
  /// The bytes of fileBytes() that are trained on.
  virtual int64_t trainBytes() const = 0;
  /// How many of the tokens [begin, end) are labels.
  virtual int64_t countLabels(int64_t begin, int64_t end) const = 0;

  /// Fills `batch` with a shard of windows of the training tokens at uniform
  /// offsets that depend on seed, step and row of the global batch alone.
  void sampleTraining(uint64_t seed, int64_t step, const DataShard &shard,
                      const Batch &batch) const;

  /// Number of evaluation rounds after which every held-out token but the
  /// first was predicted exactly once.
  int64_t heldOutRounds(const DataShard &shard, const Batch &batch) const;

  /// Fills `batch` with a shard of the windows of round `round`; places without
  /// a label to predict are ignored targets. Returns its number of predictions.
  int64_t fillHeldOut(int64_t round, const DataShard &shard,
                      const Batch &batch) const;

  /// The predictions of all shards in round `round`, each counted once.
  int64_t heldOutPredictions(int64_t round, const DataShard &shard,
                             const Batch &batch) const;

protected:
  /// `fraction` of the tokens, rounded, are held out.
  void split(int64_t tokens, double fraction);

  /// Sets `tokens` to `count` tokens from `first` on, and `targets` to those
  /// one behind each, or kIgnoredTarget where these are no labels.
  virtual void readWindow(int64_t first, int64_t count, int32_t *tokens,
                          int32_t *targets) const = 0;

private:
  int64_t numTokens = 0, numTrain = 0;
};

/// A mapped file; its end unmaps it.
struct DataFile {
  /// Throws fsdp::Error if the file is missing or no regular one; `what` says
  /// in messages what it is: "the text".
  DataFile(const std::string &path, const std::string &what);

  std::string_view bytes() const { return {data.get(), size}; }

private:
  size_t size = 0;
  std::shared_ptr<const char> data;
};

/// Every byte of a text file is a token and a label.
class ByteDataset final : public Dataset {
public:
  /// Throws fsdp::Error if the file is missing, is no regular file, or has no
  /// room for one training window of `sequence` bytes and the byte after it.
  ByteDataset(const std::string &path, double fraction, int64_t sequence);

  std::string_view text() const { return file.bytes(); }
  std::string_view trainText() const { return text().substr(0, trainSize()); }
  std::string_view heldOutText() const { return text().substr(trainSize()); }

  std::string_view fileBytes() const override { return text(); }
  int64_t trainBytes() const override { return trainTokens(); }
  int64_t countLabels(int64_t begin, int64_t end) const override {
    return end - begin;
  }

protected:
  void readWindow(int64_t first, int64_t count, int32_t *tokens,
                  int32_t *targets) const override;

private:
  size_t trainSize() const { return static_cast<size_t>(trainTokens()); }

  DataFile file;
};

/// A file of token ids and nothing else, in the byte order of the machine.
struct IdsFile {
  std::string path;
  std::string type; // "u16", "u32" or "i32"
  /// A file with a byte per id: 1 where the id is a label, 0 where it is only
  /// read; empty: all are labels.
  std::string maskPath;
};

/// Token ids of a vocabulary.
class IdsDataset final : public Dataset {
public:
  /// Throws fsdp::Error, with file and position, if an id is not in the
  /// vocabulary of `vocabulary` ids (0: any is), if the mask has another number
  /// than 0 and 1 or another size, and as ByteDataset.
  IdsDataset(const IdsFile &source, double fraction, int64_t sequence,
             int64_t vocabulary);

  std::string_view fileBytes() const override { return ids.bytes(); }
  int64_t trainBytes() const override { return trainTokens() * width; }
  int64_t countLabels(int64_t begin, int64_t end) const override;
  /// The bytes of the mask; empty: there is none.
  std::string_view maskBytes() const;

protected:
  void readWindow(int64_t first, int64_t count, int32_t *tokens,
                  int32_t *targets) const override;

private:
  void checkMask(const IdsFile &source, int64_t count) const;

  DataFile ids;
  std::unique_ptr<DataFile> mask; // null: all are labels
  int64_t width;                  // bytes of an id
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DATASET_H
