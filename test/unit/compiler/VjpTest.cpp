//===- VjpTest.cpp - Every reverse rule against finite differences --------===//
//
// For each differentiable nn op: with a random cotangent c of its first
// result y, the reverse rule must give the gradient of sum(c y). Central
// differences in f64 with step 1e-5 have an error of about 1e-10, so a
// relative error of 1e-6 leaves no room for a wrong formula.
//
//===----------------------------------------------------------------------===//
#include "DialectOps.h"
#include "TinyLlama.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::interpret;

namespace {

constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-6;

/// One op in one form.
struct VjpCase {
  const char *name;
  /// Arguments and their types; a type is also the op's operand type.
  const char *arguments;
  /// The op under test; its first result is %y.
  const char *op;
  /// Values that random ones would not do for, by argument ("arg<i>").
  TensorMap given = {};
  /// Arguments that no gradient reaches though they are floats.
  std::vector<unsigned> constants = {};
  /// Smallest and largest random value.
  double low = -2, high = 2;
};

void PrintTo(const VjpCase &vjp, std::ostream *out) { *out << vjp.name; }

DenseTensor integers(std::vector<int64_t> shape, std::vector<double> values) {
  return {std::move(shape), std::move(values)};
}

const std::vector<VjpCase> &allCases() {
  static const std::vector<VjpCase> cases = {
      // Arithmetic and activations.
      {"Cast", "%a: tensor<3x4xf64>",
       "%y = nn.cast %a : tensor<3x4xf64> to tensor<3x4xf64>"},
      {"Add", "%a: tensor<3x4xf64>, %b: tensor<3x4xf64>",
       "%y = nn.add %a, %b : tensor<3x4xf64>"},
      {"AddSameOperand", "%a: tensor<3x4xf64>",
       "%y = nn.add %a, %a : tensor<3x4xf64>"},
      {"Sub", "%a: tensor<3x4xf64>, %b: tensor<3x4xf64>",
       "%y = nn.sub %a, %b : tensor<3x4xf64>"},
      {"Mul", "%a: tensor<3x4xf64>, %b: tensor<3x4xf64>",
       "%y = nn.mul %a, %b : tensor<3x4xf64>"},
      {"MulSameOperand", "%a: tensor<3x4xf64>",
       "%y = nn.mul %a, %a : tensor<3x4xf64>"},
      {"Div",
       "%a: tensor<3x4xf64>, %b: tensor<3x4xf64>",
       "%y = nn.div %a, %b : tensor<3x4xf64>",
       {},
       {},
       0.5,
       2},
      {"Neg", "%a: tensor<3x4xf64>", "%y = nn.neg %a : tensor<3x4xf64>"},
      {"Exp", "%a: tensor<3x4xf64>", "%y = nn.exp %a : tensor<3x4xf64>"},
      {"Log",
       "%a: tensor<3x4xf64>",
       "%y = nn.log %a : tensor<3x4xf64>",
       {},
       {},
       0.5,
       2},
      {"Sqrt",
       "%a: tensor<3x4xf64>",
       "%y = nn.sqrt %a : tensor<3x4xf64>",
       {},
       {},
       0.5,
       2},
      {"Rsqrt",
       "%a: tensor<3x4xf64>",
       "%y = nn.rsqrt %a : tensor<3x4xf64>",
       {},
       {},
       0.5,
       2},
      {"Tanh", "%a: tensor<3x4xf64>", "%y = nn.tanh %a : tensor<3x4xf64>"},
      {"Sigmoid", "%a: tensor<3x4xf64>",
       "%y = nn.sigmoid %a : tensor<3x4xf64>"},
      {"Relu", "%a: tensor<3x4xf64>", "%y = nn.relu %a : tensor<3x4xf64>"},
      {"Silu", "%a: tensor<3x4xf64>", "%y = nn.silu %a : tensor<3x4xf64>"},
      {"GeluExact", "%a: tensor<3x4xf64>",
       "%y = nn.gelu exact %a : tensor<3x4xf64>"},
      {"GeluTanh", "%a: tensor<3x4xf64>",
       "%y = nn.gelu tanh %a : tensor<3x4xf64>"},
      {"ScalarOfRankZero", "%a: tensor<f64>", "%y = nn.exp %a : tensor<f64>"},

      // Moves.
      {"Reshape", "%a: tensor<3x4xf64>",
       "%y = nn.reshape %a : tensor<3x4xf64> to tensor<2x6xf64>"},
      {"Transpose", "%a: tensor<2x3x4xf64>",
       "%y = nn.transpose %a [1, 2, 0] : tensor<2x3x4xf64> to "
       "tensor<3x4x2xf64>"},
      {"Slice", "%a: tensor<3x4xf64>",
       "%y = nn.slice %a [1, 2] : tensor<3x4xf64> to tensor<2x2xf64>"},
      {"SliceFromTheStart", "%a: tensor<3x4xf64>",
       "%y = nn.slice %a [0, 0] : tensor<3x4xf64> to tensor<1x4xf64>"},
      {"Pad", "%a: tensor<3x4xf64>",
       "%y = nn.pad %a [1, 2] : tensor<3x4xf64> to tensor<5x8xf64>"},
      {"Concat", "%a: tensor<3x4xf64>, %b: tensor<3x2xf64>",
       "%y = nn.concat %a, %b dim 1 : tensor<3x4xf64>, tensor<3x2xf64> to "
       "tensor<3x6xf64>"},
      {"ConcatThreeRows",
       "%a: tensor<1x4xf64>, %b: tensor<2x4xf64>, %c: tensor<3x4xf64>",
       "%y = nn.concat %a, %b, %c dim 0 : tensor<1x4xf64>, tensor<2x4xf64>, "
       "tensor<3x4xf64> to tensor<6x4xf64>"},
      {"BroadcastScalar", "%a: tensor<f64>",
       "%y = nn.broadcast %a [] : tensor<f64> to tensor<3x4xf64>"},
      {"BroadcastAlongRows", "%a: tensor<4xf64>",
       "%y = nn.broadcast %a [1] : tensor<4xf64> to tensor<3x4xf64>"},
      {"BroadcastAlongColumns", "%a: tensor<3xf64>",
       "%y = nn.broadcast %a [0] : tensor<3xf64> to tensor<3x4xf64>"},
      {"BroadcastMiddle", "%a: tensor<2x4xf64>",
       "%y = nn.broadcast %a [0, 2] : tensor<2x4xf64> to tensor<2x3x4xf64>"},
      {"BroadcastBothEnds", "%a: tensor<3xf64>",
       "%y = nn.broadcast %a [1] : tensor<3xf64> to tensor<2x3x4xf64>"},
      {"BroadcastUnitDimensions", "%a: tensor<2x1x4xf64>",
       "%y = nn.broadcast %a [0, 1, 2] : tensor<2x1x4xf64> to "
       "tensor<2x3x4xf64>"},
      {"BroadcastUnitAndNewDimensions", "%a: tensor<3x1xf64>",
       "%y = nn.broadcast %a [1, 2] : tensor<3x1xf64> to tensor<2x3x4xf64>"},
      {"BroadcastToUnitDimensions", "%a: tensor<4xf64>",
       "%y = nn.broadcast %a [1] : tensor<4xf64> to tensor<1x4xf64>"},

      // Reductions.
      {"SumTrailing", "%a: tensor<2x3x4xf64>",
       "%y = nn.sum %a [1, 2] : tensor<2x3x4xf64> to tensor<2xf64>"},
      {"SumLeading", "%a: tensor<2x3x4xf64>",
       "%y = nn.sum %a [0] : tensor<2x3x4xf64> to tensor<3x4xf64>"},
      {"SumMiddle", "%a: tensor<2x3x4xf64>",
       "%y = nn.sum %a [1] : tensor<2x3x4xf64> to tensor<2x4xf64>"},
      {"SumAll", "%a: tensor<3x4xf64>",
       "%y = nn.sum %a [0, 1] : tensor<3x4xf64> to tensor<f64>"},
      {"MeanTrailing", "%a: tensor<3x4xf64>",
       "%y = nn.mean %a [1] count 4 : tensor<3x4xf64> to tensor<3xf64>"},
      {"MeanOfAPart", "%a: tensor<3x4xf64>",
       "%y = nn.mean %a [1] count 16 : tensor<3x4xf64> to tensor<3xf64>"},
      {"MeanLeading", "%a: tensor<3x4xf64>",
       "%y = nn.mean %a [0] count 3 : tensor<3x4xf64> to tensor<4xf64>"},
      {"MeanAll", "%a: tensor<3x4xf64>",
       "%y = nn.mean %a [0, 1] count 12 : tensor<3x4xf64> to tensor<f64>"},
      {"MaxTrailing", "%a: tensor<3x4xf64>",
       "%y = nn.max %a [1] : tensor<3x4xf64> to tensor<3xf64>"},
      {"MaxLeading", "%a: tensor<3x4xf64>",
       "%y = nn.max %a [0] : tensor<3x4xf64> to tensor<4xf64>"},
      {"MaxMiddle", "%a: tensor<2x3x4xf64>",
       "%y = nn.max %a [1] : tensor<2x3x4xf64> to tensor<2x4xf64>"},
      {"MaxAll", "%a: tensor<3x4xf64>",
       "%y = nn.max %a [0, 1] : tensor<3x4xf64> to tensor<f64>"},

      // Matrix products.
      {"Linear", "%x: tensor<2x3x4xf64>, %w: tensor<5x4xf64>",
       "%y = nn.linear %x, %w : tensor<2x3x4xf64>, tensor<5x4xf64> -> "
       "tensor<2x3x5xf64>"},
      {"LinearWithBias",
       "%x: tensor<3x4xf64>, %w: tensor<5x4xf64>, %b: tensor<5xf64>",
       "%y = nn.linear %x, %w bias %b : tensor<3x4xf64>, tensor<5x4xf64>, "
       "tensor<5xf64> -> tensor<3x5xf64>"},
      {"LinearOfOneVector", "%x: tensor<4xf64>, %w: tensor<5x4xf64>",
       "%y = nn.linear %x, %w : tensor<4xf64>, tensor<5x4xf64> -> "
       "tensor<5xf64>"},
      {"LinearWithBiasOverTwoDimensions",
       "%x: tensor<2x3x4xf64>, %w: tensor<5x4xf64>, %b: tensor<5xf64>",
       "%y = nn.linear %x, %w bias %b : tensor<2x3x4xf64>, tensor<5x4xf64>, "
       "tensor<5xf64> -> tensor<2x3x5xf64>"},
      {"Matmul", "%a: tensor<3x4xf64>, %b: tensor<4x5xf64>",
       "%y = nn.matmul %a, %b : tensor<3x4xf64>, tensor<4x5xf64> -> "
       "tensor<3x5xf64>"},
      {"MatmulTransposedLeft", "%a: tensor<4x3xf64>, %b: tensor<4x5xf64>",
       "%y = nn.matmul %a, %b {transpose_lhs} : tensor<4x3xf64>, "
       "tensor<4x5xf64> -> tensor<3x5xf64>"},
      {"MatmulTransposedRight", "%a: tensor<3x4xf64>, %b: tensor<5x4xf64>",
       "%y = nn.matmul %a, %b {transpose_rhs} : tensor<3x4xf64>, "
       "tensor<5x4xf64> -> tensor<3x5xf64>"},
      {"MatmulTransposedBoth", "%a: tensor<4x3xf64>, %b: tensor<5x4xf64>",
       "%y = nn.matmul %a, %b {transpose_lhs, transpose_rhs} : "
       "tensor<4x3xf64>, tensor<5x4xf64> -> tensor<3x5xf64>"},
      {"MatmulBatched", "%a: tensor<2x3x4xf64>, %b: tensor<2x5x4xf64>",
       "%y = nn.matmul %a, %b {transpose_rhs} : tensor<2x3x4xf64>, "
       "tensor<2x5x4xf64> -> tensor<2x3x5xf64>"},

      // Norms and softmax.
      {"RMSNorm", "%x: tensor<2x3x4xf64>, %w: tensor<4xf64>",
       "%y, %r = nn.rms_norm %x, %w eps 1.0e-5 : tensor<2x3x4xf64>, "
       "tensor<4xf64>, tensor<2x3xf64>"},
      {"RMSNormWithLargeEps", "%x: tensor<3x4xf64>, %w: tensor<4xf64>",
       "%y, %r = nn.rms_norm %x, %w eps 0.5 : tensor<3x4xf64>, "
       "tensor<4xf64>, tensor<3xf64>"},
      {"RMSNormPlusOne", "%x: tensor<3x4xf64>, %w: tensor<4xf64>",
       "%y, %r = nn.rms_norm %x, %w eps 0.5 {plus_one} : tensor<3x4xf64>, "
       "tensor<4xf64>, tensor<3xf64>"},
      {"LayerNorm",
       "%x: tensor<2x3x4xf64>, %w: tensor<4xf64>, %b: tensor<4xf64>",
       "%y, %m, %r = nn.layer_norm %x, %w, %b eps 1.0e-5 : "
       "tensor<2x3x4xf64>, tensor<4xf64>, tensor<2x3xf64>"},
      {"Softmax", "%x: tensor<2x3x4xf64>",
       "%y = nn.softmax %x : tensor<2x3x4xf64>"},

      // Rotary embedding and attention.
      {"RotaryAdjacent",
       "%x: tensor<2x3x2x4xf64>, %t: tensor<5x2x2xf64>",
       "%y = nn.rotary adjacent %x, %t : tensor<2x3x2x4xf64>, "
       "tensor<5x2x2xf64>",
       {},
       {1}},
      {"RotaryHalves",
       "%x: tensor<2x3x2x6xf64>, %t: tensor<3x3x2xf64>",
       "%y = nn.rotary halves %x, %t : tensor<2x3x2x6xf64>, "
       "tensor<3x3x2xf64>",
       {},
       {1}},
      {"RotaryInverse",
       "%x: tensor<2x3x2x4xf64>, %t: tensor<3x2x2xf64>",
       "%y = nn.rotary halves %x, %t {inverse} : tensor<2x3x2x4xf64>, "
       "tensor<3x2x2xf64>",
       {},
       {1}},
      {"Attention",
       "%q: tensor<2x3x2x4xf64>, %k: tensor<2x5x2x4xf64>, "
       "%v: tensor<2x5x2x4xf64>",
       "%y, %l = nn.attention %q, %k, %v scale 0.5 : tensor<2x3x2x4xf64>, "
       "tensor<2x5x2x4xf64>, tensor<2x2x3xf64>"},
      {"AttentionCausal",
       "%q: tensor<2x4x2x3xf64>, %k: tensor<2x4x2x3xf64>, "
       "%v: tensor<2x4x2x3xf64>",
       "%y, %l = nn.attention %q, %k, %v scale 0.7 {causal} : "
       "tensor<2x4x2x3xf64>, tensor<2x4x2x3xf64>, tensor<2x2x4xf64>"},
      {"AttentionCausalGrouped",
       "%q: tensor<2x3x6x4xf64>, %k: tensor<2x3x2x4xf64>, "
       "%v: tensor<2x3x2x4xf64>",
       "%y, %l = nn.attention %q, %k, %v scale 0.5 {causal} : "
       "tensor<2x3x6x4xf64>, tensor<2x3x2x4xf64>, tensor<2x6x3xf64>"},
      {"AttentionWindow",
       "%q: tensor<2x5x2x3xf64>, %k: tensor<2x5x2x3xf64>, "
       "%v: tensor<2x5x2x3xf64>",
       "%y, %l = nn.attention %q, %k, %v scale 0.5 {causal, window = 2 : i64} "
       ": "
       "tensor<2x5x2x3xf64>, tensor<2x5x2x3xf64>, tensor<2x2x5xf64>"},
      {"AttentionWindowOfOne",
       "%q: tensor<1x4x2x3xf64>, %k: tensor<1x4x2x3xf64>, "
       "%v: tensor<1x4x2x3xf64>",
       "%y, %l = nn.attention %q, %k, %v scale 0.5 {causal, window = 1 : i64} "
       ": "
       "tensor<1x4x2x3xf64>, tensor<1x4x2x3xf64>, tensor<1x2x4xf64>"},
      {"AttentionCapped",
       "%q: tensor<2x3x2x4xf64>, %k: tensor<2x5x2x4xf64>, "
       "%v: tensor<2x5x2x4xf64>",
       "%y, %l = nn.attention %q, %k, %v scale 0.5 {cap = 0.5 : f64} : "
       "tensor<2x3x2x4xf64>, tensor<2x5x2x4xf64>, tensor<2x2x3xf64>"},
      {"AttentionWindowCappedGrouped",
       "%q: tensor<1x6x4x3xf64>, %k: tensor<1x6x2x3xf64>, "
       "%v: tensor<1x6x2x3xf64>",
       "%y, %l = nn.attention %q, %k, %v scale 0.5 {cap = 0.7 : f64, causal, "
       "window = 3 : i64} : "
       "tensor<1x6x4x3xf64>, tensor<1x6x2x3xf64>, tensor<1x4x6xf64>"},
      {"AttentionDocuments",
       "%q: tensor<2x5x4x3xf64>, %k: tensor<2x5x2x3xf64>, "
       "%v: tensor<2x5x2x3xf64>, %s: tensor<2x5xi32>",
       "%y, %l = nn.attention %q, %k, %v from %s scale 0.5 {causal} : "
       "tensor<2x5x4x3xf64>, tensor<2x5x2x3xf64>, tensor<2x4x5xf64>, "
       "tensor<2x5xi32>",
       {{"arg3", integers({2, 5}, {0, 0, 2, 2, 4, 0, 1, 1, 1, 1})}}},
      {"AttentionDocumentsWindowCapped",
       "%q: tensor<1x6x2x3xf64>, %k: tensor<1x6x2x3xf64>, "
       "%v: tensor<1x6x2x3xf64>, %s: tensor<1x6xi32>",
       "%y, %l = nn.attention %q, %k, %v from %s scale 0.5 {cap = 0.7 : f64, "
       "causal, window = 2 : i64} : tensor<1x6x2x3xf64>, "
       "tensor<1x6x2x3xf64>, tensor<1x2x6xf64>, tensor<1x6xi32>",
       {{"arg3", integers({1, 6}, {0, 0, 0, 3, 9, -1})}}},

      // Embedding with a repeated index, losses with ignored rows.
      {"Embedding",
       "%i: tensor<2x3xi32>, %t: tensor<5x4xf64>",
       "%y = nn.embedding %i, %t : tensor<2x3xi32>, tensor<5x4xf64> -> "
       "tensor<2x3x4xf64>",
       {{"arg0", integers({2, 3}, {4, 0, 2, 2, 1, 2})}}},
      {"CrossEntropy",
       "%l: tensor<4x5xf64>, %t: tensor<4xi32>",
       "%y, %s = nn.cross_entropy %l, %t ignore_index -100 : "
       "tensor<4x5xf64>, tensor<4xi32>, tensor<4xf64>",
       {{"arg1", integers({4}, {4, 0, 2, 2})}}},
      {"CrossEntropyOverTwoDimensions",
       "%l: tensor<2x2x5xf64>, %t: tensor<2x2xi32>",
       "%y, %s = nn.cross_entropy %l, %t ignore_index -100 : "
       "tensor<2x2x5xf64>, tensor<2x2xi32>, tensor<2x2xf64>",
       {{"arg1", integers({2, 2}, {4, -100, 2, 2})}}},
      {"CrossEntropyWithIgnoredRows",
       "%l: tensor<4x5xf64>, %t: tensor<4xi32>",
       "%y, %s = nn.cross_entropy %l, %t ignore_index -100 : "
       "tensor<4x5xf64>, tensor<4xi32>, tensor<4xf64>",
       {{"arg1", integers({4}, {-100, 3, -100, 1})}}},
      {"CrossEntropyOfNothing",
       "%l: tensor<2x5xf64>, %t: tensor<2xi32>",
       "%y, %s = nn.cross_entropy %l, %t ignore_index 0 : "
       "tensor<2x5xf64>, tensor<2xi32>, tensor<2xf64>",
       {{"arg1", integers({2}, {0, 0})}}},
      {"DivideByCount",
       "%s: tensor<f64>, %n: tensor<i64>",
       "%y = nn.divide_by_count %s, %n : tensor<f64>, tensor<i64>",
       {{"arg1", integers({}, {3})}}},
      {"DivideByNothing",
       "%s: tensor<f64>, %n: tensor<i64>",
       "%y = nn.divide_by_count %s, %n : tensor<f64>, tensor<i64>",
       {{"arg1", integers({}, {0})}}},
      {"MSELoss", "%p: tensor<3x4xf64>, %t: tensor<3x4xf64>",
       "%y = nn.mse_loss %p, %t count 12 : tensor<3x4xf64>, tensor<f64>"},
      {"MSELossOfAPart", "%p: tensor<3x4xf64>, %t: tensor<3x4xf64>",
       "%y = nn.mse_loss %p, %t count 24 : tensor<3x4xf64>, tensor<f64>"},
  };
  return cases;
}

class Vjp : public testing::TestWithParam<VjpCase> {
protected:
  void SetUp() override {
    context.loadDialect<nn::NNDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(std::string("func.func @f(") +
                                             GetParam().arguments + ") {\n" +
                                             GetParam().op + "\nreturn\n}\n",
                                         &context);
    ASSERT_TRUE(module);
    function = *module->getOps<func::FuncOp>().begin();
    op = &function.getBody().front().front();
  }

  DenseTensor random(Type type) {
    return randomTensor(generator, cast<RankedTensorType>(type).getShape(),
                        GetParam().low, GetParam().high);
  }

  TensorMap randomInputs() {
    TensorMap inputs = GetParam().given;
    for (BlockArgument argument : function.getArguments())
      inputs.emplace("arg" + std::to_string(argument.getArgNumber()),
                     random(argument.getType()));
    return inputs;
  }

  /// Makes the function return the op's first result.
  void returnValue() { setResults({op->getResult(0)}); }

  /// Makes the function return the operands' cotangents, given the cotangent
  /// of the first result as its last argument. Sums those of one argument.
  void returnCotangents() {
    Block &body = function.getBody().front();
    Value cotangent =
        body.addArgument(op->getResult(0).getType(), function.getLoc());
    function.setType(
        FunctionType::get(&context, body.getArgumentTypes(), TypeRange()));
    OpBuilder builder(body.getTerminator());
    SmallVector<Value> resultCotangents(op->getNumResults());
    resultCotangents[0] = cotangent;
    SmallVector<Value> cotangents(op->getNumOperands());
    cast<nn::DifferentiableOpInterface>(op).buildVjp(builder, resultCotangents,
                                                     cotangents);
    std::map<unsigned, Value> sums;
    for (auto [operand, value] : llvm::zip_equal(op->getOperands(), cotangents))
      if (value) {
        ASSERT_EQ(value.getType(), operand.getType());
        Value &sum = sums[cast<BlockArgument>(operand).getArgNumber()];
        sum = sum ? Value(nn::AddOp::create(builder, op->getLoc(), sum, value))
                  : value;
      }
    SmallVector<Value> results;
    for (auto [argument, sum] : sums) {
      differentiated.push_back(argument);
      results.push_back(sum);
    }
    setResults(results);
  }

  void setResults(ValueRange results) {
    Block &body = function.getBody().front();
    body.getTerminator()->setOperands(results);
    function.setType(FunctionType::get(&context, body.getArgumentTypes(),
                                       results.getTypes()));
    ASSERT_TRUE(succeeded(verify(*module)));
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  Operation *op = nullptr;
  std::vector<unsigned> differentiated;
  std::mt19937_64 generator{20240607};
};

double dot(const DenseTensor &a, const DenseTensor &b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    sum += a.values[i] * b.values[i];
  return sum;
}

/// Distance in the 2-norm, relative to `expected`.
double relativeError(const DenseTensor &actual, const DenseTensor &expected) {
  DenseTensor difference = actual;
  for (int64_t i = 0; i < actual.size(); ++i)
    difference.values[i] -= expected.values[i];
  double norm = std::sqrt(dot(expected, expected));
  return std::sqrt(dot(difference, difference)) / (norm > 0 ? norm : 1);
}

TEST_P(Vjp, EqualsFiniteDifferences) {
  returnValue();
  TensorMap inputs = randomInputs();
  DenseTensor cotangent = random(op->getResult(0).getType());
  auto loss = [&] {
    return dot(cotangent, evaluate(function, inputs).at("result0"));
  };
  std::map<unsigned, DenseTensor> expected;
  for (BlockArgument argument : function.getArguments()) {
    unsigned i = argument.getArgNumber();
    if (!isa<FloatType>(getElementTypeOrSelf(argument.getType())) ||
        llvm::is_contained(GetParam().constants, i))
      continue;
    DenseTensor &input = inputs.at("arg" + std::to_string(i));
    DenseTensor &gradient = expected[i] = input;
    for (int64_t j = 0; j < input.size(); ++j) {
      double value = input.values[j];
      input.values[j] = value + kStep;
      double above = loss();
      input.values[j] = value - kStep;
      gradient.values[j] = (above - loss()) / (2 * kStep);
      input.values[j] = value;
    }
  }

  returnCotangents();
  inputs["arg" + std::to_string(function.getNumArguments() - 1)] = cotangent;
  TensorMap results = evaluate(function, inputs);
  ASSERT_EQ(differentiated.size(), expected.size());
  for (auto [position, argument] : llvm::enumerate(differentiated)) {
    ASSERT_TRUE(expected.count(argument)) << "argument " << argument;
    const DenseTensor &actual = results.at("result" + std::to_string(position));
    ASSERT_EQ(actual.shape, expected.at(argument).shape);
    EXPECT_LE(relativeError(actual, expected.at(argument)), kTolerance)
        << "argument " << argument;
  }
}

INSTANTIATE_TEST_SUITE_P(Op, Vjp, testing::ValuesIn(allCases()),
                         [](const auto &info) { return info.param.name; });

// A new differentiable op without a case above fails here.
TEST(VjpCoverage, EveryDifferentiableOpHasACase) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect>();
  for (RegisteredOperationName name : opsOf(context, "nn")) {
    if (!name.hasInterface<nn::DifferentiableOpInterface>())
      continue;
    std::string mention = "= " + name.getStringRef().str() + " ";
    EXPECT_TRUE(llvm::any_of(allCases(), [&](const VjpCase &vjp) {
      return StringRef(vjp.op).contains(mention);
    })) << name.getStringRef().str();
  }
}

/// Parses `text` as the body of a function of `arguments` and evaluates its
/// reverse rule with cotangent `dy`; gives the first operand's cotangent.
DenseTensor firstCotangent(const std::string &arguments,
                           const std::string &text, const DenseTensor &input,
                           const DenseTensor &dy) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      "func.func @f(" + arguments + ") {\n" + text + "\nreturn\n}", &context);
  func::FuncOp function = *module->getOps<func::FuncOp>().begin();
  Block &body = function.getBody().front();
  Operation *op = &body.front();
  OpBuilder builder(body.getTerminator());
  SmallVector<Value> cotangents(1);
  cast<nn::DifferentiableOpInterface>(op).buildVjp(
      builder, {body.getArgument(1)}, cotangents);
  body.getTerminator()->setOperands(cotangents);
  function.setType(FunctionType::get(&context, body.getArgumentTypes(),
                                     cotangents[0].getType()));
  return evaluate(function, {{"arg0", input}, {"arg1", dy}}).at("result0");
}

// Finite differences do not exist at a tie: three equal maxima get a third
// each.
TEST(VjpOfMax, IsSharedByEqualMaxima) {
  DenseTensor gradient =
      firstCotangent("%x: tensor<2x4xf64>, %dy: tensor<2xf64>",
                     "%y = nn.max %x [1] : tensor<2x4xf64> to tensor<2xf64>",
                     {{2, 4}, {1, 5, 5, 5, 9, 2, 3, 4}}, {{2}, {6, 7}});
  EXPECT_EQ(gradient.values, (std::vector<double>{0, 2, 2, 2, 7, 0, 0, 0}));
}

// The slope of relu at 0 is 0, as PyTorch has it.
TEST(VjpOfRelu, IsZeroAtZero) {
  DenseTensor gradient = firstCotangent("%x: tensor<3xf64>, %dy: tensor<3xf64>",
                                        "%y = nn.relu %x : tensor<3xf64>",
                                        {{3}, {-1, 0, 1}}, {{3}, {5, 6, 7}});
  EXPECT_EQ(gradient.values, (std::vector<double>{0, 0, 7}));
}

// A model that uses a statistic has no gradient: an error, not a wrong value.
TEST(VjpOfStatistic, IsAnError) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      "func.func @f(%x: tensor<3x4xf64>, %w: tensor<4xf64>) {\n"
      "%y, %r = nn.rms_norm %x, %w eps 1.0e-5 : tensor<3x4xf64>, "
      "tensor<4xf64>, tensor<3xf64>\nreturn\n}",
      &context);
  func::FuncOp function = *module->getOps<func::FuncOp>().begin();
  Operation *op = &function.getBody().front().front();
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  OpBuilder builder(op->getBlock()->getTerminator());
  SmallVector<Value> cotangents(2);
  cast<nn::DifferentiableOpInterface>(op).buildVjp(
      builder, {op->getResult(0), op->getResult(1)}, cotangents);
  EXPECT_NE(message.find("no gradient with respect to its statistics"),
            std::string::npos);
  EXPECT_FALSE(cotangents[0] || cotangents[1]);
}

} // namespace
