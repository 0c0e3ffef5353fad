//===- Model.cu - Rotary, embedding, cross entropy ------------------------===//
#include "../Device.h"

#include "runtime/kernels/ShardRows.h"

using namespace fsdp::rt;
using namespace fsdp::rt::device;

//===----------------------------------------------------------------------===//
// Rotary
//===----------------------------------------------------------------------===//

namespace fsdp::rt::device {

struct RotaryShape {
  int64_t sequence, heads, dim;
  bool halves;
  float sign;
};

/// A vector, or for N = 1 single elements, which need not be aligned to more
/// than their size.
template <int N, int Size, typename T>
FSDP_DEVICE gpu::Vector<T, Size> read(const T *p) {
  if constexpr (N > 1) {
    return gpu::load<Size>(p);
  } else {
    gpu::Vector<T, Size> x;
    for (int i = 0; i < Size; ++i)
      x[i] = p[i];
    return x;
  }
}
template <int N, int Size, typename T>
FSDP_DEVICE void write(T *p, const gpu::Vector<T, Size> &x) {
  if constexpr (N > 1)
    gpu::store(p, x);
  else
    for (int i = 0; i < Size; ++i)
      p[i] = x[i];
}

template <typename T>
FSDP_DEVICE void rotate(T first, T second, float cosine, float sine, T &x,
                        T &y) {
  const float a = math::widen(first), b = math::widen(second);
  // Fused as on the CPU.
  math::store(&x, math::fma(a, cosine, -(b * sine)));
  math::store(&y, math::fma(a, sine, b * cosine));
}

/// What a thread has: N neighbouring pairs, from `pair` on, of head `head` of
/// `token`. A row is a head of a token.
struct HeadPairs {
  int64_t row, pair, token, head;
};
template <int N>
FSDP_DEVICE HeadPairs headPairs(int64_t heads, int64_t dim) {
  const int64_t unit = int64_t(blockIdx.x) * gpu::kThreads + threadIdx.x;
  const int64_t units = dim / 2 / N, row = gpu::quotient(unit, units);
  const int64_t token = gpu::quotient(row, heads);
  return {row, (unit - row * units) * N, token, row - token * heads};
}

/// Rotates the pairs `p` of the head at `x` to the head at `y`.
template <int N, typename T>
FSDP_DEVICE void rotateHead(const RotaryShape &s, const HeadPairs &p,
                            const float *table, const T *x, T *y) {
  const int64_t place =
      p.token - gpu::quotient(p.token, s.sequence) * s.sequence;
  const auto angle = read<N, 2 * N>(table + place * s.dim + 2 * p.pair);
  if (s.halves) {
    const int64_t half = s.dim / 2;
    const auto a = read<N, N>(x + p.pair), b = read<N, N>(x + p.pair + half);
    gpu::Vector<T, N> c, d;
    FSDP_UNROLL
    for (int i = 0; i < N; ++i)
      rotate(a[i], b[i], angle[2 * i], angle[2 * i + 1] * s.sign, c[i], d[i]);
    write<N>(y + p.pair, c);
    write<N>(y + p.pair + half, d);
    return;
  }
  const auto a = read<N, 2 * N>(x + 2 * p.pair);
  gpu::Vector<T, 2 * N> b;
  FSDP_UNROLL
  for (int i = 0; i < N; ++i)
    rotate(a[2 * i], a[2 * i + 1], angle[2 * i], angle[2 * i + 1] * s.sign,
           b[2 * i], b[2 * i + 1]);
  write<N>(y + 2 * p.pair, b);
}

template <typename T, int N>
__global__ void rotaryPairs(int64_t rows, RotaryShape s, const T *x,
                            const float *table, T *y) {
  const HeadPairs p = headPairs<N>(s.heads, s.dim);
  if (p.row < rows)
    rotateHead<N>(s, p, table, x + p.row * s.dim, y + p.row * s.dim);
}

/// The head of q, k or v that is head `p.head` of all, and whether it is one of
/// v. `s.heads` are those of q.
template <typename T>
FSDP_DEVICE T *partOf(const RotaryShape &s, int64_t kvHeads, const HeadPairs &p,
                      T *q, T *k, T *v, bool &isValue) {
  const int64_t key = p.head - s.heads, value = key - kvHeads;
  isValue = value >= 0;
  if (key < 0)
    return q + (p.token * s.heads + p.head) * s.dim;
  return (isValue ? v : k) +
         (p.token * kvHeads + (isValue ? value : key)) * s.dim;
}

template <typename T, int N>
__global__ void splitHeadPairs(int64_t rows, RotaryShape s, int64_t kvHeads,
                               const T *x, const float *table, T *q, T *k,
                               T *v) {
  const HeadPairs p = headPairs<N>(s.heads + 2 * kvHeads, s.dim);
  if (p.row >= rows)
    return;
  bool isValue;
  T *part = partOf(s, kvHeads, p, q, k, v, isValue);
  x += p.row * s.dim;
  if (isValue)
    write<N>(part + 2 * p.pair, read<N, 2 * N>(x + 2 * p.pair));
  else
    rotateHead<N>(s, p, table, x, part);
}

template <typename T, int N>
__global__ void joinHeadPairs(int64_t rows, RotaryShape s, int64_t kvHeads,
                              const T *q, const T *k, const T *v,
                              const float *table, T *x) {
  const HeadPairs p = headPairs<N>(s.heads + 2 * kvHeads, s.dim);
  if (p.row >= rows)
    return;
  bool isValue;
  const T *part = partOf(s, kvHeads, p, q, k, v, isValue);
  x += p.row * s.dim;
  if (isValue)
    write<N>(x + 2 * p.pair, read<N, 2 * N>(part + 2 * p.pair));
  else
    rotateHead<N>(s, p, table, part, x);
}

} // namespace fsdp::rt::device

/// Calls launch(type tag, pairs that a thread has, as a constant).
template <typename Launch, typename... P>
static void launchHeads(DType type, const char *name, int64_t headDim,
                        const Launch &launch, P... buffers) {
  dispatch(type, name, [&](auto tag) {
    using T = decltype(tag);
    constexpr int kPairs = 16 / sizeof(T);
    if (areWholeVectors(headDim / 2 * int64_t(sizeof(T)), buffers...))
      launch(tag, std::integral_constant<int, kPairs>());
    else
      launch(tag, std::integral_constant<int, 1>());
  });
}

void fsdp::rt::rotary(Context &c, Stream stream, DType type, int64_t batch,
                      int64_t sequence, int64_t heads, int64_t headDim,
                      bool halves, bool inverse, Ptr x, Ptr table, Ptr y) {
  int64_t rows = batch * sequence * heads;
  RotaryShape shape{sequence, heads, headDim, halves, inverse ? -1.0f : 1.0f};
  auto launch = [&](auto tag, auto pairs) {
    using T = decltype(tag);
    const int64_t threads = rows * (headDim / 2 / pairs);
    gpu::startWith(c, stream, "rotary", rotaryPairs<T, pairs>,
                   gpu::vectorsShape(threads, 1), rows, shape, as<T>(x),
                   as<float>(table), as<T>(y));
  };
  launchHeads(type, "rotary", headDim, launch, x, table, y);
}

void fsdp::rt::splitHeads(Context &c, Stream stream, DType type, int64_t batch,
                          int64_t sequence, int64_t heads, int64_t kvHeads,
                          int64_t headDim, bool halves, Ptr x, Ptr table, Ptr q,
                          Ptr k, Ptr v) {
  int64_t rows = batch * sequence * (heads + 2 * kvHeads);
  RotaryShape shape{sequence, heads, headDim, halves, 1.0f};
  auto launch = [&](auto tag, auto pairs) {
    using T = decltype(tag);
    const int64_t threads = rows * (headDim / 2 / pairs);
    gpu::startWith(c, stream, "split_heads", splitHeadPairs<T, pairs>,
                   gpu::vectorsShape(threads, 1), rows, shape, kvHeads,
                   as<T>(x), as<float>(table), as<T>(q), as<T>(k), as<T>(v));
  };
  launchHeads(type, "split_heads", headDim, launch, x, table, q, k, v);
}

void fsdp::rt::joinHeads(Context &c, Stream stream, DType type, int64_t batch,
                         int64_t sequence, int64_t heads, int64_t kvHeads,
                         int64_t headDim, bool halves, Ptr q, Ptr k, Ptr v,
                         Ptr table, Ptr x) {
  int64_t rows = batch * sequence * (heads + 2 * kvHeads);
  RotaryShape shape{sequence, heads, headDim, halves, -1.0f};
  auto launch = [&](auto tag, auto pairs) {
    using T = decltype(tag);
    const int64_t threads = rows * (headDim / 2 / pairs);
    gpu::startWith(c, stream, "join_heads", joinHeadPairs<T, pairs>,
                   gpu::vectorsShape(threads, 1), rows, shape, kvHeads,
                   as<T>(q), as<T>(k), as<T>(v), as<float>(table), as<T>(x));
  };
  launchHeads(type, "join_heads", headDim, launch, q, k, v, table, x);
}

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

namespace fsdp::rt::device {

/// A thread has N columns of a row. Negative zero is what a sum with any number
/// leaves alone, also with a zero of either sign.
template <typename T, int N>
__global__ void embeddingRows(int64_t rows, int64_t classes, int64_t cols,
                              bool absent, const int32_t *ids, const T *table,
                              T *out, unsigned *flags) {
  gpu::packets<N>(rows, cols, [&](int64_t row, int64_t col) {
    const int64_t id = ids[row];
    gpu::Vector<T, N> x = {};
    if (absent && id == kAbsentRow) {
      FSDP_UNROLL
      for (int k = 0; k < N; ++k)
        math::store(&x[k], -0.0f);
    } else if (inRange(id, classes, kTokenOutOfRange, flags)) {
      x = gpu::load<N>(table + id * cols + col);
    }
    gpu::store(out + row * cols + col, x);
  });
}

__global__ void shardRows(int64_t count, int64_t classes, ShardRows shard,
                          const int32_t *ids, int32_t *out, unsigned *flags) {
  gpu::elements(count, 1, [&](int64_t i, int64_t) {
    out[i] = inRange(ids[i], classes, kTokenOutOfRange, flags)
                 ? rowOfShard(shard, ids[i], gpu::quotient(i, shard.each))
                 : kAbsentRow;
  });
}

} // namespace fsdp::rt::device

void fsdp::rt::embedding(Context &c, Stream stream, DType type, int64_t rows,
                         int64_t classes, int64_t cols, bool absent, Ptr ids,
                         Ptr table, Ptr out) {
  dispatch(type, "embedding", [&](auto tag) {
    using T = decltype(tag);
    auto launch = [&](auto kernel, int columns) {
      gpu::startWith(c, stream, "embedding", kernel,
                     gpu::vectorsShape(rows * cols, columns), rows, classes,
                     cols, absent, as<int32_t>(ids), as<T>(table), as<T>(out),
                     dataErrorFlags(c));
    };
    constexpr int kColumns = 16 / sizeof(T);
    if (areWholeVectors(cols * sizeOf(type), table, out))
      launch(embeddingRows<T, kColumns>, kColumns);
    else
      launch(embeddingRows<T, 1>, 1);
  });
}

void fsdp::rt::rowsOfShard(Context &c, Stream stream, int group, int64_t count,
                           int64_t classes, bool byRank, Ptr ids, Ptr out) {
  const Coordinate place = placeIn(c, group);
  gpu::startWith(
      c, stream, "rows_of_shard", shardRows, gpu::elementsShape(count), count,
      classes, ShardRows::of(place.index, place.count, count, classes, byRank),
      as<int32_t>(ids), as<int32_t>(out), dataErrorFlags(c));
}

//===----------------------------------------------------------------------===//
// Cross entropy
//===----------------------------------------------------------------------===//

namespace fsdp::rt::device {

/// Whether the row's target is a label. One thread of the row `notes` an error.
FSDP_DEVICE bool isLabel(int32_t target, int64_t ignoreIndex, int64_t classes,
                         bool notes, unsigned *flags) {
  if (target == ignoreIndex)
    return false;
  return notes ? inRange(target, classes, kTargetOutOfRange, flags)
               : target >= 0 && target < classes;
}

/// The logits that a thread takes at a time, and those of a block.
template <typename T> constexpr int kLogits = 16 / sizeof(T);
template <typename T> constexpr int kLogitsOfBlock = kLogits<T> * gpu::kThreads;

/// body(Count, first column) for this thread's columns of a row, vectors of
/// them if the row is `aligned`.
template <int N, typename Body>
FSDP_DEVICE void columnsOfBlock(int64_t cols, bool aligned, const Body &body) {
  const int64_t whole = aligned ? cols - cols % N : 0;
  for (int64_t j = int64_t(threadIdx.x) * N; j < whole; j += gpu::kThreads * N)
    body(gpu::Count<N>(), j);
  for (int64_t j = whole + threadIdx.x; j < cols; j += gpu::kThreads)
    body(gpu::Count<1>(), j);
}

/// The sum of e^(x - m), for all threads of the row's block.
template <typename T>
FSDP_DEVICE float sumOfExponents(int64_t classes, bool aligned, const T *x,
                                 float m) {
  return math::sumOfParts<kLogitsOfBlock<T>>(
      classes, [&](int64_t top, int64_t n, float *terms) {
        columnsOfBlock<kLogits<T>>(n, aligned, [&](auto count, int64_t j) {
          const auto logits = gpu::load<count.value>(x + top + j);
          FSDP_UNROLL
          for (int i = 0; i < count.value; ++i)
            terms[j + i] = math::exp(math::widen(logits[i]) - m);
        });
      });
}

/// A block has a row.
template <typename T>
__global__ void crossEntropyRows(int64_t rows, int64_t classes,
                                 int64_t ignoreIndex, const T *logits,
                                 const int32_t *targets, float *losses,
                                 float *lse, unsigned *flags) {
  const int64_t row = blockIdx.x;
  const T *x = logits + row * classes;
  const bool aligned = gpu::areVectorAligned(x);
  float mine = math::MaxRows::start;
  columnsOfBlock<kLogits<T>>(classes, aligned, [&](auto count, int64_t j) {
    const auto some = gpu::load<count.value>(x + j);
    FSDP_UNROLL
    for (int i = 0; i < count.value; ++i)
      mine = math::max(mine, math::widen(some[i]));
  });
  const float m = math::maxOfBlock(mine);
  const float s = sumOfExponents(classes, aligned, x, m);
  if (threadIdx.x != 0)
    return;
  const float total = m + math::log(s);
  const int32_t target = targets[row];
  lse[row] = total;
  losses[row] = isLabel(target, ignoreIndex, classes, true, flags)
                    ? total - math::widen(x[target])
                    : 0.0f;
}

} // namespace fsdp::rt::device

void fsdp::rt::crossEntropy(Context &c, Stream stream, DType type, int64_t rows,
                            int64_t classes, int64_t ignoreIndex, Ptr logits,
                            Ptr targets, Ptr losses, Ptr lse) {
  dispatch(type, "cross entropy", [&](auto tag) {
    using T = decltype(tag);
    gpu::startWith(c, stream, "cross_entropy", crossEntropyRows<T>,
                   {rows, gpu::kThreads, 1, false}, rows, classes, ignoreIndex,
                   as<T>(logits), as<int32_t>(targets), as<float>(losses),
                   as<float>(lse), dataErrorFlags(c));
  });
}

namespace fsdp::rt::device {

/// A block has a row.
template <typename T>
__global__ void
crossEntropyGradRows(int64_t rows, int64_t classes, int64_t ignoreIndex,
                     const T *logits, const int32_t *targets, const float *lse,
                     const float *dlosses, T *out, unsigned *flags) {
  const int64_t row = blockIdx.x;
  const float g = dlosses[row], total = lse[row];
  const int32_t target = targets[row];
  const bool counts =
      isLabel(target, ignoreIndex, classes, threadIdx.x == 0, flags);
  const T *x = logits + row * classes;
  T *to = out + row * classes;
  const bool aligned = gpu::areVectorAligned(x, to);
  columnsOfBlock<kLogits<T>>(classes, aligned, [&](auto count, int64_t j) {
    const auto some = gpu::load<count.value>(x + j);
    gpu::Vector<T, count.value> gradient;
    FSDP_UNROLL
    for (int i = 0; i < count.value; ++i) {
      const float p = math::exp(math::widen(some[i]) - total);
      const float d = (j + i == target ? p - 1.0f : p) * g;
      math::store(&gradient[i], counts ? d : 0.0f);
    }
    gpu::store(to + j, gradient);
  });
}

} // namespace fsdp::rt::device

void fsdp::rt::crossEntropyGrad(Context &c, Stream stream, DType type,
                                int64_t rows, int64_t classes,
                                int64_t ignoreIndex, Ptr logits, Ptr targets,
                                Ptr lse, Ptr dlosses, Ptr out) {
  dispatch(type, "cross entropy", [&](auto tag) {
    using T = decltype(tag);
    gpu::startWith(c, stream, "cross_entropy_grad", crossEntropyGradRows<T>,
                   {rows, gpu::kThreads, 1, true}, rows, classes, ignoreIndex,
                   as<T>(logits), as<int32_t>(targets), as<float>(lse),
                   as<float>(dlosses), as<T>(out), dataErrorFlags(c));
  });
}

namespace fsdp::rt::device {

/// Adds the labels of this block to `count`: integers, so the order of the
/// blocks does not matter.
__global__ void labelsOfBlock(int64_t rows, int64_t ignoreIndex,
                              const int32_t *targets,
                              unsigned long long *count) {
  __shared__ unsigned labels;
  if (threadIdx.x == 0)
    labels = 0;
  __syncthreads();
  unsigned mine = 0;
  gpu::elements(rows, 1, [&](int64_t row, int64_t) {
    mine += targets[row] != ignoreIndex;
  });
  atomicAdd(&labels, mine);
  __syncthreads();
  if (threadIdx.x == 0)
    atomicAdd(count, (unsigned long long)(labels));
}

} // namespace fsdp::rt::device

void fsdp::rt::countLabels(Context &c, Stream stream, int64_t rows,
                           int64_t parts, int64_t ignoreIndex, Ptr targets,
                           Ptr counts) {
  ObservedCall call(c);
  fillZero(c, stream, counts, parts * int64_t(sizeof(int64_t)));
  int64_t each = rows / parts;
  // The threads of a block wait for each other.
  gpu::LaunchShape shape = gpu::elementsShape(each);
  shape.independent = false;
  // A rank counts one part, its own; more of them only where nothing is split.
  for (int64_t part = 0; part < parts; ++part)
    gpu::startWith(c, stream, "count_labels", labelsOfBlock, shape, each,
                   ignoreIndex, as<int32_t>(targets) + part * each,
                   as<unsigned long long>(counts) + part);
}
