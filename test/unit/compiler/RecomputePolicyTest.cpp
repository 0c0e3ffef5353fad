//===- RecomputePolicyTest.cpp - What policies compute again --------------===//
#include "CompareProblem.h"
#include "fsdp/Families/Families.h"
#include "fsdp/Schedule/RecomputedValues.h"
#include "fsdp/Support/Error.h"
#include <gtest/gtest.h>
#include <set>

using namespace mlir;
using namespace fsdp;

namespace {

/// A Llama of four blocks.
class RecomputePolicies : public testing::Test {
protected:
  RecomputePolicies() : program(context, setting()) {
    EXPECT_TRUE(program.isGood);
  }

  static ProblemSetting setting() {
    DecoderConfig config = checkpoint::findFamily("llama3")->base;
    config.dim = 64;
    config.layers = 4;
    config.heads = 4;
    config.kvHeads = 2;
    config.ffnDim = 160;
    config.vocab = 256;
    return {"small", {"small", config}, "dp_shard=2", 2, 128};
  }

  /// Addresses without "fwd ".
  std::set<std::string> valuesOf(const std::string &policy) {
    schedule::DecisionPoints points(program.addressed());
    std::set<std::string> found;
    for (dist::OriginAttr origin :
         schedule::recomputedValues(points, parseRecomputePolicy(policy)))
      found.insert(origin.getText().substr(4).str());
    return found;
  }

  std::string errorOf(const std::string &policy) {
    try {
      valuesOf(policy);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  ProblemCase program;
};

TEST_F(RecomputePolicies, FullIsAllButWhatTheNextBlockTakes) {
  std::set<std::string> full = valuesOf("full"), expected;
  for (const char *number : {"0", "1", "2", "3"})
    for (const char *op :
         {".attention_norm rms_norm", ".attention.wq linear",
          ".attention rotary", ".attention.wk linear", ".attention rotary#2",
          ".attention.wv linear", ".attention attention",
          ".attention.wo linear", " add", ".ffn_norm rms_norm",
          ".feed_forward.w1 linear", ".feed_forward silu",
          ".feed_forward.w3 linear", ".feed_forward mul",
          ".feed_forward.w2 linear"})
      expected.insert("layers." + std::string(number) + op);
  EXPECT_EQ(full, expected);
  EXPECT_EQ(valuesOf("none"), std::set<std::string>());
}

TEST_F(RecomputePolicies, EverySecondBlockIsHalfOfFull) {
  std::set<std::string> expected;
  for (const std::string &value : valuesOf("full"))
    if (value.compare(0, 8, "layers.1") == 0 ||
        value.compare(0, 8, "layers.3") == 0)
      expected.insert(value);
  EXPECT_EQ(valuesOf("every-2"), expected);
  EXPECT_EQ(2 * expected.size(), valuesOf("full").size());
  EXPECT_EQ(valuesOf("every-1"), valuesOf("full"));
  EXPECT_EQ(4 * valuesOf("every-4").size(), valuesOf("full").size());
}

TEST_F(RecomputePolicies, SelectiveKeepsAttentionAndEverySecondMatmul) {
  std::set<std::string> expected = valuesOf("full");
  for (const char *number : {"0", "1", "2", "3"})
    for (const char *kept : {".attention attention", ".attention.wq linear",
                             ".attention.wv linear", ".feed_forward.w1 linear",
                             ".feed_forward.w2 linear"})
      EXPECT_EQ(expected.erase("layers." + std::string(number) + kept), 1u);
  EXPECT_EQ(valuesOf("selective"), expected);
  EXPECT_EQ(valuesOf("eager"), expected);
}

TEST_F(RecomputePolicies, ListsTakeNamesOfOpsAndOfPyTorch) {
  EXPECT_EQ(valuesOf("save:linear|attention"), valuesOf("sac"));
  EXPECT_EQ(valuesOf("save:aten.mm.default|"
                     "aten._scaled_dot_product_flash_attention.default"),
            valuesOf("sac"));
  EXPECT_EQ(valuesOf("recompute:layers.2.*::silu|rotary#2").size(), 5u);
  EXPECT_EQ(valuesOf("recompute:layers.{0,3}.ffn_norm::_fused_rms_norm"),
            (std::set<std::string>{"layers.0.ffn_norm rms_norm",
                                   "layers.3.ffn_norm rms_norm"}));
}

TEST_F(RecomputePolicies, AutoIsFreeButNoneBesideAPlan) {
  EXPECT_EQ(recomputePolicyFor("auto", /*saysOfValues=*/false), "free");
  EXPECT_EQ(recomputePolicyFor("auto", /*saysOfValues=*/true), "none");
  for (const char *named : {"none", "free", "every-2", "half"})
    for (bool saysOfValues : {false, true})
      EXPECT_EQ(recomputePolicyFor(named, saysOfValues), named);
}

TEST_F(RecomputePolicies, WhatMatchesNothingIsNamed) {
  EXPECT_EQ(
      errorOf("save:linear|gelu")
          .find("compile.recompute: 'gelu' matches no value of a block; what "
                "can be matched: layers.*.attention_norm::rms_norm, "),
      0u);
  EXPECT_EQ(errorOf("recompute:output::linear")
                .find("compile.recompute: 'output::linear' matches no value"),
            0u);
  EXPECT_NE(errorOf("save:[::linear").find("'[' is not a glob"),
            std::string::npos);
  EXPECT_EQ(errorOf("every-5"), "compile.recompute: 'every-5' names no block: "
                                "the model has fewer");
  for (const char *bad : {"", "half", "Full", "every-", "every-0", "every--1",
                          "every-2x", "every-99999999999999999999", "save:",
                          "save:a||b", "recompute:::silu", "save:layers.0::"})
    EXPECT_NE(errorOf(bad).find("; say auto, none, free, full, every-N, "),
              std::string::npos)
        << bad;
}

} // namespace
