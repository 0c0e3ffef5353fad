//===- BlockChecksums.cpp - XXH3 of blocks, CRC-32 of archives ------------===//
#include "BlockChecksums.h"
#include <algorithm>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zlib.h>

using namespace fsdp;
using namespace fsdp::checkpoint;

std::optional<uint64_t> checkpoint::parseChecksum(const std::string &text) {
  if (text.size() != 16 ||
      text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return std::nullopt;
  return std::stoull(text, nullptr, 16);
}

uint32_t checkpoint::crc32Of(std::string_view bytes, uint32_t before) {
  // zlib counts in 32 bits.
  constexpr size_t most = size_t{1} << 30;
  for (size_t at = 0; at < bytes.size(); at += most) {
    std::string_view piece = bytes.substr(at, most);
    before = static_cast<uint32_t>(
        crc32(before, reinterpret_cast<const Bytef *>(piece.data()),
              static_cast<uInt>(piece.size())));
  }
  return before;
}

struct BlockChecksums::State {
  XXH3_state_t xxh3;
};

BlockChecksums::BlockChecksums() : state(std::make_unique<State>()) {
  XXH3_64bits_reset(&state->xxh3);
}

BlockChecksums::~BlockChecksums() = default;

void BlockChecksums::endBlock() {
  blocks.push_back(XXH3_64bits_digest(&state->xxh3));
  XXH3_64bits_reset(&state->xxh3);
  inBlock = 0;
}

void BlockChecksums::add(std::string_view bytes) {
  total += bytes.size();
  while (!bytes.empty()) {
    std::string_view now = bytes.substr(0, kChecksumBlock - inBlock);
    XXH3_64bits_update(&state->xxh3, now.data(), now.size());
    inBlock += now.size();
    bytes.remove_prefix(now.size());
    if (inBlock == kChecksumBlock)
      endBlock();
  }
}

std::vector<uint64_t> BlockChecksums::finish() {
  if (inBlock > 0)
    endBlock();
  return std::move(blocks);
}
