//===- NNFolders.cpp - Folders of the nn dialect --------------------------===//
//
// Only rewrites that keep every bit: moves that cancel, casts that are exact,
// constants of one value, windows that hide nothing.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/NNSupport.h"

using namespace mlir;
using namespace fsdp::nn;

/// A constant of one value under the type of a result that only moves it.
static OpFoldResult moveSplat(Attribute operand, Type resultType) {
  auto splat = dyn_cast_or_null<SplatElementsAttr>(operand);
  if (!splat)
    return {};
  return splat.resizeSplat(cast<ShapedType>(resultType));
}

/// True if every value of `from` is a value of `to`.
static bool isWidening(Type from, Type to) {
  return from.getIntOrFloatBitWidth() <= to.getIntOrFloatBitWidth();
}

static SmallVector<int64_t> addOffsets(ArrayRef<int64_t> a,
                                       ArrayRef<int64_t> b) {
  SmallVector<int64_t> sum;
  for (auto [x, y] : llvm::zip_equal(a, b))
    sum.push_back(x + y);
  return sum;
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

OpFoldResult CastOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getInput())) {
    auto element = cast<FloatType>(typeOf(getResult()).getElementType());
    APFloat value = splat.getSplatValue<APFloat>();
    bool losesInfo = false;
    value.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
    return DenseElementsAttr::get(typeOf(getResult()), value);
  }
  // A widening cast keeps the value, so the second cast may start before it. A
  // narrowing one rounds and must stay.
  auto inner = getInput().getDefiningOp<CastOp>();
  if (!inner || !isWidening(typeOf(inner.getInput()).getElementType(),
                            typeOf(inner.getResult()).getElementType()))
    return {};
  getInputMutable().assign(inner.getInput());
  return getResult();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (OpFoldResult constant = moveSplat(adaptor.getInput(), getType()))
    return constant;
  auto inner = getInput().getDefiningOp<ReshapeOp>();
  if (!inner)
    return {};
  getInputMutable().assign(inner.getInput());
  return getResult();
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (llvm::equal(getPermutation(),
                  llvm::seq<int64_t>(0, getPermutation().size())))
    return getInput();
  if (OpFoldResult constant = moveSplat(adaptor.getInput(), getType()))
    return constant;
  auto inner = getInput().getDefiningOp<TransposeOp>();
  if (!inner)
    return {};
  SmallVector<int64_t> composed;
  for (int64_t dim : getPermutation())
    composed.push_back(inner.getPermutation()[dim]);
  setPermutation(composed);
  getInputMutable().assign(inner.getInput());
  return getResult();
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (OpFoldResult constant = moveSplat(adaptor.getInput(), getType()))
    return constant;
  auto inner = getInput().getDefiningOp<SliceOp>();
  if (!inner)
    return {};
  setOffsets(addOffsets(getOffsets(), inner.getOffsets()));
  getInputMutable().assign(inner.getInput());
  return getResult();
}

OpFoldResult PadOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  auto inner = getInput().getDefiningOp<PadOp>();
  if (!inner)
    return {};
  setOffsets(addOffsets(getOffsets(), inner.getOffsets()));
  getInputMutable().assign(inner.getInput());
  return getResult();
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  if (getInputs().size() == 1)
    return getInputs().front();
  return {};
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (OpFoldResult constant = moveSplat(adaptor.getInput(), getType()))
    return constant;
  auto inner = getInput().getDefiningOp<BroadcastOp>();
  if (!inner)
    return {};
  SmallVector<int64_t> composed;
  for (int64_t dim : inner.getDims())
    composed.push_back(getDims()[dim]);
  setDims(composed);
  getInputMutable().assign(inner.getInput());
  return getResult();
}

/// A window of all keys hides none.
template <typename OpT> static LogicalResult dropWideWindow(OpT op) {
  int64_t window = op.getWindow().value_or(0);
  if (window < shapeOf(op.getKey())[1])
    return failure();
  op.removeWindowAttr();
  return success();
}

LogicalResult AttentionOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult> &) {
  return dropWideWindow(*this);
}

LogicalResult AttentionGradOp::fold(FoldAdaptor,
                                    SmallVectorImpl<OpFoldResult> &) {
  return dropWideWindow(*this);
}
