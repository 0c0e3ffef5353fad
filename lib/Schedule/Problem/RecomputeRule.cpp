//===- RecomputeRule.cpp - Clones for the backward pass -------------------===//
//
// What is decided to be computed again, and the moves of elements that carry it
// on, is cloned before the first op of the backward pass that uses it, or that
// uses a clone which does. Casts and reshapes that feed a clone are cloned with
// it, unless they round rows of a table; everything else reaches it through
// nn.recompute_from. Of a gather whose result leaves a shard for that, the
// clone gathers the shard.
//
//===----------------------------------------------------------------------===//
#include "Draft.h"

using namespace fsdp;
using namespace fsdp::problem;

namespace {

class Recomputer final : public Rule {
public:
  explicit Recomputer(Draft &draft) : draft(draft) {}

  void run() override {
    if (draft.seed == kNone)
      return;
    ops = draft.program->ops.size();
    isRepeated.assign(draft.seed, false);
    place.assign(draft.seed, kNone);
    clones.assign(draft.values.size(), kNone);
    repeated.clear();
    findRepeated();
    findPlaces();
    for (Id op : repeated)
      if (place[op] != kNone)
        clone(op);
  }

private:
  bool isForward(Id node) const { return node < draft.seed; }

  /// Whether an op after the seed computes: being the loss or a result of the
  /// program is no use in the backward pass.
  bool computesBackward(Id node) const {
    OpKind kind = draft.nodes[node].opKind;
    return kind != OpKind::Seed && kind != OpKind::Return;
  }

  void findRepeated() {
    for (Id node = 0; node < draft.seed; ++node) {
      bool repeats = draft.decisions->recomputes(draft.decided->of[node]);
      if (draft.is(node, kMovesElements))
        for (Id i = 0; i < draft.nodes[node].uses.count; ++i) {
          Id def = draft.values[draft.operandOf(node, i)].def;
          repeats |= def != kNone && isRepeated[def];
        }
      isRepeated[node] = repeats;
      if (repeats)
        repeated.push_back(node);
    }
  }

  void findPlaces() {
    for (size_t i = repeated.size(); i-- > 0;) {
      Id first = kNone;
      const Span results = draft.nodes[repeated[i]].results;
      for (Id value = results.begin; value < results.end(); ++value)
        for (Id use = draft.values[value].first; use != kNone;
             use = draft.uses[use].next) {
          Id user = draft.uses[use].node;
          Id need = isForward(user)          ? place[user]
                    : computesBackward(user) ? user
                                             : kNone;
          first = std::min(first, need);
        }
      place[repeated[i]] = first;
    }
  }

  /// A node like `node` with other operands, before `at`.
  Id copy(Id node, const std::vector<Id> &operands, Id at) {
    Id created = draft.add(NodeKind::Op, draft.nodes[node].op, operands);
    const Span from = draft.nodes[node].results;
    Id begin = draft.results.size();
    for (Id i = from.begin; i < from.end(); ++i)
      draft.results.push_back(
          draft.addValue(created, draft.bytesOf(draft.results[i])));
    draft.nodes[created].results = {begin, from.count};
    draft.placeBefore(created, at);
    return created;
  }

  Id cloneOperand(Id value, Id at) {
    if (value < clones.size() && clones[value] != kNone)
      return clones[value];
    Id producer = draft.values[value].def;
    if (producer == kNone || !draft.is(producer, kClonedWithUser)) {
      operand.assign(1, value);
      Id keep = draft.add(NodeKind::Keep, kNone, operand);
      draft.results.push_back(draft.addValue(keep, draft.bytesOf(value)));
      draft.nodes[keep].results = {Id(draft.results.size() - 1), 1};
      draft.placeBefore(keep, at);
      return draft.resultOf(keep, 0);
    }
    Id source = cloneOperand(draft.operandOf(producer, 0), at);
    operand.assign(1, source);
    return draft.resultOf(copy(producer, operand, at), 0);
  }

  void cloneOperands(Id node, Id at) {
    Id count = draft.nodes[node].uses.count;
    // Equal operands stay equal: the last clone counts.
    operands.resize(count);
    for (Id i = 0; i < count; ++i) {
      Id value = draft.operandOf(node, i), created = cloneOperand(value, at);
      for (Id j = 0; j <= i; ++j)
        if (draft.operandOf(node, j) == value)
          operands[j] = created;
    }
  }

  /// A gather that the backward pass repeats with a shard; null for others.
  const Collective *regathered(Id node) const {
    if (!draft.isOp(node, OpKind::Collective))
      return nullptr;
    const Collective &one = draft.program->collective(draft.op(node));
    return one.again != kNone ? &one : nullptr;
  }

  void clone(Id node) {
    Id at = place[node];
    const Collective *gather = regathered(node);
    if (gather)
      operands.assign(1, cloneOperand(gather->shard, at));
    else
      cloneOperands(node, at);
    Id created = copy(node, operands, at);
    if (gather)
      draft.nodes[created].detail = gather->again;
    draft.nodes[created].isAgain = true;
    draft.nodes[created].decision = draft.decided->again[node];
    draft.clones.push_back(created);
    for (Id i = 0; i < draft.nodes[node].results.count; ++i) {
      Id value = draft.resultOf(node, i);
      clones[value] = draft.resultOf(created, i);
      replaceInBackward(value, clones[value]);
    }
  }

  void replaceInBackward(Id value, Id again) {
    for (Id use = draft.values[value].first, next; use != kNone; use = next) {
      next = draft.uses[use].next;
      Id user = draft.uses[use].node;
      if (user < ops && !isForward(user) && computesBackward(user))
        draft.setUse(use, again);
    }
  }

  Draft &draft;
  Id ops = 0;
  std::vector<Id> repeated; // in program order
  // Of each op before the seed.
  std::vector<uint8_t> isRepeated;
  std::vector<Id> place;             // of its clone
  std::vector<Id> clones;            // of each value
  std::vector<Id> operand, operands; // of what is created
};

} // namespace

std::unique_ptr<Rule> fsdp::problem::makeRecompute(Draft &draft) {
  return std::make_unique<Recomputer>(draft);
}
