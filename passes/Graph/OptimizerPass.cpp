//===- OptimizerPass.cpp - Exact gradient norm, clipping, AdamW -----------===//
//
// Replaces nn.gradient by one optimizer step over all parameters.
// GraphPasses.td says why the norm does not depend on the layout.
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/Placement.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Support/RangeNames.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/Graph/Declarations.h"
#include "passes/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace fsdp {
#define GEN_PASS_DEF_OPTIMIZER
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

// The modules of the step. What the norm reduces over ranks has a path of its
// own, so that a profile tells its two collectives apart.
constexpr llvm::StringLiteral kMaximum = "optimizer.gradient_maximum";
constexpr llvm::StringLiteral kNorm = "optimizer.gradient_norm";

/// A parameter that is trained in this program, with its gradient.
struct Trained {
  nn::ParameterOp parameter;
  Value gradient;
};

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
    if (failed(trained))
      return signalPassFailure();
    buffers.clear();
    for (auto buffer : getOperation().getOps<nn::BufferOp>())
      buffers[buffer.getSymNameAttr()] = buffer;
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
    if (trained.empty())
      return emitNoGradient(program, "set optimizer.name to none");
    return trained;
  }

  void appendStep(func::FuncOp program, MutableArrayRef<Trained> trained) {
    // Sums over microbatches are cleared when they have been used.
    auto clears = program.getOps<nn::ClearOp>();
    OpBuilder builder(clears.empty() ? program.getBody().front().getTerminator()
                                     : *clears.begin());
    nn::ModuleScope scope(builder, builder.getStringAttr(nn::kOptimizerModule));
    Location location =
        NameLoc::get(builder.getStringAttr(nn::kOptimizerModule));
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    auto integer = RankedTensorType::get({}, builder.getI32Type());

    Value lr = addArgument(program, range_name::kLearningRate, scalar);
    Value step = addArgument(program, range_name::kStep, integer);
    SmallVector<Value> gradients;
    for (Trained &entry : trained) {
      entry.gradient = inStorage(builder, entry);
      gradients.push_back(entry.gradient);
    }

    Value max = maximum(builder, location, gradients);
    Value sum = sumSquares(builder, location, max, trained);
    auto clip =
        nn::ClipCoefficientOp::create(builder, location, scalar, scalar, max,
                                      sum, builder.getF64FloatAttr(maxNorm));
    update(builder, location, trained, gradients, lr, step,
           clip.getCoefficient());
    addResult(program, range_name::kGradNorm, clip.getNorm());
  }

  /// Where the parameter of `entry` is stored; null if nothing is said.
  static dist::PlacementAttr placementOf(const Trained &entry) {
    nn::ParameterOp parameter = entry.parameter;
    return parameter->getAttrOfType<dist::PlacementAttr>(dist::kPlacementAttr);
  }

  /// Where a gradient has been brought by the reverse rule of its parameter's
  /// redistribute, or lies as a sum over microbatches; null if neither.
  dist::PlacementAttr placementOf(Value gradient) {
    if (auto brought = gradient.getDefiningOp<dist::RedistributeOp>())
      return brought.getPlacement();
    auto read = gradient.getDefiningOp<nn::ReadOp>();
    nn::BufferOp sum =
        read ? buffers.lookup(read.getNameAttr().getAttr()) : nn::BufferOp();
    return sum ? sum->getAttrOfType<dist::PlacementAttr>(dist::kPlacementAttr)
               : dist::PlacementAttr();
  }

  /// The gradient where its parameter is stored.
  Value inStorage(OpBuilder &builder, const Trained &entry) {
    auto meshes = getOperation().getOps<dist::MeshOp>();
    dist::PlacementAttr placement = placementOf(entry);
    if (meshes.empty() || !placement ||
        placementOf(entry.gradient) == placement)
      return entry.gradient;
    dist::MeshOp mesh = *meshes.begin();
    nn::ModuleScope scope(builder, nn::moduleOfValue(entry.gradient));
    return dist::RedistributeOp::create(
        builder, entry.gradient.getLoc(), entry.gradient,
        FlatSymbolRefAttr::get(mesh.getSymNameAttr()), placement);
  }

  /// The axes over which the gradient of `entry` is stored sharded.
  dist::AxisList axesOf(const Trained &entry) {
    dist::AxisList axes;
    dist::PlacementAttr placement = placementOf(entry);
    auto meshes = getOperation().getOps<dist::MeshOp>();
    if (!placement || meshes.empty())
      return axes;
    for (const dist::Placement::Dim &dim : dist::Placement(placement).dims)
      for (const dist::AxisList &list : {dim.compute, dim.storage})
        llvm::append_range(axes, list);
    dist::sortByMesh(axes, *meshes.begin());
    return axes;
  }

  static Value maximum(OpBuilder &builder, Location location,
                       ValueRange gradients) {
    nn::ModuleScope scope(builder, builder.getStringAttr(kMaximum));
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    return nn::AbsMaxOp::create(builder, location, scalar, gradients);
  }

  /// The digits of the sum of squares: two for all gradients that are stored
  /// sharded over the same axes, since over other axes every rank has the same.
  Value sumSquares(OpBuilder &builder, Location location, Value max,
                   ArrayRef<Trained> trained) {
    llvm::MapVector<ArrayAttr, SmallVector<Value>> classes;
    for (const Trained &entry : trained)
      classes[dist::axesAttr(&getContext(), axesOf(entry))].push_back(
          entry.gradient);
    nn::ModuleScope scope(builder, builder.getStringAttr(kNorm));
    auto digits = RankedTensorType::get({2}, builder.getI64Type());
    SmallVector<Value> sums;
    for (auto &[axes, gradients] : classes)
      sums.push_back(
          nn::SumSquaresOp::create(builder, location, digits, max, gradients));
    if (sums.size() == 1)
      return sums[0];
    auto all = RankedTensorType::get({static_cast<int64_t>(2 * sums.size())},
                                     builder.getI64Type());
    return nn::ConcatOp::create(builder, location, all, sums, /*dim=*/0);
  }

  /// One multi-tensor AdamW step on the shards.
  void update(OpBuilder &builder, Location location, ArrayRef<Trained> trained,
              ValueRange gradients, Value lr, Value step, Value coefficient) {
    SmallVector<Attribute> names;
    for (const Trained &entry : trained) {
      nn::ParameterOp parameter = entry.parameter;
      names.push_back(FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
    }
    ArrayAttr first = declareMoments(trained, range_name::kFirstMomentSuffix);
    ArrayAttr second = declareMoments(trained, range_name::kSecondMomentSuffix);
    nn::AdamWOp::create(
        builder, location, builder.getArrayAttr(names), first, second,
        /*copies=*/ArrayAttr(), gradients, lr, step, coefficient,
        builder.getF64FloatAttr(beta1), builder.getF64FloatAttr(beta2),
        builder.getF64FloatAttr(eps), builder.getF64FloatAttr(weightDecay));
  }

  /// Declares one moment per parameter after the declarations so far; gives
  /// references to them.
  ArrayAttr declareMoments(ArrayRef<Trained> trained, StringRef suffix) {
    OpBuilder builder(&getContext());
    Operation *last = lastDeclaration(getOperation());
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

  /// Those that the module has declared, by name.
  DenseMap<StringAttr, nn::BufferOp> buffers;
};

} // namespace
