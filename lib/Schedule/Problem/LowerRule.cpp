//===- LowerRule.cpp - Work with its buffers ------------------------------===//
//
// What exec-lower turns each op into: which work it issues, what that reads and
// writes, and which values have a buffer of their own. A value without one is a
// view of another, or a tensor of the model, an argument or a result, which
// are ranges and no buffers; what ends in a range is produced there if it may.
//
//===----------------------------------------------------------------------===//
#include "Draft.h"
#include "Place.h"
#include "fsdp/Target/Target.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

namespace {

class Lowering {
public:
  explicit Lowering(Draft &draft)
      : draft(draft), problem(draft.problem), program(draft.program),
        target(rt::findTarget(draft.problem.target)), held(draft.values.size()),
        destinations(draft.values.size()), startStep(draft.nodes.size(), kNone),
        isRead(draft.problem.numNames(), false) {}

  Sequence run() {
    sequence.steps.reserve(draft.nodes.size());
    sequence.uses.reserve(draft.uses.size() * 2);
    eraseSelfWrites(draft);
    eraseUnusedOps(draft);
    findUpdates();
    bindArguments();
    chooseDestinations();
    for (Id node = draft.first; node != kNone && draft.refusal.empty();
         node = draft.nodes[node].next)
      lower(node);
    return std::move(sequence);
  }

private:
  void refuse(Id node) {
    draft.refusal = "'" + addressOf(problem, draft.op(node)) +
                    "' is awaited before it starts";
  }

  //===--- Where values are -----------------------------------------------===//

  void findUpdates() {
    for (Id node = draft.first; node != kNone; node = draft.nodes[node].next) {
      if (draft.nodes[node].kind != NodeKind::Op)
        continue;
      const Op &op = draft.op(node);
      if (op.kind == OpKind::Read)
        isRead[draft.stateOf(node)] = true;
      if (op.kind > OpKind::Gradient && op.kind <= OpKind::Update)
        for (Id i = op.states.begin; i < op.states.end(); ++i)
          updates.push_back({program.states[i], node});
    }
    // In order of issue for each.
    std::stable_sort(
        updates.begin(), updates.end(),
        [](const auto &a, const auto &b) { return a.first < b.first; });
  }

  /// The changes of a tensor of the model, in order.
  auto updatesOf(Id state) const {
    return std::equal_range(
        updates.begin(), updates.end(), std::pair(state, Id(0)),
        [](const auto &a, const auto &b) { return a.first < b.first; });
  }

  bool ownsBuffer(Id value) const {
    Id def = draft.values[value].def;
    return def != kNone && !draft.isOp(def, OpKind::Read) &&
           !draft.isAlias(def);
  }

  void bindArguments() {
    for (Id i = 0; i < program.arguments.size(); ++i)
      held[i] = {kRange | program.arguments[i], 0};
  }

  /// The sum whose buffer `value` will have; kNone if there is none.
  Id sumUpdatedInPlace(Id value) const {
    Id def = draft.values[value].def;
    if (def == kNone || !draft.isOp(def, OpKind::AddProduct) ||
        draft.op(def).detail == 0)
      return kNone;
    Id sum = draft.operandOf(def, draft.nodes[def].uses.count - 1);
    Id producer = draft.values[sum].def, use = draft.values[sum].first;
    bool hasOneUse = use != kNone && draft.uses[use].next == kNone;
    bool isProduct =
        producer != kNone && draft.isOp(producer, OpKind::AddProduct);
    return hasOneUse && isProduct ? sum : kNone;
  }

  void chooseDestination(Id value, Id range) {
    while (draft.values[value].def != kNone &&
           draft.isOp(draft.values[value].def, OpKind::View))
      value = draft.operandOf(draft.values[value].def, 0);
    for (Id sum; (sum = sumUpdatedInPlace(value)) != kNone;)
      value = sum;
    if (ownsBuffer(value) && !destinations[value].isSet())
      destinations[value] = {range, 0};
  }

  template <typename Visit> void forEachOf(OpKind kind, Visit visit) {
    for (Id node = draft.first; node != kNone; node = draft.nodes[node].next)
      if (draft.isOp(node, kind))
        visit(node);
  }

  void chooseDestinations() {
    forEachOf(OpKind::Return, [&](Id node) {
      for (Id i = 0; i < draft.nodes[node].uses.count; ++i)
        chooseDestination(draft.operandOf(node, i),
                          kRange | program.results[i]);
    });
    forEachOf(OpKind::Gradient, [&](Id node) {
      chooseDestination(draft.operandOf(node, 0),
                        kGradientRange | draft.stateOf(node));
    });
    // A value may be produced where it goes if nothing else of the program is
    // there.
    forEachOf(OpKind::Write, [&](Id node) {
      auto [begin, end] = updatesOf(draft.stateOf(node));
      if (end - begin == 1 && !isRead[draft.stateOf(node)])
        chooseDestination(draft.operandOf(node, 0),
                          kRange | draft.stateOf(node));
    });
    forEachOf(OpKind::Join, [&](Id node) { chooseParts(node); });
  }

  /// Parts are produced where they end if they are aligned there.
  void chooseParts(Id node) {
    if (!draft.op(node).is(kContiguous) || !draft.hasUses(node))
      return;
    int64_t offset = 0;
    for (Id i = 0; i < draft.nodes[node].uses.count; ++i) {
      Id part = draft.operandOf(node, i);
      if (offset % target->alignment == 0 && ownsBuffer(part) &&
          !destinations[part].isSet()) {
        Place whole = placeOnce(draft.resultOf(node, 0), node);
        destinations[part] = {whole.root, whole.begin + offset};
      }
      offset += draft.bytesOf(part);
    }
  }

  Id newBuffer(int64_t bytes, Id node) {
    const Node &of = draft.nodes[node];
    sequence.buffers.push_back({bytes, of.op, of.isAgain});
    return sequence.buffers.size() - 1;
  }

  /// Where `value` is written: its destination, or a new buffer.
  Place output(Id value, Id node) {
    Place place = destinations[value];
    if (!place.isSet())
      place = {newBuffer(draft.bytesOf(value), node), 0};
    return held[value] = place;
  }

  Place placeOnce(Id value, Id node) {
    return held[value].isSet() ? held[value] : output(value, node);
  }

  bool isSplat(Id value) const {
    Id def = draft.values[value].def;
    return def != kNone &&
           (draft.isOp(def, OpKind::Constant) || draft.isOp(def, OpKind::Seed));
  }

  /// Where `value` is. Constants have a buffer only where an op outside of
  /// kernels needs one.
  Place placeOf(Id value) {
    if (!held[value].isSet()) {
      Id def = draft.values[value].def;
      fill(output(value, def), draft.bytesOf(value));
    }
    return held[value];
  }

  //===--- Steps ----------------------------------------------------------===//

  void beginStep(StepKind kind, Id node,
                 rt::Stream stream = rt::Stream::Compute) {
    step = Step();
    step.kind = kind;
    counted.clear();
    step.stream = stream;
    step.uses = {Id(sequence.uses.size()), 0};
    step.members = {Id(sequence.members.size()), 0};
    if (node == kNone)
      return;
    const Node &of = draft.nodes[node];
    if (of.kind == NodeKind::Fused) {
      for (Id member : draft.lists[of.list])
        sequence.members.push_back(
            {draft.nodes[member].op, draft.nodes[member].isAgain});
    } else if (of.list != kNone) {
      for (Id op : draft.lists[of.list])
        sequence.members.push_back({op, of.isAgain});
    } else if (of.op != kNone) {
      sequence.members.push_back({of.op, of.isAgain});
    }
    step.members.count = sequence.members.size() - step.members.begin;
  }

  void touches(Place place) {
    if (isBuffer(place.root))
      sequence.uses.push_back(place.root);
  }
  void writes(Place place) {
    size_t before = sequence.uses.size();
    touches(place);
    step.written += sequence.uses.size() - before;
  }
  void workspace(int64_t bytes, Id node) {
    touches({newBuffer(bytes, node), 0});
    ++step.workspaces;
  }

  Id endStep() {
    step.uses.count = sequence.uses.size() - step.uses.begin;
    sequence.steps.push_back(step);
    return sequence.steps.size() - 1;
  }

  /// `bytes` of `from`; nothing is read where that is no place.
  void copy(Place from, Place to, int64_t bytes) {
    beginStep(StepKind::Copy, kNone);
    if (from.isSet())
      touches(from);
    writes(to);
    step.bytes = from.isSet() ? 2 * bytes : bytes;
    endStep();
  }
  void fill(Place to, int64_t bytes) { copy(Place(), to, bytes); }

  /// The places of operands, which may take steps of their own.
  std::vector<Place> &placesOf(Id node, Id count) {
    operands.clear();
    for (Id i = 0; i < count; ++i)
      operands.push_back(placeOf(draft.operandOf(node, i)));
    return operands;
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
        return refuse(draft.nodes[node].other);
      beginStep(StepKind::Await, draft.nodes[node].other);
      step.start = startStep[draft.nodes[node].other];
      sequence.steps[step.start].isAwaited = true;
      endStep();
      return;
    case NodeKind::Op:
      return lowerOp(node);
    }
  }

  void lowerOp(Id node) {
    switch (draft.op(node).kind) {
    case OpKind::Constant:
    case OpKind::Seed:
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
      return lowerAccumulate(node);
    case OpKind::Clear:
      for (Id i = 0; i < draft.op(node).states.count; ++i) {
        beginStep(StepKind::Copy, node);
        endStep();
      }
      return;
    case OpKind::Update:
      placesOf(node, draft.nodes[node].uses.count);
      beginStep(StepKind::Work, node);
      for (Place place : operands)
        touches(place);
      endStep();
      return;
    case OpKind::Return:
      for (Id i = 0; i < draft.nodes[node].uses.count; ++i) {
        Place from = placeOf(draft.operandOf(node, i));
        if (from.root != (kRange | program.results[i]))
          copy(from, {kRange | program.results[i], 0},
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
    if (isUsedAfterUpdate(node))
      copy(source, output(value, node), draft.bytesOf(value));
  }

  bool isUsedAfterUpdate(Id read) {
    Id update = kNone;
    auto [begin, end] = updatesOf(draft.stateOf(read));
    for (auto at = begin; at != end && update == kNone; ++at)
      if (draft.isBefore(read, at->second))
        update = at->second;
    if (update == kNone)
      return false;
    std::vector<Id> aliases = {draft.resultOf(read, 0)};
    while (!aliases.empty()) {
      Id value = aliases.back();
      aliases.pop_back();
      for (Id use = draft.values[value].first; use != kNone;
           use = draft.uses[use].next) {
        Id user = draft.uses[use].node;
        if (user != update && draft.isBefore(update, user))
          return true;
        if (draft.isAlias(user))
          aliases.push_back(draft.resultOf(user, 0));
      }
    }
    return false;
  }

  bool isReadByLibrary(Id value) const {
    for (Id use = draft.values[value].first; use != kNone;
         use = draft.uses[use].next) {
      Id user = draft.uses[use].node;
      bool reads = draft.isAlias(user)
                       ? isReadByLibrary(draft.resultOf(user, 0))
                       : draft.is(user, kReadByLibrary);
      if (reads)
        return true;
    }
    return false;
  }

  void lowerBox(Id node) {
    Id value = draft.resultOf(node, 0);
    Place from = placeOf(draft.operandOf(node, 0));
    int64_t offset = draft.op(node).detail;
    bool isAligned = (from.begin + offset) % target->alignment == 0;
    if (offset >= 0 && (isAligned || !isReadByLibrary(value)))
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

  void lowerJoin(Id node) {
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
    placesOf(node, draft.nodes[node].uses.count);
    beginStep(StepKind::Work, node);
    for (Place place : operands)
      touches(place);
    for (Id i = 0; i < draft.nodes[node].results.count; ++i)
      writes(output(draft.resultOf(node, i), node));
    if (int64_t bytes = draft.op(node).workspace; bytes > 0)
      workspace(bytes, node);
    endStep();
  }

  void lowerAddProduct(Id node) {
    if (draft.op(node).detail == 0)
      return lowerWork(node);
    Id count = draft.nodes[node].uses.count;
    Id value = draft.resultOf(node, 0);
    std::vector<Place> inputs = placesOf(node, count);
    Place sum = inputs.back();
    if (sumUpdatedInPlace(value) != kNone) {
      held[value] = sum;
    } else {
      Place kept = sum;
      sum = output(value, node);
      copy(kept, sum, draft.bytesOf(value));
    }
    inputs.back() = sum;
    beginStep(StepKind::Work, node);
    for (Place place : inputs)
      touches(place);
    writes(sum);
    if (int64_t bytes = draft.op(node).workspace; bytes > 0)
      workspace(bytes, node);
    endStep();
  }

  void lowerStore(Id node, Id range) {
    Place from = placeOf(draft.operandOf(node, 0));
    if (from.root != range)
      copy(from, {range, 0}, draft.bytesOf(draft.operandOf(node, 0)));
  }

  /// A kernel may not write what it reads, so the sum is written beside its
  /// buffer.
  void lowerAccumulate(Id node) {
    Id value = draft.operandOf(node, 0);
    Place sum = {newBuffer(draft.bytesOf(value), node), 0};
    int64_t bytes = draft.bytesOf(value);
    beginStep(StepKind::Work, node);
    readOnce(value);
    writes(sum);
    step.bytes += 2 * bytes;
    endStep();
    copy(sum, {kRange | draft.stateOf(node), 0}, bytes);
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
    if (isSplat(value))
      return;
    Place place = placeOf(value);
    touches(place);
    if (std::find(counted.begin(), counted.end(), place) != counted.end())
      return;
    counted.push_back(place);
    step.bytes += draft.bytesOf(value);
  }
  void store(Id value, Id node) {
    if (draft.values[value].first == kNone)
      return;
    writes(output(value, node));
    step.bytes += draft.bytesOf(value);
  }

  void lowerKernel(Id node) {
    const Kernel &kernel = problem.kernels[draft.op(node).detail];
    beginStep(StepKind::Work, node);
    for (const KernelRead &read : kernel.reads)
      if (isNeeded(node, read))
        readOnce(draft.operandOf(node, read.operand));
    for (Id i = 0; i < draft.nodes[node].results.count; ++i)
      store(draft.resultOf(node, i), node);
    endStep();
  }

  /// What the members give each other is computed where it is read.
  void lowerFused(Id node) {
    const std::vector<Id> &members = draft.lists[draft.nodes[node].list];
    neededResults.assign(members.size(), 0);
    for (size_t m = members.size(); m-- > 0;)
      for (Id i = 0; i < draft.nodes[members[m]].results.count; ++i)
        if (Id value = draft.resultOf(members[m], i);
            draft.values[value].def == node &&
            draft.values[value].first != kNone)
          neededResults[m] |= uint32_t(1) << i;
    beginStep(StepKind::Work, node);
    for (size_t m = members.size(); m-- > 0;) {
      const Kernel &kernel = problem.kernels[draft.op(members[m]).detail];
      for (const KernelRead &read : kernel.reads) {
        if (read.forResults != 0 && (read.forResults & neededResults[m]) == 0)
          continue;
        Id value = draft.operandOf(members[m], read.operand);
        if (!needMember(members, m, value))
          readOnce(value);
      }
    }
    for (Id i = 0; i < draft.nodes[node].results.count; ++i)
      store(draft.resultOf(node, i), members.front());
    endStep();
  }

  /// Notes that member `value` of an earlier member is read; false if none
  /// produces it.
  bool needMember(const std::vector<Id> &members, size_t before, Id value) {
    for (size_t m = 0; m < before; ++m) {
      const Span results = draft.nodes[members[m]].results;
      for (Id i = 0; i < results.count; ++i)
        if (draft.results[results.begin + i] == value) {
          neededResults[m] |= uint32_t(1) << i;
          return true;
        }
    }
    return false;
  }

  //===--- Collectives ----------------------------------------------------===//

  void lowerCollective(Id node) {
    const Collective &of = draft.collective(node);
    bool isStart = draft.nodes[node].kind == NodeKind::Start;
    rt::Stream stream = !isStart        ? rt::Stream::Compute
                        : of.isGather() ? rt::Stream::Gather
                                        : rt::Stream::Reduce;
    items.clear();
    for (Id member : draft.membersOf(node)) {
      const Collective &one = program.collective(program.ops[member]);
      for (Id i = one.items.begin; i < one.items.end(); ++i)
        items.push_back(program.items[i]);
    }
    placesOf(node, draft.nodes[node].uses.count);
    beginStep(isStart ? StepKind::Start : StepKind::Work, node, stream);
    step.collective =
        of.isGather() ? CollectiveRole::Gather : CollectiveRole::Reduce;
    for (Place place : operands)
      touches(place);
    for (Id i = 0; i < draft.nodes[node].results.count; ++i)
      writes(of.isGather() ? joined(draft.resultOf(node, i), node, of, items[i])
                           : output(draft.resultOf(node, i), node));
    if (!of.isGather())
      for (size_t i = 0; i < items.size(); ++i)
        workspace(workspaceOf(problem.target, of, items, i), node);
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

  Draft &draft;
  const Problem &problem;
  const Program &program;
  const rt::Target *target;
  Sequence sequence;
  std::vector<Place> held, destinations; // of each value
  std::vector<Id> startStep;             // of each node
  /// Names of tensors of the model with the nodes that change them.
  std::vector<std::pair<Id, Id>> updates;
  std::vector<bool> isRead; // of each name
  Step step;
  std::vector<Place> operands, counted; // of the step
  std::vector<rt::CollectiveItem> items;
  std::vector<uint32_t> neededResults;
};

} // namespace

Sequence fsdp::problem::lower(Draft &draft) { return Lowering(draft).run(); }
