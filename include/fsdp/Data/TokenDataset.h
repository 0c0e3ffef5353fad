//===- TokenDataset.h - Token ids with documents ----------------*- C++ -*-===//
//
// Files of token ids whose format says what they are: a token folder that
// tools/fsdp-tokenize has written (docs/data.md describes it), Megatron's .idx
// and .bin, files of llm.c. They are opened by their sizes and headers; ids are
// compared with the vocabulary as they are read.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DATA_TOKENDATASET_H
#define FSDP_DATA_TOKENDATASET_H

#include "fsdp/Data/Dataset.h"
#include <optional>
#include <vector>

namespace fsdp::rt {

/// Ids of one file, one after another, as little-endian numbers.
struct TokenShard {
  std::unique_ptr<DataFile> ids;
  int64_t start = 0; // byte of the first id
  int64_t width = 2; // bytes of an id: 2, without a sign, or 4
  int64_t tokens = 0;
  /// A byte per id: 0 where it is no label; null: all are labels.
  std::unique_ptr<DataFile> mask;
  int64_t labels = 0;
};

/// Where documents begin, in tokens from the first shard on: 0, then larger
/// ones.
class DocumentStarts {
public:
  virtual ~DocumentStarts() = default;
  virtual int64_t count() const = 0;
  /// Throws fsdp::Error if the file has changed meanwhile.
  virtual int64_t at(int64_t document) const = 0;
  /// The first document that begins at `token` or after it; their number if
  /// none does.
  int64_t firstFrom(int64_t token) const;
  /// The same as at() of `count` documents from `first` on.
  virtual void read(int64_t first, int64_t count, int64_t *starts) const {
    for (int64_t i = 0; i < count; ++i)
      starts[i] = at(first + i);
  }
};

/// What a format's reader finds.
struct TokenSource {
  std::string name; // "the token folder 'tokens'"
  std::vector<TokenShard> shards;
  /// Null: the format does not say.
  std::unique_ptr<DocumentStarts> documents;
  /// Of all ids, where a description says so.
  std::optional<int64_t> largestId;
  /// By what a checkpoint knows the source again.
  uint64_t digest = 0;
  /// Path of the file with the bytes of each id; empty: there is none.
  std::string tablePath;
  /// Checksum of the tokenizer; empty: the source does not say.
  std::string tokenizer;
};

/// A folder of tools/fsdp-tokenize, described by its tokens.json. All throw
/// fsdp::Error that names the file, the place and the remedy.
TokenSource openTokenFolder(const std::string &path);
/// PREFIX.idx and PREFIX.bin of Megatron-LM (its IndexedDataset, version 1) of
/// u16 or i32; the path may be either file or the prefix.
TokenSource openMegatron(const std::string &path);
/// Files of llm.c, u16 of version 1 (GPT-2) or u32 of version 7 (Llama 3), that
/// a pattern of the shell matches, in the order of their names.
TokenSource openLlmc(const std::string &pattern);

/// The bytes of each id of a vocabulary.
class TokenTable {
public:
  /// Throws fsdp::Error.
  explicit TokenTable(const std::string &path);

  int64_t size() const { return numTokens; }
  /// Of ids that are in the table; others have no bytes.
  std::string decode(const std::vector<int32_t> &ids) const;

private:
  std::string bytes;
  int64_t numTokens = 0;
};

/// How rows are made of documents.
enum class Packing {
  Wrapped, // windows of the tokens, whatever the documents
  Padded,  // a row has one document, or a piece of one
  BestFit, // a row has as many whole documents as fit
};

class PackedRows;
class ShuffledDocuments;

/// Token ids of a source. The held-out tokens begin with a document where the
/// source says where documents begin, and none is too long for that.
class TokenDataset final : public TokenStream {
public:
  /// Throws fsdp::Error if there are no tokens for a row, if the source is
  /// known to have an id that the vocabulary (of `vocabulary` ids; 0: any) has
  /// not, or if it does not say where the documents are that are to be packed.
  TokenDataset(TokenSource source, double fraction, int64_t sequence,
               int64_t vocabulary, Packing packing = Packing::Wrapped);
  TokenDataset(TokenDataset &&) noexcept;
  ~TokenDataset() override;

  const std::string &name() const { return source.name; }
  /// 0: the source does not say.
  int64_t documents() const;
  /// Whether only the end of a document is held out.
  bool splitsDocument() const;
  /// From here on the first token of a document is no label: nothing of its
  /// document is before it. The source says where documents begin. Throws
  /// fsdp::Error if nothing is left to learn.
  void separateDocuments();
  const std::string &tablePath() const { return source.tablePath; }
  const std::string &tokenizer() const { return source.tokenizer; }
  /// What packing makes of the tokens to train on.
  struct PackedShape {
    int64_t rows, padding; // places without a document, of all rows
  };
  /// Unset: windows are not packed.
  std::optional<PackedShape> packedShape() const;
  /// Throws fsdp::Error if the source's documents are in no order; reads where
  /// all of them begin.
  void checkDocuments() const;
  /// The first ids that are held out, or of those trained on if none are.
  std::vector<int32_t> firstIds(int64_t most) const;

  DataIdentity identity() const override;
  bool hasDocuments() const override { return source.documents != nullptr; }
  int64_t countLabels(int64_t begin, int64_t end) const override;
  void readWindow(int64_t first, int64_t count, int32_t *tokens,
                  int32_t *targets) const override;
  void readStarts(int64_t first, int64_t count,
                  int32_t *starts) const override;
  void readTrainingRow(const TrainingRow &row,
                       const RowPiece &piece) const override;

protected:
  int64_t heldOutRows(int64_t sequence) const override;
  int64_t labelsOfHeldOutRows(int64_t first, int64_t end,
                              int64_t sequence) const override;
  void readHeldOutRow(int64_t number, const RowPiece &piece) const override;

private:
  void checkRoom(int64_t sequence) const;
  void pack(int64_t sequence, Packing packing);
  void readPacked(const PackedRows &rows, int64_t number,
                  const RowPiece &piece) const;
  void readJoined(const TrainingRow &row, const RowPiece &piece) const;
  int64_t labelsThatBegin(int64_t begin, int64_t end) const;
  bool isLabel(int64_t token) const;
  /// Calls `act` with each shard of which some of the tokens [begin, end) are,
  /// the first of these within it, and how many.
  template <typename F>
  void forShards(int64_t begin, int64_t end, F &&act) const;
  void readIds(int64_t first, int64_t count, int32_t *ids) const;
  void maskTargets(int64_t first, int64_t count, int32_t *targets) const;
  int64_t firstHeldOut(int64_t tokens, double fraction) const;

  TokenSource source;
  std::vector<int64_t> ends; // of the shards, in tokens from the first one on
  int64_t vocabulary;
  bool isMasked = false, areSeparate = false;
  /// Null: windows are not packed.
  std::unique_ptr<PackedRows> trainRows, heldOutPacked;
  /// The order of the documents in an epoch, made where it is asked for.
  struct EpochOrder;
  mutable std::unique_ptr<EpochOrder> epochOrder;
};

} // namespace fsdp::rt

#endif // FSDP_DATA_TOKENDATASET_H
