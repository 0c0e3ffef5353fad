//===- PolicyApplier.cpp - Placement policies on a module -----------------===//
#include "passes/Placement/PolicyApplier.h"
#include "dialects/NN/ModulePath.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace fsdp;

/// Heads of keys of the attention with the fewest; 0 without attention.
int64_t PolicyApplier::keyHeads() {
  int64_t fewest = 0;
  module.walk([&](nn::AttentionOp op) {
    int64_t heads = dist::tensorOf(op.getKey()).getDimSize(2);
    fewest = fewest == 0 ? heads : std::min(fewest, heads);
  });
  return fewest;
}

FailureOr<dist::AxisList> PolicyApplier::axes(StringRef name,
                                              StringRef origin) {
  MLIRContext *context = module.getContext();
  auto axis = dist::AxisRefAttr::get(context, name);
  int64_t ranks = mesh.sizeOf(axis), heads = keyHeads();
  if (ranks == 0)
    return module.emitError(origin)
           << ": the mesh has no axis \"" << name << "\"";
  if (llvm::is_contained(dataAxes, axis))
    return module.emitError(origin)
           << ": over the axis \"" << name
           << "\" batches are split, and the mode says how parameters are "
              "stored; name another axis";
  if (heads == 0 || ranks <= heads || ranks % heads != 0)
    return dist::AxisList{axis};
  return dist::AxisList{
      dist::AxisRefAttr::get(context, name, /*pre=*/1, heads),
      dist::AxisRefAttr::get(context, name, /*pre=*/heads, ranks / heads)};
}

FailureOr<dist::AxisList> PolicyApplier::streamAxes() {
  dist::AxisList sharding;
  if (!policy.stream)
    return sharding;
  const PlacementPolicy::Stream &stream = *policy.stream;
  for (const std::string &name : {stream.sequence, stream.loss}) {
    if (name.empty())
      continue;
    FailureOr<dist::AxisList> found = axes(name, stream.origin);
    if (failed(found))
      return failure();
    if (stream.sequence == stream.loss)
      sharding = *found;
  }
  return sharding;
}

LogicalResult PolicyApplier::shard(ParameterPlace &place,
                                   nn::ParameterOp parameter,
                                   const PlacementPolicy::Parameters &rule) {
  if (!rule.shard)
    return success();
  RankedTensorType type = parameter.getTensorType();
  dist::Placement compute(type.getRank());
  for (const auto &[name, dim] : *rule.shard) {
    FailureOr<dist::AxisList> found = axes(name, rule.origin);
    if (failed(found))
      return failure();
    // Ranks beyond the heads have the same.
    if (place.keyHeads && found->size() == 2)
      found->pop_back();
    if (dim >= type.getRank())
      return module.emitError(rule.origin)
             << ": @" << parameter.getSymName() << " has no dimension " << dim
             << ": it is " << type;
    dist::AxisList &sharding = compute.dims[dim].compute;
    llvm::append_range(sharding, *found);
    if (type.getDimSize(dim) % mesh.sizeOf(sharding) != 0)
      return module.emitError(rule.origin)
             << ": " << mesh.sizeOf(sharding) << " ranks of the axis \"" << name
             << "\" do not divide dimension " << dim << " of @"
             << parameter.getSymName() << ", which is " << type
             << "; take a number of ranks that divides it";
  }
  // Ops are sharded in the order of the mesh.
  for (dist::Placement::Dim &dim : compute.dims)
    dist::sortByMesh(dim.compute, mesh);
  place.compute = compute;
  place.isStated = true;
  return success();
}

FailureOr<ParameterPlaces> PolicyApplier::parameters() {
  ParameterPlaces places;
  for (auto parameter : module.getOps<nn::ParameterOp>())
    places[parameter.getSymNameAttr()].compute =
        dist::Placement(parameter.getTensorType().getRank());
  for (const PlacementPolicy::Parameters &rule : policy.parameters) {
    llvm::Expected<llvm::GlobPattern> pattern =
        llvm::GlobPattern::create(rule.match, /*MaxSubPatterns=*/256);
    if (!pattern)
      return module.emitError(rule.origin)
             << ": \"" << rule.match
             << "\": " << llvm::toString(pattern.takeError());
    bool matches = false;
    for (auto parameter : module.getOps<nn::ParameterOp>()) {
      if (!pattern->match(parameter.getSymName()))
        continue;
      matches = true;
      ParameterPlace &place = places[parameter.getSymNameAttr()];
      place.frozen = rule.frozen.value_or(place.frozen);
      place.replicate = rule.replicate.value_or(place.replicate);
      place.keyHeads = rule.keyHeads.value_or(place.keyHeads);
      if (failed(shard(place, parameter, rule)))
        return failure();
    }
    if (!matches)
      return module.emitError(rule.origin)
             << ": no parameter matches \"" << rule.match << "\"";
  }
  return places;
}

/// Where several ops of a block read the stream, without a norm before them,
/// they read it through one redistribute: so their cotangents are added up
/// before the sum over ranks, and before that of the stream.
static void gatherReads(dist::RedistributeOp pinned) {
  SmallVector<OpOperand *> reads;
  for (OpOperand &use : pinned->getUses())
    if (!use.getOwner()->hasAttr(nn::kResidualAttr))
      reads.push_back(&use);
  if (reads.size() < 2)
    return;
  OpBuilder builder(pinned->getContext());
  builder.setInsertionPointAfter(pinned);
  auto read = cast<dist::RedistributeOp>(builder.clone(*pinned));
  read.getInputMutable().assign(pinned.getResult());
  for (OpOperand *use : reads)
    use->set(read.getResult());
}

LogicalResult PolicyApplier::pin(Value stream, StringRef name) {
  auto type = cast<RankedTensorType>(stream.getType());
  dist::Placement placement(type.getRank());
  llvm::append_range(placement.dims[0].compute, dataAxes);
  if (!name.empty()) {
    FailureOr<dist::AxisList> found = axes(name, policy.stream->origin);
    if (failed(found))
      return failure();
    placement.dims[1].compute = *found;
    if (type.getDimSize(1) % mesh.sizeOf(*found) != 0)
      return module.emitError(policy.stream->origin)
             << ": " << mesh.sizeOf(*found) << " ranks of the axis \"" << name
             << "\" do not divide the sequence of " << type.getDimSize(1)
             << "; take another sequence length, or do not split the stream";
  }
  OpBuilder builder(stream.getContext());
  builder.setInsertionPointAfterValue(stream);
  auto pinned = dist::RedistributeOp::create(
      builder, stream.getLoc(), stream,
      FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
      placement.attribute(stream.getContext()));
  nn::setModule(pinned, nn::moduleOfValue(stream));
  stream.replaceAllUsesExcept(pinned, pinned);
  gatherReads(pinned);
  return success();
}

/// Whether `value` is computed from `from`, an earlier one of its program.
static bool isComputedFrom(Value value, Value from) {
  Operation *begin = from.getDefiningOp();
  llvm::SetVector<Operation *> reached;
  auto reach = [&](Operation *op) {
    // What stands before `begin` cannot use it.
    if (op && (!begin || op->getBlock() != begin->getBlock() ||
               begin->isBeforeInBlock(op)))
      reached.insert(op);
  };
  reach(value.getDefiningOp());
  for (size_t i = 0; i < reached.size(); ++i)
    for (Value operand : reached[i]->getOperands()) {
      if (operand == from)
        return true;
      reach(operand.getDefiningOp());
    }
  return false;
}

/// A block computes what it adds from the stream, and nothing in the stream
/// from that.
static LogicalResult verifyResidual(nn::AddOp add) {
  if (!isComputedFrom(add.getLhs(), add.getRhs()))
    return success();
  return add.emitOpError("has '")
         << nn::kResidualAttr
         << "', but its first operand, which is the residual stream, is "
            "computed from its second, which a block adds to it; swap them";
}

LogicalResult PolicyApplier::pinStream(func::FuncOp program) {
  if (!policy.stream)
    return success();
  llvm::SetVector<Value> streams;
  WalkResult walk = program.walk([&](nn::AddOp add) {
    if (!add->hasAttr(nn::kResidualAttr))
      return WalkResult::advance();
    streams.insert(add.getLhs());
    streams.insert(add.getResult());
    return WalkResult(verifyResidual(add));
  });
  if (walk.wasInterrupted())
    return failure();
  if (streams.empty())
    return program.emitError(policy.stream->origin)
           << ": @" << program.getSymName() << " has no residual stream: no "
           << "nn.add has '" << nn::kResidualAttr
           << "', with which a model marks the additions of its blocks";
  for (Value stream : streams) {
    bool isLast = stream == streams.back();
    if (failed(pin(stream,
                   isLast ? policy.stream->loss : policy.stream->sequence)))
      return failure();
  }
  return success();
}
