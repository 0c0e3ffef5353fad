//===- Interpreter.cpp - What one op computes -----------------------------===//
#include "Formulas.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

using namespace mlir;

namespace fsdp::interpret {

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

DenseTensor DenseTensor::full(std::vector<int64_t> shape, double value) {
  int64_t size = ShapedType::getNumElements(shape);
  return {std::move(shape), std::vector<double>(size, value)};
}

std::vector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

/// Calls `visit(linear index, index per dimension)` in row-major order.
template <typename Visit>
static void forEachIndex(ArrayRef<int64_t> shape, Visit visit) {
  std::vector<int64_t> strides = stridesOf(shape), index(shape.size());
  int64_t size = ShapedType::getNumElements(shape);
  for (int64_t linear = 0; linear < size; ++linear) {
    for (size_t dim = 0; dim < shape.size(); ++dim)
      index[dim] = linear / strides[dim] % shape[dim];
    visit(linear, index);
  }
}

std::vector<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().vec();
}

std::string textOf(ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "a scalar" : text;
}

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

/// The nearest bf16, ties to even; NaN and infinity stay.
static float roundToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (std::isfinite(value))
    bits += 0x7fff + (bits >> 16 & 1);
  bits &= 0xffff0000;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

void roundTo(Type element, DenseTensor &tensor) {
  if (!element.isF32() && !element.isBF16())
    return;
  for (double &value : tensor.values) {
    float rounded = value;
    value = element.isBF16() ? roundToBf16(rounded) : rounded;
  }
}

//===----------------------------------------------------------------------===//
// Pointwise ops
//===----------------------------------------------------------------------===//

template <typename Formula>
static DenseTensor unary(const Tensors &in, Formula formula) {
  DenseTensor y = in[0];
  for (double &value : y.values)
    value = formula(value);
  return y;
}

template <typename Formula>
static DenseTensor binary(const Tensors &in, Formula formula) {
  DenseTensor y = in[0];
  for (int64_t i = 0; i < y.size(); ++i)
    y.values[i] = formula(in[0].values[i], in[1].values[i]);
  return y;
}

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

static const double kGeluScale = std::sqrt(2 / M_PI);

static double gelu(double x, bool exact) {
  if (exact)
    return x / 2 * (1 + std::erf(x / std::sqrt(2)));
  return x / 2 * (1 + std::tanh(kGeluScale * (x + 0.044715 * x * x * x)));
}

static double geluSlope(double x, bool exact) {
  if (exact)
    return (1 + std::erf(x / std::sqrt(2))) / 2 +
           x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
  double t = std::tanh(kGeluScale * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 +
         x / 2 * (1 - t * t) * kGeluScale * (1 + 3 * 0.044715 * x * x);
}

/// The pointwise ops; none for others.
static std::optional<DenseTensor> evaluatePointwise(Operation *op,
                                                    const Tensors &in) {
  using Result = std::optional<DenseTensor>;
#define UNARY(OP, FORMULA)                                                     \
  .Case<nn::OP>([&](nn::OP) -> Result {                                        \
    return unary(in, [](double x) -> double { return FORMULA; });              \
  })
#define BINARY(OP, FORMULA)                                                    \
  .Case<nn::OP>([&](nn::OP) -> Result {                                        \
    return binary(in, [](double a, double b) -> double { return FORMULA; });   \
  })
  return TypeSwitch<Operation *, Result>(op)
      // A cast is the rounding of its result.
      UNARY(CastOp, x) UNARY(NegOp, -x) UNARY(ExpOp, std::exp(x)) UNARY(
             LogOp, std::log(x)) UNARY(SqrtOp, std::sqrt(x))
          UNARY(RsqrtOp, 1 / std::sqrt(x)) UNARY(TanhOp, std::tanh(x)) UNARY(
              SigmoidOp, sigmoid(x)) UNARY(ReluOp, x < 0 ? 0 : x)
              UNARY(SiluOp, x * sigmoid(x)) BINARY(AddOp, a + b) BINARY(
                  SubOp, a - b) BINARY(MulOp, a * b) BINARY(DivOp, a / b)
                  BINARY(ReluGradOp, a > 0 ? b : 0) BINARY(
                      SiluGradOp, b * sigmoid(a) * (1 + a * (1 - sigmoid(a))))
                      .Case<nn::GeluOp>([&](nn::GeluOp gelu) -> Result {
                        bool exact = gelu.getForm() == nn::GeluForm::Exact;
                        return unary(in, [=](double x) {
                          return interpret::gelu(x, exact);
                        });
                      })
                      .Case<nn::GeluGradOp>([&](nn::GeluGradOp gelu) -> Result {
                        bool exact = gelu.getForm() == nn::GeluForm::Exact;
                        return binary(in, [=](double x, double dy) {
                          return dy * geluSlope(x, exact);
                        });
                      })
                      .Default(
                          [](Operation *) -> Result { return std::nullopt; });
#undef UNARY
#undef BINARY
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

static DenseTensor transpose(nn::TransposeOp op, const DenseTensor &x) {
  DenseTensor y = DenseTensor::full(shapeOf(op.getResult()));
  std::vector<int64_t> strides = stridesOf(x.shape);
  forEachIndex(y.shape, [&](int64_t linear, ArrayRef<int64_t> index) {
    int64_t source = 0;
    for (auto [dim, from] : llvm::enumerate(op.getPermutation()))
      source += index[dim] * strides[from];
    y.values[linear] = x.values[source];
  });
  return y;
}

/// Copies between `box` and the place at `offsets` in `whole`.
template <typename Copy>
static void forEachInBox(ArrayRef<int64_t> box, ArrayRef<int64_t> whole,
                         ArrayRef<int64_t> offsets, Copy copy) {
  std::vector<int64_t> strides = stridesOf(whole);
  forEachIndex(box, [&](int64_t linear, ArrayRef<int64_t> index) {
    int64_t place = 0;
    for (size_t dim = 0; dim < whole.size(); ++dim)
      place += (index[dim] + offsets[dim]) * strides[dim];
    copy(linear, place);
  });
}

static DenseTensor slice(nn::SliceOp op, const DenseTensor &x) {
  DenseTensor y = DenseTensor::full(shapeOf(op.getResult()));
  forEachInBox(
      y.shape, x.shape, op.getOffsets(),
      [&](int64_t box, int64_t whole) { y.values[box] = x.values[whole]; });
  return y;
}

static DenseTensor pad(nn::PadOp op, const DenseTensor &x) {
  DenseTensor y = DenseTensor::full(shapeOf(op.getResult()));
  forEachInBox(
      x.shape, y.shape, op.getOffsets(),
      [&](int64_t box, int64_t whole) { y.values[whole] = x.values[box]; });
  return y;
}

static DenseTensor concat(nn::ConcatOp op, const Tensors &in) {
  DenseTensor y = DenseTensor::full(shapeOf(op.getResult()));
  std::vector<int64_t> offsets(y.rank());
  for (const DenseTensor &x : in) {
    forEachInBox(x.shape, y.shape, offsets, [&](int64_t box, int64_t whole) {
      y.values[whole] = x.values[box];
    });
    offsets[op.getDim()] += x.shape[op.getDim()];
  }
  return y;
}

static DenseTensor broadcast(nn::BroadcastOp op, const DenseTensor &x) {
  DenseTensor y = DenseTensor::full(shapeOf(op.getResult()));
  std::vector<int64_t> strides = stridesOf(x.shape);
  forEachIndex(y.shape, [&](int64_t linear, ArrayRef<int64_t> index) {
    int64_t source = 0;
    for (auto [dim, at] : llvm::enumerate(op.getDims()))
      source += x.shape[dim] == 1 ? 0 : index[at] * strides[dim];
    y.values[linear] = x.values[source];
  });
  return y;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Calls `visit(element of the operand, element of the reduced tensor)`.
template <typename Visit>
static void forEachReduced(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims,
                           Visit visit) {
  forEachIndex(shape, [&](int64_t linear, ArrayRef<int64_t> index) {
    int64_t target = 0;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
        target = target * shape[dim] + index[dim];
    visit(linear, target);
  });
}

template <typename Combine>
static DenseTensor reduce(Operation *op, const DenseTensor &x,
                          ArrayRef<int64_t> dims, double start,
                          Combine combine) {
  DenseTensor y = DenseTensor::full(shapeOf(op->getResult(0)), start);
  forEachReduced(x.shape, dims, [&](int64_t from, int64_t to) {
    y.values[to] = combine(y.values[to], x.values[from]);
  });
  return y;
}

static DenseTensor sum(Operation *op, const DenseTensor &x,
                       ArrayRef<int64_t> dims) {
  return reduce(op, x, dims, 0, [](double a, double b) { return a + b; });
}

static DenseTensor mean(nn::MeanOp op, const DenseTensor &x) {
  DenseTensor y = sum(op, x, op.getDims());
  for (double &value : y.values)
    value /= op.getCount();
  return y;
}

static DenseTensor max(nn::MaxOp op, const DenseTensor &x) {
  return reduce(op, x, op.getDims(), -std::numeric_limits<double>::infinity(),
                [](double a, double b) { return std::max(a, b); });
}

// Operands: x, max, dy.
static DenseTensor maxGrad(nn::MaxGradOp op, const Tensors &in) {
  const DenseTensor &x = in[0], &max = in[1], &dy = in[2];
  DenseTensor count = DenseTensor::full(max.shape),
              dx = DenseTensor::full(x.shape);
  forEachReduced(x.shape, op.getDims(), [&](int64_t from, int64_t to) {
    count.values[to] += x.values[from] == max.values[to];
  });
  forEachReduced(x.shape, op.getDims(), [&](int64_t from, int64_t to) {
    if (x.values[from] == max.values[to])
      dx.values[from] = dy.values[to] / count.values[to];
  });
  return dx;
}

/// Constants, moves and reductions; none for others.
static std::optional<DenseTensor> evaluateShape(Operation *op,
                                                const Tensors &in) {
  using Result = std::optional<DenseTensor>;
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](nn::ConstantOp op) -> Result {
        return DenseTensor::full(shapeOf(op.getResult()), op.getSplat());
      })
      .Case([&](nn::SeedOp) -> Result { return DenseTensor::scalar(1); })
      .Case([&](nn::ReshapeOp op) -> Result {
        return DenseTensor{shapeOf(op.getResult()), in[0].values};
      })
      .Case([&](nn::TransposeOp op) -> Result { return transpose(op, in[0]); })
      .Case([&](nn::SliceOp op) -> Result { return slice(op, in[0]); })
      .Case([&](nn::PadOp op) -> Result { return pad(op, in[0]); })
      .Case([&](nn::ConcatOp op) -> Result { return concat(op, in); })
      .Case([&](nn::BroadcastOp op) -> Result { return broadcast(op, in[0]); })
      .Case(
          [&](nn::SumOp op) -> Result { return sum(op, in[0], op.getDims()); })
      .Case([&](nn::MeanOp op) -> Result { return mean(op, in[0]); })
      .Case([&](nn::MaxOp op) -> Result { return max(op, in[0]); })
      .Case([&](nn::MaxGradOp op) -> Result { return maxGrad(op, in); })
      .Default([](Operation *) -> Result { return std::nullopt; });
}

//===----------------------------------------------------------------------===//
// All ops
//===----------------------------------------------------------------------===//

void fail(const std::string &message) { throw std::runtime_error(message); }

/// Matmuls, norms, attention and embeddings.
static std::optional<Tensors> evaluateLayer(Operation *op, const Tensors &in) {
  auto adjacent = [](auto op) {
    return op.getPairs() == nn::RotaryPairs::Adjacent;
  };
  using Result = std::optional<Tensors>;
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](nn::LinearOp) -> Tensors { return {linear(in)}; })
      .Case([&](nn::LinearInputGradOp) -> Tensors {
        return {linearInputGrad(in)};
      })
      .Case([&](nn::LinearWeightGradOp) -> Tensors {
        return {linearWeightGrad(in)};
      })
      .Case([&](nn::MatmulOp op) -> Tensors {
        return {
            matmul(in[0], in[1], op.getTransposeLhs(), op.getTransposeRhs())};
      })
      .Case([&](nn::RMSNormOp op) {
        return rmsNorm(in, op.getEps().convertToDouble(), op.getPlusOne());
      })
      .Case([&](nn::RMSNormInputGradOp op) -> Tensors {
        return {rmsNormInputGrad(in, op.getPlusOne())};
      })
      .Case([&](nn::RMSNormWeightGradOp) -> Tensors {
        return {rmsNormWeightGrad(in)};
      })
      .Case([&](nn::LayerNormOp op) {
        return layerNorm(in, op.getEps().convertToDouble());
      })
      .Case([&](nn::LayerNormInputGradOp) -> Tensors {
        return {layerNormInputGrad(in)};
      })
      .Case([&](nn::LayerNormWeightGradOp) -> Tensors {
        return {layerNormWeightGrad(in)};
      })
      .Case([&](nn::SoftmaxOp) -> Tensors { return {softmax(in[0])}; })
      .Case([&](nn::SoftmaxGradOp) -> Tensors { return {softmaxGrad(in)}; })
      .Case([&](nn::RotaryOp op) -> Tensors {
        return {rotary(in, adjacent(op), op.getInverse())};
      })
      .Case([&](nn::SplitHeadsOp op) {
        return splitHeads(in, shapeOf(op.getQuery())[2], adjacent(op));
      })
      .Case([&](nn::JoinHeadsOp op) -> Tensors {
        return {joinHeads(in, adjacent(op))};
      })
      .Case([&](nn::AttentionOp op) {
        return attention(in, op.getScale().convertToDouble(), op.getView());
      })
      .Case([&](nn::AttentionGradOp op) {
        return attentionGrad(in, op.getScale().convertToDouble(), op.getView());
      })
      .Case([&](nn::EmbeddingOp op) -> Tensors {
        return {embedding(in, op.getAbsent())};
      })
      .Case([&](nn::EmbeddingGradOp op) -> Tensors {
        return {embeddingGrad(in, shapeOf(op.getResult())[0], op.getAbsent())};
      })
      .Default([](Operation *) -> Result { return std::nullopt; });
}

/// Losses, the gradient norm, and values that are handed on.
static std::optional<Tensors> evaluateLoss(Operation *op, const Tensors &in) {
  using Result = std::optional<Tensors>;
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](nn::CrossEntropyOp op) {
        return crossEntropy(in, op.getIgnoreIndex());
      })
      .Case([&](nn::CrossEntropyGradOp op) -> Tensors {
        return {crossEntropyGrad(in, op.getIgnoreIndex())};
      })
      .Case([&](nn::CountLabelsOp op) -> Tensors {
        return {
            countLabels(in[0], op.getIgnoreIndex(), shapeOf(op.getResult()))};
      })
      .Case([&](nn::DivideByCountOp) -> Tensors { return {divideByCount(in)}; })
      .Case([&](nn::MSELossOp op) -> Tensors {
        return {mseLoss(in, op.getCount())};
      })
      .Case([&](nn::MSELossGradOp op) -> Tensors {
        return {mseLossGrad(in, op.getCount())};
      })
      .Case([&](nn::AbsMaxOp) -> Tensors { return {absMax(in)}; })
      .Case([&](nn::SumSquaresOp) -> Tensors { return {sumSquares(in)}; })
      .Case([&](nn::ClipCoefficientOp op) {
        return clipCoefficient(in, op.getMaxNorm().convertToDouble());
      })
      .Case([&](nn::RecomputeFromOp) { return in; })
      .Default([](Operation *) -> Result { return std::nullopt; });
}

std::vector<DenseTensor> evaluate(Operation *op,
                                  const std::vector<DenseTensor> &operands,
                                  Rounding rounding) {
  Tensors results;
  if (std::optional<DenseTensor> result = evaluatePointwise(op, operands))
    results = {std::move(*result)};
  else if (std::optional<DenseTensor> result = evaluateShape(op, operands))
    results = {std::move(*result)};
  else if (std::optional<Tensors> all = evaluateLayer(op, operands))
    results = std::move(*all);
  else if (std::optional<Tensors> all = evaluateLoss(op, operands))
    results = std::move(*all);
  else
    fail("the interpreter knows no '" + op->getName().getStringRef().str() +
         "'");
  if (rounding == Rounding::Declared)
    for (auto [result, tensor] : llvm::zip_equal(op->getResults(), results))
      roundTo(cast<RankedTensorType>(result.getType()).getElementType(),
              tensor);
  return results;
}

//===----------------------------------------------------------------------===//
// Initialisers
//===----------------------------------------------------------------------===//

static DenseTensor rotaryTable(RankedTensorType type,
                               nn::RotaryTableAttr table) {
  DenseTensor tensor = DenseTensor::full(type.getShape().vec());
  int64_t positions = type.getDimSize(0), pairs = type.getDimSize(1);
  for (int64_t position = 0; position < positions; ++position)
    for (int64_t pair = 0; pair < pairs; ++pair) {
      double angle =
          (position + table.getStart()) * table.getFrequencies()[pair];
      double *values = &tensor.values[(position * pairs + pair) * 2];
      values[0] = table.getScale() * std::cos(angle);
      values[1] = table.getScale() * std::sin(angle);
    }
  return tensor;
}

DenseTensor initialValue(RankedTensorType type, Attribute init) {
  if (isa<nn::ZerosAttr>(init))
    return DenseTensor::full(type.getShape().vec(), 0);
  if (isa<nn::OnesAttr>(init))
    return DenseTensor::full(type.getShape().vec(), 1);
  if (auto table = dyn_cast<nn::RotaryTableAttr>(init))
    return rotaryTable(type, table);
  fail("a random initialiser needs its tensor among the inputs");
}

} // namespace fsdp::interpret
