//===- OverlapPass.cpp - Starts and waits of collectives ------------------===//

#include "dialects/NN/ModulePath.h"
#include "fsdp/Support/NearestName.h"
#include "passes/Passes.h"
#include "passes/Schedule/PlannedCollectives.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fsdp-overlap"

namespace fsdp {
#define GEN_PASS_DEF_OVERLAP
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

/// The collectives of one bucket, direction and kind, in block order; all of
/// them start together.
struct OverlapGroup {
  SmallVector<PlannedCollective> members;

  const schedule::Decision &decision() const {
    return members.front().decision;
  }
  bool afterSeed() const { return members.front().afterSeed; }
};

/// The addresses that the plan and decisions name, and those that there are. An
/// address may be another program's; one that none has is a mistake.
struct Places {
  llvm::StringSet<> known;

  void addUses(const PlannedCollective &collective) {
    forEachAddress(collective.decision,
                   [&](StringRef field, StringRef address) {
                     uses.push_back({collective.op, field, address.str()});
                   });
  }

  LogicalResult check(ModuleOp module) const {
    if (module->hasAttr(dist::kPlanAttr) && failed(checkPlan(module)))
      return failure();
    for (const Use &use : uses)
      if (!known.contains(use.address))
        return use.op->emitOpError("has the decision '")
               << use.field << "' = '" << use.address
               << "', but no op has that address" << nearest(use.address);
    return success();
  }

private:
  struct Use {
    Operation *op;
    StringRef field;
    std::string address;
  };

  /// Calls `visit` with the name and value of the fields that are addresses.
  template <typename FieldsT, typename Visit>
  static void forEachAddress(const FieldsT &fields, Visit visit) {
    dist::forEachDecisionField([&](const auto &field) {
      if constexpr (std::is_same_v<decltype(field.initial), std::string>) {
        std::optional<std::string> address = field.in(fields);
        if (field.domain == dist::FieldDomain::Address &&
            !address.value_or("").empty())
          visit(field.name, *address);
      }
    });
  }

  /// A rule may be about what this module need not do, and be on no op.
  LogicalResult checkPlan(ModuleOp module) const {
    FailureOr<schedule::Plan> plan = schedule::planOf(module);
    if (failed(plan))
      return failure();
    std::optional<std::string> unknown;
    for (const schedule::Rule &rule : plan->rules)
      forEachAddress(rule.overrides, [&](StringRef, StringRef address) {
        if (!unknown && !known.contains(address))
          unknown = address.str();
      });
    if (!unknown)
      return success();
    return module.emitError("fsdp.plan: no op has the address '")
           << *unknown << "'" << nearest(*unknown);
  }

  /// "; did you mean …?" with the address that is nearest, if one is near.
  std::string nearest(const std::string &address) const {
    std::vector<std::string> names;
    for (StringRef name : known.keys())
      names.push_back(name.str());
    llvm::sort(names); // or the hash would choose among equals
    return didYouMean(address, names);
  }

  SmallVector<Use> uses;
};

/// Wraps `op` in fsdp.async at its place; the values come from a new
/// fsdp.await before `awaitAt`, or right after the start if that is null.
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

/// Places the starts and waits of one program.
class Overlapper {
public:
  /// Adds to `places` all that is and can be named in the program.
  Overlapper(PlannedProgram &program, Places &places)
      : program(program), places(places),
        builder(program.block.getParentOp()->getContext()) {}

  LogicalResult run() {
    SmallVector<PlannedCollective> collectives = program.collectives();
    if (failed(verifyBuckets(collectives)))
      return failure();
    nameBuckets(collectives);
    for (Operation *op : program.addresses.all())
      places.known.insert(program.addresses.of(op).getText());
    for (const auto &entry : named)
      places.known.insert(entry.first.getText());
    for (const PlannedCollective &collective : collectives)
      places.addUses(collective);
    llvm::erase_if(collectives, [](const PlannedCollective &collective) {
      return !collective.decision.overlap;
    });
    return success(succeeded(startGathersEarly(groups(collectives, true))) &&
                   succeeded(awaitReductionsLate(groups(collectives, false))));
  }

private:
  /// A bucket, and a member of one, can be named too.
  void nameBuckets(ArrayRef<PlannedCollective> collectives) {
    for (const PlannedCollective &collective : collectives) {
      Operation *op = collective.op;
      named[dist::OriginAttr::get(
          op->getContext(),
          schedule::bucketOf(collective.origin, collective.decision))] = op;
      if (auto members = op->getAttrOfType<ArrayAttr>(dist::kMembersAttr))
        for (auto member : members.getAsRange<dist::OriginAttr>())
          named[member] = op;
    }
  }

  /// Groups of gathers, or of the others, in the order of their first members.
  static SmallVector<OverlapGroup>
  groups(ArrayRef<PlannedCollective> collectives, bool gathers) {
    SmallVector<OverlapGroup> groups;
    for (const PlannedCollective &collective : collectives) {
      if (collective.isGather() != gathers)
        continue;
      auto same = llvm::find_if(groups, [&](const OverlapGroup &group) {
        return !collective.decision.bucket.empty() &&
               group.decision().bucket == collective.decision.bucket &&
               group.afterSeed() == collective.afterSeed;
      });
      if (same == groups.end()) {
        groups.emplace_back();
        same = std::prev(groups.end());
      }
      same->members.push_back(collective);
    }
    return groups;
  }

  //===--- Addresses ------------------------------------------------------===//

  /// The op of the block that has an address or holds the one that has it. Null
  /// if this program has none.
  Operation *find(StringRef address) {
    dist::OriginAttr origin =
        schedule::parseAddress(builder.getContext(), address);
    if (!origin)
      return nullptr;
    Operation *op = program.addresses.find(origin);
    if (!op)
      op = named.lookup(origin);
    return op ? program.block.findAncestorOpInBlock(*op) : nullptr;
  }

  /// How a diagnostic calls an op: by its address, or what it is.
  std::string nameOf(Operation *op) {
    if (auto async = dyn_cast<dist::AsyncOp>(op))
      op = async.getInnerOp();
    dist::OriginAttr origin = program.addresses.of(op);
    return (origin ? origin.getText() : op->getName().getStringRef()).str();
  }

  /// Brings a collective to where it starts right after `anchor`, and after
  /// what was started there before.
  LogicalResult startAfter(Operation *op, Operation *anchor,
                           StringRef address) {
    Operation *&last = lastStartedAfter[anchor];
    Operation *place = last ? last : anchor;
    auto fail = [&](Operation *found, const Twine &why) {
      InFlightDiagnostic error = op->emitOpError("cannot start right after '")
                                 << address << "': " << why;
      error.attachNote(found->getLoc()) << "this is '" << nameOf(found) << "'";
      return error;
    };
    if (place == op)
      return fail(op, "it cannot start after itself");
    if (op->isBeforeInBlock(place)) {
      if (Operation *user = sinkUsers(op, place))
        return fail(user, "its result is used before");
      placeAfter(op, place);
    } else {
      if (Operation *found = obstacle(op, place->getNextNode()))
        return fail(found, "an operand is computed later");
      hoistBefore(op, place->getNextNode());
    }
    last = op;
    return success();
  }

  /// The same for an address; nothing happens without one in this program.
  LogicalResult startAfterAddress(Operation *op, StringRef address) {
    Operation *anchor = address.empty() ? nullptr : find(address);
    return anchor ? startAfter(op, anchor, address) : success();
  }

  /// The op before which `op`, which starts where it stands, is awaited by an
  /// address; null without one in this program.
  FailureOr<Operation *> awaitedBefore(Operation *op, Operation *user,
                                       StringRef address) {
    Operation *anchor = address.empty() ? nullptr : find(address);
    if (!anchor)
      return anchor;
    if (anchor == op || anchor->isBeforeInBlock(op))
      return op->emitOpError("cannot be awaited before '")
             << address << "', which comes before its start";
    if (user->isBeforeInBlock(anchor)) {
      InFlightDiagnostic error = op->emitOpError("cannot be awaited before '")
                                 << address << "': its result is used before";
      error.attachNote(user->getLoc()) << "this is '" << nameOf(user) << "'";
      return error;
    }
    return anchor;
  }

  /// Wraps `op` and keeps track of what stands where.
  dist::AwaitOp wrap(Operation *op, Operation *awaitAt) {
    dist::AwaitOp await = makeAsync(op, awaitAt, builder);
    Operation *async = await.getFuture().getDefiningOp();
    for (auto &entry : lastStartedAfter)
      if (entry.second == op)
        entry.second = async;
    return await;
  }

  //===--- Gathers --------------------------------------------------------===//

  /// Group i starts before the wait of group i - prefetch of its direction:
  /// ag0 ag1 wait0 compute0 ag2 wait1 compute1 … for a distance of one. The
  /// backward pass begins with units that are still gathered (the head), so its
  /// first groups start after nn.seed and hide behind those.
  LogicalResult startGathersEarly(SmallVector<OverlapGroup> groups) {
    auto seeds = program.block.getOps<nn::SeedOp>();
    for (bool backward : {false, true}) {
      SmallVector<Operation *> waits;
      if (backward && !seeds.empty())
        waits.push_back((*seeds.begin())->getNextNode());
      for (OverlapGroup &group : groups) {
        if (group.afterSeed() != backward)
          continue;
        auto distance = static_cast<size_t>(group.decision().prefetch);
        Operation *start = nullptr;
        if (!waits.empty() && distance > 0)
          start = waits[waits.size() - std::min(distance, waits.size())];
        FailureOr<Operation *> firstWait = startGroup(group, start);
        if (failed(firstWait))
          return failure();
        if (*firstWait && !group.decision().bucket.empty())
          waits.push_back(*firstWait);
      }
    }
    return success();
  }

  /// Starts the members before `start` (null: where they are), or where
  /// their decision says, and awaits each before its first use. Gives the
  /// group's first wait.
  FailureOr<Operation *> startGroup(OverlapGroup &group, Operation *start) {
    Operation *firstWait = nullptr;
    const schedule::Decision &decision = group.decision();
    Operation *anchor =
        decision.startAfter.empty() ? nullptr : find(decision.startAfter);
    for (const PlannedCollective &member : group.members) {
      Operation *op = member.op;
      if (op->use_empty())
        continue;
      if (anchor && failed(startAfter(op, anchor, decision.startAfter)))
        return failure();
      if (!anchor && start && start->isBeforeInBlock(op) &&
          !obstacle(op, start))
        hoistBefore(op, start);
      Operation *user = firstUser(op);
      FailureOr<Operation *> awaitAt =
          awaitedBefore(op, user, decision.awaitBefore);
      if (failed(awaitAt))
        return failure();
      dist::AwaitOp await = wrap(op, *awaitAt ? *awaitAt : user);
      LDBG() << "gather of " << decision.bucket << " awaited before "
             << *await->getNextNode();
      if (!firstWait)
        firstWait = await;
    }
    return firstWait;
  }

  //===--- Reductions -----------------------------------------------------===//

  /// Reduction i is awaited when reduction i + defer has started, or where its
  /// result is used.
  LogicalResult awaitReductionsLate(SmallVector<OverlapGroup> groups) {
    for (auto [index, group] : llvm::enumerate(groups)) {
      auto defer = static_cast<size_t>(group.decision().defer);
      Operation *limit = nullptr;
      if (defer > 0 && index + defer < groups.size())
        limit = groups[index + defer].members.back().op;
      if (failed(awaitGroup(group, limit)))
        return failure();
    }
    return success();
  }

  /// Awaits each member before its first use or, if that comes first, after
  /// the start `limit`; without `defer` at once. A reduction whose result is
  /// only reduced once more is awaited by that second one: it follows on the
  /// same stream, and computation waits for neither.
  LogicalResult awaitGroup(OverlapGroup &group, Operation *limit) {
    llvm::DenseMap<Operation *, SmallVector<dist::AwaitOp>> awaitedBy;
    for (PlannedCollective &member : group.members) {
      Operation *op = member.op;
      if (op->use_empty())
        continue;
      // The second of a chain follows the first.
      if (!awaitedBy.contains(op) &&
          failed(startAfterAddress(op, member.decision.startAfter)))
        return failure();
      Operation *user = firstUser(op);
      bool chained = isChained(op, user, group);
      if (chained && !member.decision.startAfter.empty())
        placeAfter(user, op);
      FailureOr<Operation *> awaitAt = user;
      if (!chained)
        awaitAt = awaitedBefore(op, user, member.decision.awaitBefore);
      if (failed(awaitAt))
        return failure();
      if (!*awaitAt && member.decision.defer > 0)
        awaitAt = lateAwait(op, user, limit);
      dist::AwaitOp await = wrap(op, *awaitAt);
      for (dist::AwaitOp scatter : awaitedBy.lookup(op))
        scatter->moveBefore(op);
      if (chained)
        awaitedBy[user].push_back(await);
    }
    return success();
  }

  /// Right after the start `limit`, or before `user` where that comes first or
  /// `op` starts later than the limit.
  Operation *lateAwait(Operation *op, Operation *user, Operation *limit) {
    Operation *top =
        limit ? program.block.findAncestorOpInBlock(*limit) : nullptr;
    bool isBetween =
        top && op->isBeforeInBlock(top) && top->isBeforeInBlock(user);
    return isBetween ? top->getNextNode() : user;
  }

  /// Whether `user`, a reduction of the group on the same stream, is all that
  /// reads `op`.
  static bool isChained(Operation *op, Operation *user,
                        const OverlapGroup &group) {
    return llvm::any_of(group.members,
                        [&](const PlannedCollective &member) {
                          return member.op == user;
                        }) &&
           llvm::all_of(op->getUsers(),
                        [&](Operation *other) { return other == user; });
  }

  PlannedProgram &program;
  Places &places;
  OpBuilder builder;
  llvm::DenseMap<dist::OriginAttr, Operation *> named;
  /// By the op after which collectives start: the last of them.
  llvm::DenseMap<Operation *, Operation *> lastStartedAfter;
};

struct OverlapPass : fsdp::impl::OverlapBase<OverlapPass> {
  using Base::Base;

  void runOnOperation() override {
    Places places;
    auto apply = [&](PlannedProgram &program) {
      return Overlapper(program, places).run();
    };
    if (failed(applyPlan(getOperation(), apply)) ||
        failed(places.check(getOperation())))
      signalPassFailure();
  }
};

} // namespace
