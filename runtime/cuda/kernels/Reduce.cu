//===- Reduce.cu - Sums over ranks in a fixed order -----------------------===//
#include "../Device.h"
#include "Reduce.h"

using namespace fsdp::rt;

namespace {

struct Add {
  template <typename T> FSDP_MATH T apply(T a, T b) { return a + b; }
};
struct Max {
  FSDP_MATH float apply(float a, float b) { return math::max(a, b); }
};

FSDP_MATH int64_t load(int64_t x) { return x; }
FSDP_MATH float load(float x) { return x; }
FSDP_MATH float load(BF16 x) { return math::widen(x); }

FSDP_MATH float scaled(float x, float scale) { return x * scale; }
FSDP_MATH int64_t scaled(int64_t x, float) { return x; }

} // namespace

/// Element `i` of every rank as a binary tree, the left side of each node the
/// largest power of two: like the digits of a counter, two sums of the same
/// number of ranks are one of the next digit.
template <typename Combine, typename Acc, typename In>
FSDP_DEVICE Acc tree(const Pieces &p, int64_t i) {
  constexpr int kLevels = 16;
  Acc level[kLevels];
  int depth = 0;
  const In *own = reinterpret_cast<const In *>(p.own);
  const In *others = reinterpret_cast<const In *>(p.others);
  for (int r = 0; r < p.ranks; ++r) {
    Acc sum = load(r == p.me ? own[i] : others[(r - (r > p.me)) * p.slot + i]);
    for (int full = r; full & 1; full >>= 1)
      sum = Combine::apply(level[--depth], sum);
    level[depth++] = sum;
  }
  Acc sum = level[--depth];
  while (depth > 0)
    sum = Combine::apply(level[--depth], sum);
  return sum;
}

template <typename Combine, typename Acc, typename In>
static __global__ void reduceRanks(Pieces p, float scale, Acc *out) {
  gpu::elements(p.count, 1, [&](int64_t i, int64_t) {
    out[i] = scaled(tree<Combine, Acc, In>(p, i), scale);
  });
}

bool fsdp::rt::canReduce(ReduceKind kind, DType in, DType out) {
  if (in == DType::F32 && out == DType::F32)
    return true;
  return kind == ReduceKind::Sum && ((in == DType::BF16 && out == DType::F32) ||
                                     (in == DType::I64 && out == DType::I64));
}

void fsdp::rt::reducePieces(Context &c, Stream stream, ReduceKind kind,
                            DType in, float scale, const Pieces &pieces,
                            Ptr result) {
  if (pieces.count == 0)
    return;
  auto launch = [&](auto kernel, auto *to) {
    gpu::startWith(c, stream, "reduce", kernel, gpu::elementsCut(pieces.count),
                   pieces, scale, to);
  };
  if (in == DType::I64)
    launch(reduceRanks<Add, int64_t, int64_t>, as<int64_t>(result));
  else if (in == DType::BF16)
    launch(reduceRanks<Add, float, BF16>, as<float>(result));
  else if (kind == ReduceKind::Max)
    launch(reduceRanks<Max, float, float>, as<float>(result));
  else
    launch(reduceRanks<Add, float, float>, as<float>(result));
}
