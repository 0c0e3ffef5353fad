//===- ProblemTest.cpp - A problem's order is the compiler's --------------===//
//
// Random decisions for small models: order() and live() give, position by
// position, the work and the live bytes of the program that the passes give,
// and refuse what they refuse. FSDP_PROBLEM_CANDIDATES=N tries N plans on each
// of the large models too.
//
//===----------------------------------------------------------------------===//
#include "CompareProblem.h"
#include "RandomProgram.h"
#include "fsdp/Families/Families.h"
#include "fsdp/Schedule/ProblemText.h"
#include "mlir/Transforms/Passes.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace fsdp;

namespace {

ModelSpec small(int64_t layers, bool tied, const char *family = "llama3") {
  DecoderConfig config = checkpoint::findFamily(family)->base;
  config.kvHeads = config.kvHeads == config.heads ? 4 : 2;
  config.dim = 32;
  config.layers = layers;
  config.heads = 4;
  config.ffnDim = 48;
  config.vocab = 64;
  config.tied = tied;
  return {"small", config};
}

/// What plans for one problem came to.
struct Tally {
  int applied = 0, places = 0, wrong = 0;
  double worst = 0, evaluated = 0, compiled = 0;
};

void tryPlans(ProblemCase &program, const std::string &name, unsigned seed,
              int count, int packEvery, Tally &tally) {
  std::string text = problem::print(program.problem);
  EXPECT_EQ(problem::print(problem::parse(text, "p")), text) << name;
  schedule::DecisionPoints points(program.addressed());
  PlansForProblems plans(seed, points);
  for (int i = 0; i < count; ++i) {
    std::optional<schedule::Plan> plan;
    if (i > 0)
      plan = plans.next();
    Compared result = program.compare(plan, /*packs=*/i % packEvery == 0);
    if (!result.difference.empty() && ++tally.wrong <= 2)
      ADD_FAILURE() << name << ", plan " << i << ": " << result.difference
                    << (plan && tally.wrong == 1 ? schedule::toJSON(*plan)
                                                 : "");
    tally.applied += !result.isRefused;
    tally.places += !result.isRefused && result.namesPlaces;
    tally.worst = std::max(tally.worst, result.worst);
    tally.evaluated += result.evaluated;
    tally.compiled += result.compiled;
  }
}

void print(const std::string &name, int count, const Tally &tally) {
  std::printf("%s: %d of %d plans applied (%d name addresses), %d differ, "
              "largest difference of a "
              "peak %.4f %%; %.3f ms against %.1f ms\n",
              name.c_str(), tally.applied, count, tally.places, tally.wrong,
              100 * tally.worst, 1e3 * tally.evaluated / count,
              1e3 * tally.compiled / count);
}

/// Tries `count` plans; gives how many were applied.
int tryPlans(const ProblemSetting &setting, unsigned seed, int count,
             int packEvery) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  ProblemCase program(context, setting);
  EXPECT_TRUE(program.isGood) << setting.name;
  if (!program.isGood)
    return 0;
  Tally tally;
  tryPlans(program, setting.name, seed, count, packEvery, tally);
  print(setting.name, count, tally);
  return tally.applied;
}

struct CompileVariant {
  std::string name;
  int64_t microbatches = 1;
  CompileOptions::Compile compile = {};
};

std::vector<CompileVariant> compileVariants() {
  std::vector<CompileVariant> variants = {{"fast reductions", 1},
                                          {"reference attention", 1},
                                          {"no fusion", 1},
                                          {"gathers kept over microbatches", 4},
                                          {"reduced once", 4},
                                          {"gathers kept, reduced once", 4},
                                          {"fast, no fusion, reduced once", 4},
                                          {"wide products", 1},
                                          {"wide, gathers kept", 4},
                                          {"products add", 4}};
  variants[0].compile.reduce = ReduceOrder::Fast;
  variants[1].compile.attention = AttentionKernel::Reference;
  variants[2].compile.fuse = Fusion::None;
  variants[3].compile.accumulateGathers = AccumulateGathers::Keep;
  variants[4].compile.accumulateReduce = AccumulateReduce::Once;
  variants[5].compile.accumulateGathers = AccumulateGathers::Keep;
  variants[5].compile.accumulateReduce = AccumulateReduce::Once;
  variants[6].compile.reduce = ReduceOrder::Fast;
  variants[6].compile.fuse = Fusion::None;
  variants[6].compile.accumulateReduce = AccumulateReduce::Once;
  variants[7].compile.wideProducts = true;
  variants[8].compile.wideProducts = true;
  variants[8].compile.accumulateGathers = AccumulateGathers::Keep;
  variants[9].compile.accumulateReduce = AccumulateReduce::Once;
  variants[9].compile.accumulateProducts = AccumulateProducts::Add;
  return variants;
}

TEST(Problem, OrderAndLiveBytesAreTheCompilers) {
  std::vector<ProblemSetting> settings = {
      {"dp 4", small(4, false), "dp_shard=4"},
      {"dp 3, f32, test", small(3, false), "dp_shard=3", 2, 32,
       ParamDtype::Float32, ShardMode::Auto, 1, 1, "test"},
      {"tied", small(4, true), "dp_shard=4"},
      {"dp 2 x tp 2", small(4, false), "dp_shard=2,tp=2:tensor", 2},
      {"hybrid", small(3, false), "dp_replicate=2,dp_shard=2"},
      {"replicate", small(3, false), "dp_shard=4", 1, 64, ParamDtype::BFloat16,
       ShardMode::Replicate},
      {"4 microbatches", small(4, false), "dp_shard=4", 1, 64,
       ParamDtype::BFloat16, ShardMode::Auto, 4},
      {"4 loss chunks", small(3, false), "dp_shard=4", 2, 64,
       ParamDtype::BFloat16, ShardMode::Auto, 1, 4},
      {"tied, dp 2 x tp 2, 4 microbatches", small(3, true),
       "dp_shard=2,tp=2:tensor", 2, 64, ParamDtype::BFloat16, ShardMode::Auto,
       4},
      {"mlp", {"mlp", MlpConfig{32, 4}}, "dp_shard=4", 4},
      {"mlp, f32, cpu",
       {"mlp", MlpConfig{32, 4}},
       "dp_replicate=2,dp_shard=2",
       4,
       1,
       ParamDtype::Float32,
       ShardMode::Auto,
       1,
       1,
       "cpu"},
      {"cpu", small(3, false), "dp_shard=4", 1, 64, ParamDtype::BFloat16,
       ShardMode::Auto, 1, 1, "cpu"}};
  for (const CompileVariant &variant : compileVariants())
    settings.push_back({variant.name, small(3, false), "dp_shard=4", 1, 64,
                        ParamDtype::BFloat16, ShardMode::Auto,
                        variant.microbatches, 1, "cuda", variant.compile});
  for (const char *target : {"cuda", "cpu"})
    for (const char *mesh : {"dp_shard=6", "dp_replicate=3,dp_shard=4"})
      settings.push_back({std::string("nodes of 2, ") + mesh + ", " + target,
                          small(3, false),
                          mesh,
                          1,
                          64,
                          ParamDtype::BFloat16,
                          ShardMode::Auto,
                          1,
                          1,
                          target,
                          {},
                          2});
  for (const char *mesh : {"dp_shard=4", "dp_shard=6", "dp_shard=4,tp=2:tensor",
                           "dp_replicate=2,dp_shard=4"})
    for (int64_t microbatches : {1, 4})
      settings.push_back({std::string("again from 2, ") + mesh,
                          small(3, false),
                          mesh,
                          4,
                          64,
                          ParamDtype::BFloat16,
                          ShardMode::Auto,
                          microbatches,
                          1,
                          microbatches == 1 ? "cuda" : "cpu",
                          {},
                          0,
                          2});
  for (const char *mesh :
       {"dp_shard=4", "dp_replicate=2,dp_shard=3", "dp_shard=2,tp=2:tensor"})
    for (const char *target : {"cuda", "cpu"})
      for (int64_t microbatches : {1, 2}) {
        settings.push_back(
            {std::string("embedding rows, ") + mesh + ", " + target,
             small(3, false), mesh, 1, 8});
        settings.back().target = target;
        settings.back().compile.embeddingRows = true;
        settings.back().microbatches = microbatches;
      }
  // One sum over rows in a kernel, and several.
  for (const char *family : {"llama3", "gpt2", "gemma2"})
    for (const char *mesh : {"dp_shard=4", "dp_shard=2,tp=2:tensor"})
      for (int64_t microbatches : {1, 2})
        settings.push_back(
            {std::string("sums over rows, ") + family + ", " + mesh,
             small(3, false, family), mesh, 1, 64, ParamDtype::BFloat16,
             ShardMode::Auto, microbatches, 1, "test"});
  // Weights that a rank stores whole, side by side.
  for (ParamDtype type : {ParamDtype::BFloat16, ParamDtype::Float32})
    for (const char *mesh : {"dp_shard=4", "dp_shard=2,tp=2:tensor"})
      for (int64_t microbatches : {1, 2}) {
        settings.push_back({std::string("wide, replicate, ") + mesh,
                            small(3, false), mesh, 1, 64, type,
                            ShardMode::Replicate, microbatches, 1,
                            microbatches == 1 ? "cuda" : "test"});
        settings.back().compile.wideProducts = true;
        settings.back().compile.computeCopy = true;
      }
  int applied = 0;
  for (auto [seed, setting] : llvm::enumerate(settings))
    applied += tryPlans(setting, seed, 20, 5);
  EXPECT_GT(applied, 240);
}

/// A random program with random placements up to fsdp-address; false if passes
/// before refuse it.
bool makeAddressed(RandomProgram &random, bool update) {
  MLIRContext *context = random.get().getContext();
  random.place();
  if (failed(makeStep(random.get(), update)))
    return false;
  random.pinSome();
  if (failed(runPasses(random.get(), createCSEPass(), createPropagate(),
                       createExpand())))
    return false;
  PassManager manager(context);
  manager.addNestedPass<func::FuncOp>(createAddress());
  return succeeded(manager.run(random.get()));
}

TEST(Problem, OrderAndLiveBytesOfRandomPrograms) {
  constexpr int kPlans = 4;
  Tally tally;
  int count = 0;
  for (int seed = 0; seed < programs(); ++seed) {
    PlacedContext context;
    RandomProgram random(context, seed);
    std::string name = "random program " + std::to_string(seed);
    ASSERT_TRUE(makeAddressed(random, seed % 2 == 1)) << name;
    ProblemCase program(context, random.get(), seed % 3 == 0 ? "cuda" : "test");
    ASSERT_TRUE(program.isGood) << name;
    tryPlans(program, name, seed, kPlans, kPlans, tally);
    count += kPlans;
  }
  print("random programs", count, tally);
  EXPECT_GT(tally.applied, count / 2);
}

TEST(Problem, OrderAndLiveBytesOfLargeModels) {
  const char *count = std::getenv("FSDP_PROBLEM_CANDIDATES");
  if (!count)
    GTEST_SKIP() << "FSDP_PROBLEM_CANDIDATES is not set";
  auto large = [](const char *name, const char *mesh, int64_t sequence,
                  int64_t microbatches = 1) {
    ProblemSetting setting;
    setting.name = std::string(name) + " on " + mesh;
    setting.spec = llvm::cantFail(findModel(name));
    setting.mesh = mesh;
    setting.sequence = sequence;
    setting.microbatches = microbatches;
    return setting;
  };
  std::vector<ProblemSetting> settings = {
      large("llama3_8b", "dp_shard=8", 8192),
      large("llama3_8b", "dp_shard=8,tp=2:tensor", 4096),
      large("llama3_8b", "dp_shard=64", 2048, 4),
      large("llama3_70b", "dp_shard=64", 4096),
      large("llama3_405b", "dp_shard=512", 4096)};
  if (const char *only = std::getenv("FSDP_PROBLEM_MODEL"))
    llvm::erase_if(settings, [&](const ProblemSetting &setting) {
      return setting.name.find(only) == std::string::npos;
    });
  int applied = 0;
  for (auto [seed, setting] : llvm::enumerate(settings))
    applied += tryPlans(setting, 100 + seed, std::atoi(count), 50);
  EXPECT_GT(applied, 0);
}

} // namespace
