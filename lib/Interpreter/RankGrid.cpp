//===- RankGrid.cpp - Ranks, groups and what moves between them -----------===//
#include "RankGrid.h"
#include <cmath>

using namespace mlir;

namespace fsdp::interpret {

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

RankGrid::RankGrid(dist::MeshOp mesh) {
  if (!mesh)
    return;
  for (auto axis : mesh.getAxes().getAsRange<dist::MeshAxisAttr>())
    axes.emplace_back(axis.getName().str(), axis.getSize());
  world = mesh.getWorldSize();
}

std::vector<RankGrid::Digit> RankGrid::digits(Axes refs) const {
  std::vector<Digit> digits;
  for (dist::AxisRefAttr ref : refs) {
    int64_t stride = world;
    bool found = false;
    for (const auto &[name, size] : axes) {
      stride /= size;
      if (name != ref.getName())
        continue;
      found = true;
      if (ref.getSize() == 0)
        digits.push_back({stride, size});
      else
        digits.push_back(
            {stride * (size / (ref.getPre() * ref.getSize())), ref.getSize()});
    }
    if (!found)
      fail("the mesh has no axis '" + ref.getName().str() + "'");
  }
  return digits;
}

int64_t RankGrid::parts(Axes refs) const {
  int64_t product = 1;
  for (const Digit &digit : digits(refs))
    product *= digit.size;
  return product;
}

int64_t RankGrid::position(int64_t rank, Axes refs) const {
  int64_t position = 0;
  for (const Digit &digit : digits(refs))
    position = position * digit.size + rank / digit.stride % digit.size;
  return position;
}

std::vector<int64_t> RankGrid::group(int64_t rank, Axes refs) const {
  std::vector<Digit> all = digits(refs);
  int64_t first = rank;
  for (const Digit &digit : all)
    first -= rank / digit.stride % digit.size * digit.stride;
  std::vector<int64_t> ranks(parts(refs), first);
  for (size_t position = 0; position < ranks.size(); ++position) {
    int64_t rest = position;
    for (const Digit &digit : llvm::reverse(all)) {
      ranks[position] += rest % digit.size * digit.stride;
      rest /= digit.size;
    }
  }
  return ranks;
}

//===----------------------------------------------------------------------===//
// Parts of tensors
//===----------------------------------------------------------------------===//

/// A tensor as [outer][size along dim][inner].
static int64_t innerOf(const DenseTensor &tensor, int64_t dim) {
  return stridesOf(tensor.shape)[dim];
}

/// Copies `count` indices along `dim` between two places.
static void copyAlong(int64_t dim, int64_t count, const DenseTensor &from,
                      int64_t source, DenseTensor &to, int64_t target) {
  int64_t inner = innerOf(from, dim);
  int64_t outer = 1;
  for (int64_t i = 0; i < dim; ++i)
    outer *= from.shape[i];
  for (int64_t o = 0; o < outer; ++o) {
    auto begin = from.values.begin() + (o * from.shape[dim] + source) * inner;
    std::copy(begin, begin + count * inner,
              to.values.begin() + (o * to.shape[dim] + target) * inner);
  }
}

DenseTensor shardAlong(const DenseTensor &full, int64_t dim, int64_t parts,
                       int64_t position) {
  int64_t size = dist::shardSize(full.shape[dim], parts);
  std::vector<int64_t> shape = full.shape;
  shape[dim] = size;
  DenseTensor shard = DenseTensor::full(shape);
  int64_t count =
      std::clamp<int64_t>(full.shape[dim] - position * size, 0, size);
  if (count > 0)
    copyAlong(dim, count, full, position * size, shard, 0);
  return shard;
}

DenseTensor join(ArrayRef<const DenseTensor *> pieces, int64_t dim) {
  std::vector<int64_t> shape = pieces[0]->shape;
  shape[dim] = 0;
  for (const DenseTensor *piece : pieces)
    shape[dim] += piece->shape[dim];
  DenseTensor whole = DenseTensor::full(shape);
  int64_t at = 0;
  for (const DenseTensor *piece : pieces) {
    copyAlong(dim, piece->shape[dim], *piece, 0, whole, at);
    at += piece->shape[dim];
  }
  return whole;
}

DenseTensor prefix(const DenseTensor &tensor, int64_t dim, int64_t size) {
  std::vector<int64_t> shape = tensor.shape;
  shape[dim] = size;
  DenseTensor first = DenseTensor::full(shape);
  copyAlong(dim, size, tensor, 0, first, 0);
  return first;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

Tensors RankGrid::gather(const Tensors &local, Axes refs, int64_t dim,
                         int64_t size) const {
  Tensors full;
  for (int64_t rank = 0; rank < world; ++rank) {
    std::vector<const DenseTensor *> pieces;
    for (int64_t member : group(rank, refs))
      pieces.push_back(&local[member]);
    full.push_back(prefix(join(pieces, dim), dim, size));
  }
  return full;
}

Tensors RankGrid::scatter(const Tensors &full, Axes refs, int64_t dim) const {
  Tensors local;
  for (int64_t rank = 0; rank < world; ++rank)
    local.push_back(
        shardAlong(full[rank], dim, parts(refs), position(rank, refs)));
  return local;
}

Tensors RankGrid::parts(Tensors whole, const dist::Placement &placement) const {
  // Of a sum the first rank has all; the others add nothing.
  for (int64_t rank = 0; rank < world; ++rank)
    if (position(rank, placement.partial) != 0)
      whole[rank] = DenseTensor::full(whole[rank].shape);
  for (auto [dim, axes] : llvm::enumerate(placement.dims))
    for (Axes stage : {Axes(axes.compute), Axes(axes.storage)})
      if (!stage.empty())
        whole = scatter(whole, stage, dim);
  return whole;
}

/// Equal, or both NaN.
static bool isSame(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

static void checkReplica(StringRef name, const Tensors &whole, int64_t rank) {
  const DenseTensor &a = whole[0], &b = whole[rank];
  for (int64_t i = 0; i < a.size(); ++i)
    if (!isSame(a.values[i], b.values[i]))
      fail("'" + name.str() + "' differs between rank 0 (" +
           std::to_string(a.values[i]) + ") and rank " + std::to_string(rank) +
           " (" + std::to_string(b.values[i]) + "), element " +
           std::to_string(i));
}

DenseTensor RankGrid::joined(StringRef name, const Tensors &local,
                             const dist::Placement &placement,
                             ArrayRef<int64_t> shape) const {
  Tensors whole = local;
  if (!placement.partial.empty())
    whole = reduce(whole, placement.partial, {placement.kind, Type()});
  for (auto [dim, axes] : llvm::enumerate(placement.dims)) {
    if (!axes.storage.empty())
      whole =
          gather(whole, axes.storage, dim, shape[dim] / parts(axes.compute));
    if (!axes.compute.empty())
      whole = gather(whole, axes.compute, dim, shape[dim]);
  }
  for (int64_t rank = 1; rank < world; ++rank)
    checkReplica(name, whole, rank);
  if (!placement.partial.empty())
    return whole[0];
  Tensors expected = parts(whole, placement);
  for (int64_t rank = 0; rank < world; ++rank)
    for (int64_t i = 0; i < local[rank].size(); ++i)
      if (!isSame(local[rank].values[i], expected[rank].values[i]))
        fail("'" + name.str() + "' has padding that is not zero on rank " +
             std::to_string(rank));
  return whole[0];
}

namespace {

/// The tree of one group: nested by mesh axis, the last axis innermost; along
/// an axis binary, its left side the largest power of two below the ranks.
class Tree {
public:
  struct Level {
    int64_t size, stride; // ranks, and positions from one to the next
  };

  Tree(std::vector<const DenseTensor *> leaves, std::vector<Level> levels,
       const Reduction &reduction)
      : leaves(std::move(leaves)), levels(std::move(levels)),
        reduction(reduction) {}

  DenseTensor root() const { return rounded(level(0, 0)); }

private:
  DenseTensor rounded(DenseTensor tensor) const {
    if (reduction.rounded)
      roundTo(reduction.rounded, tensor);
    return tensor;
  }

  DenseTensor level(size_t depth, int64_t first) const {
    return depth == levels.size() ? *leaves[first]
                                  : node(depth, first, levels[depth].size);
  }

  DenseTensor node(size_t depth, int64_t first, int64_t count) const {
    if (count == 1)
      return level(depth + 1, first);
    int64_t left = 1;
    while (2 * left < count)
      left *= 2;
    return combine(
        node(depth, first, left),
        node(depth, first + left * levels[depth].stride, count - left));
  }

  DenseTensor combine(DenseTensor a, const DenseTensor &b) const {
    bool sum = reduction.kind == dist::CollectiveReduce::Sum;
    for (int64_t i = 0; i < a.size(); ++i) {
      double &x = a.values[i], y = b.values[i];
      // A maximum keeps a NaN of either side.
      x = sum ? x + y : (x > y || std::isnan(x)) ? x : y;
    }
    return rounded(std::move(a));
  }

  std::vector<const DenseTensor *> leaves;
  std::vector<Level> levels;
  const Reduction &reduction;
};

} // namespace

Tensors RankGrid::reduce(const Tensors &local, Axes refs,
                         const Reduction &reduction) const {
  // Axes in the order of the mesh, which is that of their strides.
  std::vector<std::pair<int64_t, Tree::Level>> ordered;
  int64_t positions = 1;
  std::vector<Digit> all = digits(refs);
  for (const Digit &digit : llvm::reverse(all)) {
    ordered.push_back({digit.stride, {digit.size, positions}});
    positions *= digit.size;
  }
  llvm::stable_sort(
      ordered, [](const auto &a, const auto &b) { return a.first > b.first; });
  std::vector<Tree::Level> levels;
  for (const auto &[stride, level] : ordered)
    levels.push_back(level);

  Tensors reduced(world);
  for (int64_t rank = 0; rank < world; ++rank) {
    std::vector<int64_t> members = group(rank, refs);
    if (members[0] != rank) {
      reduced[rank] = reduced[members[0]];
      continue;
    }
    std::vector<const DenseTensor *> leaves;
    for (int64_t member : members)
      leaves.push_back(&local[member]);
    reduced[rank] = Tree(std::move(leaves), levels, reduction).root();
  }
  return reduced;
}

} // namespace fsdp::interpret
