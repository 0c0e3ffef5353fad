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
//   LowerRule.cpp      exec-lower and exec-batch-casts: work with its buffers
//   MotionRule.cpp     what may move where (PlannedCollectives.cpp)
//
// A search evaluates thousands of candidates of one problem: what follows from
// the program alone is made once (ProgramStart), and drafts and rules keep
// their memory.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_LIB_SCHEDULE_PROBLEM_DRAFT_H
#define FSDP_LIB_SCHEDULE_PROBLEM_DRAFT_H

#include "DecisionNumbers.h"
#include <memory>

namespace fsdp::problem {

enum class NodeKind : uint8_t {
  Op,    ///< An op of the program, a clone of one, or a bucket.
  Keep,  ///< nn.recompute_from: its result is its operand.
  Fused, ///< A kernel of several ops.
  Start, ///< A collective beside compute.
  Await, ///< The wait for one, which gives its values.
};

/// Of nodes that are no op.
inline constexpr OpKind kNoOp = OpKind(kOpKinds);

struct Node {
  NodeKind kind = NodeKind::Op;
  bool isAgain = false;
  OpKind opKind = kNoOp; ///< That of `op`, for an Op and a Start.
  Phase phase = Phase::Forward; ///< That of `op`, for an Op.
  uint16_t flags = 0;    ///< Those of `op`, for an Op.
  Id op = kNone;       ///< Of a bucket and a kernel the first; of a wait none.
  Id decision = kNone; ///< Only of collectives.
  /// Op::detail; of what reads or changes a tensor of the model the name of the
  /// first.
  Id detail = kNone;
  Span uses;    ///< Of values, in Draft::uses.
  Span results; ///< In Draft::results.
  /// In Draft::lists: the ops of a bucket, the nodes of a kernel.
  Span list;
  Id other = kNone; ///< Of a start its wait, of a wait its start.
};

/// Where a node is in the list. Apart from nodes: moving touches only these.
struct Link {
  Id previous = kNone, next = kNone;
  int64_t place = 0; ///< Grows along the list; kNowhere: not in it.
};
inline constexpr int64_t kNowhere = INT64_MIN;

struct Use {
  Id value = kNone, node = kNone;
  Id previous = kNone, next = kNone; ///< Of the same value.
};

struct DraftValue {
  Id def = kNone;   ///< The node; kNone for an argument.
  Id first = kNone; ///< Use; the newest, as in IR.
  int64_t bytes = 0;
};

/// The list of ops with their values, as data: a copy of it is a draft of its
/// own.
struct NodeList {
  std::vector<Node> nodes; ///< Number i is op i, as far as there are ops.
  std::vector<Link> links; ///< Of each node.
  std::vector<DraftValue> values;
  std::vector<Use> uses;
  std::vector<Id> results;
  Id first = kNone, last = kNone;

  Id nextOf(Id node) const { return links[node].next; }
  void addUse(Id use);
};

/// What the rules for collectives ask of one.
struct CollectiveFacts {
  Id name = kNone; ///< Op::name.
  Id key = 0, order = 0;
  rt::CollectiveKind kind = rt::CollectiveKind::AllGather;
  Phase phase = Phase::Forward;
  bool isGather = false;
};

/// A program before anything is decided.
struct ProgramStart {
  explicit ProgramStart(const Program &program);

  const Program &program;
  NodeList list;
  std::vector<Id> collectives;
  std::vector<CollectiveFacts> facts;
  std::vector<int64_t> workspaces; ///< Of each op.
  bool hasWrites = false;
  /// The op that begins the backward pass; none in other programs.
  Id seed = kNone;
  /// The ops that change tensors of the model, tensor by tensor; of each Read
  /// those of its tensor.
  std::vector<Id> writers;
  std::vector<Span> writersOf;

  /// Gives `visit` the ops that have an address.
  template <typename Visit>
  void forEachOpAt(const Address &address, Visit visit) const {
    if (sameAddress.empty())
      findAddresses();
    auto at = firstAt.find(address);
    for (Id op = at == firstAt.end() ? kNone : at->second; op != kNone;
         op = sameAddress[op])
      visit(op);
  }

private:
  void findAddresses() const;
  void findWriters(std::vector<std::pair<Id, Id>> changes);

  // Made when an address is asked for first.
  mutable std::unordered_map<Address, Id, AddressHash> firstAt;
  mutable std::vector<Id> sameAddress; // of each op the next that has it
};

class Draft : public NodeList {
public:
  explicit Draft(const Problem &problem) : problem(problem) {}

  /// Begins with the program as it is.
  void reset(const ProgramStart &from, const ProgramDecisions &about,
             const DecisionNumbers &numbers, Sequence &into);

  const Problem &problem;
  const ProgramStart *start = nullptr;
  const Program *program = nullptr;
  const ProgramDecisions *decided = nullptr;
  const DecisionNumbers *decisions = nullptr;
  Sequence *sequence = nullptr; ///< What lowering fills.

  std::vector<Id> lists;
  Id seed = kNone;             ///< ProgramStart::seed.
  std::vector<Id> collectives; ///< In the order of the list.
  /// The clones for the backward pass, in no order.
  std::vector<Id> clones;

  //===--- Asking ---------------------------------------------------------===//

  bool isRefused() const { return !sequence->refusal.empty(); }
  const Op &op(Id node) const { return program->ops[nodes[node].op]; }
  bool isOp(Id node, OpKind kind) const { return nodes[node].opKind == kind; }
  bool is(Id node, OpFlag flag) const {
    return (nodes[node].flags & flag) != 0;
  }
  /// A collective that no start has taken.
  bool isCollective(Id node) const {
    return isOp(node, OpKind::Collective) && nodes[node].kind == NodeKind::Op;
  }
  const CollectiveFacts &collective(Id node) const {
    return start->facts[nodes[node].detail];
  }
  const DecisionNumber &decision(Id node) const {
    return (*decisions)[nodes[node].decision];
  }
  /// The number of the bucket of a decision; kNone: a bucket of its own.
  Id bucket(Id node) const { return decision(node).bucket; }
  bool isListed(Id node) const { return links[node].place != kNowhere; }
  bool isBefore(Id a, Id b) const { return links[a].place < links[b].place; }
  bool isFrom(Id node, Id target) const { return !isBefore(node, target); }
  bool isAfterSeed(Id node) const {
    return seed != kNone && isFrom(node, seed);
  }

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
  Id stateOf(Id node) const { return nodes[node].detail; }
  int64_t workspaceOf(Id node) const {
    return start->workspaces[nodes[node].op];
  }
  int64_t bytesOf(Id value) const { return values[value].bytes; }
  bool hasUses(Id node) const;
  /// Whether one of the ops that read the value, or an alias of it, is a
  /// library's.
  bool isReadByLibrary(Id value) const;
  /// The first op that uses what `node` gives; kNone if none does.
  Id firstUser(Id node) const;
  /// The ops that a collective's node stands for, until nodes are added.
  const Id *membersOf(Id node, Id &count) const;

  //===--- Changing -------------------------------------------------------===//

  /// A node that is nowhere yet.
  Id add(NodeKind kind, Id op, const std::vector<Id> &operands);
  Id addValue(Id def, int64_t bytes);
  Span addList(const std::vector<Id> &members);
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
  /// Takes from `some` what is not in the list, and puts the rest in the order
  /// of the list.
  void sort(std::vector<Id> &some) const;

  //===--- Moving (MotionRule.cpp) ----------------------------------------===//

  Id obstacle(Id node, Id target) const;
  void hoistBefore(Id node, Id target);
  /// The first user that cannot go after `place`; kNone: all have gone.
  Id sinkUsers(Id node, Id place);

private:
  void link(Id node, Id before, Id after, bool nearBefore);
  void renumber();
  void dropUse(Id use);
  bool comesAlong(Id node) const;
  void collectNeeds(Id node, Id target);
  void moveWithProducers(Id node, Id target);
  bool changesState(Id node) const;
  Id stateBetween(Id node, Id place) const;

  std::vector<Id> needs, producers; // of what moves
};

/// What one of the passes does. A refusal ends the rules.
class Rule {
public:
  virtual ~Rule() = default;
  virtual void run() = 0;
};

/// In this order.
std::unique_ptr<Rule> makeRecompute(Draft &draft);
std::unique_ptr<Rule> makeMergeBuckets(Draft &draft);
std::unique_ptr<Rule> makeOverlap(Draft &draft);
std::unique_ptr<Rule> makeFuse(Draft &draft);
std::unique_ptr<Rule> makeLower(Draft &draft);

/// Parts of lowering.
void eraseSelfWrites(Draft &draft);
/// Gives the nodes that are left, in order.
void eraseUnusedOps(Draft &draft, std::vector<Id> &left);

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_PROBLEM_DRAFT_H
