//===- DecideTest.cpp - What is decided needs what is compiled ------------===//
//
// Of random options in each block, the bytes that their chain says are those of
// the whole program, to the byte, and the plan of the options gives that
// program. What is decided for a budget fits into it.
//
//===----------------------------------------------------------------------===//
#include "CompareProblem.h"
#include "fsdp/Families/Families.h"
#include "fsdp/Schedule/DecidedPlan.h"
#include "fsdp/Schedule/RecomputeDecider.h"
#include "fsdp/Schedule/RecomputedValues.h"
#include "fsdp/Schedule/StepTimes.h"
#include <gtest/gtest.h>
#include <numeric>
#include <set>

using namespace mlir;
using namespace fsdp;

namespace {

ModelSpec llamaOf(int64_t layers, bool tied = false) {
  DecoderConfig config = checkpoint::findFamily("llama3")->base;
  config.dim = 64;
  config.layers = layers;
  config.heads = 4;
  config.kvHeads = 2;
  config.ffnDim = 160;
  config.vocab = 256;
  config.tied = tied;
  return {"small", config};
}

/// What the rule and `plan` decide about the ops of `program`.
problem::Candidate candidateOf(ProblemCase &program,
                               const schedule::Plan &plan) {
  OwningOpRef<ModuleOp> copy(program.addressed().clone());
  schedule::DecisionPoints points(*copy);
  schedule::Decisions decisions = schedule::Decisions::byRule(points, {});
  llvm::cantFail(decisions.apply(plan, points));
  decisions.stamp(*copy, points);
  return schedule::candidateOf(program.problem, *copy);
}

int64_t peakOf(const problem::Problem &problem,
               const problem::Candidate &candidate, size_t program) {
  return problem::live(problem, problem::order(problem, candidate, program))
      .peak;
}

void tryChoices(ProblemCase &program, const problem::RecomputeDecider &decider,
                const std::string &name) {
  const problem::RecomputeOptions &options = decider.options();
  std::mt19937 random(1);
  for (int i = 0; i < 10; ++i) {
    std::vector<uint32_t> choice;
    for (uint32_t kind : options.chain.classOf)
      choice.push_back(random() % options.chain.classes[kind].size());
    schedule::Plan plan = schedule::toPlan(
        program.problem, candidateOf(program, {}),
        problem::withRecomputation(candidateOf(program, {}), options, choice));
    EXPECT_EQ(problem::peakOf(options.chain, choice),
              peakOf(program.problem, candidateOf(program, plan),
                     options.blocks.program))
        << name << schedule::toJSON(plan);
    if (i % 5 == 0)
      EXPECT_EQ(program.compare(plan, /*packs=*/true).difference, "") << name;
  }
}

void tryBudgets(const problem::RecomputeDecider &decider,
                const std::string &name) {
  problem::Decided least = decider.least();
  EXPECT_FALSE(decider.decide(least.bytes - 1)) << name;
  int64_t before = 0;
  for (int64_t percent : {100, 110, 130, 160, 1000}) {
    int64_t budget = least.bytes * percent / 100;
    std::optional<problem::Decided> decided = decider.decide(budget);
    ASSERT_TRUE(decided) << name << ", " << percent << " %";
    EXPECT_LE(decided->bytes, budget);
    EXPECT_GE(decided->bytes, before) << "more bytes are used where they are";
    before = decided->bytes;
    EXPECT_EQ(decider.decide(budget)->choice, decided->choice);
  }
}

/// What a policy of compile.recompute decides.
problem::Candidate candidateBy(ProblemCase &program,
                               const std::string &policy) {
  OwningOpRef<ModuleOp> copy(program.addressed().clone());
  schedule::DecisionPoints points(*copy);
  schedule::PlannerOptions options;
  options.recompute = policy;
  schedule::Decisions::byRule(points, options).stamp(*copy, points);
  return schedule::candidateOf(program.problem, *copy);
}

/// Whether a policy gathers or sums activations again.
bool repeatsCollectives(ProblemCase &program, const std::string &policy) {
  schedule::DecisionPoints points(program.addressed());
  for (dist::OriginAttr origin :
       schedule::recomputedValues(points, parseRecomputePolicy(policy)))
    if (points.all().find(origin)->second.kind)
      return true;
  return false;
}

struct Needs {
  int64_t bytes = 0;
  Duration time;
};

/// What no arena of `candidate` can beat, and how long the program of the
/// blocks computes.
Needs needsOf(const problem::Problem &problem,
              const problem::Candidate &candidate, size_t trained,
              const CostModel &cost) {
  Needs needs;
  std::vector<int64_t> peaks;
  for (size_t i = 0; i < problem.programs.size(); ++i)
    peaks.push_back(peakOf(problem, candidate, i));
  std::vector<int64_t> bounds = problem::lowerBounds(problem, peaks);
  needs.bytes = *std::max_element(bounds.begin(), bounds.end());
  problem::Sequence sequence = problem::order(problem, candidate, trained);
  problem::StepDuration duration = problem::stepTimes(problem, trained, cost);
  for (const problem::Step &step : sequence.steps)
    needs.time += duration(sequence, step);
  return needs;
}

TEST(Decide, NeverRecomputesMoreThanAPolicyInItsBytes) {
  std::vector<ProblemSetting> settings = {
      {"dp 4", llamaOf(6), "dp_shard=4", 2, 128},
      {"longer", llamaOf(5), "dp_shard=2", 1, 512},
      {"dp 2 x tp 2", llamaOf(4), "dp_shard=2,tp=2:tensor", 2, 128},
      {"4 microbatches", llamaOf(4), "dp_shard=4", 2, 128, ParamDtype::BFloat16,
       ShardMode::Auto, 4}};
  CostModel cost(loadMachine("h100"));
  for (const ProblemSetting &setting : settings) {
    MLIRContext context(MLIRContext::Threading::DISABLED);
    ProblemCase program(context, setting);
    ASSERT_TRUE(program.isGood) << setting.name;
    problem::Candidate base = candidateOf(program, {});
    problem::RecomputeDecider decider(program.problem, base, cost);
    size_t trained = decider.options().blocks.program;
    for (const char *policy : {"none", "free", "full", "every-2", "every-3",
                               "selective", "sac", "save:attention"}) {
      Needs given =
          needsOf(program.problem, candidateBy(program, policy), trained, cost);
      std::optional<problem::Decided> decided = decider.decide(given.bytes);
      if (!decided) {
        // Communication is not decided about.
        EXPECT_TRUE(repeatsCollectives(program, policy))
            << setting.name << ", " << policy;
        continue;
      }
      Needs found = needsOf(
          program.problem,
          problem::withRecomputation(base, decider.options(), decided->choice),
          trained, cost);
      EXPECT_LE(found.bytes, given.bytes) << setting.name << ", " << policy;
      // A policy's plan awaits a reduction earlier than `base`, and waits
      // divide kernels.
      EXPECT_LE(found.time.picoseconds(),
                given.time.picoseconds() + 2 * cost.launch().picoseconds())
          << setting.name << ", " << policy;
    }
  }
}

/// Where options are alike in all blocks, the first and the last one compute
/// the same again, or what differs least of what they may.
void tryUniform(const problem::Problem &problem,
                const problem::RecomputeOptions &options,
                const std::string &name) {
  const problem::Program &program = problem.programs[options.blocks.program];
  using Names = std::set<std::string>;
  auto namesOf = [&](size_t block, problem::OpSet set) {
    Names names;
    for (size_t bit = 0; bit < options.blocks.all[block].ops.size(); ++bit)
      if (set >> bit & 1) {
        const problem::Op &op = program.ops[options.blocks.all[block].ops[bit]];
        // "fwd layers.3.attention.wq linear", of which the block is cut out.
        std::string name = problem::addressOf(problem, op);
        std::string path(problem.text(options.blocks.all[block].name));
        names.insert(name.replace(name.find(path), path.size(), ""));
      }
    return names;
  };
  auto difference = [](const Names &a, const Names &b) {
    std::vector<Names::value_type> differing;
    std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(),
                                  std::back_inserter(differing));
    return differing.size();
  };
  uint32_t many = options.common;
  const std::vector<uint32_t> &classOf = options.chain.classOf;
  auto first = static_cast<size_t>(
      std::find(classOf.begin(), classOf.end(), many) - classOf.begin());
  for (uint32_t kind : classOf)
    EXPECT_LE(std::count(classOf.begin(), classOf.end(), kind),
              std::count(classOf.begin(), classOf.end(), many))
        << name;
  std::vector<uint32_t> all(options.sets[many].size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(all.size(),
            options.chain.classes[many].size() + options.slower.size())
      << name;
  const auto &known = options.chain.classes[many];
  for (size_t i = 0; i < options.slower.size(); ++i) {
    const problem::SlowerSet &slower = options.slower[i];
    ASSERT_LT(slower.option, known.size()) << name;
    EXPECT_LE(slower.more.picoseconds(),
              known[slower.option].time.picoseconds() / 200)
        << name;
    EXPECT_NE(options.sets[many][known.size() + i],
              options.sets[many][slower.option])
        << name;
  }
  std::vector<std::vector<uint32_t>> choices =
      problem::uniformChoices(problem, options, all);
  ASSERT_EQ(choices.size(), all.size()) << name;
  EXPECT_GT(choices.size(), 4U) << name;
  for (size_t i = 0; i < choices.size(); ++i) {
    Names alike = namesOf(first, options.sets[many][i]);
    EXPECT_EQ(choices[i][first], i) << name;
    ASSERT_EQ(choices[i].size(), options.blocks.all.size()) << name;
    for (size_t block = 0; block < choices[i].size(); ++block) {
      uint32_t kind = classOf[block];
      const auto &sets = options.sets[kind];
      size_t least = kind == many ? 0 : SIZE_MAX;
      for (size_t option = 0; option < options.chain.classes[kind].size();
           ++option)
        least =
            std::min(least, difference(alike, namesOf(block, sets[option])));
      EXPECT_EQ(difference(alike, namesOf(block, sets.at(choices[i][block]))),
                least)
          << name << ", block " << block;
    }
  }
}

TEST(Decide, BytesAreTheCompilers) {
  std::vector<ProblemSetting> settings = {
      {"dp 4", llamaOf(5), "dp_shard=4", 2, 128},
      {"f32, test", llamaOf(3), "dp_shard=3", 2, 64, ParamDtype::Float32,
       ShardMode::Auto, 1, 1, "test"},
      {"tied", llamaOf(4, true), "dp_shard=4", 2, 128},
      {"dp 2 x tp 2", llamaOf(4), "dp_shard=2,tp=2:tensor", 2, 128},
      {"4 microbatches", llamaOf(4), "dp_shard=4", 2, 128, ParamDtype::BFloat16,
       ShardMode::Auto, 4},
      {"4 loss chunks", llamaOf(3), "dp_shard=4", 2, 128, ParamDtype::BFloat16,
       ShardMode::Auto, 1, 4}};
  CostModel cost(loadMachine("h100"));
  size_t slower = 0;
  for (const ProblemSetting &setting : settings) {
    MLIRContext context(MLIRContext::Threading::DISABLED);
    ProblemCase program(context, setting);
    ASSERT_TRUE(program.isGood) << setting.name;
    problem::RecomputeDecider decider(program.problem, candidateOf(program, {}),
                                      cost);
    tryUniform(program.problem, decider.options(), setting.name);
    slower += decider.options().slower.size();
    tryChoices(program, decider, setting.name);
    tryBudgets(decider, setting.name);
  }
  EXPECT_GT(slower, 0U);
}

} // namespace
