//===- MemoryTest.cpp - Packing against brute force and bounds ------------===//
#include "fsdp/Memory/Packing.h"
#include "fsdp/Memory/Report.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace fsdp;

// Offsets are sums of the sizes, so together they must not leave 64 bits.
TEST(Packing, SizesThatFitNoArenaAreRefused) {
  PackingProblem problem;
  problem.liveRanges = {{0, 1, int64_t(1) << 61}, {1, 2, int64_t(1) << 61}};
  EXPECT_FALSE(checkPacking(problem));
  problem.liveRanges.push_back({0, 2, 1});
  EXPECT_EQ(checkPacking(problem),
            "its buffers have more than 2^62 bytes together");
  problem.liveRanges = {{0, 1, INT64_MAX}, {0, 1, INT64_MAX}};
  EXPECT_EQ(checkPacking(problem),
            "its buffers have more than 2^62 bytes together");
}

namespace {

/// Live ranges of 1 to 8 units at random spans of `positions`.
PackingProblem randomProblem(unsigned seed, size_t count, int positions,
                             int longest = 6) {
  std::mt19937 random(seed);
  PackingProblem problem;
  for (size_t i = 0; i < count; ++i) {
    int64_t begin = random() % positions;
    int64_t end = begin + 1 + random() % longest;
    // Sizes that are no multiples of the alignment must be padded.
    problem.liveRanges.push_back({begin, end, int64_t(1 + random() % 512)});
  }
  return problem;
}

/// The least peak of all plans: pushed down and read from the bottom up, any
/// plan is what placing each live range at its lowest gap gives, in some order.
int64_t leastPeak(const PackingProblem &problem) {
  std::vector<uint32_t> order(problem.liveRanges.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t least = INT64_MAX;
  do
    least =
        std::min(least, packInOrder(problem, order, PackingFit::Lowest).peak);
  while (std::next_permutation(order.begin(), order.end()));
  return least;
}

/// A training program's shape: what forward saves lives until its layer's
/// backward, gathered parameters overlap the next layer, the rest is short.
PackingProblem deepModel(int layers) {
  std::mt19937 random(1);
  const int steps = 40;
  PackingProblem problem;
  auto add = [&](int64_t begin, int64_t end, int64_t bytes) {
    problem.liveRanges.push_back({begin, end, bytes});
  };
  std::vector<int64_t> sizes;
  for (int i = 0; i < steps; ++i)
    sizes.push_back(64 * (1 + random() % 4096));
  for (int layer = 0; layer < layers; ++layer) {
    int64_t forward = layer * steps;
    int64_t backward = (2 * layers - 1 - layer) * steps;
    for (int i = 0; i < 12; ++i)
      add(forward + 3 * i, backward + steps - 3 * i, sizes[i]);
    for (int i = 0; i < steps; ++i) {
      add(forward + i, forward + i + 1 + i % 4, sizes[i]);
      add(backward + i, backward + i + 1 + i % 5, sizes[steps - 1 - i]);
    }
    add(std::max<int64_t>(0, forward - steps), forward + steps, 64 * 20000);
    add(backward - steps, backward + steps, 64 * 20000);
  }
  return problem;
}

const PackingOrder kOrders[] = {PackingOrder::Bytes, PackingOrder::Duration,
                                PackingOrder::Area, PackingOrder::Time,
                                PackingOrder::Contention};
const PackingFit kFits[] = {PackingFit::Smallest, PackingFit::Lowest};

} // namespace

TEST(Packing, EverySolverSharesNoBytesAndKeepsTheBound) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    PackingProblem problem = randomProblem(seed, 5 + 10 * (seed % 30), 60);
    ASSERT_EQ(checkPacking(problem), std::nullopt);
    int64_t bound = maxLive(problem).bytes, smallest = INT64_MAX;
    for (PackingOrder order : kOrders)
      for (PackingFit fit : kFits) {
        PackingPlan plan = packInOrder(problem, order, fit);
        EXPECT_EQ(verifyPacking(problem, plan), std::nullopt) << plan.solver;
        EXPECT_GE(plan.peak, bound);
        smallest = std::min(smallest, plan.peak);
      }
    PackingPlan best = solvePacking(problem);
    EXPECT_EQ(verifyPacking(problem, best), std::nullopt);
    EXPECT_LE(best.peak, smallest);
  }
}

TEST(Packing, SmallProblemsAreSolvedNearlyAsWellAsByBruteForce) {
  int optimal = 0;
  const int problems = 60;
  for (int seed = 0; seed < problems; ++seed) {
    PackingProblem problem = randomProblem(1000 + seed, 7, 8);
    int64_t least = leastPeak(problem);
    PackingPlan plan = solvePacking(problem);
    EXPECT_GE(plan.peak, least);
    EXPECT_LE(plan.peak, least + least / 5);
    optimal += plan.peak == least;
  }
  EXPECT_GE(optimal, problems * 9 / 10);
}

TEST(Packing, LocalSearchNeverWorsensItsStart) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    PackingProblem problem = randomProblem(seed, 60, 30);
    for (PackingOrder order : kOrders) {
      PackingPlan start = packInOrder(problem, order, PackingFit::Smallest);
      PackingPlan plan =
          packByLocalSearch(problem, order, PackingFit::Smallest, 50);
      EXPECT_LE(plan.peak, start.peak);
      EXPECT_EQ(verifyPacking(problem, plan), std::nullopt);
    }
  }
}

TEST(Packing, TheSameProblemGetsTheSamePlan) {
  PackingProblem problem = randomProblem(7, 200, 60);
  EXPECT_EQ(solvePacking(problem).offsets, solvePacking(problem).offsets);
}

// Few live ranges are looked at one by one, many by time. Those that live later
// than all others change no offset of these.
TEST(Packing, FewAndManyLiveRangesGetTheSameOffsets) {
  const size_t few = 200;
  int compared = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    PackingProblem problem = randomProblem(seed, few, 60);
    PackingProblem longer = problem;
    for (int64_t i = 0; i < 1000; ++i)
      longer.liveRanges.push_back({1000 + i, 1001 + i, 64});
    std::vector<uint32_t> order(few);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    std::vector<uint32_t> all = order;
    for (size_t i = few; i < longer.liveRanges.size(); ++i)
      all.push_back(i);
    for (PackingFit fit : kFits) {
      std::vector<int64_t> offsets = packInOrder(problem, order, fit).offsets;
      std::vector<int64_t> others = packInOrder(longer, all, fit).offsets;
      others.resize(few);
      EXPECT_EQ(offsets, others);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 40);
}

TEST(Packing, NestedLifetimesReachTheBound) {
  // Saved in forward order, used up in reverse: a stack wastes nothing.
  PackingProblem problem;
  for (int64_t i = 0; i < 100; ++i)
    problem.liveRanges.push_back({i, 200 - i, 64 * (1 + i % 5)});
  EXPECT_EQ(solvePacking(problem).peak, maxLive(problem).bytes);
}

// No plan is smaller than the bound, so what the solvers give up for its work
// would not have been one.
TEST(Packing, TheLimitOfWorkLosesNoPlanOfTenLayers) {
  PackingProblem problem = deepModel(10);
  PackingPlan plan = solvePacking(problem);
  EXPECT_EQ(verifyPacking(problem, plan), std::nullopt);
  EXPECT_EQ(plan.peak, maxLive(problem).bytes);
}

TEST(Packing, TheDeepestModelStaysWithinOnePercent) {
  PackingProblem problem = deepModel(126);
  ASSERT_GT(problem.liveRanges.size(), 10000u);
  PackingPlan plan = solvePacking(problem);
  EXPECT_EQ(verifyPacking(problem, plan), std::nullopt);
  int64_t bound = maxLive(problem).bytes;
  EXPECT_LE(plan.peak, bound + bound / 100);
}

TEST(Packing, MaxLiveNamesThePosition) {
  PackingProblem problem;
  problem.liveRanges = {{0, 4, 64}, {2, 6, 100}, {4, 8, 64}, {5, 7, 1}};
  // At 5: 128 (100 padded) + 64 + 64.
  MaxLive most = maxLive(problem);
  EXPECT_EQ(most.bytes, 256);
  EXPECT_EQ(most.position, 5);
}

TEST(Packing, CheckNamesWhatIsWrongWithAProblem) {
  PackingProblem problem;
  problem.liveRanges = {{0, 1, 64}, {3, 3, 64}};
  EXPECT_EQ(checkPacking(problem), "live range 1 has no position");
  problem.liveRanges[1] = {3, 4, -1};
  EXPECT_EQ(checkPacking(problem), "live range 1 has a negative size");
  problem.liveRanges[1].bytes = 1;
  problem.alignment = 48;
  EXPECT_EQ(checkPacking(problem), "the alignment is not a power of two");
}

TEST(Packing, VerifyNamesWhatIsWrongWithAPlan) {
  PackingProblem problem;
  problem.liveRanges = {{0, 4, 64}, {2, 6, 128}, {4, 8, 64}};
  PackingPlan good;
  good.offsets = {0, 64, 0};
  good.peak = 192;
  EXPECT_EQ(verifyPacking(problem, good), std::nullopt);
  PackingPlan bad = good;
  bad.offsets[1] = 0;
  EXPECT_EQ(verifyPacking(problem, bad),
            "live ranges 0 and 1 share bytes at position 2");
  // Partly, from below and from above.
  bad.offsets = {64, 0, 192};
  bad.peak = 256;
  EXPECT_EQ(verifyPacking(problem, bad),
            "live ranges 0 and 1 share bytes at position 2");
  bad.offsets = {0, 64, 128};
  EXPECT_EQ(verifyPacking(problem, bad),
            "live ranges 1 and 2 share bytes at position 4");
  bad = good;
  bad.offsets[2] = 32;
  EXPECT_EQ(verifyPacking(problem, bad), "live range 2 is not aligned");
  bad = good;
  bad.peak = 128;
  EXPECT_EQ(verifyPacking(problem, bad), "live range 1 ends above the peak");
  bad.offsets.pop_back();
  EXPECT_EQ(verifyPacking(problem, bad),
            "the plan has 2 offsets for 3 live ranges");
}

TEST(Packing, StopsWhenAPlanIsSmallEnough) {
  PackingProblem problem = randomProblem(3, 200, 60);
  PackingPlan first = solvePacking(problem, 2 * maxLive(problem).bytes);
  EXPECT_EQ(first.solver, "contention, smallest gap");
  EXPECT_EQ(verifyPacking(problem, first), std::nullopt);
}

TEST(Packing, GivesUpWhereAPlanIsFarFromSmallEnough) {
  PackingProblem problem = randomProblem(4, 3000, 600, 300);
  PackingPlan plan = solvePacking(problem, 0, /*onlyEnough=*/true);
  EXPECT_EQ(verifyPacking(problem, plan), std::nullopt);
  EXPECT_EQ(plan.solver.find("local search"), std::string::npos);
  EXPECT_GT(double(plan.peak), 1.07 * double(maxLive(problem).bytes));
  EXPECT_NE(solvePacking(problem).solver.find("local search"),
            std::string::npos);
  // What is near is searched on, as without the flag.
  PackingProblem small = randomProblem(3, 200, 60);
  EXPECT_EQ(solvePacking(small, 0, /*onlyEnough=*/true).offsets,
            solvePacking(small).offsets);
}

TEST(Sizes, AreReadAsPeopleWriteThem) {
  auto bytes = [](llvm::StringRef text) {
    return llvm::cantFail(parseBytes(text));
  };
  EXPECT_EQ(bytes("64000000001"), 64000000001);
  EXPECT_EQ(bytes("17 B"), 17);
  EXPECT_EQ(bytes("1KiB"), 1024);
  EXPECT_EQ(bytes("3MiB"), 3 << 20);
  EXPECT_EQ(bytes("1.5GiB"), 3ll << 29);
  EXPECT_EQ(bytes("2 tib"), 2ll << 40);
  EXPECT_EQ(bytes("1KB"), 1000);
  EXPECT_EQ(bytes("500MB"), 500000000);
  EXPECT_EQ(bytes("1.5GB"), 1500000000);
  EXPECT_EQ(bytes("2TB"), 2000000000000);
  for (llvm::StringRef wrong :
       {"", "GiB", "-1", "0", "0.1", "1.2.3GiB", "60G", "1iB", "7PiB",
        "9000000TiB", "1e9", "nan", "60GiBs", "0x10"}) {
    llvm::Expected<int64_t> size = parseBytes(wrong);
    ASSERT_FALSE(bool(size)) << wrong.str();
    EXPECT_NE(llvm::toString(size.takeError()).find("is no size; write bytes"),
              std::string::npos);
  }
}

TEST(Packing, AnEmptyProblemNeedsNothing) {
  EXPECT_EQ(solvePacking(PackingProblem()).peak, 0);
}
