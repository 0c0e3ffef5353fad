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

/// Partial sums, the latest first. Every place is known when the kernel is
/// compiled, so they lie in registers: an index would put them into memory.
template <typename Acc, int Levels> struct Stack {
  Acc level[Levels];

  FSDP_DEVICE void push(Acc sum) {
    for (int i = Levels - 1; i > 0; --i)
      level[i] = level[i - 1];
    level[0] = sum;
  }
  FSDP_DEVICE Acc pop() {
    Acc sum = level[0];
    for (int i = 1; i < Levels; ++i)
      level[i - 1] = level[i];
    return sum;
  }
};

/// Element `i` of every rank, in the order of the tree. Like the digits of a
/// counter, two sums of the same number of ranks along an axis are one of the
/// next digit; a sum of all of them is one rank of the axis before.
template <typename Combine, typename Acc, typename In, int Levels>
FSDP_DEVICE Acc tree(const Pieces &p, int64_t i) {
  Stack<Acc, Levels> parts{};
  int at = 0;
  for (int rank = 0;; ++rank) {
    Acc sum = pieceOf<In>(p, at, i);
    int axis = p.ranks.axes - 1, rest = rank;
    for (; axis >= 0; --axis) {
      auto [size, stride] = p.ranks.axis[axis];
      const int index = rest % size; // of the rank along the axis
      rest /= size;
      for (int full = index; full & 1; full >>= 1)
        sum = Combine::apply(parts.pop(), sum);
      if (index + 1 < size) {
        parts.push(sum);
        at += stride;
        break;
      }
      // The axis is whole. What is left along it: one sum for every digit of
      // its size but the last.
      for (int digits = size; digits & (digits - 1); digits &= digits - 1)
        sum = Combine::apply(parts.pop(), sum);
      at -= (size - 1) * stride;
    }
    if (axis < 0)
      return sum;
  }
}

/// The pieces stay where they were passed: a copy to index into would be in
/// memory.
template <typename Combine, typename Acc, typename In, int Levels>
__global__ void reduceRanks(const __grid_constant__ Pieces p, float scale,
                            Acc *out) {
  gpu::elements(p.count, 1, [&](int64_t i, int64_t) {
    out[i] = scaled(tree<Combine, Acc, In, Levels>(p, i), scale);
  });
}

} // namespace fsdp::rt::device

bool fsdp::rt::canReduce(ReduceKind kind, DType in, DType out) {
  if (in == DType::F32 && out == DType::F32)
    return true;
  return kind == ReduceKind::Sum && ((in == DType::BF16 && out == DType::F32) ||
                                     (in == DType::I64 && out == DType::I64));
}

/// The most partial sums that wait at once: one per digit of an index.
static int levelsOf(const RankTree &ranks) {
  int levels = 0;
  for (int i = 0; i < ranks.axes; ++i)
    for (int largest = ranks.axis[i].size - 1; largest > 0; largest >>= 1)
      ++levels;
  return levels;
}

template <typename Combine, typename Acc, typename In>
static void reduce(Context &c, Stream stream, float scale, const Pieces &pieces,
                   Ptr result) {
  auto launch = [&](auto kernel) {
    gpu::startWith(c, stream, "reduce", kernel, gpu::elementsCut(pieces.count),
                   pieces, scale, as<Acc>(result));
  };
  // The fewer levels, the fewer moves. The last is more than 2^20 ranks need.
  const int levels = levelsOf(pieces.ranks);
  if (levels <= 3)
    launch(reduceRanks<Combine, Acc, In, 3>);
  else if (levels <= 8)
    launch(reduceRanks<Combine, Acc, In, 8>);
  else
    launch(reduceRanks<Combine, Acc, In, 28>);
}

void fsdp::rt::reducePieces(Context &c, Stream stream, ReduceKind kind,
                            DType in, float scale, const Pieces &pieces,
                            Ptr result) {
  if (pieces.count == 0)
    return;
  if (in == DType::I64)
    reduce<Add, int64_t, int64_t>(c, stream, scale, pieces, result);
  else if (in == DType::BF16)
    reduce<Add, float, BF16>(c, stream, scale, pieces, result);
  else if (kind == ReduceKind::Max)
    reduce<Max, float, float>(c, stream, scale, pieces, result);
  else
    reduce<Add, float, float>(c, stream, scale, pieces, result);
}
