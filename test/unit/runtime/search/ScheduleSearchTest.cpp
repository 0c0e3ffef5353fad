//===- ScheduleSearchTest.cpp - The search beside trying everything -------===//
//
// On problems of up to 8 parameters, random in sizes, times, machine and
// budget, what the search finds is no slower than the best of all partitions
// into buckets, windows and kept blocks.
//
//===----------------------------------------------------------------------===//
#include "../SmallProblem.h"
#include "fsdp/Schedule/ScheduleDecider.h"
#include <gtest/gtest.h>
#include <random>

using namespace fsdp;
using namespace fsdp::problem;
using namespace fsdp::test;

namespace {

/// All ways to cut `size` transfers into buckets.
std::vector<std::vector<uint32_t>> partitionsOf(size_t size) {
  std::vector<std::vector<uint32_t>> all;
  for (uint32_t cuts = 0; cuts < 1u << (size - 1); ++cuts) {
    std::vector<uint32_t> counts = {1};
    for (size_t i = 0; i + 1 < size; ++i) {
      if ((cuts >> i & 1) != 0)
        counts.push_back(0);
      ++counts.back();
    }
    all.push_back(std::move(counts));
  }
  return all;
}

constexpr uint32_t kDistances[] = {0, 1, 8};

class Everything {
public:
  Everything(ScheduleDecider &decider, int64_t budget)
      : decider(decider), budget(budget) {}

  /// The forward pass ends before the backward pass begins: what is best for
  /// one is found apart from the other.
  std::optional<Duration> run() {
    choice = decider.byRule();
    over(TransferKind::Forward, [&] { attempt(); });
    if (!best)
      return std::nullopt;
    choice = bestChoice;
    const Transfers &transfers = decider.transfers();
    size_t blocks = transfers.mayKeep ? transfers.units.size() : 0;
    for (uint32_t kept = 0; kept < 1u << blocks; ++kept) {
      for (size_t i = 0; i < blocks; ++i)
        choice.isKept[i] = (kept >> i & 1) != 0;
      over(TransferKind::Again,
           [&] { over(TransferKind::Reduce, [&] { attempt(); }); });
    }
    return best;
  }

  size_t tried = 0;

private:
  template <typename Each> void over(TransferKind kind, Each each) {
    size_t size = decider.transfers()[kind].size();
    // What is never gathered again has no buckets of its own.
    if (kind == TransferKind::Again &&
        std::count(choice.isKept.begin(), choice.isKept.end(), false) == 0)
      return each();
    for (const std::vector<uint32_t> &counts : partitionsOf(size))
      for (uint32_t distance : kDistances) {
        choice[kind].clear();
        for (uint32_t count : counts)
          choice[kind].push_back({count, distance});
        each();
      }
  }

  void attempt() {
    ++tried;
    std::optional<DecidedSchedule> found = decider.decide(budget, choice);
    if (!found || (best && *best <= found->total))
      return;
    best = found->total;
    bestChoice = choice;
  }

  ScheduleDecider &decider;
  const int64_t budget;
  CommunicationChoice choice, bestChoice;
  std::optional<Duration> best;
};

class SmallSearches : public testing::Test {
protected:
  int64_t below(int64_t end) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(end));
  }

  SmallModel model(int64_t parameters) {
    SmallModel model;
    model.activation = 1000 * (1 + below(20));
    while (parameters > 0) {
      int64_t count = std::min(parameters, 1 + below(3));
      parameters -= count;
      auto &block = model.blocks.emplace_back();
      for (int64_t i = 0; i < count; ++i)
        block.push_back({256 * (1 + below(100)), double(1 + below(40)),
                         double(2 + 2 * below(40))});
    }
    return model;
  }

  SmallMachine machine() {
    SmallMachine machine;
    machine.latency = double(below(4) == 0 ? 0 : 1 + below(20));
    machine.gatherBytes = double(200 + below(3000));
    machine.reduceBytes = double(200 + below(3000));
    machine.slowdown = below(2) == 0 ? 0 : 0.15;
    return machine;
  }

  /// Whether the search has found the best, and there was one to find.
  void compare(int64_t parameters, bool mayKeep) {
    Problem problem = problemOf(model(parameters));
    CostModel model = costsOf(machine());
    simulation::Costs costs{model};
    Candidate rule = ruleOf(problem);
    if (!mayKeep)
      for (Decision &decision : rule.decisions)
        decision.recompute = false;
    ScheduleDecider decider(problem, rule, costs, "train", mayKeep);
    int64_t least = decider.recompute().least().bytes;
    int64_t budget = mayKeep && below(2) == 0 ? least + least * below(60) / 100
                                              : int64_t(1) << 40;
    Everything everything(decider, budget);
    std::optional<Duration> best = everything.run();
    std::optional<DecidedSchedule> found = decider.decide(budget);
    ASSERT_EQ(best.has_value(), found.has_value());
    if (!best)
      return;
    tried += everything.tried;
    ++count;
    worse += *best < found->total;
    EXPECT_LE(found->total.picoseconds(), best->picoseconds())
        << parameters << " parameters, problem " << count << ", "
        << everything.tried << " tried";
  }

  std::mt19937_64 random{24};
  size_t count = 0, tried = 0, worse = 0;
};

} // namespace

TEST_F(SmallSearches, FindWhatTryingEverythingFinds) {
  for (int i = 0; i < 170; ++i)
    compare(i % 4 == 0 ? 3 : 2, true);
  for (int i = 0; i < 4; ++i)
    compare(4, true);
  for (int i = 0; i < 32; ++i)
    compare(5 + i % 4, false);
  std::printf("%zu problems, %zu schedules tried\n", count, tried);
  EXPECT_GE(count, 200u);
}
