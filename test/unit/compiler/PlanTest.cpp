//===- PlanTest.cpp - Plans as text ---------------------------------------===//
#include "fsdp/Schedule/Decisions.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::schedule;

namespace {

/// A module that gathers each of `parameters` and multiplies by it.
OwningOpRef<ModuleOp> gathering(MLIRContext &context,
                                ArrayRef<const char *> parameters) {
  std::string text = "fsdp.mesh @mesh [\"dp\" = 2]\n", body;
  for (auto [i, parameter] : llvm::enumerate(parameters)) {
    std::string n = std::to_string(i),
                name = "@\"" + std::string(parameter) + "\"";
    text += "nn.parameter " + name + " : tensor<4x4xf32> init #nn.zeros\n";
    body += "%w" + n +
            " = fsdp.all_gather %s on @mesh[\"dp\"] dim 0 "
            "{fsdp.parameters = [" +
            name +
            "]} : tensor<2x4xf32> -> "
            "tensor<4x4xf32>\n%x" +
            std::to_string(i + 1) + " = nn.linear %x" + n + ", %w" + n +
            " : tensor<2x4xf32>, tensor<4x4xf32> -> "
            "tensor<2x4xf32>\n";
  }
  text += "func.func @f(%s: tensor<2x4xf32>, %x0: tensor<2x4xf32>) -> "
          "tensor<2x4xf32> {\n" +
          body + "return %x" + std::to_string(parameters.size()) +
          " : tensor<2x4xf32>\n}";
  context.loadDialect<nn::NNDialect, dist::FsdpDialect, func::FuncDialect>();
  return parseSourceString<ModuleOp>(text, &context);
}

std::vector<std::string> bucketsOf(const DecisionPoints &points) {
  Decisions decisions = Decisions::byRule(points, {});
  std::vector<std::string> buckets;
  for (const auto &entry : points.all())
    buckets.push_back(decisions[entry.first].bucket);
  return buckets;
}

// Two stacks of blocks: what stands between them is no part of the head.
TEST(Plan, BucketsByRuleHaveDifferentNames) {
  MLIRContext context;
  auto module = gathering(context, {"encoder.0.w", "bridge.w", "decoder.0.w",
                                    "norm.w", "output.w"});
  EXPECT_EQ(bucketsOf(DecisionPoints(*module)),
            (std::vector<std::string>{"encoder.0", "head", "decoder.0",
                                      "head (2)", "head (2)"}));
}

// Names may hold what means something in a glob; a plan in full still means
// them alone.
TEST(Plan, NamesAreNoGlobs) {
  MLIRContext context;
  auto module = gathering(context, {"layers.0.[ab].w", "layers.1.[ab].w",
                                    "layers.0.a.w", "{x,y}.w", "a*b.w",
                                    "back\\\\slash.w", "b?.w", "bc.w", "[.w"});
  ASSERT_TRUE(module);
  DecisionPoints points(*module);
  Decisions decisions = Decisions::byRule(points, {});
  Plan one;
  one.rules = {{{"fwd layers.0.a.w all_gather"}, {}}};
  one.rules[0].overrides.bucket = "alone";
  ASSERT_FALSE(static_cast<bool>(decisions.apply(one, points)));
  Plan whole = decisions.plan(points);
  Decisions other = Decisions::byRule(points, {UnitPolicy::Whole});
  llvm::Error error = other.apply(whole, points);
  ASSERT_FALSE(static_cast<bool>(error)) << llvm::toString(std::move(error));
  for (const auto &entry : points.all())
    EXPECT_TRUE(decisions[entry.first] == other[entry.first])
        << entry.first.getText().str() << "\n"
        << toJSON(whole);
}

} // namespace
