//===- BucketRule.cpp - Collectives that travel together ------------------===//
//
// Those of one bucket, kind, key and side of the seed become one: a gather
// where the first member stands, a reduction where the last one does, members
// in the order of their parameters. Kind by kind, because merging scatters
// moves the all-reduces after them.
//
//===----------------------------------------------------------------------===//
#include "Draft.h"
#include "KeyTable.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

namespace {

class Merger final : public Rule {
public:
  explicit Merger(Draft &draft) : draft(draft) {}

  void run() override {
    findCollectives();
    if (draft.isRefused())
      return;
    for (size_t i = 0; i < kindCount; ++i)
      mergeKind(kinds[i]);
    draft.sort(draft.collectives);
  }

private:
  /// Those of buckets that are of one kind, in order.
  struct OfKind {
    rt::CollectiveKind kind = rt::CollectiveKind::AllGather;
    std::vector<Id> nodes;
  };

  void findCollectives() {
    draft.collectives.clear();
    kindCount = 0;
    alike.clear();
    for (Id node = draft.first; node != kNone; node = draft.nextOf(node)) {
      if (!draft.isCollective(node))
        continue;
      draft.collectives.push_back(node);
      if (draft.bucket(node) == kNone)
        continue;
      checkDecision(node);
      if (draft.isRefused())
        return;
      ofKind(draft.collective(node).kind).push_back(node);
    }
  }

  std::vector<Id> &ofKind(rt::CollectiveKind kind) {
    for (size_t i = 0; i < kindCount; ++i)
      if (kinds[i].kind == kind)
        return kinds[i].nodes;
    if (kinds.size() == kindCount)
      kinds.emplace_back();
    kinds[kindCount].kind = kind;
    kinds[kindCount].nodes.clear();
    return kinds[kindCount++].nodes;
  }

  /// The collectives of a bucket start and end together, merged or not.
  void checkDecision(Id node) {
    const CollectiveFacts &of = draft.collective(node);
    Phase phase = draft.nodes[node].isAgain ? Phase::Again : of.phase;
    Id &first = alike(draft.bucket(node), of.name, uint32_t(phase));
    if (first == kNone)
      first = node;
    if (!isAlike(draft.decision(node), draft.decision(first)))
      draft.sequence->refusal = "'" + addressOf(draft.problem, draft.op(node)) +
                                "' is in a bucket with another decision than "
                                "its first member";
  }

  /// But for what is decided about the values.
  static bool isAlike(const DecisionNumber &a, const DecisionNumber &b) {
    return &a == &b ||
           (a.merge == b.merge && a.overlap == b.overlap &&
            a.prefetch == b.prefetch && a.defer == b.defer &&
            a.startAfter == b.startAfter && a.awaitBefore == b.awaitBefore);
  }

  void mergeKind(OfKind &kind) {
    draft.sort(kind.nodes);
    numbers.clear();
    size_t count = 0; // in order of their first members
    for (Id node : kind.nodes) {
      const DecisionNumber &decision = draft.decision(node);
      if (!decision.merge)
        continue;
      Id &number = numbers(decision.bucket, draft.collective(node).key,
                           draft.isAfterSeed(node));
      if (number == kNone) {
        number = count++;
        if (buckets.size() < count)
          buckets.emplace_back();
        buckets[number].clear();
      }
      buckets[number].push_back(node);
    }
    for (size_t i = 0; i < count && !draft.isRefused(); ++i)
      merge(buckets[i]);
  }

  void merge(std::vector<Id> &members) {
    bool isGather = draft.collective(members.front()).isGather;
    Id place = isGather ? members.front() : members.back();
    sortByParameter(members);
    for (Id member : members)
      if (!(isGather ? bring(member, place) : clear(member, place)))
        return refuse(member);
    // A reduction of what another one of the bucket gives is after them now.
    for (Id member : members)
      if (!isGather && draft.isBefore(place, member))
        return refuse(member);
    create(members, place);
  }

  void refuse(Id member) {
    draft.sequence->refusal = "'" + addressOf(draft.problem, draft.op(member)) +
                              "' cannot join its bucket";
  }

  void sortByParameter(std::vector<Id> &members) {
    sorted.clear();
    for (Id i = 0; i < members.size(); ++i)
      sorted.push_back({{draft.collective(members[i]).order, i}, members[i]});
    std::sort(sorted.begin(), sorted.end());
    for (Id i = 0; i < members.size(); ++i)
      members[i] = sorted[i].second;
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
    for (std::vector<Id> *all : {&operands, &results, &ops})
      all->clear();
    for (Id member : members) {
      const Node &node = draft.nodes[member];
      for (Id i = 0; i < node.uses.count; ++i)
        operands.push_back(draft.operandOf(member, i));
      for (Id i = 0; i < node.results.count; ++i)
        results.push_back(draft.resultOf(member, i));
      ops.push_back(node.op);
    }
    Id first = members.front();
    Id merged = draft.add(NodeKind::Op, draft.nodes[first].op, operands);
    Node &node = draft.nodes[merged];
    node.isAgain = draft.nodes[first].isAgain;
    node.detail = draft.nodes[first].detail;
    node.decision = draft.nodes[first].decision;
    node.results = {Id(draft.results.size()), Id(results.size())};
    node.list = draft.addList(ops);
    for (Id value : results) {
      draft.results.push_back(value);
      draft.values[value].def = merged;
      draft.reverseUses(value);
    }
    draft.placeBefore(merged, place);
    for (Id member : members)
      draft.erase(member);
    draft.collectives.push_back(merged);
  }

  Draft &draft;
  std::vector<OfKind> kinds; // `kindCount` of them
  size_t kindCount = 0;
  KeyTable alike;                       // the first by bucket, name, phase
  KeyTable numbers;                     // by bucket, key, side of the seed
  std::vector<std::vector<Id>> buckets; // as many as mergeKind() has counted
  std::vector<Id> operands, results, ops;
  std::vector<std::pair<std::pair<Id, Id>, Id>> sorted;
};

} // namespace

std::unique_ptr<Rule> fsdp::problem::makeMergeBuckets(Draft &draft) {
  return std::make_unique<Merger>(draft);
}
