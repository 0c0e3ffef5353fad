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
#include <vector>

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
  Random,    // at offsets that are drawn, each for itself
  Shuffled,  // every window once, in another order in each epoch
  Documents, // so, of documents that come in another order in each epoch
};

class TokenStream;

/// What is trained on: one stream of tokens, or several.
class Dataset {
public:
  virtual ~Dataset() = default;

  virtual DataIdentity identity() const = 0;
  /// Whether it says where documents begin.
  virtual bool hasDocuments() const { return false; }
  virtual std::vector<const TokenStream *> streams() const = 0;
  /// Tokens that are trained on, and that are held out, of all streams.
  virtual int64_t trainTokens() const = 0;
  virtual int64_t heldOutTokens() const = 0;
  /// Whether a stream holds out two tokens, of which one is predicted.
  bool hasHeldOut() const;

  void setOrder(WindowOrder newOrder) { order = newOrder; }
  /// Fills `batch` with a shard of the rows that step `step` sees, from 0 on.
  void sampleTraining(uint64_t seed, int64_t step, const DataShard &shard,
                      const Batch &batch) const;

protected:
  /// Whose window a row of a training is, and how many rows before it were
  /// windows of the same stream.
  struct RowSource {
    const TokenStream *stream;
    int64_t number;
  };
  /// `row` counts the rows of all global batches.
  virtual RowSource sourceOfRow(int64_t row) const = 0;

private:
  WindowOrder order = WindowOrder::Random;
};

/// Where a piece of a row goes: places [begin, begin + count) of `sequence`.
struct RowPiece {
  int64_t sequence, begin, count;
  int32_t *tokens, *targets;
  /// Of the whole row; null: not asked for.
  int32_t *starts;
};

/// A row of a training.
struct TrainingRow {
  WindowOrder order;
  uint64_t seed;
  int64_t step, inStep; // among the rows of its global batch
  int64_t number;       // among those of its stream, from the first step on
};

/// Tokens that follow one another, of which the end is held out.
class TokenStream : public Dataset {
public:
  std::vector<const TokenStream *> streams() const final { return {this}; }
  int64_t trainTokens() const final { return numTrain; }
  int64_t heldOutTokens() const final { return numTokens - numTrain; }
  /// How many of the tokens [begin, end) are labels.
  virtual int64_t countLabels(int64_t begin, int64_t end) const = 0;
  /// How many of those held out are labels that can be predicted.
  int64_t heldOutLabels() const;

  virtual void readTrainingRow(const TrainingRow &row,
                               const RowPiece &piece) const;

  /// Number of evaluation rounds after which every held-out token but the
  /// first was predicted exactly once.
  int64_t heldOutRounds(const DataShard &shard, const Batch &batch) const;

  /// Fills `batch` with a shard of the rows of round `round`; places without a
  /// label to predict are ignored targets. Returns its number of predictions.
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
  RowSource sourceOfRow(int64_t row) const final { return {this, row}; }
  /// Rows in which every held-out label comes once.
  virtual int64_t heldOutRows(int64_t sequence) const;
  /// Labels to predict in held-out rows [first, end).
  virtual int64_t labelsOfHeldOutRows(int64_t first, int64_t end,
                                      int64_t sequence) const;
  /// Of a row there is.
  virtual void readHeldOutRow(int64_t number, const RowPiece &piece) const;

  /// Where the window of a row begins, and of which epoch it is.
  struct ShuffledWindow {
    int64_t first, epoch;
  };
  ShuffledWindow shuffledWindow(const TrainingRow &row, int64_t sequence) const;

  /// `fraction` of the tokens, rounded, are held out.
  void split(int64_t tokens, double fraction);
  /// The first `train` of the tokens are trained on.
  void splitAt(int64_t tokens, int64_t train);

private:
  int64_t drawnWindow(const TrainingRow &row, int64_t sequence) const;

  int64_t numTokens = 0, numTrain = 0;
};

/// Which of `count` rows comes as number `number` of all epochs, each of which
/// has every row once, and of which epoch that is.
struct ShuffledRow {
  int64_t row, epoch;
};
ShuffledRow shuffledRow(uint64_t seed, int64_t number, int64_t count);

/// Makes the places of a piece from place `begin` of its row on padding.
void padRow(const RowPiece &piece, int64_t begin);

/// Every byte of a text file is a token and a label.
class ByteDataset final : public TokenStream {
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
class IdsDataset final : public TokenStream {
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
