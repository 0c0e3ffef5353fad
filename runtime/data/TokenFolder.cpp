//===- TokenFolder.cpp - A folder of tools/fsdp-tokenize ------------------===//
#include "fsdp/Data/TokenDataset.h"
#include "fsdp/Support/Checksum.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"
#include <algorithm>
#include <cstring>
#include <filesystem>

using namespace fsdp;
using namespace fsdp::rt;

static const char *const kDescription = "tokens.json";
static constexpr int64_t kMostDescriptionBytes = int64_t{64} << 20;
static constexpr int64_t kMostTokens = int64_t{1} << 48;

namespace {

/// u64 numbers in a file.
class StartsFile final : public DocumentStarts {
public:
  explicit StartsFile(std::unique_ptr<DataFile> from) : file(std::move(from)) {}

  int64_t count() const override { return file->size() / 8; }
  int64_t at(int64_t document) const override {
    uint64_t start;
    file->read(document * 8, 8, &start);
    return bounded(start);
  }
  void read(int64_t first, int64_t count, int64_t *starts) const override {
    file->read(first * 8, count * 8, starts);
    for (int64_t i = 0; i < count; ++i)
      starts[i] = bounded(static_cast<uint64_t>(starts[i]));
  }

private:
  static int64_t bounded(uint64_t start) {
    return static_cast<int64_t>(std::min<uint64_t>(start, kMostTokens));
  }

  std::unique_ptr<DataFile> file;
};

class FolderReader {
public:
  explicit FolderReader(const std::string &path)
      : path(path), name("the token folder '" + path + "'") {}

  TokenSource read();

private:
  std::unique_ptr<DataFile> open(const JsonField &file, int64_t bytes) const;
  TokenShard readShard(const JsonField &field, int64_t width) const;

  std::string path, name;
};

} // namespace

/// A file of the folder that has as many bytes as its description says and as
/// its contents take.
std::unique_ptr<DataFile> FolderReader::open(const JsonField &file,
                                             int64_t bytes) const {
  JsonField field = file.at("file");
  std::string plain = field.string();
  if (plain.empty() || std::filesystem::path(plain).filename() != plain)
    field.fail("expected the name of a file in this folder");
  if (file.at("bytes").integer() != bytes)
    file.at("bytes").fail("expected " + std::to_string(bytes) +
                          ", what the contents take");
  auto opened = std::make_unique<DataFile>(path + "/" + plain, "the tokens");
  if (opened->size() != bytes)
    throw Error(name + " was changed: '" + plain + "' has " +
                std::to_string(opened->size()) + " bytes, and " + kDescription +
                " says " + std::to_string(bytes) +
                "; write the folder anew with tools/fsdp-tokenize");
  return opened;
}

TokenShard FolderReader::readShard(const JsonField &field,
                                   int64_t width) const {
  TokenShard shard;
  shard.width = width;
  shard.tokens = field.at("tokens").integer(1);
  if (shard.tokens > kMostTokens)
    field.at("tokens").fail("more tokens than a file has");
  shard.ids = open(field, shard.tokens * width);
  shard.labels = shard.tokens;
  if (std::optional<JsonField> mask = field.find("mask")) {
    shard.mask = open(*mask, shard.tokens);
    shard.labels = mask->at("labels").integer();
    if (shard.labels > shard.tokens)
      mask->at("labels").fail("more labels than tokens");
  }
  return shard;
}

TokenSource FolderReader::read() {
  std::string file = path + "/" + kDescription;
  DataFile description(file, "the description of a token folder");
  if (description.size() > kMostDescriptionBytes)
    throw Error("'" + file + "' is too large to be what tools/fsdp-tokenize "
                             "writes");
  std::string text = description.read(0, description.size());
  nlohmann::json json = parseJson(text, file);
  JsonField root(json, file);
  if (root.at("format").string() != "fsdp tokens")
    root.at("format").fail("expected \"fsdp tokens\"");
  if (root.at("version").integer() != 1)
    root.at("version").fail("this program reads version 1");
  JsonField dtype = root.at("dtype");
  if (dtype.string() != "u16" && dtype.string() != "u32")
    dtype.fail("expected u16 or u32");
  int64_t width = dtype.string() == "u16" ? 2 : 4;

  TokenSource source;
  source.name = name;
  source.digest = checksumOf(text);
  int64_t tokens = 0;
  for (const JsonField &shard : root.at("shards").items()) {
    source.shards.push_back(readShard(shard, width));
    tokens += source.shards.back().tokens;
    if (tokens > kMostTokens)
      shard.fail("more tokens than a file has");
  }
  if (source.shards.empty())
    root.at("shards").fail("there are none");
  if (root.at("tokens").integer() != tokens)
    root.at("tokens").fail("the shards have " + std::to_string(tokens));
  int64_t documents = root.at("documents").integer(1);
  if (documents > tokens)
    root.at("documents").fail("more documents than tokens");
  source.documents = std::make_unique<StartsFile>(
      open(root.at("document_starts"), documents * 8));
  if (source.documents->at(0) != 0)
    throw Error(name + " was changed: its first document begins at token " +
                std::to_string(source.documents->at(0)) +
                "; write the folder anew with tools/fsdp-tokenize");
  if (int64_t last = source.documents->at(documents - 1); last >= tokens)
    throw Error(name + " was changed: its last document begins at token " +
                std::to_string(last) + " of " + std::to_string(tokens) +
                "; write the folder anew with tools/fsdp-tokenize");
  source.largestId = root.at("largest_id").integer();
  if (std::optional<JsonField> tokenizer = root.find("tokenizer"))
    source.tokenizer = tokenizer->at("xxh3").string();
  if (std::optional<JsonField> table = root.find("table")) {
    open(*table, table->at("bytes").integer());
    source.tablePath = path + "/" + table->at("file").string();
  }
  return source;
}

TokenSource fsdp::rt::openTokenFolder(const std::string &path) {
  return FolderReader(path).read();
}

//===----------------------------------------------------------------------===//
// TokenTable
//===----------------------------------------------------------------------===//

/// The file: u64 tokens, then u64 for each and one more, where its bytes begin
/// behind these numbers, then the bytes.
TokenTable::TokenTable(const std::string &path) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  DataFile file(path, "the table of tokens");
  auto fail = [&](const std::string &why) {
    throw Error("the table of tokens '" + path + "' " + why +
                "; write its folder anew with tools/fsdp-tokenize");
  };
  if (file.size() < 16 || file.size() > kMostBytes)
    fail("has " + std::to_string(file.size()) + " bytes");
  uint64_t count = 0;
  file.read(0, 8, &count);
  if (count > static_cast<uint64_t>(file.size()) / 8 - 2)
    fail("is too short for its " + std::to_string(count) + " tokens");
  numTokens = static_cast<int64_t>(count);
  bytes = file.read(8, file.size() - 8);
  uint64_t before = 0, most = bytes.size() - (count + 1) * 8;
  for (uint64_t i = 0; i <= count; ++i) {
    uint64_t start;
    std::memcpy(&start, bytes.data() + i * 8, 8);
    if (start < before || start > most || (i == 0 && start != 0))
      fail("has no place for token " + std::to_string(i));
    before = start;
  }
}

std::string TokenTable::decode(const std::vector<int32_t> &ids) const {
  std::string text;
  for (int32_t id : ids) {
    if (id < 0 || id >= numTokens)
      continue;
    uint64_t places[2];
    std::memcpy(places, bytes.data() + int64_t{id} * 8, sizeof places);
    text.append(bytes, static_cast<size_t>((numTokens + 1) * 8) + places[0],
                places[1] - places[0]);
  }
  return text;
}
