//===- Reduce.cu - Sums over ranks in a fixed order -----------------------===//
#include "../Device.h"
#include "Reduce.h"

#include <type_traits>

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

/// The elements of the rank at position `at`.
template <typename In>
FSDP_DEVICE const In *pieceOf(const Pieces &p, const Pieces::Item &item,
                              int at) {
  const In *own = reinterpret_cast<const In *>(item.own);
  const In *others = reinterpret_cast<const In *>(item.others);
  return at == p.me ? own : others + (at - (at > p.me)) * item.slot;
}

/// Sums of neighbours.
template <typename Acc, int N> struct Sums { Acc at[N]; };

template <typename Acc, typename In, int N>
FSDP_DEVICE Sums<Acc, N> elementsOf(const Pieces &p, const Pieces::Item &item,
                                    int at, int64_t first) {
  const auto x = gpu::load<N>(pieceOf<In>(p, item, at) + first);
  Sums<Acc, N> sums;
  FSDP_UNROLL
  for (int i = 0; i < N; ++i)
    sums.at[i] = load(x[i]);
  return sums;
}

template <typename Combine, typename Acc, int N>
FSDP_DEVICE Sums<Acc, N> combined(const Sums<Acc, N> &a,
                                  const Sums<Acc, N> &b) {
  Sums<Acc, N> sums;
  FSDP_UNROLL
  for (int i = 0; i < N; ++i)
    sums.at[i] = Combine::apply(a.at[i], b.at[i]);
  return sums;
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

/// N elements of every rank, in the order of the tree. Like the digits of a
/// counter, two sums of the same number of ranks along an axis are one of the
/// next digit; a sum of all of them is one rank of the axis before.
template <typename Combine, typename Acc, typename In, int Levels, int N>
FSDP_DEVICE Sums<Acc, N> tree(const Pieces &p, const Pieces::Item &item,
                              int64_t first) {
  Stack<Sums<Acc, N>, Levels> parts{};
  int at = 0;
  for (int rank = 0;; ++rank) {
    Sums<Acc, N> sum = elementsOf<Acc, In, N>(p, item, at, first);
    int axis = p.ranks.axes - 1, rest = rank;
    for (; axis >= 0; --axis) {
      auto [size, stride] = p.ranks.axis[axis];
      const int index = rest % size; // of the rank along the axis
      rest /= size;
      for (int full = index; full & 1; full >>= 1)
        sum = combined<Combine>(parts.pop(), sum);
      if (index + 1 < size) {
        parts.push(sum);
        at += stride;
        break;
      }
      // The axis is whole. What is left along it: one sum for every digit of
      // its size but the last.
      for (int digits = size; digits & (digits - 1); digits &= digits - 1)
        sum = combined<Combine>(parts.pop(), sum);
      at -= (size - 1) * stride;
    }
    if (axis < 0)
      return sum;
  }
}

/// The same of `Ranks` ranks, a power of two, from position `at` on: both
/// halves are trees. No index and no branch is left, so that all reads are on
/// their way before the first sum.
template <typename Combine, typename Acc, typename In, int Ranks, int N>
FSDP_DEVICE Sums<Acc, N> halves(const Pieces &p, const Pieces::Item &item,
                                int at, int64_t first) {
  if constexpr (Ranks == 1)
    return elementsOf<Acc, In, N>(p, item, at, first);
  else
    return combined<Combine>(
        halves<Combine, Acc, In, Ranks / 2, N>(p, item, at, first),
        halves<Combine, Acc, In, Ranks / 2, N>(p, item, at + Ranks / 2, first));
}

/// Elements that a thread takes at a time: 16 bytes of every rank.
template <typename In> constexpr int kNeighbours = 16 / sizeof(In);

/// Stores what sum(Count, item, first element) returns, for all elements of
/// this block's item. `N` at a time, where every piece begins as it must.
template <int N, typename In, typename Acc, typename Sum>
FSDP_DEVICE void reduceElements(const Pieces &p, const Sum &sum) {
  int number = 0;
  while (int64_t(blockIdx.x) >= p.firstBlock[number + 1])
    ++number;
  const Pieces::Item &item = p.item[number];
  const int64_t block = int64_t(blockIdx.x) - p.firstBlock[number];
  const bool aligned = gpu::areVectorAligned(item.own, item.others, item.out) &&
                       item.slot % kNeighbours<In> == 0;
  gpu::neighbours<N>(block, item.count, aligned, [&](auto n, int64_t first) {
    const auto sums = sum(n, item, first);
    gpu::Vector<Acc, n.value> result;
    FSDP_UNROLL
    for (int i = 0; i < n.value; ++i)
      result[i] = sums.at[i];
    gpu::store(reinterpret_cast<Acc *>(item.out) + first, result);
  });
}

/// The pieces stay where they were passed: a copy to index into would be in
/// memory.
template <typename Combine, typename Acc, typename In, int Levels>
__global__ void reduceRanks(const __grid_constant__ Pieces p) {
  // Many levels leave no registers for neighbours.
  constexpr int N = Levels > 8 ? 1 : kNeighbours<In>;
  reduceElements<N, In, Acc>(
      p, [&](auto n, const Pieces::Item &item, int64_t i) {
        return tree<Combine, Acc, In, Levels, n.value>(p, item, i);
      });
}

/// `Ranks` ranks, a power of two, whose positions are in the order of the tree.
template <typename Acc, typename In, int Ranks>
__global__ void addRanks(const __grid_constant__ Pieces p) {
  reduceElements<kNeighbours<In>, In, Acc>(
      p, [&](auto n, const Pieces::Item &item, int64_t i) {
        return halves<Add, Acc, In, Ranks, n.value>(p, item, 0, i);
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

/// The number of ranks where both halves of them are trees of neighbours: it is
/// a power of two along every axis, and positions are in the order of the mesh.
/// Otherwise 0.
static int ranksInHalves(const RankTree &ranks) {
  int below = 1;
  for (int i = ranks.axes - 1; i >= 0; --i) {
    auto [size, stride] = ranks.axis[i];
    if ((size & (size - 1)) != 0 || stride != below)
      return 0;
    below *= size;
  }
  return below;
}

template <typename Combine, typename Acc, typename In>
static void reduce(Context &c, Stream stream, Pieces &pieces) {
  auto launch = [&](auto kernel, int neighbours = kNeighbours<In>) {
    pieces.firstBlock[0] = 0;
    for (int i = 0; i < pieces.items; ++i)
      pieces.firstBlock[i + 1] =
          pieces.firstBlock[i] +
          gpu::vectorsShape(pieces.item[i].count, neighbours).blocks;
    gpu::startWith(c, stream, "reduce", kernel,
                   gpu::LaunchShape{pieces.firstBlock[pieces.items],
                                    gpu::kThreads, 1, true},
                   pieces);
  };
  // Gradients are sums in f32. Maxima and counts are of single numbers.
  if constexpr (std::is_same_v<Combine, Add> && std::is_same_v<Acc, float>)
    switch (ranksInHalves(pieces.ranks)) {
    case 2:
      return launch(addRanks<Acc, In, 2>);
    case 4:
      return launch(addRanks<Acc, In, 4>);
    case 8:
      return launch(addRanks<Acc, In, 8>);
    case 16:
      return launch(addRanks<Acc, In, 16>);
    default:
      break;
    }
  // The fewer levels, the fewer moves. The last is more than 2^20 ranks need.
  const int levels = levelsOf(pieces.ranks);
  if (levels <= 3)
    launch(reduceRanks<Combine, Acc, In, 3>);
  else if (levels <= 8)
    launch(reduceRanks<Combine, Acc, In, 8>);
  else
    launch(reduceRanks<Combine, Acc, In, 28>, 1);
}

void fsdp::rt::reducePieces(Context &c, Stream stream, ReduceKind kind,
                            DType in, Pieces &pieces) {
  if (pieces.items == 0)
    return;
  if (in == DType::I64)
    reduce<Add, int64_t, int64_t>(c, stream, pieces);
  else if (in == DType::BF16)
    reduce<Add, float, BF16>(c, stream, pieces);
  else if (kind == ReduceKind::Max)
    reduce<Max, float, float>(c, stream, pieces);
  else
    reduce<Add, float, float>(c, stream, pieces);
}
