//===- BlockChecksums.h - XXH3 of blocks, CRC-32 of archives ----*- C++ -*-===//
#ifndef FSDP_RUNTIME_CHECKPOINT_STORE_BLOCKCHECKSUMS_H
#define FSDP_RUNTIME_CHECKPOINT_STORE_BLOCKCHECKSUMS_H

#include "TensorStore.h"
#include <memory>
#include <string_view>

namespace fsdp::checkpoint {

/// The checksum of archives; of more bytes after those of `before`.
uint32_t crc32Of(std::string_view bytes, uint32_t before = 0);

/// Unset: the text is none.
std::optional<uint64_t> parseChecksum(const std::string &text);

/// Blocks of so many bytes.
inline uint64_t blocksOf(uint64_t bytes) {
  return (bytes + kChecksumBlock - 1) / kChecksumBlock;
}

/// Checksums of the blocks of bytes that come in pieces of any size.
class BlockChecksums {
public:
  BlockChecksums();
  ~BlockChecksums();

  void add(std::string_view bytes);
  /// Ends the last block.
  std::vector<uint64_t> finish();
  uint64_t bytes() const { return total; }

private:
  void endBlock();

  struct State;
  std::unique_ptr<State> state;
  uint64_t total = 0, inBlock = 0;
  std::vector<uint64_t> blocks;
};

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_STORE_BLOCKCHECKSUMS_H
