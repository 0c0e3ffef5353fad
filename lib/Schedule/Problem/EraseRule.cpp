//===- EraseRule.cpp - What is no work ------------------------------------===//
//
// What exec-lower leaves out before it lowers anything.
//
//===----------------------------------------------------------------------===//
#include "Draft.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

/// What a value is another name of.
static Id sourceOf(const Draft &draft, Id value) {
  for (;;) {
    Id def = draft.values[value].def;
    if (def == kNone || !draft.isAlias(def))
      return value;
    value = draft.operandOf(def, 0);
  }
}

/// Whether `write` sets a tensor to what `read` found there, though `changed`,
/// the last change, may have come between.
static bool isSelfWrite(const Draft &draft, Id write, Id changed) {
  Id value = draft.operandOf(write, 0);
  Id read = draft.values[sourceOf(draft, value)].def;
  if (read == kNone || !draft.isOp(read, OpKind::Read) ||
      draft.stateOf(read) != draft.stateOf(write) ||
      draft.bytesOf(value) != draft.bytesOf(draft.resultOf(read, 0)))
    return false;
  return changed == kNone || !draft.isBefore(read, changed);
}

/// Setting a tensor to what it holds is no work.
void fsdp::problem::eraseSelfWrites(Draft &draft) {
  if (!draft.start->hasWrites)
    return;
  std::vector<Id> lastChanges(draft.problem.numNames(), kNone);
  for (Id node = draft.first, next; node != kNone; node = next) {
    next = draft.nextOf(node);
    OpKind kind = draft.nodes[node].opKind;
    if (kind < OpKind::Gradient || kind > OpKind::Update)
      continue;
    const Op &op = draft.op(node);
    if (kind == OpKind::Write &&
        isSelfWrite(draft, node, lastChanges[draft.stateOf(node)])) {
      draft.erase(node);
      continue;
    }
    for (Id i = op.states.begin; i < op.states.end(); ++i)
      lastChanges[draft.program->states[i]] = node;
  }
}

/// Ops whose results nobody reads do no work.
void fsdp::problem::eraseUnusedOps(Draft &draft, std::vector<Id> &left) {
  left.clear();
  for (Id node = draft.last, previous; node != kNone; node = previous) {
    previous = draft.links[node].previous;
    NodeKind kind = draft.nodes[node].kind;
    bool mayGo = kind == NodeKind::Keep || kind == NodeKind::Fused ||
                 draft.is(node, kPure);
    if (mayGo && !draft.hasUses(node))
      draft.erase(node);
    else
      left.push_back(node);
  }
  std::reverse(left.begin(), left.end());
}
