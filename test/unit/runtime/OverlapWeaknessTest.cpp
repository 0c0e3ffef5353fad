//===- OverlapWeaknessTest.cpp - Where other schedulers lose --------------===//
//
// A small problem for each way in which PyTorch's overlap scheduler loses time
// or memory that a problem can express, and what is decided instead. Its rule
// is "PyTorch's overlap" (OverlapRules.h); where that is kinder than the
// original, the choice that the original makes is written down.
//
// What a problem cannot express: that the time of pointwise ops is not counted
// (here every op has its time), that estimates differ between ranks and
// searches take quadratic time (the search counts schedules), that copies to
// the host wait (there are none), that buckets change bits (no plan does).
//
//===----------------------------------------------------------------------===//
#include "SmallProblem.h"
#include "fsdp/Schedule/ScheduleDecider.h"
#include <gtest/gtest.h>
#include <random>

using namespace fsdp;
using namespace fsdp::problem;
using namespace fsdp::test;

namespace {

constexpr int64_t kRoom = int64_t(1) << 40;

class Weakness {
public:
  Weakness(const SmallModel &model, const SmallMachine &machine,
           bool mayKeep = true)
      : problem(problemOf(model)), model(costsOf(machine)), costs{this->model},
        decider(problem, ruleOf(problem), costs, "train", mayKeep) {}

  CommunicationChoice rule(const std::string &name) const {
    for (const NamedChoice &rule : decider.rules())
      if (rule.name == name)
        return rule.choice;
    ADD_FAILURE() << name;
    return {};
  }
  CommunicationChoice theirs() const { return rule("PyTorch's overlap"); }

private:
  Problem problem;
  CostModel model;
  simulation::Costs costs;

public:
  ScheduleDecider decider;
};

/// `count` blocks of one parameter each.
SmallModel chain(int count, SmallParameter parameter) {
  SmallModel model;
  for (int i = 0; i < count; ++i)
    model.blocks.push_back({parameter});
  return model;
}

double microseconds(Duration duration) { return duration.seconds() * 1e6; }

} // namespace

/// Reductions that feed what is off the path go last: nothing hides them.
TEST(OverlapWeakness, ReductionsNeedNotGoLast) {
  Weakness weakness(chain(4, {10'000, 20, 40}), {});
  CommunicationChoice theirs = weakness.theirs();
  theirs[TransferKind::Reduce] = {{4, 0}};
  auto last = weakness.decider.decide(kRoom, theirs),
       ours = weakness.decider.decide(kRoom);
  ASSERT_TRUE(last && ours);
  // Three of four reductions of 10 us are hidden.
  EXPECT_GT(microseconds(last->total) - microseconds(ours->total), 29);
}

/// One exposed wait blocks all behind it, so that gradients pile up.
TEST(OverlapWeakness, OneWaitDoesNotHoldTheOthers) {
  Weakness weakness(chain(6, {40'000, 20, 60}), {});
  CommunicationChoice theirs = weakness.theirs();
  for (TransferBucket &bucket : theirs[TransferKind::Reduce])
    bucket.distance = 6;
  auto ours = weakness.decider.decide(kRoom);
  ASSERT_TRUE(ours);
  auto blocked = weakness.decider.decide(kRoom, theirs);
  ASSERT_TRUE(blocked);
  EXPECT_LE(ours->total.picoseconds(), blocked->total.picoseconds());
  // In the bytes of what is decided theirs does not fit.
  EXPECT_LT(ours->bytes, blocked->bytes);
  EXPECT_FALSE(weakness.decider.decide(ours->bytes, theirs));
}

/// Memory is compared with the order that there was: what is in flight beside
/// does not count, and the plan does not fit.
TEST(OverlapWeakness, MemoryIsThatOfTheScheduleItself) {
  Weakness weakness(chain(8, {40'000, 4, 8}), {});
  int64_t budget = weakness.decider.recompute().least().bytes;
  EXPECT_FALSE(weakness.decider.decide(budget, weakness.theirs()));
  auto ours = weakness.decider.decide(budget);
  ASSERT_TRUE(ours);
  EXPECT_LE(ours->bytes, budget);
}

/// Two groups of one network card each get all of it, and compute pays nothing
/// for what runs beside it: gathering again looks free.
TEST(OverlapWeakness, ContentionHasAPrice) {
  SmallMachine machine;
  machine.slowdown = 0.5;
  Weakness weakness(chain(6, {10'000, 20, 40}), machine);
  auto theirs = weakness.decider.decide(kRoom, weakness.theirs()),
       ours = weakness.decider.decide(kRoom);
  ASSERT_TRUE(theirs && ours);
  // Five gathers of 11 us less, each of which costs a third of its time.
  EXPECT_LT(microseconds(ours->total), microseconds(theirs->total) - 15);
}

/// Starts are as early as they may be: the same time in more memory.
TEST(OverlapWeakness, StartsAreNoEarlierThanNeeded) {
  Weakness weakness(chain(8, {10'000, 20, 40}), {}, /*mayKeep=*/false);
  auto theirs = weakness.decider.decide(kRoom, weakness.theirs()),
       ours = weakness.decider.decide(kRoom);
  ASSERT_TRUE(theirs && ours);
  EXPECT_LE(ours->total.picoseconds(), theirs->total.picoseconds());
  EXPECT_LT(ours->bytes, theirs->bytes);
}

/// The order of issue is never decided: a gather that is needed now waits
/// behind a long reduction.
TEST(OverlapWeakness, AnUrgentGatherGoesFirst) {
  SmallMachine machine;
  machine.reduceBytes = 250;
  Weakness weakness(chain(5, {10'000, 20, 60}), machine, /*mayKeep=*/false);
  CommunicationChoice theirs = weakness.rule("block, none ahead");
  auto inOrder = weakness.decider.decide(kRoom, theirs),
       ours = weakness.decider.decide(kRoom);
  ASSERT_TRUE(inOrder && ours);
  EXPECT_LT(microseconds(ours->total), microseconds(inOrder->total) - 4 * 10);
}

/// The first and the last bucket are as the rule has them, and nothing hides
/// them.
TEST(OverlapWeakness, TheFirstBucketIsDecidedToo) {
  SmallModel model;
  for (int i = 0; i < 3; ++i)
    model.blocks.push_back({{9'000, 20, 40}, {9'000, 20, 40}, {9'000, 20, 40}});
  Weakness weakness(model, {});
  auto theirs = weakness.decider.decide(kRoom,
                                        weakness.rule("block, never reshard")),
       ours = weakness.decider.decide(kRoom);
  ASSERT_TRUE(theirs && ours);
  // Of three gathers and three reductions only one each is exposed.
  EXPECT_LT(microseconds(ours->total), microseconds(theirs->total) - 30);
}

/// No hidden collective is traded for an exposed one, and what merging costs
/// does not change the schedule: a search that goes back is never slower, and
/// often faster.
TEST(OverlapWeakness, ChoicesAreTakenBack) {
  std::mt19937 random(7);
  auto below = [&](int end) { return int(random() % unsigned(end)); };
  int faster = 0, count = 0;
  for (int i = 0; i < 40; ++i) {
    SmallModel model;
    for (int block = 0; block < 3 + below(4); ++block) {
      auto &of = model.blocks.emplace_back();
      for (int j = 0; j < 1 + below(3); ++j)
        of.push_back({256 * (1 + below(80)), double(1 + below(40)),
                      double(2 + 2 * below(40))});
    }
    SmallMachine machine;
    machine.latency = 1 + below(20);
    Weakness weakness(model, machine, /*mayKeep=*/false);
    auto theirs = weakness.decider.decide(kRoom, weakness.theirs()),
         ours = weakness.decider.decide(kRoom);
    ASSERT_TRUE(theirs && ours);
    EXPECT_LE(ours->total.picoseconds(), theirs->total.picoseconds());
    faster += microseconds(ours->total) < 0.99 * microseconds(theirs->total);
    ++count;
  }
  std::printf("%d problems, %d of them more than 1 %% faster\n", count, faster);
  EXPECT_EQ(count, 40);
  EXPECT_GE(faster, 10);
}

/// Estimates are no measurements: two searches give the same schedule.
TEST(OverlapWeakness, EveryRankDecidesTheSame) {
  SmallModel model = chain(6, {10'000, 20, 40});
  Weakness one(model, {}), other(model, {});
  auto first = one.decider.decide(kRoom), second = other.decider.decide(kRoom);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(first->communication == second->communication);
  EXPECT_EQ(first->choice, second->choice);
}
