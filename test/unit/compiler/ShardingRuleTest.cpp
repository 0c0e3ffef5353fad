//===- ShardingRuleTest.cpp - The sharding rule of every nn op ------------===//
#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace fsdp;

namespace {

struct RuleCase {
  const char *name;
  const char *arguments;
  const char *op;
  const char *rule;
};

void PrintTo(const RuleCase &rule, std::ostream *out) { *out << rule.name; }

const RuleCase kCases[] = {
    // Pointwise: any dimension, and sums may stay parts.
    {"Add", "%a: tensor<3x4xf32>, %b: tensor<3x4xf32>",
     "nn.add %a, %b : tensor<3x4xf32>", "0 1, 0 1 -> 0 1 (additive)"},
    {"Mul", "%a: tensor<3x4xf32>, %b: tensor<3x4xf32>",
     "nn.mul %a, %b : tensor<3x4xf32>", "0 1, 0 1 -> 0 1"},
    {"Cast", "%a: tensor<3x4xf32>",
     "nn.cast %a : tensor<3x4xf32> to tensor<3x4xbf16>", "0 1 -> 0 1"},
    {"Constant", "", "nn.constant dense<1.0> : tensor<3x4xf32>", " -> 0 1"},
    // Moves of elements.
    {"ReshapeSplits", "%a: tensor<4x12xf32>",
     "nn.reshape %a : tensor<4x12xf32> to tensor<4x3x4xf32>",
     "0 (1 2) -> 0 1 2 (additive)"},
    {"ReshapeJoins", "%a: tensor<4x3x5xf32>",
     "nn.reshape %a : tensor<4x3x5xf32> to tensor<12x5xf32>",
     "0 1 2 -> (0 1) 2 (additive)"},
    {"ReshapeAcross", "%a: tensor<6x4xf32>",
     "nn.reshape %a : tensor<6x4xf32> to tensor<4x6xf32>",
     "(0 1!) 4! -> (0 2!) 3! (additive)"},
    {"ReshapeUnits", "%a: tensor<1x6x1xf32>",
     "nn.reshape %a : tensor<1x6x1xf32> to tensor<6xf32>",
     "() 0 () -> 0 (additive)"},
    {"Transpose", "%a: tensor<3x4x5xf32>",
     "nn.transpose %a [2, 0, 1] : tensor<3x4x5xf32> to tensor<5x3x4xf32>",
     "0 1 2 -> 2 0 1 (additive)"},
    {"Slice", "%a: tensor<4x8xf32>",
     "nn.slice %a [0, 4] : tensor<4x8xf32> to tensor<4x2xf32>",
     "0 1! -> 0 2! (additive)"},
    {"Pad", "%a: tensor<4x2xf32>",
     "nn.pad %a [0, 4] : tensor<4x2xf32> to tensor<4x8xf32>",
     "0 1! -> 0 2! (additive)"},
    {"Concat", "%a: tensor<4x2xf32>, %b: tensor<4x6xf32>",
     "nn.concat %a, %b dim 1 : tensor<4x2xf32>, tensor<4x6xf32> to "
     "tensor<4x8xf32>",
     "0 2!, 0 3! -> 0 1! (additive)"},
    {"Broadcast", "%a: tensor<1x8xf32>",
     "nn.broadcast %a [0, 2] : tensor<1x8xf32> to tensor<3x4x8xf32>",
     "() 2 -> 0 1 2"},
    // Reductions: a missing dimension makes a partial sum or maximum.
    {"Sum", "%a: tensor<3x4xf32>",
     "nn.sum %a [1] : tensor<3x4xf32> to tensor<3xf32>", "0 1 -> 0"},
    {"Max", "%a: tensor<3x4xf32>",
     "nn.max %a [0] : tensor<3x4xf32> to tensor<4xf32>", "0 1 -> 1 (max)"},
    {"MaxGrad", "%a: tensor<3x4xf32>, %m: tensor<3xf32>, %d: tensor<3xf32>",
     "nn.max_grad %a, %m, %d [1] : tensor<3x4xf32>, tensor<3xf32>",
     "0 1!, 0, 0 -> 0 1!"},
    // Layers.
    {"Linear", "%a: tensor<2x3x4xf32>, %w: tensor<5x4xf32>",
     "nn.linear %a, %w : tensor<2x3x4xf32>, tensor<5x4xf32> -> "
     "tensor<2x3x5xf32>",
     "0 1 i, o i -> 0 1 o"},
    {"LinearWithBias",
     "%a: tensor<3x4xf32>, %w: tensor<5x4xf32>, %b: tensor<5xf32>",
     "nn.linear %a, %w bias %b : tensor<3x4xf32>, tensor<5x4xf32>, "
     "tensor<5xf32> -> tensor<3x5xf32>",
     "0 i!, o i!, o -> 0 o"},
    {"LinearInputGrad", "%d: tensor<2x3x5xf32>, %w: tensor<5x4xf32>",
     "nn.linear_input_grad %d, %w : tensor<2x3x5xf32>, tensor<5x4xf32> -> "
     "tensor<2x3x4xf32>",
     "0 1 o, o i -> 0 1 i"},
    {"LinearWeightGrad", "%d: tensor<2x3x5xf32>, %a: tensor<2x3x4xf32>",
     "nn.linear_weight_grad %d, %a : tensor<2x3x5xf32>, tensor<2x3x4xf32> -> "
     "tensor<5x4xf32>",
     "0 1 o, 0 1 i -> o i"},
    {"LinearWeightGradWithSum",
     "%d: tensor<2x3x5xf32>, %a: tensor<2x3x4xf32>, %s: tensor<5x4xf32>",
     "nn.linear_weight_grad %d, %a sum %s : tensor<2x3x5xf32>, "
     "tensor<2x3x4xf32>, tensor<5x4xf32> -> tensor<5x4xf32>",
     "0! 1! o, 0! 1! i, o i -> o i"},
    {"Matmul", "%a: tensor<2x3x4xf32>, %b: tensor<2x5x4xf32>",
     "nn.matmul %a, %b {transpose_rhs} : tensor<2x3x4xf32>, tensor<2x5x4xf32> "
     "-> tensor<2x3x5xf32>",
     "0 m k, 0 n k -> 0 m n"},
    {"RmsNorm", "%a: tensor<2x3x4xf32>, %w: tensor<4xf32>",
     "nn.rms_norm %a, %w eps 1.0e-5 : tensor<2x3x4xf32>, tensor<4xf32>, "
     "tensor<2x3xf32>",
     "0 1 h!, h! -> 0 1 h!, 0 1"},
    {"RmsNormWeightGrad",
     "%a: tensor<3x4xf32>, %r: tensor<3xf32>, %d: tensor<3x4xf32>",
     "nn.rms_norm_weight_grad %a, %r, %d : tensor<3x4xf32>, tensor<3xf32> to "
     "tensor<4xf32>",
     "0 h!, 0, 0 h! -> h!"},
    {"Softmax", "%a: tensor<3x4xf32>", "nn.softmax %a : tensor<3x4xf32>",
     "0 h! -> 0 h!"},
    {"RotaryTableAsLong", "%a: tensor<2x8x3x4xf32>, %t: tensor<8x2x2xf32>",
     "nn.rotary adjacent %a, %t : tensor<2x8x3x4xf32>, tensor<8x2x2xf32>",
     "b s a d!, s p! c! -> b s a d!"},
    {"RotaryTableLonger", "%a: tensor<2x8x3x4xf32>, %t: tensor<16x2x2xf32>",
     "nn.rotary adjacent %a, %t : tensor<2x8x3x4xf32>, tensor<16x2x2xf32>",
     "b s! a d!, t! p! c! -> b s! a d!"},
    // Six query heads read two key heads: (k g) = 2 x 3.
    {"Attention", "%q: tensor<1x4x6x8xf32>, %k: tensor<1x5x2x8xf32>",
     "nn.attention %q, %k, %k scale 0.5 : tensor<1x4x6x8xf32>, "
     "tensor<1x5x2x8xf32>, tensor<1x6x4xf32>",
     "b q (k g) d!, b s! k d!, b s! k d! -> b q (k g) d!, b (k g) q"},
    {"AttentionCausal", "%q: tensor<1x4x6x8xf32>, %k: tensor<1x4x2x8xf32>",
     "nn.attention %q, %k, %k scale 0.5 {causal} : tensor<1x4x6x8xf32>, "
     "tensor<1x4x2x8xf32>, tensor<1x6x4xf32>",
     "b q! (k g) d!, b s! k d!, b s! k d! -> b q! (k g) d!, b (k g) q!"},
    {"Embedding", "%i: tensor<2x3xi32>, %t: tensor<7x4xf32>",
     "nn.embedding %i, %t : tensor<2x3xi32>, tensor<7x4xf32> -> "
     "tensor<2x3x4xf32>",
     "0 1, v! e -> 0 1 e"},
    {"CrossEntropy", "%l: tensor<2x3x7xf32>, %t: tensor<2x3xi32>",
     "nn.cross_entropy %l, %t ignore_index -100 : tensor<2x3x7xf32>, "
     "tensor<2x3xi32>, tensor<2x3xf32>",
     "0 1 c!, 0 1 -> 0 1, 0 1"},
    {"CrossEntropyGrad",
     "%l: tensor<2x3x7xf32>, %t: tensor<2x3xi32>, %s: tensor<2x3xf32>",
     "nn.cross_entropy_grad %l, %t, %s, %s ignore_index -100 : "
     "tensor<2x3x7xf32>, tensor<2x3xi32>, tensor<2x3xf32>",
     "0 1 c!, 0 1, 0 1, 0 1 -> 0 1 c!"},
    {"CountLabels", "%t: tensor<2x3xi32>",
     "nn.count_labels %t ignore_index -100 : tensor<2x3xi32> -> tensor<i64>",
     "0 1 -> "},
    {"CountLabelsOfParts", "%t: tensor<6x3xi32>",
     "nn.count_labels %t ignore_index -100 : tensor<6x3xi32> -> tensor<2xi64>",
     "(0 1) 2 -> 0"},
    {"DivideByCount", "%s: tensor<f32>, %n: tensor<i64>",
     "nn.divide_by_count %s, %n : tensor<f32>, tensor<i64>", ",  -> "},
    {"DivideByCounts", "%s: tensor<2xf32>, %n: tensor<2xi64>",
     "nn.divide_by_count %s, %n : tensor<2xf32>, tensor<2xi64>", "0, 0 -> 0"},
    {"MseLoss", "%a: tensor<3x4xf32>, %b: tensor<3x4xf32>",
     "nn.mse_loss %a, %b count 12 : tensor<3x4xf32>, tensor<f32>",
     "0 1, 0 1 -> "},
    // The gradient norm.
    {"AbsMax", "%a: tensor<3x4xf32>, %b: tensor<5xf32>",
     "nn.abs_max %a, %b : tensor<3x4xf32>, tensor<5xf32> -> tensor<f32>",
     "0 1, 2 ->  (max)"},
    {"SumSquares", "%m: tensor<f32>, %a: tensor<3x4xf32>",
     "nn.sum_squares %m, %a : tensor<f32>, tensor<3x4xf32> -> tensor<2xi64>",
     ", 0 1 -> 2!"},
};

class ShardingRuleTest : public testing::TestWithParam<RuleCase> {};

TEST_P(ShardingRuleTest, IsAsWritten) {
  const RuleCase &rule = GetParam();
  MLIRContext context;
  context.loadDialect<nn::NNDialect, func::FuncDialect>();
  // The results need no names; those of several are written with a count.
  std::string text = "func.func @f(" + std::string(rule.arguments) + ") {\n";
  for (const char *results : {"%y = ", "%y:2 = "}) {
    ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
        text + results + rule.op + "\n return\n}", &context);
    if (!module)
      continue;
    module->walk([&](nn::ShardingOpInterface op) {
      nn::ShardingRule actual = op.getShardingRule();
      std::string written = actual.str();
      if (actual.passesPartial)
        written += " (additive)";
      if (actual.partial == nn::PartialKind::Max)
        written += " (max)";
      EXPECT_EQ(written, rule.rule);
    });
    return;
  }
  FAIL() << "does not parse";
}

INSTANTIATE_TEST_SUITE_P(Ops, ShardingRuleTest, testing::ValuesIn(kCases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
