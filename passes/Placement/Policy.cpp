//===- Policy.cpp - Placement policies on a module ------------------------===//
#include "passes/Placement/Policy.h"
#include "dialects/NN/ModulePath.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace fsdp;

FailureOr<dist::AxisRefAttr> PolicyApplier::axis(StringRef name,
                                                 StringRef origin) {
  auto axis = dist::AxisRefAttr::get(module.getContext(), name);
  if (mesh.sizeOf(axis) == 0)
    return module.emitError(origin)
           << ": the mesh has no axis \"" << name << "\"";
  if (llvm::is_contained(dataAxes, axis))
    return module.emitError(origin) << ": over the axis \"" << name
                                    << "\" batches are cut; parameters rest "
                                       "cut over it as the mode says";
  return axis;
}

LogicalResult PolicyApplier::cut(ParameterPlace &place,
                                 nn::ParameterOp parameter,
                                 const PlacementPolicy::Parameters &rule) {
  RankedTensorType type = parameter.getTensorType();
  dist::Placement compute(type.getRank());
  for (const auto &[name, dim] : rule.shard) {
    FailureOr<dist::AxisRefAttr> found = axis(name, rule.origin);
    if (failed(found))
      return failure();
    if (dim >= type.getRank())
      return module.emitError(rule.origin)
             << ": @" << parameter.getSymName() << " has no dimension " << dim
             << ": it is " << type;
    dist::AxisList &axes = compute.dims[dim].compute;
    axes.push_back(*found);
    if (type.getDimSize(dim) % mesh.sizeOf(axes) != 0)
      return module.emitError(rule.origin)
             << ": " << mesh.sizeOf(axes) << " ranks of the axis \"" << name
             << "\" do not divide dimension " << dim << " of @"
             << parameter.getSymName() << ", which is " << type;
  }
  if (!rule.shard.empty())
    place.compute = compute;
  return success();
}

FailureOr<DenseMap<StringAttr, ParameterPlace>> PolicyApplier::parameters() {
  DenseMap<StringAttr, ParameterPlace> places;
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
      if (failed(cut(place, parameter, rule)))
        return failure();
    }
    if (!matches)
      return module.emitError(rule.origin)
             << ": no parameter matches \"" << rule.match << "\"";
  }
  return places;
}

LogicalResult PolicyApplier::pin(Value stream, StringRef name) {
  auto type = cast<RankedTensorType>(stream.getType());
  // [batch, sequence, features]; other norms have no stream before them.
  if (type.getRank() != 3)
    return success();
  dist::Placement placement(type.getRank());
  llvm::append_range(placement.dims[0].compute, dataAxes);
  if (!name.empty()) {
    FailureOr<dist::AxisRefAttr> found = axis(name, policy.stream->origin);
    if (failed(found))
      return failure();
    placement.dims[1].compute.push_back(*found);
    if (type.getDimSize(1) % mesh.sizeOf(*found) != 0)
      return module.emitError(policy.stream->origin)
             << ": " << mesh.sizeOf(*found) << " ranks of the axis \"" << name
             << "\" do not divide the sequence of " << type.getDimSize(1);
  }
  OpBuilder builder(stream.getContext());
  builder.setInsertionPointAfterValue(stream);
  auto pinned = dist::RedistributeOp::create(
      builder, stream.getLoc(), stream,
      FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
      placement.attribute(stream.getContext()));
  nn::setModule(pinned, nn::moduleOfValue(stream));
  stream.replaceAllUsesExcept(pinned, pinned);
  return success();
}

LogicalResult PolicyApplier::pinStream(func::FuncOp program) {
  if (!policy.stream)
    return success();
  SmallVector<Value> streams;
  program.walk([&](Operation *op) {
    if (isa<nn::RMSNormOp, nn::LayerNormOp>(op))
      streams.push_back(op->getOperand(0));
  });
  for (Value stream : streams) {
    bool isLast = stream == streams.back();
    if (failed(pin(stream,
                   isLast ? policy.stream->loss : policy.stream->sequence)))
      return failure();
  }
  return success();
}
