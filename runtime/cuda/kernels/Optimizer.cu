//===- Optimizer.cu - Casts, sums, exact gradient norm, clipping, AdamW ---===//
//
// Several tensors in one launch. Every operation is element-wise or an exact
// integer reduction, so the split into blocks changes no bit.
//
//===----------------------------------------------------------------------===//
// First: it makes math functions run on a GPU.
#include "../Device.h"

#include "runtime/kernels/AdamWScalars.h"
#include <algorithm>

using namespace fsdp::rt;
using namespace fsdp::rt::device;

namespace fsdp::rt::device {

/// Tensors of one launch; a kernel's parameters may have 4 KiB.
constexpr int kTensors = 48;
constexpr int64_t kElements = 16 * gpu::kThreads; // of one block

/// `Lists` pointers per tensor, the last of them to bf16 if isNarrow says so;
/// tensor i has the blocks from firstBlock[i] on.
template <int Lists> struct Tensors {
  int count = 0;
  int64_t elements[kTensors], firstBlock[kTensors + 1];
  float *data[Lists][kTensors];
  bool isNarrow[kTensors];
};

/// Neighbours of the last list, widened.
template <int N, int Lists>
FSDP_DEVICE gpu::Vector<float, N> loadLast(const Tensors<Lists> &t, int tensor,
                                           int64_t first) {
  const float *data = t.data[Lists - 1][tensor];
  if (!t.isNarrow[tensor])
    return gpu::load<N>(data + first);
  const auto narrow =
      gpu::load<N>(reinterpret_cast<const BF16 *>(data) + first);
  gpu::Vector<float, N> wide;
  FSDP_UNROLL
  for (int i = 0; i < N; ++i)
    wide[i] = math::widen(narrow[i]);
  return wide;
}

/// Floats that a thread takes at a time.
constexpr int kVector = 4;

/// Calls body(Count, tensor, first element) for the elements of this thread in
/// a block: vectors, and single ones at the end of a tensor or where one of its
/// lists begins within 16 bytes.
template <int N = kVector, int Lists, typename Body>
FSDP_DEVICE void forElementsOf(int64_t block, const Tensors<Lists> &t,
                               const Body &body) {
  int tensor = 0;
  while (block >= t.firstBlock[tensor + 1])
    ++tensor;
  const int64_t begin = (block - t.firstBlock[tensor]) * kElements;
  const int64_t left = t.elements[tensor] - begin;
  const int64_t end = begin + (left < kElements ? left : kElements);
  bool aligned = true;
  for (int l = 0; l < Lists; ++l)
    aligned &= gpu::areVectorAligned(t.data[l][tensor]);
  const int64_t whole = aligned ? end - (end - begin) % N : begin;
  for (int64_t i = begin + threadIdx.x * N; i < whole; i += gpu::kThreads * N)
    body(gpu::Count<N>(), tensor, i);
  for (int64_t i = whole + threadIdx.x; i < end; i += gpu::kThreads)
    body(gpu::Count<1>(), tensor, i);
}
template <int N = kVector, int Lists, typename Body>
FSDP_DEVICE void forElements(const Tensors<Lists> &t, const Body &body) {
  forElementsOf<N>(blockIdx.x, t, body);
}

/// Blocks that are launched at most, several for each multiprocessor, where each
/// does something once: a reduction gives its result to the other blocks', the
/// optimizer computes what all elements share. Each takes every so many of the
/// blocks that there are.
constexpr int64_t kMostBlocks = 1024;

/// The same for the elements of this thread in all blocks that are its own,
/// of which `launched` run.
template <int Lists, typename Body>
FSDP_DEVICE void forAllElements(const Tensors<Lists> &t, int64_t launched,
                                const Body &body) {
  for (int64_t b = blockIdx.x; b < t.firstBlock[t.count]; b += launched)
    forElementsOf(b, t, body);
}

} // namespace fsdp::rt::device

/// Calls launch(tensors, shape) for as many tensors at a time as fit. `types`
/// are those of the last list.
template <int Lists, typename Launch>
static void forTensors(const int64_t *counts, const DType *types,
                       const Ptrs (&lists)[Lists], const Launch &launch) {
  size_t size = lists[0].size();
  for (size_t begin = 0; begin < size; begin += kTensors) {
    Tensors<Lists> t{};
    t.firstBlock[0] = 0;
    for (size_t i = begin; i < size && t.count < kTensors; ++i, ++t.count) {
      t.elements[t.count] = counts[i];
      t.firstBlock[t.count + 1] =
          t.firstBlock[t.count] + gpu::blocksOf(counts[i], kElements);
      for (int l = 0; l < Lists; ++l)
        t.data[l][t.count] = as<float>(lists[l].begin()[i]);
      t.isNarrow[t.count] = types && types[i] == DType::BF16;
    }
    int64_t blocks = t.firstBlock[t.count];
    if (blocks > 0)
      launch(t, gpu::LaunchShape{blocks, gpu::kThreads, 1, false});
  }
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

namespace fsdp::rt::device {

/// Lists: what is rounded, and where it goes.
__global__ void narrowElements(Tensors<2> t) {
  forElements<8>(t, [&](auto count, int tensor, int64_t first) {
    const auto wide = gpu::load<count.value>(t.data[0][tensor] + first);
    gpu::Vector<BF16, count.value> narrow;
    FSDP_UNROLL
    for (int i = 0; i < count.value; ++i)
      math::store(&narrow[i], wide[i]);
    gpu::store(reinterpret_cast<BF16 *>(t.data[1][tensor]) + first, narrow);
  });
}

} // namespace fsdp::rt::device

void fsdp::rt::narrow(Context &c, Stream stream, const int64_t *counts, Ptrs in,
                      Ptrs out) {
  ObservedCall call(c);
  forTensors<2>(counts, /*types=*/nullptr, {in, out},
                [&](const Tensors<2> &t, const gpu::LaunchShape &shape) {
                  gpu::startWith(c, stream, "narrow", narrowElements, shape, t);
                });
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

namespace fsdp::rt::device {

/// Lists: sums, and what is added to them.
__global__ void addElements(Tensors<2> t) {
  forElements(t, [&](auto count, int tensor, int64_t first) {
    constexpr int n = count.value;
    auto sum = gpu::load<n>(t.data[0][tensor] + first);
    const auto x = loadLast<n>(t, tensor, first);
    FSDP_UNROLL
    for (int i = 0; i < n; ++i)
      sum[i] = sum[i] + x[i];
    gpu::store(t.data[0][tensor] + first, sum);
  });
}

} // namespace fsdp::rt::device

void fsdp::rt::accumulate(Context &c, Stream stream, const int64_t *counts,
                          const DType *types, Ptrs sums, Ptrs values) {
  ObservedCall call(c);
  forTensors<2>(counts, types, {sums, values},
                [&](const Tensors<2> &t, const gpu::LaunchShape &shape) {
                  gpu::startWith(c, stream, "accumulate", addElements, shape,
                                 t);
                });
}

//===----------------------------------------------------------------------===//
// Largest absolute value
//===----------------------------------------------------------------------===//

namespace fsdp::rt::device {

/// The order of absolute values of floats is that of their bits, and a NaN is
/// above infinity.
__global__ void absMaxBits(Tensors<1> t, int64_t launched, unsigned *out) {
  __shared__ unsigned largest;
  if (threadIdx.x == 0)
    largest = 0;
  __syncthreads();
  unsigned mine = 0;
  forAllElements(t, launched, [&](auto count, int tensor, int64_t first) {
    const auto x = loadLast<count.value>(t, tensor, first);
    FSDP_UNROLL
    for (int i = 0; i < count.value; ++i) {
      const unsigned bits = math::bitsOf(x[i]) & 0x7fffffffu;
      mine = bits > mine ? bits : mine;
    }
  });
  atomicMax(&largest, mine);
  __syncthreads();
  if (threadIdx.x == 0)
    atomicMax(out, largest);
}

} // namespace fsdp::rt::device

void fsdp::rt::absMax(Context &c, Stream stream, const int64_t *counts,
                      const DType *types, Ptrs in, Ptr out) {
  ObservedCall call(c);
  fillZero(c, stream, out, sizeof(float));
  forTensors<1>(counts, types, {in},
                [&](const Tensors<1> &t, gpu::LaunchShape shape) {
                  shape.blocks = std::min(shape.blocks, kMostBlocks);
                  gpu::startWith(c, stream, "abs_max", absMaxBits, shape, t,
                                 shape.blocks, as<unsigned>(out));
                });
}

//===----------------------------------------------------------------------===//
// Sum of squares
//===----------------------------------------------------------------------===//

namespace fsdp::rt::device {

FSDP_DEVICE bool isFinite(float x) {
  return (math::bitsOf(x) & 0x7f800000u) != 0x7f800000u;
}

/// 2^exponent, for a normal result.
FSDP_DEVICE double powerOfTwo(int exponent) {
  const uint64_t bits = uint64_t(exponent + 1023) << 52;
  double x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

/// The exponent of the power of two not below `max`; 0 if there is none.
FSDP_DEVICE int scaleExponent(float max) {
  if (!isFinite(max) || max == 0.0f)
    return 0;
  // As f64 every float is normal.
  const double wide = max;
  uint64_t bits;
  __builtin_memcpy(&bits, &wide, sizeof bits);
  const int exponent = int(bits >> 52 & 0x7ff) - 1023;
  const bool isPower = (bits & 0xfffffffffffffu) == 0;
  return isPower ? exponent : exponent + 1;
}

/// floor((x / 2^exponent)^2 * 2^48), for x that is no larger than 2^exponent.
/// x is a mantissa of 24 bits times a power of two, so that is the mantissa's
/// square without the bits that are below. Where 2^exponent is no normal
/// number, mantissas are short, and their squares move up.
FSDP_DEVICE unsigned long long squareAtScale(float x, int exponent) {
  const uint32_t bits = math::bitsOf(x);
  const int field = int(bits >> 23 & 0xffu);
  const uint32_t mantissa = (bits & 0x7fffffu) | (field > 0 ? 0x800000u : 0u);
  const int down = 2 * (127 + exponent - (field > 0 ? field : 1));
  const unsigned long long square = (unsigned long long)(mantissa)*mantissa
                                    << 2;
  return down < 0 ? square << -down : down < 64 ? square >> down : 0;
}

using Digits = unsigned long long;

/// The sum of a block's numbers, for its first thread. No atomics: there are
/// none for 64 bits in shared memory, and loops of compare-and-swap spin.
FSDP_DEVICE Digits totalOfBlock(Digits mine) {
  __shared__ Digits ofWarp[gpu::kThreads / 32];
  for (int step = 16; step > 0; step /= 2)
    mine += __shfl_xor_sync(0xffffffffu, mine, step, 32);
  __syncthreads(); // a total before this one has been read
  if (threadIdx.x % 32 == 0)
    ofWarp[threadIdx.x / 32] = mine;
  __syncthreads();
  Digits total = 0;
  if (threadIdx.x == 0)
    for (int warp = 0; warp < gpu::kThreads / 32; ++warp)
      total += ofWarp[warp];
  return total;
}

/// Adds the two 24-bit digits of each (x / scale)^2 to sums[0] and sums[1]:
/// exact integers, so the order does not matter.
__global__ void squareDigits(Tensors<1> t, int64_t launched, const float *max,
                             Digits *sums) {
  Digits high = 0, low = 0;
  if (isFinite(*max) && *max != 0.0f) {
    const int exponent = scaleExponent(*max);
    forAllElements(t, launched, [&](auto count, int tensor, int64_t first) {
      const auto x = loadLast<count.value>(t, tensor, first);
      FSDP_UNROLL
      for (int i = 0; i < count.value; ++i) {
        const Digits square = squareAtScale(x[i], exponent);
        high += square >> 24;
        low += square & 0xffffffu;
      }
    });
  }
  const Digits allHigh = totalOfBlock(high), allLow = totalOfBlock(low);
  if (threadIdx.x == 0) {
    atomicAdd(sums, allHigh);
    atomicAdd(sums + 1, allLow);
  }
}

} // namespace fsdp::rt::device

void fsdp::rt::sumSquares(Context &c, Stream stream, const int64_t *counts,
                          const DType *types, Ptr max, Ptrs in, Ptr out) {
  ObservedCall call(c);
  fillZero(c, stream, out, 2 * sizeof(int64_t));
  forTensors<1>(
      counts, types, {in}, [&](const Tensors<1> &t, gpu::LaunchShape shape) {
        shape.blocks = std::min(shape.blocks, kMostBlocks);
        gpu::startWith(c, stream, "sum_squares", squareDigits, shape, t,
                       shape.blocks, as<float>(max), as<Digits>(out));
      });
}

//===----------------------------------------------------------------------===//
// Clipping
//===----------------------------------------------------------------------===//

namespace fsdp::rt::device {

__global__ void finishNorm(float maxNorm, int64_t sums, const float *max,
                           const int64_t *digits, float *norm,
                           float *coefficient) {
  if (threadIdx.x != 0)
    return;
  float total = *max;
  if (isFinite(*max)) {
    int64_t high = 0, low = 0;
    for (int64_t i = 0; i < sums; ++i) {
      high += digits[2 * i];
      low += digits[2 * i + 1];
    }
    const double squares =
        double(high) * powerOfTwo(-24) + double(low) * powerOfTwo(-48);
    total = float(__builtin_sqrt(squares) * powerOfTwo(scaleExponent(*max)));
  }
  *norm = total;
  *coefficient = clipFactor(maxNorm, total, isFinite(total));
}

} // namespace fsdp::rt::device

void fsdp::rt::clipCoefficient(Context &c, Stream stream, double maxNorm,
                               int64_t sums, Ptr max, Ptr sum, Ptr norm,
                               Ptr coefficient) {
  gpu::startWith(c, stream, "clip_coefficient", finishNorm, {1, 32, 1, true},
                 float(maxNorm), sums, as<float>(max), as<int64_t>(sum),
                 as<float>(norm), as<float>(coefficient));
}

//===----------------------------------------------------------------------===//
// AdamW
//===----------------------------------------------------------------------===//

namespace fsdp::rt::device {

/// Lists: parameters, first moments, second moments, copies if there are five,
/// gradients.
template <int Lists>
FSDP_DEVICE void updateTensors(const Tensors<Lists> &t, int64_t launched,
                               const AdamWDesc &d, const float *lr,
                               const int32_t *step, const float *coefficient) {
  __shared__ AdamWStep s;
  if (*coefficient != *coefficient)
    return;
  // f64 is slow: once per block.
  if (threadIdx.x == 0)
    s = adamwScalars(d, *lr, *step, *coefficient);
  __syncthreads();
  forAllElements(t, launched, [&](auto count, int tensor, int64_t at) {
    constexpr int n = count.value;
    auto parameter = gpu::load<n>(t.data[0][tensor] + at);
    auto first = gpu::load<n>(t.data[1][tensor] + at);
    auto second = gpu::load<n>(t.data[2][tensor] + at);
    const auto gradient = loadLast<n>(t, tensor, at);
    FSDP_UNROLL
    for (int i = 0; i < n; ++i) {
      const float g = gradient[i] * s.coefficient;
      const float p = parameter[i] - s.decay * parameter[i];
      first[i] = first[i] + (g - first[i]) * s.oneMinusBeta1;
      second[i] = second[i] * s.beta2 + g * g * s.oneMinusBeta2;
      const float denominator = math::sqrt(second[i]) / s.rootBias2 + s.eps;
      parameter[i] = p - s.stepSize * first[i] / denominator;
    }
    gpu::store(t.data[0][tensor] + at, parameter);
    gpu::store(t.data[1][tensor] + at, first);
    gpu::store(t.data[2][tensor] + at, second);
    if constexpr (Lists == 5) {
      gpu::Vector<BF16, n> copy;
      FSDP_UNROLL
      for (int i = 0; i < n; ++i)
        math::store(&copy[i], parameter[i]);
      gpu::store(reinterpret_cast<BF16 *>(t.data[3][tensor]) + at, copy);
    }
  });
}

__global__ void adamwStep(Tensors<4> t, int64_t launched, AdamWDesc d,
                          const float *lr, const int32_t *step,
                          const float *coefficient) {
  updateTensors(t, launched, d, lr, step, coefficient);
}

__global__ void adamwCopyStep(Tensors<5> t, int64_t launched, AdamWDesc d,
                              const float *lr, const int32_t *step,
                              const float *coefficient) {
  updateTensors(t, launched, d, lr, step, coefficient);
}

} // namespace fsdp::rt::device

void fsdp::rt::adamw(Context &c, Stream stream, const AdamWDesc &d,
                     const int64_t *counts, const DType *types, Ptrs parameters,
                     Ptrs firstMoments, Ptrs secondMoments, Ptrs gradients,
                     Ptr lr, Ptr step, Ptr coefficient) {
  ObservedCall call(c);
  forTensors<4>(counts, types,
                {parameters, firstMoments, secondMoments, gradients},
                [&](const Tensors<4> &t, gpu::LaunchShape shape) {
                  shape.blocks = std::min(shape.blocks, kMostBlocks);
                  gpu::startWith(c, stream, "adamw", adamwStep, shape, t,
                                 shape.blocks, d, as<float>(lr),
                                 as<int32_t>(step), as<float>(coefficient));
                });
}

void fsdp::rt::adamwCopy(Context &c, Stream stream, const AdamWDesc &d,
                         const int64_t *counts, const DType *types,
                         Ptrs parameters, Ptrs firstMoments, Ptrs secondMoments,
                         Ptrs copies, Ptrs gradients, Ptr lr, Ptr step,
                         Ptr coefficient) {
  ObservedCall call(c);
  forTensors<5>(counts, types,
                {parameters, firstMoments, secondMoments, copies, gradients},
                [&](const Tensors<5> &t, gpu::LaunchShape shape) {
                  shape.blocks = std::min(shape.blocks, kMostBlocks);
                  gpu::startWith(c, stream, "adamw_copy", adamwCopyStep, shape,
                                 t, shape.blocks, d, as<float>(lr),
                                 as<int32_t>(step), as<float>(coefficient));
                });
}
