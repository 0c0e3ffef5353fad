//===- OverlapRule.cpp - Starts and waits of collectives ------------------===//
//
// Gathers of a bucket start before the wait of the bucket that is `prefetch`
// earlier, in the backward pass also after the seed, and are awaited before
// their first use. Reductions are awaited when the one that is `defer` later
// has started. Addresses take precedence over both. A reduction whose result is
// only reduced once more is awaited by that second one.
//
//===----------------------------------------------------------------------===//
#include "KeyTable.h"
#include "PlaceNames.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

namespace {

/// The collectives of one bucket and side of the seed; all start together.
struct Group {
  std::vector<Id> members;
  bool afterSeed = false;
};

/// As many groups as there are now; those behind keep their memory.
class Groups {
public:
  void clear() { count = 0; }
  size_t size() const { return count; }
  Group &add(bool afterSeed) {
    if (++count > groups.size())
      groups.emplace_back();
    Group &group = groups[count - 1];
    group.members.clear();
    group.afterSeed = afterSeed;
    return group;
  }
  Group &operator[](size_t i) { return groups[i]; }

private:
  std::vector<Group> groups;
  size_t count = 0;
};

class Overlapper final : public Rule {
public:
  explicit Overlapper(Draft &draft) : draft(draft), places(draft) {}

  void run() override {
    places.find();
    lastStartedAfter.clear();
    findGroups();
    startGathersEarly();
    awaitReductionsLate();
  }

private:
  bool refused() const { return draft.isRefused(); }
  Id refuse(Id node, const char *why) {
    if (!refused())
      draft.sequence->refusal =
          "'" + addressOf(draft.problem, draft.op(node)) + "' " + why;
    return kNone;
  }

  void findGroups() {
    gathers.clear();
    reductions.clear();
    numbers.clear(); // by bucket, side of the seed, gathers or not
    for (Id node : draft.collectives) {
      const DecisionNumber &decision = draft.decision(node);
      if (!decision.overlap)
        continue;
      bool isGather = draft.collective(node).isGather;
      bool afterSeed = draft.isAfterSeed(node);
      Groups &groups = isGather ? gathers : reductions;
      Id number = groups.size();
      if (decision.bucket != kNone) {
        Id &known = numbers(decision.bucket, afterSeed, isGather);
        number = known == kNone ? known = number : known;
      }
      if (number == groups.size())
        groups.add(afterSeed);
      groups[number].members.push_back(node);
    }
  }

  /// Brings a collective to where it starts right after `anchor`, and after
  /// what was started there before.
  void startAfter(Id node, Id anchor) {
    Id &last = lastStartedAfter(anchor, 0, 0);
    Id place = last != kNone ? last : anchor;
    if (place == node)
      return void(refuse(node, "cannot start after itself"));
    if (draft.isBefore(node, place)) {
      if (draft.sinkUsers(node, place) != kNone)
        return void(refuse(node, "has its result used before it starts"));
      draft.placeAfter(node, place);
    } else {
      if (draft.obstacle(node, draft.nextOf(place)) != kNone)
        return void(refuse(node, "has an operand that is computed later"));
      draft.hoistBefore(node, draft.nextOf(place));
    }
    last = node;
  }

  /// Before which op `node` is awaited by an address; kNone without one here.
  Id awaitedBefore(Id node, Id user, Id anchor) {
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
    Id await = draft.add(NodeKind::Await, kNone, nothing);
    Node &start = draft.nodes[node];
    start.kind = NodeKind::Start;
    start.flags = 0;
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

  void startGathersEarly() {
    for (bool backward : {false, true}) {
      waits.clear();
      if (backward && draft.seed != kNone)
        waits.push_back(draft.nextOf(draft.seed));
      for (size_t i = 0; i < gathers.size(); ++i) {
        const Group &group = gathers[i];
        if (group.afterSeed != backward)
          continue;
        const DecisionNumber &decision = draft.decision(group.members.front());
        auto distance = static_cast<size_t>(decision.prefetch);
        Id start = kNone;
        if (!waits.empty() && distance > 0)
          start = waits[waits.size() - std::min(distance, waits.size())];
        Id wait = startGroup(group, decision, start);
        if (refused())
          return;
        if (wait != kNone && decision.bucket != kNone)
          waits.push_back(wait);
      }
    }
  }

  /// Gives the first wait.
  Id startGroup(const Group &group, const DecisionNumber &decision, Id start) {
    Id firstWait = kNone;
    Id anchor = places[decision.startAfter];
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
      Id awaitAt = awaitedBefore(node, user, places[decision.awaitBefore]);
      if (refused())
        return kNone;
      Id wait = wrap(node, awaitAt != kNone ? awaitAt : user);
      if (firstWait == kNone)
        firstWait = wait;
    }
    return firstWait;
  }

  //===--- Reductions -----------------------------------------------------===//

  void awaitReductionsLate() {
    for (size_t i = 0; i < reductions.size() && !refused(); ++i) {
      auto defer = static_cast<size_t>(
          draft.decision(reductions[i].members.front()).defer);
      Id limit = kNone;
      if (defer > 0 && defer < reductions.size() - i)
        limit = reductions[i + defer].members.back();
      awaitGroup(reductions[i], limit);
    }
  }

  void awaitGroup(const Group &group, Id limit) {
    chained.clear();
    for (Id node : group.members) {
      if (!draft.hasUses(node))
        continue;
      const DecisionNumber &decision = draft.decision(node);
      auto isOfThis = [&](const Chained &one) { return one.second == node; };
      // The second of a chain follows the first.
      bool isSecond = std::any_of(chained.begin(), chained.end(), isOfThis);
      if (Id anchor = places[decision.startAfter]; anchor != kNone && !isSecond)
        startAfter(node, anchor);
      if (refused())
        return;
      Id user = draft.firstUser(node);
      bool isChained = chains(node, user, group);
      if (isChained && decision.startAfter != kNone)
        draft.placeAfter(user, node);
      Id awaitAt =
          isChained ? user
                    : awaitedBefore(node, user, places[decision.awaitBefore]);
      if (refused())
        return;
      if (awaitAt == kNone && decision.defer > 0)
        awaitAt = lateAwait(node, user, limit);
      Id await = wrap(node, awaitAt);
      for (const Chained &one : chained)
        if (isOfThis(one))
          moveInside(one.await, node);
      if (isChained)
        chained.push_back({await, user});
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
    return isBetween ? draft.nextOf(limit) : user;
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

  /// The wait for a reduction, and the one that is all that reads its result.
  struct Chained {
    Id await, second;
  };

  Draft &draft;
  PlaceNames places;
  Groups gathers, reductions;
  KeyTable numbers;
  /// By the node after which collectives start: the last of them.
  KeyTable lastStartedAfter;
  std::vector<Id> waits;
  std::vector<Chained> chained; // of the group that is awaited
  const std::vector<Id> nothing;
};

} // namespace

std::unique_ptr<Rule> fsdp::problem::makeOverlap(Draft &draft) {
  return std::make_unique<Overlapper>(draft);
}
