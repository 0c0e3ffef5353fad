//===- Draft.cpp - A program while it is scheduled ------------------------===//
#include "Draft.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

/// Between neighbours, so that many fit between them later.
static constexpr int64_t kStride = int64_t(1) << 40;
/// A node placed beside another leaves it all but such a part of the room.
static constexpr int64_t kPart = 32;

ProgramStart::ProgramStart(const Program &program) : program(program) {
  size_t ops = program.ops.size();
  list.nodes.reserve(ops);
  list.values.resize(program.values.size());
  list.results.resize(program.values.size());
  for (Id value = 0; value < list.values.size(); ++value) {
    list.values[value].def = program.values[value].def;
    list.values[value].bytes = program.values[value].bytes;
    list.results[value] = value;
  }
  std::vector<std::pair<Id, Id>> changes; // names and the ops
  for (Id number = 0; number < ops; ++number) {
    const Op &op = program.ops[number];
    Node node;
    node.op = number;
    node.opKind = op.kind;
    node.flags = op.flags;
    node.uses = {Id(list.uses.size()), op.operands.count};
    node.results = op.results;
    node.isListed = true;
    node.previous = list.last;
    node.place = int64_t(number) * kStride;
    (list.last == kNone ? list.first : list.nodes[list.last].next) = number;
    list.last = number;
    list.nodes.push_back(node);
    for (Id i = 0; i < op.operands.count; ++i) {
      list.uses.push_back({program.operand(op, i), number});
      list.addUse(list.uses.size() - 1);
    }
    if (op.kind == OpKind::Seed && seed == kNone)
      seed = number;
    if (op.kind == OpKind::Collective)
      collectives.push_back(number);
    hasWrites |= op.kind == OpKind::Write;
    if (op.kind >= OpKind::Gradient && op.kind <= OpKind::Update)
      for (Id state = op.states.begin; state < op.states.end(); ++state)
        changes.push_back({program.states[state], number});
  }
  findWriters(std::move(changes));
}

void ProgramStart::findWriters(std::vector<std::pair<Id, Id>> changes) {
  std::sort(changes.begin(), changes.end());
  for (const auto &change : changes)
    writers.push_back(change.second);
  writersOf.resize(program.ops.size());
  for (Id number = 0; number < program.ops.size(); ++number) {
    const Op &op = program.ops[number];
    if (op.kind != OpKind::Read)
      continue;
    auto [begin, end] = std::equal_range(
        changes.begin(), changes.end(),
        std::pair(program.states[op.states.begin], Id(0)),
        [](const auto &a, const auto &b) { return a.first < b.first; });
    writersOf[number] = {Id(begin - changes.begin()), Id(end - begin)};
  }
}

void ProgramStart::findAddresses() const {
  sameAddress.assign(program.ops.size() + 1, kNone);
  for (Id number = 0; number < program.ops.size(); ++number) {
    if (!program.ops[number].is(kAddressed))
      continue;
    auto [at, isNew] = firstAt.try_emplace(
        addressPartsOf(program.ops[number], false), number);
    if (!isNew) {
      sameAddress[number] = at->second;
      at->second = number;
    }
  }
}

void Draft::reset(const ProgramStart &from, const ProgramDecisions &about,
                  const DecisionNumbers &numbers, Sequence &into) {
  static_cast<NodeList &>(*this) = from.list;
  start = &from;
  program = &from.program;
  decided = &about;
  decisions = &numbers;
  sequence = &into;
  seed = from.seed;
  lists.clear();
  clones.clear();
  collectives = from.collectives;
  for (Id node : collectives)
    nodes[node].decision = about.of[node];
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

const Id *Draft::membersOf(Id node, Id &count) const {
  const Node &of = nodes[node];
  count = of.list.count == 0 ? 1 : of.list.count;
  return of.list.count == 0 ? &of.op : &lists[of.list.begin];
}

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

void NodeList::addUse(Id use) {
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
  Id number = nodes.size();
  Node &node = nodes.emplace_back();
  node.kind = kind;
  node.op = op;
  if (kind == NodeKind::Op) {
    node.opKind = program->ops[op].kind;
    node.flags = program->ops[op].flags;
  }
  node.uses = {Id(uses.size()), Id(operands.size())};
  for (Id operand : operands) {
    uses.push_back({operand, number});
    addUse(uses.size() - 1);
  }
  return number;
}

Id Draft::addValue(Id def, int64_t bytes) {
  values.push_back({def, kNone, bytes});
  return values.size() - 1;
}

Span Draft::addList(const std::vector<Id> &members) {
  Id begin = lists.size();
  lists.insert(lists.end(), members.begin(), members.end());
  return {begin, Id(members.size())};
}

void Draft::sortCollectives() {
  collectives.erase(
      std::remove_if(collectives.begin(), collectives.end(),
                     [&](Id node) { return !nodes[node].isListed; }),
      collectives.end());
  auto isEarlier = [&](Id a, Id b) { return isBefore(a, b); };
  if (!std::is_sorted(collectives.begin(), collectives.end(), isEarlier))
    std::sort(collectives.begin(), collectives.end(), isEarlier);
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
