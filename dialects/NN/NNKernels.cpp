//===- NNKernels.cpp - How nn ops become fused kernels --------------------===//
//
// Formulas are written over `Scalar`, whose operators build arith and math
// ops at the kernel builder's insertion point. Element functions may run
// after `lowerToKernel` has returned, so they capture by value.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/NNSupport.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>
#include <optional>

using namespace mlir;
using namespace fsdp::nn;

//===----------------------------------------------------------------------===//
// Scalar formulas
//===----------------------------------------------------------------------===//

namespace {

/// A scalar of a kernel under construction: f32, or an integer as it is read.
struct Scalar {
  KernelBuilder *kernel;
  Value value;

  Scalar with(Value other) const { return {kernel, other}; }
  Scalar like(double constant) const {
    return with(kernel->constant(constant));
  }
  operator Value() const { return value; }
};

template <typename OpTy, typename... Args>
Scalar build(Scalar at, Args... args) {
  return at.with(OpTy::create(at.kernel->builder(), at.kernel->loc(), args...));
}

Scalar operator+(Scalar a, Scalar b) {
  return build<arith::AddFOp>(a, a.value, b.value);
}
Scalar operator-(Scalar a, Scalar b) {
  return build<arith::SubFOp>(a, a.value, b.value);
}
Scalar operator*(Scalar a, Scalar b) {
  return build<arith::MulFOp>(a, a.value, b.value);
}
Scalar operator/(Scalar a, Scalar b) {
  return build<arith::DivFOp>(a, a.value, b.value);
}
Scalar operator-(Scalar a) { return build<arith::NegFOp>(a, a.value); }
Scalar operator+(double a, Scalar b) { return b.like(a) + b; }
Scalar operator-(double a, Scalar b) { return b.like(a) - b; }
Scalar operator*(double a, Scalar b) { return b.like(a) * b; }
Scalar operator/(double a, Scalar b) { return b.like(a) / b; }
Scalar operator+(Scalar a, double b) { return a + a.like(b); }
Scalar operator/(Scalar a, double b) { return a / a.like(b); }

Scalar exp(Scalar x) { return build<math::ExpOp>(x, x.value); }
Scalar log(Scalar x) { return build<math::LogOp>(x, x.value); }
Scalar sqrt(Scalar x) { return build<math::SqrtOp>(x, x.value); }
Scalar tanh(Scalar x) { return build<math::TanhOp>(x, x.value); }
Scalar erf(Scalar x) { return build<math::ErfOp>(x, x.value); }
// Division and square root are rounded correctly everywhere, an approximate
// reciprocal square root is not.
Scalar rsqrt(Scalar x) { return 1.0 / sqrt(x); }

/// `integer` in the type of `like`.
Scalar toFloat(Scalar integer, Scalar like) {
  return build<arith::SIToFPOp>(integer, like.value.getType(), integer.value);
}

/// `a predicate b ? then : otherwise`.
Scalar select(arith::CmpFPredicate predicate, Scalar a, Scalar b, Scalar then,
              Scalar otherwise) {
  Scalar condition = build<arith::CmpFOp>(a, predicate, a.value, b.value);
  return build<arith::SelectOp>(a, condition.value, then.value,
                                otherwise.value);
}

Scalar sigmoid(Scalar x) { return 1.0 / (1.0 + exp(-x)); }

/// Reads of one kernel.
Scalar element(KernelBuilder &kernel, Value tensor) {
  return {&kernel, kernel.read(tensor, KernelAccess::Element)};
}
Scalar row(KernelBuilder &kernel, Value tensor) {
  return {&kernel, kernel.read(tensor, KernelAccess::Row)};
}
Scalar column(KernelBuilder &kernel, Value tensor) {
  return {&kernel, kernel.read(tensor, KernelAccess::Column)};
}
Scalar single(KernelBuilder &kernel, Value tensor) {
  return {&kernel, kernel.read(tensor, KernelAccess::Scalar)};
}

/// Sum over the columns of the current row.
Scalar sumOfRow(KernelBuilder &kernel, KernelBuilder::Scalar term) {
  return {&kernel, kernel.reduceColumns(ReduceKind::Sum, std::move(term))};
}

} // namespace

//===----------------------------------------------------------------------===//
// Iteration spaces
//===----------------------------------------------------------------------===//

/// Rows of the last dimension; one element for rank 0.
KernelSpace fsdp::nn::rowsOf(Value tensor) {
  ArrayRef<int64_t> shape = shapeOf(tensor);
  if (shape.empty())
    return {1, 1};
  return {product(shape.drop_back()), shape.back()};
}

/// The same rows, combined into one value per column.
KernelSpace fsdp::nn::columnsOf(Value tensor) {
  KernelSpace space = rowsOf(tensor);
  space.columnReduction = true;
  return space;
}

/// A reduction of `input` over `dims`.
KernelSpace fsdp::nn::reductionSpace(Value input, ArrayRef<int64_t> dims) {
  int64_t reduced = 1;
  for (int64_t dim : dims)
    reduced *= shapeOf(input)[dim];
  int64_t kept = elementsOf(input) / std::max<int64_t>(reduced, 1);
  switch (positionOf(shapeOf(input), dims)) {
  case DimsPosition::Mixed:
    return KernelSpace::notExpressible();
  case DimsPosition::Leading:
    return {reduced, kept, /*columnReduction=*/true};
  case DimsPosition::None:
  case DimsPosition::Trailing:
  case DimsPosition::All:
    return {kept, reduced};
  }
  llvm_unreachable("unknown position");
}

// Columns would need two passes over the rows, one to count the maxima;
// nn.max's reverse rule transposes them.
KernelSpace MaxGradOp::getKernelSpace() {
  KernelSpace space = reductionSpace(getInput(), getDims());
  return space.columnReduction ? KernelSpace::notExpressible() : space;
}

/// How nn.broadcast reads its operand, and the space where it can.
static std::pair<KernelSpace, KernelAccess> broadcastForm(BroadcastOp op) {
  ArrayRef<int64_t> shape = shapeOf(op.getResult());
  int64_t carried = elementsOf(op.getInput());
  int64_t repeated = elementsOf(op.getResult()) / std::max<int64_t>(carried, 1);
  switch (positionOf(shape, repeatedDims(op))) {
  case DimsPosition::None:
    return {rowsOf(op.getResult()), KernelAccess::Element};
  case DimsPosition::All:
    return {rowsOf(op.getResult()), KernelAccess::Scalar};
  case DimsPosition::Leading:
    return {{repeated, carried}, KernelAccess::Column};
  case DimsPosition::Trailing:
    return {{carried, repeated}, KernelAccess::Row};
  case DimsPosition::Mixed:
    return {KernelSpace::notExpressible(), KernelAccess::Element};
  }
  llvm_unreachable("unknown position");
}

KernelSpace BroadcastOp::getKernelSpace() { return broadcastForm(*this).first; }

//===----------------------------------------------------------------------===//
// Pointwise ops
//===----------------------------------------------------------------------===//

/// `result[i] = formula(operands[i]...)`.
template <typename OpTy, typename Formula>
static void lowerUnary(OpTy op, KernelBuilder &kernel, Formula formula) {
  kernel.define(op.getResult(), [op, formula, &kernel]() mutable -> Value {
    return formula(element(kernel, op->getOperand(0)));
  });
}
template <typename OpTy, typename Formula>
static void lowerBinary(OpTy op, KernelBuilder &kernel, Formula formula) {
  kernel.define(op.getResult(), [op, formula, &kernel]() mutable -> Value {
    Scalar lhs = element(kernel, op->getOperand(0));
    return formula(lhs, element(kernel, op->getOperand(1)));
  });
}

void ConstantOp::lowerToKernel(KernelBuilder &kernel) {
  double splat = getSplat();
  Type element = typeOf(getResult()).getElementType();
  kernel.define(getResult(), [splat, element, &kernel]() -> Value {
    if (isa<FloatType>(element))
      return kernel.constant(splat);
    return arith::ConstantIntOp::create(kernel.builder(), kernel.loc(), element,
                                        static_cast<int64_t>(splat));
  });
}

// The kernel rounds to the declared type of the result.
void CastOp::lowerToKernel(KernelBuilder &kernel) {
  lowerUnary(*this, kernel, [](Scalar x) { return x; });
}

void AddOp::lowerToKernel(KernelBuilder &kernel) {
  lowerBinary(*this, kernel, [](Scalar a, Scalar b) { return a + b; });
}
void SubOp::lowerToKernel(KernelBuilder &kernel) {
  lowerBinary(*this, kernel, [](Scalar a, Scalar b) { return a - b; });
}
void MulOp::lowerToKernel(KernelBuilder &kernel) {
  lowerBinary(*this, kernel, [](Scalar a, Scalar b) { return a * b; });
}
void DivOp::lowerToKernel(KernelBuilder &kernel) {
  lowerBinary(*this, kernel, [](Scalar a, Scalar b) { return a / b; });
}

void NegOp::lowerToKernel(KernelBuilder &kernel) {
  lowerUnary(*this, kernel, [](Scalar x) { return -x; });
}
void ExpOp::lowerToKernel(KernelBuilder &kernel) {
  lowerUnary(*this, kernel, [](Scalar x) { return exp(x); });
}
void LogOp::lowerToKernel(KernelBuilder &kernel) {
  lowerUnary(*this, kernel, [](Scalar x) { return log(x); });
}
void SqrtOp::lowerToKernel(KernelBuilder &kernel) {
  lowerUnary(*this, kernel, [](Scalar x) { return sqrt(x); });
}
void RsqrtOp::lowerToKernel(KernelBuilder &kernel) {
  lowerUnary(*this, kernel, [](Scalar x) { return rsqrt(x); });
}
void TanhOp::lowerToKernel(KernelBuilder &kernel) {
  lowerUnary(*this, kernel, [](Scalar x) { return tanh(x); });
}
void SigmoidOp::lowerToKernel(KernelBuilder &kernel) {
  lowerUnary(*this, kernel, [](Scalar x) { return sigmoid(x); });
}

// A NaN stays one: it is not below 0.
void ReluOp::lowerToKernel(KernelBuilder &kernel) {
  lowerUnary(*this, kernel, [](Scalar x) {
    Scalar zero = x.like(0);
    return select(arith::CmpFPredicate::OLT, x, zero, zero, x);
  });
}
void ReluGradOp::lowerToKernel(KernelBuilder &kernel) {
  lowerBinary(*this, kernel, [](Scalar x, Scalar dy) {
    Scalar zero = x.like(0);
    return select(arith::CmpFPredicate::OGT, x, zero, dy, zero);
  });
}

void SiluOp::lowerToKernel(KernelBuilder &kernel) {
  lowerUnary(*this, kernel, [](Scalar x) { return x / (1.0 + exp(-x)); });
}
void SiluGradOp::lowerToKernel(KernelBuilder &kernel) {
  lowerBinary(*this, kernel, [](Scalar x, Scalar dy) {
    Scalar s = sigmoid(x);
    return dy * s * (1.0 + x * (1.0 - s));
  });
}

/// The argument of the tanh form, sqrt(2/pi) (x + 0.044715 x^3).
static constexpr double kGeluScale = 0.79788456080286535588;
static constexpr double kGeluCubic = 0.044715;
static Scalar geluTanh(Scalar x) {
  return tanh(kGeluScale * (x + kGeluCubic * (x * x * x)));
}
/// Phi(x), the distribution function of the standard normal.
static Scalar normalCdf(Scalar x) { return 0.5 * (1.0 + erf(M_SQRT1_2 * x)); }

void GeluOp::lowerToKernel(KernelBuilder &kernel) {
  bool exact = getForm() == GeluForm::Exact;
  lowerUnary(*this, kernel, [exact](Scalar x) {
    return exact ? x * normalCdf(x) : 0.5 * x * (1.0 + geluTanh(x));
  });
}

void GeluGradOp::lowerToKernel(KernelBuilder &kernel) {
  bool exact = getForm() == GeluForm::Exact;
  lowerBinary(*this, kernel, [exact](Scalar x, Scalar dy) {
    if (exact) {
      // Phi(x) + x phi(x), with phi(x) = exp(-x^2 / 2) / sqrt(2 pi).
      constexpr double scale = 0.39894228040143267794;
      return dy * (normalCdf(x) + x * (scale * exp(-0.5 * (x * x))));
    }
    Scalar t = geluTanh(x);
    Scalar slope = kGeluScale * (1.0 + 3 * kGeluCubic * (x * x));
    return dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope);
  });
}

void BroadcastOp::lowerToKernel(KernelBuilder &kernel) {
  KernelAccess access = broadcastForm(*this).second;
  Value input = getInput();
  kernel.define(getResult(), [input, access, &kernel]() -> Value {
    return kernel.read(input, access);
  });
}

//===----------------------------------------------------------------------===//
// Reductions and losses
//===----------------------------------------------------------------------===//

static void lowerReduction(Operation *op, KernelSpace space,
                           KernelBuilder &kernel, ReduceKind kind,
                           std::optional<double> divisor = std::nullopt) {
  Value input = op->getOperand(0), result = op->getResult(0);
  if (!space.columnReduction) {
    Scalar total{&kernel, kernel.reduceColumns(kind, [input, &kernel] {
                   return element(kernel, input).value;
                 })};
    kernel.defineRow(result, divisor ? total / *divisor : total);
    return;
  }
  // A kernel over columns ends with its sum, so a mean divides before it.
  kernel.defineColumns(result, kind, [input, divisor, &kernel]() -> Value {
    Scalar x = element(kernel, input);
    return divisor ? x / *divisor : x;
  });
}

void SumOp::lowerToKernel(KernelBuilder &kernel) {
  lowerReduction(*this, getKernelSpace(), kernel, ReduceKind::Sum);
}
void MeanOp::lowerToKernel(KernelBuilder &kernel) {
  lowerReduction(*this, getKernelSpace(), kernel, ReduceKind::Sum, getCount());
}
void MaxOp::lowerToKernel(KernelBuilder &kernel) {
  lowerReduction(*this, getKernelSpace(), kernel, ReduceKind::Max);
}

void MaxGradOp::lowerToKernel(KernelBuilder &kernel) {
  Value input = getInput(), max = getMax(), dy = getCotangent();
  auto whereMax = [input, max, &kernel](auto share) -> Scalar {
    Scalar x = element(kernel, input);
    return select(arith::CmpFPredicate::OEQ, x, row(kernel, max), share(x),
                  x.like(0));
  };
  Scalar count = sumOfRow(kernel, [whereMax]() -> Value {
    return whereMax([](Scalar x) { return x.like(1); });
  });
  Scalar share = row(kernel, dy) / count;
  kernel.define(getResult(), [whereMax, share]() -> Value {
    return whereMax([share](Scalar) { return share; });
  });
}

void DivideByCountOp::lowerToKernel(KernelBuilder &kernel) {
  Value sum = getSum(), count = getCount();
  kernel.define(getResult(), [sum, count, &kernel]() -> Value {
    Scalar total = element(kernel, sum);
    Scalar divisor = toFloat(element(kernel, count), total);
    Scalar zero = total.like(0);
    return select(arith::CmpFPredicate::OEQ, divisor, zero, zero,
                  total / divisor);
  });
}

void MSELossOp::lowerToKernel(KernelBuilder &kernel) {
  Value prediction = getPrediction(), target = getTarget();
  Scalar total = sumOfRow(kernel, [prediction, target, &kernel]() -> Value {
    Scalar difference = element(kernel, prediction) - element(kernel, target);
    return difference * difference;
  });
  kernel.defineRow(getLoss(), total / double(getCount()));
}

void MSELossGradOp::lowerToKernel(KernelBuilder &kernel) {
  Value prediction = getPrediction(), target = getTarget();
  Value dloss = getCotangent();
  double scale = 2.0 / double(getCount());
  kernel.define(
      getResult(), [prediction, target, dloss, scale, &kernel]() -> Value {
        Scalar factor = scale * single(kernel, dloss);
        return (element(kernel, prediction) - element(kernel, target)) * factor;
      });
}

//===----------------------------------------------------------------------===//
// Norms and softmax
//===----------------------------------------------------------------------===//

/// What the norm `op` multiplies with.
template <typename Norm>
static Scalar factorOf(KernelBuilder &kernel, Norm op) {
  Scalar weight = column(kernel, op.getWeight());
  return op.getPlusOne() ? weight + 1 : weight;
}

void RMSNormOp::lowerToKernel(KernelBuilder &kernel) {
  Value input = getInput();
  Scalar squares = sumOfRow(kernel, [input, &kernel]() -> Value {
    Scalar x = element(kernel, input);
    return x * x;
  });
  Scalar rstd =
      rsqrt(squares / shapeOf(input).back() + getEps().convertToDouble());
  kernel.defineRow(getRstd(), rstd);
  kernel.define(getResult(), [op = *this, input, rstd, &kernel]() -> Value {
    return element(kernel, input) * rstd * factorOf(kernel, op);
  });
}

// rstd (w dy - x rstd^2 mean(w dy x)).
void RMSNormInputGradOp::lowerToKernel(KernelBuilder &kernel) {
  Value input = getInput(), dy = getCotangent();
  auto op = *this;
  Scalar products = sumOfRow(kernel, [op, input, dy, &kernel]() -> Value {
    return factorOf(kernel, op) * element(kernel, dy) * element(kernel, input);
  });
  Scalar rstd = row(kernel, getRstd());
  Scalar correction = rstd * rstd * (products / shapeOf(input).back());
  kernel.define(getResult(),
                [op, input, dy, rstd, correction, &kernel]() -> Value {
                  return rstd * (factorOf(kernel, op) * element(kernel, dy) -
                                 element(kernel, input) * correction);
                });
}

void RMSNormWeightGradOp::lowerToKernel(KernelBuilder &kernel) {
  Value input = getInput(), rstd = getRstd(), dy = getCotangent();
  kernel.defineColumns(getResult(), ReduceKind::Sum,
                       [input, rstd, dy, &kernel]() -> Value {
                         return element(kernel, dy) *
                                (element(kernel, input) * row(kernel, rstd));
                       });
}

void LayerNormOp::lowerToKernel(KernelBuilder &kernel) {
  Value input = getInput(), weight = getWeight(), bias = getBias();
  double cols = shapeOf(input).back();
  Scalar total = sumOfRow(
      kernel, [input, &kernel]() -> Value { return element(kernel, input); });
  Scalar mean = total / cols;
  // Centred values: the difference of mean square and squared mean cancels.
  Scalar squares = sumOfRow(kernel, [input, mean, &kernel]() -> Value {
    Scalar centred = element(kernel, input) - mean;
    return centred * centred;
  });
  Scalar rstd = rsqrt(squares / cols + getEps().convertToDouble());
  kernel.defineRow(getMean(), mean);
  kernel.defineRow(getRstd(), rstd);
  kernel.define(getResult(),
                [input, weight, bias, mean, rstd, &kernel]() -> Value {
                  Scalar normal = (element(kernel, input) - mean) * rstd;
                  return normal * column(kernel, weight) + column(kernel, bias);
                });
}

// With n = (x - mean) rstd and g = w dy: rstd (g - mean(g) - n mean(g n)).
void LayerNormInputGradOp::lowerToKernel(KernelBuilder &kernel) {
  Value input = getInput(), weight = getWeight(), dy = getCotangent();
  double cols = shapeOf(input).back();
  Scalar mean = row(kernel, getMean()), rstd = row(kernel, getRstd());
  auto normal = [input, mean, rstd, &kernel] {
    return (element(kernel, input) - mean) * rstd;
  };
  auto scaled = [weight, dy, &kernel] {
    return column(kernel, weight) * element(kernel, dy);
  };
  Scalar meanScaled =
      sumOfRow(kernel, [scaled]() -> Value { return scaled(); }) / cols;
  Scalar meanProduct =
      sumOfRow(kernel,
               [scaled, normal]() -> Value { return scaled() * normal(); }) /
      cols;
  kernel.define(
      getResult(), [normal, scaled, rstd, meanScaled, meanProduct]() -> Value {
        return rstd * (scaled() - meanScaled - normal() * meanProduct);
      });
}

void LayerNormWeightGradOp::lowerToKernel(KernelBuilder &kernel) {
  Value input = getInput(), mean = getMean(), rstd = getRstd();
  Value dy = getCotangent();
  kernel.defineColumns(
      getResult(), ReduceKind::Sum,
      [input, mean, rstd, dy, &kernel]() -> Value {
        Scalar centred = element(kernel, input) - row(kernel, mean);
        return element(kernel, dy) * (centred * row(kernel, rstd));
      });
}

void SoftmaxOp::lowerToKernel(KernelBuilder &kernel) {
  Value input = getInput();
  Scalar max{&kernel, kernel.reduceColumns(ReduceKind::Max, [input, &kernel] {
               return element(kernel, input).value;
             })};
  auto shifted = [input, max, &kernel] {
    return exp(element(kernel, input) - max);
  };
  Scalar total = sumOfRow(kernel, [shifted]() -> Value { return shifted(); });
  kernel.define(getResult(),
                [shifted, total]() -> Value { return shifted() / total; });
}

void SoftmaxGradOp::lowerToKernel(KernelBuilder &kernel) {
  Value probabilities = getProbabilities(), dy = getCotangent();
  Scalar total = sumOfRow(kernel, [probabilities, dy, &kernel]() -> Value {
    return element(kernel, probabilities) * element(kernel, dy);
  });
  kernel.define(getResult(), [probabilities, dy, total, &kernel]() -> Value {
    return element(kernel, probabilities) * (element(kernel, dy) - total);
  });
}
