//===- ModulePathTest.cpp - Paths of modules ------------------------------===//
#include "dialects/NN/ModulePath.h"
#include "dialects/NN/NN.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace fsdp;

TEST(ModulePath, AParameterLiesInAModule) {
  EXPECT_EQ(nn::moduleOfParameter("layers.3.attention.wq.weight"),
            "layers.3.attention.wq");
  EXPECT_EQ(nn::moduleOfParameter("norm.weight"), "norm");
  EXPECT_EQ(nn::moduleOfParameter("rope_table"), "");
}

TEST(ModulePath, AWeightIsCalledAfterItsModule) {
  EXPECT_EQ(nn::shortParameterName("layers.3.wq.weight"), "layers.3.wq");
  EXPECT_EQ(nn::shortParameterName("layers.3.wq.bias"), "layers.3.wq.bias");
  EXPECT_EQ(nn::shortParameterName("w"), "w");
}

TEST(ModulePath, ABlockIsAModuleWithANumber) {
  EXPECT_EQ(nn::blockOf("layers.3.attention.wq.weight"), "layers.3");
  EXPECT_EQ(nn::blockOf("layers.3"), "layers.3");
  EXPECT_EQ(nn::blockOf("layers.3#2"), "layers.3");
  EXPECT_EQ(nn::blockOf("layers.30.wq#12"), "layers.30");
  EXPECT_EQ(nn::blockOf("model.layers.12.mlp"), "model.layers.12");
  EXPECT_EQ(nn::blockOf("0.weight"), "0");
  EXPECT_EQ(nn::blockOf("tok_embeddings.weight"), "");
  EXPECT_EQ(nn::blockOf("w1.weight"), "");
  EXPECT_EQ(nn::blockOf(""), "");
}

TEST(ModulePath, ABlockBelongsToAList) {
  EXPECT_EQ(nn::blockNumberOf("layers.3.attention#2"), "3");
  EXPECT_EQ(nn::blockNumberOf("0.weight"), "0");
  EXPECT_EQ(nn::blockNumberOf("norm"), "");
  EXPECT_EQ(nn::blockListOf("layers.3.attention"), "layers");
  EXPECT_EQ(nn::blockListOf("model.layers.3.attention"), "layers");
  EXPECT_EQ(nn::blockListOf("0.weight"), "");
  EXPECT_EQ(nn::blockListOf("norm"), "");
}

TEST(ModulePath, ParentAndFirstComponent) {
  EXPECT_EQ(nn::parentOf("layers.3.attention"), "layers.3");
  EXPECT_EQ(nn::parentOf("norm"), "");
  EXPECT_EQ(nn::firstComponent("tok_embeddings#2"), "tok_embeddings");
  EXPECT_EQ(nn::firstComponent("layers.3"), "layers");
  EXPECT_EQ(nn::firstComponent("w"), "w");
}

TEST(ModulePath, TheCommonPathIsMadeOfWholeComponents) {
  EXPECT_EQ(nn::commonPath({"layers.3.attention.wq", "layers.3.attention"}),
            "layers.3.attention");
  EXPECT_EQ(nn::commonPath({"layers.3.w1", "layers.3.w2"}), "layers.3");
  EXPECT_EQ(nn::commonPath({"layers.1.w", "layers.11.w"}), "layers");
  EXPECT_EQ(nn::commonPath({"norm", "output"}), "");
  EXPECT_EQ(nn::commonPath({"norm"}), "norm");
  EXPECT_EQ(nn::commonPath({}), "");
}

TEST(ModulePath, SeveralCallsHaveTheModuleInCommon) {
  EXPECT_EQ(nn::commonPath({"table#2", "table#2"}), "table#2");
  EXPECT_EQ(nn::commonPath({"table", "table#2"}), "table");
  EXPECT_EQ(nn::commonPath({"table#3", "table#2"}), "table");
}

TEST(ModulePath, CallsAreNumberedFromTheSecond) {
  EXPECT_EQ(nn::callPath("output", 1), "output");
  EXPECT_EQ(nn::callPath("output", 12), "output#12");
  EXPECT_EQ(nn::callOf("output"), 1u);
  EXPECT_EQ(nn::callOf("output#12"), 12u);
  EXPECT_EQ(nn::withoutCall("output#12"), "output");
  EXPECT_EQ(nn::withoutCall("output"), "output");
  // What is no number is part of the name.
  EXPECT_EQ(nn::withoutCall("c#sharp"), "c#sharp");
  EXPECT_EQ(nn::callOf("c#sharp"), 1u);
}

TEST(ModulePath, NumbersBecomeStars) {
  EXPECT_EQ(nn::withoutNumbers("layers.17.attention.wq.weight"),
            "layers.*.attention.wq.weight");
  EXPECT_EQ(nn::withoutNumbers("layers.w1"), "layers.w1");
  EXPECT_EQ(nn::withoutNumbers("norm"), "norm");
}

TEST(ModulePath, NamesOfCopiesShareTheirText) {
  EXPECT_EQ(nn::commonName({"layers.9.wq", "layers.10.wq"}), "layers.*.wq");
  EXPECT_EQ(nn::commonName({"layers.1.w", "layers.11.w"}), "layers.*.w");
  EXPECT_EQ(nn::commonName({"fwd layers.1", "fwd layers.2"}), "fwd layers.*");
  EXPECT_EQ(nn::commonName({"loss", "loss"}), "loss");
  EXPECT_EQ(nn::commonName({"tok_embed", "layers.0.add"}), "*d");
  EXPECT_TRUE(nn::isFragment("*d"));
  EXPECT_FALSE(nn::isFragment("layers.*.wq"));
  EXPECT_FALSE(nn::isFragment("norm"));
}

TEST(ModulePath, ALabelCanLoseItsNumbers) {
  EXPECT_EQ(nn::labelOf("layers.3.wq", "linear"), "layers.3.wq: linear");
  EXPECT_EQ(nn::labelWithoutNumbers("layers.3: add.2"), "layers.*: add.2");
  EXPECT_EQ(nn::labelWithoutNumbers("layers.3.wq"), "layers.*.wq");
  EXPECT_EQ(nn::labelWithoutNumbers("3"), "*");
}

TEST(ModulePath, ANameCanLoseItsBlock) {
  EXPECT_EQ(nn::withoutBlock("layers.*.attention.q"), "attention.q");
  EXPECT_EQ(nn::withoutBlock("layers.3.attention.q"), "attention.q");
  EXPECT_EQ(nn::withoutBlock("norm"), "norm");
}

TEST(ModulePath, AScopeStampsWhatIsNewAndSaysNothing) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect>();
  OpBuilder builder(&context);
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder, loc);
  builder.setInsertionPointToEnd(module->getBody());
  auto type = RankedTensorType::get({4}, builder.getF32Type());
  auto read = [&] { return nn::ReadOp::create(builder, loc, type, "w"); };
  nn::ReadOp before = read(), inside, nested, again;
  nn::ConstantOp constant;
  {
    nn::ModuleScope outer(builder, builder.getStringAttr("outer"));
    inside = read();
    {
      nn::ModuleScope inner(builder, builder.getStringAttr("inner"));
      nested = read();
    }
    again = read();
    constant = nn::ConstantOp::create(builder, loc,
                                      DenseElementsAttr::get(type, 1.0f));
  }
  nn::ReadOp after = read();
  EXPECT_EQ(nn::modulePathOf(before), "");
  EXPECT_EQ(nn::modulePathOf(inside), "outer");
  EXPECT_EQ(nn::modulePathOf(nested), "inner");
  EXPECT_EQ(nn::modulePathOf(again), "outer");
  EXPECT_EQ(nn::modulePathOf(constant), "");
  EXPECT_EQ(nn::modulePathOf(after), "");
  EXPECT_EQ(nn::commonModule({inside, again}).getValue(), "outer");
  EXPECT_FALSE(nn::commonModule({inside, nested}));
  EXPECT_FALSE(nn::commonModule({inside, after}));
}
