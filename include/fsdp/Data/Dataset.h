//===- Dataset.h - Tokens to train on ---------------------------*- C++ -*-===//
//
// Tokens follow one another: the bytes of a text, or token ids that a tokenizer
// made. Their end is held out: never sampled in training, and evaluated in
// full.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DATA_DATASET_H
#define FSDP_DATA_DATASET_H

#include "fsdp/Artifact/Mesh.h"
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace fsdp::rt {

/// Marks a target that does not count towards the loss.
inline constexpr int32_t kIgnoredTarget = -100;

/// Where a rank's piece of a batch goes: row-major [rows, sequence].
struct Batch {
  int64_t rows, sequence;
  int32_t *tokens, *targets;
  /// Where in its row the document of each token begins, row-major [rows,
  /// sequence of the whole row]; null: documents see each other.
  int32_t *starts = nullptr;
};

/// Which of the equal pieces of the global batch a rank gets: of its rows, and
/// of the sequence of each. Ranks with equal coordinates get the same.
struct DataShard {
  Coordinate rows, columns;

  /// Different pieces.
  int64_t count() const { return rows.count * columns.count; }
};

/// A file that stays open and is read piece by piece. It is not mapped: a
/// mapped file that another process makes shorter ends the reader by a signal.
class DataFile {
public:
  /// Throws fsdp::Error if the file is missing or no regular one; `what` says
  /// in messages what it is: "the text".
  DataFile(const std::string &path, const std::string &what);
  ~DataFile();
  DataFile(const DataFile &) = delete;
  DataFile &operator=(const DataFile &) = delete;

  /// Bytes that it had when it was opened.
  int64_t size() const { return bytes; }
  /// Reads `count` bytes from byte `first` on. Throws fsdp::Error if they are
  /// no longer there.
  void read(int64_t first, int64_t count, void *to) const;
  std::string read(int64_t first, int64_t count) const;
  /// Gets bytes from byte `first` on, aligned for every number.
  using TakePiece = std::function<void(std::string_view piece, int64_t first)>;
  /// Hands `count` bytes from byte `first` on to `take`, in order: 1 MiB at a
  /// time, then the rest.
  void readPieces(int64_t first, int64_t count, const TakePiece &take) const;
  /// checksumOf all of it.
  uint64_t checksum() const;
  /// checksumOf its size and 64 pages of 4 KiB of it, the first and the last
  /// among them: what tells files of many gigabytes apart in a moment.
  uint64_t sampledChecksum() const;

private:
  std::string path, what;
  int descriptor = -1;
  int64_t bytes = 0;
};

/// By what a checkpoint knows the tokens of its run again.
struct DataIdentity {
  int64_t bytes = 0, trainBytes = 0;
  uint64_t checksum = 0;
  /// Of a mask in a file of its own; unset: there is none.
  std::optional<uint64_t> maskChecksum;
};

/// Which windows of the training tokens a step sees. Both depend on the seed,
/// the step and the row of the global batch alone.
enum class WindowOrder {
  Random,  // at offsets that are drawn, each for itself
  Shuffled // every window once, in another order in each epoch
};

class Dataset {
public:
  virtual ~Dataset() = default;

  /// Tokens that are trained on, and those after them.
  int64_t trainTokens() const { return numTrain; }
  int64_t heldOutTokens() const { return numTokens - numTrain; }
  virtual DataIdentity identity() const = 0;
  /// Whether it says where documents begin.
  virtual bool hasDocuments() const { return false; }
  /// How many of the tokens [begin, end) are labels.
  virtual int64_t countLabels(int64_t begin, int64_t end) const = 0;

  void setOrder(WindowOrder newOrder) { order = newOrder; }
  /// Fills `batch` with a shard of the windows that step `step` sees, from 0
  /// on.
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

  /// Sets `tokens` to `count` tokens from `first` on, and `targets` to those
  /// one after each, or kIgnoredTarget where these are no labels.
  virtual void readWindow(int64_t first, int64_t count, int32_t *tokens,
                          int32_t *targets) const = 0;
  /// Where the documents of `count` tokens from `first` on begin, in tokens
  /// after `first`; 0 where that is before.
  virtual void readStarts(int64_t first, int64_t count, int32_t *starts) const;

protected:
  /// Whose window a row of a training is, and how many rows before it were
  /// windows of the same dataset.
  struct RowSource {
    const Dataset *data;
    int64_t number;
  };
  /// `row` counts the rows of all global batches.
  virtual RowSource sourceOfRow(int64_t row) const { return {this, row}; }

  /// `fraction` of the tokens, rounded, are held out.
  void split(int64_t tokens, double fraction);
  /// The first `train` of the tokens are trained on.
  void splitAt(int64_t tokens, int64_t train);

private:
  int64_t drawnWindow(uint64_t seed, int64_t step, int64_t row,
                      int64_t sequence) const;
  int64_t shuffledWindow(uint64_t seed, int64_t number, int64_t sequence) const;
  void startHeldOutRow(int64_t window, int64_t sequence,
                       int32_t *starts) const;

  int64_t numTokens = 0, numTrain = 0;
  WindowOrder order = WindowOrder::Random;
};

/// Every byte of a text file is a token and a label.
class ByteDataset final : public Dataset {
public:
  /// Throws fsdp::Error if the file is missing, is no regular file, or has no
  /// room for one training window of `sequence` bytes and the byte after it.
  ByteDataset(const std::string &path, double fraction, int64_t sequence);

  /// What is trained on, and what is held out: the first bytes of it, at most
  /// `most`.
  std::string trainText(int64_t most) const;
  std::string heldOutText(int64_t most) const;

  DataIdentity identity() const override;
  int64_t countLabels(int64_t begin, int64_t end) const override {
    return end - begin;
  }
  void readWindow(int64_t first, int64_t count, int32_t *tokens,
                  int32_t *targets) const override;

private:
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
  /// than 0 and 1 or another size, if the file is one of text or of a
  /// well-known format, or of wider ids, and as ByteDataset.
  IdsDataset(const IdsFile &source, double fraction, int64_t sequence,
             int64_t vocabulary);

  DataIdentity identity() const override;
  int64_t countLabels(int64_t begin, int64_t end) const override;
  void readWindow(int64_t first, int64_t count, int32_t *tokens,
                  int32_t *targets) const override;

private:
  void checkMask(const IdsFile &source, int64_t count) const;

  DataFile ids;
  std::unique_ptr<DataFile> mask; // null: all are labels
  int64_t width;                  // bytes of an id
};

} // namespace fsdp::rt

#endif // FSDP_DATA_DATASET_H
