//===- ScheduleDeciderTest.cpp - Communication that is decided ------------===//
//
// The plan of what is decided gives the decisions back, and the compiler
// schedules them as the problem says. No known rule is faster in the same
// memory.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Schedule/ScheduleDecider.h"
#include "CompareProblem.h"
#include "fsdp/Families/Families.h"
#include "fsdp/Schedule/DecidedPlan.h"
#include "fsdp/Simulation/Simulate.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace fsdp;
using problem::TransferKind;

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

class DecidedSchedules : public testing::TestWithParam<ProblemSetting> {
protected:
  DecidedSchedules()
      : context(MLIRContext::Threading::DISABLED), program(context, GetParam()),
        model(loadMachine("h100")), costs{model} {}

  void SetUp() override {
    ASSERT_TRUE(program.isGood);
    base = candidateOf(program, {});
  }

  Duration timeOf(const problem::Candidate &candidate) {
    return simulation::simulate(program.problem, candidate, "train", costs)
        .total;
  }

  /// The plan alone gives a step that takes as long, and which the compiler
  /// schedules and packs as the problem says.
  void expectPlan(const problem::DecidedSchedule &decided,
                  const std::string &name) {
    schedule::Plan plan =
        schedule::toPlan(program.problem, base, decided.candidate);
    EXPECT_EQ(timeOf(candidateOf(program, plan)), decided.total) << name;
    EXPECT_EQ(program.compare(plan, /*packs=*/true).difference, "") << name;
  }

  MLIRContext context;
  ProblemCase program;
  CostModel model;
  simulation::Costs costs;
  problem::Candidate base;
};

TEST_P(DecidedSchedules, AreTheCompilers) {
  problem::ScheduleDecider decider(program.problem, base, costs, "train");
  constexpr int64_t room = int64_t(1) << 40;
  for (const problem::NamedChoice &rule : decider.rules()) {
    auto decided = decider.decide(room, rule.choice);
    ASSERT_TRUE(decided) << rule.name;
    expectPlan(*decided, rule.name);
  }
  auto decided = decider.decide(room);
  ASSERT_TRUE(decided);
  expectPlan(*decided, "decided");
}

TEST_P(DecidedSchedules, AreNotSlowerThanKnownRules) {
  problem::ScheduleDecider decider(program.problem, base, costs, "train");
  int64_t least = decider.recompute().least().bytes;
  for (int64_t percent : {100, 130, 1000}) {
    int64_t budget = least * percent / 100;
    auto decided = decider.decide(budget);
    ASSERT_TRUE(decided) << percent;
    EXPECT_LE(decided->bytes, budget);
    EXPECT_EQ(timeOf(decided->candidate), decided->total);
    auto anew = decider.decideAgain(budget, &*decided);
    auto roughly = decider.decideRoughly(budget);
    ASSERT_TRUE(anew && roughly) << percent;
    EXPECT_LE(anew->bytes, budget);
    EXPECT_LE(roughly->bytes, budget);
    EXPECT_EQ(timeOf(anew->candidate), anew->total);
    EXPECT_TRUE(anew->total <= roughly->total);
    for (const problem::NamedChoice &rule : decider.rules())
      if (auto other = decider.decide(budget, rule.choice))
        EXPECT_TRUE(decided->total <= other->total &&
                    roughly->total <= other->total)
            << rule.name << " in " << percent << " %";
  }
}

/// Threads try what one thread would try a little later.
TEST_P(DecidedSchedules, AreTheSameOnAnyNumberOfThreads) {
  std::vector<problem::DecidedSchedule> found, anew, least;
  for (int threads : {1, 2, 5}) {
    problem::ScheduleDecider decider(program.problem, base, costs, "train",
                                     /*mayKeep=*/true, threads);
    int64_t bytes = decider.recompute().least().bytes;
    auto decided = decider.decide(bytes * 13 / 10);
    auto smallest = decider.least();
    ASSERT_TRUE(decided && smallest);
    auto other = decider.decideAgain(bytes * 12 / 10, &*decided);
    ASSERT_TRUE(other);
    found.push_back(std::move(*decided));
    anew.push_back(std::move(*other));
    least.push_back(std::move(*smallest));
  }
  for (const auto *all : {&found, &anew, &least})
    for (const problem::DecidedSchedule &other : *all) {
      const problem::DecidedSchedule &one = all->front();
      EXPECT_EQ(one.total, other.total);
      EXPECT_EQ(one.bytes, other.bytes);
      EXPECT_EQ(one.choice, other.choice);
      EXPECT_TRUE(one.communication == other.communication);
    }
}

/// Late starts and early awaits take no time and no bytes, and the compiler
/// applies them.
TEST_P(DecidedSchedules, PlacesTakeNoTime) {
  problem::ScheduleDecider decider(program.problem, base, costs, "train");
  size_t placed = 0;
  for (const problem::NamedChoice &rule : decider.rules()) {
    auto given = decider.decide(int64_t(1) << 40, rule.choice);
    ASSERT_TRUE(given) << rule.name;
    problem::DecidedSchedule refined = decider.refine(*given, given->bytes);
    EXPECT_LE(refined.total.picoseconds(), given->total.picoseconds());
    EXPECT_LE(refined.bytes, given->bytes);
    if (withoutPlaces(refined.communication) == refined.communication)
      continue;
    ++placed;
    EXPECT_LT(refined.bytes, given->bytes) << rule.name;
    expectPlan(refined, rule.name);
  }
  std::printf("%zu rules with places\n", placed);
  EXPECT_GE(placed, 1u);
}

/// Settings say what stays gathered.
TEST_P(DecidedSchedules, KeepWhatIsSaid) {
  problem::ScheduleDecider decider(program.problem, base, costs, "train",
                                   /*mayKeep=*/false);
  auto decided = decider.decide(int64_t(1) << 40);
  ASSERT_TRUE(decided);
  EXPECT_TRUE(decided->communication.isKept == decider.transfers().isKept);
}

/// Every transfer is in a bucket, with those beside it.
TEST_P(DecidedSchedules, BucketsHaveNames) {
  problem::ScheduleDecider decider(program.problem, base, costs, "train");
  for (const problem::NamedChoice &rule : decider.rules())
    for (TransferKind kind :
         {TransferKind::Forward, TransferKind::Again, TransferKind::Reduce}) {
      const auto &buckets = rule.choice[kind];
      uint32_t count = 0;
      for (const problem::TransferBucket &bucket : buckets)
        count += bucket.count;
      EXPECT_EQ(count, decider.transfers()[kind].size()) << rule.name;
      auto names = problem::bucketNames(decider.transfers(), kind, buckets);
      std::set<std::string> different(names.begin(), names.end());
      EXPECT_EQ(different.size(), buckets.size()) << rule.name;
    }
}

/// The numbers of transfers of tapered buckets.
std::vector<uint32_t> taperOf(const std::vector<int64_t> &bytes,
                              const problem::BucketTaper &taper) {
  problem::TransferList list;
  for (int64_t size : bytes)
    list.emplace_back().bytes = size;
  std::vector<uint32_t> counts;
  for (const problem::TransferBucket &bucket : taperedBuckets(list, taper)) {
    EXPECT_EQ(bucket.distance, taper.distance);
    counts.push_back(bucket.count);
  }
  return counts;
}

TEST(BucketTaper, SharesBytesByTheRatio) {
  using Counts = std::vector<uint32_t>;
  std::vector<int64_t> equal(14, 100);
  EXPECT_EQ(taperOf(equal, {3, 2, 1}), Counts({2, 4, 8}));
  EXPECT_EQ(taperOf(equal, {3, 0.5, 2}), Counts({8, 4, 2}));
  EXPECT_EQ(taperOf(equal, {2, 1, 1}), Counts({7, 7}));
  // By bytes, as near as transfers allow.
  EXPECT_EQ(taperOf({300, 100, 100, 100, 500, 100}, {3, 2, 1}),
            Counts({1, 2, 3}));
  // No bucket is empty, and none is left out.
  EXPECT_EQ(taperOf({1, 1, 1000}, {3, 0.5, 1}), Counts({3}));
  EXPECT_EQ(taperOf({1000, 1, 1}, {12, 0.5, 1}), Counts({1, 1, 1}));
  EXPECT_EQ(taperOf({7}, {4, 2, 1}), Counts({1}));
}

INSTANTIATE_TEST_SUITE_P(
    Of, DecidedSchedules,
    testing::Values(
        ProblemSetting{"dp4", llamaOf(5), "dp_shard=4", 2, 128},
        ProblemSetting{"tied", llamaOf(3, true), "dp_shard=4", 2, 128},
        ProblemSetting{"hybrid", llamaOf(3), "dp_replicate=2,dp_shard=2", 2,
                       128},
        ProblemSetting{"tp", llamaOf(3), "dp_shard=2,tp=2:tensor", 2, 128},
        ProblemSetting{"microbatches", llamaOf(3), "dp_shard=4", 2, 128,
                       ParamDtype::BFloat16, ShardMode::Auto, 4},
        ProblemSetting{"nodes",
                       llamaOf(3),
                       "dp_shard=4",
                       2,
                       128,
                       ParamDtype::BFloat16,
                       ShardMode::Auto,
                       1,
                       1,
                       "cuda",
                       {},
                       2,
                       2}),
    [](const auto &info) { return info.param.name; });

} // namespace
