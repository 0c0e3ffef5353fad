//===- PlaceNames.cpp - The nodes that addresses name ---------------------===//
#include "PlaceNames.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

void PlaceNames::find() {
  const DecisionNumbers &decisions = *draft.decisions;
  if (!decisions.nameAddresses())
    return;
  nodes.assign(decisions.numAddresses(), kNone);
  standIns.assign(nodes.size(), kNone);
  merged.clear();
  for (Id i = 0; i < decisions.all().size(); ++i)
    for (Id address : {decisions[i].startAfter, decisions[i].awaitBefore})
      if (address != kNone && nodes[address] == kNone)
        findOp(address);
  for (Id node : draft.collectives)
    findCollective(node);
  findMerged();
  for (Id address = 0; address < nodes.size(); ++address)
    if (nodes[address] == kNone)
      nodes[address] = standIns[address];
  for (Id i = 0; i < decisions.all().size(); ++i) {
    const Decision &texts = decisions.all()[i];
    if (!texts.startAfter.empty() && nodes[decisions[i].startAfter] == kNone)
      draft.sequence->unknown.push_back(texts.startAfter);
    if (!texts.awaitBefore.empty() && nodes[decisions[i].awaitBefore] == kNone)
      draft.sequence->unknown.push_back(texts.awaitBefore);
  }
}

void PlaceNames::findOp(Id address) {
  Address parts = draft.decisions->address(address);
  draft.start->forEachOpAt(parts, [&](Id op) { consider(address, op); });
  if (parts.phase != Phase::Again)
    return;
  for (Phase phase :
       {Phase::Forward, Phase::Again, Phase::Backward, Phase::Update}) {
    parts.phase = phase;
    draft.start->forEachOpAt(parts, [&](Id op) {
      auto clone = std::lower_bound(
          draft.clones.begin(), draft.clones.end(), op,
          [&](Id node, Id number) { return draft.nodes[node].op < number; });
      if (clone != draft.clones.end() && draft.nodes[*clone].op == op)
        consider(address, *clone);
    });
  }
}

/// An address is of the first node of the list that has it.
void PlaceNames::consider(Id address, Id node) {
  if (!draft.isListed(node) || draft.nodes[node].list.count != 0)
    return;
  Id &known = nodes[address];
  if (known == kNone || draft.isBefore(node, known))
    known = node;
}

/// Buckets and their members can be named too; the last one counts.
void PlaceNames::findCollective(Id node) {
  bool isAgain = draft.nodes[node].isAgain;
  standFor(draft.bucket(node) == kNone ? addressPartsOf(draft.op(node), isAgain)
                                       : bucketOf(node),
           node);
  const Span list = draft.nodes[node].list;
  if (list.count == 0)
    return;
  merged.push_back(node);
  for (Id i = list.begin; i < list.end(); ++i)
    standFor(addressPartsOf(draft.program->ops[draft.lists[i]], isAgain), node);
}

/// Collectives of one bucket that could not merge have numbers, in the order in
/// which they were merged.
void PlaceNames::findMerged() {
  std::sort(merged.begin(), merged.end(), [&](Id a, Id b) {
    return draft.nodes[a].list.begin < draft.nodes[b].list.begin;
  });
  mergedOf.clear();
  for (Id node : merged) {
    Address bucket = bucketOf(node);
    bucket.index = ++mergedOf[bucket];
    Id address = draft.decisions->find(bucket);
    if (address != kNone && nodes[address] == kNone)
      nodes[address] = node;
  }
}

Address PlaceNames::bucketOf(Id node) const {
  const Op &op = draft.op(node);
  Phase phase = draft.nodes[node].isAgain ? Phase::Again : op.phase;
  return {phase, draft.bucket(node), op.name, 1};
}

void PlaceNames::standFor(const Address &address, Id node) {
  if (Id number = draft.decisions->find(address); number != kNone)
    standIns[number] = node;
}
