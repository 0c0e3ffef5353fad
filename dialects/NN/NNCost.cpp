//===- NNCost.cpp - Floating point operations of nn ops -------------------===//
//
// Matrix products count two per multiply-add, attention all of its scores
// (also the ones that a causal mask hides, as the published figures for model
// FLOPs do). The others count one per element and elementary function: they
// are bound by memory, so getBytes is what matters for them.
//
// Tensors fit 2^56 bytes, so elements times a small count are safe; a product
// with another dimension is not, and is INT64_MAX where it does not fit.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/NNSupport.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::nn;

//===----------------------------------------------------------------------===//
// Matrix products and attention
//===----------------------------------------------------------------------===//

/// A product whose elements are sums of `contracted` multiply-adds.
static CheckedSize productFlops(Value result, int64_t contracted) {
  return CheckedSize(2 * elementsOf(result)) * contracted;
}

int64_t LinearOp::getFlops() {
  int64_t bias = getBias() ? elementsOf(getResult()) : 0;
  return (productFlops(getResult(), shapeOf(getWeight())[1]) + bias)
      .saturated();
}

int64_t LinearInputGradOp::getFlops() {
  return productFlops(getResult(), shapeOf(getWeight())[0]).saturated();
}

int64_t LinearWeightGradOp::getFlops() {
  return productFlops(getInput(), shapeOf(getResult())[0]).saturated();
}

int64_t MatmulOp::getFlops() {
  ArrayRef<int64_t> lhs = shapeOf(getLhs());
  int64_t contracted = lhs[lhs.size() - (getTransposeLhs() ? 2 : 1)];
  return productFlops(getResult(), contracted).saturated();
}

/// One product of all queries with all keys: batch, heads, q_len, head_dim
/// (the query's elements) times kv_len multiply-adds.
static CheckedSize scoreFlops(Value query, Value key) {
  return productFlops(query, shapeOf(key)[1]);
}

// q k^T and p v.
int64_t AttentionOp::getFlops() {
  return (scoreFlops(getQuery(), getKey()) * 2).saturated();
}

// The scores again, dp, dv, dq and dk.
int64_t AttentionGradOp::getFlops() {
  return (scoreFlops(getQuery(), getKey()) * 5).saturated();
}

//===----------------------------------------------------------------------===//
// A fixed count per element
//===----------------------------------------------------------------------===//

#define FLOPS_PER_ELEMENT(OP, VALUE, COUNT)                                    \
  int64_t OP::getFlops() { return (COUNT) * elementsOf(VALUE); }

FLOPS_PER_ELEMENT(AddOp, getResult(), 1)
FLOPS_PER_ELEMENT(SubOp, getResult(), 1)
FLOPS_PER_ELEMENT(MulOp, getResult(), 1)
FLOPS_PER_ELEMENT(DivOp, getResult(), 1)
FLOPS_PER_ELEMENT(NegOp, getResult(), 1)
FLOPS_PER_ELEMENT(ExpOp, getResult(), 1)
FLOPS_PER_ELEMENT(LogOp, getResult(), 1)
FLOPS_PER_ELEMENT(SqrtOp, getResult(), 1)
FLOPS_PER_ELEMENT(RsqrtOp, getResult(), 2)
FLOPS_PER_ELEMENT(TanhOp, getResult(), 1)
FLOPS_PER_ELEMENT(SigmoidOp, getResult(), 3)
FLOPS_PER_ELEMENT(ReluOp, getResult(), 1)
FLOPS_PER_ELEMENT(ReluGradOp, getResult(), 1)
FLOPS_PER_ELEMENT(SiluOp, getResult(), 4)
FLOPS_PER_ELEMENT(SiluGradOp, getResult(), 8)
FLOPS_PER_ELEMENT(GeluOp, getResult(), 6)
FLOPS_PER_ELEMENT(GeluGradOp, getResult(), 12)

FLOPS_PER_ELEMENT(SumOp, getInput(), 1)
FLOPS_PER_ELEMENT(MeanOp, getInput(), 1)
FLOPS_PER_ELEMENT(MaxOp, getInput(), 1)
FLOPS_PER_ELEMENT(MaxGradOp, getInput(), 3)

FLOPS_PER_ELEMENT(RMSNormOp, getInput(), 4)
FLOPS_PER_ELEMENT(RMSNormInputGradOp, getInput(), 7)
FLOPS_PER_ELEMENT(RMSNormWeightGradOp, getInput(), 3)
FLOPS_PER_ELEMENT(LayerNormOp, getInput(), 8)
FLOPS_PER_ELEMENT(LayerNormInputGradOp, getInput(), 10)
FLOPS_PER_ELEMENT(LayerNormWeightGradOp, getInput(), 4)
FLOPS_PER_ELEMENT(SoftmaxOp, getInput(), 5)
FLOPS_PER_ELEMENT(SoftmaxGradOp, getResult(), 4)
FLOPS_PER_ELEMENT(RotaryOp, getInput(), 3)

FLOPS_PER_ELEMENT(EmbeddingGradOp, getCotangent(), 1)
FLOPS_PER_ELEMENT(CrossEntropyOp, getLogits(), 4)
FLOPS_PER_ELEMENT(CrossEntropyGradOp, getLogits(), 4)
FLOPS_PER_ELEMENT(CountLabelsOp, getTargets(), 1)
FLOPS_PER_ELEMENT(DivideByCountOp, getResult(), 1)
FLOPS_PER_ELEMENT(MSELossOp, getPrediction(), 3)
FLOPS_PER_ELEMENT(MSELossGradOp, getPrediction(), 2)

// Moves and conversions do no arithmetic.
FLOPS_PER_ELEMENT(ConstantOp, getResult(), 0)
FLOPS_PER_ELEMENT(SeedOp, getLoss(), 0)
FLOPS_PER_ELEMENT(CastOp, getResult(), 0)
FLOPS_PER_ELEMENT(ReshapeOp, getResult(), 0)
FLOPS_PER_ELEMENT(TransposeOp, getResult(), 0)
FLOPS_PER_ELEMENT(SliceOp, getResult(), 0)
FLOPS_PER_ELEMENT(PadOp, getResult(), 0)
FLOPS_PER_ELEMENT(ConcatOp, getResult(), 0)
FLOPS_PER_ELEMENT(BroadcastOp, getResult(), 0)
FLOPS_PER_ELEMENT(EmbeddingOp, getResult(), 0)

#undef FLOPS_PER_ELEMENT

//===----------------------------------------------------------------------===//
// Several tensors
//===----------------------------------------------------------------------===//

static CheckedSize elementsOfAll(ValueRange values) {
  CheckedSize elements = 0;
  for (Value value : values)
    elements += elementsOf(value);
  return elements;
}

int64_t AbsMaxOp::getFlops() { return elementsOfAll(getInputs()).saturated(); }

// Scale, square, cut into two digits, two sums.
int64_t SumSquaresOp::getFlops() {
  return (elementsOfAll(getInputs()) * 6).saturated();
}

// A handful of scalars: no work worth planning for.
int64_t ClipCoefficientOp::getFlops() { return 0; }

//===----------------------------------------------------------------------===//
// Bytes that differ from operands and results
//===----------------------------------------------------------------------===//

// An alias in exec.
int64_t ReshapeOp::getBytes() { return 0; }

// Reads the rows it needs, not the table.
int64_t EmbeddingOp::getBytes() {
  return bytesOf(getIndices().getType()) + 2 * bytesOf(getType());
}
