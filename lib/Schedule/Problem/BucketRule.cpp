//===- BucketRule.cpp - Collectives that travel together ------------------===//
//
// Those of one bucket, kind, key and side of the seed become one: a gather
// where the first member stands, a reduction where the last one does, members
// in the order of their parameters. Kind by kind, because merging scatters
// moves the all-reduces after them.
//
//===----------------------------------------------------------------------===//
#include "Draft.h"
#include <algorithm>
#include <map>
#include <tuple>

using namespace fsdp;
using namespace fsdp::problem;

namespace {

class Merger {
public:
  explicit Merger(Draft &draft) : draft(draft) {}

  void run() {
    checkDecisions();
    if (!draft.refusal.empty())
      return;
    std::vector<rt::CollectiveKind> kinds;
    for (Id node = draft.first; node != kNone; node = draft.nodes[node].next)
      if (draft.isCollective(node) && draft.bucket(node) != kNone &&
          std::find(kinds.begin(), kinds.end(), draft.collective(node).kind) ==
              kinds.end())
        kinds.push_back(draft.collective(node).kind);
    for (rt::CollectiveKind kind : kinds)
      mergeKind(kind);
  }

private:
  /// The collectives of a bucket start and end together, merged or not.
  void checkDecisions() {
    std::map<std::tuple<Id, Phase, Id>, Id> first; // bucket, phase, name
    for (Id node = draft.first; node != kNone; node = draft.nodes[node].next) {
      if (!draft.isCollective(node) || draft.bucket(node) == kNone)
        continue;
      const Op &op = draft.op(node);
      Phase phase = draft.nodes[node].isAgain ? Phase::Again : op.phase;
      Id other = first.try_emplace({draft.bucket(node), phase, op.name}, node)
                     .first->second;
      if (isAlike(draft.decision(node), draft.decision(other)))
        continue;
      draft.refusal = "'" + addressOf(draft.problem, op) +
                      "' is in a bucket with another decision than its first "
                      "member";
      return;
    }
  }

  /// But for what is decided about the values.
  static bool isAlike(const Decision &a, const Decision &b) {
    return &a == &b ||
           (a.merge == b.merge && a.overlap == b.overlap &&
            a.prefetch == b.prefetch && a.defer == b.defer &&
            a.startAfter == b.startAfter && a.awaitBefore == b.awaitBefore);
  }

  using Key = std::tuple<Id, bool, Id>; // bucket, after the seed, key

  void mergeKind(rt::CollectiveKind kind) {
    std::map<Key, size_t> numbers;
    std::vector<std::vector<Id>> buckets; // in order of their first members
    bool afterSeed = false;
    for (Id node = draft.first; node != kNone; node = draft.nodes[node].next) {
      afterSeed |= node == draft.seed;
      if (!draft.isCollective(node) || draft.bucket(node) == kNone ||
          !draft.decision(node).merge || draft.collective(node).kind != kind)
        continue;
      Key key(draft.bucket(node), afterSeed, draft.collective(node).key);
      auto [at, isNew] = numbers.try_emplace(key, buckets.size());
      if (isNew)
        buckets.emplace_back();
      buckets[at->second].push_back(node);
    }
    for (std::vector<Id> &members : buckets)
      if (draft.refusal.empty())
        merge(members);
  }

  void merge(std::vector<Id> &members) {
    bool isGather = draft.collective(members.front()).isGather();
    Id place = isGather ? members.front() : members.back();
    std::stable_sort(members.begin(), members.end(), [&](Id a, Id b) {
      return draft.collective(a).order < draft.collective(b).order;
    });
    for (Id member : members)
      if (!(isGather ? bring(member, place) : clear(member, place))) {
        draft.refusal = "'" + addressOf(draft.problem, draft.op(member)) +
                        "' cannot join its bucket";
        return;
      }
    create(members, place);
  }

  /// The operands of a gather must be there where the first one stands.
  bool bring(Id node, Id place) {
    if (draft.obstacle(node, place) != kNone)
      return false;
    for (Id i = 0; i < draft.nodes[node].uses.count; ++i) {
      Id producer = draft.values[draft.operandOf(node, i)].def;
      if (producer != kNone && draft.isBefore(place, producer))
        draft.hoistBefore(producer, place);
    }
    return true;
  }

  /// Nothing may read what a reduction gives before the last one.
  bool clear(Id node, Id place) {
    return draft.sinkUsers(node, place) == kNone;
  }

  void create(const std::vector<Id> &members, Id place) {
    std::vector<Id> operands, results, ops;
    for (Id member : members) {
      const Node &node = draft.nodes[member];
      for (Id i = 0; i < node.uses.count; ++i)
        operands.push_back(draft.operandOf(member, i));
      for (Id i = 0; i < node.results.count; ++i)
        results.push_back(draft.resultOf(member, i));
      for (Id op : draft.membersOf(member))
        ops.push_back(op);
    }
    Id first = members.front();
    Id merged = draft.add(NodeKind::Op, draft.nodes[first].op, operands);
    Node &node = draft.nodes[merged];
    node.isAgain = draft.nodes[first].isAgain;
    node.decision = draft.nodes[first].decision;
    node.results = {Id(draft.results.size()), Id(results.size())};
    node.list = draft.lists.size();
    draft.lists.push_back(std::move(ops));
    for (Id value : results) {
      draft.results.push_back(value);
      draft.values[value].def = merged;
      draft.reverseUses(value);
    }
    draft.placeBefore(merged, place);
    for (Id member : members)
      draft.erase(member);
  }

  Draft &draft;
};

} // namespace

void fsdp::problem::mergeBuckets(Draft &draft) { Merger(draft).run(); }
