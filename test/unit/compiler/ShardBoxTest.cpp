//===- ShardBoxTest.cpp - Which part of a tensor a rank holds -------------===//
//
// Four places know it, each written by itself: the compiler says it as the type
// of a part and as the moves that lead to a placement and back, the runtime
// reads it from the manifest, the interpreter from the text of the dialect. For
// random placements on random meshes, shards that end early or are empty among
// them, all ranks get the same elements from each.
//
//===----------------------------------------------------------------------===//
#include "dialects/Exec/Exec.h"
#include "fsdp/Artifact/Manifest.h"
#include "fsdp/Emit/EmitManifest.h"
#include "lib/Interpreter/RankGrid.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::interpret;

namespace {

constexpr int kMeshes = 100, kPlacements = 10;

/// A mesh by seed, and tensors that are placed on it.
class RandomMesh {
public:
  RandomMesh(MLIRContext &context, unsigned seed)
      : context(context), builder(&context), generator(seed),
        module(ModuleOp::create(builder, builder.getUnknownLoc())) {
    builder.setInsertionPointToStart(module->getBody());
    SmallVector<Attribute> axes;
    for (int64_t a = 0, count = oneOf({1, 2, 3}); a < count; ++a)
      axes.push_back(makeAxis("axis" + std::to_string(a)));
    mesh = dist::MeshOp::create(
        builder, module->getLoc(), builder.getStringAttr("mesh"),
        builder.getArrayAttr(axes), builder.getI64IntegerAttr(0));
  }

  /// A range of the module: a random tensor, placed at random.
  exec::RangeOp addRange() {
    auto [whole, placement] = makePlaced();
    RankedTensorType part =
        dist::localType(whole, dist::Placement(placement), mesh);
    auto type = MemRefType::get(part.getShape(), part.getElementType());
    auto range = exec::RangeOp::create(
        builder, module->getLoc(),
        builder.getStringAttr("range" + std::to_string(ranges++)),
        TypeAttr::get(type),
        exec::RoleAttr::get(&context, exec::Role::Parameter),
        builder.getI64IntegerAttr(arena), TypeAttr::get(whole),
        /*init=*/Attribute(), placement);
    arena += llvm::alignTo(exec::bytesOf(type), exec::kAlignment);
    return range;
  }

  /// As the runtime reads what the compiler writes.
  rt::Manifest manifest() {
    for (StringRef bytes : {exec::kArenaBytesAttr, exec::kPersistentBytesAttr})
      (*module)->setAttr(bytes, builder.getI64IntegerAttr(arena));
    FailureOr<std::string> text = makeManifest(*module, {});
    return succeeded(text) ? rt::parseManifest(*text, "the manifest")
                           : rt::Manifest();
  }

  dist::MeshOp mesh;

private:
  int64_t oneOf(ArrayRef<int64_t> values) {
    return values[generator() % values.size()];
  }

  /// An axis, named whole or in two parts.
  dist::MeshAxisAttr makeAxis(const std::string &name) {
    int64_t size = oneOf({1, 2, 3, 4, 6});
    auto add = [&](int64_t pre, int64_t part) {
      refs.push_back(dist::AxisRefAttr::get(&context, name, pre, part));
    };
    if (size < 4 || generator() % 2 == 0) {
      add(1, 0);
    } else {
      add(1, size / 2);
      add(size / 2, 2);
    }
    return dist::MeshAxisAttr::get(&context, name, size, std::nullopt);
  }

  /// Compute axes divide a dimension, storage axes need not.
  std::pair<RankedTensorType, dist::PlacementAttr> makePlaced() {
    int64_t rank = oneOf({0, 1, 2, 3});
    dist::Placement placement(rank);
    std::shuffle(refs.begin(), refs.end(), generator);
    for (dist::AxisRefAttr axis : refs) {
      if (rank == 0 || generator() % 4 == 0)
        continue;
      dist::Placement::Dim &dim = placement.dims[generator() % rank];
      (generator() % 2 ? dim.compute : dim.storage).push_back(axis);
    }
    SmallVector<int64_t> shape;
    for (const dist::Placement::Dim &dim : placement.dims)
      shape.push_back(mesh.sizeOf(dim.compute) * oneOf({1, 2, 3, 5, 7}));
    return {RankedTensorType::get(shape, builder.getF32Type()),
            placement.attribute(&context)};
  }

  MLIRContext &context;
  OpBuilder builder;
  std::mt19937_64 generator;
  OwningOpRef<ModuleOp> module;
  std::vector<dist::AxisRefAttr> refs;
  int64_t arena = 0, ranges = 0;
};

/// What every rank holds. Elements are numbered from 1 on, padding is 0.
struct Held {
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::vector<double>> values;

  explicit Held(const Tensors &tensors = {}) {
    for (const DenseTensor &tensor : tensors) {
      shapes.push_back(tensor.shape);
      values.push_back(tensor.values);
    }
  }
  bool operator==(const Held &other) const {
    return shapes == other.shapes && values == other.values;
  }
};

void PrintTo(const Held &held, std::ostream *out) {
  for (const std::vector<double> &ofRank : held.values)
    *out << testing::PrintToString(ofRank) << '\n';
}

Tensors wholeOnAll(RankedTensorType type, int64_t ranks) {
  DenseTensor whole = DenseTensor::full(type.getShape().vec());
  std::iota(whole.values.begin(), whole.values.end(), 1);
  return Tensors(ranks, whole);
}

/// By the moves from everywhere to the placement, and the type after each.
Tensors byMoves(Tensors held, const dist::Placement &placement,
                RankedTensorType whole, dist::MeshOp mesh) {
  RankGrid grid(mesh);
  dist::Placement everywhere(whole.getRank());
  for (const dist::Move &move : movesBetween(everywhere, placement, mesh)) {
    EXPECT_FALSE(move.kind.has_value()); // shard_of
    held = grid.scatter(held, move.axes, move.to);
    EXPECT_EQ(ArrayRef(held[0].shape),
              dist::localType(whole, move.after, mesh).getShape());
  }
  return held;
}

/// Back again.
Tensors gathered(Tensors held, const dist::Placement &placement,
                 RankedTensorType whole, dist::MeshOp mesh) {
  RankGrid grid(mesh);
  dist::Placement everywhere(whole.getRank());
  for (const dist::Move &move : movesBetween(placement, everywhere, mesh)) {
    EXPECT_EQ(move.kind, dist::CollectiveKind::AllGather);
    RankedTensorType after = dist::localType(whole, move.after, mesh);
    held = grid.gather(held, move.axes, move.from, after.getDimSize(move.from));
  }
  return held;
}

/// By the manifest: the numbers of the box of each rank, where it stores them.
Held byManifest(const rt::Manifest &manifest, const rt::RangeInfo &range) {
  Held held;
  for (int64_t rank = 0; rank < manifest.ranks(); ++rank) {
    rt::ShardView view = manifest.shardView(range, rank);
    std::vector<double> values(rt::elementCount(view.stored));
    rt::forEachRun(view, range.full,
                   [&](int64_t stored, int64_t whole, int64_t count) {
                     std::iota(values.begin() + stored,
                               values.begin() + stored + count, whole + 1);
                   });
    held.shapes.push_back(view.stored);
    held.values.push_back(std::move(values));
  }
  return held;
}

TEST(ShardBox, IsOneForCompilerManifestAndInterpreter) {
  MLIRContext context;
  context.loadDialect<exec::ExecDialect, dist::FsdpDialect>();
  int early = 0;
  for (int seed = 0; seed < kMeshes; ++seed) {
    RandomMesh random(context, seed);
    std::vector<exec::RangeOp> ranges(kPlacements);
    for (exec::RangeOp &range : ranges)
      range = random.addRange();
    rt::Manifest manifest = random.manifest();
    ASSERT_EQ(manifest.ranges.size(), ranges.size());
    RankGrid grid(random.mesh);
    for (auto [i, range] : llvm::enumerate(ranges)) {
      std::string text;
      llvm::raw_string_ostream(text) << random.mesh << '\n' << range;
      SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text);
      auto whole = cast<RankedTensorType>(*range.getFull());
      dist::Placement placement(range.getPlacementAttr());
      Tensors all = wholeOnAll(whole, grid.ranks());
      Tensors parts = grid.parts(all, placement);
      Tensors moved = byMoves(all, placement, whole, random.mesh);
      ASSERT_EQ(Held(moved), Held(parts));
      ASSERT_EQ(byManifest(manifest, manifest.ranges[i]), Held(parts));
      ASSERT_EQ(Held(gathered(moved, placement, whole, random.mesh)),
                Held(all));
      // The last element of the last rank is padding.
      early += parts.back().values.back() == 0;
    }
  }
  // The hard case is among them.
  EXPECT_GT(early, kMeshes * kPlacements / 10);
}

} // namespace
