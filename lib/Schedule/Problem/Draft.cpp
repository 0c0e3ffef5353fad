//===- Draft.cpp - A program while it is scheduled ------------------------===//
#include "Draft.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

/// Between neighbours, so that many fit between them later.
static constexpr int64_t kStride = int64_t(1) << 40;
/// A node placed beside another leaves it all but such a part of the room.
static constexpr int64_t kPart = 32;

Draft::Draft(const Problem &problem, const Program &program,
             const Candidate &candidate, const ProgramDecisions &decided)
    : problem(problem), program(program), candidate(candidate),
      decided(decided) {
  size_t ops = program.ops.size();
  nodes.reserve(ops * 2);
  values.resize(program.values.size());
  values.reserve(values.size() * 2);
  uses.reserve(program.operands.size() * 2);
  results.resize(program.values.size());
  for (Id value = 0; value < values.size(); ++value) {
    values[value].def = program.values[value].def;
    values[value].origin = results[value] = value;
  }
  for (Id number = 0; number < ops; ++number) {
    const Op &op = program.ops[number];
    Node node;
    node.op = number;
    node.decision = decided.of[number];
    node.uses = {Id(uses.size()), op.operands.count};
    node.results = op.results;
    node.isListed = true;
    node.previous = last;
    node.place = int64_t(number) * kStride;
    (last == kNone ? first : nodes[last].next) = number;
    last = number;
    nodes.push_back(node);
    for (Id i = 0; i < op.operands.count; ++i) {
      uses.push_back({program.operand(op, i), number});
      addUse(uses.size() - 1);
    }
    if (op.kind == OpKind::Seed && seed == kNone)
      seed = number;
    if (op.kind >= OpKind::Gradient && op.kind <= OpKind::Update)
      for (Id state = op.states.begin; state < op.states.end(); ++state)
        writers.push_back({program.states[state], number});
  }
  std::sort(writers.begin(), writers.end());
  std::unordered_map<std::string_view, Id> numbers;
  for (const Decision &decision : candidate.decisions)
    buckets.push_back(decision.bucket.empty()
                          ? kNone
                          : numbers.try_emplace(decision.bucket, numbers.size())
                                .first->second);
}

const Decision &Draft::decision(Id node) const {
  static const Decision none;
  Id number = nodes[node].decision;
  return number == kNone ? none : candidate.decisions[number];
}

bool Draft::hasUses(Id node) const {
  const Span &span = nodes[node].results;
  for (Id i = span.begin; i < span.end(); ++i)
    if (values[results[i]].first != kNone)
      return true;
  return false;
}

Id Draft::firstUser(Id node) const {
  Id found = kNone;
  const Span &span = nodes[node].results;
  for (Id i = span.begin; i < span.end(); ++i)
    for (Id use = values[results[i]].first; use != kNone; use = uses[use].next)
      if (found == kNone || isBefore(uses[use].node, found))
        found = uses[use].node;
  return found;
}

std::vector<Id> Draft::membersOf(Id node) const {
  const Node &of = nodes[node];
  return of.list == kNone ? std::vector<Id>{of.op} : lists[of.list];
}

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

void Draft::addUse(Id use) {
  Id &head = values[uses[use].value].first;
  uses[use].previous = kNone;
  uses[use].next = head;
  if (head != kNone)
    uses[head].previous = use;
  head = use;
}

void Draft::dropUse(Id use) {
  Use &of = uses[use];
  if (of.previous != kNone)
    uses[of.previous].next = of.next;
  else
    values[of.value].first = of.next;
  if (of.next != kNone)
    uses[of.next].previous = of.previous;
}

void Draft::setUse(Id use, Id value) {
  dropUse(use);
  uses[use].value = value;
  addUse(use);
}

void Draft::reverseUses(Id value) {
  Id use = values[value].first;
  values[value].first = kNone;
  while (use != kNone) {
    Id next = uses[use].next;
    addUse(use);
    use = next;
  }
}

void Draft::hideUses(Id node) {
  const Span &span = nodes[node].uses;
  for (Id use = span.begin; use < span.end(); ++use)
    dropUse(use);
}

void Draft::dropUses(Id node) {
  hideUses(node);
  nodes[node].uses.count = 0;
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

Id Draft::add(NodeKind kind, Id op, const std::vector<Id> &operands) {
  Node node;
  node.kind = kind;
  node.op = op;
  node.uses = {Id(uses.size()), Id(operands.size())};
  nodes.push_back(node);
  Id number = nodes.size() - 1;
  for (Id operand : operands) {
    uses.push_back({operand, number});
    addUse(uses.size() - 1);
  }
  return number;
}

Id Draft::addValue(Id def, Id origin) {
  DraftValue value;
  value.def = def;
  value.origin = origin;
  values.push_back(value);
  return values.size() - 1;
}

void Draft::renumber() {
  int64_t place = 0;
  for (Id node = first; node != kNone; node = nodes[node].next)
    nodes[node].place = kStride * place++;
}

/// Many nodes go before, or after, the same one: each leaves the room to that.
void Draft::link(Id node, Id before, Id after, bool nearBefore) {
  nodes[node].previous = before;
  nodes[node].next = after;
  nodes[node].isListed = true;
  (before == kNone ? first : nodes[before].next) = node;
  (after == kNone ? last : nodes[after].previous) = node;
  int64_t low =
      before == kNone ? nodes[after].place - 2 * kStride : nodes[before].place;
  int64_t high =
      after == kNone ? nodes[before].place + 2 * kStride : nodes[after].place;
  if (high - low < 2)
    return renumber();
  int64_t step = std::max<int64_t>((high - low) / kPart, 1);
  nodes[node].place = nearBefore ? low + step : high - step;
}

void Draft::unlist(Id node) {
  Node &of = nodes[node];
  if (!of.isListed)
    return;
  (of.previous == kNone ? first : nodes[of.previous].next) = of.next;
  (of.next == kNone ? last : nodes[of.next].previous) = of.previous;
  of.isListed = false;
}

void Draft::erase(Id node) {
  unlist(node);
  dropUses(node);
}

void Draft::placeBefore(Id node, Id at) {
  if (node == at)
    return;
  unlist(node);
  link(node, nodes[at].previous, at, /*nearBefore=*/true);
}

void Draft::placeAfter(Id node, Id at) {
  if (node == at)
    return;
  unlist(node);
  link(node, at, nodes[at].next, /*nearBefore=*/false);
}
