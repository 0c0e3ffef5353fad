//===- CudaKernels.h - Threads of emitted CUDA kernels ----------*- C++ -*-===//
//
// Included by generated CUDA code and by the CUDA runtime's kernels: how a
// kernel's space of rows and columns is split into blocks and threads, and
// reductions that combine in the order of KernelMath.h, so that a kernel gives
// the same bits as on the CPU. Build with -fmad=false: a fused multiply-add is
// always spelled.
//
// Every name of CUDA that is used here and by emitted kernels is also defined
// by test/shim/CudaShim.h, which runs kernels on the host.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CUDAKERNELS_H
#define FSDP_RUNTIME_CUDAKERNELS_H

#define FSDP_CUDA_CODE
#include "fsdp/Runtime/KernelMath.h"
#include "fsdp/Runtime/Runtime.h"

// Neither these functions nor kernels are static: nvcc would put a number into
// their names that differs each time, and with it the bytes of an artifact.
#define FSDP_DEVICE __device__ __forceinline__

/// Before a loop over the elements of a vector: these are registers, which
/// have no index. The host's compiler, which knows no such pragma, sees
/// nothing.
#ifdef FSDP_CUDA_SHIM
#define FSDP_UNROLL
#define FSDP_UNROLL_BY(n)
#else
#define FSDP_PRAGMA(text) _Pragma(#text)
#define FSDP_UNROLL FSDP_PRAGMA(unroll)
/// Before a loop of any length: as many steps wait for memory at a time.
#define FSDP_UNROLL_BY(n) FSDP_PRAGMA(unroll n)
#endif

namespace fsdp::rt {

//===----------------------------------------------------------------------===//
// Where a thread is
//===----------------------------------------------------------------------===//

namespace gpu {

constexpr int kThreads = 256;
/// A thread of a pointwise kernel takes this many elements, kThreads apart.
constexpr int kElementsPerThread = 4;
constexpr int64_t kElementsPerBlock = kThreads * kElementsPerThread;
/// Sixteen threads per row: the lanes of a reduction.
constexpr int kRowsPerBlock = kThreads / math::kLanes;

FSDP_DEVICE int lane() { return int(threadIdx.x) % math::kLanes; }
FSDP_DEVICE int64_t row() {
  return int64_t(blockIdx.x) * kRowsPerBlock + int(threadIdx.x) / math::kLanes;
}
/// The threads of this row within the warp.
FSDP_DEVICE unsigned rowMask() { return 0xffffu << (threadIdx.x & 16u); }

//===----------------------------------------------------------------------===//
// Vectors: neighbours that are read and written together
//===----------------------------------------------------------------------===//

/// N neighbours in registers. They lie in memory at a multiple of their bytes
/// or of 16, and are accessed 16 bytes at a time.
template <typename T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Vector {
  T at[N];
  FSDP_DEVICE T &operator[](int i) { return at[i]; }
  FSDP_DEVICE const T &operator[](int i) const { return at[i]; }
};
/// Its name in generated kernels, whose text calls packets() below too.
template <typename T, int N> using Packet = Vector<T, N>;

/// Word `i` of a vector.
template <typename T, int N>
FSDP_DEVICE uint32_t wordOf(const Vector<T, N> &x, int i) {
  if constexpr (sizeof(T) == 2) {
    uint16_t low, high;
    __builtin_memcpy(&low, &x[2 * i], sizeof low);
    __builtin_memcpy(&high, &x[2 * i + 1], sizeof high);
    return low | uint32_t(high) << 16;
  } else {
    uint32_t word;
    __builtin_memcpy(&word, reinterpret_cast<const char *>(x.at) + 4 * i,
                     sizeof word);
    return word;
  }
}

/// One access. It is spelled, since compilers take stores of 16 bytes apart
/// that follow other assembly.
FSDP_DEVICE void storeWords(void *p, uint32_t a, uint32_t b, uint32_t c,
                            uint32_t d) {
#ifdef FSDP_CUDA_SHIM
  shim::store(p, Vector<uint32_t, 4>{{a, b, c, d}});
#else
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(__cvta_generic_to_global(p)), "r"(a), "r"(b), "r"(c),
                 "r"(d)
               : "memory");
#endif
}

/// One access for every 16 bytes of W.
template <typename W> FSDP_DEVICE W loadWords(const void *p) {
#ifdef FSDP_CUDA_SHIM
  return shim::load<W>(p);
#else
  return *reinterpret_cast<const W *>(p);
#endif
}

template <int N, typename T> FSDP_DEVICE Vector<T, N> load(const T *p) {
  if constexpr (sizeof(T) == 2 && N % 2 == 0) {
    // Halves taken out of words are widened by one instruction.
    const auto words = loadWords<Vector<uint32_t, N / 2>>(p);
    Vector<T, N> x;
    FSDP_UNROLL
    for (int i = 0; i < N; ++i) {
      const uint16_t half = uint16_t(words[i / 2] >> (i % 2 * 16));
      __builtin_memcpy(&x[i], &half, sizeof half);
    }
    return x;
  } else {
    return loadWords<Vector<T, N>>(p);
  }
}
template <int N, typename T>
FSDP_DEVICE void store(T *p, const Vector<T, N> &x) {
  if constexpr (sizeof x % 16 == 0) {
    FSDP_UNROLL
    for (int i = 0; i < int(sizeof x) / 4; i += 4)
      storeWords(reinterpret_cast<char *>(p) + 4 * i, wordOf(x, i),
                 wordOf(x, i + 1), wordOf(x, i + 2), wordOf(x, i + 3));
  } else {
    FSDP_UNROLL
    for (int i = 0; i < N; ++i)
      p[i] = x[i];
  }
}

/// A number that is known when a kernel is compiled, as an argument.
template <int N> struct Count {
  static constexpr int value = N;
};

/// True if all these begin where vectors may.
template <typename... T> FSDP_DEVICE bool areVectorAligned(const T *...p) {
  return ((reinterpret_cast<uintptr_t>(p) | ...) & 15u) == 0;
}

/// body(Count<N>(), first element) for this thread's vector of N of `size`
/// elements if the operands are `aligned`, and body(Count<1>(), element) for
/// what is left: those after the last vector, or all. `block` counts from the
/// first that these elements have.
template <int N, typename Body>
FSDP_DEVICE void neighbours(int64_t block, int64_t size, bool aligned,
                            const Body &body) {
  const int64_t top = block * (kThreads * N);
  const int64_t first = top + int64_t(threadIdx.x) * N;
  if (aligned && first + N <= size)
    return body(Count<N>(), first);
  for (int i = 0; i < N; ++i) {
    const int64_t element =
        aligned ? first + i : top + threadIdx.x + i * kThreads;
    if (element < size)
      body(Count<1>(), element);
  }
}

/// a / b. Where both have 32 bits, that takes a fraction of the time.
FSDP_DEVICE int64_t quotient(int64_t a, int64_t b) {
  return uint64_t(a | b) >> 32 == 0 ? int64_t(uint32_t(a) / uint32_t(b))
                                    : a / b;
}

/// body(first element) for this thread's vector of N of `size` elements.
template <int N, typename Body>
FSDP_DEVICE void packets(int64_t size, const Body &body) {
  const int64_t vector = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (vector < size / N)
    body(vector * N);
}

/// body(row, first column) for this thread's vector of N columns.
template <int N, typename Body>
FSDP_DEVICE void packets(int64_t rows, int64_t cols, const Body &body) {
  const int64_t vector = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t perRow = cols / N;
  if (vector >= rows * perRow)
    return;
  // Divisions of 32 bits take a fraction of the time.
  const bool isSmall = rows * perRow <= int64_t(0xffffffff);
  const int64_t row =
      isSmall ? int64_t(uint32_t(vector) / uint32_t(perRow)) : vector / perRow;
  body(row, (vector - row * perRow) * N);
}

/// Room for terms of a row that has a block. The sums of a kernel take turns.
template <int Terms> FSDP_DEVICE float *termsOfBlock() {
  alignas(16) __shared__ float terms[Terms];
  return terms;
}

/// body(row, column) for the elements of this thread.
template <typename Body>
FSDP_DEVICE void elements(int64_t rows, int64_t cols, const Body &body) {
  const int64_t first = int64_t(blockIdx.x) * kElementsPerBlock + threadIdx.x;
  for (int i = 0; i < kElementsPerThread; ++i) {
    const int64_t element = first + i * kThreads;
    if (element < rows * cols)
      body(element / cols, element % cols);
  }
}

} // namespace gpu

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

namespace math {

/// The tree over the lanes of a row; every lane gets the result.
FSDP_DEVICE float totalOfLanes(float value) {
  // Both partners of an exchange add the same two numbers.
  for (int step = kLanes / 2; step > 0; step /= 2)
    value += __shfl_xor_sync(gpu::rowMask(), value, step, kLanes);
  return value;
}

/// The sum of expression(j) for j in [0, n). All lanes of the row call it.
template <typename Expression>
FSDP_DEVICE float sumLanes(int64_t n, const Expression &expression) {
  float total = 0.0f;
  FSDP_UNROLL_BY(8)
  for (int64_t j = gpu::lane(); j < n; j += kLanes)
    total += expression(j);
  return totalOfLanes(total);
}

/// The maximum over the lanes of a row, or a NaN among them, for every lane. It
/// does not depend on the order.
FSDP_DEVICE float maxOfLanes(float value) {
  for (int step = kLanes / 2; step > 0; step /= 2)
    value = max(value, __shfl_xor_sync(gpu::rowMask(), value, step, kLanes));
  return value;
}

/// The maximum of expression(j), or a NaN among them.
template <typename Expression>
FSDP_DEVICE float maxLanes(int64_t n, const Expression &expression) {
  float m = MaxRows::start;
  FSDP_UNROLL_BY(8)
  for (int64_t j = gpu::lane(); j < n; j += kLanes)
    m = max(m, expression(j));
  return maxOfLanes(m);
}

/// The largest of the numbers of the threads of a row, or a NaN among them, for
/// all of them. The block has `Rows` rows of `Threads` threads.
template <int Threads = gpu::kThreads, int Rows = 1>
FSDP_DEVICE float maxOfBlock(float mine) {
  constexpr int kGroups = Threads / kLanes;
  __shared__ float numbers[Rows * kGroups];
  float *largest = numbers + int(threadIdx.y) * kGroups;
  mine = maxOfLanes(mine);
  if (gpu::lane() == 0)
    largest[threadIdx.x / kLanes] = mine;
  __syncthreads();
  float m = largest[0];
  for (int i = 1; i < kGroups; ++i)
    m = max(m, largest[i]);
  __syncthreads();
  return m;
}

/// The sum of a row's n terms in the order of sumLanes, for all threads of the
/// row's block, or for those of each of `Rows` rows. They take `Part` terms at
/// a time: fill(first, count, terms) stores those of a thread, and the first
/// sixteen threads, which are the lanes, add them while all others compute the
/// next.
template <int Part, int Rows = 1, typename Fill>
FSDP_DEVICE float sumOfParts(int64_t n, const Fill &fill) {
  __shared__ float results[Rows];
  float *terms =
      gpu::termsOfBlock<2 * Part * Rows>() + int(threadIdx.y) * 2 * Part;
  float total = 0.0f;
  for (int64_t top = 0, part = 0; top < n; top += Part, ++part) {
    const int64_t count = n - top < Part ? n - top : Part;
    float *term = terms + part % 2 * Part;
    fill(top, count, term);
    __syncthreads();
    if (threadIdx.x < kLanes) {
      FSDP_UNROLL_BY(8)
      for (int64_t j = threadIdx.x; j < count; j += kLanes)
        total += term[j];
    }
  }
  if (threadIdx.x < kLanes)
    total = totalOfLanes(total);
  if (threadIdx.x == 0)
    results[threadIdx.y] = total;
  __syncthreads();
  return results[threadIdx.y];
}

/// Term `i` of a vector of them, or of one that is no vector.
template <int N>
FSDP_DEVICE float termOf(const gpu::Vector<float, N> &terms, int i) {
  return terms[i];
}
FSDP_DEVICE float termOf(float term, int) { return term; }

/// Stores the N terms of this thread, of the `count` from column `first` on.
template <int N, typename Expression>
FSDP_DEVICE void fillTerms(int64_t first, int64_t count, float *terms,
                           const Expression &expression) {
  const int mine = int(threadIdx.x) * N;
  if (mine >= count)
    return;
  const auto vector = expression(first + mine);
  FSDP_UNROLL
  for (int i = 0; i < N; ++i)
    terms[mine + i] = termOf(vector, i);
}

/// The sum over a row that has a block. expression(first column) gives a vector
/// of terms.
template <int N, typename Expression>
FSDP_DEVICE float sumOfRow(int64_t n, const Expression &expression) {
  return sumOfParts<gpu::kThreads * N>(
      n, [&](int64_t top, int64_t count, float *terms) {
        fillTerms<N>(top, count, terms, expression);
      });
}

/// The maximum over a row that has so many threads, or a NaN in it.
template <int N, int Threads, int Rows, typename Expression>
FSDP_DEVICE float maxOfThreads(int64_t n, const Expression &expression) {
  float m = MaxRows::start;
  for (int64_t left = int64_t(threadIdx.x) * N; left < n; left += Threads * N) {
    const auto vector = expression(left);
    FSDP_UNROLL
    for (int i = 0; i < N; ++i)
      m = max(m, termOf(vector, i));
  }
  return maxOfBlock<Threads, Rows>(m);
}

/// The maximum over a row that has a block, or a NaN in it.
template <int N, typename Expression>
FSDP_DEVICE float maxOfRow(int64_t n, const Expression &expression) {
  return maxOfThreads<N, gpu::kThreads, 1>(n, expression);
}

/// Numbers by column that the threads of a row keep, in registers.
struct RowOfLanes {
  float mine[kRowColumns / kLanes];
};

/// body(column, its number) for the first n columns, each in its thread.
template <typename Body>
FSDP_DEVICE void eachOfRow(RowOfLanes &row, int64_t n, const Body &body) {
  for (int i = 0; i < kRowColumns / kLanes; ++i) {
    const int64_t column = gpu::lane() + int64_t(i) * kLanes;
    if (column < n)
      body(column, row.mine[i]);
  }
}

/// Stores the one number of a row, which all its threads have.
FSDP_DEVICE void storeOfRow(float *p, float x) {
  if (gpu::lane() == 0)
    *p = x;
}

} // namespace math

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

namespace gpu {

/// The blocks of a kernel and their threads. In an `independent` one no thread
/// waits for another.
struct LaunchShape {
  int64_t blocks;
  unsigned x, y;
  bool independent;
};

constexpr int64_t blocksOf(int64_t size, int64_t perBlock) {
  return (size + perBlock - 1) / perBlock;
}

/// Starts a kernel with the pointers `args`.
template <typename... T>
void start(Context &c, Stream stream, const char *name, void (*kernel)(T *...),
           const LaunchShape &shape, Ptrs args);

/// The type itself, but not deduced from an argument.
template <typename T> struct Same {
  using type = T;
};
/// Starts a kernel with these arguments, whatever their types.
template <typename... P>
void startWith(Context &c, Stream stream, const char *name,
               void (*kernel)(P...), const LaunchShape &shape,
               typename Same<P>::type... args);

#ifndef FSDP_CUDA_SHIM
/// `parameters` holds the addresses of the arguments.
void startKernel(Context &c, Stream stream, const char *name,
                 const void *kernel, const LaunchShape &shape,
                 void **parameters);

template <typename... T>
void start(Context &c, Stream stream, const char *name, void (*kernel)(T *...),
           const LaunchShape &shape, Ptrs args) {
  void *parameters[sizeof...(T)];
  for (size_t i = 0; i < sizeof...(T); ++i)
    parameters[i] = const_cast<Ptr *>(args.begin() + i);
  startKernel(c, stream, name, reinterpret_cast<const void *>(kernel), shape,
              parameters);
}

template <typename... P>
void startWith(Context &c, Stream stream, const char *name,
               void (*kernel)(P...), const LaunchShape &shape,
               typename Same<P>::type... args) {
  void *parameters[] = {(void *)(&args)...};
  startKernel(c, stream, name, reinterpret_cast<const void *>(kernel), shape,
              parameters);
}
#endif

/// One thread for some of `size` elements.
constexpr LaunchShape elementsShape(int64_t size) {
  return {blocksOf(size, kElementsPerBlock), kThreads, 1, true};
}
/// One thread per vector of N elements.
constexpr LaunchShape vectorsShape(int64_t size, int neighbours) {
  return {blocksOf(size, int64_t(kThreads) * neighbours), kThreads, 1, true};
}
/// Sixteen threads per row.
constexpr LaunchShape rowsShape(int64_t rows) {
  return {blocksOf(rows, kRowsPerBlock), kThreads, 1, false};
}

} // namespace gpu

/// A kernel with one thread per element, or per vector of neighbours.
template <int Neighbours = 1, typename... T>
void launchElements(Context &c, Stream s, const char *name,
                    void (*kernel)(T *...), int64_t rows, int64_t cols,
                    Ptrs args) {
  gpu::start(c, s, name, kernel,
             Neighbours == 1 ? gpu::elementsShape(rows * cols)
                             : gpu::vectorsShape(rows * cols, Neighbours),
             args);
}

/// A kernel with sixteen threads per row.
template <typename... T>
void launch(Context &c, Stream s, const char *name, void (*kernel)(T *...),
            int64_t rows, int64_t, Ptrs args) {
  gpu::start(c, s, name, kernel, gpu::rowsShape(rows), args);
}

/// A kernel with a block per row.
template <typename... T>
void launchBlocks(Context &c, Stream s, const char *name,
                  void (*kernel)(T *...), int64_t rows, int64_t, Ptrs args) {
  gpu::start(c, s, name, kernel, {rows, gpu::kThreads, 1, false}, args);
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDAKERNELS_H
