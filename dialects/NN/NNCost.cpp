//===- NNCost.cpp - Floating point operations of nn ops -------------------===//
//
// Matrix products count two per multiply-add, attention all of its scores
// (also the ones that a mask or a window hides, as the published figures for
// model FLOPs do). The others count one per element and elementary function,
// and say so in their records: they are bound by memory, so getBytes is what
// matters for them. What attention takes is another count, getVisibleFlops.
//
// Tensors fit 2^56 bytes, so elements times a small count are safe; a product
// with another dimension is not, and is INT64_MAX where it does not fit.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/Boxes.h"
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

int64_t AccumulateProductOp::getFlops() {
  return productFlops(getInput(), shapeOf(getCotangent()).back()).saturated();
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

int64_t AttentionGradOp::getModelFlops() {
  return (scoreFlops(getQuery(), getKey()) * 4).saturated();
}

/// Of all scores the share that is visible, as the area in the square of
/// queries and keys: under the diagonal a half of it, and of n x n scores with
/// a window of w n w - w^2 / 2. What starts of documents hide is not known.
template <typename OpT> static int64_t visibleFlops(OpT op) {
  int64_t all = op.getFlops(), keys = shapeOf(op.getKey())[1];
  AttentionView view = op.getView();
  if (!view.causal)
    return all;
  if (view.window == 0 || view.window >= keys)
    return all / 2;
  // The window is smaller, so this is at most `all`.
  return all / keys / keys * view.window * (2 * keys - view.window) / 2;
}

int64_t AttentionOp::getVisibleFlops() { return visibleFlops(*this); }
int64_t AttentionGradOp::getVisibleFlops() { return visibleFlops(*this); }

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

// Scale, square, split into two digits, two sums.
int64_t SumSquaresOp::getFlops() {
  return (elementsOfAll(getInputs()) * 6).saturated();
}

// Bound by memory, and no part of what a model computes.
int64_t AccumulateOp::getFlops() { return 0; }
int64_t AdamWOp::getFlops() { return 0; }

//===----------------------------------------------------------------------===//
// Bytes that differ from operands and results
//===----------------------------------------------------------------------===//

// An alias in exec.
int64_t ReshapeOp::getBytes() { return 0; }

// So is a box whose elements lie one after another.
int64_t SliceOp::getBytes() {
  return contiguousOffset(*this) ? 0 : bytesOfOperandsAndResults(*this);
}

// Parts that follow each other are produced where they end, but those that lie
// somewhere already. Which of these lie side by side is the module's to say
// (AdjacentReads).
int64_t ConcatOp::getBytes() {
  if (!hasContiguousParts(*this))
    return bytesOfOperandsAndResults(*this);
  CheckedSize bytes = 0;
  for (Value part : getInputs()) {
    Operation *def = part.getDefiningOp();
    if (!def || isa<ReadOp>(def) || aliasesOperands(def))
      bytes += CheckedSize(2) * bytesOf(part.getType());
  }
  return bytes.saturated();
}

// Reads the rows it needs, not the table.
int64_t EmbeddingOp::getBytes() {
  return bytesOf(getIndices().getType()) + 2 * bytesOf(getType());
}

// The sum is read and written in f32.
int64_t AccumulateOp::getBytes() {
  CheckedSize bytes = elementsOf(getValue()) * 2 * sizeof(float);
  return (bytes + bytesOf(getValue().getType())).saturated();
}

int64_t AccumulateProductOp::getBytes() {
  CheckedSize bytes = CheckedSize(2) * bytesOf(getProductType());
  return (bytes + bytesOfOperandsAndResults(*this)).saturated();
}

// Beside the gradient, a parameter and two moments are read and written in f32,
// and a copy in bf16 is written.
int64_t AdamWOp::getBytes() {
  CheckedSize bytes = elementsOfAll(getGradients()) * 6 * sizeof(float);
  for (Value gradient : getGradients())
    bytes += bytesOf(gradient.getType());
  if (!getCopyNames().empty())
    bytes += elementsOfAll(getGradients()) * 2;
  return bytes.saturated();
}
