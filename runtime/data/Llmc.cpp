//===- Llmc.cpp - Token files of llm.c ------------------------------------===//
//
// 256 i32: magic, version, tokens, nothing else; then the tokens. Magic
// 20240520 of version 1 has u16, 20240801 of version 7 u32.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Data/TokenDataset.h"
#include "fsdp/Support/Checksum.h"
#include "fsdp/Support/Error.h"
#include <cstring>
#include <glob.h>

using namespace fsdp;
using namespace fsdp::rt;

static TokenShard openFile(const std::string &path) {
  constexpr int64_t kHeaderBytes = 1024;
  constexpr int32_t kGpt2 = 20240520, kLlama3 = 20240801;
  TokenShard shard;
  shard.ids = std::make_unique<DataFile>(path, "the ids");
  auto fail = [&](const std::string &why) {
    throw Error("'" + path + "' is no file of tokens of llm.c: " + why);
  };
  if (shard.ids->size() < kHeaderBytes)
    fail("it has " + std::to_string(shard.ids->size()) +
         " bytes, and the header takes 1024");
  int32_t header[3];
  shard.ids->read(0, sizeof header, header);
  if (header[0] != kGpt2 && header[0] != kLlama3)
    fail("its first number is " + std::to_string(header[0]) +
         ", not 20240520 or 20240801; bare ids are training.dataset = ids");
  int32_t version = header[0] == kGpt2 ? 1 : 7;
  if (header[1] != version)
    fail("it is of version " + std::to_string(header[1]) +
         ", and this program reads version " + std::to_string(version));
  shard.start = kHeaderBytes;
  shard.width = header[0] == kGpt2 ? 2 : 4;
  shard.tokens = shard.labels = header[2];
  if (shard.tokens <= 0)
    fail("its header tells of " + std::to_string(header[2]) + " tokens");
  if (shard.ids->size() != kHeaderBytes + shard.tokens * shard.width)
    fail("its header tells of " + std::to_string(shard.tokens) +
         " tokens, and it has " + std::to_string(shard.ids->size()) +
         " bytes; was it copied whole?");
  return shard;
}

static std::vector<std::string> matchesOf(const std::string &pattern) {
  glob_t found = {};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  // A name that is no pattern for the shell is one of a file all the same, and
  // the message is that of the file.
  if (paths.empty())
    paths.push_back(pattern);
  return paths;
}

TokenSource fsdp::rt::openLlmc(const std::string &pattern) {
  TokenSource source;
  source.name = "llm.c's '" + pattern + "'";
  std::vector<uint64_t> sums;
  for (const std::string &path : matchesOf(pattern)) {
    source.shards.push_back(openFile(path));
    sums.push_back(source.shards.back().ids->sampledChecksum());
  }
  source.digest = checksumOf({reinterpret_cast<const char *>(sums.data()),
                              sums.size() * sizeof sums[0]});
  return source;
}
