//===- DecidedMeaningTest.cpp - A decided plan changes no meaning ---------===//
//
// Random programs of blocks with random placements on random meshes, and what
// is decided for them in budgets: after every pass that applies the plan the
// program computes what the logical program does, fsdp-verify-schedule and
// exec-verify accept it, and its bytes are those that were decided.
//
//===----------------------------------------------------------------------===//
#include "PlanCase.h"
#include "fsdp/Memory/Report.h"
#include "fsdp/Schedule/DecidedPlan.h"
#include "fsdp/Schedule/Decisions.h"
#include "fsdp/Schedule/PackedArena.h"
#include "fsdp/Schedule/ProblemOf.h"
#include "fsdp/Schedule/ScheduleDecider.h"
#include "fsdp/Support/Error.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace fsdp;

namespace {

/// A GPU's node, and ranks that a slow network connects.
CostModel machineOf(bool isSlow) {
  Machine machine = loadMachine("h100");
  if (isSlow) {
    machine.device.ranksPerNode = 1;
    machine.network.bytesPerSecond = machine.exact.networkBytesPerSecond = 1e9;
    machine.exact.messageSeconds = 0;
  }
  return CostModel(machine);
}

/// What became of the plans of all programs.
struct Tally {
  int programs = 0, withoutChain = 0, withoutPlan = 0;
  int plans = 0, recompute = 0, communicate = 0;
};

class DecidedProgram {
public:
  DecidedProgram(MLIRContext &context, unsigned seed)
      : program(context, seed, 1000, ProgramShape::Blocks), seed(seed),
        target(seed % 3 == 0 ? "cuda" : "test"),
        model(machineOf(seed % 2 == 1)), costs{model} {}

  /// What is decided in a few budgets.
  void run(Tally &tally) {
    ASSERT_TRUE(program.isGood);
    std::string why;
    std::unique_ptr<TargetInfo> info = makeTarget(target, 1, why);
    FailureOr<problem::Problem> made =
        schedule::problemOf(program.random.get(), *info, {});
    ASSERT_TRUE(succeeded(made));
    problem = std::move(*made);
    OwningOpRef<ModuleOp> byRule = program.random.get().clone();
    ASSERT_TRUE(succeeded(runPasses(*byRule, createPlan())));
    ++tally.programs;
    try {
      problem::ScheduleDecider decider(
          problem, schedule::candidateOf(problem, *byRule), costs, "train");
      tryBudgets(decider, tally);
    } catch (const Error &) {
      // No chain of blocks: what an op of the root computes is between two of
      // them. Or the rule itself cannot be applied.
      ++tally.withoutChain;
    }
  }

private:
  void tryBudgets(problem::ScheduleDecider &decider, Tally &tally) {
    std::mt19937_64 generator(seed);
    int64_t least = decider.recompute().least().bytes;
    for (int tries = 0; tries < 2; ++tries) {
      int64_t budget = least + least * int64_t(generator() % 100) / 100;
      auto decided = decider.decide(budget);
      if (!decided) {
        ++tally.withoutPlan;
        continue;
      }
      EXPECT_LE(decided->bytes, budget);
      schedule::Plan plan =
          schedule::toPlan(problem, decider.given(), decided->candidate);
      apply(plan, *decided);
      ++tally.plans;
      tally.recompute += llvm::any_of(plan.rules, [](const auto &rule) {
        return rule.overrides.recompute == std::optional(true);
      });
      tally.communicate += !(decided->communication == decider.byRule());
    }
  }

  /// The compiler applies `plan`, and needs the bytes that were decided, in the
  /// arena that was foreseen.
  void apply(const schedule::Plan &plan,
             const problem::DecidedSchedule &decided) {
    OwningOpRef<ModuleOp> copy = program.random.get().clone();
    std::string why;
    ASSERT_EQ(program.applyTo(*copy, plan, why), PlanOutcome::Kept)
        << why << schedule::toJSON(plan);
    ExecLowerOptions lower;
    lower.target = target;
    lower.threads = 1;
    ASSERT_TRUE(succeeded(runPasses(*copy, createExecLower(lower),
                                    createBatchCasts(), createPlanMemory(),
                                    createSynchronize(), createVerifyExec())))
        << schedule::toJSON(plan);
    int64_t bytes = 0;
    MemoryReport report = memoryReport(*copy);
    for (const auto &memory : report.programs)
      bytes = std::max(bytes, memory.lowerBound);
    EXPECT_EQ(bytes, decided.bytes) << schedule::toJSON(plan);
    EXPECT_EQ(report.arenaBytes,
              schedule::PackedArena(problem).bytes(decided.candidate))
        << schedule::toJSON(plan);
  }

  PlanCase program;
  unsigned seed;
  std::string target;
  CostModel model;
  simulation::Costs costs;
  problem::Problem problem;
};

TEST(DecidedMeaning, IsThatOfTheLogicalProgram) {
  // A fifth: each program has two plans, and hundreds are tried for each.
  int count = programs() / 5;
  Tally tally;
  auto run = [&](int seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    PlacedContext context;
    DecidedProgram(context, seed).run(tally);
  };
  // A bucket may have reductions of what others of it give.
  run(2179);
  for (int seed = 0; seed < count && !testing::Test::HasFailure(); ++seed)
    run(seed);
  std::printf("%d programs, %d no chain of blocks; %d plans, %d budgets "
              "without; %d recompute, %d with other communication than the "
              "rule's\n",
              tally.programs, tally.withoutChain, tally.plans,
              tally.withoutPlan, tally.recompute, tally.communicate);
  EXPECT_EQ(tally.withoutPlan, 0);
  EXPECT_GT(tally.plans, count);
  EXPECT_GT(4 * tally.communicate, tally.plans);
  EXPECT_GT(10 * tally.recompute, tally.plans);
}

} // namespace
