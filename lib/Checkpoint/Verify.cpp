//===- Verify.cpp - Whether bytes are those that were written -------------===//
#include "fsdp/Checkpoint/Verify.h"
#include "Checksum.h"
#include "fsdp/Support/ParallelFor.h"
#include <algorithm>
#include <atomic>
#include <mutex>

using namespace fsdp;
using namespace fsdp::checkpoint;

namespace {

/// A block of a chunk that has a checksum.
struct Block {
  const StoredTensor *tensor;
  const Chunk *chunk;
  size_t index;
};

} // namespace

static std::string_view contentOf(const Block &block) {
  auto all = static_cast<size_t>(rt::elementCount(block.chunk->sizes) *
                                 sizeOf(block.tensor->dtype));
  return std::string_view(reinterpret_cast<const char *>(block.chunk->data),
                          all)
      .substr(block.index * kChecksumBlock, kChecksumBlock);
}

/// Says nothing if the block is what was written.
static std::string damageOf(const Block &block) {
  std::string_view bytes = contentOf(block);
  if (checksumOf(bytes) == block.chunk->checksums[block.index])
    return {};
  uint64_t begin = block.index * kChecksumBlock;
  return "the bytes " + std::to_string(begin) + " to " +
         std::to_string(begin + bytes.size() - 1) + " of '" +
         block.tensor->name + "' in '" + block.chunk->file +
         "' are not those that were written";
}

Verification
checkpoint::verifyTensors(const TensorStore &store, int threads,
                          const std::function<void(uint64_t)> &progress) {
  Verification result;
  std::vector<Block> blocks;
  for (const StoredTensor &tensor : store.tensors())
    for (const Chunk &chunk : tensor.chunks) {
      if (chunk.checksums.empty())
        result.unchecked += static_cast<uint64_t>(
            rt::elementCount(chunk.sizes) * sizeOf(tensor.dtype));
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
