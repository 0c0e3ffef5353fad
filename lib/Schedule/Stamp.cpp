//===- Stamp.cpp - Decisions on ops ---------------------------------------===//
#include "fsdp/Schedule/Decisions.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::schedule;

/// Takes the decisions from all ops of `module`.
static void clear(ModuleOp module) {
  module.walk([](Operation *op) { op->removeAttr(dist::kDecisionAttr); });
}

/// `again` is what is decided about the clone of a collective, if it is cloned.
static void writeDecision(const PlacedPoint &placed, Decision decision,
                          const Decision *again) {
  MLIRContext *context = placed.op->getContext();
  // An address may be that of another program's op, which can.
  if (!placed.point.canRecompute)
    decision = aboutCollective(decision);
  dist::DecisionAttr clone;
  if (again && decision.recompute)
    clone = dist::DecisionAttr::get(context, *again, {});
  placed.op->setAttr(dist::kDecisionAttr,
                     dist::DecisionAttr::get(context, decision, clone));
}

void Decisions::stamp(ModuleOp module, const Points &points) const {
  clear(module);
  for (const PlacedPoint &placed : points.ops()) {
    const auto *again = decisions.find(addressAgain(placed.address));
    writeDecision(placed, (*this)[placed.address],
                  placed.point.kind && again != decisions.end() ? &again->second
                                                                : nullptr);
  }
}

//===----------------------------------------------------------------------===//
// Plans written by hand
//===----------------------------------------------------------------------===//

static bool hasDecisions(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return op->hasAttr(dist::kDecisionAttr) ? WalkResult::interrupt()
                                                : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The address by which rules know the op: a bucket goes by its first member.
static StringRef addressForRules(const PlacedPoint &placed) {
  auto members = placed.op->getAttrOfType<ArrayAttr>(dist::kMembersAttr);
  return members && !members.empty() ? cast<StringAttr>(members[0]).getValue()
                                     : placed.address;
}

LogicalResult fsdp::schedule::ensureDecisions(ModuleOp module) {
  if (hasDecisions(module))
    return success();
  FailureOr<Plan> plan = planOf(module);
  if (failed(plan))
    return failure();
  llvm::Expected<Rules> rules = Rules::compile(std::move(*plan));
  if (!rules)
    return module.emitError("fsdp.plan: ") << llvm::toString(rules.takeError());
  Points points(module);
  for (const PlacedPoint &placed : points.ops()) {
    StringRef address = addressForRules(placed);
    Decision decision, again;
    rules->decide(address, placed.point, decision);
    Point clone = placed.point;
    clone.phase = nn::Phase::Again;
    clone.canRecompute = false;
    rules->decide(addressAgain(address), clone, again);
    writeDecision(placed, decision, placed.point.kind ? &again : nullptr);
  }
  return success();
}
