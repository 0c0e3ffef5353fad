//===- OverlapRule.cpp - Starts and waits of collectives ------------------===//
//
// Gathers of a bucket start before the wait of the bucket that is `prefetch`
// earlier, in the backward pass also after the seed, and are awaited before
// their first use. Reductions are awaited when the one that is `defer` later
// has started. Addresses take precedence over both. A reduction whose result is
// only reduced once more is awaited by that second one.
//
//===----------------------------------------------------------------------===//
#include "Draft.h"
#include <algorithm>
#include <map>
#include <optional>

using namespace fsdp;
using namespace fsdp::problem;

namespace {

/// The collectives of one bucket and side of the seed; all start together.
struct Group {
  std::vector<Id> members;
  bool afterSeed = false;
};

class Overlapper {
public:
  explicit Overlapper(Draft &draft) : draft(draft) {}

  void run() {
    std::vector<Group> gathers, others;
    findGroups(gathers, others);
    startGathersEarly(gathers);
    awaitReductionsLate(others);
  }

private:
  bool refused() const { return !draft.refusal.empty(); }
  Id refuse(Id node, const char *why) {
    if (!refused())
      draft.refusal =
          "'" + addressOf(draft.problem, draft.op(node)) + "' " + why;
    return kNone;
  }

  void findGroups(std::vector<Group> &gathers, std::vector<Group> &others) {
    std::map<std::pair<Id, bool>, size_t> numbers[2];
    bool afterSeed = false;
    for (Id node = draft.first; node != kNone; node = draft.nodes[node].next) {
      afterSeed |= node == draft.seed;
      if (namesPlaces())
        nameAddresses(node);
      if (!draft.isCollective(node) || !draft.decision(node).overlap)
        continue;
      bool isGather = draft.collective(node).isGather();
      std::vector<Group> &groups = isGather ? gathers : others;
      size_t number = groups.size();
      if (Id bucket = draft.bucket(node); bucket != kNone)
        number = numbers[isGather]
                     .try_emplace({bucket, afterSeed}, groups.size())
                     .first->second;
      if (number == groups.size())
        groups.push_back({{}, afterSeed});
      groups[number].members.push_back(node);
    }
    nameMerged();
    if (namesPlaces())
      for (const Decision &decision : draft.candidate.decisions)
        for (const std::string *place :
             {&decision.startAfter, &decision.awaitBefore})
          if (!place->empty() && find(*place) == kNone)
            draft.unknown.push_back(*place);
  }

  //===--- Addresses ------------------------------------------------------===//

  bool namesPlaces() {
    if (!anyAddress)
      anyAddress = std::any_of(draft.candidate.decisions.begin(),
                               draft.candidate.decisions.end(),
                               [](const Decision &decision) {
                                 return !decision.startAfter.empty() ||
                                        !decision.awaitBefore.empty();
                               });
    return *anyAddress;
  }

  /// Beside ops, buckets and their members can be named.
  void nameAddresses(Id node) {
    const Node &of = draft.nodes[node];
    auto nameOf = [&](Id op) {
      return addressOf(draft.problem, draft.program.ops[op], of.isAgain);
    };
    if (draft.is(node, kAddressed) && of.list == kNone)
      addressed.try_emplace(nameOf(of.op), node);
    if (!draft.isCollective(node))
      return;
    std::vector<Id> members = draft.membersOf(node);
    const std::string &bucket = draft.decision(node).bucket;
    named[bucket.empty() ? nameOf(members.front())
                         : bucketAddressOf(draft.problem,
                                           draft.program.ops[members.front()],
                                           of.isAgain, bucket)] = node;
    if (of.list == kNone)
      return;
    merged.push_back(node);
    for (Id member : members)
      named[nameOf(member)] = node;
  }

  /// Collectives of one bucket that could not merge have numbers, in the order
  /// in which they were merged.
  void nameMerged() {
    std::sort(merged.begin(), merged.end(), [&](Id a, Id b) {
      return draft.nodes[a].list < draft.nodes[b].list;
    });
    for (Id node : merged) {
      const Node &of = draft.nodes[node];
      std::string bucket = bucketAddressOf(
          draft.problem, draft.program.ops[draft.lists[of.list].front()],
          of.isAgain, draft.decision(node).bucket);
      int number = ++mergedOf[bucket];
      if (number > 1)
        bucket += "#" + std::to_string(number);
      addressed.try_emplace(bucket, node);
    }
  }

  /// The node that has an address or stands for the op that has it.
  Id find(const std::string &address) const {
    for (const auto *known : {&addressed, &named})
      if (auto at = known->find(address); at != known->end())
        return at->second;
    return kNone;
  }

  /// Brings a collective to where it starts right after `anchor`, and after
  /// what was started there before.
  void startAfter(Id node, Id anchor) {
    Id &last = lastStartedAfter.try_emplace(anchor, kNone).first->second;
    Id place = last != kNone ? last : anchor;
    if (place == node)
      return void(refuse(node, "cannot start after itself"));
    if (draft.isBefore(node, place)) {
      if (draft.sinkUsers(node, place) != kNone)
        return void(refuse(node, "has its result used before it starts"));
      draft.placeAfter(node, place);
    } else {
      if (draft.obstacle(node, draft.nodes[place].next) != kNone)
        return void(refuse(node, "has an operand that is computed later"));
      draft.hoistBefore(node, draft.nodes[place].next);
    }
    last = node;
  }

  void startAfterAddress(Id node, const std::string &address) {
    if (Id anchor = address.empty() ? kNone : find(address); anchor != kNone)
      startAfter(node, anchor);
  }

  /// Before which op `node` is awaited by an address; kNone without one here.
  Id awaitedBefore(Id node, Id user, const std::string &address) {
    Id anchor = address.empty() ? kNone : find(address);
    if (anchor == kNone)
      return kNone;
    if (draft.isFrom(node, anchor))
      return refuse(node, "cannot be awaited before its start");
    if (draft.isBefore(user, anchor))
      return refuse(node, "has its result used before it is awaited");
    return anchor;
  }

  /// Starts `node` where it stands; its values come from a wait before
  /// `awaitAt`, or right after it if that is kNone.
  Id wrap(Id node, Id awaitAt) {
    Id await = draft.add(NodeKind::Await, kNone, {});
    Node &start = draft.nodes[node];
    start.kind = NodeKind::Start;
    start.other = await;
    draft.nodes[await].other = node;
    draft.nodes[await].results = start.results;
    for (Id i = start.results.begin; i < start.results.end(); ++i) {
      draft.values[draft.results[i]].def = await;
      draft.reverseUses(draft.results[i]);
    }
    if (awaitAt != kNone)
      draft.placeBefore(await, awaitAt);
    else
      draft.placeAfter(await, node);
    return await;
  }

  //===--- Gathers --------------------------------------------------------===//

  void startGathersEarly(const std::vector<Group> &groups) {
    for (bool backward : {false, true}) {
      std::vector<Id> waits;
      if (backward && draft.seed != kNone)
        waits.push_back(draft.nodes[draft.seed].next);
      for (const Group &group : groups) {
        if (group.afterSeed != backward)
          continue;
        const Decision &decision = draft.decision(group.members.front());
        auto distance = static_cast<size_t>(decision.prefetch);
        Id start = kNone;
        if (!waits.empty() && distance > 0)
          start = waits[waits.size() - std::min(distance, waits.size())];
        Id wait = startGroup(group, decision, start);
        if (refused())
          return;
        if (wait != kNone && !decision.bucket.empty())
          waits.push_back(wait);
      }
    }
  }

  /// Gives the first wait.
  Id startGroup(const Group &group, const Decision &decision, Id start) {
    Id firstWait = kNone;
    Id anchor = decision.startAfter.empty() ? kNone : find(decision.startAfter);
    for (Id node : group.members) {
      if (!draft.hasUses(node))
        continue;
      if (anchor != kNone)
        startAfter(node, anchor);
      else if (start != kNone && draft.isBefore(start, node) &&
               draft.obstacle(node, start) == kNone)
        draft.hoistBefore(node, start);
      if (refused())
        return kNone;
      Id user = draft.firstUser(node);
      Id awaitAt = awaitedBefore(node, user, decision.awaitBefore);
      if (refused())
        return kNone;
      Id wait = wrap(node, awaitAt != kNone ? awaitAt : user);
      if (firstWait == kNone)
        firstWait = wait;
    }
    return firstWait;
  }

  //===--- Reductions -----------------------------------------------------===//

  void awaitReductionsLate(const std::vector<Group> &groups) {
    for (size_t i = 0; i < groups.size() && !refused(); ++i) {
      auto defer =
          static_cast<size_t>(draft.decision(groups[i].members.front()).defer);
      Id limit = kNone;
      if (defer > 0 && i + defer < groups.size())
        limit = groups[i + defer].members.back();
      awaitGroup(groups[i], limit);
    }
  }

  void awaitGroup(const Group &group, Id limit) {
    std::map<Id, std::vector<Id>> awaitedBy;
    for (Id node : group.members) {
      if (!draft.hasUses(node))
        continue;
      const Decision &decision = draft.decision(node);
      // The second of a chain follows the first.
      if (!awaitedBy.count(node))
        startAfterAddress(node, decision.startAfter);
      if (refused())
        return;
      Id user = draft.firstUser(node);
      bool isChained = chains(node, user, group);
      if (isChained && !decision.startAfter.empty())
        draft.placeAfter(user, node);
      Id awaitAt =
          isChained ? user : awaitedBefore(node, user, decision.awaitBefore);
      if (refused())
        return;
      if (awaitAt == kNone && decision.defer > 0)
        awaitAt = lateAwait(node, user, limit);
      Id await = wrap(node, awaitAt);
      for (Id scatter : awaitedBy[node])
        moveInside(scatter, node);
      if (isChained)
        awaitedBy[user].push_back(await);
    }
  }

  /// The stream of `node` waits for it, and nothing else.
  void moveInside(Id await, Id node) {
    draft.unlist(await);
    const Span span = draft.nodes[await].results;
    for (Id i = span.begin; i < span.end(); ++i)
      draft.values[draft.results[i]].def = node;
  }

  Id lateAwait(Id node, Id user, Id limit) {
    bool isBetween = limit != kNone && draft.isBefore(node, limit) &&
                     draft.isBefore(limit, user);
    return isBetween ? draft.nodes[limit].next : user;
  }

  /// Whether `user`, a reduction of the group on the same stream, is all that
  /// reads what `node` gives.
  bool chains(Id node, Id user, const Group &group) const {
    if (std::find(group.members.begin(), group.members.end(), user) ==
        group.members.end())
      return false;
    const Span span = draft.nodes[node].results;
    for (Id i = span.begin; i < span.end(); ++i)
      for (Id use = draft.values[draft.results[i]].first; use != kNone;
           use = draft.uses[use].next)
        if (draft.uses[use].node != user)
          return false;
    return true;
  }

  Draft &draft;
  std::optional<bool> anyAddress;
  using Addresses = std::unordered_map<std::string, Id>;
  Addresses named, addressed;
  std::vector<Id> merged;
  std::unordered_map<std::string, int> mergedOf;
  /// By the node after which collectives start: the last of them.
  std::unordered_map<Id, Id> lastStartedAfter;
};

} // namespace

void fsdp::problem::overlap(Draft &draft) { Overlapper(draft).run(); }
