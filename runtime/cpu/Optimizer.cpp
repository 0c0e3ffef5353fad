//===- Optimizer.cpp - Casts, sums, exact gradient norm, clipping, AdamW --===//
//
// Several tensors in one call. Their elements are one range that is split among
// the threads; every operation is element-wise or an exact integer reduction,
// so neither the split nor the sharding changes a bit.
//
//===----------------------------------------------------------------------===//
#include "CpuContext.h"
#include "runtime/kernels/AdamWScalars.h"
#include "runtime/onednn/Parallel.h"
#include <algorithm>
#include <cmath>

using namespace fsdp::rt;

/// Calls body(tensor, begin, count) for the parts of all tensors, in pieces
/// for the compute threads.
template <typename Body>
static void forEachPart(CpuContext &c, const int64_t *counts, size_t tensors,
                        const Body &body) {
  int64_t total = 0;
  for (size_t t = 0; t < tensors; ++t)
    total += counts[t];
  parallelFor(c.threads, total, 1, 64, [&](int64_t begin, int64_t end, int) {
    int64_t start = 0;
    for (size_t t = 0; t < tensors; start += counts[t++]) {
      int64_t from = std::max(begin - start, int64_t(0));
      int64_t to = std::min(end - start, counts[t]);
      if (from < to)
        body(t, from, to - from);
    }
  });
}

static const float *floats(Ptrs list, size_t i) {
  return reinterpret_cast<const float *>(list.begin()[i]);
}

/// Calls body(kernels, data) with the kernels for the type of tensor i, whose
/// elements from `at` on are the data.
template <typename Body>
static void forType(const DType *types, Ptrs list, size_t i, int64_t at,
                    const Body &body) {
  if (types && types[i] == DType::BF16)
    body(kernels().optimizerBF16,
         reinterpret_cast<const BF16 *>(list.begin()[i]) + at);
  else
    body(kernels().optimizerF32, floats(list, i) + at);
}

void fsdp::rt::narrow(Context &context, Stream stream, const int64_t *counts,
                      Ptrs in, Ptrs out) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "narrow");
  Timeline::Span span(c.timeline, stream, "narrow", int64_t(in.size()));
  forEachPart(c, counts, in.size(), [&](size_t t, int64_t at, int64_t n) {
    BF16 *to = reinterpret_cast<BF16 *>(out.begin()[t]) + at;
    kernels().narrow(floats(in, t) + at, n, to, n, 1, n);
  });
}

void fsdp::rt::accumulate(Context &context, Stream stream,
                          const int64_t *counts, const DType *types, Ptrs sums,
                          Ptrs values) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "accumulate");
  Timeline::Span span(c.timeline, stream, "accumulate", int64_t(sums.size()));
  forEachPart(c, counts, sums.size(), [&](size_t t, int64_t at, int64_t n) {
    float *sum = reinterpret_cast<float *>(sums.begin()[t]) + at;
    forType(types, values, t, at, [&](const auto &kernels, const auto *x) {
      kernels.accumulate(n, sum, x);
    });
  });
}

void fsdp::rt::absMax(Context &context, Stream stream, const int64_t *counts,
                      const DType *types, Ptrs in, Ptr out) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "abs_max");
  Timeline::Span span(c.timeline, stream, "abs_max", int64_t(in.size()));
  std::atomic<uint32_t> largest{0};
  forEachPart(c, counts, in.size(), [&](size_t t, int64_t at, int64_t n) {
    uint32_t bits = 0;
    forType(types, in, t, at, [&](const auto &kernels, const auto *x) {
      bits = kernels.absMaxBits(x, n);
    });
    uint32_t seen = largest.load();
    while (bits > seen && !largest.compare_exchange_weak(seen, bits)) {
    }
  });
  *reinterpret_cast<float *>(out) = math::fromBits(largest.load());
}

/// The exponent of the power of two not below `max`; 0 if there is none.
static int scaleExponent(float max) {
  if (!std::isfinite(max) || max == 0.0f)
    return 0;
  int exponent = 0;
  float mantissa = std::frexp(max, &exponent);
  return mantissa == 0.5f ? exponent - 1 : exponent;
}

void fsdp::rt::sumSquares(Context &context, Stream stream,
                          const int64_t *counts, const DType *types, Ptr max,
                          Ptrs in, Ptr out) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "sum_squares");
  Timeline::Span span(c.timeline, stream, "sum_squares", int64_t(in.size()));
  float largest = *reinterpret_cast<const float *>(max);
  std::atomic<int64_t> high{0}, low{0};
  if (std::isfinite(largest) && largest != 0.0f) {
    double inverse = std::ldexp(1.0, -scaleExponent(largest));
    forEachPart(c, counts, in.size(), [&](size_t t, int64_t at, int64_t n) {
      int64_t sums[2] = {0, 0};
      forType(types, in, t, at, [&](const auto &kernels, const auto *x) {
        kernels.sumSquares(x, n, inverse, sums);
      });
      high += sums[0];
      low += sums[1];
    });
  }
  reinterpret_cast<int64_t *>(out)[0] = high;
  reinterpret_cast<int64_t *>(out)[1] = low;
}

void fsdp::rt::clipCoefficient(Context &context, Stream stream, double maxNorm,
                               int64_t sums, Ptr max, Ptr sum, Ptr norm,
                               Ptr coefficient) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "clip_coefficient");
  float largest = *reinterpret_cast<const float *>(max);
  const auto *digits = reinterpret_cast<const int64_t *>(sum);
  float total = largest;
  if (std::isfinite(largest)) {
    int64_t high = 0, low = 0;
    for (int64_t i = 0; i < sums; ++i) {
      high += digits[2 * i];
      low += digits[2 * i + 1];
    }
    double squares =
        std::ldexp(double(high), -24) + std::ldexp(double(low), -48);
    total = float(std::ldexp(std::sqrt(squares), scaleExponent(largest)));
  }
  *reinterpret_cast<float *>(norm) = total;
  *reinterpret_cast<float *>(coefficient) =
      clipFactor(float(maxNorm), total, std::isfinite(total));
}

namespace {

/// The lists of an AdamW step; `copies` is empty where there are none.
struct AdamWLists {
  Ptrs parameters, firstMoments, secondMoments, copies, gradients;
};

} // namespace

static void update(CpuContext &c, Stream stream, const char *name,
                   const AdamWDesc &d, const int64_t *counts,
                   const DType *types, const AdamWLists &lists, Ptr lr,
                   Ptr step, Ptr coefficient) {
  ComputeCall call(c, stream, name);
  if (std::isnan(*reinterpret_cast<const float *>(coefficient)))
    return;
  size_t tensors = lists.parameters.size();
  Timeline::Span span(c.timeline, stream, name, int64_t(tensors));
  const AdamWStep s =
      adamwScalars(d, *reinterpret_cast<const float *>(lr),
                   *reinterpret_cast<const int32_t *>(step),
                   *reinterpret_cast<const float *>(coefficient));
  forEachPart(c, counts, tensors, [&](size_t i, int64_t begin, int64_t n) {
    auto at = [&](Ptrs list) {
      return reinterpret_cast<float *>(list.begin()[i]) + begin;
    };
    float *p = at(lists.parameters), *m = at(lists.firstMoments),
          *v = at(lists.secondMoments);
    forType(types, lists.gradients, i, begin,
            [&](const auto &kernels, const auto *gradient) {
              if (lists.copies.size() == 0)
                return kernels.adamw(s, n, p, m, v, gradient);
              BF16 *copies =
                  reinterpret_cast<BF16 *>(lists.copies.begin()[i]) + begin;
              kernels.adamwCopy(s, n, p, m, v, copies, gradient);
            });
  });
}

void fsdp::rt::adamw(Context &context, Stream stream, const AdamWDesc &d,
                     const int64_t *counts, const DType *types, Ptrs parameters,
                     Ptrs firstMoments, Ptrs secondMoments, Ptrs gradients,
                     Ptr lr, Ptr step, Ptr coefficient) {
  update(cpuContext(context), stream, "adamw", d, counts, types,
         {parameters, firstMoments, secondMoments, {}, gradients}, lr, step,
         coefficient);
}

void fsdp::rt::adamwCopy(Context &context, Stream stream, const AdamWDesc &d,
                         const int64_t *counts, const DType *types,
                         Ptrs parameters, Ptrs firstMoments, Ptrs secondMoments,
                         Ptrs copies, Ptrs gradients, Ptr lr, Ptr step,
                         Ptr coefficient) {
  update(cpuContext(context), stream, "adamw_copy", d, counts, types,
         {parameters, firstMoments, secondMoments, copies, gradients}, lr, step,
         coefficient);
}
