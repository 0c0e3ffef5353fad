//===- Frontier.h - The least time for every budget of memory ---*- C++ -*-===//
//
// Blocks compute one after another forward, and backward in reverse. Each has
// options: what it leaves alive for the backward pass (keep), the most bytes
// beside what blocks before it left (work), and how long it computes. A choice
// of options needs
//
//   max(fixed, max over i (sum over j < i of keep_j + work_i + beside_i),
//       sum of all keep_j + loss)
//
// bytes. Labels solve that exactly: with r bytes left for blocks i, i + 1, …,
// least(i, r) = min over options with work + beside_i <= r of
// time + least(i + 1, r - keep). It is a step function of r that knows no
// budget, so that the one of block 0 has the answer to every budget.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_FRONTIER_H
#define FSDP_SCHEDULE_FRONTIER_H

#include "fsdp/Machine/Duration.h"
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace fsdp::problem {

struct BlockOption {
  int64_t keep = 0, work = 0; ///< Bytes.
  Duration time;
};

/// Blocks in the order of the forward pass; those of a class have the same
/// options.
struct BlockChain {
  std::vector<std::vector<BlockOption>> classes;
  std::vector<uint32_t> classOf; ///< Of each block.
  /// Alive beside each block in its backward pass whatever is chosen: gradients
  /// of blocks behind it.
  std::vector<int64_t> beside;
  int64_t loss = 0;  ///< Between the passes, beside all that blocks keep.
  int64_t fixed = 0; ///< At any other place.
};

/// The bytes that a choice of options needs, a number for each block.
int64_t peakOf(const BlockChain &chain, const std::vector<uint32_t> &choice);
/// How long all blocks of it compute.
Duration timeOf(const BlockChain &chain, const std::vector<uint32_t> &choice);

/// The numbers of the options that no other one of them beats or equals in
/// keep, work and time, in ascending order; of equal ones the first.
std::vector<uint32_t> undominated(const std::vector<BlockOption> &options);

class Frontier {
public:
  /// A choice that needs `bytes` and takes `time`.
  struct Point {
    int64_t bytes = 0;
    Duration time;
  };

  /// Labels are found on so many threads.
  explicit Frontier(BlockChain chain, int threads = 1);

  /// Every choice that no other one beats, bytes ascending, time descending.
  const std::vector<Point> &points() const { return ends; }

  /// The least time in `budget` bytes, as the option of each block; nothing if
  /// none fits. Of choices that take equally long it is the one that begins,
  /// from the first block on, with the longest run of one option, then of
  /// another, and so on; of equally long runs that of the lower number.
  std::optional<std::vector<uint32_t>> choose(int64_t budget) const;

private:
  using Labels = std::vector<Point>;

  Labels labelsBefore(size_t block, const Labels &behind, int threads) const;
  /// The least time of block `block` and those behind it; nothing if they do
  /// not fit into `room`.
  std::optional<Duration> least(size_t block, int64_t room) const;
  bool isOptimal(size_t block, uint32_t option, int64_t room) const;
  size_t runLength(size_t block, uint32_t option, int64_t room) const;

  BlockChain chain;
  std::vector<Labels> labels; ///< Of each block, and of none.
  Labels ends;
};

} // namespace fsdp::problem

#endif // FSDP_SCHEDULE_FRONTIER_H
