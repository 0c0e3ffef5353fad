//===- Initialize.h - First values of the persistent ranges -----*- C++ -*-===//
//
// A value depends on the seed, the tensor's name and the element's index in
// the full tensor alone, so that a run starts equally on every mesh and no
// rank ever holds a full tensor.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DATA_INITIALIZE_H
#define FSDP_DATA_INITIALIZE_H

#include "fsdp/Artifact/Manifest.h"

namespace fsdp::rt {

/// Element `index` (row-major, of the full tensor) of the normal distribution
/// called `name` under `seed`.
float normalValue(uint64_t seed, const std::string &name, uint64_t index,
                  double std, double cut);

/// Element `index` of the uniform distribution on [-bound, bound).
float uniformValue(uint64_t seed, const std::string &name, uint64_t index,
                   double bound);

/// Writes `count` stored elements from `first` on of the part of `range` that
/// `rank` holds to `data`, on so many threads; padding is zero.
void initializePiece(const Manifest &manifest, const RangeInfo &range,
                     int64_t rank, uint64_t seed, int64_t first, int64_t count,
                     std::byte *data, int threads = 1);

/// Writes the whole part.
void initializeRange(const Manifest &manifest, const RangeInfo &range,
                     int64_t rank, uint64_t seed, std::byte *data);

/// Initialises every range of the arena that starts at `arena`.
void initializeRanges(const Manifest &manifest, int64_t rank, uint64_t seed,
                      std::byte *arena);

} // namespace fsdp::rt

#endif // FSDP_DATA_INITIALIZE_H
