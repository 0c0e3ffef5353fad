//===- Reduce.cu - Sums over ranks in a fixed order -----------------------===//
#include "../Device.h"
#include "Reduce.h"

using namespace fsdp::rt;
using namespace fsdp::rt::device;

namespace fsdp::rt::device {

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

/// Element `i` of the rank at position `at`.
template <typename In>
FSDP_DEVICE auto pieceOf(const Pieces &p, int at, int64_t i) {
  const In *own = reinterpret_cast<const In *>(p.own);
  const In *others = reinterpret_cast<const In *>(p.others);
  return load(at == p.me ? own[i] : others[(at - (at > p.me)) * p.slot + i]);
}

/// Element `i` of every rank, in the order of the tree. Like the digits of a
/// counter, two sums of the same number of ranks along an axis are one of the
/// next digit; a sum of all of them is one rank of the axis before.
template <typename Combine, typename Acc, typename In>
FSDP_DEVICE Acc tree(const Pieces &p, int64_t i) {
  constexpr int kLevels = 32;
  Acc level[kLevels];
  int index[RankTree::kMaxAxes] = {}; // of the rank along each axis
  int depth = 0, at = 0;
  for (;;) {
    Acc sum = pieceOf<In>(p, at, i);
    int axis = p.ranks.axes - 1;
    for (; axis >= 0; --axis) {
      for (int full = index[axis]; full & 1; full >>= 1)
        sum = Combine::apply(level[--depth], sum);
      auto [size, stride] = p.ranks.axis[axis];
      if (index[axis] + 1 < size) {
        level[depth++] = sum;
        ++index[axis];
        at += stride;
        break;
      }
      // The axis is whole. What is left along it: one sum for every digit of
      // its size but the last.
      for (int digits = size; digits & (digits - 1); digits &= digits - 1)
        sum = Combine::apply(level[--depth], sum);
      index[axis] = 0;
      at -= (size - 1) * stride;
    }
    if (axis < 0)
      return sum;
  }
}

template <typename Combine, typename Acc, typename In>
__global__ void reduceRanks(Pieces p, float scale, Acc *out) {
  gpu::elements(p.count, 1, [&](int64_t i, int64_t) {
    out[i] = scaled(tree<Combine, Acc, In>(p, i), scale);
  });
}

} // namespace fsdp::rt::device

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
