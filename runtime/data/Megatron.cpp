//===- Megatron.cpp - .idx and .bin of Megatron-LM ------------------------===//
//
// The index of an IndexedDataset (megatron/core/datasets/indexed_dataset.py):
// 9 bytes of magic, u64 version 1, u8 type, u64 sequences, u64 documents + 1,
// then i32 lengths, i64 byte offsets, i64 first sequences of documents with the
// number of sequences as the last, and, in some files, an i8 mode a sequence.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Data/TokenDataset.h"
#include "fsdp/Support/Checksum.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cstring>

using namespace fsdp;
using namespace fsdp::rt;

namespace {

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr int64_t kHeaderBytes = 34;
constexpr int64_t kMostSequences = int64_t{1} << 40;

/// What the types of Megatron are called, from 1 on.
constexpr const char *kTypes[] = {"",    "u8",  "i8",  "i16", "i32",
                                  "i64", "f64", "f32", "u16"};
constexpr uint8_t kI32 = 4, kU16 = 8;

class MegatronIndex final : public DocumentStarts {
public:
  explicit MegatronIndex(const std::string &path);

  int64_t tokens() const { return numTokens; }
  int64_t width() const { return idBytes; }
  uint64_t checksum() const { return file.sampledChecksum(); }
  int64_t count() const override { return documents; }
  int64_t at(int64_t document) const override;

private:
  [[noreturn]] void fail(const std::string &why) const;
  void readHeader();
  void checkSequences();
  void checkDocuments();
  template <typename T> T read(int64_t first) const {
    T value;
    file.read(first, sizeof value, &value);
    return value;
  }
  int64_t offsetsAt() const { return kHeaderBytes + 4 * sequences; }
  int64_t documentsAt() const { return offsetsAt() + 8 * sequences; }

  DataFile file;
  std::string path;
  int64_t sequences = 0, documents = 0, idBytes = 0, numTokens = 0;
};

} // namespace

MegatronIndex::MegatronIndex(const std::string &path)
    : file(path, "the index"), path(path) {
  readHeader();
  checkSequences();
  checkDocuments();
}

void MegatronIndex::fail(const std::string &why) const {
  throw Error("the index '" + path + "' " + why +
              "; build it anew with Megatron's tools/preprocess_data.py");
}

void MegatronIndex::readHeader() {
  if (file.size() < kHeaderBytes || file.read(0, 9) != kMagic)
    throw Error("'" + path + "' is no index of Megatron-LM: it does not begin "
                             "with MMIDIDX");
  if (auto version = read<uint64_t>(9); version != 1)
    fail("is of version " + std::to_string(version) +
         ", and this program reads version 1");
  auto type = read<uint8_t>(17);
  if (type != kI32 && type != kU16)
    fail("says that ids are of type " + std::to_string(type) +
         (type > 0 && type < std::size(kTypes)
              ? std::string(" (") + kTypes[type] + ")"
              : "") +
         ", and this program reads u16 and i32");
  idBytes = type == kI32 ? 4 : 2;
  auto numSequences = read<uint64_t>(18), numDocuments = read<uint64_t>(26);
  if (numSequences == 0 || numSequences > kMostSequences || numDocuments < 2 ||
      numDocuments - 1 > numSequences)
    fail("says that it has " + std::to_string(numSequences) +
         " sequences and an array of " + std::to_string(numDocuments) +
         " for its documents");
  sequences = static_cast<int64_t>(numSequences);
  documents = static_cast<int64_t>(numDocuments) - 1;
  int64_t end = documentsAt() + 8 * (documents + 1);
  if (file.size() != end && file.size() != end + sequences)
    fail("has " + std::to_string(file.size()) + " bytes, and its " +
         std::to_string(sequences) + " sequences take " + std::to_string(end));
}

/// Sequences follow one another, as Megatron writes them.
void MegatronIndex::checkSequences() {
  constexpr int64_t kBlock = 1 << 16;
  std::vector<int32_t> lengths(kBlock);
  std::vector<int64_t> offsets(kBlock);
  for (int64_t begin = 0; begin < sequences; begin += kBlock) {
    int64_t count = std::min(kBlock, sequences - begin);
    file.read(kHeaderBytes + 4 * begin, 4 * count, lengths.data());
    file.read(offsetsAt() + 8 * begin, 8 * count, offsets.data());
    for (int64_t i = 0; i < count; ++i) {
      auto at = static_cast<size_t>(i);
      if (lengths[at] < 0)
        fail("gives sequence " + std::to_string(begin + i) + " a length of " +
             std::to_string(lengths[at]));
      if (offsets[at] != numTokens * idBytes)
        fail("has sequence " + std::to_string(begin + i) + " at byte " +
             std::to_string(offsets[at]) + ", but those before it end at " +
             std::to_string(numTokens * idBytes));
      numTokens += lengths[at];
    }
  }
  if (numTokens == 0)
    fail("has no tokens");
}

void MegatronIndex::checkDocuments() {
  constexpr int64_t kBlock = 1 << 16;
  std::vector<int64_t> firsts(kBlock);
  int64_t before = 0;
  for (int64_t begin = 0; begin <= documents; begin += kBlock) {
    int64_t count = std::min(kBlock, documents + 1 - begin);
    file.read(documentsAt() + 8 * begin, 8 * count, firsts.data());
    for (int64_t i = 0; i < count; ++i) {
      int64_t first = firsts[static_cast<size_t>(i)];
      bool isFirst = begin + i == 0, isLast = begin + i == documents;
      if (first < before || first > sequences || (isFirst && first != 0) ||
          (isLast && first != sequences))
        fail("has document " + std::to_string(begin + i) + " at sequence " +
             std::to_string(first) + " of " + std::to_string(sequences));
      before = first;
    }
  }
}

int64_t MegatronIndex::at(int64_t document) const {
  auto sequence = read<int64_t>(documentsAt() + 8 * document);
  if (sequence < 0 || sequence > sequences)
    fail("was changed while it was in use");
  return sequence == sequences
             ? numTokens
             : read<int64_t>(offsetsAt() + 8 * sequence) / idBytes;
}

/// The path without the ending of either file.
static std::string prefixOf(const std::string &path) {
  for (const char *end : {".idx", ".bin"})
    if (endsWith(path, end))
      return path.substr(0, path.size() - 4);
  return path;
}

TokenSource fsdp::rt::openMegatron(const std::string &path) {
  std::string prefix = prefixOf(path);
  TokenSource source;
  source.name = "Megatron's '" + prefix + "'";
  auto index = std::make_unique<MegatronIndex>(prefix + ".idx");
  TokenShard shard;
  shard.ids = std::make_unique<DataFile>(prefix + ".bin", "the ids");
  shard.width = index->width();
  shard.tokens = shard.labels = index->tokens();
  if (shard.ids->size() != shard.tokens * shard.width)
    throw Error("'" + prefix + ".bin' has " +
                std::to_string(shard.ids->size()) + " bytes, and '" + prefix +
                ".idx' tells of " + std::to_string(shard.tokens) +
                " tokens of " + std::to_string(shard.width) +
                " bytes; are they of one pair?");
  uint64_t sums[] = {index->checksum(), shard.ids->sampledChecksum()};
  source.digest =
      checksumOf({reinterpret_cast<const char *>(sums), sizeof sums});
  source.shards.push_back(std::move(shard));
  source.documents = std::move(index);
  return source;
}
