//===- ExpandPass.cpp - From logical tensors to those of one rank ---------===//
//
// Only here is decided which collectives a change of placement costs; the table
// is in dialects/Fsdp/Placement.h.
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/PlacementRules.h"
#include "dialects/NN/ModulePath.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_EXPAND
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;
using namespace fsdp::dist;

namespace {

bool isReduction(const Move &move) {
  return move.kind && isReduction(*move.kind);
}

/// True if a tensor is no larger afterwards, and sharded where it was.
bool staysSmall(const Move &move) { return isReduction(move) || !move.kind; }

/// A tensor seen as [outer, size, inner] around one dimension.
struct Around {
  int64_t outer = 1, inner = 1;
  Around(ArrayRef<int64_t> shape, int64_t dim) {
    for (auto [i, size] : llvm::enumerate(shape))
      (static_cast<int64_t>(i) < dim ? outer : inner) *=
          static_cast<int64_t>(i) == dim ? 1 : size;
  }
};

/// What is known of an fsdp.redistribute while types are logical.
struct Change {
  RedistributeOp op;
  Placement from;
  RankedTensorType logical; // of its result
  StringAttr parameter;     // that it reads, or whose gradient it is; or null
  bool isGradient;
  bool backward;
};

/// Makes local ops of the moves of one fsdp.redistribute.
class Expander {
public:
  Expander(const Change &change, MeshOp mesh, bool widenSums)
      : op(change.op), from(change.from), logical(change.logical), mesh(mesh),
        backward(change.backward), builder(op),
        scope(builder, nn::moduleOf(op)), location(op.getLoc()),
        isGradient(change.isGradient), widenSums(widenSums) {
    label(change.parameter);
  }

  void run() {
    Type element = logical.getElementType();
    Value value = op.getInput();
    SmallVector<Move> moves =
        movesBetween(from, Placement(op.getPlacement()), mesh);
    // What is gathered again after a sum is no bucket's last reduction.
    if (isGradient && !llvm::all_of(moves, staysSmall))
      parameters = {};
    auto reductionsLeft = llvm::count_if(moves, isReduction);
    if (reductionsLeft != 0 && op.getWire())
      value = castDown(value, *op.getWire());
    for (const Move &move : moves) {
      // A sum stays wide until it is complete; then the narrow type travels.
      if (reductionsLeft == 0)
        value = castDown(value, element);
      if (isReduction(move) && widenSums && isSum())
        value = castTo(value, wide(tensorOf(value).getElementType()));
      reductionsLeft -= isReduction(move);
      value = create(move, value);
    }
    op.replaceAllUsesWith(castTo(value, element));
    op.erase();
  }

private:
  //===--- Names ----------------------------------------------------------===//

  /// Says what the collectives serve, and which parameter they move.
  void label(StringAttr parameter) {
    StringRef served = nn::modulePathOf(op);
    if (parameter) {
      parameters = builder.getArrayAttr(FlatSymbolRefAttr::get(parameter));
      served = nn::shortParameterName(parameter);
    }
    if (!served.empty())
      serves = OriginAttr::get(builder.getContext(),
                               Origin{phaseOf(served, backward), served, {}});
  }

  /// Says on a collective which parameter it moves.
  Value labelled(Operation *collective) {
    if (parameters)
      collective->setAttr(kParametersAttr, parameters);
    return collective->getResult(0);
  }

  //===--- Element types --------------------------------------------------===//

  Value castTo(Value value, Type element) {
    if (tensorOf(value).getElementType() == element)
      return value;
    return nn::CastOp::create(builder, location, tensorOf(value).clone(element),
                              value);
  }

  Value castDown(Value value, Type element) {
    return tensorOf(value).getElementTypeBitWidth() >
                   element.getIntOrFloatBitWidth()
               ? castTo(value, element)
               : value;
  }

  /// Of partial sums: others have a maximum.
  bool isSum() const { return from.kind == CollectiveReduce::Sum; }

  /// What a reduction gives: integers stay what they are.
  static Type wide(Type element) {
    return isa<FloatType>(element) ? nn::accumulationType(element) : element;
  }

  //===--- Moves ----------------------------------------------------------===//

  Value create(const Move &move, Value value) {
    RankedTensorType type = localType(logical, move.after, mesh)
                                .clone(tensorOf(value).getElementType());
    if (!move.kind)
      return shardOf(move, value, type);
    switch (*move.kind) {
    case CollectiveKind::AllGather:
      return allGather(move, value, type);
    case CollectiveKind::AllReduce: {
      RankedTensorType sum = type.clone(wide(type.getElementType()));
      return labelled(AllReduceOp::create(builder, location, TypeRange(sum),
                                          kind(), value, op.getMeshAttr(),
                                          axes(move), serves));
    }
    case CollectiveKind::ReduceScatter:
      return reduceScatter(move, value,
                           type.clone(wide(type.getElementType())));
    case CollectiveKind::AllToAll: {
      // The runtime has no exchange of its own: every rank gathers the
      // dimension that is sharded and keeps its part along the other.
      SmallVector<int64_t> whole(tensorOf(value).getShape());
      whole[move.from] = type.getDimSize(move.from);
      return shardOf(move, allGather(move, value, type.clone(whole)), type);
    }
    }
    llvm_unreachable("all kinds of moves");
  }

  /// What is the same everywhere along the dimension needs no slicing, unless
  /// the last part is padded with zeros.
  Value shardOf(const Move &move, Value value, RankedTensorType type) {
    auto broadcast = value.getDefiningOp<nn::BroadcastOp>();
    bool isEven = tensorOf(value).getDimSize(move.to) ==
                  mesh.sizeOf(move.axes) * type.getDimSize(move.to);
    if (broadcast && isEven &&
        !llvm::is_contained(broadcast.getDims(), move.to))
      return nn::BroadcastOp::create(builder, location, type,
                                     broadcast.getInput(), broadcast.getDims());
    Value pieces = piecesFirst(move, value, type, move.to);
    auto shard = ShardOfOp::create(builder, location, pieceType(type, move.to),
                                   pieces, op.getMeshAttr(), axes(move),
                                   builder.getI64IntegerAttr(0));
    return reshape(shard, type.getShape());
  }

  Value reduceScatter(const Move &move, Value value, RankedTensorType type) {
    Value pieces = piecesFirst(move, value, type, move.to);
    Value shard = labelled(ReduceScatterOp::create(
        builder, location, TypeRange(pieceType(type, move.to)), kind(), pieces,
        op.getMeshAttr(), axes(move), builder.getI64IntegerAttr(0), serves));
    return reshape(shard, type.getShape());
  }

  //===--- Dimensions other than the first --------------------------------===//
  //
  // In memory only pieces of the first dimension lie one after another. The
  // others are brought to the front; with nothing before them that is a
  // change of shape alone.

  /// One piece [outer * size, inner ...] of a part of type `type`.
  RankedTensorType pieceType(RankedTensorType type, int64_t dim) {
    if (dim == 0)
      return type;
    Around around(type.getShape(), dim);
    return RankedTensorType::get(
        {around.outer * type.getDimSize(dim), around.inner},
        type.getElementType());
  }

  /// `value` as its pieces along `dim`, one after another; `part` is the
  /// type of one.
  Value piecesFirst(const Move &move, Value value, RankedTensorType part,
                    int64_t dim) {
    if (dim == 0)
      return value;
    int64_t ranks = mesh.sizeOf(move.axes), size = part.getDimSize(dim);
    value = padTo(value, dim, ranks * size);
    Around around(part.getShape(), dim);
    value = reshape(value, {around.outer, ranks, size * around.inner});
    if (around.outer != 1)
      value = nn::TransposeOp::create(builder, location, value,
                                      ArrayRef<int64_t>{1, 0, 2});
    return reshape(value, {ranks * around.outer * size, around.inner});
  }

  Value allGather(const Move &move, Value value, RankedTensorType type) {
    int64_t dim = move.from;
    auto gather = [&](Value shard, RankedTensorType full) {
      return labelled(AllGatherOp::create(
          builder, location, TypeRange(full), shard, op.getMeshAttr(),
          axes(move), builder.getI64IntegerAttr(0), serves));
    };
    if (dim == 0)
      return gather(value, type);
    RankedTensorType part = tensorOf(value);
    int64_t ranks = mesh.sizeOf(move.axes), size = part.getDimSize(dim);
    Around around(part.getShape(), dim);
    RankedTensorType piece = pieceType(part, dim);
    Value pieces = gather(
        reshape(value, piece.getShape()),
        RankedTensorType::get({ranks * piece.getDimSize(0), around.inner},
                              type.getElementType()));
    pieces = reshape(pieces, {ranks, around.outer, size * around.inner});
    if (around.outer != 1)
      pieces = nn::TransposeOp::create(builder, location, pieces,
                                       ArrayRef<int64_t>{1, 0, 2});
    SmallVector<int64_t> padded(type.getShape());
    padded[dim] = ranks * size;
    return cutTo(reshape(pieces, padded), type);
  }

  Value reshape(Value value, ArrayRef<int64_t> shape) {
    if (tensorOf(value).getShape() == shape)
      return value;
    return nn::ReshapeOp::create(
        builder, location,
        RankedTensorType::get(shape, tensorOf(value).getElementType()), value);
  }

  Value padTo(Value value, int64_t dim, int64_t size) {
    SmallVector<int64_t> shape(tensorOf(value).getShape());
    if (shape[dim] == size)
      return value;
    shape[dim] = size;
    SmallVector<int64_t> offsets(shape.size(), 0);
    return nn::PadOp::create(
        builder, location,
        RankedTensorType::get(shape, tensorOf(value).getElementType()), value,
        offsets);
  }

  Value cutTo(Value value, RankedTensorType type) {
    if (value.getType() == type)
      return value;
    SmallVector<int64_t> offsets(type.getRank(), 0);
    return nn::SliceOp::create(builder, location, type, value, offsets);
  }

  //===--- Attributes -----------------------------------------------------===//

  ArrayAttr axes(const Move &move) {
    return axesAttr(builder.getContext(), move.axes);
  }

  CollectiveReduceAttr kind() {
    return CollectiveReduceAttr::get(builder.getContext(), from.kind);
  }

  RedistributeOp op;
  const Placement &from;
  RankedTensorType logical;
  MeshOp mesh;
  bool backward;
  OpBuilder builder;
  nn::ModuleScope scope;
  Location location;
  OriginAttr serves;
  ArrayAttr parameters;
  bool isGradient, widenSums;
};

/// Makes a program that of one rank.
class ProgramExpander {
public:
  ProgramExpander(func::FuncOp program, MeshOp mesh,
                  SymbolTableCollection &symbols, const Placements &placements,
                  bool widenSums)
      : program(program), mesh(mesh), symbols(symbols), placements(placements),
        widenSums(widenSums) {}

  void run() {
    Block &body = program.getBody().front();
    program->setAttr(kLocalAttr, UnitAttr::get(program.getContext()));
    collect(body);
    for (const auto &entry : placements) {
      Value value = entry.first;
      value.setType(localType(tensorOf(value), entry.second, mesh));
    }
    for (auto constant : body.getOps<nn::ConstantOp>())
      constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue())
                                .resizeSplat(constant.getResult().getType()));
    for (const Change &one : found)
      Expander(one, mesh, widenSums).run();
    eraseUnusedBroadcasts(body);
    program.setFunctionType(
        FunctionType::get(program.getContext(), body.getArgumentTypes(),
                          body.getTerminator()->getOperandTypes()));
  }

private:
  /// While types are logical. What follows nn.seed is the backward pass.
  void collect(Block &body) {
    for (Operation &op : body)
      for (const GradientUse &use : gradientsOf(&op, symbols))
        if (use.parameter)
          gradients.try_emplace(op.getOperand(use.operand),
                                use.parameter.getAttr());
    bool backward = false;
    for (Operation &op : body) {
      backward |= isa<nn::SeedOp>(op);
      auto redistribute = dyn_cast<RedistributeOp>(op);
      if (!redistribute)
        continue;
      StringAttr read = parameterRead(redistribute);
      StringAttr gradient = gradients.lookup(redistribute.getResult());
      found.push_back({redistribute, placements.lookup(redistribute.getInput()),
                       tensorOf(redistribute.getResult()),
                       read ? read : gradient, !read && gradient, backward});
    }
  }

  /// The parameter that `op` redistributes as it is read; null if none.
  StringAttr parameterRead(RedistributeOp op) {
    auto read = op.getInput().getDefiningOp<nn::ReadOp>();
    if (!read || !symbols.lookupNearestSymbolFrom<nn::ParameterOp>(
                     read, read.getNameAttr()))
      return {};
    return read.getNameAttr().getAttr();
  }

  /// Those that were made anew, with a part of their size.
  static void eraseUnusedBroadcasts(Block &body) {
    for (auto broadcast :
         llvm::make_early_inc_range(body.getOps<nn::BroadcastOp>()))
      if (broadcast->use_empty())
        broadcast->erase();
  }

  func::FuncOp program;
  MeshOp mesh;
  SymbolTableCollection &symbols;
  const Placements &placements;
  const bool widenSums;
  SmallVector<Change> found;
  /// By the value: the parameter whose gradient it is.
  DenseMap<Value, StringAttr> gradients;
};

struct ExpandPass : fsdp::impl::ExpandBase<ExpandPass> {
  using Base::Base;

  void runOnOperation() override {
    auto expand = [this](FunctionOpInterface program, MeshOp mesh,
                         SymbolTableCollection &symbols) {
      FailureOr<Placements> placements = placementsOf(program, mesh, symbols);
      if (failed(placements))
        return failure();
      ProgramExpander(cast<func::FuncOp>(*program), mesh, symbols, *placements,
                      widenSums)
          .run();
      return success();
    };
    if (failed(forEachLogicalProgram(getOperation(), expand)))
      signalPassFailure();
  }
};

} // namespace
