//===- ProblemTest.cpp - A problem's order is the compiler's --------------===//
//
// Random decisions for small models: order() and live() give, position by
// position, the work and the live bytes of the program that the passes give,
// and refuse what they refuse. FSDP_PROBLEM_CANDIDATES=N tries N plans on each
// of the large models too.
//
//===----------------------------------------------------------------------===//
#include "CompareProblem.h"
#include "fsdp/Schedule/ProblemText.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace fsdp;

namespace {

ModelSpec small(int64_t layers, bool tied) {
  LlamaConfig config;
  config.dim = 32;
  config.layers = layers;
  config.heads = 4;
  config.kvHeads = 2;
  config.ffnDim = 48;
  config.vocab = 64;
  config.tied = tied;
  return {"small", config};
}

/// Tries `count` plans; gives how many were applied.
int tryPlans(const ProblemSetting &setting, unsigned seed, int count,
             int packEvery) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  ProblemCase program(context, setting);
  EXPECT_TRUE(program.isGood) << setting.name;
  if (!program.isGood)
    return 0;
  std::string text = problem::print(program.problem);
  EXPECT_EQ(problem::print(problem::parse(text, "p")), text) << setting.name;
  schedule::DecisionPoints points(program.addressed());
  PlansForProblems plans(seed, points);
  int applied = 0, places = 0, wrong = 0;
  double worst = 0, evaluated = 0, compiled = 0;
  for (int i = 0; i < count; ++i) {
    std::optional<schedule::Plan> plan;
    if (i > 0)
      plan = plans.next();
    Compared result = program.compare(plan, /*packs=*/i % packEvery == 0);
    if (!result.difference.empty() && ++wrong <= 2)
      ADD_FAILURE() << setting.name << ", plan " << i << ": "
                    << result.difference
                    << (plan && wrong == 1 ? schedule::toJSON(*plan) : "");
    applied += !result.isRefused;
    places += !result.isRefused && result.namesPlaces;
    worst = std::max(worst, result.worst);
    evaluated += result.evaluated;
    compiled += result.compiled;
  }
  std::printf("%s: %d of %d plans applied (%d name addresses), %d differ, "
              "largest difference of a "
              "peak %.4f %%; %.3f ms against %.1f ms\n",
              setting.name.c_str(), applied, count, places, wrong, 100 * worst,
              1e3 * evaluated / count, 1e3 * compiled / count);
  return applied;
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
       ParamDtype::BFloat16, ShardMode::Auto, 1, 4}};
  int applied = 0;
  for (auto [seed, setting] : llvm::enumerate(settings))
    applied += tryPlans(setting, seed, 30, 5);
  EXPECT_GT(applied, 100);
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
