//===- Stamp.cpp - Decisions on ops ---------------------------------------===//
#include "fsdp/Schedule/Decisions.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::schedule;

/// Takes the decisions from all ops of `module`.
static void clear(ModuleOp module) {
  module.walk([](Operation *op) { op->removeAttr(dist::kDecisionAttr); });
}

/// A collective like that of `point`, computed again.
static DecisionPoint cloneOf(DecisionPoint point) {
  point.canRecompute = point.staysInBlock = point.isFree = false;
  return point;
}

/// `again` is what is decided about the clone of a collective, if it is cloned.
/// The op of another program that has the same address may be one about which
/// more can be decided.
static void writeDecision(const DecidableOp &decidable, const Decision &found,
                          const Decision *again) {
  MLIRContext *context = decidable.op->getContext();
  Decision decision = aboutPoint(found, decidable.point);
  dist::DecisionAttr clone;
  if (again && decision.recompute)
    clone = dist::DecisionAttr::get(
        context, aboutPoint(*again, cloneOf(decidable.point)), {});
  decidable.op->setAttr(dist::kDecisionAttr,
                        dist::DecisionAttr::get(context, decision, clone));
}

void Decisions::stamp(ModuleOp module, const DecisionPoints &points) const {
  clear(module);
  for (const DecidableOp &decidable : points.ops()) {
    const auto *again = decisions.find(decidable.origin.again());
    writeDecision(decidable, (*this)[decidable.origin],
                  decidable.point.kind && again != decisions.end()
                      ? &again->second
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

/// No op's decision is left to the plan where others have theirs. The clone of
/// a reduction has none: nothing is decided about it.
static LogicalResult checkCollectives(ModuleOp module) {
  for (auto program : module.getOps<func::FuncOp>())
    for (Operation &op : program.getOps()) {
      if (!isa<dist::CollectiveOpInterface>(op) ||
          op.hasAttr(dist::kDecisionAttr))
        continue;
      dist::OriginAttr origin = dist::originOf(&op);
      if (!origin || origin.getPhase() != dist::Phase::Again)
        return op.emitOpError("has no '")
               << dist::kDecisionAttr
               << "', though other ops have one; write #fsdp.decision<> on it, "
                  "or let fsdp-plan decide about all";
    }
  return success();
}

/// The origin by which rules know the op: a bucket goes by its first member.
static dist::OriginAttr originForRules(const DecidableOp &decidable) {
  auto members = decidable.op->getAttrOfType<ArrayAttr>(dist::kMembersAttr);
  return members && !members.empty() ? cast<dist::OriginAttr>(members[0])
                                     : decidable.origin;
}

LogicalResult fsdp::schedule::ensureDecisions(ModuleOp module) {
  if (hasDecisions(module))
    return checkCollectives(module);
  FailureOr<Plan> plan = planOf(module);
  if (failed(plan))
    return failure();
  llvm::Expected<Rules> rules = Rules::compile(std::move(*plan));
  if (!rules)
    return module.emitError("fsdp.plan: ") << llvm::toString(rules.takeError());
  DecisionPoints points(module);
  for (const DecidableOp &decidable : points.ops()) {
    dist::OriginAttr origin = originForRules(decidable);
    Decision decision, again;
    rules->decide(origin, decidable.point, decision);
    rules->decide(origin.again(), cloneOf(decidable.point), again);
    writeDecision(decidable, decision, decidable.point.kind ? &again : nullptr);
  }
  return success();
}
