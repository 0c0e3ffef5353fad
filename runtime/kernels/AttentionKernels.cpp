//===- AttentionKernels.cpp - The pointwise part of attention -------------===//
#include "Isa.h"

using namespace fsdp::rt;

namespace {

/// Columns of row `i` that the query may see, and may no longer see.
inline int64_t visible(const ScoreBlock &b, int64_t i) {
  int64_t n = b.query + i - b.key + 1;
  return !b.causal || n > b.cols ? b.cols : n;
}
inline int64_t passed(const ScoreBlock &b, int64_t i) {
  int64_t own = b.query + i - b.key;
  int64_t n = b.window == 0 ? 0 : own - b.window + 1;
  if (b.starts) {
    int64_t start = b.starts[i] - b.key;
    start = start < own ? start : own;
    n = n < start ? start : n;
  }
  return n < 0 ? 0 : n;
}

/// s[j] = cap * tanh(s[j] * scale / cap).
inline void capScores(const ScoreBlock &b, int64_t count, float *__restrict s) {
  float cap = b.cap, factor = b.scale / b.cap;
#pragma omp simd
  for (int64_t j = 0; j < count; ++j)
    s[j] = cap * math::tanh(s[j] * factor);
}

void softmax(const ScoreBlock &b, float *scores, int64_t stride, BF16 *narrow,
             bool roundToBF16, bool first, float *maximum, float *sum,
             float *rescale) {
  float scale = b.cap == 0 ? b.scale : 1.0f;
  for (int64_t i = 0; i < b.rows; ++i) {
    float *__restrict s = scores + i * stride;
    int64_t n = visible(b, i);
    if (b.cap != 0)
      capScores(b, n, s);
    // Hidden scores become exp(-inf) = 0, so that the row has whole vectors.
    int64_t gone = passed(b, i);
    for (int64_t j = 0, end = gone < n ? gone : n; j < end; ++j)
      s[j] = -__builtin_inff();
    int64_t whole = (n + math::kLanes - 1) / math::kLanes * math::kLanes;
    float *__restrict last = s + whole - math::kLanes;
    int32_t left = int32_t(n - (whole - math::kLanes));
#pragma omp simd
    for (int32_t j = 0; j < math::kLanes; ++j)
      last[j] = j < left ? last[j] : -__builtin_inff();
    float m = math::maxOf(s, whole) * scale;
    if (!first)
      m = math::max(m, maximum[i]);
    // Of a query whose document begins after these keys: exp(-inf) is 0.
    float base = m == -__builtin_inff() ? 0.0f : m;
#pragma omp simd
    for (int64_t j = 0; j < whole; ++j)
      s[j] = math::exp(math::fma(s[j], scale, -base));
    float l = math::sumOf(s, whole);
    rescale[i] = first ? 0.0f : math::exp(maximum[i] - base);
    sum[i] = first ? l : math::fma(sum[i], rescale[i], l);
    maximum[i] = m;
    for (int64_t j = whole; j < b.cols; ++j)
      s[j] = 0.0f;
    if (narrow) {
      BF16 *__restrict to = narrow + i * stride;
#pragma omp simd
      for (int64_t j = 0; j < b.cols; ++j)
        to[j] = math::toBF16(s[j]);
    } else if (roundToBF16) {
#pragma omp simd
      for (int64_t j = 0; j < b.cols; ++j)
        s[j] = math::roundBF16(s[j]);
    }
  }
}

void accumulate(int64_t rows, int64_t cols, const float *rescale,
                const float *part, float *accumulator) {
  for (int64_t i = 0; i < rows; ++i) {
    const float *__restrict p = part + i * cols;
    float *__restrict a = accumulator + i * cols;
    float f = rescale[i];
#pragma omp simd
    for (int64_t j = 0; j < cols; ++j)
      a[j] = math::fma(a[j], f, p[j]);
  }
}

template <typename T>
void finish(int64_t rows, int64_t cols, const float *acc, const float *maximum,
            const float *sum, T *out, int64_t outStride, float *lse) {
  for (int64_t i = 0; i < rows; ++i) {
    const float *__restrict a = acc + i * cols;
    T *__restrict o = out + i * outStride;
    float inverse = 1.0f / sum[i];
#pragma omp simd
    for (int64_t j = 0; j < cols; ++j)
      math::store(o + j, a[j] * inverse);
    lse[i] = maximum[i] + math::log(sum[i]);
  }
}

/// The columns [begin, end) of row `i` whose queries' documents begin after its
/// key.
inline void hideDocuments(const ScoreBlock &b, int64_t i, int64_t begin,
                          int64_t end, float *__restrict p,
                          float *__restrict g) {
  // A query after the key counts as one that sees itself.
  int64_t key = b.key + i;
  for (int64_t j = begin; j < end; ++j)
    if (b.starts[j] > key && b.query + j > key)
      p[j] = g[j] = 0.0f;
}

/// What backward() does with the columns [begin, end) of a row, where scores
/// are capped.
inline void cappedGradients(const ScoreBlock &b, int64_t begin, int64_t end,
                            float *__restrict p, float *__restrict g,
                            const float *lse, const float *delta) {
  float scale = b.scale, cap = b.cap, factor = b.scale / b.cap;
#pragma omp simd
  for (int64_t j = begin; j < end; ++j) {
    float t = math::tanh(p[j] * factor);
    float e = math::exp(math::fma(t, cap, -lse[j]));
    g[j] = e * (g[j] - delta[j]) * (scale * math::fma(-t, t, 1.0f));
    p[j] = e;
  }
}

void backward(const ScoreBlock &b, float *probabilities, float *gradients,
              int64_t stride, BF16 *narrowP, BF16 *narrowS, bool roundToBF16,
              const float *lse, const float *delta) {
  float scale = b.scale;
  for (int64_t i = 0; i < b.rows; ++i) {
    float *__restrict p = probabilities + i * stride;
    float *__restrict g = gradients + i * stride;
    // Key b.key + i is hidden from the queries before it, and from those whose
    // window has passed it.
    int64_t hidden = b.causal ? b.key + i - b.query : 0;
    hidden = hidden < 0 ? 0 : hidden > b.cols ? b.cols : hidden;
    int64_t seen = b.key + i + b.window - b.query;
    seen = b.window == 0 || seen > b.cols ? b.cols
           : seen < hidden                ? hidden
                                          : seen;
    for (int64_t j = 0; j < hidden; ++j)
      p[j] = g[j] = 0.0f;
    for (int64_t j = seen; j < b.cols; ++j)
      p[j] = g[j] = 0.0f;
    if (b.cap != 0) {
      cappedGradients(b, hidden, seen, p, g, lse, delta);
    } else {
#pragma omp simd
      for (int64_t j = hidden; j < seen; ++j) {
        float e = math::exp(math::fma(p[j], scale, -lse[j]));
        g[j] = e * (g[j] - delta[j]) * scale;
        p[j] = e;
      }
    }
    if (b.starts)
      hideDocuments(b, i, hidden, seen, p, g);
    if (narrowP) {
      BF16 *__restrict np = narrowP + i * stride;
      BF16 *__restrict ns = narrowS + i * stride;
#pragma omp simd
      for (int64_t j = 0; j < b.cols; ++j) {
        np[j] = math::toBF16(p[j]);
        ns[j] = math::toBF16(g[j]);
      }
    } else if (roundToBF16) {
#pragma omp simd
      for (int64_t j = 0; j < b.cols; ++j) {
        p[j] = math::roundBF16(p[j]);
        g[j] = math::roundBF16(g[j]);
      }
    }
  }
}

template <typename T>
void rowDot(int64_t rows, int64_t cols, const T *a, const T *b, int64_t stride,
            float *out) {
  for (int64_t i = 0; i < rows; ++i) {
    const T *x = a + i * stride, *y = b + i * stride;
    out[i] = math::sumLanes(
        cols, [=](int64_t j) { return math::widen(x[j]) * math::widen(y[j]); });
  }
}

} // namespace

void fsdp::rt::FSDP_ISA::addAttentionKernels(Kernels &k) {
  k.attentionSoftmax = softmax;
  k.attentionAccumulate = accumulate;
  k.attentionFinishF32 = finish<float>;
  k.attentionFinishBF16 = finish<BF16>;
  k.attentionBackward = backward;
  k.rowDotF32 = rowDot<float>;
  k.rowDotBF16 = rowDot<BF16>;
}
