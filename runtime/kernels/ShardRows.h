//===- ShardRows.h - Where rows of a table are in its shards ----*- C++ -*-===//
//
// Shared by the kernels of both targets.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_KERNELS_SHARDROWS_H
#define FSDP_RUNTIME_KERNELS_SHARDROWS_H

#include "fsdp/Runtime/KernelMath.h"

namespace fsdp::rt {

/// The id of a row that another rank has.
constexpr int32_t kAbsentRow = -1;

/// This rank's rows of a table; see rowsOfShard.
struct ShardRows {
  int64_t first, rows; // of the table
  int64_t each;        // ids that follow one another are of one rank

  /// Of place `place` of `ranks`; the others are arguments of rowsOfShard.
  static ShardRows of(int64_t place, int64_t ranks, int64_t count,
                      int64_t classes, bool byRank) {
    const int64_t rows = (classes + ranks - 1) / ranks;
    return {place * rows, rows, byRank ? count / ranks : count};
  }
};

/// Of the id of a class, in the ids of the group's rank `rank`, 0 if they are
/// not told apart.
FSDP_MATH int32_t rowOfShard(const ShardRows &shard, int64_t id, int64_t rank) {
  const int64_t row = id - shard.first;
  return row < 0 || row >= shard.rows ? kAbsentRow
                                      : int32_t(rank * shard.rows + row);
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_SHARDROWS_H
