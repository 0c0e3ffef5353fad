//===- CudaRows.h - Reductions over rows in CUDA kernels --------*- C++ -*-===//
//
// Included by generated CUDA code. Sums over all rows, sums of blocks of 32
// rows by kernels that also compute these rows, and sums over such blocks: in
// the order of KernelRows.h, so that all have the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CUDAROWS_H
#define FSDP_RUNTIME_CUDAROWS_H

#include "fsdp/Runtime/CudaKernels.h"

namespace fsdp::rt {

namespace gpu {

/// A column reduction takes 32 columns and 16 blocks of rows at a time.
constexpr int kColumns = 32, kRowGroups = 16;
/// One that takes vectors of columns has two of them in a block, so that there
/// are many blocks, and up to this many blocks of rows at a time.
constexpr int kColumnVectors = 2, kVectorGroups = 128;
/// A kernel that combines blocks of rows has a block of so many threads for
/// each.
constexpr int kRowBlockThreads = 512;
/// Two such blocks run on a multiprocessor if a thread keeps no more numbers:
/// while one waits for memory, the other computes.
constexpr int kFewColumns = 8;
/// The threads of one of its rows: enough for a vector of N each, if they may
/// be so many.
constexpr int rowThreads(int64_t cols, int n) {
  int threads = 32;
  while (threads < kThreads && int64_t(threads) * n < cols)
    threads *= 2;
  return threads;
}
/// A sum over blocks reads so many of them between two barriers.
constexpr int kBlocksAtOnce = 128,
              kBlocksPerThread = kBlocksAtOnce / kRowGroups;

/// The blocks of rows that a column reduction by vectors takes at a time: no
/// more than there are, but enough threads to finish its columns.
__host__ __device__ constexpr int vectorGroups(int64_t rows) {
  const int64_t blocks = (rows + math::kRowBlock - 1) / math::kRowBlock;
  return blocks < 8 ? 8 : blocks < kVectorGroups ? int(blocks) : kVectorGroups;
}

/// Room for the numbers of all threads of such a block. The reductions of a
/// kernel take turns.
FSDP_DEVICE float *partialOfBlock() {
  alignas(16) __shared__ float partial[kVectorGroups * kColumnVectors * 8];
  return partial;
}

} // namespace gpu

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

namespace math {

/// out[column] = expression(row, column) combined over the rows. All threads
/// of the block call it.
template <typename Kind, typename T, typename Expression>
FSDP_DEVICE void reduceRows(int64_t rows, int64_t cols, T *out,
                            const Expression &expression) {
  __shared__ float partial[gpu::kRowGroups][gpu::kColumns];
  const int64_t col = int64_t(blockIdx.x) * gpu::kColumns + threadIdx.x;
  float total = Kind::start;
  for (int64_t top = 0; top < rows; top += gpu::kRowGroups * kRowBlock) {
    const int64_t begin = top + threadIdx.y * kRowBlock;
    const int64_t end = begin + kRowBlock < rows ? begin + kRowBlock : rows;
    float block = Kind::start;
    if (col < cols)
      for (int64_t row = begin; row < end; ++row)
        block = Kind::combine(block, expression(row, col));
    partial[threadIdx.y][threadIdx.x] = block;
    __syncthreads();
    if (threadIdx.y == 0)
      for (int b = 0; b < gpu::kRowGroups && top + b * kRowBlock < rows; ++b)
        total = Kind::combine(total, partial[b][threadIdx.x]);
    __syncthreads();
  }
  if (threadIdx.y == 0 && col < cols)
    store(out + col, total);
}

/// The same for kernels whose threads have N columns: expression(row, first
/// column) gives a vector of numbers.
template <typename Kind, int N, typename T, typename Expression>
FSDP_DEVICE void reduceVectors(int64_t rows, int64_t cols, T *out,
                               const Expression &expression) {
  constexpr int kWidth = gpu::kColumnVectors * N;
  const int groups = gpu::vectorGroups(rows);
  const int64_t left = int64_t(blockIdx.x) * kWidth;
  const int64_t mine = left + int64_t(threadIdx.x) * N;
  // The first threads have a column each in the end.
  const int own = int(threadIdx.y) * gpu::kColumnVectors + int(threadIdx.x);
  float *partial = gpu::partialOfBlock();
  float total = Kind::start;
  for (int64_t top = 0; top < rows; top += groups * kRowBlock) {
    const int64_t begin = top + threadIdx.y * kRowBlock;
    const int64_t end = begin + kRowBlock < rows ? begin + kRowBlock : rows;
    gpu::Vector<float, N> block;
    FSDP_UNROLL
    for (int i = 0; i < N; ++i)
      block[i] = Kind::start;
    if (mine < cols) {
      FSDP_UNROLL_BY(4)
      for (int64_t row = begin; row < end; ++row) {
        const gpu::Vector<float, N> terms = expression(row, mine);
        FSDP_UNROLL
        for (int i = 0; i < N; ++i)
          block[i] = Kind::combine(block[i], terms[i]);
      }
    }
    FSDP_UNROLL
    for (int i = 0; i < N; ++i)
      partial[own * N + i] = block[i];
    __syncthreads();
    if (own < kWidth) {
      FSDP_UNROLL_BY(8)
      for (int b = 0; b < groups; ++b)
        if (top + b * kRowBlock < rows)
          total = Kind::combine(total, partial[b * kWidth + own]);
    }
    __syncthreads();
  }
  if (own < kWidth && left + own < cols)
    store(out + left + own, total);
}

template <int N, typename T, typename Expression>
FSDP_DEVICE void sumRows(int64_t rows, int64_t cols, T *out,
                         const Expression &expression) {
  reduceVectors<AddRows, N>(rows, cols, out, expression);
}

template <int N, typename T, typename Expression>
FSDP_DEVICE void maxRows(int64_t rows, int64_t cols, T *out,
                         const Expression &expression) {
  reduceVectors<MaxRows, N>(rows, cols, out, expression);
}

/// The threads of a block of rows, which take some of its rows at a time:
/// vectors of N of the columns of a row have a thread each.
template <int N, int64_t Cols> struct RowBlock {
  static constexpr int kThreads = gpu::rowThreads(Cols, N);
  static constexpr int kRows = gpu::kRowBlockThreads / kThreads;
  /// Rows longer than this are taken part by part.
  static constexpr int kPart = kThreads * N;
  static constexpr int kParts = int((Cols + kPart - 1) / kPart);

  /// The sum over the row of a thread. expression(first column) gives a vector
  /// of terms.
  template <typename Expression>
  FSDP_DEVICE static float sumOfRow(const Expression &expression) {
    return sumOfParts<kPart, kRows>(
        Cols, [&](int64_t top, int64_t count, float *terms) {
          fillTerms<N>(top, count, terms, expression);
        });
  }
  /// The maximum over such a row, or a NaN in it.
  template <typename Expression>
  FSDP_DEVICE static float maxOfRow(const Expression &expression) {
    return maxOfThreads<N, kThreads, kRows>(Cols, expression);
  }

  /// What its rows combine to so far, in the columns of every part that this
  /// thread combines.
  template <typename Kind> struct Columns {
    static constexpr int kOwn =
        (kPart + gpu::kRowBlockThreads - 1) / gpu::kRowBlockThreads;
    float mine[kParts * kOwn];

    FSDP_DEVICE Columns() {
      FSDP_UNROLL
      for (int i = 0; i < kParts * kOwn; ++i)
        mine[i] = Kind::start;
    }

    /// Combines the rows that the threads have now, in their order.
    /// expression(first column) gives a vector of terms of this thread's row.
    /// All threads of the block call it.
    template <typename Expression>
    FSDP_DEVICE void combine(const Expression &expression) {
      float *all = gpu::termsOfBlock<2 * kPart * kRows>();
      FSDP_UNROLL
      for (int part = 0; part < kParts; ++part) {
        const int64_t top = int64_t(part) * kPart;
        float *terms = all + part % 2 * (kPart * kRows);
        fillTerms<N>(top, Cols - top, terms + int(threadIdx.y) * kPart,
                     expression);
        __syncthreads();
        each(part, [&](int column, float &number) {
          FSDP_UNROLL
          for (int row = 0; row < kRows; ++row)
            number = Kind::combine(number, terms[row * kPart + column]);
        });
      }
      __syncthreads();
    }

    FSDP_DEVICE void store(float *out) {
      FSDP_UNROLL
      for (int part = 0; part < kParts; ++part)
        each(part, [&](int column, float number) {
          out[part * kPart + column] = number;
        });
    }

  private:
    /// body(column in the part, its number) for this thread's columns of a
    /// part.
    template <typename Body> FSDP_DEVICE void each(int part, const Body &body) {
      FSDP_UNROLL
      for (int i = 0; i < kOwn; ++i) {
        const int column = int(threadIdx.y) * kThreads + int(threadIdx.x) +
                           i * gpu::kRowBlockThreads;
        if (column < kPart && part * kPart + column < Cols)
          body(column, mine[part * kOwn + i]);
      }
    }
  };

  /// The blocks of threads that a multiprocessor has at once where a thread
  /// keeps so many numbers.
  static constexpr int atOnce(int sums) {
    return sums * kParts * Columns<AddRows>::kOwn <= gpu::kFewColumns ? 2 : 1;
  }
};

/// out[column] = expression(row, column) of blocks of rows, combined one after
/// another: by the first threads, while the others read the next.
template <typename Kind, typename T, typename Expression>
FSDP_DEVICE void reduceBlocks(int64_t rows, int64_t cols, T *out,
                              const Expression &expression) {
  __shared__ float blocks[2][gpu::kBlocksAtOnce][gpu::kColumns];
  const int64_t col = int64_t(blockIdx.x) * gpu::kColumns + threadIdx.x;
  float total = Kind::start;
  for (int64_t top = 0, part = 0; top < rows;
       top += gpu::kBlocksAtOnce, ++part) {
    auto &read = blocks[part % 2];
    FSDP_UNROLL
    for (int i = 0; i < gpu::kBlocksPerThread; ++i) {
      const int block = int(threadIdx.y) + i * gpu::kRowGroups;
      if (col < cols && top + block < rows)
        read[block][threadIdx.x] = expression(top + block, col);
    }
    __syncthreads();
    if (threadIdx.y == 0 && col < cols) {
      FSDP_UNROLL_BY(16)
      for (int block = 0; block < gpu::kBlocksAtOnce; ++block)
        if (top + block < rows)
          total = Kind::combine(total, read[block][threadIdx.x]);
    }
  }
  if (threadIdx.y == 0 && col < cols)
    store(out + col, total);
}

template <typename T, typename Expression>
FSDP_DEVICE void sumBlocks(int64_t rows, int64_t cols, T *out,
                           const Expression &expression) {
  reduceBlocks<AddRows>(rows, cols, out, expression);
}

template <typename T, typename Expression>
FSDP_DEVICE void maxBlocks(int64_t rows, int64_t cols, T *out,
                           const Expression &expression) {
  reduceBlocks<MaxRows>(rows, cols, out, expression);
}

template <typename T, typename Expression>
FSDP_DEVICE void sumRows(int64_t rows, int64_t cols, T *out,
                         const Expression &expression) {
  reduceRows<AddRows>(rows, cols, out, expression);
}

template <typename T, typename Expression>
FSDP_DEVICE void maxRows(int64_t rows, int64_t cols, T *out,
                         const Expression &expression) {
  reduceRows<MaxRows>(rows, cols, out, expression);
}

} // namespace math

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

namespace gpu {

/// A column reduction whose threads have vectors of columns.
constexpr LaunchShape columnVectorsShape(int64_t rows, int64_t cols,
                                         int neighbours) {
  return {blocksOf(cols, int64_t(kColumnVectors) * neighbours), kColumnVectors,
          unsigned(vectorGroups(rows)), false};
}

/// As many threads as RowBlock says, for each block of rows.
constexpr LaunchShape rowBlocksShape(int64_t rows, int64_t cols,
                                     int neighbours) {
  const int threads = rowThreads(cols, neighbours);
  return {rows / math::kRowBlock, unsigned(threads),
          unsigned(kRowBlockThreads / threads), false};
}
constexpr LaunchShape blockSumsShape(int64_t cols) {
  return {blocksOf(cols, kColumns), kColumns, kRowGroups, false};
}

} // namespace gpu

/// A kernel that combines blocks of 32 rows: each has a block of threads.
template <int Neighbours = 1, typename... T>
void launchRowBlocks(Context &c, Stream s, const char *name,
                     void (*kernel)(T *...), int64_t rows, int64_t cols,
                     Ptrs args) {
  gpu::start(c, s, name, kernel, gpu::rowBlocksShape(rows, cols, Neighbours),
             args);
}

/// A column reduction over such blocks.
template <typename... T>
void launchBlockSums(Context &c, Stream s, const char *name,
                     void (*kernel)(T *...), int64_t, int64_t cols, Ptrs args) {
  gpu::start(c, s, name, kernel, gpu::blockSumsShape(cols), args);
}

/// A column reduction, by columns or by vectors of them.
template <int Neighbours = 1, typename... T>
void launchColumns(Context &c, Stream s, const char *name,
                   void (*kernel)(T *...), int64_t rows, int64_t cols,
                   Ptrs args) {
  const gpu::LaunchShape single = {gpu::blocksOf(cols, gpu::kColumns),
                                   gpu::kColumns, gpu::kRowGroups, false};
  gpu::start(c, s, name, kernel,
             Neighbours == 1 ? single
                             : gpu::columnVectorsShape(rows, cols, Neighbours),
             args);
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDAROWS_H
