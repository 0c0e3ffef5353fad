//===- KernelTest.cpp - Every kernel formula against the evaluator --------===//
//
// Runs `lowerToKernel` of each op with a kernel builder that knows the values:
// reads give constants, and every scalar that the op builds is interpreted in
// f64. The result must be what the evaluator says, whose formulas were written
// apart.
//
//===----------------------------------------------------------------------===//
#include "DialectOps.h"
#include "fsdp/Interpreter/Interpreter.h"
#include "fsdp/Runtime/KernelMath.h"
#include "fsdp/Schedule/Problem.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::interpret;

namespace {

constexpr double kTolerance = 1e-12;

// One number in libraries that do not know each other.
static_assert(nn::kRowBlock == rt::math::kRowBlock &&
              problem::kRowBlock == nn::kRowBlock &&
              problem::kMostSumColumns == nn::kMostSumColumns);

/// Interprets scalar ops of arith and math.
double interpret(Value value) {
  Operation *op = value.getDefiningOp();
  auto in = [op](unsigned i) { return interpret(op->getOperand(i)); };
  return TypeSwitch<Operation *, double>(op)
      .Case([](arith::ConstantOp op) {
        if (auto real = dyn_cast<FloatAttr>(op.getValue()))
          return real.getValueAsDouble();
        return static_cast<double>(cast<IntegerAttr>(op.getValue()).getInt());
      })
      .Case([&](arith::AddFOp) { return in(0) + in(1); })
      .Case([&](arith::SubFOp) { return in(0) - in(1); })
      .Case([&](arith::MulFOp) { return in(0) * in(1); })
      .Case([&](arith::DivFOp) { return in(0) / in(1); })
      .Case([&](arith::NegFOp) { return -in(0); })
      .Case([&](math::ExpOp) { return std::exp(in(0)); })
      .Case([&](math::LogOp) { return std::log(in(0)); })
      .Case([&](math::SqrtOp) { return std::sqrt(in(0)); })
      .Case([&](math::TanhOp) { return std::tanh(in(0)); })
      .Case([&](math::ErfOp) { return std::erf(in(0)); })
      .Case([&](arith::SIToFPOp) { return in(0); })
      .Case([&](arith::SelectOp) { return in(0) != 0 ? in(1) : in(2); })
      .Case([&](arith::CmpFOp op) -> double {
        switch (op.getPredicate()) {
        case arith::CmpFPredicate::OEQ:
          return in(0) == in(1);
        case arith::CmpFPredicate::OLT:
          return in(0) < in(1);
        case arith::CmpFPredicate::OGT:
          return in(0) > in(1);
        default:
          ADD_FAILURE() << "a comparison that no kernel needs";
          return 0;
        }
      })
      .Default([](Operation *op) {
        ADD_FAILURE() << "no kernel may use "
                      << op->getName().getStringRef().str();
        return 0.0;
      });
}

/// Evaluates a kernel row by row: `lowerToKernel` is called once per row.
class ValueKernelBuilder : public nn::KernelBuilder {
public:
  ValueKernelBuilder(nn::KernelOpInterface op,
                     const std::vector<DenseTensor> &in)
      : space(op.getKernelSpace()), b(op->getContext()) {
    b.setInsertionPointToEnd(&scratch);
    for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), in))
      values[operand] = tensor;
    for (Value result : op->getResults())
      values[result] = DenseTensor::full(
          cast<RankedTensorType>(result.getType()).getShape().vec(), NAN);
    for (row = 0; row < space.rows; ++row)
      op.lowerToKernel(*this);
  }

  const DenseTensor &result(Value value) { return values.at(value); }

  OpBuilder &builder() override { return b; }
  Location loc() override { return b.getUnknownLoc(); }

  Value read(Value tensor, nn::KernelAccess access) override {
    bool perRow =
        access == nn::KernelAccess::Row || access == nn::KernelAccess::Scalar;
    EXPECT_TRUE(col >= 0 || perRow) << "reads a column outside of an element";
    switch (access) {
    case nn::KernelAccess::Element:
      return at(tensor, space.rows * space.cols, row * space.cols + col);
    case nn::KernelAccess::Row:
      return at(tensor, space.rows, row);
    case nn::KernelAccess::Column:
      return at(tensor, space.cols, col);
    case nn::KernelAccess::Scalar:
      return at(tensor, 1, 0);
    }
    llvm_unreachable("unknown access");
  }
  Value readAt(Value tensor, Value column) override {
    int64_t index = row * space.cols + interpret(column);
    return at(tensor, space.rows * space.cols, index);
  }
  Value column() override {
    return arith::ConstantIntOp::create(b, loc(), col, 32);
  }
  Value constant(double value) override {
    return arith::ConstantFloatOp::create(b, loc(), b.getF64Type(),
                                          APFloat(value));
  }

  Value reduceColumns(nn::ReduceKind kind, Scalar element) override {
    EXPECT_FALSE(space.columnReduction);
    double total = start(kind);
    forEachColumn([&] { total = combine(kind, total, interpret(element())); });
    return constant(total);
  }
  void define(Value result, Scalar element) override {
    EXPECT_FALSE(space.columnReduction);
    forEachColumn([&] {
      store(result, space.rows * space.cols, row * space.cols + col,
            interpret(element()));
    });
  }
  void defineRow(Value result, Value scalar) override {
    EXPECT_FALSE(space.columnReduction);
    store(result, space.rows, row, interpret(scalar));
  }
  void defineColumns(Value result, nn::ReduceKind kind,
                     Scalar element) override {
    EXPECT_TRUE(space.columnReduction);
    forEachColumn([&] {
      double value = interpret(element());
      double before = row == 0 ? start(kind) : values.at(result).values[col];
      store(result, space.cols, col, combine(kind, before, value));
    });
  }

private:
  Value at(Value source, int64_t size, int64_t index) {
    const DenseTensor &tensor = values.at(source);
    EXPECT_EQ(tensor.size(), size) << "the access does not fit the space";
    double value = tensor.values.at(index);
    Type element = getElementTypeOrSelf(source.getType());
    if (isa<FloatType>(element))
      return constant(value);
    return arith::ConstantIntOp::create(b, loc(), element,
                                        static_cast<int64_t>(value));
  }
  void store(Value result, int64_t size, int64_t index, double value) {
    DenseTensor &tensor = values.at(result);
    EXPECT_EQ(tensor.size(), size) << "the result does not fit the space";
    tensor.values.at(index) = value;
  }
  template <typename Visit> void forEachColumn(Visit visit) {
    for (col = 0; col < space.cols; ++col)
      visit();
    col = -1;
  }
  static double start(nn::ReduceKind kind) {
    return kind == nn::ReduceKind::Sum ? 0 : -INFINITY;
  }
  static double combine(nn::ReduceKind kind, double a, double b) {
    return kind == nn::ReduceKind::Sum ? a + b : std::max(a, b);
  }

  nn::KernelSpace space;
  Block scratch;
  OpBuilder b;
  DenseMap<Value, DenseTensor> values;
  int64_t row = 0;
  int64_t col = -1;
};

struct KernelCase {
  const char *name;
  const char *arguments;
  const char *op;
  /// Arguments hold whole numbers, so that equal maxima occur.
  bool whole = false;
};

void PrintTo(const KernelCase &kernel, std::ostream *out) {
  *out << kernel.name;
}

#define ONE "%a: tensor<2x3x4xf64>"
#define TWO "%a: tensor<2x3x4xf64>, %b: tensor<2x3x4xf64>"
#define UNARY(NAME, OP) {NAME, ONE, "%y = nn." OP " %a : tensor<2x3x4xf64>"}
#define BINARY(NAME, OP)                                                       \
  {NAME, TWO, "%y = nn." OP " %a, %b : tensor<2x3x4xf64>"}
/// A reduction of 2x3x4 over `DIMS`, giving `SHAPE`.
#define REDUCE(NAME, OP, DIMS, SHAPE)                                          \
  {NAME, ONE,                                                                  \
   "%y = nn." OP " %a " DIMS " : tensor<2x3x4xf64> to tensor<" SHAPE "f64>"}
#define BROADCAST(NAME, FROM, DIMS, TO)                                        \
  {NAME, "%a: tensor<" FROM "f64>",                                            \
   "%y = nn.broadcast %a " DIMS " : tensor<" FROM "f64> to tensor<" TO "f64>"}

// Square shapes (rows equal columns) stand beside others: there a wrong access
// would go unnoticed by its size.
const KernelCase kCases[] = {
    {"Constant", "", "%y = nn.constant dense<0.25> : tensor<3x4xf64>"},
    {"ConstantOfIntegers", "", "%y = nn.constant dense<-7> : tensor<5xi32>"},
    {"Cast", ONE, "%y = nn.cast %a : tensor<2x3x4xf64> to tensor<2x3x4xf32>"},
    {"RankZero", "%a: tensor<f64>", "%y = nn.exp %a : tensor<f64>"},
    BINARY("Add", "add"),
    BINARY("Sub", "sub"),
    BINARY("Mul", "mul"),
    BINARY("Div", "div"),
    UNARY("Neg", "neg"),
    UNARY("Exp", "exp"),
    UNARY("Log", "log"),
    UNARY("Sqrt", "sqrt"),
    UNARY("Rsqrt", "rsqrt"),
    UNARY("Tanh", "tanh"),
    UNARY("Sigmoid", "sigmoid"),
    UNARY("Relu", "relu"),
    UNARY("Silu", "silu"),
    UNARY("GeluExact", "gelu exact"),
    UNARY("GeluTanh", "gelu tanh"),
    BINARY("ReluGrad", "relu_grad"),
    BINARY("SiluGrad", "silu_grad"),
    BINARY("GeluGradExact", "gelu_grad exact"),
    BINARY("GeluGradTanh", "gelu_grad tanh"),
    BROADCAST("BroadcastScalar", "", "[]", "3x4x"),
    BROADCAST("BroadcastColumns", "4x", "[2]", "2x3x4x"),
    BROADCAST("BroadcastMatrixAsColumns", "3x4x", "[1, 2]", "2x3x4x"),
    BROADCAST("BroadcastRows", "2x", "[0]", "2x3x4x"),
    BROADCAST("BroadcastColumnsOfSquare", "4x", "[1]", "4x4x"),
    BROADCAST("BroadcastRowsOfSquare", "4x", "[0]", "4x4x"),
    BROADCAST("BroadcastUnitDimension", "2x3x1x", "[0, 1, 2]", "2x3x4x"),
    BROADCAST("BroadcastNothing", "4x", "[1]", "1x4x"),
    REDUCE("SumTrailing", "sum", "[2]", "2x3x"),
    REDUCE("SumTwoTrailing", "sum", "[1, 2]", "2x"),
    REDUCE("SumLeading", "sum", "[0]", "3x4x"),
    REDUCE("SumTwoLeading", "sum", "[0, 1]", "4x"),
    REDUCE("SumAll", "sum", "[0, 1, 2]", ""),
    REDUCE("MeanTrailing", "mean", "[2] count 4", "2x3x"),
    REDUCE("MeanLeading", "mean", "[0, 1] count 6", "4x"),
    REDUCE("MeanOfAPart", "mean", "[2] count 100", "2x3x"),
    REDUCE("MaxTrailing", "max", "[2]", "2x3x"),
    REDUCE("MaxLeading", "max", "[0]", "3x4x"),
    {"SumOfUnitDimension", "%a: tensor<3x1x4xf64>",
     "%y = nn.sum %a [1] : tensor<3x1x4xf64> to tensor<3x4xf64>"},
    {"SumAcrossUnitDimension", "%a: tensor<3x1x4xf64>",
     "%y = nn.sum %a [1, 2] : tensor<3x1x4xf64> to tensor<3xf64>"},
    {"SumRowsOfSquare", "%a: tensor<4x4xf64>",
     "%y = nn.sum %a [1] : tensor<4x4xf64> to tensor<4xf64>"},
    {"SumColumnsOfSquare", "%a: tensor<4x4xf64>",
     "%y = nn.sum %a [0] : tensor<4x4xf64> to tensor<4xf64>"},
    {"MaxGradTrailing",
     "%a: tensor<3x4xf64>, %m: tensor<3xf64>, %d: tensor<3xf64>",
     "%y = nn.max_grad %a, %m, %d [1] : tensor<3x4xf64>, tensor<3xf64>", true},
    {"MaxGradAll", "%a: tensor<3x4xf64>, %m: tensor<f64>, %d: tensor<f64>",
     "%y = nn.max_grad %a, %m, %d [0, 1] : tensor<3x4xf64>, tensor<f64>", true},
    {"RMSNorm", "%x: tensor<2x3x4xf64>, %w: tensor<4xf64>",
     "%y, %r = nn.rms_norm %x, %w eps 1.0e-2 : tensor<2x3x4xf64>, "
     "tensor<4xf64>, tensor<2x3xf64>"},
    {"RMSNormOfSquare", "%x: tensor<4x4xf64>, %w: tensor<4xf64>",
     "%y, %r = nn.rms_norm %x, %w eps 1.0e-2 : tensor<4x4xf64>, "
     "tensor<4xf64>, tensor<4xf64>"},
    {"RMSNormInputGradOfSquare",
     "%x: tensor<4x4xf64>, %w: tensor<4xf64>, %r: tensor<4xf64>, "
     "%d: tensor<4x4xf64>",
     "%y = nn.rms_norm_input_grad %x, %w, %r, %d : tensor<4x4xf64>, "
     "tensor<4xf64>, tensor<4xf64>"},
    {"RMSNormPlusOne", "%x: tensor<4x4xf64>, %w: tensor<4xf64>",
     "%y, %r = nn.rms_norm %x, %w eps 1.0e-2 {plus_one} : tensor<4x4xf64>, "
     "tensor<4xf64>, tensor<4xf64>"},
    {"RMSNormInputGradPlusOne",
     "%x: tensor<4x4xf64>, %w: tensor<4xf64>, %r: tensor<4xf64>, "
     "%d: tensor<4x4xf64>",
     "%y = nn.rms_norm_input_grad %x, %w, %r, %d {plus_one} : "
     "tensor<4x4xf64>, tensor<4xf64>, tensor<4xf64>"},
    {"RMSNormWeightGradOfSquare",
     "%x: tensor<4x4xf64>, %r: tensor<4xf64>, %d: tensor<4x4xf64>",
     "%y = nn.rms_norm_weight_grad %x, %r, %d : tensor<4x4xf64>, "
     "tensor<4xf64> to tensor<4xf64>"},
    {"LayerNorm", "%x: tensor<2x3x4xf64>, %w: tensor<4xf64>, %b: tensor<4xf64>",
     "%y, %m, %r = nn.layer_norm %x, %w, %b eps 1.0e-2 : tensor<2x3x4xf64>, "
     "tensor<4xf64>, tensor<2x3xf64>"},
    {"LayerNormInputGradOfSquare",
     "%x: tensor<4x4xf64>, %w: tensor<4xf64>, %m: tensor<4xf64>, "
     "%r: tensor<4xf64>, %d: tensor<4x4xf64>",
     "%y = nn.layer_norm_input_grad %x, %w, %m, %r, %d : tensor<4x4xf64>, "
     "tensor<4xf64>, tensor<4xf64>"},
    {"LayerNormWeightGradOfSquare",
     "%x: tensor<4x4xf64>, %m: tensor<4xf64>, %r: tensor<4xf64>, "
     "%d: tensor<4x4xf64>",
     "%y = nn.layer_norm_weight_grad %x, %m, %r, %d : tensor<4x4xf64>, "
     "tensor<4xf64> to tensor<4xf64>"},
    UNARY("Softmax", "softmax"),
    {"SoftmaxOfVector", "%x: tensor<4xf64>",
     "%y = nn.softmax %x : tensor<4xf64>"},
    BINARY("SoftmaxGrad", "softmax_grad"),
    {"MSELoss", TWO,
     "%y = nn.mse_loss %a, %b count 24 : tensor<2x3x4xf64>, tensor<f64>"},
    {"MSELossGrad", TWO ", %d: tensor<f64>",
     "%y = nn.mse_loss_grad %a, %b, %d count 24 : tensor<2x3x4xf64>, "
     "tensor<f64>"},
    {"DivideByCount", "%s: tensor<f64>, %n: tensor<i64>",
     "%y = nn.divide_by_count %s, %n : tensor<f64>, tensor<i64>", true},
};

#undef ONE
#undef TWO
#undef UNARY
#undef BINARY
#undef REDUCE
#undef BROADCAST

/// A function that holds one op.
struct OneOp {
  OneOp(const char *arguments, const char *text) {
    context.loadDialect<nn::NNDialect, func::FuncDialect, arith::ArithDialect,
                        math::MathDialect>();
    module =
        parseSourceString<ModuleOp>(std::string("func.func @f(") + arguments +
                                        ") {\n" + text + "\nreturn\n}\n",
                                    &context);
  }
  nn::KernelOpInterface op() {
    func::FuncOp function = *module->getOps<func::FuncOp>().begin();
    return cast<nn::KernelOpInterface>(function.getBody().front().front());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

class Kernel : public testing::TestWithParam<KernelCase> {};

TEST_P(Kernel, EqualsTheEvaluator) {
  OneOp program(GetParam().arguments, GetParam().op);
  ASSERT_TRUE(program.module);
  nn::KernelOpInterface op = program.op();
  ASSERT_TRUE(op.getKernelSpace().isExpressible());
  std::mt19937_64 generator(7);
  std::uniform_real_distribution<double> uniform(0.1, 3);
  std::vector<DenseTensor> operands;
  for (Value operand : op->getOperands()) {
    DenseTensor &tensor = operands.emplace_back(DenseTensor::full(
        cast<RankedTensorType>(operand.getType()).getShape().vec()));
    for (double &value : tensor.values) {
      // Both signs where the op's domain has them.
      value = uniform(generator);
      if (GetParam().whole)
        value = std::round(value);
      else if (!isa<nn::LogOp, nn::SqrtOp, nn::RsqrtOp>(op) &&
               generator() % 2 == 0)
        value = -value;
    }
  }
  ValueKernelBuilder kernel(op, operands);
  std::vector<DenseTensor> expected = evaluate(op, operands);
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), expected)) {
    const DenseTensor &actual = kernel.result(result);
    ASSERT_EQ(actual.shape, tensor.shape);
    for (int64_t i = 0; i < tensor.size(); ++i)
      EXPECT_NEAR(actual.values[i], tensor.values[i],
                  kTolerance * std::max(1.0, std::fabs(tensor.values[i])));
  }
}

INSTANTIATE_TEST_SUITE_P(Op, Kernel, testing::ValuesIn(kCases),
                         [](const auto &info) { return info.param.name; });

// Not NaN: a batch may have no label at all.
TEST(KernelFormula, DividesByNoLabelsToZero) {
  OneOp program("%s: tensor<f64>, %n: tensor<i64>",
                "%y = nn.divide_by_count %s, %n : tensor<f64>, tensor<i64>");
  nn::KernelOpInterface op = program.op();
  ValueKernelBuilder kernel(op,
                            {DenseTensor::scalar(5), DenseTensor::scalar(0)});
  EXPECT_EQ(kernel.result(op->getResult(0)).values[0], 0);
}

// A new kernel op without a case above fails here.
TEST(KernelCoverage, EveryKernelOpHasACase) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect>();
  for (RegisteredOperationName name : opsOf(context, "nn")) {
    if (!name.hasInterface<nn::KernelOpInterface>())
      continue;
    std::string mention = "= " + name.getStringRef().str() + " ";
    EXPECT_TRUE(llvm::any_of(kCases, [&](const KernelCase &kernel) {
      return StringRef(kernel.op).contains(mention);
    })) << name.getStringRef().str();
  }
}

// What has no kernel says so: dimensions in the middle, and a gradient of
// nn.max over leading dimensions.
TEST(KernelSpaces, SayWhatIsNotExpressible) {
  const char *ops[] = {
      "%y = nn.sum %a [1] : tensor<2x3x4xf64> to tensor<2x4xf64>",
      "%y = nn.max %a [0, 2] : tensor<2x3x4xf64> to tensor<3xf64>",
      ("%y = nn.broadcast %a [0, 1, 3] : tensor<2x3x4xf64> to "
       "tensor<2x3x5x4xf64>"),
      "%y = nn.max_grad %a, %b, %b [0] : tensor<2x3x4xf64>, tensor<3x4xf64>"};
  for (const char *op : ops) {
    OneOp program("%a: tensor<2x3x4xf64>, %b: tensor<3x4xf64>", op);
    ASSERT_TRUE(program.module) << op;
    EXPECT_FALSE(program.op().getKernelSpace().isExpressible()) << op;
  }
}

} // namespace
