//===- Repeats.h - Repeated runs in a sequence ------------------*- C++ -*-===//
#ifndef FSDP_PASSES_EXEC_REPEATS_H
#define FSDP_PASSES_EXEC_REPEATS_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fsdp {

/// `count` equal blocks of `period` symbols, one after another.
struct Repeat {
  size_t begin = 0;
  size_t period = 0;
  size_t count = 0;
};

/// Symbols that one copy of a block and `count` calls save over `count`
/// copies; negative where it does not pay.
inline int64_t savedBy(size_t period, size_t count) {
  return int64_t(period) * (int64_t(count) - 1) - int64_t(count);
}

/// Disjoint repeats that each save at least `minSaved` symbols, the best taken
/// first, in order of position. A period is recognised by the distance between
/// equal symbols, so that the time is that of the sequence times the number of
/// distinct distances.
std::vector<Repeat> findRepeats(const std::vector<uint32_t> &sequence,
                                int64_t minSaved);

} // namespace fsdp

#endif // FSDP_PASSES_EXEC_REPEATS_H
