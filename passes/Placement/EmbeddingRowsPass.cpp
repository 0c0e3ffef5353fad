//===- EmbeddingRowsPass.cpp - Rows of a table travel, not the table ------===//
//
// PlacementPasses.td says what becomes of what, and why no bit changes.
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/NN/ModulePath.h"
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "passes/Passes.h"
#include "llvm/ADT/SmallVectorExtras.h"

namespace fsdp {
#define GEN_PASS_DEF_EMBEDDINGROWS
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

/// A collective that moves a table or its gradient, and what rows are read.
struct Exchange {
  dist::CollectiveOpInterface collective;
  int64_t ranks;
  Value indices;
};

/// The order of a reduction: trees nest by mesh axis, the last one innermost.
/// Along an axis the left side is the largest power of two below the ranks.
struct Tree {
  struct Level {
    int64_t size, stride; // ranks, and positions from one to the next
  };

  ArrayRef<Value> leaves;
  SmallVector<Level> levels;
  OpBuilder &builder;
  Location location;

  Value level(size_t depth, int64_t first) {
    return depth == levels.size() ? leaves[first]
                                  : node(depth, first, levels[depth].size);
  }

  Value node(size_t depth, int64_t first, int64_t count) {
    if (count == 1)
      return level(depth + 1, first);
    int64_t left = llvm::bit_floor(uint64_t(count - 1));
    Value a = node(depth, first, left);
    Value b = node(depth, first + left * levels[depth].stride, count - left);
    return nn::AddOp::create(builder, location, a, b);
  }
};

/// One kernel adds up the gradients of all ranks, with a pointer for each.
constexpr int64_t kMostPieces = 64;

class RowsWriter {
public:
  RowsWriter(Block &block, dist::MeshOp mesh, bool widenSums)
      : block(block), mesh(mesh), widenSums(widenSums),
        builder(block.getParentOp()->getContext()) {}

  void run() {
    for (auto embedding : llvm::to_vector(block.getOps<nn::EmbeddingOp>()))
      gatherRows(embedding);
    for (auto gradient : llvm::to_vector(block.getOps<nn::EmbeddingGradOp>()))
      scatterRows(gradient);
  }

  /// Whether rows travel now, and a reason why some do not; empty if none.
  bool moves() const { return moved; }
  StringRef whyNot() const { return reason; }

private:
  //===--- Forward --------------------------------------------------------===//

  void gatherRows(nn::EmbeddingOp op) {
    auto gather = op.getTable().getDefiningOp<dist::AllGatherOp>();
    if (!gather || gather->getNumResults() != 1 || gather.getDim() != 0 ||
        op.getAbsent())
      return;
    if (!gather.getResult(0).hasOneUse())
      return missed(op, "other ops read the table too");
    Exchange exchange{gather, mesh.sizeOf(dist::axisRefs(gather.getAxes())),
                      op.getIndices()};
    RankedTensorType rows = ofAllRanks(tensor(op.getResult()), exchange.ranks);
    if (widenSums)
      rows = rows.clone(nn::accumulationType(rows.getElementType()));
    if (!isSmaller(op, exchange, rows, tensor(op.getTable())))
      return;

    builder.setInsertionPoint(op);
    nn::ModuleScope scope(builder, nn::moduleOf(op));
    Location location = op.getLoc();
    Value own = rowsOfShard(location, exchange, tensor(op.getTable()), false);
    Value parts = nn::EmbeddingOp::create(
        builder, location, ofAllRanks(tensor(op.getResult()), exchange.ranks),
        own, gather.getOperand(0), /*absent=*/true);
    Type element = tensor(op.getResult()).getElementType();
    Type wide = nn::accumulationType(element);
    auto sum = dist::ReduceScatterOp::create(
        builder, location, TypeRange(tensor(op.getResult()).clone(wide)),
        dist::CollectiveReduceAttr::get(builder.getContext(),
                                        dist::CollectiveReduce::Sum),
        castTo(location, parts, rows.getElementType()), gather.getMeshAttr(),
        gather.getAxesAttr(), builder.getI64IntegerAttr(0),
        gather.getServesAttr());
    op.replaceAllUsesWith(castTo(location, sum.getResult(0), element));
    op.erase();
    gather.erase();
  }

  //===--- Backward -------------------------------------------------------===//

  void scatterRows(nn::EmbeddingGradOp op) {
    nn::CastOp cast;
    auto sum = soleUser<dist::ReduceScatterOp>(op);
    if (!sum && (cast = soleUser<nn::CastOp>(op)))
      sum = soleUser<dist::ReduceScatterOp>(cast);
    if (!sum || sum->getNumOperands() != 1 || sum.getDim() != 0 ||
        sum.getKind() != dist::CollectiveReduce::Sum || op.getAbsent())
      return;
    Exchange exchange{sum, mesh.sizeOf(dist::axisRefs(sum.getAxes())),
                      op.getIndices()};
    RankedTensorType rows =
        ofAllRanks(tensor(op.getCotangent()), exchange.ranks);
    if (exchange.ranks > kMostPieces)
      return missed(op, "a kernel adds the pieces of 64 ranks at most");
    if (!isSmaller(op, exchange, rows, tensor(sum.getOperand(0))))
      return;

    // Before the last gradients of the first block, whose sum would be on the
    // wire first.
    if (Operation *last = op.getCotangent().getDefiningOp())
      builder.setInsertionPointAfter(last);
    else
      builder.setInsertionPoint(op);
    nn::ModuleScope scope(builder, nn::moduleOf(op));
    Location location = op.getLoc();
    Value cotangent = allGather(location, exchange, op.getCotangent());
    builder.setInsertionPoint(sum);
    Value places =
        rowsOfShard(location, exchange, tensor(op.getResult()), true);
    RankedTensorType piece = tensor(sum.getResult(0));
    Value pieces = nn::EmbeddingGradOp::create(
        builder, location,
        ofAllRanks(piece, exchange.ranks)
            .clone(tensor(op.getResult()).getElementType()),
        places, cotangent, /*absent=*/true);
    if (cast)
      pieces = castTo(location, pieces, cast.getType().getElementType());
    sum.getResult(0).replaceAllUsesWith(
        sumOfPieces(location, sum, pieces, piece, exchange.ranks));
    sum.erase();
    if (cast)
      cast.erase();
    op.erase();
  }

  template <typename OpT, typename FromT> static OpT soleUser(FromT from) {
    Value value = from.getResult();
    return value.hasOneUse() ? dyn_cast<OpT>(*value.user_begin()) : OpT();
  }

  /// In the order in which a reduction adds what ranks send.
  Value sumOfPieces(Location location, dist::ReduceScatterOp sum, Value pieces,
                    RankedTensorType piece, int64_t ranks) {
    SmallVector<Value> leaves;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      SmallVector<int64_t> offsets(piece.getRank(), 0);
      offsets[0] = rank * piece.getDimSize(0);
      Value slice = nn::SliceOp::create(
          builder, location, piece.clone(tensor(pieces).getElementType()),
          pieces, offsets);
      leaves.push_back(castTo(location, slice, piece.getElementType()));
    }
    return Tree{leaves, levelsOf(sum.getAxes()), builder, location}.level(0, 0);
  }

  /// The axes in the order of the mesh.
  SmallVector<Tree::Level> levelsOf(ArrayAttr axes) {
    SmallVector<std::pair<int64_t, Tree::Level>> byStride;
    int64_t positions = 1;
    auto refs = dist::axisRefs(axes);
    for (dist::AxisRefAttr axis : llvm::reverse(refs)) {
      byStride.push_back({mesh.strideOf(axis), {mesh.sizeOf(axis), positions}});
      positions *= mesh.sizeOf(axis);
    }
    llvm::sort(byStride,
               [](const auto &a, const auto &b) { return a.first > b.first; });
    return llvm::map_to_vector(byStride,
                               [](const auto &level) { return level.second; });
  }

  //===--- Both -----------------------------------------------------------===//

  static RankedTensorType tensor(Value value) { return dist::tensorOf(value); }

  static RankedTensorType ofAllRanks(RankedTensorType type, int64_t ranks) {
    SmallVector<int64_t> shape(type.getShape());
    shape[0] *= ranks;
    return type.clone(shape);
  }

  /// Whether the rows and their indices are fewer bytes than what moves now.
  bool isSmaller(Operation *op, Exchange exchange, RankedTensorType rows,
                 RankedTensorType now) {
    if (tensor(exchange.indices).getRank() == 0 || exchange.ranks < 2)
      return false;
    int64_t bytes =
        nn::bytesOf(rows) +
        nn::bytesOf(ofAllRanks(tensor(exchange.indices), exchange.ranks));
    if (bytes >= nn::bytesOf(now)) {
      missed(op, "rows are no fewer bytes");
      return false;
    }
    moved = true;
    remark::passed(op->getLoc(), about(op, "RowsTravel"))
        << op->getName().getStringRef() << remark::metric("bytes", bytes)
        << remark::metric("table", nn::bytesOf(now));
    return true;
  }

  void missed(Operation *op, StringRef why) {
    reason = why;
    remark::missed(op->getLoc(), about(op, "TableTravels"))
        << (op->getName().getStringRef() + ": " + why).str();
  }

  static remark::RemarkOpts about(Operation *op, StringRef name) {
    return remark::RemarkOpts::name(name)
        .category("fsdp-embedding-rows")
        .function(op->getParentOfType<func::FuncOp>().getName());
  }

  Value allGather(Location location, Exchange exchange, Value value) {
    return dist::AllGatherOp::create(
               builder, location,
               TypeRange(ofAllRanks(tensor(value), exchange.ranks)), value,
               exchange.collective.getMeshAttr(), exchange.collective.getAxes(),
               builder.getI64IntegerAttr(0),
               exchange.collective.getServesAttr())
        .getResult(0);
  }

  /// Where the indices are defined: several ops use them, in any order.
  Value indicesOfAll(Location location, Exchange exchange) {
    Value &all = gathered[{exchange.indices, exchange.collective.getAxes()}];
    if (all)
      return all;
    OpBuilder::InsertionGuard guard(builder);
    if (Operation *producer = exchange.indices.getDefiningOp())
      builder.setInsertionPointAfter(producer);
    else
      builder.setInsertionPointToStart(&block);
    return all = allGather(location, exchange, exchange.indices);
  }

  /// The indices of all ranks as rows of this rank's shard of `table`.
  Value rowsOfShard(Location location, Exchange exchange,
                    RankedTensorType table, bool byRank) {
    Value all = indicesOfAll(location, exchange);
    return dist::RowsOfShardOp::create(
        builder, location, all.getType(), all,
        exchange.collective.getMeshAttr(), exchange.collective.getAxes(),
        builder.getI64IntegerAttr(table.getDimSize(0)),
        byRank ? builder.getUnitAttr() : UnitAttr());
  }

  Value castTo(Location location, Value value, Type element) {
    if (tensor(value).getElementType() == element)
      return value;
    return nn::CastOp::create(builder, location, tensor(value).clone(element),
                              value);
  }

  Block &block;
  dist::MeshOp mesh;
  const bool widenSums;
  OpBuilder builder;
  bool moved = false;
  StringRef reason; // a literal
  /// Indices of all ranks, by those of a rank and the axes.
  DenseMap<std::pair<Value, Attribute>, Value> gathered;
};

struct EmbeddingRowsPass : fsdp::impl::EmbeddingRowsBase<EmbeddingRowsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto meshes = module.getOps<dist::MeshOp>();
    if (meshes.empty())
      return;
    bool moves = false;
    StringRef why = "no table is gathered";
    for (auto program : module.getOps<func::FuncOp>()) {
      if (program.isExternal())
        continue;
      RowsWriter writer(program.getBody().front(), *meshes.begin(), widenSums);
      writer.run();
      moves |= writer.moves();
      why = writer.whyNot().empty() ? why : writer.whyNot();
    }
    if (!moves)
      module.emitWarning("no embedding exchanges rows "
                         "(compile.embedding_rows): ")
          << why;
  }
};

} // namespace
