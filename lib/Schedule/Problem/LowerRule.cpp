//===- LowerRule.cpp - Work with its buffers ------------------------------===//
//
// What exec-lower turns each op into: which work it issues, what that reads and
// writes, and which values have a buffer of their own. A value without one is a
// view of another, or a tensor of the model, an argument or a result, which
// are ranges and no buffers; what ends in a range is produced there if it may.
//
// Casts that follow each other are one operation, as exec-batch-casts has them.
//
//===----------------------------------------------------------------------===//
#include "CollectiveWorkspaces.h"
#include "FusedMembers.h"
#include "StepWriter.h"
#include "fsdp/Target/Target.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

namespace {

class Lowering final : public Rule, private StepWriter {
public:
  explicit Lowering(Draft &draft)
      : StepWriter(draft), problem(draft.problem),
        target(rt::findTarget(draft.problem.target)),
        workspaces(draft.problem.target), fused(draft) {}

  void run() override {
    eraseSelfWrites(draft);
    eraseUnusedOps(draft, nodes);
    program = draft.program;
    beginSequence();
    held.assign(draft.values.size(), Place());
    destinationOf.assign(draft.values.size(), kNone);
    destinations.clear();
    startStep.assign(draft.nodes.size(), kNone);
    findOps();
    bindArguments();
    chooseDestinations();
    for (at = 0; at < nodes.size() && !draft.isRefused(); ++at)
      lower(nodes[at]);
  }

private:
  void refuse(Id node, const char *why) {
    sequence->refusal = "'" + addressOf(problem, draft.op(node)) + "' " + why;
  }

  //===--- Where values are -----------------------------------------------===//

  void findOps() {
    for (std::vector<Id> *found : {&returns, &gradients, &stores, &joins})
      found->clear();
    updates.clear();
    updatesOf.assign(problem.numNames(), Updates());
    addedIn.assign(problem.numNames(), 0);
    for (Id node : nodes)
      switch (draft.nodes[node].opKind) {
      case OpKind::Read:
        updatesOf[draft.stateOf(node)].isRead = true;
        break;
      case OpKind::Join:
        joins.push_back(node);
        break;
      case OpKind::Return:
        returns.push_back(node);
        break;
      case OpKind::Gradient:
        gradients.push_back(node);
        break;
      case OpKind::Write:
        stores.push_back(node);
        addUpdates(node);
        break;
      case OpKind::Accumulate:
      case OpKind::Clear:
      case OpKind::Update:
        addUpdates(node);
        break;
      default:
        break;
      }
  }

  void addUpdates(Id node) {
    const Span states = draft.op(node).states;
    for (Id i = states.begin; i < states.end(); ++i) {
      Updates &of = updatesOf[program->states[i]];
      Id number = updates.size();
      updates.push_back({node, kNone});
      (of.last == kNone ? of.first : updates[of.last].next) = number;
      of.last = number;
    }
  }

  bool ownsBuffer(Id value) const {
    Id def = draft.values[value].def;
    return def != kNone && !draft.isOp(def, OpKind::Read) &&
           !draft.isAlias(def);
  }

  void bindArguments() {
    for (Id i = 0; i < program->arguments.size(); ++i)
      held[i] = {kRange | program->arguments[i], 0};
  }

  /// The sum whose buffer `value` will have; kNone if there is none.
  Id sumUpdatedInPlace(Id value) const {
    Id def = draft.values[value].def;
    if (def == kNone || !draft.isOp(def, OpKind::AddProduct) ||
        draft.nodes[def].detail == 0)
      return kNone;
    Id sum = draft.operandOf(def, draft.nodes[def].uses.count - 1);
    Id producer = draft.values[sum].def, use = draft.values[sum].first;
    bool hasOneUse = use != kNone && draft.uses[use].next == kNone;
    bool isProduct =
        producer != kNone && draft.isOp(producer, OpKind::AddProduct);
    return hasOneUse && isProduct ? sum : kNone;
  }

  void setDestination(Id value, Place place) {
    destinationOf[value] = destinations.size();
    destinations.push_back(place);
  }

  void chooseDestination(Id value, Id range) {
    while (draft.values[value].def != kNone &&
           draft.isOp(draft.values[value].def, OpKind::View))
      value = draft.operandOf(draft.values[value].def, 0);
    for (Id sum; (sum = sumUpdatedInPlace(value)) != kNone;)
      value = sum;
    if (ownsBuffer(value) && destinationOf[value] == kNone)
      setDestination(value, {range, 0});
  }

  void chooseDestinations() {
    for (Id node : returns)
      for (Id i = 0; i < draft.nodes[node].uses.count; ++i)
        chooseDestination(draft.operandOf(node, i),
                          kRange | program->results[i]);
    for (Id node : gradients)
      chooseDestination(draft.operandOf(node, 0),
                        kGradientRange | draft.stateOf(node));
    // A value may be produced where it goes if nothing else of the program is
    // there.
    for (Id node : stores) {
      const Updates &of = updatesOf[draft.stateOf(node)];
      if (of.first == of.last && !of.isRead)
        chooseDestination(draft.operandOf(node, 0),
                          kRange | draft.stateOf(node));
    }
    for (Id node : joins)
      chooseParts(node);
  }

  /// Parts are produced where they end if they are aligned there.
  void chooseParts(Id node) {
    if (!draft.op(node).is(kContiguous) || !draft.hasUses(node))
      return;
    int64_t offset = 0;
    for (Id i = 0; i < draft.nodes[node].uses.count; ++i) {
      Id part = draft.operandOf(node, i);
      if (offset % target->alignment == 0 && ownsBuffer(part) &&
          destinationOf[part] == kNone) {
        Place whole = placeOnce(draft.resultOf(node, 0), node);
        setDestination(part, {whole.root, whole.begin + offset});
      }
      offset += draft.bytesOf(part);
    }
  }

  /// Where `value` is written: its destination, or a new buffer.
  Place output(Id value, Id node) {
    Id number = destinationOf[value];
    return held[value] = number != kNone
                             ? destinations[number]
                             : Place(newBuffer(draft.bytesOf(value), node), 0);
  }

  Place placeOnce(Id value, Id node) {
    return held[value].isSet() ? held[value] : output(value, node);
  }

  /// Where `value` is. Constants have a buffer only where an op outside of
  /// kernels needs one.
  Place placeOf(Id value) {
    return held[value].isSet() ? held[value] : produce(value);
  }

  Place produce(Id value) {
    bool isSplat = held[value].isSplat;
    Place place = output(value, draft.values[value].def);
    held[value].isSplat = isSplat;
    fill(place, draft.bytesOf(value));
    return place;
  }

  /// Their places may take steps of their own, before that of the op.
  void placeOperands(Id node) {
    const Span span = draft.nodes[node].uses;
    for (Id use = span.begin; use < span.end(); ++use)
      placeOf(draft.uses[use].value);
  }

  void touchesOperands(Id node, Id count) {
    const Span span = draft.nodes[node].uses;
    for (Id use = span.begin; use < span.begin + count; ++use)
      touches(held[draft.uses[use].value]);
  }

  //===--- Ops ------------------------------------------------------------===//

  void lower(Id node) {
    switch (draft.nodes[node].kind) {
    case NodeKind::Keep:
      held[draft.resultOf(node, 0)] = placeOf(draft.operandOf(node, 0));
      return;
    case NodeKind::Fused:
      return lowerFused(node);
    case NodeKind::Start:
      return lowerCollective(node);
    case NodeKind::Await:
      if (startStep[draft.nodes[node].other] == kNone)
        return refuse(draft.nodes[node].other, "is awaited before it starts");
      beginStep(StepKind::Await, draft.nodes[node].other);
      step.start = startStep[draft.nodes[node].other];
      sequence->steps[step.start].isAwaited = true;
      endStep();
      return;
    case NodeKind::Op:
      return lowerOp(node);
    }
  }

  void lowerOp(Id node) {
    switch (draft.nodes[node].opKind) {
    case OpKind::Constant:
    case OpKind::Seed:
      for (Id i = 0; i < draft.nodes[node].results.count; ++i)
        held[draft.resultOf(node, i)].isSplat = true;
      return;
    case OpKind::Read:
      return lowerRead(node);
    case OpKind::View:
      held[draft.resultOf(node, 0)] = placeOf(draft.operandOf(node, 0));
      return;
    case OpKind::Box:
      return lowerBox(node);
    case OpKind::Kernel:
      return lowerKernel(node);
    case OpKind::Work:
      return lowerWork(node);
    case OpKind::AddProduct:
      return lowerAddProduct(node);
    case OpKind::Pad:
      return lowerPad(node);
    case OpKind::Join:
      return lowerJoin(node);
    case OpKind::Collective:
      return lowerCollective(node);
    case OpKind::Gradient:
      return lowerStore(node, kGradientRange | draft.stateOf(node));
    case OpKind::Write:
      return lowerStore(node, kRange | draft.stateOf(node));
    case OpKind::Accumulate:
      return draft.op(node).math != kNone ? lowerWork(node)
                                          : lowerAccumulates();
    case OpKind::Clear:
      for (Id i = 0; i < draft.op(node).states.count; ++i) {
        beginStep(StepKind::Copy, node);
        endStep();
      }
      return;
    case OpKind::Update:
      placeOperands(node);
      beginStep(StepKind::Work, node);
      touchesOperands(node, draft.nodes[node].uses.count);
      endStep();
      return;
    case OpKind::Return:
      for (Id i = 0; i < draft.nodes[node].uses.count; ++i) {
        Place from = placeOf(draft.operandOf(node, i));
        if (from.root != (kRange | program->results[i]))
          copy(from, {kRange | program->results[i], 0},
               draft.bytesOf(draft.operandOf(node, i)));
      }
      return;
    }
  }

  void lowerRead(Id node) {
    Id value = draft.resultOf(node, 0);
    Place source = {kRange | draft.stateOf(node), 0};
    held[value] = source;
    // The value is the one of this place; an update must not show through.
    if (isUsedAfterUpdate(value, draft.stateOf(node)))
      copy(source, output(value, node), draft.bytesOf(value));
  }

  /// Whether `value`, which is what the tensor `name` holds where it is
  /// defined, is used after that changes.
  bool isUsedAfterUpdate(Id value, Id name) {
    Id number = updatesOf[name].first, def = draft.values[value].def;
    while (number != kNone && !draft.isBefore(def, updates[number].node))
      number = updates[number].next;
    if (number == kNone)
      return false;
    Id update = updates[number].node;
    aliases.assign(1, value);
    while (!aliases.empty()) {
      value = aliases.back();
      aliases.pop_back();
      for (Id use = draft.values[value].first; use != kNone;
           use = draft.uses[use].next) {
        Id user = draft.uses[use].node;
        bool isAdded = user == update && draft.isOp(update, OpKind::Accumulate);
        if (isAdded || (user != update && draft.isBefore(update, user)))
          return true;
        if (draft.isAlias(user))
          aliases.push_back(draft.resultOf(user, 0));
      }
    }
    return false;
  }

  void lowerBox(Id node) {
    Id value = draft.resultOf(node, 0);
    Place from = placeOf(draft.operandOf(node, 0));
    int64_t offset = draft.op(node).detail;
    bool isAligned = (from.begin + offset) % target->alignment == 0;
    if (offset >= 0 && (isAligned || !draft.isReadByLibrary(value)))
      held[value] = {from.root, from.begin + offset};
    else
      copy(from, output(value, node), draft.bytesOf(value));
  }

  void lowerPad(Id node) {
    Id value = draft.operandOf(node, 0), padded = draft.resultOf(node, 0);
    Place from = placeOf(value), to = output(padded, node);
    fill(to, draft.bytesOf(padded));
    copy(from, to, draft.bytesOf(value));
  }

  /// Whether its parts are where the tensors of the model are, and stay. One
  /// that changed since it was read was copied there.
  bool isAdjacent(Id node) {
    Id value = draft.resultOf(node, 0);
    bool is = draft.is(node, kAdjacent);
    for (Id i = 0; is && i < draft.nodes[node].uses.count; ++i) {
      Id root = held[draft.operandOf(node, i)].root;
      is = root >= kRange && root < kGradientRange &&
           !isUsedAfterUpdate(value, root & ~kRange);
    }
    return is;
  }

  void lowerJoin(Id node) {
    if (isAdjacent(node)) {
      held[draft.resultOf(node, 0)] = held[draft.operandOf(node, 0)];
      return;
    }
    Place to = placeOnce(draft.resultOf(node, 0), node);
    bool isContiguous = draft.op(node).is(kContiguous);
    int64_t position = 0;
    for (Id i = 0; i < draft.nodes[node].uses.count; ++i) {
      Id value = draft.operandOf(node, i);
      Place from = placeOf(value);
      bool isThere = isContiguous && from.root == to.root &&
                     from.begin == to.begin + position;
      if (!isThere)
        copy(from, to, draft.bytesOf(value));
      position += draft.bytesOf(value);
    }
  }

  void lowerWork(Id node) {
    placeOperands(node);
    beginStep(StepKind::Work, node);
    touchesOperands(node, draft.nodes[node].uses.count);
    for (Id i = 0; i < draft.nodes[node].results.count; ++i)
      writes(output(draft.resultOf(node, i), node));
    if (int64_t bytes = draft.workspaceOf(node); bytes > 0)
      workspace(bytes, node);
    endStep();
  }

  void lowerAddProduct(Id node) {
    if (draft.nodes[node].detail == 0)
      return lowerWork(node);
    Id last = draft.nodes[node].uses.count - 1;
    Id value = draft.resultOf(node, 0);
    placeOperands(node);
    Place sum = held[draft.operandOf(node, last)];
    if (sumUpdatedInPlace(value) != kNone) {
      held[value] = sum;
    } else {
      Place kept = sum;
      sum = output(value, node);
      copy(kept, sum, draft.bytesOf(value));
    }
    beginStep(StepKind::Work, node);
    touchesOperands(node, last);
    touches(sum);
    writes(sum);
    if (int64_t bytes = draft.workspaceOf(node); bytes > 0)
      workspace(bytes, node);
    endStep();
  }

  void lowerStore(Id node, Id range) {
    Place from = placeOf(draft.operandOf(node, 0));
    if (from.root != range)
      copy(from, {range, 0}, draft.bytesOf(draft.operandOf(node, 0)));
  }

  /// Whether the value lies in a buffer of the program's own, so in no sum.
  bool liesApart(Id accumulate) const {
    Id value = draft.operandOf(accumulate, 0), def = draft.values[value].def;
    for (; def != kNone && draft.isAlias(def); def = draft.values[value].def)
      value = draft.operandOf(def, 0);
    return ownsBuffer(value);
  }

  /// Those that follow each other, add to several sums, and whose values lie in
  /// none, are one step, which begins with this one.
  void lowerAccumulates() {
    const size_t first = at;
    auto belongs = [&](Id node) {
      return draft.isOp(node, OpKind::Accumulate) &&
             draft.op(node).math == kNone &&
             addedIn[draft.stateOf(node)] != first + 1 && liesApart(node);
    };
    addedIn[draft.stateOf(nodes[first])] = first + 1;
    while (liesApart(nodes[first]) && at + 1 < nodes.size() &&
           belongs(nodes[at + 1]))
      addedIn[draft.stateOf(nodes[++at])] = first + 1;
    for (size_t i = first; i <= at; ++i)
      placeOperands(nodes[i]);
    beginStep(StepKind::Work, nodes[first]);
    for (size_t i = first; i <= at; ++i) {
      const Node &node = draft.nodes[nodes[i]];
      if (i != first)
        sequence->members.push_back({node.op, node.isAgain});
      touchesOperands(nodes[i], 1);
      step.bytes += draft.op(nodes[i]).bytes;
    }
    step.members.count = sequence->members.size() - step.members.begin;
    endStep();
  }

  //===--- Kernels --------------------------------------------------------===//

  /// Whether a kernel that stores the used results of `node` does this read.
  bool isNeeded(Id node, const KernelRead &read) const {
    if (read.forResults == 0)
      return true;
    for (Id i = 0; i < draft.nodes[node].results.count; ++i)
      if ((read.forResults >> i & 1) != 0 &&
          draft.values[draft.resultOf(node, i)].first != kNone)
        return true;
    return false;
  }

  void readOnce(Id value) {
    if (held[value].isSplat)
      return;
    Place place = placeOf(value);
    touches(place);
    countRead(place, draft.bytesOf(value));
  }
  void store(Id value, Id node) {
    if (draft.values[value].first == kNone)
      return;
    writes(output(value, node));
    step.bytes += draft.bytesOf(value);
  }

  void lowerKernel(Id node) {
    const Kernel &kernel = problem.kernels[draft.nodes[node].detail];
    if (kernel.rows == 0)
      return refuse(node, "has no kernel: its dimensions are neither leading "
                          "nor trailing");
    beginStep(StepKind::Work, node);
    for (const KernelRead &read : kernel.reads)
      if (isNeeded(node, read))
        readOnce(draft.operandOf(node, read.operand));
    for (Id i = 0; i < draft.nodes[node].results.count; ++i)
      store(draft.resultOf(node, i), node);
    endStep();
  }

  /// Sums over rows are given for each block of rows, and added after it.
  void lowerFused(Id node) {
    beginStep(StepKind::Work, node);
    for (Id value : fused.reads(node))
      readOnce(value);
    fused.findSums(node);
    for (Id i = 0; i < draft.nodes[node].results.count; ++i) {
      Id value = draft.resultOf(node, i);
      if (BlockSums *sum = fused.sumOf(value)) {
        sum->buffer = newBuffer(sum->bytes, sum->member);
        writes({sum->buffer, 0});
        step.bytes += sum->bytes;
      } else {
        store(value, draft.lists[draft.nodes[node].list.begin]);
      }
    }
    endStep();
    for (const BlockSums &sum : fused.sums()) {
      beginStep(StepKind::Work, sum.member);
      touches({sum.buffer, 0});
      step.bytes += sum.bytes;
      store(draft.resultOf(sum.member, 0), sum.member);
      endStep();
    }
  }

  //===--- Collectives ----------------------------------------------------===//

  void lowerCollective(Id node) {
    const Collective &of = program->collectives[draft.nodes[node].detail];
    bool isStart = draft.nodes[node].kind == NodeKind::Start;
    rt::Stream stream = !isStart        ? rt::Stream::Compute
                        : of.isGather() ? rt::Stream::Gather
                                        : rt::Stream::Reduce;
    items.clear();
    Id count = 0;
    const Id *members = draft.membersOf(node, count);
    for (Id m = 0; m < count; ++m) {
      const Op &op = program->ops[members[m]];
      Span own = program->collective(op, draft.nodes[node].isAgain).items;
      for (Id i = own.begin; i < own.end(); ++i)
        items.push_back(program->items[i]);
    }
    placeOperands(node);
    beginStep(isStart ? StepKind::Start : StepKind::Work, node, stream);
    step.collective =
        of.isGather() ? CollectiveRole::Gather : CollectiveRole::Reduce;
    touchesOperands(node, draft.nodes[node].uses.count);
    for (Id i = 0; i < draft.nodes[node].results.count; ++i)
      writes(of.isGather() ? joined(draft.resultOf(node, i), node, of, items[i])
                           : output(draft.resultOf(node, i), node));
    if (!of.isGather())
      for (int64_t bytes : workspaces.of(of, items))
        workspace(bytes, node);
    startStep[node] = endStep();
  }

  /// Pieces are equal, so what they are gathered into may have a padded tail.
  Place joined(Id value, Id node, const Collective &of,
               const rt::CollectiveItem &item) {
    int64_t bytes = item.shard * of.ranks * rt::sizeOf(of.in);
    if (bytes == draft.bytesOf(value))
      return output(value, node);
    return held[value] = {newBuffer(bytes, node), 0};
  }

  /// The ops that change a tensor of the model, in order: numbers in
  /// `updates`.
  struct Updates {
    Id first = kNone, last = kNone;
    bool isRead = false;
  };
  struct UpdateBy {
    Id node, next;
  };

  const Problem &problem;
  const Program *program = nullptr;
  const rt::Target *target;
  CollectiveWorkspaces workspaces;
  FusedMembers fused;
  // Of each value.
  std::vector<Place> held;
  std::vector<Id> destinationOf; // in `destinations`
  std::vector<Place> destinations;
  std::vector<Id> startStep; // of each node
  std::vector<Id> nodes;     // that are left, in order
  size_t at = 0;             // of the one that is lowered
  std::vector<Id> returns, gradients, stores, joins;
  std::vector<Updates> updatesOf; // of each name
  std::vector<UpdateBy> updates;
  std::vector<size_t> addedIn; // of each name: place of its step's first + 1
  std::vector<rt::CollectiveItem> items;
  std::vector<Id> aliases; // of a read
};

} // namespace

std::unique_ptr<Rule> fsdp::problem::makeLower(Draft &draft) {
  return std::make_unique<Lowering>(draft);
}
