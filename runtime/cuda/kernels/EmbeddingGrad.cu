//===- EmbeddingGrad.cu - The gradient of an embedding --------------------===//
//
// Tokens of one class are added in their order, so that sums have the CPU's
// bits. A stable sort of the tokens by class, in one block, puts those of a
// class side by side; then every class is added by itself. Sorting moves a few
// words a token where adding moves a row.
//
//===----------------------------------------------------------------------===//
#include "../Device.h"

#include "fsdp/Target/CudaWorkspaces.h"
#include "runtime/kernels/ShardRows.h"

using namespace fsdp::rt;
using namespace fsdp::rt::device;

//===----------------------------------------------------------------------===//
// Tokens by class
//===----------------------------------------------------------------------===//

namespace fsdp::rt::device {

constexpr int kSortThreads = 512;
constexpr int kDigitBits = 4, kDigits = 1 << kDigitBits;

/// Ids that are no class come after all that are.
FSDP_DEVICE uint32_t classOf(int32_t id, int64_t classes) {
  return uint32_t(id >= 0 && id < classes ? id : classes);
}

/// Replaces every counter by the sum of those before it. All threads of the
/// block call it, each for kDigits counters one after another.
FSDP_DEVICE void sumOfEarlier(uint32_t *counters) {
  __shared__ uint32_t totals[kSortThreads];
  const int t = int(threadIdx.x);
  uint32_t total = 0;
  for (int i = 0; i < kDigits; ++i)
    total += counters[t * kDigits + i];
  totals[t] = total;
  __syncthreads();
  for (int step = 1; step < kSortThreads; step *= 2) {
    const uint32_t before = t >= step ? totals[t - step] : 0;
    __syncthreads();
    totals[t] += before;
    __syncthreads();
  }
  uint32_t sum = totals[t] - total;
  for (int i = 0; i < kDigits; ++i) {
    const uint32_t own = counters[t * kDigits + i];
    counters[t * kDigits + i] = sum;
    sum += own;
  }
  __syncthreads();
}

/// The tokens in order of class, those of one class in their order: a radix
/// sort from the last digit on, `digits` of them. A thread has neighbours, so
/// (digit, thread, place) is the order of a pass. It ends in `order`; `other`
/// has as much room. With `absent`, an id of none is no error.
__global__ void sortTokens(int64_t rows, int64_t classes, int32_t digits,
                           bool absent, const int32_t *ids, uint32_t *order,
                           uint32_t *other, unsigned *flags) {
  __shared__ uint32_t counters[kDigits * kSortThreads];
  const int t = int(threadIdx.x);
  const int64_t each = (rows + kSortThreads - 1) / kSortThreads;
  const int64_t begin = t * each < rows ? t * each : rows;
  const int64_t end = begin + each < rows ? begin + each : rows;
  for (int64_t i = begin; i < end; ++i)
    if (!absent || ids[i] != kAbsentRow)
      inRange(ids[i], classes, kTokenOutOfRange, flags);
  // The last pass writes `order`.
  uint32_t *from = digits % 2 ? other : order;
  uint32_t *to = digits % 2 ? order : other;
  for (int pass = 0; pass < digits; ++pass) {
    auto token = [&](int64_t i) { return pass == 0 ? uint32_t(i) : from[i]; };
    auto digit = [&](uint32_t token) {
      const uint32_t key = classOf(ids[token], classes);
      return key >> (pass * kDigitBits) & (kDigits - 1u);
    };
    for (int d = 0; d < kDigits; ++d)
      counters[d * kSortThreads + t] = 0;
    for (int64_t i = begin; i < end; ++i)
      ++counters[digit(token(i)) * kSortThreads + t];
    __syncthreads();
    sumOfEarlier(counters);
    for (int64_t i = begin; i < end; ++i) {
      const uint32_t moved = token(i);
      to[counters[digit(moved) * kSortThreads + t]++] = moved;
    }
    __syncthreads();
    uint32_t *written = to;
    to = from;
    from = written;
  }
}

} // namespace fsdp::rt::device

//===----------------------------------------------------------------------===//
// Sums of classes
//===----------------------------------------------------------------------===//

namespace fsdp::rt::device {

/// Where the tokens of a class end that begin at `place`. Most classes have
/// few, some very many.
FSDP_DEVICE int64_t endOfClass(int64_t rows, const int32_t *ids,
                               const uint32_t *order, int64_t place) {
  const int32_t id = ids[order[place]];
  auto isOther = [&](int64_t i) { return i >= rows || ids[order[i]] != id; };
  int64_t step = 1;
  while (!isOther(place + step))
    step *= 2;
  int64_t same = place + step / 2, other = place + step;
  while (other - same > 1) {
    const int64_t middle = same + (other - same) / 2;
    (isOther(middle) ? other : same) = middle;
  }
  return other;
}

/// Blocks of columns times places in `order`. The block of the first token of a
/// class adds the rows of all its tokens, in f32, and rounds once; the others
/// have nothing to do. A thread has N columns.
template <typename T, int N>
__global__ void embeddingGradRows(int64_t rows, int64_t classes, int64_t cols,
                                  const int32_t *ids, const uint32_t *order,
                                  const T *dy, T *out) {
  const int64_t perRow = gpu::quotient(cols - 1, gpu::kThreads * N) + 1;
  const int64_t place = gpu::quotient(blockIdx.x, perRow);
  const int32_t id = ids[order[place]];
  if (classOf(id, classes) == classes ||
      (place > 0 && ids[order[place - 1]] == id))
    return;
  const int64_t col =
      ((blockIdx.x - place * perRow) * gpu::kThreads + threadIdx.x) * N;
  if (col >= cols)
    return;
  float total[N] = {};
  const int64_t end = endOfClass(rows, ids, order, place);
  FSDP_UNROLL_BY(4)
  for (int64_t i = place; i < end; ++i) {
    const auto x = gpu::load<N>(dy + order[i] * cols + col);
    FSDP_UNROLL
    for (int k = 0; k < N; ++k)
      total[k] = total[k] + math::widen(x[k]);
  }
  gpu::Vector<T, N> sum;
  FSDP_UNROLL
  for (int k = 0; k < N; ++k)
    math::store(&sum[k], total[k]);
  gpu::store(out + id * cols + col, sum);
}

} // namespace fsdp::rt::device

/// Digits of the numbers up to `classes`.
static int32_t digitsOf(int64_t classes) {
  int32_t digits = 0;
  for (; classes > 0; classes >>= kDigitBits)
    ++digits;
  return digits;
}

template <typename T, int N>
static void addRows(Context &c, Stream stream, int64_t rows, int64_t classes,
                    int64_t cols, Ptr ids, const uint32_t *order, Ptr dy,
                    Ptr out) {
  const int64_t blocks = rows * gpu::blocksOf(cols, gpu::kThreads * N);
  gpu::startWith(c, stream, "embedding_grad", embeddingGradRows<T, N>,
                 {blocks, gpu::kThreads, 1, true}, rows, classes, cols,
                 as<int32_t>(ids), order, as<T>(dy), as<T>(out));
}

void fsdp::rt::embeddingGrad(Context &c, Stream stream, DType type,
                             int64_t rows, int64_t classes, int64_t cols,
                             bool absent, Ptr ids, Ptr dy, Ptr out,
                             Ptr workspace) {
  ObservedCall call(c);
  auto *order = as<uint32_t>(workspace);
  gpu::startWith(c, stream, "embedding_grad", sortTokens,
                 {1, kSortThreads, 1, false}, rows, classes, digitsOf(classes),
                 absent, as<int32_t>(ids), order, order + rows,
                 dataErrorFlags(c));
  fillZero(c, stream, out, classes * cols * sizeOf(type));
  dispatch(type, "embedding", [&](auto tag) {
    using T = decltype(tag);
    constexpr int kNeighbours = 16 / sizeof(T);
    if (areWholeVectors(cols * sizeOf(type), dy, out))
      addRows<T, kNeighbours>(c, stream, rows, classes, cols, ids, order, dy,
                              out);
    else
      addRows<T, 1>(c, stream, rows, classes, cols, ids, order, dy, out);
  });
}
