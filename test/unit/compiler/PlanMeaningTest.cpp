//===- PlanMeaningTest.cpp - A plan changes no meaning --------------------===//
//
// Random plans for random programs with random placements on random meshes, in
// f64: after every pass that applies a plan, the program of one rank, run on
// all ranks, computes what the logical program does, and what
// fsdp-verify-schedule follows is unchanged. A failure is made small before it
// is shown.
//
//===----------------------------------------------------------------------===//
#include "PlanCase.h"
#include "fsdp/Schedule/Decisions.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::schedule;

namespace {

/// Makes plans for the points of a module.
class RandomPlans {
public:
  RandomPlans(unsigned seed, const DecisionPoints &points)
      : generator(seed), points(points) {
    for (const auto &entry : points.all())
      origins.push_back(entry.first);
    for (const auto &entry : points.addresses())
      anchors.push_back(entry.getKey().str());
    llvm::sort(anchors);
  }

  Plan next() {
    Plan plan;
    if (origins.empty()) // nothing moves, and nothing is kept
      return plan;
    for (int i = 0, count = 1 + below(5); i < count; ++i)
      plan.rules.push_back(rule());
    return plan;
  }

private:
  int below(size_t end) {
    return std::uniform_int_distribution<int>(0, static_cast<int>(end) -
                                                     1)(generator);
  }
  template <typename T> const T &pick(const std::vector<T> &list) {
    return list[below(list.size())];
  }

  /// One address, or all of its phase and name.
  std::string match(dist::OriginAttr origin) {
    dist::Origin all = origin.getOrigin();
    all.path = {};
    StringRef phase = dist::stringifyPhase(all.phase);
    return below(3) == 0
               ? (phase + "*" + StringRef(all.str()).drop_front(phase.size()))
                     .str()
               : origin.getText().str();
  }

  /// Mostly something that can be decided there.
  Rule rule() {
    dist::OriginAttr origin = pick(origins);
    const DecisionPoint &point = points.all().find(origin)->second;
    Rule rule;
    rule.match = {match(origin)};
    if (point.canRecompute && (!point.kind || below(3) == 0))
      rule.overrides.recompute = below(4) != 0;
    else
      choose(rule.overrides, point);
    return rule;
  }

  void choose(DecisionOverrides &overrides, const DecisionPoint &point) {
    switch (below(point.parameter.empty() ? 4 : 6)) {
    case 0:
      overrides.overlap = below(3) != 0;
      break;
    case 1:
      (point.isGather() ? overrides.prefetch : overrides.defer) = below(4);
      break;
    case 2:
      overrides.startAfter = pick(anchors);
      overrides.bucket = point.parameter.empty() ? std::optional<std::string>()
                                                 : std::string();
      break;
    case 3:
      overrides.awaitBefore = pick(anchors);
      if (below(2) == 0)
        overrides.startAfter = pick(anchors);
      break;
    case 4:
      overrides.merge = below(2) == 0;
      break;
    default:
      overrides.bucket =
          std::vector<std::string>{"a", "b", "layers.*", ""}[below(4)];
      break;
    }
  }

  std::mt19937_64 generator;
  const DecisionPoints &points;
  std::vector<dist::OriginAttr> origins;
  std::vector<std::string> anchors;
};

/// Leaves out what is not needed for a failure: rules, then ops.
std::string shrink(MLIRContext &context, unsigned seed, Plan plan) {
  std::string why;
  auto fails = [&](PlanCase &program, const Plan &smaller) {
    std::string now;
    bool failed =
        program.isGood && program.apply(smaller, now) == PlanOutcome::Failed;
    if (failed)
      why = now;
    return failed;
  };
  int64_t limit = 1000;
  for (int64_t fewer = 1; fewer < 12 && limit == 1000; ++fewer) {
    PlanCase program(context, seed, fewer);
    if (fails(program, plan))
      limit = fewer;
  }
  PlanCase program(context, seed, limit);
  for (size_t i = plan.rules.size(); i-- > 0;) {
    Plan smaller = plan;
    smaller.rules.erase(smaller.rules.begin() + i);
    if (fails(program, smaller))
      plan = smaller;
  }
  return "seed " + std::to_string(seed) + ": " + why + "\n" + toJSON(plan) +
         "\n" + text(program.random.get());
}

TEST(PlanMeaning, IsThatOfTheLogicalProgram) {
  PlacedContext context;
  int kept = 0, refused = 0;
  for (int seed = 0; seed < programs(); ++seed) {
    PlanCase program(context, seed);
    ASSERT_TRUE(program.isGood) << "seed " << seed;
    DecisionPoints points(program.random.get());
    RandomPlans plans(seed, points);
    for (int tries = 0; tries < 3; ++tries) {
      Plan plan = plans.next();
      std::string why;
      switch (program.apply(plan, why)) {
      case PlanOutcome::Kept:
        ++kept;
        break;
      case PlanOutcome::Refused:
        // A plan that cannot be applied is an error that says why.
        EXPECT_NE(why, "") << toJSON(plan);
        ++refused;
        break;
      case PlanOutcome::Failed:
        FAIL() << shrink(context, seed, plan);
      }
    }
  }
  std::printf("%d plans applied, %d refused\n", kept, refused);
  EXPECT_GT(kept, 2 * programs() - programs() / 2);
}

// What is printed of a plan is that plan.
TEST(PlanMeaning, SurvivesItsText) {
  PlacedContext context;
  int read = 0;
  for (int seed = 0; seed < std::min(programs(), 100); ++seed) {
    PlanCase program(context, seed);
    DecisionPoints points(program.random.get());
    RandomPlans plans(seed, points);
    for (int tries = 0; tries < 5; ++tries) {
      Decisions decisions = Decisions::byRule(points, {});
      if (llvm::Error error = decisions.apply(plans.next(), points)) {
        llvm::consumeError(std::move(error));
        continue;
      }
      Plan whole = decisions.plan(points);
      llvm::Expected<Plan> again = parseJSON(toJSON(whole), "plan");
      ASSERT_TRUE(static_cast<bool>(again));
      Decisions other =
          Decisions::byRule(points, {UnitPolicy::Whole, ReshardPolicy::Always,
                                     "full", false, false, 2, 2});
      llvm::Error error = other.apply(std::move(*again), points);
      ASSERT_FALSE(static_cast<bool>(error))
          << llvm::toString(std::move(error)) << toJSON(whole);
      for (const auto &entry : points.all())
        EXPECT_TRUE(decisions[entry.first] == other[entry.first])
            << entry.first.getText().str() << "\n"
            << toJSON(whole);
      ++read;
    }
  }
  EXPECT_GT(read, 50);
}

//===----------------------------------------------------------------------===//
// Faults in a schedule
//===----------------------------------------------------------------------===//

/// Gives an operand of `op` another value of its type that stands before; false
/// if there is none.
bool anotherOperand(Operation *op, std::mt19937_64 &generator) {
  if (op->getNumOperands() == 0)
    return false;
  OpOperand &operand = op->getOpOperand(generator() % op->getNumOperands());
  SmallVector<Value> others;
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode())
    for (Value value : before->getResults())
      if (value != operand.get() && value.getType() == operand.get().getType())
        others.push_back(value);
  if (others.empty())
    return false;
  operand.set(others[generator() % others.size()]);
  return true;
}

/// Reads what the optimizer leaves, not what it found.
bool readAfterUpdate(Operation *op, std::mt19937_64 &) {
  auto update = dyn_cast<nn::AdamWOp>(op);
  if (!update)
    return false;
  OpBuilder builder(op->getBlock()->getTerminator());
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode())
    if (auto read = dyn_cast<nn::ReadOp>(before)) {
      // Its users follow: what they give is returned in place of the loss.
      auto scalar = RankedTensorType::get({}, builder.getF32Type());
      Operation *late = builder.clone(*read);
      SmallVector<int64_t> dims;
      for (int64_t d = 0; d < read.getType().getRank(); ++d)
        dims.push_back(d);
      Value sum = nn::SumOp::create(builder, op->getLoc(), scalar,
                                    late->getResult(0), dims);
      op->getBlock()->getTerminator()->setOperand(0, sum);
      return true;
    }
  return false;
}

bool maximumForSum(Operation *op, std::mt19937_64 &) {
  if (!isa<dist::ReduceScatterOp, dist::AllReduceOp>(op))
    return false;
  auto maximum = dist::CollectiveReduceAttr::get(op->getContext(),
                                                 dist::CollectiveReduce::Max);
  if (op->getAttr("kind") == maximum)
    return false;
  op->setAttr("kind", maximum);
  return true;
}

/// A gather or a reduction is left out where the types allow it.
bool noCollective(Operation *op, std::mt19937_64 &) {
  if (!isa<dist::CollectiveOpInterface>(op) || op->getNumOperands() != 1 ||
      op->getOperand(0).getType() != op->getResult(0).getType())
    return false;
  // Inside fsdp.async the collective must stay: it gets what it would give.
  if (isa<dist::AsyncOp>(op->getParentOp()))
    return false;
  op->getResult(0).replaceAllUsesWith(op->getOperand(0));
  return true;
}

using Plant = bool (*)(Operation *, std::mt19937_64 &);

TEST(PlanMeaning, TheVerifierFindsFaults) {
  PlacedContext context;
  int planted = 0, same = 0, refused = 0;
  for (int seed = 0; seed < std::min(programs(), 40); ++seed) {
    PlanCase program(context, seed);
    ModuleOp module = program.random.get();
    // Gathers that read one another cannot be in the bucket of the rule.
    if (failed(runPasses(module, createPlan(), createRemat(), createBucket(),
                         createOverlap(), createVerifySchedule()))) {
      ++refused;
      continue;
    }
    int64_t ops = 0;
    trainOf(module).walk([&](Operation *) { ++ops; });
    std::mt19937_64 generator(seed);
    for (Plant plant :
         {anotherOperand, readAfterUpdate, maximumForSum, noCollective})
      for (int64_t which = 0; which < ops; ++which) {
        OwningOpRef<ModuleOp> copy = module.clone();
        SmallVector<Operation *> all;
        trainOf(*copy).walk([&](Operation *op) { all.push_back(op); });
        if (!plant(all[which], generator) || failed(verify(*copy)))
          continue;
        std::string why;
        ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
          why += diagnostic.str();
          return success();
        });
        bool isFound = failed(runPasses(*copy, createVerifySchedule()));
        bool isWrong = !program.check(*copy, "the fault").empty();
        EXPECT_TRUE(isFound || !isWrong) << "seed " << seed << "\n"
                                         << text(*copy);
        ++(isFound ? planted : same);
      }
  }
  std::printf("%d faults found, %d changes of no result, %d programs refused\n",
              planted, same, refused);
  EXPECT_LT(refused, 4);
  EXPECT_GT(planted, 300);
}

} // namespace
