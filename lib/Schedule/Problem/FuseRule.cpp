//===- FuseRule.cpp - Kernels of several ops ------------------------------===//
//
// What nn-fuse decides (passes/Graph/FusePass.cpp): op by op, whether it joins
// the group of an op that it reads. While nobody outside reads a member, the
// group stands where its newest member does; from then on it stays, and only
// ops join whose other operands are there. A sum over rows joins a group that
// computes or reads what it reads. Where something is computed again, a group
// then joins an earlier one that reads the same, if it is the last to use as
// many bytes as it gives. No group crosses a collective, a wait, the seed or
// the optimizer.
//
//===----------------------------------------------------------------------===//
#include "Draft.h"
#include <algorithm>
#include <numeric>

using namespace fsdp;
using namespace fsdp::problem;

static constexpr size_t kMaxMembers = 24;
static constexpr size_t kMaxInputs = 12;

namespace {

/// Most kernels stay alone: lists of what a group has are made when a second
/// one comes.
struct KernelGroup {
  const Kernel *kernel = nullptr; ///< Of the first; all have its space.
  Id anchor = kNone;
  unsigned epoch = 0;
  Id lists = kNone; ///< In Fuser::lists; of one that is alone none.
  bool isPinned = false;
  bool repeats = false; ///< A member computes something again.
  int64_t sums = 0;     ///< Members that sum over the rows.

  /// Whether the kernel has the registers for so many.
  bool hasRoom(int64_t of) const {
    return of == 0 || of <= kMostSumColumns / kernel->columns;
  }
};

struct GroupLists {
  std::vector<Id> members;
  std::vector<Id> inputs; // values, each once
};

/// A read of a kernel and the value that it is of.
struct ReadOf {
  const KernelRead *read;
  Id value;
};

class Fuser final : public Rule {
public:
  explicit Fuser(Draft &draft) : draft(draft) {}

  void run() override {
    groups.clear();
    groupOfValue.assign(draft.values.size(), kNone);
    isExpensive.assign(draft.values.size(), false);
    builtInto.assign(draft.nodes.size(), kNone);
    isReadByElement.assign(draft.values.size(), false);
    elementReader.assign(draft.values.size(), kNone);
    listCount = epoch = 0;
    repeats = false;
    for (Id node = draft.first; node != kNone; node = draft.nextOf(node))
      visit(node);
    if (repeats)
      joinReaders();
    for (Id number = 0; number < groups.size(); ++number)
      if (groups[number].lists != kNone && listsOf(number).members.size() > 1)
        build(number);
  }

private:
  const Kernel *kernelOf(Id node) const {
    if (!draft.isOp(node, OpKind::Kernel))
      return nullptr;
    const Kernel &kernel = draft.problem.kernels[draft.nodes[node].detail];
    return kernel.canFuse || kernel.sumsRows ? &kernel : nullptr;
  }

  bool isBarrier(Id node) const {
    OpKind kind = draft.nodes[node].opKind;
    return kind == OpKind::Collective || kind == OpKind::Seed ||
           kind == OpKind::Update || draft.nodes[node].kind == NodeKind::Await;
  }

  Id groupOf(Id value) const { return groupOfValue[value]; }

  GroupLists &listsOf(Id group) { return lists[groups[group].lists]; }

  /// Lists for a group that was alone.
  void addLists(KernelGroup &group) {
    if (group.lists != kNone)
      return;
    group.lists = listCount++;
    if (lists.size() < listCount)
      lists.emplace_back();
    GroupLists &of = lists[group.lists];
    of.members.assign(1, group.anchor);
    of.inputs.clear();
    for (const KernelRead &read : group.kernel->reads)
      addInput(of, draft.operandOf(group.anchor, read.operand));
  }

  bool isAgain(Id node) const {
    return draft.is(node, kAddressed) &&
           (draft.nodes[node].isAgain ||
            draft.nodes[node].phase == Phase::Again);
  }

  /// What is computed again reads kept values through a Keep.
  Id sourceOf(Id value) const {
    Id def = draft.values[value].def;
    while (def != kNone && draft.nodes[def].kind == NodeKind::Keep) {
      value = draft.operandOf(def, 0);
      def = draft.values[value].def;
    }
    return value;
  }

  void setGroup(Id node, Id group) {
    const Span results = draft.nodes[node].results;
    for (Id i = results.begin; i < results.end(); ++i)
      groupOfValue[draft.results[i]] = group;
  }

  Form formOf(Id value) const {
    Id def = draft.values[value].def;
    const Node &node = draft.nodes[def];
    Id i = 0;
    while (draft.results[node.results.begin + i] != value)
      ++i;
    return draft.problem.kernels[draft.nodes[def].detail].results[i];
  }

  /// Can `kernel` be computed in that of `group`?
  bool fits(Id number, const Kernel &kernel) const {
    const KernelGroup &group = groups[number];
    if (group.kernel->rows != kernel.rows ||
        group.kernel->columns != kernel.columns || group.epoch != epoch)
      return false;
    for (const ReadOf &of : reads) {
      if (groupOf(of.value) != number)
        continue;
      Access wanted =
          formOf(of.value) == Form::Row ? Access::Row : Access::Element;
      // A reduction and the final map would both compute the value.
      bool inReduction = of.read->inReduction || kernel.sumsRows;
      if (of.read->access != wanted || (inReduction && isExpensive[of.value]))
        return false;
    }
    return true;
  }

  bool isAvailable(Id value, Id group) const {
    Id def = draft.values[value].def;
    if (def == kNone)
      return true;
    Id anchor = groups[group].anchor;
    if (Id other = groupOf(value); other != kNone)
      return other == group || draft.isBefore(groups[other].anchor, anchor);
    return draft.isBefore(def, anchor);
  }

  static void addInput(GroupLists &group, Id value) {
    if (std::find(group.inputs.begin(), group.inputs.end(), value) ==
        group.inputs.end())
      group.inputs.push_back(value);
  }

  Id unite(Id into, Id other) {
    if (into == other)
      return into;
    GroupLists &all = listsOf(into), &gone = listsOf(other);
    for (Id node : gone.members)
      setGroup(node, into);
    all.members.insert(all.members.end(), gone.members.begin(),
                       gone.members.end());
    for (Id input : gone.inputs)
      addInput(all, input);
    groups[into].repeats |= groups[other].repeats;
    groups[into].sums += groups[other].sums;
    gone.members.clear();
    return into;
  }

  /// The group that an op of `kernel` can join, with all that its arrival
  /// unites; kNone if there is none.
  Id join(const Kernel &kernel) {
    Id open = kNone, fixed = kNone;
    size_t members = 0, inputs = reads.size();
    int64_t sums = 0;
    for (const ReadOf &of : reads) {
      Id number = groupOf(of.value);
      if (number == kNone || number == open || !fits(number, kernel))
        continue;
      addLists(groups[number]);
      const GroupLists &group = listsOf(number);
      if (group.members.size() >= kMaxMembers)
        continue;
      if (groups[number].isPinned) {
        if (areAvailable(number) && group.inputs.size() + inputs <= kMaxInputs)
          fixed = number;
        continue;
      }
      if (members + group.members.size() >= kMaxMembers ||
          inputs + group.inputs.size() > kMaxInputs ||
          !groups[number].hasRoom(sums + groups[number].sums))
        continue;
      sums += groups[number].sums;
      members += group.members.size();
      inputs += group.inputs.size();
      open = open != kNone ? unite(open, number) : number;
    }
    return open != kNone ? open : fixed;
  }

  bool areAvailable(Id group) const {
    return std::all_of(reads.begin(), reads.end(), [&](const ReadOf &of) {
      return isAvailable(of.value, group);
    });
  }

  /// Can a sum over rows be computed in the kernel of `group`?
  bool canSumRows(Id group, const Kernel &kernel) {
    if (group == kNone || !fits(group, kernel) ||
        !groups[group].hasRoom(groups[group].sums + 1))
      return false;
    addLists(groups[group]);
    return listsOf(group).members.size() < kMaxMembers &&
           listsOf(group).inputs.size() + reads.size() <= kMaxInputs &&
           (!groups[group].isPinned || areAvailable(group));
  }

  /// The group that a sum over rows can join: of what it reads, or else one
  /// that reads the same; kNone if there is none.
  Id joinRows(const Kernel &kernel) {
    for (const ReadOf &of : reads)
      if (canSumRows(groupOf(of.value), kernel))
        return groupOf(of.value);
    for (const ReadOf &of : reads) {
      Id reader = elementReader[of.value];
      if (of.read->access != Access::Element || reader == kNone)
        continue;
      if (canSumRows(groupOfNode(reader), kernel))
        return groupOfNode(reader);
    }
    return kNone;
  }

  /// To the group `number`, or to a new one if that is kNone; gives which.
  Id add(Id number, Id node, const Kernel &kernel) {
    bool isAlone = number == kNone;
    if (isAlone) {
      number = groups.size();
      groups.push_back({&kernel, node, epoch});
    }
    setGroup(node, number);
    groups[number].repeats |= isAgain(node);
    groups[number].sums += kernel.sumsRows;
    repeats |= groups[number].repeats;
    for (const ReadOf &of : reads)
      if (of.read->access == Access::Element) {
        isReadByElement[sourceOf(of.value)] = true;
        elementReader[of.value] = node;
      }
    bool expensive = kernel.isExpensive;
    if (!isAlone) {
      GroupLists &group = listsOf(number);
      group.members.push_back(node);
      for (const ReadOf &of : reads) {
        if (groupOf(of.value) != number)
          addInput(group, of.value);
        else
          expensive |= isExpensive[of.value] != 0;
      }
      if (!groups[number].isPinned)
        groups[number].anchor = node;
    }
    if (expensive)
      for (Id i = 0; i < draft.nodes[node].results.count; ++i)
        if (kernel.results[i] == Form::Element)
          isExpensive[draft.resultOf(node, i)] = true;
    return number;
  }

  void visit(Id node) {
    if (isBarrier(node))
      ++epoch;
    Id group = kNone;
    if (const Kernel *kernel = kernelOf(node)) {
      reads.clear();
      for (const KernelRead &read : kernel->reads)
        reads.push_back({&read, draft.operandOf(node, read.operand)});
      // A kernel would not compute what nobody reads.
      bool isRead = draft.values[draft.resultOf(node, 0)].first != kNone;
      group = !kernel->sumsRows ? join(*kernel)
              : isRead          ? joinRows(*kernel)
                                : kNone;
      if (group != kNone || !kernel->sumsRows)
        group = add(group, node, *kernel);
    }
    // Whoever reads a group from outside fixes its place.
    const Span uses = draft.nodes[node].uses;
    for (Id use = uses.begin; use < uses.end(); ++use)
      if (Id read = groupOf(draft.uses[use].value);
          read != kNone && read != group)
        groups[read].isPinned = true;
  }

  //===--- Groups that read the same --------------------------------------===//

  /// Of a kernel; kNone for other nodes.
  Id groupOfNode(Id node) const {
    return draft.nodes[node].results.count == 0
               ? kNone
               : groupOf(draft.resultOf(node, 0));
  }

  /// Constants have no bytes; tensors of the model, as arguments, are always
  /// there.
  bool ownsBytes(Id value) const {
    Id def = draft.values[value].def;
    return def != kNone && !draft.isOp(def, OpKind::Constant) &&
           !draft.isOp(def, OpKind::Seed) && !draft.isOp(def, OpKind::Read);
  }

  void useAt(int64_t at, Id node, Id by) {
    const Span uses = draft.nodes[node].uses;
    for (Id use = uses.begin; use < uses.end(); ++use) {
      Id value = draft.uses[use].value;
      if (by == kNone || groupOf(value) != by)
        lastUse[root[value]] = std::max(lastUse[root[value]], at);
    }
  }

  /// While groups run as kernels. What only its own group reads is never used.
  void findLastUses() {
    int64_t count = 0;
    place.resize(draft.nodes.size());
    for (Id node = draft.first; node != kNone; node = draft.nextOf(node))
      place[node] = count++;
    lastUse.assign(draft.values.size(), -1);
    root.resize(draft.values.size());
    std::iota(root.begin(), root.end(), 0);
    for (Id node = draft.first; node != kNone; node = draft.nextOf(node)) {
      Id group = groupOfNode(node);
      int64_t at = place[group == kNone ? node : groups[group].anchor];
      useAt(at, node, group);
      // A collective has its buffers until its wait.
      if (draft.nodes[node].kind == NodeKind::Await)
        useAt(at, draft.nodes[node].other, kNone);
      if (draft.isAlias(node))
        root[draft.resultOf(node, 0)] = root[draft.operandOf(node, 0)];
    }
  }

  /// Of what is read outside.
  int64_t bytesGiven(Id number) const {
    int64_t bytes = 0;
    for (Id node : lists[groups[number].lists].members)
      for (Id i = 0; i < draft.nodes[node].results.count; ++i)
        if (Id value = draft.resultOf(node, i); lastUse[value] >= 0)
          bytes += draft.bytesOf(value);
    return bytes;
  }

  /// Of what nobody uses after the kernel.
  int64_t bytesFreed(Id number) const {
    int64_t bytes = 0;
    for (Id input : lists[groups[number].lists].inputs)
      if (ownsBytes(root[input]) &&
          lastUse[root[input]] == place[groups[number].anchor])
        bytes += draft.bytesOf(root[input]);
    return bytes;
  }

  bool canJoin(Id earlier, Id later) {
    const KernelGroup &to = groups[earlier], &from = groups[later];
    if (to.kernel->rows != from.kernel->rows ||
        to.kernel->columns != from.kernel->columns || to.epoch != from.epoch ||
        !(to.repeats || from.repeats))
      return false;
    addLists(groups[earlier]);
    const GroupLists &there = listsOf(earlier), &here = listsOf(later);
    if (there.members.size() + here.members.size() > kMaxMembers ||
        there.inputs.size() + here.inputs.size() > kMaxInputs ||
        !to.hasRoom(to.sums + from.sums))
      return false;
    for (Id input : here.inputs)
      if (groupOf(input) == earlier || !isAvailable(input, earlier))
        return false;
    return bytesGiven(later) <= bytesFreed(later);
  }

  void joinReaders() {
    findLastUses();
    reader.assign(draft.values.size(), kNone);
    for (Id node = draft.first; node != kNone; node = draft.nextOf(node)) {
      Id number = groupOfNode(node);
      if (number == kNone || groups[number].anchor != node)
        continue;
      addLists(groups[number]);
      shared.clear();
      for (Id input : listsOf(number).inputs)
        if (Id source = sourceOf(input); isReadByElement[source])
          shared.push_back(source);
      for (Id source : shared) {
        Id earlier =
            reader[source] == kNone ? kNone : groupOfNode(reader[source]);
        if (earlier == kNone || earlier == number || !canJoin(earlier, number))
          continue;
        unite(earlier, number);
        break;
      }
      for (Id source : shared)
        reader[source] = node;
    }
  }

  void build(Id number) {
    const std::vector<Id> &members = listsOf(number).members;
    inputs.clear();
    leaving.clear();
    for (Id node : members)
      builtInto[node] = number;
    for (Id node : members) {
      for (Id i = 0; i < draft.nodes[node].uses.count; ++i) {
        Id value = draft.operandOf(node, i);
        if (groupOf(value) != number &&
            std::find(inputs.begin(), inputs.end(), value) == inputs.end())
          inputs.push_back(value);
      }
      for (Id i = 0; i < draft.nodes[node].results.count; ++i) {
        Id value = draft.resultOf(node, i);
        for (Id use = draft.values[value].first; use != kNone;
             use = draft.uses[use].next)
          if (builtInto[draft.uses[use].node] != number) {
            leaving.push_back(value);
            break;
          }
      }
    }
    Id fused =
        draft.add(NodeKind::Fused, draft.nodes[members.front()].op, inputs);
    builtInto.push_back(kNone);
    draft.placeBefore(fused, groups[number].anchor);
    draft.nodes[fused].results = {Id(draft.results.size()), Id(leaving.size())};
    draft.nodes[fused].list = draft.addList(members);
    for (Id value : leaving) {
      draft.results.push_back(value);
      draft.values[value].def = fused;
    }
    // What members read of each other is no use any more; their operands stay
    // known for lowering.
    for (Id node : members) {
      draft.unlist(node);
      draft.hideUses(node);
    }
  }

  Draft &draft;
  std::vector<KernelGroup> groups;
  std::vector<GroupLists> lists; // `listCount` of them
  Id listCount = 0;
  std::vector<Id> groupOfValue;
  std::vector<Id> builtInto; // of each node the group
  /// Element values that need a transcendental function wherever they are
  /// computed again.
  std::vector<uint8_t> isExpensive;
  std::vector<Id> elementReader; // the newest, of a group
  std::vector<ReadOf> reads; // of the op that is visited
  unsigned epoch = 0;
  bool repeats = false; // some group does

  // Of the list with its groups.
  std::vector<int64_t> place;           // of each node
  std::vector<Id> root;                 // of views: whose bytes they have
  std::vector<int64_t> lastUse;         // of values that are no views
  std::vector<uint8_t> isReadByElement; // by some kernel; of sources
  std::vector<Id> reader;               // the newest
  std::vector<Id> shared;               // inputs of a group

  std::vector<Id> inputs, leaving; // of the kernel that is built
};

} // namespace

std::unique_ptr<Rule> fsdp::problem::makeFuse(Draft &draft) {
  return std::make_unique<Fuser>(draft);
}
