//===- FuseRule.cpp - Kernels of several ops ------------------------------===//
//
// What nn-fuse decides (passes/Graph/FusePass.cpp): op by op, whether it joins
// the group of an op that it reads. While nobody outside reads a member, the
// group stands where its newest member does; from then on it stays, and only
// ops join whose other operands are there. No group crosses a collective, a
// wait, the seed or the optimizer.
//
//===----------------------------------------------------------------------===//
#include "Draft.h"
#include <algorithm>
#include <deque>

using namespace fsdp;
using namespace fsdp::problem;

static constexpr size_t kMaxMembers = 24;
static constexpr size_t kMaxInputs = 12;

namespace {

struct KernelGroup {
  int64_t rows = 0, columns = 0;
  std::vector<Id> members;
  std::vector<Id> inputs; // values, each once
  Id anchor = kNone;
  bool isPinned = false;
  unsigned epoch = 0;
};

/// A read of a kernel and the value that it is of.
struct ReadOf {
  const KernelRead *read;
  Id value;
};

class Fuser {
public:
  explicit Fuser(Draft &draft)
      : draft(draft), groupOfNode(draft.nodes.size(), nullptr),
        isExpensive(draft.values.size(), false) {}

  void run() {
    for (Id node = draft.first; node != kNone; node = draft.nodes[node].next)
      visit(node);
    for (KernelGroup &group : groups)
      if (group.members.size() > 1)
        build(group);
  }

private:
  const Kernel *kernelOf(Id node) const {
    if (draft.nodes[node].kind != NodeKind::Op ||
        !draft.isOp(node, OpKind::Kernel))
      return nullptr;
    const Kernel &kernel = draft.problem.kernels[draft.op(node).detail];
    return kernel.canFuse ? &kernel : nullptr;
  }

  bool isBarrier(Id node) const {
    NodeKind kind = draft.nodes[node].kind;
    return kind == NodeKind::Start || kind == NodeKind::Await ||
           draft.isCollective(node) || draft.isOp(node, OpKind::Seed) ||
           draft.isOp(node, OpKind::Update);
  }

  KernelGroup *groupOf(Id value) const {
    Id def = draft.values[value].def;
    return def == kNone ? nullptr : groupOfNode[def];
  }

  Form formOf(Id value) const {
    Id def = draft.values[value].def;
    const Node &node = draft.nodes[def];
    Id i = 0;
    while (draft.results[node.results.begin + i] != value)
      ++i;
    return draft.problem.kernels[draft.op(def).detail].results[i];
  }

  /// Can `kernel` be computed in that of `group`?
  bool fits(const KernelGroup &group, const Kernel &kernel) const {
    if (group.rows != kernel.rows || group.columns != kernel.columns ||
        group.epoch != epoch || group.members.size() >= kMaxMembers)
      return false;
    for (const ReadOf &of : reads) {
      if (groupOf(of.value) != &group)
        continue;
      Access wanted =
          formOf(of.value) == Form::Row ? Access::Row : Access::Element;
      // A reduction and the final map would both compute the value.
      if (of.read->access != wanted ||
          (of.read->inReduction && isExpensive[of.value]))
        return false;
    }
    return true;
  }

  bool isAvailable(Id value, const KernelGroup &group) const {
    Id def = draft.values[value].def;
    if (def == kNone)
      return true;
    if (const KernelGroup *other = groupOfNode[def])
      return other == &group || draft.isBefore(other->anchor, group.anchor);
    return draft.isBefore(def, group.anchor);
  }

  static void addInput(KernelGroup &group, Id value) {
    if (std::find(group.inputs.begin(), group.inputs.end(), value) ==
        group.inputs.end())
      group.inputs.push_back(value);
  }

  KernelGroup *unite(KernelGroup *into, KernelGroup *other) {
    if (into == other)
      return into;
    for (Id node : other->members)
      groupOfNode[node] = into;
    into->members.insert(into->members.end(), other->members.begin(),
                         other->members.end());
    for (Id input : other->inputs)
      addInput(*into, input);
    other->members.clear();
    return into;
  }

  /// The group that an op of `kernel` can join, with all that its arrival
  /// unites; null if there is none.
  KernelGroup *join(const Kernel &kernel) {
    KernelGroup *open = nullptr, *fixed = nullptr;
    size_t members = 0, inputs = reads.size();
    for (const ReadOf &of : reads) {
      KernelGroup *group = groupOf(of.value);
      if (!group || group == open || !fits(*group, kernel))
        continue;
      if (group->isPinned) {
        bool allThere =
            std::all_of(reads.begin(), reads.end(), [&](const ReadOf &entry) {
              return isAvailable(entry.value, *group);
            });
        if (allThere && group->inputs.size() + inputs <= kMaxInputs)
          fixed = group;
        continue;
      }
      if (members + group->members.size() >= kMaxMembers ||
          inputs + group->inputs.size() > kMaxInputs)
        continue;
      members += group->members.size();
      inputs += group->inputs.size();
      open = open ? unite(open, group) : group;
    }
    return open ? open : fixed;
  }

  void add(KernelGroup *group, Id node, const Kernel &kernel) {
    groupOfNode[node] = group;
    group->members.push_back(node);
    bool expensive = kernel.isExpensive;
    for (const ReadOf &of : reads) {
      if (groupOf(of.value) != group)
        addInput(*group, of.value);
      else
        expensive |= isExpensive[of.value];
    }
    if (!group->isPinned)
      group->anchor = node;
    if (expensive)
      for (Id i = 0; i < draft.nodes[node].results.count; ++i)
        if (kernel.results[i] == Form::Element)
          isExpensive[draft.resultOf(node, i)] = true;
  }

  void visit(Id node) {
    if (isBarrier(node))
      ++epoch;
    KernelGroup *group = nullptr;
    if (const Kernel *kernel = kernelOf(node)) {
      reads.clear();
      for (const KernelRead &read : kernel->reads)
        reads.push_back({&read, draft.operandOf(node, read.operand)});
      group = join(*kernel);
      if (!group) {
        group = &groups.emplace_back();
        group->rows = kernel->rows;
        group->columns = kernel->columns;
        group->epoch = epoch;
      }
      add(group, node, *kernel);
    }
    // Whoever reads a group from outside fixes its place.
    for (Id i = 0; i < draft.nodes[node].uses.count; ++i)
      if (KernelGroup *read = groupOf(draft.operandOf(node, i));
          read && read != group)
        read->isPinned = true;
  }

  void build(KernelGroup &group) {
    auto isInside = [&](Id node) {
      return node != kNone && groupOfNode.size() > node &&
             groupOfNode[node] == &group;
    };
    std::vector<Id> inputs, leaving;
    for (Id node : group.members) {
      for (Id i = 0; i < draft.nodes[node].uses.count; ++i) {
        Id value = draft.operandOf(node, i);
        if (!isInside(draft.values[value].def) &&
            std::find(inputs.begin(), inputs.end(), value) == inputs.end())
          inputs.push_back(value);
      }
      for (Id i = 0; i < draft.nodes[node].results.count; ++i) {
        Id value = draft.resultOf(node, i);
        for (Id use = draft.values[value].first; use != kNone;
             use = draft.uses[use].next)
          if (!isInside(draft.uses[use].node)) {
            leaving.push_back(value);
            break;
          }
      }
    }
    Id fused = draft.add(NodeKind::Fused, draft.nodes[group.members.front()].op,
                         inputs);
    draft.placeBefore(fused, group.anchor);
    draft.nodes[fused].results = {Id(draft.results.size()), Id(leaving.size())};
    draft.nodes[fused].list = draft.lists.size();
    draft.lists.push_back(group.members);
    for (Id value : leaving) {
      draft.results.push_back(value);
      draft.values[value].def = fused;
    }
    // What members read of each other is no use any more; their operands stay
    // known for lowering.
    for (Id node : group.members) {
      draft.unlist(node);
      draft.hideUses(node);
    }
  }

  Draft &draft;
  std::deque<KernelGroup> groups; // addresses stay
  std::vector<KernelGroup *> groupOfNode;
  /// Element values that need a transcendental function wherever they are
  /// computed again.
  std::vector<bool> isExpensive;
  std::vector<ReadOf> reads; // of the op that is visited
  unsigned epoch = 0;
};

} // namespace

void fsdp::problem::fuse(Draft &draft) { Fuser(draft).run(); }
