//===- ReferenceAttentionRows.h - Rows of reference attention ---*- C++ -*-===//
//
// One query or one key at a time, in the order that a reader would write it
// down; sums over a head are those of KernelMath.h, all others go in order of
// the sequence. On a GPU sixteen threads, the lanes of those sums, have a row.
//
// clang-format off
//   score(i, j) = scale * q_i . k_j, or cap * tanh(that / cap)
//   p(i, j)     = e^(score(i, j) - lse_i)
//   d(i, j)     = p(i, j) (dout_i . v_j - out_i . dout_i)
//                 and with a cap, times 1 - (score(i, j) / cap)^2
//   out_i       = sum_j p(i, j) v_j
//   dq_i        = scale * sum_j d(i, j) k_j
//   dk_j        = scale * sum_i d(i, j) q_i
//   dv_j        = sum_i p(i, j) dout_i
// clang-format on
//
// Sums are over what is visible: j <= i if causal, j > i - window, and j not
// before the document of i. In bf16,
// p and d are rounded where they enter a sum, as by the fused kernels.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_KERNELS_REFERENCEATTENTIONROWS_H
#define FSDP_RUNTIME_KERNELS_REFERENCEATTENTIONROWS_H

#include "fsdp/Runtime/KernelMath.h"
#include "fsdp/Target/ReferenceAttentionWorkspaces.h"

// Sums over a head are of all threads of a row.
#ifdef FSDP_CUDA_CODE
#define FSDP_ROW FSDP_DEVICE
#else
#define FSDP_ROW FSDP_MATH
#endif

namespace fsdp::rt::reference {

static_assert(kReferenceHeadDim == math::kRowColumns,
              "a head is a row of lanes");

/// AttentionDesc, as the rows need it.
struct Shape {
  int64_t batch, qLen, kvLen, heads, kvHeads, headDim;
  float scale;
  bool causal;
  int64_t window; // 0: none
  float cap;      // 0: none
};

/// The keys that query i sees: [firstKey, endKey).
FSDP_MATH int64_t firstKey(const Shape &s, const int32_t *starts, int64_t b,
                           int64_t i) {
  const int64_t first = s.window == 0 || i < s.window ? 0 : i - s.window + 1;
  if (!starts)
    return first;
  const int64_t start = starts[b * s.qLen + i];
  const int64_t own = start < i ? start : i;
  return own > first ? own : first;
}
FSDP_MATH int64_t endKey(const Shape &s, int64_t i) {
  return s.causal && i + 1 < s.kvLen ? i + 1 : s.kvLen;
}
/// The queries that see key j, if it is of their document: [firstQuery,
/// endQuery).
FSDP_MATH int64_t firstQuery(const Shape &s, int64_t j) {
  return s.causal ? j : 0;
}
FSDP_MATH int64_t endQuery(const Shape &s, int64_t j) {
  return s.window == 0 || j + s.window > s.qLen ? s.qLen : j + s.window;
}

/// Whether the document of query i begins after key j, which is not i.
FSDP_MATH bool isOfAnother(const Shape &s, const int32_t *starts, int64_t b,
                           int64_t i, int64_t j) {
  return starts && i != j && starts[b * s.qLen + i] > j;
}

/// Of a product that has been scaled.
FSDP_MATH float capped(const Shape &s, float score) {
  return s.cap == 0.0f ? score : s.cap * math::tanh(score / s.cap);
}
/// `d` behind the cap, in front of it.
FSDP_MATH float uncapped(const Shape &s, float score, float d) {
  if (s.cap == 0.0f)
    return d;
  const float t = score / s.cap;
  return d * math::fma(-t, t, 1.0f);
}

/// First element of a query's or a key's head.
FSDP_MATH int64_t queryAt(const Shape &s, int64_t b, int64_t i, int64_t head) {
  return ((b * s.qLen + i) * s.heads + head) * s.headDim;
}
FSDP_MATH int64_t keyAt(const Shape &s, int64_t b, int64_t j, int64_t head) {
  return ((b * s.kvLen + j) * s.kvHeads + head) * s.headDim;
}
/// Where a number per query lies: [batch, heads, qLen].
FSDP_MATH int64_t numberAt(const Shape &s, int64_t b, int64_t i, int64_t head) {
  return (b * s.heads + head) * s.qLen + i;
}

template <typename T> struct Tensors {
  const T *q, *k, *v, *out, *dout;
  float *lse, *delta;
  T *result, *dk, *dv; // out or dq
  const int32_t *starts = nullptr;
};

FSDP_MATH float rounded(float x, float) { return x; }
FSDP_MATH float rounded(float x, BF16) { return math::roundBF16(x); }

template <typename T> FSDP_ROW float dot(int64_t n, const T *a, const T *b) {
  return math::sumLanes(
      n, [=](int64_t d) { return math::widen(a[d]) * math::widen(b[d]); });
}

/// sums += factor * row.
template <typename T>
FSDP_ROW void add(math::RowOfLanes &sums, int64_t n, float factor,
                  const T *row) {
  math::eachOfRow(sums, n, [=](int64_t d, float &sum) {
    sum = math::fma(factor, math::widen(row[d]), sum);
  });
}

template <typename T>
FSDP_ROW void store(math::RowOfLanes &sums, int64_t n, float factor, T *to) {
  math::eachOfRow(sums, n, [=](int64_t d, float &sum) {
    math::store(to + d, sum * factor);
  });
}

/// Row of (batch, query, head): the output and its lse.
template <typename T>
FSDP_ROW void forwardRow(const Shape &s, const Tensors<T> &t, int64_t row) {
  const int64_t head = row % s.heads, i = row / s.heads % s.qLen;
  const int64_t b = row / s.heads / s.qLen, n = s.headDim;
  const int64_t kvHead = head / (s.heads / s.kvHeads);
  const int64_t begin = firstKey(s, t.starts, b, i), end = endKey(s, i);
  const T *q = t.q + queryAt(s, b, i, head);
  float largest = -__builtin_inff();
  for (int64_t j = begin; j < end; ++j)
    largest = math::max(
        largest, capped(s, dot(n, q, t.k + keyAt(s, b, j, kvHead)) * s.scale));
  math::RowOfLanes sums = {};
  float total = 0.0f;
  for (int64_t j = begin; j < end; ++j) {
    const float score =
        capped(s, dot(n, q, t.k + keyAt(s, b, j, kvHead)) * s.scale);
    const float p = math::exp(score - largest);
    total = total + p;
    add(sums, n, rounded(p, T()), t.v + keyAt(s, b, j, kvHead));
  }
  store(sums, n, 1.0f / total, t.result + queryAt(s, b, i, head));
  math::storeOfRow(t.lse + numberAt(s, b, i, head), largest + math::log(total));
}

/// Row of (batch, query, head): the gradient of the query, and delta.
template <typename T>
FSDP_ROW void queryGradRow(const Shape &s, const Tensors<T> &t, int64_t row) {
  const int64_t head = row % s.heads, i = row / s.heads % s.qLen;
  const int64_t b = row / s.heads / s.qLen, n = s.headDim;
  const int64_t kvHead = head / (s.heads / s.kvHeads);
  const int64_t begin = firstKey(s, t.starts, b, i), end = endKey(s, i);
  const int64_t at = queryAt(s, b, i, head);
  const float delta = dot(n, t.out + at, t.dout + at);
  const float lse = t.lse[numberAt(s, b, i, head)];
  math::RowOfLanes sums = {};
  for (int64_t j = begin; j < end; ++j) {
    const int64_t key = keyAt(s, b, j, kvHead);
    const float score = capped(s, dot(n, t.q + at, t.k + key) * s.scale);
    const float p = math::exp(score - lse);
    const float d = p * (dot(n, t.dout + at, t.v + key) - delta);
    add(sums, n, rounded(uncapped(s, score, d), T()), t.k + key);
  }
  store(sums, n, s.scale, t.result + at);
  math::storeOfRow(t.delta + numberAt(s, b, i, head), delta);
}

/// Row of (batch, key, key head): the gradients of key and value, over all
/// query heads that share them, one after the other.
template <typename T>
FSDP_ROW void keyGradRow(const Shape &s, const Tensors<T> &t, int64_t row) {
  const int64_t kvHead = row % s.kvHeads, j = row / s.kvHeads % s.kvLen;
  const int64_t b = row / s.kvHeads / s.kvLen, n = s.headDim;
  const int64_t group = s.heads / s.kvHeads, key = keyAt(s, b, j, kvHead);
  math::RowOfLanes keySums = {}, valueSums = {};
  for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head)
    for (int64_t i = firstQuery(s, j), end = endQuery(s, j); i < end; ++i) {
      if (isOfAnother(s, t.starts, b, i, j))
        continue;
      const int64_t at = queryAt(s, b, i, head), own = numberAt(s, b, i, head);
      const float score = capped(s, dot(n, t.q + at, t.k + key) * s.scale);
      const float p = math::exp(score - t.lse[own]);
      const float d = p * (dot(n, t.dout + at, t.v + key) - t.delta[own]);
      add(keySums, n, rounded(uncapped(s, score, d), T()), t.q + at);
      add(valueSums, n, rounded(p, T()), t.dout + at);
    }
  store(keySums, n, s.scale, t.dk + key);
  store(valueSums, n, 1.0f, t.dv + key);
}

} // namespace fsdp::rt::reference

#endif // FSDP_RUNTIME_KERNELS_REFERENCEATTENTIONROWS_H
