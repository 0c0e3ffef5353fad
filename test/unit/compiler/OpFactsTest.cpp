//===- OpFactsTest.cpp - What the records of nn ops say is so -------------===//
//
// Passes know ops by the facts of their records (dialects/NN/NNFacts.td). Here
// they are written once more (OpFactsCases.cpp), and what can be found out by
// computing is: where an op is linear, and whether it moves elements.
//
//===----------------------------------------------------------------------===//
#include "DialectOps.h"
#include "OpFactsCases.h"
#include "dialects/NN/NN.h"
#include "fsdp/Interpreter/Interpreter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::interpret;
using Precision = nn::PrecisionRule;

namespace {

StringRef nameOf(const FactsCase &test) {
  return StringRef(test.op).split(' ').first;
}

/// A case's op, and random operands for it.
class Program {
public:
  explicit Program(const FactsCase &test) {
    context.loadDialect<nn::NNDialect, func::FuncDialect>();
    ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
    // Those of several results are written with a count.
    for (const char *results : {"%y = ", "%y:2 = ", "%y:3 = "}) {
      module = parseSourceString<ModuleOp>(
          "func.func @f(" + std::string(test.arguments) + ") {\n" + results +
              test.op + "\n return\n}",
          &context);
      if (module)
        return;
    }
  }

  Operation *op() {
    if (!module)
      return nullptr;
    auto function = *module->getOps<func::FuncOp>().begin();
    return &function.getBody().front().front();
  }

  /// Small indices and counts, and numbers whose logarithm exists.
  DenseTensor random(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    DenseTensor tensor = DenseTensor::full(type.getShape().vec());
    for (double &element : tensor.values)
      element = isa<FloatType>(type.getElementType())
                    ? std::uniform_real_distribution(0.5, 2.0)(generator)
                    : std::uniform_int_distribution(1, 3)(generator);
    return tensor;
  }

  std::vector<DenseTensor> operands() {
    std::vector<DenseTensor> tensors;
    for (Value operand : op()->getOperands())
      tensors.push_back(random(operand));
    return tensors;
  }

private:
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::mt19937 generator{7};
};

/// `a x + b y`, element by element.
DenseTensor combine(double a, const DenseTensor &x, double b,
                    const DenseTensor &y) {
  DenseTensor sum = x;
  for (int64_t i = 0; i < sum.size(); ++i)
    sum.values[i] = a * x.values[i] + b * y.values[i];
  return sum;
}

/// Expects `op` to be linear in an operand, by two values of it.
void expectLinear(Program &program, unsigned number) {
  Operation *op = program.op();
  std::vector<DenseTensor> x = program.operands(), y = x, both = x;
  y[number] = program.random(op->getOperand(number));
  both[number] = combine(2, x[number], -3, y[number]);
  auto ofX = evaluate(op, x), ofY = evaluate(op, y),
       ofBoth = evaluate(op, both);
  for (size_t result = 0; result < ofBoth.size(); ++result) {
    DenseTensor expected = combine(2, ofX[result], -3, ofY[result]);
    for (int64_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(ofBoth[result].values[i], expected.values[i], 1e-9)
          << "operand " << number << ", result " << result;
  }
}

/// Whether every element of the results is one of an operand, or padding.
bool givesElements(Program &program) {
  std::vector<DenseTensor> operands = program.operands();
  std::set<double> elements = {0};
  for (const DenseTensor &operand : operands)
    elements.insert(operand.values.begin(), operand.values.end());
  for (const DenseTensor &result : evaluate(program.op(), operands))
    for (double value : result.values)
      if (!elements.count(value))
        return false;
  return !operands.empty();
}

class OpFacts : public testing::TestWithParam<FactsCase> {};

[[maybe_unused]] void PrintTo(const FactsCase &test, std::ostream *out) {
  *out << test.op;
}

TEST_P(OpFacts, AreAsWritten) {
  const FactsCase &test = GetParam();
  Program program(test);
  Operation *op = program.op();
  ASSERT_TRUE(op) << "does not parse";
  nn::ShardingRule rule = cast<nn::ShardingOpInterface>(op).getShardingRule();
  EXPECT_EQ(rule.str() + (rule.passesPartial ? " (additive)" : "") +
                (rule.partial == nn::PartialKind::Max ? " (max)" : ""),
            test.rule);
  EXPECT_EQ(cast<nn::CostOpInterface>(op).getFlops(), test.flops);
  EXPECT_EQ(cast<nn::PrecisionOpInterface>(op).getPrecisionRule(),
            test.precision);
}

TEST_P(OpFacts, AreLinearWhereTheySay) {
  const FactsCase &test = GetParam();
  Program program(test);
  ASSERT_TRUE(program.op()) << "does not parse";
  auto op = cast<nn::ShardingOpInterface>(program.op());
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    bool isFloat =
        isa<FloatType>(getElementTypeOrSelf(operand.get().getType()));
    if (!isFloat)
      continue;
    EXPECT_EQ(op.isLinearIn(operand), llvm::is_contained(test.linear, number))
        << "operand " << number;
    if (op.isLinearIn(operand))
      expectLinear(program, number);
  }
}

// An op without arithmetic hands elements on: all but a lookup, which chooses
// them by their number, do it wherever their values are.
TEST_P(OpFacts, MoveElementsWhereTheySay) {
  Program program(GetParam());
  Operation *op = program.op();
  ASSERT_TRUE(op) << "does not parse";
  bool computesNothing =
      cast<nn::CostOpInterface>(op).getFlops() == 0 && givesElements(program);
  EXPECT_EQ(nn::movesElements(op),
            computesNothing && !isa<nn::EmbeddingOp>(op));
  EXPECT_FALSE(nn::aliasesOperands(op) && !nn::movesElements(op));
}

std::string testName(const testing::TestParamInfo<FactsCase> &info) {
  std::string name = nameOf(info.param).drop_front(3).str();
  return name + "_" + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Op, OpFacts, testing::ValuesIn(kFactsCases), testName);

/// What has no value of its own: declarations, and what holds other ops.
bool isStructure(RegisteredOperationName name) {
  return llvm::is_contained({"nn.parameter", "nn.buffer", "nn.fusion",
                             "nn.yield", "nn.recompute_from"},
                            name.getStringRef());
}

// A new op must say what passes ask of it, and stand in the table above.
TEST(OpFactsCoverage, EveryOpHasAllFacts) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect>();
  for (RegisteredOperationName name : opsOf(context, "nn")) {
    SCOPED_TRACE(name.getStringRef().str());
    if (isStructure(name) || name.hasInterface<nn::StateOpInterface>())
      continue;
    EXPECT_TRUE(name.hasInterface<nn::ShardingOpInterface>());
    EXPECT_TRUE(name.hasInterface<nn::CostOpInterface>());
    EXPECT_TRUE(name.hasInterface<nn::PrecisionOpInterface>());
    EXPECT_TRUE(llvm::any_of(kFactsCases, [&](const FactsCase &test) {
      return nameOf(test) == name.getStringRef();
    }));
  }
}

// What may stand in a model has a reverse rule (and VjpTest a case of it) if it
// computes numbers of something.
TEST(OpFactsCoverage, WhatModelsUseIsDifferentiable) {
  for (const FactsCase &test : kFactsCases) {
    Program program(test);
    Operation *op = program.op();
    ASSERT_TRUE(op) << test.op;
    bool hasFloat = llvm::any_of(op->getOperandTypes(), [](Type type) {
      return isa<FloatType>(getElementTypeOrSelf(type));
    });
    if (test.precision != Precision::Later) {
      EXPECT_EQ(isa<nn::DifferentiableOpInterface>(op), hasFloat) << test.op;
    }
  }
}

// Five ops are products of matrices, and attention is made of such; three need
// no buffer of their own; a mean says what it divides by.
TEST(OpFactsCoverage, TraitsAreThoseOfTheirOps) {
  const std::set<StringRef> products = {"nn.linear", "nn.linear_input_grad",
                                        "nn.linear_weight_grad", "nn.matmul",
                                        "nn.accumulate_product"};
  const std::set<StringRef> attention = {"nn.attention", "nn.attention_grad"};
  const std::set<StringRef> aliases = {"nn.reshape", "nn.slice",
                                       "nn.recompute_from"};
  MLIRContext context;
  context.loadDialect<nn::NNDialect>();
  for (RegisteredOperationName name : opsOf(context, "nn")) {
    SCOPED_TRACE(name.getStringRef().str());
    bool isProduct = products.count(name.getStringRef());
    EXPECT_EQ(name.hasTrait<nn::MatrixProduct>(), isProduct);
    EXPECT_EQ(name.hasTrait<nn::ReadByLibrary>(),
              isProduct || attention.count(name.getStringRef()));
    EXPECT_EQ(name.hasTrait<nn::AliasesOperands>(),
              aliases.count(name.getStringRef()) == 1);
    EXPECT_EQ(name.hasTrait<nn::DividesByCount>(),
              llvm::any_of(name.getAttributeNames(), [](StringAttr attribute) {
                return attribute == "count";
              }));
  }
}

// The reverse rule of attention makes the scores again, one of its five
// products.
TEST(OpFactsCoverage, ScoresCountOnceInAModel) {
  for (const FactsCase &test : kFactsCases) {
    Program program(test);
    auto op = cast<nn::CostOpInterface>(program.op());
    int64_t again = isa<nn::AttentionGradOp>(program.op()) ? test.flops / 5 : 0;
    EXPECT_EQ(op.getModelFlops(), test.flops - again) << test.op;
  }
}

// What a model's utilisation is quoted with counts hidden scores, what takes
// time does not: half of a square, and of 8 x 8 scores with a window of w
// 8 w - w^2 / 2.
TEST(OpFactsCoverage, HiddenScoresTakeNoTime) {
  for (auto [view, visible] : {std::pair("", 64.0), std::pair("{causal}", 32.0),
                               std::pair("{causal, window = 8 : i64}", 32.0),
                               std::pair("{causal, window = 4 : i64}", 24.0),
                               std::pair("{causal, window = 1 : i64}", 7.5),
                               std::pair("{cap = 2.0 : f64, causal}", 32.0)}) {
    SCOPED_TRACE(view);
    std::string types = " : tensor<1x8x6x2xf64>, tensor<1x8x2x2xf64>, "
                        "tensor<1x6x8xf64>";
    std::string heads = "%q: tensor<1x8x6x2xf64>, %k: tensor<1x8x2x2xf64>";
    std::string forward =
        std::string("nn.attention %q, %k, %k scale 0.5 ") + view + types;
    std::string gradient =
        std::string("nn.attention_grad %q, %k, %k, %q, %l, %q scale 0.5 ") +
        view + types;
    std::string rest = heads + ", %l: tensor<1x6x8xf64>";
    // Two products of 6 heads, five in the gradient: 2 x 2 operations a score.
    for (auto [arguments, op, products] :
         {std::tuple(heads, forward, 2), std::tuple(rest, gradient, 5)}) {
      Program program({arguments.c_str(),
                       op.c_str(),
                       "",
                       0,
                       nn::PrecisionRule::Matrix,
                       {}});
      ASSERT_TRUE(program.op());
      auto cost = cast<nn::CostOpInterface>(program.op());
      EXPECT_EQ(cost.getFlops(), products * 6 * 4 * 64);
      EXPECT_EQ(cost.getVisibleFlops(), products * 6 * 4 * visible);
    }
  }
}

// Of the tensors above nearly all kernels run over the rows of a 3 x 4.
TEST(OpFactsCoverage, KernelsRunOverTheirSpace) {
  const std::map<StringRef, nn::KernelSpace> others = {
      {"nn.rms_norm_weight_grad", {3, 4, /*columnReduction=*/true}},
      {"nn.layer_norm_weight_grad", {3, 4, /*columnReduction=*/true}},
      {"nn.mse_loss", {1, 12, false}},
      {"nn.divide_by_count", {1, 3, false}}};
  for (const FactsCase &test : kFactsCases) {
    Program program(test);
    ASSERT_TRUE(program.op()) << test.op;
    auto kernel = dyn_cast<nn::KernelOpInterface>(program.op());
    if (!kernel)
      continue;
    auto other = others.find(nameOf(test));
    EXPECT_TRUE(
        kernel.getKernelSpace() ==
        (other == others.end() ? nn::KernelSpace{3, 4, false} : other->second))
        << test.op;
  }
}

// A reshape moves nothing, and a lookup reads the rows that it takes; all
// others have their operands and results once. No box and no joined tensor of
// the cases lies in one piece.
TEST(OpFactsCoverage, BytesAreThoseThatMove) {
  const std::map<StringRef, int64_t> others = {
      {"nn.reshape", 0}, {"nn.embedding", 3 * 4 + 2 * (12 * 8)}};
  for (const FactsCase &test : kFactsCases) {
    Program program(test);
    Operation *op = program.op();
    ASSERT_TRUE(op) << test.op;
    int64_t bytes = 0;
    for (TypeRange types :
         {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
      for (Type type : types)
        bytes += nn::bytesOf(type);
    auto other = others.find(nameOf(test));
    EXPECT_EQ(cast<nn::CostOpInterface>(op).getBytes(),
              other == others.end() ? bytes : other->second)
        << test.op;
  }
}

// A box in one piece is where it was; what is joined behind each other is
// produced there, but for arguments.
TEST(OpFactsCoverage, WhatLiesInOnePieceDoesNotMove) {
  struct Case {
    const char *arguments, *op;
    int64_t bytes;
  };
  const Case cases[] = {
      {"%a: tensor<4x8xf64>",
       "nn.slice %a [1, 0] : tensor<4x8xf64> to tensor<2x8xf64>", 0},
      {"%a: tensor<4x8xf64>",
       "nn.slice %a [1, 2] : tensor<4x8xf64> to tensor<1x5xf64>", 0},
      {"%a: tensor<2x8xf64>, %b: tensor<2x8xf64>",
       "nn.concat %a, %b dim 0 : tensor<2x8xf64>, tensor<2x8xf64> to "
       "tensor<4x8xf64>",
       2 * 2 * (2 * 8 * 8)}};
  for (const Case &test : cases) {
    Program program(
        {test.arguments, test.op, "", 0, nn::PrecisionRule::Operands, {}});
    Operation *op = program.op();
    ASSERT_TRUE(op) << test.op;
    EXPECT_EQ(cast<nn::CostOpInterface>(op).getBytes(), test.bytes) << test.op;
  }
}

/// Every op with state, once.
constexpr const char *kStateOps = R"(
    nn.parameter @w : tensor<4xf32> init #nn.zeros
    nn.buffer @m : tensor<4xf32> init #nn.zeros
    nn.buffer @v : tensor<4xf32> init #nn.zeros
    nn.buffer @p : tensor<4x4xf32> init #nn.zeros
    func.func @f(%g: tensor<4xf32>, %s: tensor<f32>, %t: tensor<i32>) {
      %w = nn.read @w : tensor<4xf32>
      nn.gradient @w, %g : tensor<4xf32>
      nn.accumulate @m, %g : tensor<4xf32>
      nn.accumulate_product @p, %g, %g : tensor<4xf32>, tensor<4xf32>
      nn.write @m, %w : tensor<4xf32>
      nn.clear [@m, @v]
      nn.adamw [@w] moments [@m], [@v](%g) lr %s step %t clip %s {beta1 = 0.9,
        beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1} : tensor<4xf32>
      return
    })";

// The gradient is read; the parameter and two moments are read and written.
TEST(OpFactsCoverage, AnUpdateMovesSevenTensors) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(kStateOps, &context);
  ASSERT_TRUE(module);
  module->walk([](nn::AdamWOp op) {
    auto cost = cast<nn::CostOpInterface>(op.getOperation());
    EXPECT_EQ(cost.getBytes(), 7 * 4 * 4);
    EXPECT_EQ(cost.getFlops(), 0);
  });
}

// Angles lose too many digits in bf16, whatever type the vectors have.
TEST(OpFactsCoverage, OnlyATableOfAnglesIsAlwaysWide) {
  for (const FactsCase &test : kFactsCases) {
    Program program(test);
    Operation *op = program.op();
    ASSERT_TRUE(op) << test.op;
    EXPECT_EQ(cast<nn::PrecisionOpInterface>(op).getWideOperand(),
              isa<nn::RotaryOp>(op) ? &op->getOpOperand(1) : nullptr)
        << test.op;
  }
}

// The statement for exec-verify and the one for everybody else agree.
TEST(OpFactsCoverage, StateEffectsAreMemoryEffects) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(kStateOps, &context);
  ASSERT_TRUE(module);
  using Effect = nn::StateEffect;
  using Effects = std::vector<std::pair<std::string, Effect>>;
  std::map<std::string, Effects> found;
  module->walk([&](nn::StateOpInterface op) {
    auto memory = cast<MemoryEffectOpInterface>(op.getOperation());
    std::string name = op->getName().stripDialect().str();
    SCOPED_TRACE(name);
    op.forEachStateEffect([&](StringRef tensor, Effect effect) {
      found[name].emplace_back(tensor.str(), effect);
      bool both = effect == Effect::Update || effect == Effect::Add;
      EXPECT_EQ(memory.hasEffect<MemoryEffects::Read>(),
                effect == Effect::Read || both);
      EXPECT_EQ(memory.hasEffect<MemoryEffects::Write>(),
                effect != Effect::Read);
    });
  });
  const std::map<std::string, Effects> expected = {
      {"read", {{"w", Effect::Read}}},
      {"gradient", {{"w", Effect::Gradient}}},
      {"accumulate", {{"m", Effect::Add}}},
      {"accumulate_product", {{"p", Effect::Add}}},
      {"write", {{"m", Effect::Write}}},
      {"clear", {{"m", Effect::Clear}, {"v", Effect::Clear}}},
      {"adamw",
       {{"w", Effect::Update}, {"m", Effect::Update}, {"v", Effect::Update}}}};
  EXPECT_EQ(found, expected);
  for (RegisteredOperationName name : opsOf(context, "nn"))
    EXPECT_EQ(name.hasInterface<nn::StateOpInterface>(),
              expected.count(name.stripDialect().str()) == 1)
        << name.getStringRef().str();
}

} // namespace
