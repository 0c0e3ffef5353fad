//===- MotionRule.cpp - What may move where -------------------------------===//
#include "Draft.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

/// Gives `visit` the nodes from `target` on that produce what `node` takes.
template <typename Visit>
static void forEachProducerFrom(const Draft &draft, Id node, Id target,
                                Visit visit) {
  const Span span = draft.nodes[node].uses;
  for (Id use = span.begin; use < span.end(); ++use) {
    Id producer = draft.values[draft.uses[use].value].def;
    if (producer != kNone && draft.isFrom(producer, target))
      visit(producer);
  }
}

/// Whether it may move where what reads it moves.
bool Draft::comesAlong(Id node) const {
  return nodes[node].kind == NodeKind::Keep || is(node, kMovable) ||
         isOp(node, OpKind::Read) || isOp(node, OpKind::Constant);
}

/// The first op in the way of moving `node`, with what it needs, before
/// `target`: what computes, or changes what is read. kNone if nothing is.
Id Draft::obstacle(Id node, Id target) const {
  if (isOp(node, OpKind::Read)) {
    const Span span = start->writersOf[nodes[node].op];
    Id found = kNone;
    for (Id i = span.begin; i < span.end(); ++i)
      if (Id writer = start->writers[i];
          isFrom(writer, target) && isBefore(writer, node) &&
          (found == kNone || isBefore(found, writer)))
        found = writer;
    return found;
  }
  Id found = kNone;
  forEachProducerFrom(*this, node, target, [&](Id producer) {
    if (found != kNone)
      return;
    found = comesAlong(producer) ? obstacle(producer, target) : producer;
  });
  return found;
}

void Draft::collectNeeds(Id node, Id target) {
  if (std::find(needs.begin(), needs.end(), node) != needs.end())
    return;
  needs.push_back(node);
  forEachProducerFrom(*this, node, target,
                      [&](Id producer) { collectNeeds(producer, target); });
}

void Draft::moveWithProducers(Id node, Id target) {
  // Those of the nodes that move with it come after, and go before it is done.
  size_t begin = producers.size();
  forEachProducerFrom(*this, node, target,
                      [&](Id producer) { producers.push_back(producer); });
  for (size_t i = begin, end = producers.size(); i < end; ++i)
    moveWithProducers(producers[i], target);
  producers.resize(begin);
  placeBefore(node, target);
}

/// Nothing is in the way. What stands there already and is needed stays.
void Draft::hoistBefore(Id node, Id target) {
  needs.clear();
  if (comesAlong(target))
    collectNeeds(node, target);
  while (target != node &&
         std::find(needs.begin(), needs.end(), target) != needs.end())
    target = nextOf(target);
  if (target != node)
    moveWithProducers(node, target);
}

/// Whether an op changes a tensor of the model for those that come after it. A
/// gradient is in no other op's way.
bool Draft::changesState(Id node) const {
  OpKind kind = nodes[node].opKind;
  return kind > OpKind::Gradient && kind <= OpKind::Update;
}

/// The first node after `node` and up to `place` that names a tensor of the
/// model that `node` changes.
Id Draft::stateBetween(Id node, Id place) const {
  if (!changesState(node))
    return kNone;
  auto namesOf = [&](Id of) {
    const Span &span = op(of).states;
    auto begin = program->states.begin() + span.begin;
    return std::pair(begin, begin + span.count);
  };
  auto [begin, end] = namesOf(node);
  for (Id next = node; next != place;) {
    next = nextOf(next);
    if (next == kNone)
      break;
    if (nodes[next].kind != NodeKind::Op)
      continue;
    auto [from, to] = namesOf(next);
    if (std::find_first_of(from, to, begin, end) != to)
      return next;
  }
  return kNone;
}

Id Draft::sinkUsers(Id node, Id place) {
  const Span span = nodes[node].results;
  // Newest first, result by result: each lands right after the place.
  for (Id i = span.begin; i < span.end(); ++i) {
    Id next = kNone;
    for (Id use = values[results[i]].first; use != kNone; use = next) {
      next = uses[use].next;
      Id user = uses[use].node;
      if (isBefore(place, user))
        continue;
      if (user == place)
        return user;
      bool comesAlong = is(user, kMovable) || isOp(user, OpKind::Gradient) ||
                        isOp(user, OpKind::Accumulate) ||
                        (isCollective(user) && !collective(user).isGather);
      if (!comesAlong || nodes[user].kind != NodeKind::Op)
        return user;
      if (Id found = stateBetween(user, place); found != kNone)
        return found;
      // Its own users first, so that each lands after its producer.
      if (Id found = sinkUsers(user, place); found != kNone)
        return found;
      placeAfter(user, place);
    }
  }
  return kNone;
}
