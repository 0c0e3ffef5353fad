//===- NNLayerVerifiers.cpp - Matmuls, norms, attention, losses -----------===//
//
// Numbers in comments are those of the constraints in the op descriptions.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/NNVerifiers.h"

using namespace mlir;
using namespace fsdp::nn;

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

LogicalResult LinearOp::verify() {
  // 1.
  if (failed(expectRank(*this, "the weight", getWeight(), 2)) ||
      failed(expectRankAtLeast(*this, "the input", getInput(), 1)))
    return failure();
  // 2.
  ArrayRef<int64_t> weight = shapeOf(getWeight());
  SmallVector<int64_t> shape(shapeOf(getInput()));
  if (shape.back() != weight[1])
    return emitOpError("expects the input's last dimension (")
           << shape.back() << ") to be the weight's dimension 1 (" << weight[1]
           << ")";
  // 3.
  shape.back() = weight[0];
  if (failed(expectShape(*this, "the result", getResult(), shape)))
    return failure();
  // 4.
  if (getBias() && failed(expectShape(*this, "the bias", getBias(), weight[0])))
    return failure();
  // 5.
  for (Value value : getOperands().drop_front())
    if (failed(expectElementType(*this, "weight and bias", value, getInput())))
      return failure();
  return expectElementType(*this, "the result", getResult(), getInput());
}

LogicalResult LinearInputGradOp::verify() {
  // 1.
  if (failed(expectRank(*this, "the weight", getWeight(), 2)) ||
      failed(expectRankAtLeast(*this, "the cotangent", getCotangent(), 1)))
    return failure();
  // 2.
  ArrayRef<int64_t> weight = shapeOf(getWeight());
  SmallVector<int64_t> shape(shapeOf(getCotangent()));
  if (shape.back() != weight[0])
    return emitOpError("expects the cotangent's last dimension (")
           << shape.back() << ") to be the weight's dimension 0 (" << weight[0]
           << ")";
  // 3.
  shape.back() = weight[1];
  if (failed(expectShape(*this, "the result", getResult(), shape)))
    return failure();
  // 4.
  if (failed(
          expectElementType(*this, "the weight", getWeight(), getCotangent())))
    return failure();
  return expectElementType(*this, "the result", getResult(), getCotangent());
}

LogicalResult LinearWeightGradOp::verify() {
  if (failed(expectRankAtLeast(*this, "the cotangent", getCotangent(), 1)) ||
      failed(expectRankAtLeast(*this, "the input", getInput(), 1)))
    return failure();
  // 1.
  ArrayRef<int64_t> cotangent = shapeOf(getCotangent());
  ArrayRef<int64_t> input = shapeOf(getInput());
  if (cotangent.drop_back() != input.drop_back())
    return emitOpError("expects equal leading dimensions, got ")
           << getCotangent().getType() << " and " << getInput().getType();
  // 2.
  if (failed(expectShape(*this, "the result", getResult(),
                         {cotangent.back(), input.back()})))
    return failure();
  // 3.
  if (failed(expectElementType(*this, "the input", getInput(), getCotangent())))
    return failure();
  Type own = typeOf(getCotangent()).getElementType();
  Type result = typeOf(getResult()).getElementType();
  if (!(own.isBF16() && result.isF32()) &&
      failed(
          expectElementType(*this, "the result", getResult(), getCotangent())))
    return failure();
  // 4.
  if (!getSum())
    return success();
  if (getSum().getType() != getResult().getType())
    return emitOpError("expects the sum to have the result's type ")
           << getResult().getType() << ", got " << getSum().getType();
  if (result.isBF16())
    return emitOpError("adds to a sum in bf16, which would round it once per "
                       "addend; make it f32");
  return success();
}

LogicalResult MatmulOp::verify() {
  // 1.
  int64_t rank = typeOf(getLhs()).getRank();
  if (failed(expectRankAtLeast(*this, "lhs", getLhs(), 2)) ||
      failed(expectRank(*this, "rhs", getRhs(), rank)))
    return failure();
  // 2.
  ArrayRef<int64_t> lhs = shapeOf(getLhs()), rhs = shapeOf(getRhs());
  if (lhs.drop_back(2) != rhs.drop_back(2))
    return emitOpError("expects equal leading dimensions, got ")
           << getLhs().getType() << " and " << getRhs().getType();
  // 3.
  int64_t left = lhs[rank - (getTransposeLhs() ? 2 : 1)];
  int64_t right = rhs[rank - (getTransposeRhs() ? 1 : 2)];
  if (left != right)
    return emitOpError("expects the contracted sizes to agree, got ")
           << left << " and " << right;
  // 4.
  SmallVector<int64_t> shape(lhs);
  shape[rank - 2] = lhs[rank - (getTransposeLhs() ? 1 : 2)];
  shape[rank - 1] = rhs[rank - (getTransposeRhs() ? 2 : 1)];
  if (failed(expectShape(*this, "the result", getResult(), shape)))
    return failure();
  // 5.
  if (failed(expectElementType(*this, "rhs", getRhs(), getLhs())))
    return failure();
  return expectElementType(*this, "the result", getResult(), getLhs());
}

//===----------------------------------------------------------------------===//
// Norms and softmax
//===----------------------------------------------------------------------===//

/// A norm over the last dimension of `input`: 1. `weight` (operand, or result
/// of the weight's gradient) has its size; 2. each statistic has one value per
/// row.
static LogicalResult verifyNorm(Operation *op, Value input, Value weight,
                                ValueRange statistics) {
  if (failed(expectRankAtLeast(op, "the input", input, 1)) ||
      failed(expectShape(op, "the weight", weight, shapeOf(input).back())))
    return failure();
  for (Value statistic : statistics)
    if (failed(expectType(op, "the row statistic", statistic.getType(),
                          rowStatisticType(typeOf(input)))))
      return failure();
  return success();
}

/// 3. eps >= 0.
static LogicalResult verifyEps(Operation *op, const APFloat &eps) {
  if (eps.isNaN() || (eps.isNegative() && !eps.isZero()))
    return op->emitOpError("expects eps >= 0");
  return success();
}

LogicalResult RMSNormOp::verify() {
  if (failed(verifyNorm(*this, getInput(), getWeight(), getRstd())))
    return failure();
  return verifyEps(*this, getEps());
}

LogicalResult RMSNormInputGradOp::verify() {
  return verifyNorm(*this, getInput(), getWeight(), getRstd());
}

LogicalResult RMSNormWeightGradOp::verify() {
  return verifyNorm(*this, getInput(), getResult(), getRstd());
}

LogicalResult LayerNormOp::verify() {
  if (failed(
          verifyNorm(*this, getInput(), getWeight(), {getMean(), getRstd()})))
    return failure();
  return verifyEps(*this, getEps());
}

LogicalResult LayerNormInputGradOp::verify() {
  return verifyNorm(*this, getInput(), getWeight(), {getMean(), getRstd()});
}

LogicalResult LayerNormWeightGradOp::verify() {
  return verifyNorm(*this, getInput(), getResult(), {getMean(), getRstd()});
}

LogicalResult SoftmaxOp::verify() {
  return expectRankAtLeast(*this, "the input", getInput(), 1);
}

LogicalResult SoftmaxGradOp::verify() {
  return expectRankAtLeast(*this, "the input", getProbabilities(), 1);
}

//===----------------------------------------------------------------------===//
// Rotary embedding and attention
//===----------------------------------------------------------------------===//

/// Of what is rotated by a table: heads of an even number of elements, with an
/// angle for each pair and position.
static LogicalResult verifyRotary(Operation *op, StringRef what, Value heads,
                                  Value angles) {
  // 1.
  if (failed(expectRank(op, what, heads, 4)))
    return failure();
  ArrayRef<int64_t> shape = shapeOf(heads), table = shapeOf(angles);
  if (shape[3] % 2 != 0)
    return op->emitOpError("expects an even head_dim, got ") << shape[3];
  // 2.
  RankedTensorType type = typeOf(angles);
  if (table.size() != 3 || table[0] < shape[1] || table[1] != shape[3] / 2 ||
      table[2] != 2 ||
      type.getElementType() != accumulationType(typeOf(heads).getElementType()))
    return op->emitOpError("expects a table of shape [")
           << shape[1] << " or more, " << shape[3] / 2
           << ", 2] in the accumulation type, got " << type;
  return success();
}

LogicalResult RotaryOp::verify() {
  return verifyRotary(*this, "the input", getInput(), getTable());
}

/// Of nn.split_heads and nn.join_heads, `whole` being what has all heads.
static LogicalResult verifyHeads(Operation *op, StringRef what, Value whole,
                                 Value query, Value key, Value table) {
  if (failed(verifyRotary(op, what, whole, table)))
    return failure();
  // 3.
  SmallVector<int64_t> shape(shapeOf(whole));
  int64_t heads = 0;
  for (auto [part, times] : {std::pair(query, 1), std::pair(key, 2)}) {
    if (typeOf(part).getRank() == 4)
      shape[2] = shapeOf(part)[2];
    heads += times * shape[2];
    if (typeOf(part) != typeOf(whole).clone(shape))
      return op->emitOpError("expects parts of the shape and type of ")
             << typeOf(whole) << " but for their heads, got " << typeOf(part);
  }
  if (heads != shapeOf(whole)[2])
    return op->emitOpError("has ")
           << shapeOf(whole)[2] << " heads, but its parts have " << heads;
  return success();
}

LogicalResult SplitHeadsOp::verify() {
  return verifyHeads(*this, "the input", getInput(), getQuery(), getKey(),
                     getTable());
}

LogicalResult JoinHeadsOp::verify() {
  return verifyHeads(*this, "the result", getResult(), getQuery(), getKey(),
                     getTable());
}

/// Of nn.attention and its gradient.
static LogicalResult verifyView(Operation *op, std::optional<int64_t> window,
                                std::optional<APFloat> cap, bool causal) {
  // 6.
  if (window && !causal)
    return op->emitOpError("expects `causal` beside a window");
  if (window && *window < 1)
    return op->emitOpError("expects a window of 1 or more keys, got ")
           << *window;
  // 7.
  if (cap && (!cap->isFinite() || cap->isNegative() || cap->isZero()))
    return op->emitOpError("expects a cap that is positive and finite");
  return success();
}

/// Shapes of nn.attention and its gradient; keys and values have equal types
/// by a trait of both.
static LogicalResult verifyAttention(Operation *op, Value query, Value key,
                                     Value lse, bool causal) {
  // 1.
  if (failed(expectRank(op, "the query", query, 4)))
    return failure();
  // 2.
  if (failed(expectRank(op, "key and value", key, 4)) ||
      failed(expectElementType(op, "key and value", key, query)))
    return failure();
  ArrayRef<int64_t> q = shapeOf(query), k = shapeOf(key);
  if (q[0] != k[0] || q[3] != k[3])
    return op->emitOpError("expects equal batch and head_dim, got ")
           << query.getType() << " and " << key.getType();
  // 3.
  if (k[2] == 0 || q[2] % k[2] != 0)
    return op->emitOpError("expects heads (")
           << q[2] << ") to be a multiple of kv_heads (" << k[2] << ")";
  // 4.
  auto statistic = RankedTensorType::get(
      {q[0], q[2], q[1]}, accumulationType(typeOf(query).getElementType()));
  if (failed(expectType(op, "lse", lse.getType(), statistic)))
    return failure();
  // 5.
  if (causal && q[1] != k[1])
    return op->emitOpError("expects q_len = kv_len where causal, got ")
           << q[1] << " and " << k[1];
  return success();
}

template <typename OpT> static LogicalResult verifyAttentionOp(OpT op) {
  if (failed(verifyAttention(op, op.getQuery(), op.getKey(), op.getLse(),
                             op.getCausal())))
    return failure();
  if (failed(verifyView(op, op.getWindow(), op.getCap(), op.getCausal())))
    return failure();
  // 8.
  if (!op.getStarts())
    return success();
  if (!op.getCausal())
    return op.emitOpError("expects `causal` beside starts of documents");
  return expectShape(op, "the starts", op.getStarts(),
                     shapeOf(op.getQuery()).take_front(2));
}

LogicalResult AttentionOp::verify() { return verifyAttentionOp(*this); }
LogicalResult AttentionGradOp::verify() { return verifyAttentionOp(*this); }

//===----------------------------------------------------------------------===//
// Embedding and losses
//===----------------------------------------------------------------------===//

/// `rows` holds one row of `table` per index, as nn.embedding gives them.
static LogicalResult verifyEmbedding(Operation *op, Value indices, Value table,
                                     Value rows) {
  // 1.
  if (failed(expectRank(op, "the table", table, 2)))
    return failure();
  // 2.
  SmallVector<int64_t> shape(shapeOf(indices));
  shape.push_back(shapeOf(table)[1]);
  if (failed(expectShape(op, "the rows", rows, shape)))
    return failure();
  // 3.
  return expectElementType(op, "the rows", rows, table);
}

LogicalResult EmbeddingOp::verify() {
  return verifyEmbedding(*this, getIndices(), getTable(), getResult());
}

LogicalResult EmbeddingGradOp::verify() {
  return verifyEmbedding(*this, getIndices(), getResult(), getCotangent());
}

/// `lse` is any value that has one element per row.
static LogicalResult verifyCrossEntropy(Operation *op, Value logits,
                                        Value targets, Value lse) {
  // 1.
  if (failed(expectRankAtLeast(op, "the logits", logits, 1)) ||
      failed(
          expectShape(op, "the targets", targets, shapeOf(logits).drop_back())))
    return failure();
  // 2.
  return expectType(op, "lse", lse.getType(), rowStatisticType(typeOf(logits)));
}

LogicalResult CrossEntropyOp::verify() {
  return verifyCrossEntropy(*this, getLogits(), getTargets(), getLse());
}

LogicalResult CrossEntropyGradOp::verify() {
  return verifyCrossEntropy(*this, getLogits(), getTargets(), getLse());
}

LogicalResult CountLabelsOp::verify() {
  ArrayRef<int64_t> counts = shapeOf(getResult());
  if (counts.size() > 1)
    return emitOpError("gives one count or a row of them, not ")
           << getResult().getType();
  if (counts.empty())
    return success();
  ArrayRef<int64_t> targets = shapeOf(getTargets());
  if (targets.empty() || counts[0] == 0 || targets[0] % counts[0] != 0)
    return emitOpError("cannot split ")
           << getTargets().getType() << " into " << counts[0]
           << " equal parts along its first dimension";
  return success();
}

LogicalResult DivideByCountOp::verify() {
  return expectShape(*this, "the counts", getCount(), shapeOf(getSum()));
}

// 1. is a trait of both ops; 2. and 3.:
LogicalResult MSELossOp::verify() {
  if (failed(expectType(*this, "the loss", getLoss().getType(),
                        lossType(typeOf(getPrediction())))))
    return failure();
  return expectCount(*this, getCount());
}

LogicalResult MSELossGradOp::verify() {
  if (failed(expectType(*this, "the loss's cotangent", getCotangent().getType(),
                        lossType(typeOf(getPrediction())))))
    return failure();
  return expectCount(*this, getCount());
}
