//===- VerifyTensors.cpp - Whether bytes are as they were written ---------===//
#include "VerifyTensors.h"
#include "BlockChecksums.h"
#include "fsdp/Support/ParallelFor.h"
#include <algorithm>
#include <atomic>
#include <mutex>

using namespace fsdp;
using namespace fsdp::checkpoint;

namespace {

/// What of a chunk has a checksum: a block, or all of it, in archives.
struct Block {
  const StoredTensor *tensor;
  const Chunk *chunk;
  size_t index;

  bool isAll() const { return chunk->checksums.empty(); }
};

} // namespace

static std::string_view contentOf(const Block &block) {
  auto all = static_cast<size_t>(block.chunk->elements() *
                                 sizeOf(block.tensor->dtype));
  std::string_view bytes(reinterpret_cast<const char *>(block.chunk->data),
                         all);
  return block.isAll()
             ? bytes
             : bytes.substr(block.index * kChecksumBlock, kChecksumBlock);
}

/// Says nothing if the block is what was written.
static std::string damageOf(const Block &block) {
  std::string_view bytes = contentOf(block);
  bool isSame = block.isAll()
                    ? crc32Of(bytes) == *block.chunk->crc32
                    : checksumOf(bytes) == block.chunk->checksums[block.index];
  if (isSame)
    return {};
  uint64_t begin = block.index * kChecksumBlock;
  std::string which = bytes.empty()
                          ? "no bytes"
                          : "the bytes " + std::to_string(begin) + " to " +
                                std::to_string(begin + bytes.size() - 1);
  return which + " of '" + block.tensor->name + "' in '" + block.chunk->file +
         "' are not those that were written";
}

Verification
checkpoint::verifyTensors(const TensorStore &store, int threads,
                          const std::function<void(uint64_t)> &progress) {
  Verification result;
  std::vector<Block> blocks;
  for (const StoredTensor &tensor : store.tensors())
    for (const Chunk &chunk : tensor.chunks) {
      if (chunk.crc32)
        blocks.push_back({&tensor, &chunk, 0});
      else if (chunk.checksums.empty())
        result.unchecked +=
            static_cast<uint64_t>(chunk.elements() * sizeOf(tensor.dtype));
      for (size_t i = 0; i < chunk.checksums.size(); ++i)
        blocks.push_back({&tensor, &chunk, i});
    }
  std::vector<std::string> damage(blocks.size());
  std::mutex mutex;
  parallelFor(blocks.size(), threads, [&](size_t i) {
    damage[i] = damageOf(blocks[i]);
    std::lock_guard<std::mutex> lock(mutex);
    result.checked += contentOf(blocks[i]).size();
    progress(result.checked);
  });
  for (std::string &text : damage)
    if (!text.empty())
      result.damage.push_back(std::move(text));
  return result;
}
