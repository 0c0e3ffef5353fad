//===- PlanTest.cpp - Plans by rule and their text ------------------------===//
#include "fsdp/Schedule/Plan.h"
#include "llvm/Support/FormatVariadic.h"
#include <gtest/gtest.h>

using namespace fsdp::schedule;

// Two stacks of blocks: what stands between them is no part of the head.
TEST(Plan, UnitsByRuleHaveDifferentNamesAndSurviveTheirText) {
  llvm::StringRef parameters[] = {"encoder.0.w", "bridge.w", "decoder.0.w",
                                  "norm.w", "output.w"};
  Plan plan = planByRule(parameters, {});
  std::vector<std::string> names;
  for (const Unit &unit : plan.units)
    names.push_back(unit.name);
  EXPECT_EQ(names, (std::vector<std::string>{"encoder.0", "head", "decoder.0",
                                             "head (2)"}));
  std::string text = llvm::formatv("{0:2}", toJSON(plan)).str();
  llvm::Expected<Plan> read = parseJSON(text);
  ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(llvm::formatv("{0:2}", toJSON(*read)).str(), text);
}
