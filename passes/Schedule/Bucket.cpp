//===- Bucket.cpp - Merges the collectives of a unit ----------------------===//

#include "dialects/NN/ModulePath.h"
#include "passes/Passes.h"
#include "passes/Schedule/Units.h"
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

/// Collectives merge when they agree on unit, direction, kind and key: every
/// attribute (mesh, axes, dimension, reduction, scale) and the element types.
using Key =
    std::tuple<unsigned, unsigned, OperationName, Attribute, Type, Type>;

Key keyOf(const UnitCollective &collective) {
  Operation *op = collective.op;
  NamedAttrList attributes(op->getAttrDictionary());
  attributes.erase("serves");
  attributes.erase(dist::kParametersAttr);
  attributes.erase(nn::kModuleAttr);
  return {collective.unit,
          collective.backward,
          op->getName(),
          attributes.getDictionary(op->getContext()),
          getElementTypeOrSelf(op->getOperand(0)),
          getElementTypeOrSelf(op->getResult(0))};
}

struct BucketPass : fsdp::impl::BucketBase<BucketPass> {
  using Base::Base;

  void runOnOperation() override {
    auto apply = [&](Block &block, const Units &units) {
      return mergeBlock(block, units);
    };
    if (failed(applyPlan(getOperation(), apply)))
      signalPassFailure();
  }

  /// Kind by kind: where a scatter's result is reduced again, merging the
  /// scatters moves the all-reduces that then merge.
  LogicalResult mergeBlock(Block &block, const Units &units) {
    return success(succeeded(mergeKind<dist::AllGatherOp>(block, units)) &&
                   succeeded(mergeKind<dist::ReduceScatterOp>(block, units)) &&
                   succeeded(mergeKind<dist::AllReduceOp>(block, units)));
  }

  template <typename OpT>
  LogicalResult mergeKind(Block &block, const Units &units) {
    FailureOr<SmallVector<UnitCollective>> collectives = units.collect(block);
    if (failed(collectives))
      return failure();
    llvm::MapVector<Key, SmallVector<UnitCollective>> buckets;
    for (const UnitCollective &collective : *collectives)
      if (isa<OpT>(collective.op) && units[collective.unit].bucket)
        buckets[keyOf(collective)].push_back(collective);
    llvm::DenseMap<Operation *, unsigned> number = numberOps(block);
    for (auto &[key, members] : buckets)
      if (failed(merge(members, units, number)))
        return failure();
    return success();
  }

  /// Replaces the members by one variadic collective. A gather takes the place
  /// of the first member, a reduction that of the last.
  LogicalResult merge(SmallVector<UnitCollective> &members, const Units &units,
                      llvm::DenseMap<Operation *, unsigned> &number) {
    Operation *place = isa<dist::AllGatherOp>(members.front().op)
                           ? members.front().op
                           : members.back().op;
    bool isGather = isa<dist::AllGatherOp>(place);
    llvm::stable_sort(members,
                      [](const UnitCollective &a, const UnitCollective &b) {
                        return a.order < b.order;
                      });
    SmallVector<Value> operands;
    SmallVector<Type> types;
    SmallVector<Attribute> parameters;
    for (const UnitCollective &member : members) {
      if (isGather)
        for (Value operand : member.op->getOperands())
          if (Operation *producer = operand.getDefiningOp();
              producer && number.lookup(producer) > number.lookup(place))
            hoistBefore(producer, place, number);
      if (!isGather && failed(sinkUsers(member.op, place, number)))
        return failure();
      llvm::append_range(operands, member.op->getOperands());
      llvm::append_range(types, member.op->getResultTypes());
      llvm::append_range(parameters, member.op->getAttrOfType<ArrayAttr>(
                                         dist::kParametersAttr));
    }
    LDBG() << units[members.front().unit].name << ": " << members.size()
           << " x " << place->getName();
    OpBuilder builder(place);
    // Not a member's module but the whole unit is where a bucket belongs.
    Location location =
        NameLoc::get(builder.getStringAttr(units[members.front().unit].name),
                     place->getLoc());
    OperationState state(location, place->getName(), operands, types,
                         place->getAttrs());
    state.attributes.set(dist::kParametersAttr,
                         builder.getArrayAttr(parameters));
    state.attributes.set("serves", builder.getStringAttr(nn::inPass(
                                       members.front().backward,
                                       units[members.front().unit].name)));
    Operation *merged = builder.create(state);
    nn::setModule(merged, nn::commonModule(llvm::map_to_vector(
                              members, [](const UnitCollective &member) {
                                return member.op;
                              })));
    number[merged] = number.lookup(place);
    replaceMembers(members, merged);
    return success();
  }

  static void replaceMembers(ArrayRef<UnitCollective> members,
                             Operation *merged) {
    unsigned next = 0;
    for (const UnitCollective &member : members) {
      unsigned count = member.op->getNumResults();
      member.op->replaceAllUsesWith(merged->getResults().slice(next, count));
      next += count;
      member.op->erase();
    }
  }

  /// Makes sure that nothing reads the result of `op` before the bucket's
  /// `place`: an nn.gradient, alone or behind the all-reduce of a scatter,
  /// casts and moves of elements, moves behind it; any other early user is an
  /// error.
  static LogicalResult
  sinkUsers(Operation *op, Operation *place,
            llvm::DenseMap<Operation *, unsigned> &number) {
    for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
      if (number.lookup(user) > number.lookup(place))
        continue;
      if (!isa<nn::GradientOp, nn::CastOp, dist::AllReduceOp,
               dist::ReduceScatterOp, dist::ShardOfOp, nn::ReshapeOp,
               nn::TransposeOp, nn::SliceOp, nn::PadOp>(user)) {
        InFlightDiagnostic error =
            op->emitOpError("cannot join its bucket: its result is used before "
                            "the bucket's last member");
        error.attachNote(user->getLoc()) << "used here";
        error.attachNote(place->getLoc()) << "the last member";
        return error;
      }
      // Its own users first, so that each lands behind its producer.
      if (failed(sinkUsers(user, place, number)))
        return failure();
      user->moveAfter(place);
      number[user] = number.lookup(place) + 1;
    }
    return success();
  }
};

} // namespace
