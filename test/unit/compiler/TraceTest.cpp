//===- TraceTest.cpp - Models written in C++ ------------------------------===//
//
// What a newcomer does: write modules, trace them, look at the graph.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Trace/Trace.h"
#include "dialects/NN/ModulePath.h"
#include "dialects/NN/NN.h"
#include "fsdp/Families/Families.h"
#include "fsdp/Families/TraceModel.h"
#include "fsdp/Trace/Module.h"
#include "fsdp/Trace/Summary.h"
#include "mlir/IR/Verifier.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::model;

namespace {

/// x + w2(relu(w1(norm(x)))).
class ResidualBlock : public Layer<ResidualBlock> {
public:
  ResidualBlock(model::Module &parent, StringRef name, int64_t dim)
      : Layer(parent, name), norm(*this, "norm", dim, 1e-5),
        w1(*this, "w1", dim, 4 * dim, normal(0.02), zeros()),
        w2(*this, "w2", 4 * dim, dim, normal(0.02)) {}
  Tensor forward(Tensor x) const { return x + w2(relu(w1(norm(x)))); }

private:
  LayerNorm norm;
  Linear w1, w2;
};

class TwoBlocks : public Model {
public:
  TwoBlocks()
      : blocks(*this, "blocks", 2, [](model::Module &list, int64_t number) {
          return std::make_unique<ResidualBlock>(list, std::to_string(number),
                                                 8);
        }) {}
  std::vector<NamedType> inputs(MLIRContext *context) const override {
    auto type = RankedTensorType::get({4, 8}, Float32Type::get(context));
    return {{"x", type}, {"y", type}};
  }
  std::vector<NamedTensor> forward(ArrayRef<Tensor> inputs) const override {
    Tensor h = inputs[0];
    for (const ResidualBlock &block : blocks)
      h = block(h);
    return {{"loss", mseLoss(h, inputs[1])}};
  }

private:
  ModuleList<ResidualBlock> blocks;
};

} // namespace

TEST(Trace, ParametersAreDeclaredInTheOrderOfTheMembers) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = traceModel(context, TwoBlocks(), "two_blocks");
  ASSERT_TRUE(succeeded(verify(*module)));
  std::vector<std::string> names;
  for (auto parameter : module->getOps<nn::ParameterOp>())
    names.push_back(parameter.getSymName().str());
  EXPECT_EQ(names, (std::vector<std::string>{
                       "blocks.0.norm.weight", "blocks.0.norm.bias",
                       "blocks.0.w1.weight", "blocks.0.w1.bias",
                       "blocks.0.w2.weight", "blocks.1.norm.weight",
                       "blocks.1.norm.bias", "blocks.1.w1.weight",
                       "blocks.1.w1.bias", "blocks.1.w2.weight"}));
}

TEST(Trace, OpsKnowTheirModule) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = traceModel(context, TwoBlocks(), "two_blocks");
  std::vector<std::string> paths;
  module->walk([&](nn::LinearOp linear) {
    paths.push_back(nn::modulePathOf(linear).str());
  });
  EXPECT_EQ(paths, (std::vector<std::string>{"blocks.0.w1", "blocks.0.w2",
                                             "blocks.1.w1", "blocks.1.w2"}));
  // Outside its children a module's ops are its own.
  module->walk([&](nn::AddOp add) {
    StringRef path = nn::modulePathOf(add);
    EXPECT_TRUE(path == "blocks.0" || path == "blocks.1") << path.str();
  });
}

TEST(Trace, SummaryCountsFromTheGraph) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = traceModel(context, TwoBlocks(), "two_blocks");
  ModelSummary summary = summarize(*module);
  // Per block: norm 8 + 8, w1 32 x 8 + 32, w2 8 x 32 = 560.
  EXPECT_EQ(summary.parameters, 2 * 560);
  EXPECT_EQ(summary.tensors, 10);
  EXPECT_EQ(summary.lookedUp, 0);
  EXPECT_EQ(summary.flopsPerToken(), 6 * 2 * 560);
}

TEST(Trace, SpecsCanBeBuiltWithoutTheRegistry) {
  DecoderConfig config = checkpoint::findFamily("llama3")->base;
  config.dim = 64;
  config.layers = 2;
  config.heads = 4;
  config.kvHeads = 2;
  config.ffnDim = 128;
  config.vocab = 32;
  ModelSpec spec;
  spec.name = "small";
  spec.config = config;
  MLIRContext context;
  TraceOptions options;
  options.batch = 2;
  options.seqLen = 16;
  auto module = traceModel(context, spec, options);
  ASSERT_TRUE(static_cast<bool>(module)) << toString(module.takeError());
  ASSERT_TRUE(succeeded(verify(**module)));
  // Tables 2 x 32 x 64; per layer wq, wo 64 x 64, wk, wv 32 x 64, w1, w2, w3
  // 128 x 64, norms 2 x 64; the last norm 64.
  EXPECT_EQ(summarize(**module).parameters,
            4096 + 2 * (2 * 4096 + 2 * 2048 + 3 * 8192 + 128) + 64);
}

TEST(Trace, SequencesBeyondTheModelsLimitAreRefused) {
  ModelSpec spec = llvm::cantFail(findModel("llama3_debug"));
  llvm::cantFail(setModelField(spec, "max_seq_len", "128"));
  MLIRContext context;
  TraceOptions options;
  options.seqLen = 129;
  auto module = traceModel(context, spec, options);
  ASSERT_FALSE(static_cast<bool>(module));
  EXPECT_NE(toString(module.takeError()).find("max_seq_len = 128, not 129"),
            std::string::npos);
}
