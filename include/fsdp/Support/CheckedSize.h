//===- CheckedSize.h - Sizes whose arithmetic cannot overflow ---*- C++ -*-===//
//
// The limits of a tensor, of an arena and of a job, and the one place where
// sizes that nobody has checked yet are multiplied and added. Compiler and
// runtime share it. After a check plain int64_t is safe: what fits a tensor
// times a small constant, and a sum that stays inside an arena, fit 2^63.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SUPPORT_CHECKEDSIZE_H
#define FSDP_SUPPORT_CHECKEDSIZE_H

#include <cassert>
#include <cstdint>

namespace fsdp {

/// Bytes of one tensor or buffer, the whole one and a rank's part of it alike.
inline constexpr int64_t kMaxTensorBytes = int64_t(1) << 56;
/// Bytes of one rank's arena, and of a model's parameters together.
inline constexpr int64_t kMaxArenaBytes = int64_t(1) << 62;
/// Floating point operations of one run of a program.
inline constexpr int64_t kMaxFlops = int64_t(1) << 62;
/// Ranks of a job, and the size of a mesh axis.
inline constexpr int64_t kMaxRanks = int64_t(1) << 20;
/// Mesh axes with more than one rank that one collective goes over.
inline constexpr int64_t kMaxCollectiveAxes = 8;

/// Runs of one program in a step: its microbatches.
inline constexpr int64_t kMaxProgramRuns = int64_t(1) << 20;

/// What a model may be: transformer blocks, every other size, and token ids,
/// which are i32. Wider than any machine, and such that a model with them can
/// be described before its tensors are measured.
inline constexpr int64_t kMaxLayers = 10000;
inline constexpr int64_t kMaxDimension = int64_t(1) << 24;
inline constexpr int64_t kMaxVocabulary = INT32_MAX;

/// A product or sum of sizes, or the knowledge that it is larger than int64_t
/// holds. A negative size is no size and counts as too large.
class CheckedSize {
public:
  constexpr CheckedSize(int64_t size) : size(size < 0 ? kTooLarge : size) {}

  CheckedSize &operator*=(CheckedSize other) {
    int64_t product;
    bool overflows = __builtin_mul_overflow(size, other.size, &product);
    // Too large stays too large, also times nothing.
    size = overflows || !isKnown() || !other.isKnown() ? kTooLarge : product;
    return *this;
  }
  CheckedSize &operator+=(CheckedSize other) {
    if (__builtin_add_overflow(size, other.size, &size))
      size = kTooLarge;
    return *this;
  }
  friend CheckedSize operator*(CheckedSize a, CheckedSize b) { return a *= b; }
  friend CheckedSize operator+(CheckedSize a, CheckedSize b) { return a += b; }

  bool fits(int64_t limit) const { return isKnown() && size <= limit; }
  int64_t get() const {
    assert(isKnown() && "asked before it was checked");
    return size;
  }
  /// INT64_MAX for what is too large: an estimate, or a number to compare.
  int64_t saturated() const { return size; }

private:
  static constexpr int64_t kTooLarge = INT64_MAX;
  bool isKnown() const { return size != kTooLarge; }

  int64_t size;
};

/// The product of a range of sizes; 1 for none.
template <typename Sizes> CheckedSize productOf(const Sizes &sizes) {
  CheckedSize product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

/// ceil(size / parts), without the sum that could overflow.
inline constexpr int64_t ceilDiv(int64_t size, int64_t parts) {
  return size / parts + (size % parts != 0);
}

/// `size` rounded up to a multiple of `unit`.
inline CheckedSize roundedUp(CheckedSize size, int64_t unit) {
  return CheckedSize(ceilDiv(size.saturated(), unit)) * unit;
}

} // namespace fsdp

#endif // FSDP_SUPPORT_CHECKEDSIZE_H
