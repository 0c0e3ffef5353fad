//===- Model.cpp - Rotary, embedding, cross entropy -----------------------===//
#include "CpuContext.h"
#include "runtime/kernels/Kernels.h"
#include "runtime/kernels/ShardRows.h"
#include "runtime/onednn/Parallel.h"
#include <algorithm>
#include <cstring>
#include <type_traits>

using namespace fsdp::rt;

/// Calls body(pointer type tag) for f32 or bf16, the types of activations.
template <typename Body>
static void dispatch(DType type, const char *what, const Body &body) {
  if (type == DType::F32)
    body(float());
  else if (type == DType::BF16)
    body(BF16());
  else
    abortWorld(std::string(what) + " takes f32 or bf16 on the CPU target");
}

template <typename T> static T *as(Ptr p) { return reinterpret_cast<T *>(p); }

//===----------------------------------------------------------------------===//
// Rotary
//===----------------------------------------------------------------------===//

static auto rotaryKernel(float) { return kernels().rotaryF32; }
static auto rotaryKernel(BF16) { return kernels().rotaryBF16; }

void fsdp::rt::rotary(Context &context, Stream stream, DType type,
                      int64_t batch, int64_t sequence, int64_t heads,
                      int64_t headDim, bool halves, bool inverse, Ptr x,
                      Ptr table, Ptr y) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "rotary");
  Timeline::Span span(c.timeline, stream, "rotary", batch, sequence, heads,
                      headDim);
  dispatch(type, "rotary", [&](auto tag) {
    using T = decltype(tag);
    auto kernel = rotaryKernel(tag);
    int64_t width = heads * headDim;
    parallelFor(c.threads, batch * sequence, width, 1,
                [&](int64_t begin, int64_t end, int) {
                  for (int64_t t = begin; t < end; ++t)
                    kernel(as<T>(x) + t * width,
                           as<float>(table) + t % sequence * headDim,
                           as<T>(y) + t * width, heads, headDim, halves,
                           inverse);
                });
  });
}

/// Copies between `x`, all heads of a token side by side, and `q`, `k` and `v`,
/// and rotates the first two.
template <bool IsJoin>
static void moveHeads(Context &context, Stream stream, const char *name,
                      DType type, int64_t batch, int64_t sequence,
                      int64_t heads, int64_t kvHeads, int64_t headDim,
                      bool halves, Ptr x, Ptr table, Ptr q, Ptr k, Ptr v) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, name);
  int64_t all = heads + 2 * kvHeads;
  Timeline::Span span(c.timeline, stream, name, batch, sequence, all, headDim);
  dispatch(type, name, [&](auto tag) {
    using T = decltype(tag);
    auto kernel = rotaryKernel(tag);
    auto moveToken = [&](int64_t t) {
      T *whole = as<T>(x) + t * all * headDim;
      const float *angles = as<float>(table) + t % sequence * headDim;
      auto rotate = [&](Ptr base, int64_t count) {
        T *part = as<T>(base) + t * count * headDim;
        kernel(IsJoin ? part : whole, angles, IsJoin ? whole : part, count,
               headDim, halves, IsJoin);
        whole += count * headDim;
      };
      rotate(q, heads);
      rotate(k, kvHeads);
      T *value = as<T>(v) + t * kvHeads * headDim;
      std::memcpy(IsJoin ? whole : value, IsJoin ? value : whole,
                  kvHeads * headDim * sizeof(T));
    };
    parallelFor(c.threads, batch * sequence, all * headDim, 1,
                [&](int64_t begin, int64_t end, int) {
                  for (int64_t t = begin; t < end; ++t)
                    moveToken(t);
                });
  });
}

void fsdp::rt::splitHeads(Context &context, Stream stream, DType type,
                          int64_t batch, int64_t sequence, int64_t heads,
                          int64_t kvHeads, int64_t headDim, bool halves, Ptr x,
                          Ptr table, Ptr q, Ptr k, Ptr v) {
  moveHeads<false>(context, stream, "split_heads", type, batch, sequence, heads,
                   kvHeads, headDim, halves, x, table, q, k, v);
}

void fsdp::rt::joinHeads(Context &context, Stream stream, DType type,
                         int64_t batch, int64_t sequence, int64_t heads,
                         int64_t kvHeads, int64_t headDim, bool halves, Ptr q,
                         Ptr k, Ptr v, Ptr table, Ptr x) {
  moveHeads<true>(context, stream, "join_heads", type, batch, sequence, heads,
                  kvHeads, headDim, halves, x, table, q, k, v);
}

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

/// True if `id` is a class; otherwise the program will fail when it ends.
static bool inRange(CpuContext &c, int64_t id, int64_t classes,
                    DataError error) {
  if (id >= 0 && id < classes)
    return true;
  c.dataErrors.fetch_or(error);
  return false;
}

/// What a sum with any number, also with a zero of either sign, leaves alone.
static void fillNegativeZero(DType type, Ptr row, int64_t cols) {
  if (type == DType::F32)
    std::fill_n(as<float>(row), cols, -0.0f);
  else
    std::fill_n(as<uint16_t>(row), cols, uint16_t(0x8000));
}

void fsdp::rt::embedding(Context &context, Stream stream, DType type,
                         int64_t rows, int64_t classes, int64_t cols,
                         bool absent, Ptr ids, Ptr table, Ptr out) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "embedding");
  Timeline::Span span(c.timeline, stream, "embedding", rows, cols);
  size_t bytes = size_t(cols * sizeOf(type));
  const int32_t *id = as<int32_t>(ids);
  parallelFor(c.threads, rows, cols, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      Ptr to = out + size_t(r) * bytes;
      if (absent && id[r] == kAbsentRow)
        fillNegativeZero(type, to, cols);
      else if (inRange(c, id[r], classes, kTokenOutOfRange))
        std::memcpy(to, table + size_t(id[r]) * bytes, bytes);
      else
        std::memset(to, 0, bytes);
    }
  });
}

namespace {
/// The tokens of each class in their order, as lists. What has no row, and
/// what is no class, is in none.
class TokensOfClasses {
public:
  TokensOfClasses(CpuContext &c, const int32_t *id, int64_t rows,
                  int64_t classes, bool absent, int32_t *memory)
      : first(memory), next(memory + classes) {
    std::fill_n(first, classes, kEnd);
    for (int64_t r = rows; r-- > 0;)
      if (!(absent && id[r] == kAbsentRow) &&
          inRange(c, id[r], classes, kTokenOutOfRange)) {
        next[r] = first[id[r]];
        first[id[r]] = int32_t(r);
      }
  }

  bool isEmpty(int64_t k) const { return first[k] == kEnd; }
  template <typename Body> void forEach(int64_t k, const Body &body) const {
    for (int32_t r = first[k]; r != kEnd; r = next[r])
      body(int64_t(r));
  }

private:
  static constexpr int32_t kEnd = -1;

  int32_t *first, *next;
};
} // namespace

/// Most classes have no token as a rule: only the sums of those that have one
/// are made in f32, a row at a time.
static void embeddingGradBF16(CpuContext &c, int64_t rows, int64_t classes,
                              int64_t cols, bool absent, const int32_t *id,
                              const BF16 *dy, BF16 *out, Ptr workspace) {
  float *sums = as<float>(workspace);
  TokensOfClasses tokens(c, id, rows, classes, absent,
                         as<int32_t>(workspace) + c.threads * cols);
  parallelFor(c.threads, classes, cols, 1,
              [&](int64_t begin, int64_t end, int thread) {
                float *sum = sums + thread * cols;
                for (int64_t k = begin; k < end; ++k) {
                  BF16 *to = out + k * cols;
                  if (tokens.isEmpty(k)) {
                    std::fill_n(to, cols, BF16{0});
                    continue;
                  }
                  std::fill_n(sum, cols, 0.0f);
                  tokens.forEach(k, [&](int64_t r) {
                    kernels().addRowBF16(dy + r * cols, sum, cols);
                  });
                  kernels().narrow(sum, cols, to, cols, 1, cols);
                }
              });
}

static void embeddingGradF32(CpuContext &c, int64_t rows, int64_t classes,
                             int64_t cols, bool absent, const int32_t *id,
                             const float *dy, float *out) {
  // Threads share columns, not rows: each class is summed in token order.
  parallelFor(c.threads, cols, rows + classes, 32,
              [&](int64_t begin, int64_t end, int) {
                for (int64_t k = 0; k < classes; ++k)
                  std::fill(out + k * cols + begin, out + k * cols + end, 0.0f);
                for (int64_t r = 0; r < rows; ++r)
                  if (!(absent && id[r] == kAbsentRow) &&
                      inRange(c, id[r], classes, kTokenOutOfRange))
                    kernels().addRowF32(dy + r * cols + begin,
                                        out + id[r] * cols + begin,
                                        end - begin);
              });
}

void fsdp::rt::embeddingGrad(Context &context, Stream stream, DType type,
                             int64_t rows, int64_t classes, int64_t cols,
                             bool absent, Ptr ids, Ptr dy, Ptr out,
                             Ptr workspace) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "embedding");
  Timeline::Span span(c.timeline, stream, "embedding_grad", rows, cols);
  const int32_t *id = as<int32_t>(ids);
  dispatch(type, "embedding", [&](auto tag) {
    if constexpr (std::is_same_v<decltype(tag), float>)
      embeddingGradF32(c, rows, classes, cols, absent, id, as<float>(dy),
                       as<float>(out));
    else
      embeddingGradBF16(c, rows, classes, cols, absent, id, as<BF16>(dy),
                        as<BF16>(out), workspace);
  });
}

void fsdp::rt::rowsOfShard(Context &context, Stream stream, int group,
                           int64_t count, int64_t classes, bool byRank, Ptr ids,
                           Ptr out) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "rows of a shard");
  Timeline::Span span(c.timeline, stream, "rows_of_shard", count);
  const Coordinate place = c.places[size_t(group)];
  const ShardRows shard =
      ShardRows::of(place.index, place.count, count, classes, byRank);
  const int32_t *id = as<int32_t>(ids);
  int32_t *row = as<int32_t>(out);
  parallelFor(c.threads, count, 1, 64, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      row[i] = inRange(c, id[i], classes, kTokenOutOfRange)
                   ? rowOfShard(shard, id[i], i / shard.each)
                   : kAbsentRow;
  });
}

//===----------------------------------------------------------------------===//
// Cross entropy
//===----------------------------------------------------------------------===//

static auto logSumExpKernel(float) { return kernels().logSumExpF32; }
static auto logSumExpKernel(BF16) { return kernels().logSumExpBF16; }
static auto gradKernel(float) { return kernels().crossEntropyGradF32; }
static auto gradKernel(BF16) { return kernels().crossEntropyGradBF16; }

void fsdp::rt::crossEntropy(Context &context, Stream stream, DType type,
                            int64_t rows, int64_t classes, int64_t ignoreIndex,
                            Ptr logits, Ptr targets, Ptr losses, Ptr lse) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "cross entropy");
  Timeline::Span span(c.timeline, stream, "cross_entropy", rows, classes);
  const int32_t *target = as<int32_t>(targets);
  dispatch(type, "cross entropy", [&](auto tag) {
    using T = decltype(tag);
    auto kernel = logSumExpKernel(tag);
    parallelFor(
        c.threads, rows, classes, 1, [&](int64_t begin, int64_t end, int) {
          for (int64_t r = begin; r < end; ++r) {
            const T *x = as<T>(logits) + r * classes;
            float total = kernel(x, classes);
            as<float>(lse)[r] = total;
            bool counts = target[r] != ignoreIndex &&
                          inRange(c, target[r], classes, kTargetOutOfRange);
            as<float>(losses)[r] =
                counts ? total - math::widen(x[target[r]]) : 0.0f;
          }
        });
  });
}

void fsdp::rt::crossEntropyGrad(Context &context, Stream stream, DType type,
                                int64_t rows, int64_t classes,
                                int64_t ignoreIndex, Ptr logits, Ptr targets,
                                Ptr lse, Ptr dlosses, Ptr out) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "cross entropy");
  Timeline::Span span(c.timeline, stream, "cross_entropy_grad", rows, classes);
  const int32_t *target = as<int32_t>(targets);
  dispatch(type, "cross entropy", [&](auto tag) {
    using T = decltype(tag);
    auto kernel = gradKernel(tag);
    parallelFor(
        c.threads, rows, classes, 1, [&](int64_t begin, int64_t end, int) {
          for (int64_t r = begin; r < end; ++r) {
            T *to = as<T>(out) + r * classes;
            if (target[r] != ignoreIndex &&
                inRange(c, target[r], classes, kTargetOutOfRange))
              kernel(as<T>(logits) + r * classes, classes, as<float>(lse)[r],
                     target[r], as<float>(dlosses)[r], to);
            else
              std::memset(to, 0, size_t(classes) * sizeof(T));
          }
        });
  });
}

void fsdp::rt::countLabels(Context &context, Stream stream, int64_t rows,
                           int64_t parts, int64_t ignoreIndex, Ptr targets,
                           Ptr counts) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "count_labels");
  Timeline::Span span(c.timeline, stream, "count_labels", rows);
  const int32_t *target = as<int32_t>(targets);
  int64_t each = rows / parts;
  for (int64_t part = 0; part < parts; ++part, target += each)
    as<int64_t>(counts)[part] =
        each - std::count(target, target + each, ignoreIndex);
}
