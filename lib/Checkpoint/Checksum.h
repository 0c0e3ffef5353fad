//===- Checksum.h - XXH3 of blocks ------------------------------*- C++ -*-===//
#ifndef FSDP_CHECKPOINT_CHECKSUM_H
#define FSDP_CHECKPOINT_CHECKSUM_H

#include "fsdp/Checkpoint/TensorStore.h"
#include <memory>
#include <string_view>

namespace fsdp::checkpoint {

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

#endif // FSDP_CHECKPOINT_CHECKSUM_H
