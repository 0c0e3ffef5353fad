//===- NNVjp.cpp - Reverse rules of the nn ops ----------------------------===//
//
// Reverse rules are written over `Graph`, whose operators build nn ops, so
// that each reads like its formula.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/NNSupport.h"

using namespace mlir;
using namespace fsdp::nn;

namespace {

/// A tensor under construction; arithmetic builds nn ops.
struct Graph {
  OpBuilder &builder;
  Location loc;
  Value value;

  Graph with(Value other) const { return {builder, loc, other}; }
  Graph like(double constant) const {
    return with(ConstantOp::create(builder, loc, typeOf(value), constant));
  }
  operator Value() const { return value; }
};

Graph operator-(Graph a, Graph b) {
  return a.with(SubOp::create(a.builder, a.loc, a.value, b.value));
}
Graph operator*(Graph a, Graph b) {
  return a.with(MulOp::create(a.builder, a.loc, a.value, b.value));
}
Graph operator/(Graph a, Graph b) {
  return a.with(DivOp::create(a.builder, a.loc, a.value, b.value));
}
Graph operator-(Graph a) {
  return a.with(NegOp::create(a.builder, a.loc, a.value));
}
Graph operator-(double a, Graph b) { return b.like(a) - b; }
Graph operator*(double a, Graph b) { return b.like(a) * b; }

} // namespace

/// True if a cotangent reaches result 0 alone. One of a statistic (rstd, mean,
/// lse) is an error: nothing in a model may depend on them but gradients.
static bool reachesValueOnly(Operation *op, ValueRange cotangents) {
  for (Value statistic : cotangents.drop_front())
    if (statistic) {
      op->emitOpError("has no gradient with respect to its statistics");
      return false;
    }
  return cotangents.front() != nullptr;
}

/// `value` with `shape`; no op where it already has it.
static Value reshaped(OpBuilder &builder, Location loc, Value value,
                      ArrayRef<int64_t> shape) {
  if (shapeOf(value) == shape)
    return value;
  return ReshapeOp::create(builder, loc, withShape(typeOf(value), shape),
                           value);
}

/// The permutation that moves `dims` after the other dimensions.
static SmallVector<int64_t> dimsLast(int64_t rank, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> permutation = otherDims(rank, dims);
  llvm::append_range(permutation, dims);
  return permutation;
}

static SmallVector<int64_t> inverse(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> result(permutation.size());
  for (auto [i, dim] : llvm::enumerate(permutation))
    result[dim] = i;
  return result;
}

/// The last `count` of `rank` dimensions.
static SmallVector<int64_t> lastDims(int64_t rank, int64_t count) {
  return llvm::to_vector(llvm::seq<int64_t>(rank - count, rank));
}

/// All dimensions but the last.
static SmallVector<int64_t> leadingDims(Value value) {
  return llvm::to_vector(llvm::seq<int64_t>(0, typeOf(value).getRank() - 1));
}

/// Sum over `dims`, transposed first where no kernel could do it.
static Value sumOver(OpBuilder &builder, Location loc, Value value,
                     ArrayRef<int64_t> dims) {
  if (dims.empty())
    return value;
  if (positionOf(shapeOf(value), dims) != DimsPosition::Mixed)
    return SumOp::create(builder, loc, value, dims);
  int64_t rank = typeOf(value).getRank();
  Value moved = TransposeOp::create(builder, loc, value, dimsLast(rank, dims));
  return SumOp::create(builder, loc, moved, lastDims(rank, dims.size()));
}

/// Repeats a reduction's cotangent along the dimensions it reduced.
static Value broadcastBack(OpBuilder &builder, Location loc, Value cotangent,
                           Value input, ArrayRef<int64_t> dims) {
  return BroadcastOp::create(builder, loc, typeOf(input), cotangent,
                             otherDims(typeOf(input).getRank(), dims));
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

void CastOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                      MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] =
      CastOp::create(builder, getLoc(), getInput().getType(), cotangents[0]);
}

void AddOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                     MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] = cotangents[0];
  operandCotangents[1] = cotangents[0];
}

void SubOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                     MutableArrayRef<Value> operandCotangents) {
  Graph dy{builder, getLoc(), cotangents[0]};
  operandCotangents[0] = dy;
  operandCotangents[1] = -dy;
}

void MulOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                     MutableArrayRef<Value> operandCotangents) {
  Graph dy{builder, getLoc(), cotangents[0]};
  operandCotangents[0] = dy * dy.with(getRhs());
  operandCotangents[1] = dy * dy.with(getLhs());
}

void DivOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                     MutableArrayRef<Value> operandCotangents) {
  Graph dy{builder, getLoc(), cotangents[0]};
  Graph quotient = dy / dy.with(getRhs());
  operandCotangents[0] = quotient;
  operandCotangents[1] = -(quotient * dy.with(getResult()));
}

void NegOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                     MutableArrayRef<Value> operandCotangents) {
  Graph dy{builder, getLoc(), cotangents[0]};
  operandCotangents[0] = -dy;
}

void ExpOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                     MutableArrayRef<Value> operandCotangents) {
  Graph dy{builder, getLoc(), cotangents[0]};
  operandCotangents[0] = dy * dy.with(getResult());
}

void LogOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                     MutableArrayRef<Value> operandCotangents) {
  Graph dy{builder, getLoc(), cotangents[0]};
  operandCotangents[0] = dy / dy.with(getInput());
}

// y = sqrt(x): dy / (2 y).
void SqrtOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                      MutableArrayRef<Value> operandCotangents) {
  Graph dy{builder, getLoc(), cotangents[0]};
  operandCotangents[0] = 0.5 * dy / dy.with(getResult());
}

// y = x^(-1/2): -dy y^3 / 2.
void RsqrtOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                       MutableArrayRef<Value> operandCotangents) {
  Graph dy{builder, getLoc(), cotangents[0]};
  Graph y = dy.with(getResult());
  operandCotangents[0] = -0.5 * dy * (y * y * y);
}

void TanhOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                      MutableArrayRef<Value> operandCotangents) {
  Graph dy{builder, getLoc(), cotangents[0]};
  Graph y = dy.with(getResult());
  operandCotangents[0] = dy * (1.0 - y * y);
}

void SigmoidOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                         MutableArrayRef<Value> operandCotangents) {
  Graph dy{builder, getLoc(), cotangents[0]};
  Graph y = dy.with(getResult());
  operandCotangents[0] = dy * (y * (1.0 - y));
}

void ReluOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                      MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] =
      ReluGradOp::create(builder, getLoc(), getInput(), cotangents[0]);
}

void SiluOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                      MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] =
      SiluGradOp::create(builder, getLoc(), getInput(), cotangents[0]);
}

void GeluOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                      MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] = GeluGradOp::create(builder, getLoc(), getInput(),
                                            cotangents[0], getForm());
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

void ReshapeOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                         MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] =
      reshaped(builder, getLoc(), cotangents[0], shapeOf(getInput()));
}

void TransposeOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                           MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] = TransposeOp::create(builder, getLoc(), cotangents[0],
                                             inverse(getPermutation()));
}

void SliceOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                       MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] = PadOp::create(builder, getLoc(), getInput().getType(),
                                       cotangents[0], getOffsets());
}

void PadOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                     MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] = SliceOp::create(
      builder, getLoc(), getInput().getType(), cotangents[0], getOffsets());
}

void ConcatOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                        MutableArrayRef<Value> operandCotangents) {
  SmallVector<int64_t> offsets(typeOf(getResult()).getRank(), 0);
  for (auto [input, cotangent] :
       llvm::zip_equal(getInputs(), operandCotangents)) {
    cotangent = SliceOp::create(builder, getLoc(), input.getType(),
                                cotangents[0], offsets);
    offsets[getDim()] += shapeOf(input)[getDim()];
  }
}

void BroadcastOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                           MutableArrayRef<Value> operandCotangents) {
  Value sum = sumOver(builder, getLoc(), cotangents[0], repeatedDims(*this));
  operandCotangents[0] = reshaped(builder, getLoc(), sum, shapeOf(getInput()));
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

void SumOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                     MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] =
      broadcastBack(builder, getLoc(), cotangents[0], getInput(), getDims());
}

void MeanOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                      MutableArrayRef<Value> operandCotangents) {
  Graph dy{builder, getLoc(), cotangents[0]};
  operandCotangents[0] = broadcastBack(
      builder, getLoc(), dy / dy.like(getCount()), getInput(), getDims());
}

// The kernel counts equal maxima along a row, so the reduced dimensions go
// last.
void MaxOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                     MutableArrayRef<Value> operandCotangents) {
  DimsPosition position = positionOf(shapeOf(getInput()), getDims());
  if (position != DimsPosition::Leading && position != DimsPosition::Mixed) {
    operandCotangents[0] = MaxGradOp::create(
        builder, getLoc(), getInput(), getResult(), cotangents[0], getDims());
    return;
  }
  int64_t rank = typeOf(getInput()).getRank();
  SmallVector<int64_t> permutation = dimsLast(rank, getDims());
  Value moved = TransposeOp::create(builder, getLoc(), getInput(), permutation);
  Value gradient =
      MaxGradOp::create(builder, getLoc(), moved, getResult(), cotangents[0],
                        lastDims(rank, getDims().size()));
  operandCotangents[0] =
      TransposeOp::create(builder, getLoc(), gradient, inverse(permutation));
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

// y = x W^T + b: dx = dy W, dW = dy^T x, db = sum of dy over the rows.
void LinearOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                        MutableArrayRef<Value> operandCotangents) {
  Location loc = getLoc();
  Value dy = cotangents[0];
  operandCotangents[0] =
      LinearInputGradOp::create(builder, loc, dy, getWeight());
  operandCotangents[1] =
      LinearWeightGradOp::create(builder, loc, dy, getInput());
  if (getBias())
    operandCotangents[2] = sumOver(builder, loc, dy, leadingDims(dy));
}

// With A and B the operands as they are read, C = A B: dA = dC B^T and
// dB = A^T dC; an operand that is stored transposed gets the transpose of it.
void MatmulOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                        MutableArrayRef<Value> operandCotangents) {
  Value dy = cotangents[0];
  bool left = getTransposeLhs(), right = getTransposeRhs();
  operandCotangents[0] =
      left ? MatmulOp::create(builder, getLoc(), getRhs(), dy, right, true)
           : MatmulOp::create(builder, getLoc(), dy, getRhs(), false, !right);
  operandCotangents[1] =
      right ? MatmulOp::create(builder, getLoc(), dy, getLhs(), true, left)
            : MatmulOp::create(builder, getLoc(), getLhs(), dy, !left, false);
}

//===----------------------------------------------------------------------===//
// Norms and softmax
//===----------------------------------------------------------------------===//

void RMSNormOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                         MutableArrayRef<Value> operandCotangents) {
  if (!reachesValueOnly(*this, cotangents))
    return;
  operandCotangents[0] =
      RMSNormInputGradOp::create(builder, getLoc(), getInput(), getWeight(),
                                 getRstd(), cotangents[0], getPlusOne());
  operandCotangents[1] =
      RMSNormWeightGradOp::create(builder, getLoc(), getWeight().getType(),
                                  getInput(), getRstd(), cotangents[0]);
}

void LayerNormOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                           MutableArrayRef<Value> operandCotangents) {
  if (!reachesValueOnly(*this, cotangents))
    return;
  Location loc = getLoc();
  operandCotangents[0] =
      LayerNormInputGradOp::create(builder, loc, getInput(), getWeight(),
                                   getMean(), getRstd(), cotangents[0]);
  operandCotangents[1] = LayerNormWeightGradOp::create(
      builder, loc, getWeight().getType(), getInput(), getMean(), getRstd(),
      cotangents[0]);
  Value bias = sumOver(builder, loc, cotangents[0], leadingDims(cotangents[0]));
  if (bias.getType() != getBias().getType())
    bias = CastOp::create(builder, loc, getBias().getType(), bias);
  operandCotangents[2] = bias;
}

void SoftmaxOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                         MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] =
      SoftmaxGradOp::create(builder, getLoc(), getResult(), cotangents[0]);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

// A rotation's transpose is its inverse. The table is a buffer: no gradient.
void RotaryOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                        MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] = RotaryOp::create(
      builder, getLoc(), cotangents[0], getTable(), getPairs(), !getInverse());
}

void AttentionOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                           MutableArrayRef<Value> operandCotangents) {
  if (!reachesValueOnly(*this, cotangents))
    return;
  auto gradient = AttentionGradOp::create(
      builder, getLoc(), getQuery().getType(), getKey().getType(),
      getValue().getType(), getQuery(), getKey(), getValue(), getResult(),
      getLse(), cotangents[0], getStarts(), getScaleAttr(), getCausalAttr(),
      getWindowAttr(), getCapAttr());
  llvm::copy(gradient.getResults(), operandCotangents.begin());
}

//===----------------------------------------------------------------------===//
// Embedding and losses
//===----------------------------------------------------------------------===//

void EmbeddingOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                           MutableArrayRef<Value> operandCotangents) {
  operandCotangents[1] =
      EmbeddingGradOp::create(builder, getLoc(), getTable().getType(),
                              getIndices(), cotangents[0], getAbsentAttr());
}

void CrossEntropyOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                              MutableArrayRef<Value> operandCotangents) {
  if (!reachesValueOnly(*this, cotangents))
    return;
  operandCotangents[0] = CrossEntropyGradOp::create(
      builder, getLoc(), getLogits().getType(), getLogits(), getTargets(),
      getLse(), cotangents[0], getIgnoreIndexAttr());
}

void DivideByCountOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                               MutableArrayRef<Value> operandCotangents) {
  operandCotangents[0] =
      DivideByCountOp::create(builder, getLoc(), cotangents[0], getCount());
}

void MSELossOp::buildVjp(OpBuilder &builder, ValueRange cotangents,
                         MutableArrayRef<Value> operandCotangents) {
  Graph gradient{builder, getLoc(),
                 MSELossGradOp::create(builder, getLoc(), getPrediction(),
                                       getTarget(), cotangents[0],
                                       getCountAttr())};
  operandCotangents[0] = gradient;
  operandCotangents[1] = -gradient;
}
