//===- Overlap.cpp - Starts and waits of collectives ----------------------===//

#include "dialects/NN/ModulePath.h"
#include "passes/Passes.h"
#include "passes/Schedule/Units.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fsdp-overlap"

namespace fsdp {
#define GEN_PASS_DEF_OVERLAP
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

/// The collectives of one unit, direction and kind, in block order; all of
/// them start together.
struct Group {
  unsigned unit;
  bool backward;
  SmallVector<Operation *> members;
};

/// Groups in the order of their first members.
template <typename Filter>
SmallVector<Group> groupByUnit(ArrayRef<UnitCollective> collectives,
                               Filter filter) {
  SmallVector<Group> groups;
  for (const UnitCollective &collective : collectives) {
    if (!filter(collective.op))
      continue;
    auto same = llvm::find_if(groups, [&](const Group &group) {
      return group.unit == collective.unit &&
             group.backward == collective.backward;
    });
    if (same == groups.end()) {
      groups.push_back({collective.unit, collective.backward, {}});
      same = std::prev(groups.end());
    }
    same->members.push_back(collective.op);
  }
  return groups;
}

/// Wraps `op` in fsdp.async at its place; the values come from a new
/// fsdp.await before `awaitAt`, or right behind the start if that is null.
dist::AwaitOp makeAsync(Operation *op, Operation *awaitAt, OpBuilder &builder) {
  SmallVector<Type> types(op->getResultTypes());
  builder.setInsertionPoint(op);
  nn::ModuleScope scope(builder, nn::moduleOf(op));
  auto async =
      dist::AsyncOp::create(builder, op->getLoc(),
                            dist::FutureType::get(builder.getContext(), types));
  Block *body = builder.createBlock(&async.getBody());
  if (awaitAt)
    builder.setInsertionPoint(awaitAt);
  else
    builder.setInsertionPointAfter(async);
  auto await =
      dist::AwaitOp::create(builder, op->getLoc(), types, async.getFuture());
  op->replaceAllUsesWith(await.getResults());
  op->moveBefore(body, body->end());
  builder.setInsertionPointToEnd(body);
  dist::YieldOp::create(builder, op->getLoc(), op->getResults());
  return await;
}

struct OverlapPass : fsdp::impl::OverlapBase<OverlapPass> {
  using Base::Base;

  void runOnOperation() override {
    auto apply = [&](Block &block, const Units &units) {
      return overlapBlock(block, units);
    };
    if (failed(applyPlan(getOperation(), apply)))
      signalPassFailure();
  }

  LogicalResult overlapBlock(Block &block, const Units &units) {
    FailureOr<SmallVector<UnitCollective>> collectives = units.collect(block);
    if (failed(collectives))
      return failure();
    llvm::erase_if(*collectives, [&](const UnitCollective &collective) {
      return !units[collective.unit].overlap;
    });
    startGathersEarly(
        groupByUnit(*collectives,
                    [](Operation *op) { return isa<dist::AllGatherOp>(op); }),
        units, block);
    awaitReductionsLate(
        groupByUnit(*collectives,
                    [](Operation *op) { return !isa<dist::AllGatherOp>(op); }),
        units, block);
    return success();
  }

  /// Group i starts before the wait of group i - prefetch of its direction:
  /// ag0 ag1 wait0 compute0 ag2 wait1 compute1 … for a distance of one. The
  /// backward pass begins with units that are still gathered (the head), so its
  /// first groups start behind nn.seed and hide behind those.
  void startGathersEarly(SmallVector<Group> groups, const Units &units,
                         Block &block) {
    llvm::DenseMap<Operation *, unsigned> number = numberOps(block);
    OpBuilder builder(&getContext());
    auto seeds = block.getOps<nn::SeedOp>();
    for (bool backward : {false, true}) {
      SmallVector<Operation *> waits;
      if (backward && !seeds.empty())
        waits.push_back((*seeds.begin())->getNextNode());
      for (Group &group : groups) {
        if (group.backward != backward)
          continue;
        const schedule::Unit &unit = units[group.unit];
        size_t distance = static_cast<size_t>(backward ? unit.backwardPrefetch
                                                       : unit.forwardPrefetch);
        Operation *start = nullptr;
        if (!waits.empty() && distance > 0)
          start = waits[waits.size() - std::min(distance, waits.size())];
        Operation *firstWait = startGroup(group, start, number, builder);
        if (firstWait)
          waits.push_back(firstWait);
      }
    }
  }

  /// Starts the members before `start` (null: where they are) and awaits each
  /// before its first use. Gives the group's first wait.
  Operation *startGroup(Group &group, Operation *start,
                        llvm::DenseMap<Operation *, unsigned> &number,
                        OpBuilder &builder) {
    Operation *firstWait = nullptr;
    for (Operation *op : group.members) {
      Operation *user = firstUser(op, number);
      if (!user)
        continue;
      if (start && number.lookup(start) < number.lookup(op))
        hoistBefore(op, start, number);
      unsigned at = number.lookup(op);
      dist::AwaitOp await = makeAsync(op, user, builder);
      number[await] = number.lookup(user);
      number[await.getFuture().getDefiningOp()] = at;
      LDBG() << "gather of unit " << group.unit << " starts at op " << at
             << ", awaited at op " << number.lookup(user);
      if (!firstWait)
        firstWait = await;
    }
    return firstWait;
  }

  /// Reduction i is awaited when reduction i + defer has started, or where its
  /// result is used.
  void awaitReductionsLate(SmallVector<Group> groups, const Units &units,
                           Block &block) {
    llvm::DenseMap<Operation *, unsigned> number = numberOps(block);
    OpBuilder builder(&getContext());
    for (auto [index, group] : llvm::enumerate(groups)) {
      size_t defer = units[group.unit].reduceDefer;
      Operation *limit = nullptr;
      if (defer > 0 && index + defer < groups.size())
        limit = groups[index + defer].members.back();
      awaitGroup(group, defer > 0, limit, number, builder);
    }
  }

  /// Awaits each member before its first use or, if that comes first, behind
  /// the start `limit`; without `late` at once. A scatter whose result is only
  /// reduced once more is awaited by that all-reduce: it follows on the same
  /// stream, and computation waits for neither.
  void awaitGroup(Group &group, bool late, Operation *limit,
                  llvm::DenseMap<Operation *, unsigned> &number,
                  OpBuilder &builder) {
    llvm::DenseMap<Operation *, SmallVector<dist::AwaitOp>> awaitedBy;
    for (Operation *&op : group.members) {
      Operation *user = firstUser(op, number);
      if (!user)
        continue;
      // The limit is a start; the wait goes right behind it.
      Operation *behind = limit ? limit->getNextNode() : nullptr;
      bool useFirst = !behind || number.lookup(user) < number.lookup(limit);
      bool chained = isChained(op, user, group);
      Operation *awaitAt = chained || useFirst ? user : behind;
      if (!late && !chained)
        awaitAt = nullptr;
      unsigned at = number.lookup(op);
      dist::AwaitOp await = makeAsync(op, awaitAt, builder);
      for (dist::AwaitOp scatter : awaitedBy.lookup(op))
        scatter->moveBefore(op);
      if (chained)
        awaitedBy[user].push_back(await);
      op = await.getFuture().getDefiningOp();
      number[op] = at;
      number[await] = awaitAt ? number.lookup(awaitAt) : at;
    }
  }

  /// Whether `user`, an all-reduce of the group, is all that reads `op`.
  static bool isChained(Operation *op, Operation *user, const Group &group) {
    return isa<dist::ReduceScatterOp>(op) && isa<dist::AllReduceOp>(user) &&
           llvm::is_contained(group.members, user) &&
           llvm::all_of(op->getUsers(),
                        [&](Operation *other) { return other == user; });
  }
};

} // namespace
