//===- FsdpVerifiers.cpp - The numbered constraints of the fsdp ops -------===//
//
// Comments name the constraint of the op's description in FsdpOps.td. What
// needs the mesh is checked in verifySymbolUses, the rest in verify.
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/Placement.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::dist;

FailureOr<MeshOp> fsdp::dist::verifyMeshAxes(Operation *op,
                                             FlatSymbolRefAttr name,
                                             ArrayAttr axes,
                                             SymbolTableCollection *symbols) {
  MeshOp mesh = symbols ? symbols->lookupNearestSymbolFrom<MeshOp>(op, name)
                        : lookupMesh(op, name);
  if (!mesh) {
    op->emitOpError("refers to ") << name << ", which is no fsdp.mesh";
    return failure();
  }
  SmallVector<AxisRefAttr> seen;
  int64_t split = 0; // axes with more than one rank
  for (auto axis : axes.getAsRange<AxisRefAttr>()) {
    int64_t size = mesh.sizeOf(axis);
    if (size == 0) {
      op->emitOpError("refers to ")
          << axis << ", which mesh @" << mesh.getSymName() << " lacks";
      return failure();
    }
    for (AxisRefAttr before : seen)
      if (overlap(before, axis)) {
        if (before == axis)
          op->emitOpError("names axis ") << axis << " twice";
        else
          op->emitOpError("names ")
              << before << " and " << axis << ", which share ranks of an axis";
        return failure();
      }
    seen.push_back(axis);
    split += size > 1;
  }
  if (split > kMaxCollectiveAxes) {
    op->emitOpError("goes over ")
        << split << " axes of mesh @" << mesh.getSymName() << "; at most "
        << kMaxCollectiveAxes << " are possible";
    return failure();
  }
  return mesh;
}

//===----------------------------------------------------------------------===//
// fsdp.mesh
//===----------------------------------------------------------------------===//

LogicalResult MeshOp::verify() {
  if (getAxes().empty()) // 1
    return emitOpError("needs at least one axis");
  // Names that are empty and sizes below 1 (2, 3) are refused by #fsdp.axis.
  llvm::SmallSet<StringRef, 4> names;
  for (auto axis : getAxes().getAsRange<MeshAxisAttr>())
    if (!names.insert(axis.getName()).second) // 2
      return emitOpError("has axis \"") << axis.getName() << "\" twice";
  if (getWorldSize() > kMaxRanks) // 5
    return emitOpError("has more than ") << kMaxRanks << " ranks";
  int64_t nodeSize = getNodeSize();
  if (nodeSize < 0 || (nodeSize != 0 && getWorldSize() % nodeSize != 0)) // 4
    return emitOpError("has node_size ")
           << nodeSize << ", which does not divide the world size "
           << getWorldSize();
  return success();
}

//===----------------------------------------------------------------------===//
// fsdp.redistribute
//===----------------------------------------------------------------------===//

void RedistributeOp::build(OpBuilder &builder, OperationState &state,
                           Value input, FlatSymbolRefAttr mesh,
                           PlacementAttr placement) {
  build(builder, state, input.getType(), input, mesh, placement,
        /*wire=*/TypeAttr());
}

LogicalResult RedistributeOp::verify() {
  RankedTensorType from = tensorOf(getInput()), to = tensorOf(getResult());
  bool converts = from.getElementType() == to.getElementType() ||
                  (isa<FloatType>(from.getElementType()) &&
                   isa<FloatType>(to.getElementType()));
  if (from.getShape() != to.getShape() || !converts) // 3
    return emitOpError("cannot produce ") << to << " from " << from;
  Type wire = getWire().value_or(Builder(getContext()).getF32Type());
  if (!wire.isF32() && !wire.isBF16() && !wire.isF64()) // 4
    return emitOpError("sends f32, bf16 or f64, not ") << wire;
  return success();
}

LogicalResult RedistributeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<MeshOp> mesh = verifyMeshAxes(
      *this, getMeshAttr(), ArrayAttr::get(getContext(), {}), &symbols); // 1
  if (failed(mesh))
    return failure();
  return verifyPlacement([&] { return emitOpError("has a "); }, // 2
                         getResult().getType(), getPlacement(), *mesh,
                         /*mayBeStored=*/true);
}

/// The placement of the parameter or buffer that `value` is read from.
static PlacementAttr declaredPlacement(Value value) {
  auto read = value.getDefiningOp<nn::ReadOp>();
  if (!read)
    return {};
  Operation *declaration =
      SymbolTable::lookupNearestSymbolFrom(read, read.getNameAttr());
  return declaration ? declaration->getAttrOfType<PlacementAttr>(kPlacementAttr)
                     : PlacementAttr();
}

Value fsdp::dist::buildRedistributeVjp(OpBuilder &builder, RedistributeOp op,
                                       Value cotangent,
                                       PlacementAttr declared) {
  PlacementAttr target = declared;
  if (!target) {
    Placement added(op.getPlacement());
    added.partial.clear();
    target = added.attribute(op.getContext());
  }
  return RedistributeOp::create(builder, op.getLoc(), op.getInput().getType(),
                                cotangent, op.getMeshAttr(), target,
                                op.getWireAttr());
}

void RedistributeOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                              MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] = buildRedistributeVjp(builder, *this, cotangents[0],
                                              declaredPlacement(getInput()));
}

//===----------------------------------------------------------------------===//
// fsdp.shard_of
//===----------------------------------------------------------------------===//

static LogicalResult verifyOutsideDim(Operation *op, RankedTensorType full,
                                      RankedTensorType shard, int64_t dim);
static LogicalResult verifyShardSize(Operation *op, RankedTensorType full,
                                     RankedTensorType shard, int64_t dim,
                                     int64_t parts);

static LogicalResult verifyRegathered(ShardOfOp op) {
  if (!op.getRegathered())
    return success();
  auto gather = op.getInput().getDefiningOp<AllGatherOp>();
  if (!gather || gather->getNumResults() != 1 || gather.getDim() != op.getDim())
    return op.emitOpError("is 'regathered', but its operand is not what an "
                          "all_gather of one tensor along dim ")
           << op.getDim() << " gives";
  if (gather.getMeshAttr() != op.getMeshAttr() ||
      !areWithin(op.getAxes(), gather.getAxes()))
    return op.emitOpError("is 'regathered' over axes that its operand is not "
                          "gathered over");
  if (regatheredShardOf(gather) != op)
    return op.emitOpError(
        "is 'regathered', and so is another shard of the same tensor");
  return success();
}

LogicalResult ShardOfOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<MeshOp> mesh =
      verifyMeshAxes(*this, getMeshAttr(), getAxes(), &symbols); // 1
  if (failed(mesh))
    return failure();
  RankedTensorType full = tensorOf(getInput()), shard = tensorOf(getResult());
  if (full.getElementType() != shard.getElementType()) // 2
    return emitOpError("cannot take the shard ") << shard << " of " << full;
  if (failed(verifyOutsideDim(*this, full, shard, getDim())))
    return failure();
  if (failed(verifyShardSize(*this, full, shard, getDim(),
                             mesh->sizeOf(axisRefs(getAxes())))))
    return failure();
  return verifyRegathered(*this); // 3
}

LogicalResult RowsOfShardOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<MeshOp> mesh =
      verifyMeshAxes(*this, getMeshAttr(), getAxes(), &symbols); // 1
  if (failed(mesh))
    return failure();
  RankedTensorType type = tensorOf(getInput());
  if (!type.getElementType().isInteger(32)) // 2
    return emitOpError("needs indices of i32, got ") << type;
  if (getClasses() < 1) // 3
    return emitOpError("needs a table of rows, got ") << getClasses();
  int64_t ranks = mesh->sizeOf(axisRefs(getAxes()));
  if (getByRank() &&
      (type.getRank() == 0 || type.getDimSize(0) % ranks != 0)) // 4
    return emitOpError("cannot split the indices ")
           << type << " by " << ranks << " ranks";
  return success();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

static LogicalResult verifyBucket(Operation *op) {
  if (op->getNumOperands() == 0)
    return op->emitOpError("needs at least one operand");
  if (op->getNumOperands() != op->getNumResults()) // 2
    return op->emitOpError("has ") << op->getNumOperands() << " operands but "
                                   << op->getNumResults() << " results";
  return success();
}

/// What a sum or maximum of `element` is kept in: reductions widen floats.
static Type reducedType(Type element) {
  return isa<FloatType>(element) ? nn::accumulationType(element) : element;
}

static LogicalResult verifyReducedType(Operation *op, Value input,
                                       Value result) {
  Type expected = reducedType(tensorOf(input).getElementType());
  if (tensorOf(result).getElementType() == expected)
    return success();
  return op->emitOpError("that reduces ")
         << input.getType() << " must give " << expected << " elements, got "
         << result.getType();
}

/// `full` and `shard` are equal outside `dim`, which both have.
static LogicalResult verifyOutsideDim(Operation *op, RankedTensorType full,
                                      RankedTensorType shard, int64_t dim) {
  if (dim < 0 || dim >= full.getRank())
    return op->emitOpError("has dim ") << dim << ", which is outside " << full;
  bool equal = full.getRank() == shard.getRank();
  for (int64_t i = 0; equal && i < full.getRank(); ++i)
    equal = i == dim || full.getDimSize(i) == shard.getDimSize(i);
  if (!equal)
    return op->emitOpError("has shapes ")
           << shard << " and " << full << ", which differ outside dim " << dim;
  return success();
}

/// The size of `shard` along `dim` is that of one of `parts` parts of `full`.
static LogicalResult verifyShardSize(Operation *op, RankedTensorType full,
                                     RankedTensorType shard, int64_t dim,
                                     int64_t parts) {
  int64_t expected = shardSize(full.getDimSize(dim), parts);
  if (shard.getDimSize(dim) == expected)
    return success();
  return op->emitOpError("has shard ")
         << shard << " of " << full << ", which over " << parts
         << " ranks must have size " << expected << " along dim " << dim;
}

/// What a collective names is there: the parameters that it moves, and the
/// mesh, which is given.
static FailureOr<MeshOp> verifyNames(CollectiveOpInterface op,
                                     SymbolTableCollection &symbols) {
  // What is no list of symbols is refused with the attribute.
  if (auto parameters = op->getAttrOfType<ArrayAttr>(kParametersAttr))
    for (Attribute one : parameters)
      if (auto name = dyn_cast<FlatSymbolRefAttr>(one);
          name && !symbols.lookupNearestSymbolFrom<nn::ParameterOp>(op, name)) {
        op->emitOpError("moves ") << name << ", which is no nn.parameter";
        return failure();
      }
  return verifyMeshAxes(op, op.getMeshAttr(), op.getAxes(), &symbols); // 1
}

/// What a collective gathers from or scatters to shards is split into equal
/// parts.
template <typename CollectiveOp>
static LogicalResult verifyShards(CollectiveOp op, ValueRange full,
                                  ValueRange shards,
                                  SymbolTableCollection &symbols) {
  FailureOr<MeshOp> mesh = verifyNames(op, symbols); // 1
  if (failed(mesh))
    return failure();
  int64_t parts = mesh->sizeOf(axisRefs(op.getAxes()));
  for (auto [whole, shard] : llvm::zip(full, shards))
    if (failed(verifyShardSize(op, tensorOf(whole), tensorOf(shard),
                               op.getDim(), parts))) // 3
      return failure();
  return success();
}

LogicalResult AllGatherOp::verify() {
  if (failed(verifyBucket(*this)))
    return failure();
  for (auto [input, result] : llvm::zip(getInputs(), getResults())) {
    if (tensorOf(input).getElementType() != tensorOf(result).getElementType())
      return emitOpError("cannot gather ")
             << input.getType() << " into " << result.getType();
    if (failed(verifyOutsideDim(*this, tensorOf(result), tensorOf(input),
                                getDim()))) // 3
      return failure();
  }
  return success();
}

LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyShards(*this, getResults(), getInputs(), symbols);
}

LogicalResult ReduceScatterOp::verify() {
  if (failed(verifyBucket(*this)))
    return failure();
  for (auto [input, result] : llvm::zip(getInputs(), getResults()))
    if (failed(verifyReducedType(*this, input, result)) ||
        failed(verifyOutsideDim(*this, tensorOf(input), tensorOf(result),
                                getDim()))) // 3
      return failure();
  return success();
}

LogicalResult
ReduceScatterOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyShards(*this, getInputs(), getResults(), symbols);
}

LogicalResult AllReduceOp::verify() {
  if (failed(verifyBucket(*this)))
    return failure();
  for (auto [input, result] : llvm::zip(getInputs(), getResults())) {
    if (tensorOf(input).getShape() != tensorOf(result).getShape()) // 2
      return emitOpError("cannot reduce ")
             << input.getType() << " into " << result.getType();
    if (failed(verifyReducedType(*this, input, result))) // 3
      return failure();
  }
  return success();
}

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyNames(*this, symbols); // 1
}

LogicalResult AllToAllOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<MeshOp> mesh = verifyNames(*this, symbols); // 1
  if (failed(mesh) || failed(verifyBucket(*this)))      // 2
    return failure();
  int64_t parts = mesh->sizeOf(axisRefs(getAxes()));
  int64_t split = getSplit(), join = getJoin();
  for (auto [input, result] : llvm::zip(getInputs(), getResults())) {
    RankedTensorType from = tensorOf(input);
    if (split < 0 || split >= from.getRank() || join < 0 ||
        join >= from.getRank() || split == join) // 3
      return emitOpError("needs two dimensions of ")
             << from << " to split and join, got " << split << " and " << join;
    SmallVector<int64_t> shape(from.getShape());
    if (shape[split] % parts != 0) // 4
      return emitOpError("cannot split dimension ")
             << split << " of " << from << " into " << parts << " parts";
    shape[split] /= parts;
    shape[join] = (CheckedSize(shape[join]) * parts).saturated();
    auto expected = RankedTensorType::get(shape, from.getElementType());
    if (result.getType() != expected)
      return emitOpError("must produce ")
             << expected << " from " << from << ", not " << result.getType();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Futures
//===----------------------------------------------------------------------===//

/// What an fsdp.async body of the right shape starts, or null.
static InFlightOpInterface startedBy(Block &body) {
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  auto started = dyn_cast_or_null<InFlightOpInterface>(
      yield ? yield->getPrevNode() : nullptr);
  if (!started)
    return {};
  for (Operation &op : body)
    if (&op == started)
      return started;
    else if (!isa<AwaitOp>(op))
      return {};
  return {};
}

LogicalResult AsyncOp::verifyRegions() {
  Block &body = getBody().front();
  InFlightOpInterface started = startedBy(body);
  if (!started) // 1
    return emitOpError("must hold one collective followed by fsdp.yield; "
                       "only fsdp.await may stand before it");
  auto yield = cast<YieldOp>(body.back());
  if (yield.getValues() != started->getResults())
    return emitOpError("must yield the results of its collective");
  if (TypeRange(yield.getValues()) !=
      TypeRange(getFuture().getType().getTypes())) // 2
    return emitOpError("yields other types than ") << getFuture().getType();
  for (auto await : body.getOps<AwaitOp>()) { // 3
    auto awaited = await.getFuture().getDefiningOp<AsyncOp>();
    InFlightOpInterface first =
        awaited ? startedBy(awaited.getBody().front()) : InFlightOpInterface();
    if (!first || first.getStreamRole() != started.getStreamRole())
      return await.emitOpError("in the body of an fsdp.async must await what "
                               "runs on the same stream");
  }
  return success();
}

LogicalResult AwaitOp::verify() {
  if (getResultTypes() != TypeRange(getFuture().getType().getTypes())) // 1
    return emitOpError("gives other types than ") << getFuture().getType();
  return success();
}
