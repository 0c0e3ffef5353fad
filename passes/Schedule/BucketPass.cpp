//===- BucketPass.cpp - Merges the collectives of a unit ------------------===//

#include "dialects/NN/ModulePath.h"
#include "passes/Passes.h"
#include "passes/Schedule/PlannedCollectives.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/DebugLog.h"
#include <tuple>

#define DEBUG_TYPE "fsdp-bucket"

namespace fsdp {
#define GEN_PASS_DEF_BUCKET
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

/// Collectives merge when they agree on bucket, direction and key.
using Key = std::tuple<StringRef, unsigned, schedule::MergeKey>;

Key keyOf(const PlannedCollective &collective) {
  return {collective.decision.bucket, collective.afterSeed,
          schedule::mergeKeyOf(collective.op)};
}

/// Merges the collectives of one program.
class Merger {
public:
  explicit Merger(PlannedProgram &program)
      : program(program), builder(program.block.getParentOp()->getContext()) {}

  /// Kind by kind: where a scatter's result is reduced again, merging the
  /// scatters moves the all-reduces that then merge.
  LogicalResult run() {
    if (failed(verifyBuckets(program.collectives())))
      return failure();
    llvm::SetVector<OperationName> kinds;
    for (const PlannedCollective &collective : program.collectives())
      kinds.insert(collective.op->getName());
    for (OperationName kind : kinds)
      if (failed(mergeKind(kind)))
        return failure();
    return success();
  }

private:
  LogicalResult mergeKind(OperationName kind) {
    llvm::MapVector<Key, SmallVector<PlannedCollective>> buckets;
    for (const PlannedCollective &collective : program.collectives())
      if (collective.op->getName() == kind && collective.decision.merge &&
          !collective.decision.bucket.empty())
        buckets[keyOf(collective)].push_back(collective);
    for (auto &[key, members] : buckets)
      if (failed(merge(members)))
        return failure();
    return success();
  }

  /// Replaces the members by one variadic collective. A gather takes the place
  /// of the first member, a reduction that of the last.
  LogicalResult merge(SmallVector<PlannedCollective> &members) {
    bool isGather = members.front().isGather();
    Operation *place = isGather ? members.front().op : members.back().op;
    llvm::stable_sort(
        members, [](const PlannedCollective &a, const PlannedCollective &b) {
          return a.order < b.order;
        });
    for (const PlannedCollective &member : members)
      if (failed(isGather ? bring(member.op, place) : clear(member.op, place)))
        return failure();
    if (!isGather && failed(verifyTogether(members, place)))
      return failure();
    LDBG() << members.front().decision.bucket << ": " << members.size() << " x "
           << place->getName();
    builder.setInsertionPoint(place);
    Operation *merged = create(members, place);
    replace(members, merged);
    return success();
  }

  /// The operands of a gather must be there where the first one stands.
  LogicalResult bring(Operation *op, Operation *place) {
    if (Operation *found = obstacle(op, place)) {
      InFlightDiagnostic error = op->emitOpError(
          "cannot join its bucket: an operand is computed after the bucket's "
          "first member; put it into another bucket of the plan");
      error.attachNote(found->getLoc()) << "computed here";
      error.attachNote(place->getLoc()) << "the first member";
      return error;
    }
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp();
          producer && place->isBeforeInBlock(producer))
        hoistBefore(producer, place);
    return success();
  }

  /// Nothing may read what a reduction gives before the last one.
  LogicalResult clear(Operation *op, Operation *place) {
    Operation *user = sinkUsers(op, place);
    if (!user)
      return success();
    InFlightDiagnostic error = op->emitOpError(
        "cannot join its bucket: its result is used before the bucket's last "
        "member; put it into another bucket of the plan");
    error.attachNote(user->getLoc()) << "used here";
    error.attachNote(place->getLoc()) << "the last member";
    return error;
  }

  /// A reduction that reads what another one of the bucket gives has gone after
  /// the last one with the others of its chain.
  LogicalResult verifyTogether(ArrayRef<PlannedCollective> members,
                               Operation *place) {
    for (const PlannedCollective &member : members)
      if (place->isBeforeInBlock(member.op))
        return member.op->emitOpError(
            "cannot join its bucket: it reduces what another member gives; "
            "put it into another bucket of the plan");
    return success();
  }

  Operation *create(ArrayRef<PlannedCollective> members, Operation *place) {
    SmallVector<Value> operands;
    SmallVector<Type> types;
    SmallVector<Attribute> parameters, origins;
    SmallVector<Operation *> ops;
    for (const PlannedCollective &member : members) {
      // A member may be a bucket itself, or have been written as one.
      auto own = member.op->getAttrOfType<ArrayAttr>(dist::kMembersAttr);
      for (unsigned i = 0, e = member.op->getNumOperands(); i < e; ++i)
        origins.push_back(own ? own[i] : Attribute(member.origin));
      llvm::append_range(operands, member.op->getOperands());
      llvm::append_range(types, member.op->getResultTypes());
      llvm::append_range(parameters, member.op->getAttrOfType<ArrayAttr>(
                                         dist::kParametersAttr));
      ops.push_back(member.op);
    }
    // Not a member's module but the whole bucket is where it belongs.
    const PlannedCollective &first = members.front();
    const std::string &bucket = first.decision.bucket;
    Location location =
        NameLoc::get(builder.getStringAttr(bucket), place->getLoc());
    OperationState state(location, place->getName(), operands, types,
                         place->getAttrs());
    state.attributes.set(dist::kParametersAttr,
                         builder.getArrayAttr(parameters));
    state.attributes.set(dist::kMembersAttr, builder.getArrayAttr(origins));
    state.attributes.set(dist::kOriginAttr, originOf(first, ops));
    state.attributes.set(
        dist::kDecisionAttr,
        dist::DecisionAttr::get(builder.getContext(),
                                schedule::aboutCollective(first.decision), {}));
    state.attributes.set(
        "serves", dist::OriginAttr::get(
                      builder.getContext(),
                      dist::Origin{first.origin.getPhase(), bucket, {}}));
    Operation *merged = builder.create(state);
    nn::setModule(merged, nn::commonModule(ops));
    return merged;
  }

  /// The origin of a bucket; collectives of one bucket that do not merge, for
  /// their types or axes differ, are numbered.
  dist::OriginAttr originOf(const PlannedCollective &first,
                            ArrayRef<Operation *> members) {
    for (Operation *member : members)
      program.addresses.erase(member);
    dist::Origin bucket = schedule::bucketOf(first.origin, first.decision);
    auto origin = dist::OriginAttr::get(builder.getContext(), bucket);
    while (program.addresses.find(origin)) {
      ++bucket.index;
      origin = dist::OriginAttr::get(builder.getContext(), bucket);
    }
    return origin;
  }

  void replace(ArrayRef<PlannedCollective> members, Operation *merged) {
    unsigned next = 0;
    for (const PlannedCollective &member : members) {
      Operation *op = member.op;
      unsigned count = op->getNumResults();
      op->replaceAllUsesWith(merged->getResults().slice(next, count));
      next += count;
      op->erase();
    }
    program.addresses.set(merged, dist::originOf(merged));
  }

  PlannedProgram &program;
  OpBuilder builder;
};

struct BucketPass : fsdp::impl::BucketBase<BucketPass> {
  using Base::Base;

  void runOnOperation() override {
    auto apply = [](PlannedProgram &program) { return Merger(program).run(); };
    if (failed(applyPlan(getOperation(), apply)))
      signalPassFailure();
  }
};

} // namespace
