//===- NNBuilders.cpp - Builders that infer result types ------------------===//
#include "dialects/NN/NNSupport.h"

using namespace mlir;
using namespace fsdp::nn;

void ConstantOp::build(OpBuilder &builder, OperationState &state,
                       RankedTensorType type, double value) {
  Type element = type.getElementType();
  TypedAttr scalar;
  if (isa<FloatType>(element))
    scalar = builder.getFloatAttr(element, value);
  else
    scalar = builder.getIntegerAttr(element, static_cast<int64_t>(value));
  build(builder, state, cast<TypedAttr>(DenseElementsAttr::get(type, scalar)));
}

double ConstantOp::getSplat() {
  auto splat = cast<SplatElementsAttr>(getValue());
  if (isa<FloatType>(splat.getElementType())) {
    APFloat value = splat.getSplatValue<APFloat>();
    bool losesInfo = false;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
    return value.convertToDouble();
  }
  return splat.getSplatValue<APInt>().getSExtValue();
}

//===----------------------------------------------------------------------===//
// Shapes and reductions
//===----------------------------------------------------------------------===//

void TransposeOp::build(OpBuilder &builder, OperationState &state, Value input,
                        ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(shapeOf(input)[dim]);
  build(builder, state, withShape(typeOf(input), shape), input, permutation);
}

void SumOp::build(OpBuilder &builder, OperationState &state, Value input,
                  ArrayRef<int64_t> dims) {
  build(builder, state, reducedType(typeOf(input), dims), input, dims);
}

void MeanOp::build(OpBuilder &builder, OperationState &state, Value input,
                   ArrayRef<int64_t> dims) {
  RankedTensorType type = reducedType(typeOf(input), dims);
  int64_t count =
      elementsOf(input) / std::max<int64_t>(product(type.getShape()), 1);
  build(builder, state, type, input, dims, count);
}

void MaxOp::build(OpBuilder &builder, OperationState &state, Value input,
                  ArrayRef<int64_t> dims) {
  build(builder, state, reducedType(typeOf(input), dims), input, dims);
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

void LinearOp::build(OpBuilder &builder, OperationState &state, Value input,
                     Value weight, Value bias) {
  SmallVector<int64_t> shape(shapeOf(input));
  shape.back() = shapeOf(weight)[0];
  build(builder, state, withShape(typeOf(input), shape), input, weight, bias);
}

void LinearInputGradOp::build(OpBuilder &builder, OperationState &state,
                              Value cotangent, Value weight) {
  SmallVector<int64_t> shape(shapeOf(cotangent));
  shape.back() = shapeOf(weight)[1];
  build(builder, state, withShape(typeOf(cotangent), shape), cotangent, weight);
}

void LinearWeightGradOp::build(OpBuilder &builder, OperationState &state,
                               Value cotangent, Value input) {
  build(builder, state,
        withShape(typeOf(cotangent),
                  {shapeOf(cotangent).back(), shapeOf(input).back()}),
        cotangent, input, /*sum=*/Value());
}

void MatmulOp::build(OpBuilder &builder, OperationState &state, Value lhs,
                     Value rhs, bool transposeLhs, bool transposeRhs) {
  SmallVector<int64_t> shape(shapeOf(lhs));
  size_t rank = shape.size();
  shape[rank - 2] = shapeOf(lhs)[transposeLhs ? rank - 1 : rank - 2];
  shape[rank - 1] = shapeOf(rhs)[transposeRhs ? rank - 2 : rank - 1];
  build(builder, state, withShape(typeOf(lhs), shape), lhs, rhs, transposeLhs,
        transposeRhs);
}

//===----------------------------------------------------------------------===//
// Norms, attention, embedding, losses
//===----------------------------------------------------------------------===//

void RMSNormOp::build(OpBuilder &builder, OperationState &state, Value input,
                      Value weight, double eps, bool plusOne) {
  build(builder, state, input.getType(), rowStatisticType(typeOf(input)), input,
        weight, builder.getF64FloatAttr(eps),
        plusOne ? builder.getUnitAttr() : UnitAttr());
}

void LayerNormOp::build(OpBuilder &builder, OperationState &state, Value input,
                        Value weight, Value bias, double eps) {
  RankedTensorType statistic = rowStatisticType(typeOf(input));
  build(builder, state, input.getType(), statistic, statistic, input, weight,
        bias, builder.getF64FloatAttr(eps));
}

void AttentionOp::build(OpBuilder &builder, OperationState &state, Value query,
                        Value key, Value value, double scale, bool causal) {
  AttentionView view;
  view.causal = causal;
  build(builder, state, query, key, value, scale, view);
}

// A window that hides nothing is left out, as the folder does.
void AttentionOp::build(OpBuilder &builder, OperationState &state, Value query,
                        Value key, Value value, double scale,
                        const AttentionView &view, Value starts) {
  ArrayRef<int64_t> q = shapeOf(query);
  Type statistic = accumulationType(typeOf(query).getElementType());
  bool hides = view.window != 0 && view.window < shapeOf(key)[1];
  build(builder, state, query.getType(),
        RankedTensorType::get({q[0], q[2], q[1]}, statistic), query, key, value,
        starts, builder.getF64FloatAttr(scale),
        view.causal ? builder.getUnitAttr() : UnitAttr(),
        hides ? builder.getI64IntegerAttr(view.window) : IntegerAttr(),
        view.cap != 0 ? builder.getF64FloatAttr(view.cap) : FloatAttr());
}

template <typename OpT> static AttentionView viewOf(OpT op) {
  AttentionView view;
  view.causal = op.getCausal();
  view.window = op.getWindow().value_or(0);
  if (op.getCap())
    view.cap = op.getCap()->convertToDouble();
  return view;
}

AttentionView AttentionOp::getView() { return viewOf(*this); }
AttentionView AttentionGradOp::getView() { return viewOf(*this); }

void EmbeddingOp::build(OpBuilder &builder, OperationState &state,
                        Value indices, Value table) {
  SmallVector<int64_t> shape(shapeOf(indices));
  shape.push_back(shapeOf(table)[1]);
  build(builder, state, withShape(typeOf(table), shape), indices, table);
}

void CrossEntropyOp::build(OpBuilder &builder, OperationState &state,
                           Value logits, Value targets, int64_t ignoreIndex) {
  RankedTensorType rows = rowStatisticType(typeOf(logits));
  build(builder, state, rows, rows, logits, targets,
        builder.getI64IntegerAttr(ignoreIndex));
}

void CountLabelsOp::build(OpBuilder &builder, OperationState &state,
                          Value targets, int64_t ignoreIndex) {
  build(builder, state, RankedTensorType::get({}, builder.getI64Type()),
        targets, builder.getI64IntegerAttr(ignoreIndex));
}

void DivideByCountOp::build(OpBuilder &builder, OperationState &state,
                            Value sum, Value count) {
  build(builder, state, sum.getType(), sum, count);
}

void MSELossOp::build(OpBuilder &builder, OperationState &state,
                      Value prediction, Value target) {
  build(builder, state, lossType(typeOf(prediction)), prediction, target,
        elementsOf(prediction));
}

void RotaryOp::build(OpBuilder &builder, OperationState &state, Value input,
                     Value table, RotaryPairs pairs, bool inverse) {
  build(builder, state, input.getType(), input, table, pairs, inverse);
}

void MaxGradOp::build(OpBuilder &builder, OperationState &state, Value input,
                      Value max, Value cotangent, ArrayRef<int64_t> dims) {
  build(builder, state, input.getType(), input, max, cotangent, dims);
}

// The terminator of a fusion that gives nothing.
void YieldOp::build(OpBuilder &, OperationState &) {}
