//===- Placement.cpp - #fsdp.placement and the moves between two ----------===//
#include "dialects/Fsdp/Placement.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::dist;

//===----------------------------------------------------------------------===//
// Attribute and working form
//===----------------------------------------------------------------------===//

Placement::Placement(PlacementAttr attribute)
    : partial(attribute.getPartial()), kind(attribute.getKind()) {
  for (DimAxesAttr dim : attribute.getDims())
    dims.push_back({AxisList(dim.getCompute()), AxisList(dim.getStorage())});
}

PlacementAttr Placement::attribute(MLIRContext *context) const {
  SmallVector<DimAxesAttr> attributes;
  for (const Dim &dim : dims)
    attributes.push_back(DimAxesAttr::get(context, dim.compute, dim.storage));
  // Without parts there is nothing that a kind would combine.
  return PlacementAttr::get(context, attributes, partial,
                            partial.empty() ? CollectiveReduce::Sum : kind);
}

bool Placement::operator==(const Placement &other) const {
  // Which axis a sum names first means nothing.
  bool samePartial = partial.size() == other.partial.size() &&
                     llvm::all_of(partial, [&](AxisRefAttr axis) {
                       return other.isPartial(axis);
                     });
  return dims == other.dims && samePartial &&
         (partial.empty() || kind == other.kind);
}

Placement Placement::withoutStorage() const {
  Placement computed = *this;
  for (Dim &dim : computed.dims)
    dim.storage.clear();
  return computed;
}

int64_t Placement::dimOf(AxisRefAttr axis) const {
  for (auto [i, dim] : llvm::enumerate(dims))
    if (llvm::is_contained(dim.compute, axis) ||
        llvm::is_contained(dim.storage, axis))
      return i;
  return -1;
}

PlacementAttr PlacementAttr::replicated(MLIRContext *context, int64_t rank) {
  return Placement(rank).attribute(context);
}

PlacementAttr PlacementAttr::getCompute() {
  return Placement(*this).withoutStorage().attribute(getContext());
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

LogicalResult
PlacementAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                      ArrayRef<DimAxesAttr> dims, ArrayRef<AxisRefAttr> partial,
                      CollectiveReduce kind) {
  SmallVector<AxisRefAttr> all(partial);
  for (DimAxesAttr dim : dims) {
    llvm::append_range(all, dim.getCompute());
    llvm::append_range(all, dim.getStorage());
  }
  for (auto [i, axis] : llvm::enumerate(all)) // 1
    for (AxisRefAttr other : ArrayRef(all).take_front(i))
      if (overlap(axis, other))
        return emitError() << "a placement names mesh axis \"" << axis.getName()
                           << "\" twice";
  return success();
}

LogicalResult fsdp::dist::verifyPlacementAxes(EmitError emitError, int64_t rank,
                                              PlacementAttr attribute,
                                              MeshOp mesh, bool mayBeStored) {
  Placement placement(attribute);
  if (static_cast<int64_t>(placement.dims.size()) != rank) // 3
    return emitError() << "placement " << attribute << " of "
                       << placement.dims.size() << " dimensions on a tensor of "
                       << rank;
  AxisList all = placement.partial;
  bool stored = false;
  for (const Placement::Dim &dim : placement.dims) {
    llvm::append_range(all, dim.compute);
    llvm::append_range(all, dim.storage);
    stored |= !dim.storage.empty();
  }
  for (AxisRefAttr axis : all) // 4
    if (mesh.sizeOf(axis) == 0)
      return emitError() << "placement " << attribute << " over " << axis
                         << ", which mesh @" << mesh.getSymName() << " lacks";
  if (stored && (!mayBeStored || !placement.partial.empty())) // 6
    return emitError() << "placement " << attribute
                       << " with storage axes, which only parameters, buffers "
                          "and their gradients have";
  return success();
}

LogicalResult fsdp::dist::verifyPlacement(EmitError emitError,
                                          RankedTensorType logical,
                                          PlacementAttr attribute, MeshOp mesh,
                                          bool mayBeStored) {
  if (failed(verifyPlacementAxes(emitError, logical.getRank(), attribute, mesh,
                                 mayBeStored)))
    return failure();
  for (auto [i, dim] : llvm::enumerate(attribute.getDims())) { // 5
    int64_t parts = mesh.sizeOf(dim.getCompute());
    if (parts == 0 || logical.getDimSize(i) % parts != 0)
      return emitError() << "placement " << attribute
                         << " that splits dimension " << i << " of " << logical
                         << " into " << parts
                         << " parts, which do not divide it";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Local types
//===----------------------------------------------------------------------===//

RankedTensorType fsdp::dist::localType(RankedTensorType logical,
                                       const Placement &placement,
                                       MeshOp mesh) {
  SmallVector<int64_t> shape(logical.getShape());
  for (auto [size, dim] : llvm::zip_equal(shape, placement.dims))
    size = shardSize(size / mesh.sizeOf(dim.compute), mesh.sizeOf(dim.storage));
  return RankedTensorType::get(shape, logical.getElementType());
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

void fsdp::dist::sortByMesh(AxisList &axes, MeshOp mesh) {
  auto place = [&](AxisRefAttr axis) {
    int64_t index = 0;
    for (auto own : mesh.getAxes().getAsRange<MeshAxisAttr>()) {
      if (own.getName() == axis.getName())
        break;
      ++index;
    }
    return std::pair(index, axis.getPre());
  };
  llvm::sort(axes,
             [&](AxisRefAttr a, AxisRefAttr b) { return place(a) < place(b); });
}

namespace {

/// Finds the moves one by one: first what makes the tensor smaller, last what
/// makes it larger.
class MoveFinder {
public:
  MoveFinder(Placement from, const Placement &to, MeshOp mesh)
      : now(std::move(from)), to(to), mesh(mesh) {}

  SmallVector<Move> run() {
    while (now != to)
      if (!shard() && !reduce() && !exchange() && !gather())
        llvm_unreachable("one of these brings a placement nearer");
    return std::move(moves);
  }

private:
  /// The axes after those that dimension `d` has already, as the target has
  /// them; none if something must be gathered first.
  AxisList missing(int64_t d) const {
    const Placement::Dim &have = now.dims[d], &want = to.dims[d];
    if (!have.storage.empty() || !isPrefix(have.compute, want.compute))
      return {};
    if (have.compute.size() == want.compute.size())
      return want.storage;
    return llvm::to_vector<2>(
        ArrayRef(want.compute).drop_front(have.compute.size()));
  }

  static bool isPrefix(ArrayRef<AxisRefAttr> list, ArrayRef<AxisRefAttr> of) {
    return list.size() <= of.size() && list == of.take_front(list.size());
  }

  bool isFree(AxisRefAttr axis) const {
    return now.dimOf(axis) < 0 && !now.isPartial(axis);
  }

  /// True if the next stage of `d` is its storage, which is sharded at once.
  bool isStorage(int64_t d) const {
    return now.dims[d].compute.size() == to.dims[d].compute.size();
  }

  void shardDim(int64_t d, ArrayRef<AxisRefAttr> axes) {
    Placement::Dim &dim = now.dims[d];
    llvm::append_range(isStorage(d) ? dim.storage : dim.compute, axes);
  }

  void push(std::optional<CollectiveKind> kind, AxisList axes, int64_t from,
            int64_t to) {
    bool nests = kind == CollectiveKind::AllReduce && !moves.empty() &&
                 moves.back().kind == kind;
    if (nests) { // Trees nest, so one collective does both.
      llvm::append_range(axes, moves.back().axes);
      moves.pop_back();
    }
    moves.push_back({kind, std::move(axes), from, to, now});
  }

  bool shard() {
    for (int64_t d = 0, e = now.dims.size(); d < e; ++d) {
      AxisList axes = missing(d);
      // Storage is sharded over all axes or none, computation as far as it
      // goes.
      auto *end = llvm::find_if(axes, [&](auto a) { return !isFree(a); });
      if (isStorage(d) ? end != axes.end() : end == axes.begin())
        continue;
      axes.erase(end, axes.end());
      if (axes.empty())
        continue;
      shardDim(d, axes);
      push(/*kind=*/std::nullopt, axes, -1, d);
      return true;
    }
    return false;
  }

  /// The last of the axes to be summed over, with those before it that one
  /// scatter takes along.
  bool reduce() {
    AxisList sums;
    llvm::copy_if(now.partial, std::back_inserter(sums),
                  [&](AxisRefAttr axis) { return !to.isPartial(axis); });
    if (sums.empty())
      return false;
    sortByMesh(sums, mesh);
    for (int64_t d = 0, e = now.dims.size(); d < e; ++d)
      if (size_t count = scattered(missing(d), sums, isStorage(d))) {
        AxisList axes = llvm::to_vector<2>(ArrayRef(sums).take_back(count));
        resolve(axes);
        shardDim(d, axes);
        push(CollectiveKind::ReduceScatter, axes, -1, d);
        return true;
      }
    // A gather that stands in the way of a scatter comes first.
    int64_t wanted = to.dimOf(sums.back());
    if (wanted >= 0 && missing(wanted).empty() && gather())
      return true;
    AxisList last{sums.back()};
    resolve(last);
    push(CollectiveKind::AllReduce, last, -1, -1);
    return true;
  }

  /// How many of the first of `axes` are the last of `sums`.
  static size_t scattered(ArrayRef<AxisRefAttr> axes,
                          ArrayRef<AxisRefAttr> sums, bool needsAll) {
    for (size_t n = std::min(axes.size(), sums.size()); n > 0; --n)
      if (axes.take_front(n) == sums.take_back(n))
        return needsAll && n != axes.size() ? 0 : n;
    return 0;
  }

  void resolve(ArrayRef<AxisRefAttr> axes) {
    llvm::erase_if(now.partial,
                   [&](auto axis) { return llvm::is_contained(axes, axis); });
  }

  bool exchange() {
    for (int64_t d = 0, e = now.dims.size(); d < e; ++d) {
      AxisList axes = missing(d);
      if (axes.empty() || isStorage(d))
        continue;
      int64_t from = now.dimOf(axes[0]);
      if (from < 0 || from == d || !now.dims[from].storage.empty() ||
          now.dims[from].compute.back() != axes[0] ||
          isPrefix(now.dims[from].compute, to.dims[from].compute))
        continue;
      now.dims[from].compute.pop_back();
      now.dims[d].compute.push_back(axes[0]);
      push(CollectiveKind::AllToAll, {axes[0]}, from, d);
      return true;
    }
    return false;
  }

  bool gather() {
    for (int64_t d = 0, e = now.dims.size(); d < e; ++d) {
      Placement::Dim &have = now.dims[d];
      const Placement::Dim &want = to.dims[d];
      if (have == want)
        continue;
      AxisList axes = std::move(have.storage);
      have.storage.clear();
      if (axes.empty()) {
        size_t kept = 0;
        while (kept < std::min(have.compute.size(), want.compute.size()) &&
               have.compute[kept] == want.compute[kept])
          ++kept;
        axes.assign(have.compute.begin() + kept, have.compute.end());
        have.compute.truncate(kept);
      }
      if (axes.empty())
        continue;
      push(CollectiveKind::AllGather, axes, d, -1);
      return true;
    }
    return false;
  }

  Placement now;
  const Placement &to;
  MeshOp mesh;
  SmallVector<Move> moves;
};

} // namespace

bool fsdp::dist::canMove(const Placement &from, const Placement &to) {
  return to.partial.empty() ||
         (from.kind == to.kind && llvm::all_of(to.partial, [&](auto axis) {
            return from.isPartial(axis);
          }));
}

/// Over one rank nothing moves, and such an axis stands in nobody's way.
static Placement withoutSingleRanks(Placement placement, MeshOp mesh) {
  auto isSingle = [&](AxisRefAttr axis) { return mesh.sizeOf(axis) == 1; };
  for (Placement::Dim &dim : placement.dims) {
    llvm::erase_if(dim.compute, isSingle);
    llvm::erase_if(dim.storage, isSingle);
  }
  llvm::erase_if(placement.partial, isSingle);
  return placement;
}

SmallVector<Move> fsdp::dist::movesBetween(const Placement &from,
                                           const Placement &to, MeshOp mesh) {
  Placement target = withoutSingleRanks(to, mesh);
  return MoveFinder(withoutSingleRanks(from, mesh), target, mesh).run();
}

/// How often a rank receives the pieces of the others.
static int64_t timesReceived(CollectiveKind kind, int64_t ranks) {
  CollectiveLayout layout = layoutOf(kind);
  // An exchange is a gather, of which each rank keeps its part.
  if (layout.joins && layout.splits)
    return ranks;
  return layout.combines && !layout.splits ? 2 : 1;
}

int64_t fsdp::dist::bytesOf(ArrayRef<Move> moves, const Placement &from,
                            RankedTensorType logical, MeshOp mesh) {
  CheckedSize bytes = 0;
  RankedTensorType before = localType(logical, from, mesh);
  for (const Move &move : moves) {
    RankedTensorType after = localType(logical, move.after, mesh);
    int64_t ranks = mesh.sizeOf(move.axes);
    bool gathers = move.kind && isGather(*move.kind);
    int64_t whole = nn::bytesOf(gathers ? after : before);
    int64_t times = move.kind ? timesReceived(*move.kind, ranks) : 0;
    bytes += CheckedSize(whole / ranks) * (ranks - 1) * times;
    before = after;
  }
  return bytes.saturated();
}
