//===- Optimizer.cpp - Exact gradient norm, clipping, AdamW ---------------===//
//
// Replaces nn.gradient by one optimizer step over all parameters. Passes.td
// says why the norm does not depend on the layout.
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/Fsdp.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_OPTIMIZER
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

/// A parameter that is trained in this program, with its gradient.
struct Trained {
  nn::ParameterOp parameter;
  Value gradient;
};

dist::ShardAttr shardOf(nn::ParameterOp parameter) {
  return parameter->getAttrOfType<dist::ShardAttr>(dist::kPlacementAttr);
}

struct OptimizerPass : fsdp::impl::OptimizerBase<OptimizerPass> {
  using Base::Base;

  void runOnOperation() override {
    auto program = getOperation().lookupSymbol<func::FuncOp>(function);
    if (!program || program.isExternal()) {
      getOperation().emitError("the module has no program @")
          << function << " to update parameters in";
      return signalPassFailure();
    }
    FailureOr<SmallVector<Trained>> trained = takeGradients(program);
    if (failed(trained) || failed(findShardAxes(*trained)))
      return signalPassFailure();
    appendStep(program, *trained);
  }

  /// The gradients in registration order of their parameters; erases the
  /// nn.gradient ops.
  FailureOr<SmallVector<Trained>> takeGradients(func::FuncOp program) {
    DenseMap<StringAttr, Value> gradients;
    for (auto op :
         llvm::make_early_inc_range(program.getOps<nn::GradientOp>())) {
      if (!op.getValue().getType().getElementType().isF32()) {
        op.emitError("AdamW works on f32 gradients, got ")
            << op.getValue().getType();
        return failure();
      }
      gradients[op.getNameAttr().getAttr()] = op.getValue();
      op.erase();
    }
    SmallVector<Trained> trained;
    for (auto parameter : getOperation().getOps<nn::ParameterOp>())
      if (Value gradient = gradients.lookup(parameter.getSymNameAttr()))
        trained.push_back({parameter, gradient});
    if (trained.empty()) {
      program.emitError("program @")
          << function << " has no nn.gradient; run nn-differentiate first";
      return failure();
    }
    return trained;
  }

  /// Sets the mesh and the axes that gradients are sharded over: the same for
  /// all, so that one integer sum over ranks finishes the norm.
  LogicalResult findShardAxes(ArrayRef<Trained> trained) {
    axes = {};
    mesh = {};
    auto meshes = getOperation().getOps<dist::MeshOp>();
    if (meshes.empty())
      return success();
    mesh = *meshes.begin();
    nn::ParameterOp first;
    for (const Trained &entry : trained) {
      nn::ParameterOp parameter = entry.parameter;
      SmallVector<dist::AxisRefAttr> own = ownAxes(parameter);
      if (own.empty())
        continue;
      if (!first) {
        first = parameter;
        axes = own;
      } else if (axes != own) {
        InFlightDiagnostic diagnostic =
            parameter.emitError("parameter @")
            << parameter.getSymName()
            << " is sharded over other axes than other parameters";
        diagnostic.attachNote(first.getLoc()) << "for example this one";
        return diagnostic;
      }
    }
    return success();
  }

  /// The axes with more than one rank that `parameter` is sharded over.
  SmallVector<dist::AxisRefAttr> ownAxes(nn::ParameterOp parameter) {
    SmallVector<dist::AxisRefAttr> own;
    if (dist::ShardAttr shard = shardOf(parameter))
      llvm::copy_if(
          shard.getAxes(), std::back_inserter(own),
          [&](dist::AxisRefAttr axis) { return mesh.sizeOf(axis) > 1; });
    return own;
  }

  void appendStep(func::FuncOp program, ArrayRef<Trained> trained) {
    Operation *terminator = program.getBody().front().getTerminator();
    OpBuilder builder(terminator);
    Location location = NameLoc::get(builder.getStringAttr("optimizer"));
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    auto integer = RankedTensorType::get({}, builder.getI32Type());

    Value lr = addArgument(program, "lr", scalar);
    Value step = addArgument(program, "step", integer);
    SmallVector<Value> gradients;
    for (const Trained &entry : trained)
      gradients.push_back(entry.gradient);

    Value max = nn::AbsMaxOp::create(builder, location, scalar, gradients);
    max = overRanks(builder, location, dist::CollectiveReduce::Max, max,
                    "gradient maximum");
    SmallVector<Value> counted = countedOnce(builder, location, trained);
    Value sum = nn::SumSquaresOp::create(
        builder, location, RankedTensorType::get({2}, builder.getI64Type()),
        max, counted);
    sum = overRanks(builder, location, dist::CollectiveReduce::Sum, sum,
                    "gradient norm");
    auto clip =
        nn::ClipCoefficientOp::create(builder, location, scalar, scalar, max,
                                      sum, builder.getF64FloatAttr(maxNorm));
    update(builder, location, trained, gradients, lr, step,
           clip.getCoefficient());
    addResult(program, "grad_norm", clip.getNorm());
  }

  /// `value` combined over the ranks that hold different shards.
  Value overRanks(OpBuilder &builder, Location location,
                  dist::CollectiveReduce kind, Value value, StringRef purpose) {
    if (axes.empty())
      return value;
    return dist::AllReduceOp::create(
               builder, location, TypeRange(value.getType()),
               dist::CollectiveReduceAttr::get(&getContext(), kind), value,
               meshName(), dist::axesAttr(&getContext(), axes),
               builder.getF64FloatAttr(1.0), builder.getStringAttr(purpose))
        .getResult(0);
  }

  FlatSymbolRefAttr meshName() {
    return FlatSymbolRefAttr::get(mesh.getSymNameAttr());
  }

  /// The gradients such that every element is on one rank of `axes` alone.
  SmallVector<Value> countedOnce(OpBuilder &builder, Location location,
                                 ArrayRef<Trained> trained) {
    SmallVector<Value> counted, replicated;
    for (const Trained &entry : trained) {
      bool repeated = !axes.empty() && ownAxes(entry.parameter).empty();
      (repeated ? replicated : counted).push_back(entry.gradient);
    }
    if (!replicated.empty())
      llvm::append_range(counted, shardsOf(builder, location, replicated));
    return counted;
  }

  /// Cuts tensors that are equal on all ranks into shards: the maximum of
  /// equal values is the value, and a shard's padding is zero.
  ValueRange shardsOf(OpBuilder &builder, Location location,
                      ArrayRef<Value> replicated) {
    SmallVector<Value> flat;
    SmallVector<Type> shards;
    int64_t parts = mesh.sizeOf(axes);
    for (Value tensor : replicated) {
      auto type = cast<RankedTensorType>(tensor.getType());
      int64_t elements = type.getNumElements();
      flat.push_back(nn::ReshapeOp::create(
          builder, location,
          RankedTensorType::get({elements}, type.getElementType()), tensor));
      shards.push_back(RankedTensorType::get({dist::shardSize(elements, parts)},
                                             type.getElementType()));
    }
    return dist::ReduceScatterOp::create(
               builder, location, shards,
               dist::CollectiveReduceAttr::get(&getContext(),
                                               dist::CollectiveReduce::Max),
               flat, meshName(), dist::axesAttr(&getContext(), axes),
               builder.getI64IntegerAttr(0), builder.getF64FloatAttr(1.0),
               builder.getStringAttr("gradient norm"))
        .getResults();
  }

  /// One multi-tensor AdamW step on the shards.
  void update(OpBuilder &builder, Location location, ArrayRef<Trained> trained,
              ValueRange gradients, Value lr, Value step, Value coefficient) {
    SmallVector<Attribute> names;
    for (const Trained &entry : trained) {
      nn::ParameterOp parameter = entry.parameter;
      names.push_back(FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
    }
    ArrayAttr first = declareMoments(trained, ".exp_avg");
    ArrayAttr second = declareMoments(trained, ".exp_avg_sq");
    nn::AdamWOp::create(
        builder, location, builder.getArrayAttr(names), first, second,
        gradients, lr, step, coefficient, builder.getF64FloatAttr(beta1),
        builder.getF64FloatAttr(beta2), builder.getF64FloatAttr(eps),
        builder.getF64FloatAttr(weightDecay));
  }

  /// Declares one moment per parameter behind the declarations so far; gives
  /// references to them.
  ArrayAttr declareMoments(ArrayRef<Trained> trained, StringRef suffix) {
    OpBuilder builder(&getContext());
    Operation *last = lastDeclaration();
    builder.setInsertionPointAfter(last);
    SmallVector<Attribute> names;
    for (const Trained &entry : trained) {
      nn::ParameterOp parameter = entry.parameter;
      std::string name = (parameter.getSymName() + suffix).str();
      auto buffer = nn::BufferOp::create(builder, parameter.getLoc(), name,
                                         parameter.getType(),
                                         nn::ZerosAttr::get(&getContext()));
      buffer->setAttr(nn::kStateOfAttr,
                      FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
      if (Attribute placement = parameter->getAttr(dist::kPlacementAttr))
        buffer->setAttr(dist::kPlacementAttr, placement);
      names.push_back(FlatSymbolRefAttr::get(&getContext(), name));
    }
    return builder.getArrayAttr(names);
  }

  /// The last nn.parameter or nn.buffer of the module.
  Operation *lastDeclaration() {
    Operation *last = nullptr;
    for (Operation &op : *getOperation().getBody())
      if (isa<nn::ParameterOp, nn::BufferOp>(op))
        last = &op;
    return last;
  }

  Value addArgument(func::FuncOp program, StringRef name, Type type) {
    unsigned index = program.getNumArguments();
    auto location =
        NameLoc::get(StringAttr::get(&getContext(), name), program.getLoc());
    (void)program.insertArgument(index, type, named(name), location);
    return program.getArgument(index);
  }

  void addResult(func::FuncOp program, StringRef name, Value value) {
    (void)program.insertResult(program.getNumResults(), value.getType(),
                               named(name));
    Operation *terminator = program.getBody().front().getTerminator();
    terminator->insertOperands(terminator->getNumOperands(), value);
  }

  DictionaryAttr named(StringRef name) {
    Builder builder(&getContext());
    return builder.getDictionaryAttr(
        builder.getNamedAttr(nn::kNameAttr, builder.getStringAttr(name)));
  }

  dist::MeshOp mesh;
  SmallVector<dist::AxisRefAttr> axes;
};

} // namespace
