//===- Draft.cpp - A program while it is scheduled ------------------------===//
#include "Draft.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

/// Between neighbours, so that many fit between them later.
static constexpr int64_t kStride = int64_t(1) << 40;
/// A node placed beside another leaves it all but such a part of the room.
static constexpr int64_t kPart = 32;

/// What is told of an op in its node: most of what rules ask.
static void describe(const Program &program, Id number, Node &node) {
  const Op &op = program.ops[number];
  node.opKind = op.kind;
  node.phase = op.phase;
  node.flags = op.flags;
  bool namesState = op.kind == OpKind::Read ||
                    (op.kind >= OpKind::Gradient && op.kind <= OpKind::Update);
  if (!namesState)
    node.detail = static_cast<Id>(op.detail);
  else if (op.states.count > 0)
    node.detail = program.states[op.states.begin];
}

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
    describe(program, number, node);
    node.uses = {Id(list.uses.size()), op.operands.count};
    node.results = op.results;
    Id next = number + 1 < ops ? number + 1 : kNone;
    list.links.push_back(
        {list.last, next, static_cast<int64_t>(number) * kStride});
    (list.first == kNone ? list.first : list.last) = number;
    list.last = number;
    list.nodes.push_back(node);
    for (Id i = 0; i < op.operands.count; ++i) {
      list.uses.push_back({program.operand(op, i), number});
      list.addUse(list.uses.size() - 1);
    }
    workspaces.push_back(op.workspace);
    if (op.kind == OpKind::Seed && seed == kNone)
      seed = number;
    if (op.kind == OpKind::Collective) {
      const Collective &of = program.collective(op);
      collectives.push_back(number);
      facts.resize(std::max<size_t>(facts.size(), op.detail + 1));
      facts[op.detail] = {op.name, of.key,   of.order,
                          of.kind, op.phase, of.isGather()};
      if (of.again != kNone) {
        facts.resize(std::max<size_t>(facts.size(), of.again + 1));
        facts[of.again] = facts[op.detail];
        facts[of.again].key = program.collectives[of.again].key;
      }
    }
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
    auto [at, isNew] =
        firstAt.try_emplace(addressPartsOf(program.ops[number], false), number);
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

bool Draft::isReadByLibrary(Id value) const {
  for (Id use = values[value].first; use != kNone; use = uses[use].next) {
    Id user = uses[use].node;
    if (isAlias(user) ? isReadByLibrary(resultOf(user, 0))
                      : is(user, kReadByLibrary))
      return true;
  }
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
  links.push_back({kNone, kNone, kNowhere});
  node.kind = kind;
  node.op = op;
  if (kind == NodeKind::Op) {
    const Node &from = start->list.nodes[op];
    node.opKind = from.opKind;
    node.phase = from.phase;
    node.flags = from.flags;
    node.detail = from.detail;
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

void Draft::sort(std::vector<Id> &some) const {
  some.erase(std::remove_if(some.begin(), some.end(),
                            [&](Id node) { return !isListed(node); }),
             some.end());
  auto isEarlier = [&](Id a, Id b) { return isBefore(a, b); };
  if (!std::is_sorted(some.begin(), some.end(), isEarlier))
    std::sort(some.begin(), some.end(), isEarlier);
}

void Draft::renumber() {
  int64_t place = 0;
  for (Id node = first; node != kNone; node = nextOf(node))
    links[node].place = kStride * place++;
}

/// Many nodes go before, or after, the same one: each leaves the room to that.
void Draft::link(Id node, Id before, Id after, bool nearBefore) {
  (before == kNone ? first : links[before].next) = node;
  (after == kNone ? last : links[after].previous) = node;
  int64_t low =
      before == kNone ? links[after].place - 2 * kStride : links[before].place;
  int64_t high =
      after == kNone ? links[before].place + 2 * kStride : links[after].place;
  links[node] = {before, after, low};
  if (high - low < 2)
    return renumber();
  int64_t step = std::max<int64_t>((high - low) / kPart, 1);
  links[node].place = nearBefore ? low + step : high - step;
}

void Draft::unlist(Id node) {
  Link &of = links[node];
  if (!isListed(node))
    return;
  (of.previous == kNone ? first : links[of.previous].next) = of.next;
  (of.next == kNone ? last : links[of.next].previous) = of.previous;
  of.place = kNowhere;
}

void Draft::erase(Id node) {
  unlist(node);
  dropUses(node);
}

void Draft::placeBefore(Id node, Id at) {
  if (node == at)
    return;
  unlist(node);
  link(node, links[at].previous, at, /*nearBefore=*/true);
}

void Draft::placeAfter(Id node, Id at) {
  if (node == at)
    return;
  unlist(node);
  link(node, at, nextOf(at), /*nearBefore=*/false);
}
