//===- KernelRows.h - Reductions over rows in emitted kernels ---*- C++ -*-===//
//
// Included by generated CPU code. Columns are independent, so vectors, threads
// and cache blocking change no bit.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_KERNELROWS_H
#define FSDP_RUNTIME_KERNELROWS_H

#include "fsdp/Runtime/KernelMath.h"
#include "fsdp/Runtime/Runtime.h"

namespace fsdp::rt {

/// A kernel that combines the rows of blocks: it gets ranges of blocks.
inline void launchRowBlocks(Context &c, Stream s, const char *name,
                            RowKernel kernel, int64_t rows, int64_t cols,
                            Ptrs args) {
  launch(c, s, name, kernel, rows / math::kRowBlock, math::kRowBlock * cols,
         args);
}

namespace math {

/// out[column] = expression(row, column) combined over the rows, for columns
/// [begin, end).
template <typename Kind, typename T, typename Expression>
FSDP_MATH void reduceRows(int64_t rows, int64_t begin, int64_t end, T *out,
                          const Expression &expression) {
  // Both accumulators of a strip of columns stay in the first-level cache.
  constexpr int64_t strip = 512;
  alignas(64) float total[strip], block[strip];
  for (int64_t left = begin; left < end; left += strip) {
    const int64_t width = end - left < strip ? end - left : strip;
    for (int64_t i = 0; i < width; ++i)
      total[i] = Kind::start;
    for (int64_t top = 0; top < rows; top += kRowBlock) {
      const int64_t bottom = top + kRowBlock < rows ? top + kRowBlock : rows;
      for (int64_t i = 0; i < width; ++i)
        block[i] = Kind::start;
      for (int64_t row = top; row < bottom; ++row) {
#pragma GCC ivdep
        for (int64_t i = 0; i < width; ++i)
          block[i] = Kind::combine(block[i], expression(row, left + i));
      }
      for (int64_t i = 0; i < width; ++i)
        total[i] = Kind::combine(total[i], block[i]);
    }
    for (int64_t i = 0; i < width; ++i)
      store(out + left + i, total[i]);
  }
}

template <typename T, typename Expression>
FSDP_MATH void sumRows(int64_t rows, int64_t begin, int64_t end, T *out,
                       const Expression &expression) {
  reduceRows<AddRows>(rows, begin, end, out, expression);
}

template <typename T, typename Expression>
FSDP_MATH void maxRows(int64_t rows, int64_t begin, int64_t end, T *out,
                       const Expression &expression) {
  reduceRows<MaxRows>(rows, begin, end, out, expression);
}

/// The same where the rows are blocks, each combined already.
template <typename Kind, typename T, typename Expression>
FSDP_MATH void reduceBlocks(int64_t rows, int64_t begin, int64_t end, T *out,
                            const Expression &expression) {
  constexpr int64_t strip = 512;
  alignas(64) float total[strip];
  for (int64_t left = begin; left < end; left += strip) {
    const int64_t width = end - left < strip ? end - left : strip;
    for (int64_t i = 0; i < width; ++i)
      total[i] = Kind::start;
    for (int64_t row = 0; row < rows; ++row) {
#pragma GCC ivdep
      for (int64_t i = 0; i < width; ++i)
        total[i] = Kind::combine(total[i], expression(row, left + i));
    }
    for (int64_t i = 0; i < width; ++i)
      store(out + left + i, total[i]);
  }
}

template <typename T, typename Expression>
FSDP_MATH void sumBlocks(int64_t rows, int64_t begin, int64_t end, T *out,
                         const Expression &expression) {
  reduceBlocks<AddRows>(rows, begin, end, out, expression);
}

template <typename T, typename Expression>
FSDP_MATH void maxBlocks(int64_t rows, int64_t begin, int64_t end, T *out,
                         const Expression &expression) {
  reduceBlocks<MaxRows>(rows, begin, end, out, expression);
}

/// What a block of rows combines to, before its first row.
template <typename Kind> FSDP_MATH void startBlock(int64_t cols, float *out) {
  for (int64_t i = 0; i < cols; ++i)
    out[i] = Kind::start;
}

} // namespace math
} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELROWS_H
