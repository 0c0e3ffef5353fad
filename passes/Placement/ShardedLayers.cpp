//===- ShardedLayers.cpp - Layers over dimensions that are sharded --------===//
#include "passes/Placement/ShardedLayers.h"
#include "dialects/NN/ModulePath.h"

using namespace mlir;
using namespace fsdp;

/// The parameter that `value` is read from, cast or not; null if it is none.
static StringAttr parameterOf(Value value) {
  if (!value)
    return {};
  if (auto cast = value.getDefiningOp<nn::CastOp>())
    value = cast.getInput();
  auto read = value.getDefiningOp<nn::ReadOp>();
  return read ? read.getNameAttr().getAttr() : StringAttr();
}

/// The axes that shard dimension `dim` of the parameter that `value` is read
/// from.
static dist::AxisList axesOfDim(Value value, unsigned dim,
                                const ParameterPlaces &places) {
  auto place = places.find(parameterOf(value));
  if (place == places.end() || dim >= place->second.compute.dims.size())
    return {};
  return place->second.compute.dims[dim].compute;
}

//===----------------------------------------------------------------------===//
// Placements
//===----------------------------------------------------------------------===//

static void follow(Value value, const dist::AxisList &axes,
                   ParameterPlaces &places) {
  auto place = places.find(parameterOf(value));
  if (place == places.end() || place->second.isStated)
    return;
  place->second.compute.dims[0].compute = axes;
}

void fsdp::placeFollowers(ModuleOp module, ParameterPlaces &places) {
  module.walk([&](nn::LinearOp linear) {
    dist::AxisList axes = axesOfDim(linear.getWeight(), 0, places);
    if (axes.empty())
      return;
    if (linear.getBias())
      follow(linear.getBias(), axes, places);
    for (Operation *user : linear->getUsers())
      if (auto norm = dyn_cast<nn::RMSNormOp>(user))
        follow(norm.getWeight(), axes, places);
  });
}

//===----------------------------------------------------------------------===//
// Rewrites
//===----------------------------------------------------------------------===//

/// `value` repeated along all dimensions of `type` but the last.
static Value alongLast(OpBuilder &builder, Location loc, Value value,
                       RankedTensorType type) {
  auto wide = RankedTensorType::get(type.getShape(),
                                    dist::tensorOf(value).getElementType());
  return nn::BroadcastOp::create(
      builder, loc, wide, value,
      builder.getDenseI64ArrayAttr({type.getRank() - 1}));
}

static void addBiasToSum(nn::LinearOp linear) {
  OpBuilder builder(linear);
  nn::ModuleScope scope(builder, nn::moduleOf(linear));
  Location loc = linear.getLoc();
  Value products =
      nn::LinearOp::create(builder, loc, linear.getInput(), linear.getWeight());
  Value bias = alongLast(builder, loc, linear.getBias(), linear.getType());
  linear.replaceAllUsesWith(
      nn::AddOp::create(builder, loc, products, bias).getResult());
  linear.erase();
}

namespace {

/// Writes an RMS norm as ops of which only the mean of the squares combines the
/// elements of a row.
class NormInParts {
public:
  explicit NormInParts(nn::RMSNormOp norm)
      : norm(norm), builder(norm), scope(builder, nn::moduleOf(norm)),
        loc(norm.getLoc()), type(dist::tensorOf(norm.getInput())),
        wide(
            cast<RankedTensorType>(norm.getRstd().getType()).getElementType()) {
  }

  void rewrite() {
    Value x = widened(norm.getInput());
    Value scaled = nn::MulOp::create(builder, loc, x, repeated(rstd(x)));
    Value y = nn::MulOp::create(builder, loc, scaled,
                                alongLast(builder, loc, weight(), type));
    if (y.getType() != type)
      y = nn::CastOp::create(builder, loc, type, y);
    norm.getResult().replaceAllUsesWith(y);
    norm.erase();
  }

private:
  Value widened(Value value) {
    RankedTensorType from = dist::tensorOf(value);
    if (from.getElementType() == wide)
      return value;
    return nn::CastOp::create(builder, loc, from.clone(wide), value);
  }

  Value constant(Value like, double value) {
    return nn::ConstantOp::create(builder, loc, dist::tensorOf(like), value);
  }

  Value rstd(Value x) {
    Value squares = nn::MulOp::create(builder, loc, x, x);
    Value mean =
        nn::MeanOp::create(builder, loc, squares, {type.getRank() - 1});
    Value eps = constant(mean, norm.getEps().convertToDouble());
    return nn::RsqrtOp::create(builder, loc,
                               nn::AddOp::create(builder, loc, mean, eps));
  }

  Value weight() {
    Value w = widened(norm.getWeight());
    return norm.getPlusOne()
               ? nn::AddOp::create(builder, loc, w, constant(w, 1)).getResult()
               : w;
  }

  /// One number per row, for every element of it.
  Value repeated(Value rows) {
    auto leading = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank() - 1));
    return nn::BroadcastOp::create(builder, loc, type.clone(wide), rows,
                                   builder.getDenseI64ArrayAttr(leading));
  }

  nn::RMSNormOp norm;
  OpBuilder builder;
  nn::ModuleScope scope;
  Location loc;
  RankedTensorType type;
  Type wide; // f32, or f64 for f64
};

} // namespace

void fsdp::rewriteShardedLayers(func::FuncOp program,
                                const ParameterPlaces &places) {
  SmallVector<nn::LinearOp> linears;
  SmallVector<nn::RMSNormOp> norms;
  program.walk([&](Operation *op) {
    if (auto linear = dyn_cast<nn::LinearOp>(op);
        linear && linear.getBias() &&
        !axesOfDim(linear.getWeight(), 1, places).empty())
      linears.push_back(linear);
    if (auto norm = dyn_cast<nn::RMSNormOp>(op);
        norm && !axesOfDim(norm.getWeight(), 0, places).empty())
      norms.push_back(norm);
  });
  llvm::for_each(linears, addBiasToSum);
  for (nn::RMSNormOp norm : norms)
    NormInParts(norm).rewrite();
}
