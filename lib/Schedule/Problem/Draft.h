//===- Draft.h - A program while it is scheduled ----------------*- C++ -*-===//
//
// The ops of a program as a list in which they move, with the uses of each
// value. The rules work on it one after another, as the passes do on IR:
//
//   RecomputeRule.cpp  what fsdp-remat does: clones for the backward pass
//   BucketRule.cpp     fsdp-bucket: collectives that travel together
//   OverlapRule.cpp    fsdp-overlap: starts and waits
//   FuseRule.cpp       nn-fuse: kernels of several ops
//   EraseRule.cpp      exec-lower: what is no work
//   LowerRule.cpp      exec-lower: work with its buffers
//   NarrowRule.cpp     exec-batch-casts: casts that follow each other
//   MotionRule.cpp     what may move where (PlannedCollectives.cpp)
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_LIB_SCHEDULE_PROBLEM_DRAFT_H
#define FSDP_LIB_SCHEDULE_PROBLEM_DRAFT_H

#include "fsdp/Schedule/ProblemOrder.h"

namespace fsdp::problem {

enum class NodeKind : uint8_t {
  Op,    ///< An op of the program, a clone of one, or a bucket.
  Keep,  ///< nn.recompute_from: its result is its operand.
  Fused, ///< A kernel of several ops.
  Start, ///< A collective beside compute.
  Await, ///< The wait for one, which gives its values.
};

struct Node {
  NodeKind kind = NodeKind::Op;
  bool isAgain = false;
  bool isListed = false;
  Id op = kNone; ///< Of a bucket and a kernel the first; of a wait none.
  Id decision = kNone;
  Span uses;    ///< Of values, in Draft::uses.
  Span results; ///< In Draft::results.
  /// In Draft::lists: the member ops of a bucket, the nodes of a kernel.
  Id list = kNone;
  Id other = kNone; ///< Of a start its wait, of a wait its start.
  Id previous = kNone, next = kNone;
  int64_t place = 0; ///< Grows along the list.
};

struct Use {
  Id value = kNone, node = kNone;
  Id previous = kNone, next = kNone; ///< Of the same value.
};

struct DraftValue {
  Id def = kNone;   ///< The node; kNone for an argument.
  Id first = kNone; ///< Use; the newest, as in IR.
  Id origin = 0;    ///< The value of the program that it is, or is again.
};

class Draft {
public:
  Draft(const Problem &problem, const Program &program,
        const Candidate &candidate, const ProgramDecisions &decided);

  const Problem &problem;
  const Program &program;
  const Candidate &candidate;
  const ProgramDecisions &decided;

  std::vector<Node> nodes; ///< Number i is op i, as far as there are ops.
  std::vector<DraftValue> values;
  std::vector<Use> uses;
  std::vector<Id> results;
  std::vector<std::vector<Id>> lists;
  Id first = kNone, last = kNone;
  /// The node that begins the backward pass; none in other programs.
  Id seed = kNone;
  /// Why the decisions cannot be applied.
  std::string refusal;
  /// Addresses of decisions that no op has.
  std::vector<std::string> unknown;

  //===--- Asking ---------------------------------------------------------===//

  const Op &op(Id node) const { return program.ops[nodes[node].op]; }
  bool isOp(Id node, OpKind kind) const {
    return nodes[node].op != kNone && nodes[node].kind != NodeKind::Fused &&
           op(node).kind == kind;
  }
  bool is(Id node, OpFlag flag) const {
    return nodes[node].kind == NodeKind::Op && op(node).is(flag);
  }
  /// A collective that no start has taken.
  bool isCollective(Id node) const {
    return nodes[node].kind == NodeKind::Op && isOp(node, OpKind::Collective);
  }
  const Collective &collective(Id node) const {
    return program.collective(op(node));
  }
  const Decision &decision(Id node) const;
  /// The number of the bucket of a decision; kNone: a bucket of its own.
  Id bucket(Id node) const {
    Id number = nodes[node].decision;
    return number == kNone ? kNone : buckets[number];
  }
  bool isBefore(Id a, Id b) const { return nodes[a].place < nodes[b].place; }
  bool isFrom(Id node, Id target) const { return !isBefore(node, target); }

  Id operandOf(Id node, Id i) const {
    return uses[nodes[node].uses.begin + i].value;
  }
  Id resultOf(Id node, Id i) const {
    return results[nodes[node].results.begin + i];
  }
  /// Whether its result is its operand, or a box of it.
  bool isAlias(Id node) const {
    return nodes[node].kind == NodeKind::Keep || isOp(node, OpKind::View) ||
           isOp(node, OpKind::Box);
  }
  /// The tensor of the model that an op names first.
  Id stateOf(Id node) const { return program.states[op(node).states.begin]; }
  int64_t bytesOf(Id value) const {
    return program.values[values[value].origin].bytes;
  }
  bool hasUses(Id node) const;
  /// The first op that uses what `node` gives; kNone if none does.
  Id firstUser(Id node) const;
  /// The ops that a collective's node stands for.
  std::vector<Id> membersOf(Id node) const;

  //===--- Changing -------------------------------------------------------===//

  /// A node that is nowhere yet.
  Id add(NodeKind kind, Id op, const std::vector<Id> &operands);
  Id addValue(Id def, Id origin);
  void placeBefore(Id node, Id at);
  void placeAfter(Id node, Id at);
  /// Takes a node out of the list; its uses stay.
  void unlist(Id node);
  /// And its uses.
  void erase(Id node);
  void dropUses(Id node);
  /// The values do not know of the uses any more; the node knows its operands.
  void hideUses(Id node);
  void setUse(Id use, Id value);
  /// As replacing all uses of a value in IR does.
  void reverseUses(Id value);

  //===--- Moving (MotionRule.cpp) ----------------------------------------===//

  Id obstacle(Id node, Id target) const;
  void hoistBefore(Id node, Id target);
  /// The first user that cannot go after `place`; kNone: all have gone.
  Id sinkUsers(Id node, Id place);

private:
  void link(Id node, Id before, Id after, bool nearBefore);
  void renumber();
  void addUse(Id use);
  void dropUse(Id use);
  void moveWithProducers(Id node, Id target);
  bool changesState(Id node) const;
  Id stateBetween(Id node, Id place) const;

  std::vector<Id> buckets; ///< Of each decision.
  /// Names of tensors of the model with the nodes that change them, sorted.
  std::vector<std::pair<Id, Id>> writers;
};

/// The rules, in this order. A refusal ends them.
void recompute(Draft &draft);
void mergeBuckets(Draft &draft);
void overlap(Draft &draft);
void fuse(Draft &draft);
void eraseSelfWrites(Draft &draft);
void eraseUnusedOps(Draft &draft);
Sequence lower(Draft &draft);
void batchCasts(const Program &program, Sequence &sequence);

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_PROBLEM_DRAFT_H
