//===- FusePass.cpp - Chains of pointwise and row ops become kernels ------===//
//
// One pass over the block, in order, decides for each op whether it joins the
// group of an op that it reads. A group becomes one kernel at one place, its
// anchor:
//
//   - as long as nobody outside reads a member, the anchor is the newest
//     member: older members simply run later;
//   - from then on the anchor stays, and an op joins only if all else that it
//     reads exists there.
//
// A sum over rows joins a group of these rows too, where the group computes or
// reads what it reads.
//
// Then a second pass, where something is computed again: a group joins an
// earlier one that reads the same value element by element, so that it is read
// once. All that it reads must exist there, and it must be the last to use as
// many bytes as it gives: after the kernel no more are alive than without it.
//
// Groups never cross a collective, the start or wait of one, the seed of the
// backward pass, or an update of parameters. What an op reads, how, and
// whether it is expensive is learnt by running its kernel description once.
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/NN/KernelFacts.h"
#include "dialects/NN/ModulePath.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <deque>

#define DEBUG_TYPE "nn-fuse"

using namespace mlir;
using namespace fsdp;

namespace fsdp {
#define GEN_PASS_DEF_FUSE
#include "passes/Passes.h.inc"
} // namespace fsdp

/// Longer kernels gain nothing more and keep too many values in registers.
static constexpr size_t kMaxMembers = 24;
static constexpr size_t kMaxInputs = 12;

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

namespace {

struct Group {
  nn::KernelSpace space;
  SmallVector<Operation *> members;
  llvm::SmallSetVector<Value, 8> inputs;
  Operation *anchor = nullptr;
  /// An outside op reads a member: the anchor may not move any more.
  bool pinned = false;
  /// A member computes something of the forward pass again.
  bool repeats = false;
  unsigned epoch = 0;
  int64_t sums = 0; ///< Members that sum over the rows.
};

/// When values are used last while groups run as kernels. What only its own
/// group reads is never used.
struct LastUses {
  DenseMap<Operation *, unsigned> number; // in the block
  DenseMap<Value, Value> viewed;          // of views: whose bytes they have
  DenseMap<Value, unsigned> lastUse;      // of values that are no views

  Value rootOf(Value value) const {
    Value root = viewed.lookup(value);
    return root ? root : value;
  }
};

class Fuser {
public:
  Fuser(Block &block, int64_t leastBlocks)
      : block(block), probe(block.getParentOp()->getContext()),
        leastBlocks(leastBlocks) {}

  void run() {
    for (Operation &op : block)
      visit(&op);
    if (llvm::any_of(groups, [](const Group &of) { return of.repeats; }))
      joinReaders();
    for (Group &group : groups)
      if (group.members.size() > 1)
        build(group);
  }

private:
  void visit(Operation *op);
  Group *groupOf(Value value);
  Group *groupFor(Operation *op, const nn::KernelFacts &facts);
  bool fits(const Group &group, const nn::KernelFacts &facts);
  bool isAvailable(Value value, const Group &group);
  Group *join(Operation *op, const nn::KernelFacts &facts);
  bool canSumRows(const Group &group, const nn::KernelFacts &facts);
  Group *joinRows(const nn::KernelFacts &facts);
  void add(Group *group, Operation *op, const nn::KernelFacts &facts);
  Group *merge(Group *into, Group *other);
  void findLastUses();
  void useAt(unsigned place, Operation *op, Group *by);
  int64_t bytesGiven(const Group &group);
  int64_t bytesFreed(const Group &group);
  bool canJoin(const Group &earlier, const Group &later);
  void joinReaders();
  void build(Group &group);

  Block &block;
  nn::KernelProbe probe;
  int64_t leastBlocks;
  std::deque<Group> groups; // addresses stay
  DenseMap<Operation *, Group *> groupOfOp;
  DenseMap<Value, nn::KernelForm> forms;
  /// Element values that need a transcendental function wherever they are
  /// computed again.
  DenseSet<Value> expensive;
  /// What some kernel reads element by element, as sourceOf() gives it.
  DenseSet<Value> readByElement;
  /// The newest op of a group that reads a value element by element.
  DenseMap<Value, Operation *> elementReader;
  LastUses uses;
  unsigned epoch = 0;
};

} // namespace

/// Ops across which nothing moves: what overlaps with what is decided.
static bool isBarrier(Operation *op) {
  return isa<dist::AsyncOp, dist::AwaitOp, dist::CollectiveOpInterface,
             nn::SeedOp, nn::AdamWOp>(op);
}

/// Whether a plan has decided to compute it a second time.
static bool isAgain(Operation *op) {
  dist::OriginAttr origin = dist::originOf(op);
  return origin && origin.getPhase() == dist::Phase::Again;
}

/// What is computed again reads kept values through nn.recompute_from.
static Value sourceOf(Value value) {
  while (auto again = value.getDefiningOp<nn::RecomputeFromOp>())
    value = again.getValues()[cast<OpResult>(value).getResultNumber()];
  return value;
}

Group *Fuser::groupOf(Value value) {
  Operation *op = value.getDefiningOp();
  return op ? groupOfOp.lookup(op) : nullptr;
}

/// Whether a kernel has the registers for so many sums over its rows.
static bool haveRoom(const nn::KernelSpace &space, int64_t sums) {
  return sums == 0 || sums <= nn::kMostSumColumns / space.cols;
}

/// Can an op with these facts be computed in the kernel of `group`?
bool Fuser::fits(const Group &group, const nn::KernelFacts &facts) {
  bool isSum = facts.space.columnReduction;
  if (group.space.rows != facts.space.rows ||
      group.space.cols != facts.space.cols || group.epoch != epoch ||
      group.members.size() >= kMaxMembers)
    return false;
  for (auto &[value, read] : facts.reads) {
    if (groupOf(value) != &group)
      continue;
    bool asDefined = forms.lookup(value) == nn::KernelForm::Row
                         ? read.access == nn::KernelAccess::Row
                         : read.access == nn::KernelAccess::Element;
    // A reduction and the final map would both compute the value.
    if (!asDefined ||
        ((read.inReduction || isSum) && expensive.contains(value)))
      return false;
  }
  return true;
}

/// Does `value` exist at the anchor of `group`?
bool Fuser::isAvailable(Value value, const Group &group) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return true;
  if (Group *other = groupOfOp.lookup(op))
    return other == &group || other->anchor->isBeforeInBlock(group.anchor);
  return op->isBeforeInBlock(group.anchor);
}

Group *Fuser::merge(Group *into, Group *other) {
  if (into == other)
    return into;
  for (Operation *op : other->members)
    groupOfOp[op] = into;
  llvm::append_range(into->members, other->members);
  into->inputs.insert(other->inputs.begin(), other->inputs.end());
  into->repeats |= other->repeats;
  into->sums += other->sums;
  other->members.clear();
  return into;
}

/// The group that `op` can join, with all groups that its arrival unites; null
/// if there is none.
Group *Fuser::join(Operation *op, const nn::KernelFacts &facts) {
  Group *open = nullptr, *fixed = nullptr;
  size_t members = 0, inputs = facts.reads.size();
  int64_t sums = 0;
  for (auto &[value, read] : facts.reads) {
    Group *group = groupOf(value);
    if (!group || group == open || !fits(*group, facts))
      continue;
    if (group->pinned) {
      bool allThere = llvm::all_of(facts.reads, [&](auto &entry) {
        return isAvailable(entry.first, *group);
      });
      if (allThere && group->inputs.size() + inputs <= kMaxInputs)
        fixed = group;
      continue;
    }
    if (members + group->members.size() >= kMaxMembers ||
        inputs + group->inputs.size() > kMaxInputs ||
        !haveRoom(group->space, sums + group->sums))
      continue;
    sums += group->sums;
    members += group->members.size();
    inputs += group->inputs.size();
    open = open ? merge(open, group) : group;
  }
  return open ? open : fixed;
}

/// Can a sum over rows be computed in the kernel of `group`, block by block?
bool Fuser::canSumRows(const Group &group, const nn::KernelFacts &facts) {
  return fits(group, facts) && haveRoom(group.space, group.sums + 1) &&
         group.inputs.size() + facts.reads.size() <= kMaxInputs &&
         (!group.pinned || llvm::all_of(facts.reads, [&](auto &entry) {
           return isAvailable(entry.first, group);
         }));
}

/// The group that a sum over rows can join: of what it reads, or else one that
/// reads the same.
Group *Fuser::joinRows(const nn::KernelFacts &facts) {
  for (auto &[value, read] : facts.reads)
    if (Group *group = groupOf(value); group && canSumRows(*group, facts))
      return group;
  for (auto &[value, read] : facts.reads) {
    Group *group = groupOfOp.lookup(elementReader.lookup(value));
    if (read.access == nn::KernelAccess::Element && group &&
        canSumRows(*group, facts))
      return group;
  }
  return nullptr;
}

void Fuser::add(Group *group, Operation *op, const nn::KernelFacts &facts) {
  groupOfOp[op] = group;
  group->members.push_back(op);
  group->repeats |= isAgain(op);
  group->sums += facts.space.columnReduction;
  for (auto &[value, read] : facts.reads) {
    if (groupOf(value) != group)
      group->inputs.insert(value);
    if (read.access != nn::KernelAccess::Element)
      continue;
    readByElement.insert(sourceOf(value));
    elementReader[value] = op;
  }
  if (!group->pinned)
    group->anchor = op;
  bool isExpensive = facts.expensive;
  for (auto &[value, read] : facts.reads)
    isExpensive |= groupOf(value) == group && expensive.contains(value);
  for (auto &[value, form] : facts.results) {
    forms[value] = form;
    if (form == nn::KernelForm::Element && isExpensive)
      expensive.insert(value);
  }
}

/// The group of `op`, a new one where it joins none; null if it is in no group.
Group *Fuser::groupFor(Operation *op, const nn::KernelFacts &facts) {
  // A kernel would not compute what nobody reads.
  if (facts.canJoinRows(leastBlocks))
    return op->use_empty() ? nullptr : joinRows(facts);
  if (!facts.canFuse())
    return nullptr;
  if (Group *group = join(op, facts))
    return group;
  Group &group = groups.emplace_back();
  group.space = facts.space;
  group.epoch = epoch;
  return &group;
}

void Fuser::visit(Operation *op) {
  if (isBarrier(op))
    ++epoch;
  Group *group = nullptr;
  auto kernel = dyn_cast<nn::KernelOpInterface>(op);
  // Constants are part of every kernel that reads them anyway.
  if (kernel && !isa<nn::ConstantOp>(op)) {
    nn::KernelFacts facts = probe.run(kernel);
    group = groupFor(op, facts);
    if (group)
      add(group, op, facts);
  }
  // Whoever reads a group from outside, also from a region, fixes its place.
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Group *read = groupOf(operand); read && read != group)
        read->pinned = true;
  });
}

//===----------------------------------------------------------------------===//
// Groups that read the same
//===----------------------------------------------------------------------===//

static bool isView(Operation *op) {
  return nn::aliasesOperands(op) || isa<nn::SliceOp>(op);
}

/// Constants have no bytes; tensors of the model, as arguments, are always
/// there.
static bool ownsBytes(Value value) {
  Operation *op = value.getDefiningOp();
  return op && !isa<nn::ConstantOp, nn::SeedOp, nn::ReadOp>(op);
}

/// The collective that `op` waits for; null if it is no wait.
static Operation *startOf(Operation *op) {
  auto await = dyn_cast<dist::AwaitOp>(op);
  return await ? await.getFuture().getDefiningOp() : nullptr;
}

void Fuser::useAt(unsigned place, Operation *op, Group *by) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!by || groupOf(operand) != by)
        uses.lastUse[uses.rootOf(operand)] =
            std::max(uses.lastUse.lookup(uses.rootOf(operand)), place);
  });
}

void Fuser::findLastUses() {
  for (Operation &op : block)
    uses.number.try_emplace(&op, uses.number.size());
  for (Operation &op : block) {
    Group *group = groupOfOp.lookup(&op);
    unsigned place = uses.number.lookup(group ? group->anchor : &op);
    useAt(place, &op, group);
    // A collective has its buffers until its wait.
    if (Operation *start = startOf(&op))
      useAt(place, start, nullptr);
    if (isView(&op))
      for (auto [result, operand] :
           llvm::zip(op.getResults(), op.getOperands()))
        uses.viewed[result] = uses.rootOf(operand);
  }
}

/// Of what is read outside.
int64_t Fuser::bytesGiven(const Group &group) {
  int64_t bytes = 0;
  for (Operation *op : group.members)
    for (Value result : op->getResults())
      if (uses.lastUse.contains(result))
        bytes += nn::bytesOf(result.getType());
  return bytes;
}

/// Of what nobody uses after the kernel.
int64_t Fuser::bytesFreed(const Group &group) {
  unsigned place = uses.number.lookup(group.anchor);
  int64_t bytes = 0;
  for (Value input : group.inputs)
    if (Value root = uses.rootOf(input);
        ownsBytes(root) && uses.lastUse.lookup(root) == place)
      bytes += nn::bytesOf(root.getType());
  return bytes;
}

/// Can `later` be computed where `earlier` is? It reads nothing of that: such
/// ops have joined already, or cannot.
bool Fuser::canJoin(const Group &earlier, const Group &later) {
  if (!(earlier.space == later.space) || earlier.epoch != later.epoch ||
      !(earlier.repeats || later.repeats) ||
      earlier.members.size() + later.members.size() > kMaxMembers ||
      earlier.inputs.size() + later.inputs.size() > kMaxInputs ||
      !haveRoom(earlier.space, earlier.sums + later.sums))
    return false;
  for (Value input : later.inputs)
    if (groupOf(input) == &earlier || !isAvailable(input, earlier))
      return false;
  return bytesGiven(later) <= bytesFreed(later);
}

void Fuser::joinReaders() {
  findLastUses();
  DenseMap<Value, Operation *> readers; // the newest
  for (Operation &op : block) {
    Group *group = groupOfOp.lookup(&op);
    if (!group || group->anchor != &op)
      continue;
    SmallVector<Value> shared;
    for (Value input : group->inputs)
      if (Value source = sourceOf(input); readByElement.contains(source))
        shared.push_back(source);
    for (Value source : shared) {
      Group *earlier = groupOfOp.lookup(readers.lookup(source));
      if (!earlier || earlier == group || !canJoin(*earlier, *group))
        continue;
      merge(earlier, group);
      break;
    }
    for (Value source : shared)
      readers[source] = &op;
  }
}

//===----------------------------------------------------------------------===//
// Building nn.fusion
//===----------------------------------------------------------------------===//

/// Results of members that somebody outside of the group reads.
static SmallVector<Value> valuesThatLeave(ArrayRef<Operation *> members,
                                          const DenseSet<Operation *> &inside) {
  SmallVector<Value> values;
  for (Operation *op : members)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return !inside.contains(user); }))
        values.push_back(result);
  return values;
}

void Fuser::build(Group &group) {
  DenseSet<Operation *> inside(group.members.begin(), group.members.end());
  SmallVector<Value> leaving = valuesThatLeave(group.members, inside);
  // Kept values that are read again are one input with what reads them anew.
  llvm::MapVector<Value, SmallVector<Value>> inputs;
  SmallVector<Location> locations;
  for (Operation *op : group.members) {
    locations.push_back(op->getLoc());
    for (Value operand : op->getOperands())
      if (!inside.contains(operand.getDefiningOp()))
        inputs[sourceOf(operand)].push_back(operand);
  }

  OpBuilder b(group.anchor);
  auto fusion = nn::FusionOp::create(
      b, b.getFusedLoc(locations), TypeRange(ValueRange(leaving)),
      llvm::map_to_vector(inputs, [](auto &of) { return of.second.front(); }));
  nn::setModule(fusion, nn::commonModule(group.members));
  Block *body = b.createBlock(&fusion.getBody());
  IRMapping mapping;
  for (auto &[source, operands] : inputs) {
    Value argument = body->addArgument(source.getType(), source.getLoc());
    for (Value operand : operands)
      mapping.map(operand, argument);
  }
  for (Operation *op : group.members)
    b.clone(*op, mapping);
  nn::YieldOp::create(
      b, fusion.getLoc(),
      llvm::map_to_vector(leaving, [&](Value v) { return mapping.lookup(v); }));

  for (auto [value, result] : llvm::zip(leaving, fusion.getResults()))
    value.replaceAllUsesWith(result);
  for (Operation *op : llvm::reverse(group.members))
    op->erase();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {

struct FusePass : fsdp::impl::FuseBase<FusePass> {
  using Base::Base;

  void runOnOperation() override {
    for (Block &block : getOperation().getBody())
      Fuser(block, leastRowBlocks).run();
  }
};

} // namespace
