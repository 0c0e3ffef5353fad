//===- Expand.cpp - Redistributes become casts and collectives ------------===//
//
// See the table in Passes.td. Only here is decided which collectives a
// placement costs.
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/Fsdp.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_EXPAND
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

RankedTensorType withElements(Value tensor, Type element) {
  return cast<RankedTensorType>(tensor.getType()).clone(element);
}

/// `tensor` in elements of type `element`.
Value castTo(OpBuilder &builder, Location location, Value tensor,
             Type element) {
  RankedTensorType type = withElements(tensor, element);
  if (type == tensor.getType())
    return tensor;
  return nn::CastOp::create(builder, location, type, tensor);
}

/// The parameter that a redistribute reads or whose gradient it gives; null
/// if it belongs to none.
StringAttr parameterOf(dist::RedistributeOp op) {
  if (auto read = op.getInput().getDefiningOp<nn::ReadOp>())
    return read.getNameAttr().getAttr();
  for (Operation *user : op->getUsers())
    if (auto gradient = dyn_cast<nn::GradientOp>(user))
      return gradient.getNameAttr().getAttr();
  return {};
}

/// Expands one redistribute.
class Expander {
public:
  Expander(dist::RedistributeOp op, dist::MeshOp mesh, bool backward)
      : op(op), mesh(mesh), builder(op), location(op.getLoc()) {
    if (StringAttr parameter = parameterOf(op)) {
      StringRef module = parameter.getValue();
      module.consume_back(".weight");
      serves = builder.getStringAttr((backward ? "bwd " : "fwd ") + module);
      parameters = builder.getArrayAttr(parameter);
    }
  }

  LogicalResult run() {
    if (failed(checkDirection()))
      return failure();
    Value result = op.getReduced() ? reduce() : gather();
    op.replaceAllUsesWith(result);
    op.erase();
    return success();
  }

private:
  LogicalResult checkDirection() {
    if (isa<dist::FlatAttr>(op.getSource()) ||
        isa<dist::FlatAttr>(op.getTarget()))
      return op.emitError("fsdp-expand knows no flat buckets");
    if (!op.getReduced() && !isa<dist::ReplicatedAttr>(op.getTarget()))
      return op.emitError("fsdp-expand can only gather to #fsdp.replicated or "
                          "reduce from it");
    return success();
  }

  /// `axes` without those of one rank, over which nothing moves.
  SmallVector<dist::AxisRefAttr> beyondOne(ArrayRef<dist::AxisRefAttr> axes) {
    SmallVector<dist::AxisRefAttr> kept;
    llvm::copy_if(axes, std::back_inserter(kept), [&](dist::AxisRefAttr axis) {
      return mesh.sizeOf(axis) > 1;
    });
    return kept;
  }

  /// The axes of a shard that matter; none if replicated.
  SmallVector<dist::AxisRefAttr> shardAxes(Attribute placement) {
    auto shard = dyn_cast<dist::ShardAttr>(placement);
    return shard ? beyondOne(shard.getAxes())
                 : SmallVector<dist::AxisRefAttr>();
  }

  ArrayAttr attribute(ArrayRef<dist::AxisRefAttr> axes) {
    return dist::axesAttr(builder.getContext(), axes);
  }

  /// Says on a collective which parameter it moves.
  Value label(Operation *collective) {
    if (parameters)
      collective->setAttr(dist::kParametersAttr, parameters);
    return collective->getResult(0);
  }

  /// Cast first: the narrow type travels.
  Value gather() {
    Value shard = castTo(builder, location, op.getInput(),
                         op.getResult().getType().getElementType());
    SmallVector<dist::AxisRefAttr> axes = shardAxes(op.getSource());
    if (axes.empty())
      return shard;
    int64_t dim = cast<dist::ShardAttr>(op.getSource()).getDim();
    return label(dist::AllGatherOp::create(
        builder, location, TypeRange(op.getResult().getType()), shard,
        op.getMeshAttr(), attribute(axes), builder.getI64IntegerAttr(dim),
        serves));
  }

  /// Reduces over the shard's axes by a scatter and over the rest by an
  /// all-reduce; the scale belongs to the last of them.
  Value reduce() {
    SmallVector<dist::AxisRefAttr> all =
        beyondOne(dist::axisRefs(op.getAxes()));
    SmallVector<dist::AxisRefAttr> scattered = shardAxes(op.getTarget());
    SmallVector<dist::AxisRefAttr> rest;
    llvm::copy_if(all, std::back_inserter(rest), [&](dist::AxisRefAttr axis) {
      return !llvm::is_contained(scattered, axis);
    });
    bool average = op.getGradReduce() == dist::GradReduce::Average;
    double scale = average ? 1.0 / mesh.sizeOf(all) : 1.0;

    Value value = onWire();
    if (!scattered.empty())
      value = reduceScatter(value, scattered, rest.empty() ? scale : 1.0);
    if (!rest.empty())
      value = allReduce(value, rest, scale);
    return castTo(builder, location, value,
                  op.getResult().getType().getElementType());
  }

  /// The cotangent in the type it travels in, grad_dtype at most.
  Value onWire() {
    auto from = cast<FloatType>(op.getInput().getType().getElementType());
    auto widest = cast<FloatType>(op.getGradDtype());
    return from.getWidth() > widest.getWidth()
               ? castTo(builder, location, op.getInput(), widest)
               : op.getInput();
  }

  Value reduceScatter(Value full, ArrayRef<dist::AxisRefAttr> axes,
                      double scale) {
    int64_t dim = cast<dist::ShardAttr>(op.getTarget()).getDim();
    return label(dist::ReduceScatterOp::create(
        builder, location, TypeRange(op.getResult().getType()), sumKind(), full,
        op.getMeshAttr(), attribute(axes), builder.getI64IntegerAttr(dim),
        builder.getF64FloatAttr(scale), serves));
  }

  Value allReduce(Value partial, ArrayRef<dist::AxisRefAttr> axes,
                  double scale) {
    return label(dist::AllReduceOp::create(
        builder, location, TypeRange(op.getResult().getType()), sumKind(),
        partial, op.getMeshAttr(), attribute(axes),
        builder.getF64FloatAttr(scale), serves));
  }

  dist::CollectiveReduceAttr sumKind() {
    return dist::CollectiveReduceAttr::get(builder.getContext(),
                                           dist::CollectiveReduce::Sum);
  }

  dist::RedistributeOp op;
  dist::MeshOp mesh;
  OpBuilder builder;
  Location location;
  StringAttr serves;
  ArrayAttr parameters;
};

struct ExpandPass : fsdp::impl::ExpandBase<ExpandPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<func::FuncOp>())
      if (failed(expand(program)))
        return signalPassFailure();
  }

  LogicalResult expand(func::FuncOp program) {
    // Collected with its phase: what follows nn.seed is the backward pass.
    SmallVector<std::pair<dist::RedistributeOp, bool>> found;
    bool backward = false;
    program.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<nn::SeedOp>(op))
        backward = true;
      else if (auto redistribute = dyn_cast<dist::RedistributeOp>(op))
        found.push_back({redistribute, backward});
    });
    for (auto [redistribute, isBackward] : found) {
      dist::MeshOp mesh =
          dist::lookupMesh(redistribute, redistribute.getMeshAttr());
      if (failed(Expander(redistribute, mesh, isBackward).run()))
        return failure();
    }
    return success();
  }
};

} // namespace
