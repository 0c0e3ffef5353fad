//===- Localize.cpp - From logical tensors to those of one rank -----------===//
//
// Only here is decided which collectives a change of placement costs; the table
// is in dialects/Fsdp/Placement.h.
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/PlacementRules.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_LOCALIZE
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;
using namespace fsdp::dist;

namespace {

RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

class Localizer {
public:
  Localizer(func::FuncOp program, MeshOp mesh, const Placements &placements)
      : program(program), mesh(mesh), placements(placements) {}

  void run() {
    Block &body = program.getBody().front();
    program->setAttr(kLocalAttr, UnitAttr::get(program.getContext()));
    // Moves first, while types are logical.
    for (auto place : llvm::make_early_inc_range(body.getOps<PlaceOp>()))
      moves.push_back({place, placements.lookup(place.getInput()),
                       tensorOf(place.getResult())});
    for (const auto &entry : placements) {
      Value value = entry.first;
      value.setType(localType(tensorOf(value), entry.second, mesh));
    }
    for (auto constant : body.getOps<nn::ConstantOp>())
      constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue())
                                .resizeSplat(constant.getResult().getType()));
    for (const Replaced &replaced : moves)
      expand(replaced);
    program.setFunctionType(
        FunctionType::get(program.getContext(), body.getArgumentTypes(),
                          body.getTerminator()->getOperandTypes()));
  }

private:
  struct Replaced {
    PlaceOp op;
    Placement from;
    RankedTensorType logical;
  };

  void expand(const Replaced &replaced) {
    PlaceOp op = replaced.op;
    OpBuilder builder(op);
    Type element = replaced.logical.getElementType();
    Value value = op.getInput();
    SmallVector<Move> moves =
        movesBetween(replaced.from, Placement(op.getPlacement()), mesh);
    auto reductionsLeft = llvm::count_if(moves, isReduction);
    for (const Move &move : moves) {
      // A sum stays wide until it is complete; then the narrow type travels.
      if (reductionsLeft == 0)
        value = castTo(builder, op.getLoc(), value, element);
      reductionsLeft -= isReduction(move);
      value = create(builder, replaced, move, value);
    }
    op.replaceAllUsesWith(castTo(builder, op.getLoc(), value, element));
    op.erase();
  }

  static bool isReduction(const Move &move) {
    return move.kind == Move::AllReduce || move.kind == Move::ReduceScatter;
  }

  Value castTo(OpBuilder &builder, Location location, Value value,
               Type element) {
    if (tensorOf(value).getElementType() == element)
      return value;
    return nn::CastOp::create(builder, location, tensorOf(value).clone(element),
                              value);
  }

  Value create(OpBuilder &builder, const Replaced &replaced, const Move &move,
               Value value) {
    Type element = tensorOf(value).getElementType();
    RankedTensorType type =
        localType(replaced.logical, move.after, mesh).clone(element);
    PlaceOp op = replaced.op;
    Location location = op.getLoc();
    ArrayAttr axes = axesAttr(builder.getContext(), move.axes);
    auto kind =
        CollectiveReduceAttr::get(builder.getContext(), replaced.from.kind);
    RankedTensorType sum = type.clone(wide(element));
    FloatAttr one = builder.getF64FloatAttr(1);
    switch (move.kind) {
    case Move::ShardOf:
      return ShardOfOp::create(builder, location, type, value, op.getMeshAttr(),
                               axes, builder.getI64IntegerAttr(move.to));
    case Move::AllGather:
      return AllGatherOp::create(
                 builder, location, TypeRange(type), value, op.getMeshAttr(),
                 axes, builder.getI64IntegerAttr(move.from), StringAttr())
          .getResult(0);
    case Move::AllReduce:
      return AllReduceOp::create(builder, location, TypeRange(sum), kind, value,
                                 op.getMeshAttr(), axes, one, StringAttr())
          .getResult(0);
    case Move::ReduceScatter:
      return ReduceScatterOp::create(builder, location, TypeRange(sum), kind,
                                     value, op.getMeshAttr(), axes,
                                     builder.getI64IntegerAttr(move.to), one,
                                     StringAttr())
          .getResult(0);
    case Move::AllToAll:
      return AllToAllOp::create(
                 builder, location, TypeRange(type), value, op.getMeshAttr(),
                 axes, builder.getI64IntegerAttr(move.to),
                 builder.getI64IntegerAttr(move.from), StringAttr())
          .getResult(0);
    }
    llvm_unreachable("all kinds of moves");
  }

  /// What a reduction gives: integers stay what they are.
  static Type wide(Type element) {
    return isa<FloatType>(element) ? nn::accumulationType(element) : element;
  }

  func::FuncOp program;
  MeshOp mesh;
  const Placements &placements;
  SmallVector<Replaced> moves;
};

struct LocalizePass : fsdp::impl::LocalizeBase<LocalizePass> {
  using Base::Base;

  void runOnOperation() override {
    auto localize = [](FunctionOpInterface program, MeshOp mesh) {
      FailureOr<Placements> placements = placementsOf(program, mesh);
      if (failed(placements))
        return failure();
      Localizer(cast<func::FuncOp>(*program), mesh, *placements).run();
      return success();
    };
    if (failed(forEachLogicalProgram(getOperation(), localize)))
      signalPassFailure();
  }
};

} // namespace
