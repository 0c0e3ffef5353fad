//===- BlockedAttention.cpp - Blocked attention over prepared matmuls -----===//
#include "BlockedAttention.h"
#include "Parallel.h"
#include "fsdp/Core/Context.h"
#include "fsdp/Support/CheckedSize.h"
#include <algorithm>
#include <cassert>
#include <cstring>
#include <stdexcept>

using namespace fsdp;
using namespace fsdp::rt;

namespace {
/// Queries (forward) or keys (backward) of a block, and the other side's
/// tokens of a chunk: the scores of one block stay in the second-level cache.
/// A chunk is a multiple of a block, so that no block is all hidden.
constexpr int64_t kBlock = 64;
constexpr int64_t kChunk = 512;

/// Hands out pieces of a workspace, each on a cache line; over a null base it
/// measures.
class Carver {
public:
  explicit Carver(std::byte *base) : base(base) {}
  template <typename T> T *take(int64_t count) {
    int64_t at = used;
    used += (count * int64_t(sizeof(T)) + 63) / 64 * 64;
    return base ? reinterpret_cast<T *>(base + at) : nullptr;
  }
  int64_t bytes() const { return used; }

private:
  std::byte *base;
  int64_t used = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// MatmulTable
//===----------------------------------------------------------------------===//

void MatmulTable::add(int64_t rows, int64_t cols, const MatmulShape &shape) {
  for (const Entry &e : entries)
    if (e.rows == rows && e.cols == cols)
      return;
  entries.push_back({rows, cols, shape, nullptr});
}

void MatmulTable::prepare(int executors) {
  for (Entry &e : entries)
    e.matmul = std::make_unique<Matmul>(e.shape, 1, executors);
}

const Matmul &MatmulTable::get(int64_t rows, int64_t cols) const {
  auto at = std::find_if(entries.begin(), entries.end(), [&](const Entry &e) {
    return e.rows == rows && e.cols == cols;
  });
  assert(at != entries.end() && "a plan has all of its products");
  return *at->matmul;
}

int64_t MatmulTable::scratchpadBytes() const {
  int64_t bytes = 0;
  for (const Entry &e : entries)
    bytes = std::max(bytes, Matmul::scratchpadBytes(e.shape, 1));
  return bytes;
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

/// The matmul operands of one query head.
struct BlockedAttention::Head {
  const std::byte *q, *k, *v;
  std::byte *out;
  const std::byte *dout = nullptr;
  float *lse;
  const int32_t *starts = nullptr; // of each query's document, or null
};

/// What one thread works in.
struct BlockedAttention::ForwardSpace {
  float *scores, *part, *sum, *maximum, *total, *rescale;
  BF16 *narrow;
  std::byte *q, *k, *v, *scratchpad;
  int64_t bytes;
};
struct BlockedAttention::BackwardSpace {
  float *probabilities, *gradients, *delta, *dq, *dk, *dv;
  BF16 *narrowP, *narrowS;
  std::byte *q, *k, *v, *dout, *scratchpad;
  int64_t bytes;
};

static MatmulShape product(int64_t m, int64_t n, int64_t k, int64_t aRow,
                           int64_t aCol, int64_t bRow, int64_t bCol,
                           int64_t cRow, DType in, bool accumulate) {
  MatmulShape s;
  s.m = m;
  s.n = n;
  s.k = k;
  s.a[0] = aRow;
  s.a[1] = aCol;
  s.b[0] = bRow;
  s.b[1] = bCol;
  s.c[0] = cRow;
  s.c[1] = 1;
  s.in = in;
  s.accumulate = accumulate;
  return s;
}

// The sizes of blocks repeat every kChunk tokens, and those of chunks differ at
// the end only, so that the plan of a long sequence is made from its ends.

/// The block after `at` of which nothing is known yet.
static int64_t nextBlock(int64_t at, int64_t length) {
  at += kBlock;
  int64_t last = (length - 1) / kBlock * kBlock;
  return at == 2 * kChunk ? std::max(at, last - 2 * kChunk) : at;
}

/// The chunk after `at`, the first or the last of [begin, end).
static int64_t nextChunk(int64_t at, int64_t begin, int64_t end) {
  int64_t last = begin + (end - 1 - begin) / kChunk * kChunk;
  return std::max(at + kChunk, last);
}

namespace {
struct Tokens {
  int64_t begin, end;
};
} // namespace

/// The keys that some query of the block at `query` sees, from the begin of
/// their first block on: then no chunk of a block is all hidden from a query
/// that has seen none before.
static Tokens keysOf(const AttentionDesc &d, const int32_t *starts,
                     int64_t query) {
  int64_t first =
      d.window == 0 ? 0 : std::max<int64_t>(query - d.window + 1, 0);
  int64_t rows = std::min(kBlock, d.qLen - query);
  if (starts) {
    int64_t start = *std::min_element(starts + query, starts + query + rows);
    first = std::max(first, std::min(start, query));
  }
  return {first / kBlock * kBlock,
          d.causal ? std::min(query + rows, d.kvLen) : d.kvLen};
}

/// The queries that see some key of the block at `key`, to the end of their
/// last block.
static Tokens queriesOf(const AttentionDesc &d, const int32_t *starts,
                        int64_t key) {
  int64_t end = d.window == 0
                    ? d.qLen
                    : std::min(key + kBlock - 1 + d.window, d.qLen);
  // Queries of a later document see none; each sees its own key.
  int64_t own = std::min(key + kBlock, d.qLen);
  while (starts && end > own && starts[end - 1] >= own)
    --end;
  return {d.causal ? key : 0,
          std::min((end + kBlock - 1) / kBlock * kBlock, d.qLen)};
}

void BlockedAttention::addForward(int64_t rows, int64_t cols) {
  int64_t D = desc.headDim;
  scores.add(rows, cols,
             product(rows, cols, D, D, 1, 1, D, kChunk, type, false));
  values.add(rows, cols,
             product(rows, D, cols, kChunk, 1, D, 1, D, type, false));
}

void BlockedAttention::addBackward(int64_t rows, int64_t cols) {
  int64_t D = desc.headDim;
  scoresT.add(rows, cols,
              product(rows, cols, D, D, 1, 1, D, kChunk, type, false));
  keyGrads.add(rows, cols,
               product(rows, D, cols, kChunk, 1, D, 1, D, type, true));
  queryGrads.add(rows, cols,
                 product(cols, D, rows, 1, kChunk, D, 1, D, type, true));
}

void BlockedAttention::addShapes() {
  const AttentionDesc &d = desc;
  for (int64_t q = 0; q < d.qLen; q = nextBlock(q, d.qLen)) {
    auto [begin, end] = keysOf(d, nullptr, q);
    for (int64_t k = begin; k < end; k = nextChunk(k, begin, end))
      addForward(std::min(kBlock, d.qLen - q), std::min(kChunk, end - k));
  }
  for (int64_t k = 0; k < d.kvLen; k = nextBlock(k, d.kvLen)) {
    auto [begin, end] = queriesOf(d, nullptr, k);
    for (int64_t q = begin; q < end; q = nextChunk(q, begin, end))
      addBackward(std::min(kBlock, d.kvLen - k), std::min(kChunk, end - q));
  }
}

/// Documents begin anywhere, so that a chunk has any number of blocks, the last
/// of which may be what is left of the sequence.
void BlockedAttention::addShapesOfDocuments() {
  int64_t length = desc.qLen, left = length % kBlock;
  for (int64_t cols = kBlock; cols <= std::min(kChunk, length); cols += kBlock) {
    addForward(kBlock, cols);
    addBackward(kBlock, cols);
  }
  if (left == 0)
    return;
  addBackward(left, left);
  for (int64_t cols = left; cols <= std::min(kChunk, length); cols += kBlock) {
    addForward(left, cols);
    if (length >= kBlock)
      addBackward(kBlock, cols);
  }
  if (length >= kChunk)
    addForward(left, kChunk);
}

BlockedAttention::BlockedAttention(const AttentionDesc &d, int threadCount)
    : desc(d), threads(threadCount) {
  if (d.type != DType::F32 && d.type != DType::BF16)
    throw std::runtime_error("attention takes f32 or bf16 on the CPU target");
  if (!(d.scale > 0))
    throw std::runtime_error("the scale of attention must be positive");
  widened = d.type == DType::BF16 && !hasNativeBF16();
  type = widened ? DType::F32 : d.type;
  if (d.starts)
    addShapesOfDocuments();
  else
    addShapes();
  forwardScratchpad =
      std::max(scores.scratchpadBytes(), values.scratchpadBytes());
  backwardScratchpad =
      std::max({scoresT.scratchpadBytes(), keyGrads.scratchpadBytes(),
                queryGrads.scratchpadBytes()});
}

void BlockedAttention::prepare() {
  for (MatmulTable *t : {&scores, &values, &scoresT, &keyGrads, &queryGrads})
    t->prepare(threads);
}

BlockedAttention::ForwardSpace
BlockedAttention::forwardSpace(std::byte *base) const {
  Carver c(base);
  ForwardSpace s;
  int64_t D = desc.headDim;
  s.scores = c.take<float>(kBlock * kChunk);
  s.narrow = type == DType::BF16 ? c.take<BF16>(kBlock * kChunk) : nullptr;
  s.part = c.take<float>(kBlock * D);
  s.sum = c.take<float>(kBlock * D);
  s.maximum = c.take<float>(kBlock);
  s.total = c.take<float>(kBlock);
  s.rescale = c.take<float>(kBlock);
  int64_t element = sizeOf(type);
  s.q = c.take<std::byte>(desc.qLen * D * element);
  s.k = c.take<std::byte>(desc.kvLen * D * element);
  s.v = c.take<std::byte>(desc.kvLen * D * element);
  s.scratchpad = c.take<std::byte>(forwardScratchpad);
  s.bytes = c.bytes();
  return s;
}

BlockedAttention::BackwardSpace
BlockedAttention::backwardSpace(std::byte *base) const {
  Carver c(base);
  BackwardSpace s;
  int64_t D = desc.headDim;
  int64_t group = desc.heads / desc.kvHeads;
  s.probabilities = c.take<float>(kBlock * kChunk);
  s.gradients = c.take<float>(kBlock * kChunk);
  bool narrow = type == DType::BF16;
  s.narrowP = narrow ? c.take<BF16>(kBlock * kChunk) : nullptr;
  s.narrowS = narrow ? c.take<BF16>(kBlock * kChunk) : nullptr;
  s.delta = c.take<float>(desc.qLen);
  s.dq = c.take<float>(desc.qLen * D);
  // With one head per group the sums over queries end with each block.
  int64_t keys = group == 1 ? std::min(kBlock, desc.kvLen) : desc.kvLen;
  s.dk = c.take<float>(keys * D);
  s.dv = c.take<float>(keys * D);
  int64_t element = sizeOf(type);
  s.q = c.take<std::byte>(desc.qLen * D * element);
  s.k = c.take<std::byte>(desc.kvLen * D * element);
  s.v = c.take<std::byte>(desc.kvLen * D * element);
  s.dout = c.take<std::byte>(desc.qLen * D * element);
  s.scratchpad = c.take<std::byte>(backwardScratchpad);
  s.bytes = c.bytes();
  return s;
}

int64_t BlockedAttention::forwardWorkspaceBytes() const {
  return (CheckedSize(forwardSpace(nullptr).bytes) * threads).saturated();
}

int64_t BlockedAttention::backwardWorkspaceBytes() const {
  return (CheckedSize(backwardSpace(nullptr).bytes) * threads).saturated();
}

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

BlockedAttention::Head BlockedAttention::head(const AttentionArguments &a,
                                              int64_t batch, int64_t h) const {
  int64_t element = sizeOf(desc.type), D = desc.headDim;
  int64_t kvHead = h / (desc.heads / desc.kvHeads);
  int64_t q = (batch * desc.qLen * desc.heads + h) * D * element;
  int64_t k = (batch * desc.kvLen * desc.kvHeads + kvHead) * D * element;
  Head result;
  result.q = a.q + q;
  result.k = a.k + k;
  result.v = a.v + k;
  result.out = a.out + q;
  result.dout = a.dout ? a.dout + q : nullptr;
  result.lse =
      reinterpret_cast<float *>(a.lse) + (batch * desc.heads + h) * desc.qLen;
  if (a.starts)
    result.starts =
        reinterpret_cast<const int32_t *>(a.starts) + batch * desc.qLen;
  return result;
}

/// Copies one head's rows, `stride` elements apart, to dense rows of the
/// matmuls' type: strided operands cost the matmuls more than the copy.
const std::byte *BlockedAttention::pack(const std::byte *from, std::byte *to,
                                        int64_t rows, int64_t stride) const {
  int64_t D = desc.headDim;
  if (widened) {
    kernels().widen(reinterpret_cast<const BF16 *>(from), stride,
                    reinterpret_cast<float *>(to), D, rows, D);
    return to;
  }
  size_t bytes = size_t(D * sizeOf(type));
  for (int64_t i = 0; i < rows; ++i)
    std::memcpy(to + size_t(i) * bytes, from + i * stride * sizeOf(type),
                bytes);
  return to;
}

ScoreBlock BlockedAttention::scoreBlock(const Head &h, int64_t rows,
                                        int64_t cols, int64_t query,
                                        int64_t key) const {
  return {rows,
          cols,
          query,
          key,
          desc.causal,
          float(desc.scale),
          desc.window,
          float(desc.cap),
          h.starts ? h.starts + query : nullptr};
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// Multiply-adds of one head.
static int64_t workOf(const AttentionDesc &desc) {
  int64_t keys = desc.window == 0 ? desc.kvLen : desc.window;
  return (CheckedSize(desc.qLen) * keys * desc.headDim).saturated();
}

void BlockedAttention::forward(const AttentionArguments &a) const {
  int64_t perThread = forwardSpace(nullptr).bytes;
  int64_t work = workOf(desc);
  int64_t group = desc.heads / desc.kvHeads;
  parallelFor(threads, desc.batch * desc.heads, work, 1,
              [&](int64_t begin, int64_t end, int thread) {
                ForwardSpace s = forwardSpace(a.workspace + thread * perThread);
                for (int64_t u = begin; u < end; ++u) {
                  Head h = head(a, u / desc.heads, u % desc.heads);
                  // Heads of a group share their keys and values.
                  if (u == begin || u % group == 0) {
                    pack(h.k, s.k, desc.kvLen, desc.kvHeads * desc.headDim);
                    pack(h.v, s.v, desc.kvLen, desc.kvHeads * desc.headDim);
                  }
                  h.q = pack(h.q, s.q, desc.qLen, desc.heads * desc.headDim);
                  h.k = s.k;
                  h.v = s.v;
                  for (int64_t q = 0; q < desc.qLen; q += kBlock)
                    forwardBlock(h, s, q, thread);
                }
              });
}

void BlockedAttention::forwardBlock(const Head &h, const ForwardSpace &s,
                                    int64_t query, int thread) const {
  const Kernels &kernel = kernels();
  int64_t D = desc.headDim, element = sizeOf(type);
  int64_t rows = std::min(kBlock, desc.qLen - query);
  auto [begin, end] = keysOf(desc, h.starts, query);
  for (int64_t key = begin; key < end; key += kChunk) {
    int64_t cols = std::min(kChunk, end - key);
    bool first = key == begin;
    scores.get(rows, cols)
        .run(h.q + query * D * element, h.k + key * D * element, nullptr,
             s.scores, s.scratchpad, thread);
    kernel.attentionSoftmax(scoreBlock(h, rows, cols, query, key), s.scores,
                            kChunk, s.narrow, widened, first, s.maximum,
                            s.total, s.rescale);
    const void *p = s.narrow ? static_cast<const void *>(s.narrow) : s.scores;
    values.get(rows, cols)
        .run(p, h.v + key * D * element, nullptr, first ? s.sum : s.part,
             s.scratchpad, thread);
    if (!first)
      kernel.attentionAccumulate(rows, D, s.rescale, s.part, s.sum);
  }
  int64_t stride = desc.heads * D;
  std::byte *out = h.out + query * stride * sizeOf(desc.type);
  if (desc.type == DType::F32)
    kernel.attentionFinishF32(rows, D, s.sum, s.maximum, s.total,
                              reinterpret_cast<float *>(out), stride,
                              h.lse + query);
  else
    kernel.attentionFinishBF16(rows, D, s.sum, s.maximum, s.total,
                               reinterpret_cast<BF16 *>(out), stride,
                               h.lse + query);
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

void BlockedAttention::backward(const AttentionArguments &a) const {
  int64_t perThread = backwardSpace(nullptr).bytes;
  int64_t work = workOf(desc);
  parallelFor(threads, desc.batch * desc.kvHeads, work, 1,
              [&](int64_t begin, int64_t end, int thread) {
                BackwardSpace s =
                    backwardSpace(a.workspace + thread * perThread);
                for (int64_t u = begin; u < end; ++u)
                  backwardGroup(a, u, s, thread);
              });
}

/// All query heads that share one key/value head, one after the other.
void BlockedAttention::backwardGroup(const AttentionArguments &a, int64_t unit,
                                     const BackwardSpace &s, int thread) const {
  int64_t D = desc.headDim, element = sizeOf(desc.type);
  int64_t group = desc.heads / desc.kvHeads;
  int64_t batch = unit / desc.kvHeads, kvHead = unit % desc.kvHeads;
  int64_t qRow = desc.heads * D, kRow = desc.kvHeads * D;
  int64_t k = (batch * desc.kvLen * desc.kvHeads + kvHead) * D * element;
  for (int64_t member = 0; member < group; ++member) {
    int64_t index = kvHead * group + member;
    Head h = head(a, batch, index);
    if (desc.type == DType::F32)
      kernels().rowDotF32(desc.qLen, D, reinterpret_cast<const float *>(h.out),
                          reinterpret_cast<const float *>(h.dout), qRow,
                          s.delta);
    else
      kernels().rowDotBF16(desc.qLen, D, reinterpret_cast<const BF16 *>(h.out),
                           reinterpret_cast<const BF16 *>(h.dout), qRow,
                           s.delta);
    if (member == 0) {
      pack(h.k, s.k, desc.kvLen, kRow);
      pack(h.v, s.v, desc.kvLen, kRow);
    }
    h.q = pack(h.q, s.q, desc.qLen, qRow);
    h.dout = pack(h.dout, s.dout, desc.qLen, qRow);
    h.k = s.k;
    h.v = s.v;
    std::fill_n(s.dq, desc.qLen * D, 0.0f);
    for (int64_t key = 0; key < desc.kvLen; key += kBlock) {
      backwardBlock(h, s, key, member == 0, thread);
      if (member != group - 1)
        continue;
      int64_t rows = std::min(kBlock, desc.kvLen - key);
      int64_t at = group == 1 ? 0 : key * D;
      storeGradient(s.dk + at, a.dk + k + key * kRow * element, rows, kRow);
      storeGradient(s.dv + at, a.dv + k + key * kRow * element, rows, kRow);
    }
    int64_t q = (batch * desc.qLen * desc.heads + index) * D * element;
    storeGradient(s.dq, a.dq + q, desc.qLen, qRow);
  }
}

/// One block of keys against all queries that see it.
void BlockedAttention::backwardBlock(const Head &h, const BackwardSpace &s,
                                     int64_t key, bool first,
                                     int thread) const {
  int64_t D = desc.headDim, element = sizeOf(type);
  int64_t rows = std::min(kBlock, desc.kvLen - key);
  int64_t at = desc.heads == desc.kvHeads ? 0 : key * D;
  float *dk = s.dk + at, *dv = s.dv + at;
  if (first) {
    std::fill_n(dk, rows * D, 0.0f);
    std::fill_n(dv, rows * D, 0.0f);
  }
  const std::byte *k = h.k + key * D * element;
  const std::byte *v = h.v + key * D * element;
  auto [begin, end] = queriesOf(desc, h.starts, key);
  for (int64_t query = begin; query < end; query += kChunk) {
    int64_t cols = std::min(kChunk, end - query);
    const std::byte *q = h.q + query * D * element;
    const std::byte *dout = h.dout + query * D * element;
    const Matmul &score = scoresT.get(rows, cols);
    score.run(k, q, nullptr, s.probabilities, s.scratchpad, thread);
    score.run(v, dout, nullptr, s.gradients, s.scratchpad, thread);
    kernels().attentionBackward(
        scoreBlock(h, rows, cols, query, key), s.probabilities, s.gradients,
        kChunk, s.narrowP, s.narrowS, widened, h.lse + query, s.delta + query);
    const void *p = s.probabilities, *g = s.gradients;
    if (s.narrowP) {
      p = s.narrowP;
      g = s.narrowS;
    }
    const Matmul &keyGrad = keyGrads.get(rows, cols);
    keyGrad.run(p, dout, nullptr, dv, s.scratchpad, thread);
    keyGrad.run(g, q, nullptr, dk, s.scratchpad, thread);
    queryGrads.get(rows, cols)
        .run(g, k, nullptr, s.dq + query * D, s.scratchpad, thread);
  }
}

/// Writes f32 sums of one head to rows `stride` elements apart.
void BlockedAttention::storeGradient(const float *from, std::byte *to,
                                     int64_t rows, int64_t stride) const {
  int64_t D = desc.headDim;
  if (desc.type == DType::BF16) {
    kernels().narrow(from, D, reinterpret_cast<BF16 *>(to), stride, rows, D);
    return;
  }
  auto *out = reinterpret_cast<float *>(to);
  for (int64_t i = 0; i < rows; ++i)
    std::copy_n(from + i * D, D, out + i * stride);
}
