//===- CommunicationPlan.cpp - Buckets, windows, what stays gathered ------===//
#include "fsdp/Schedule/CommunicationPlan.h"
#include <map>
#include <tuple>

using namespace fsdp;
using namespace fsdp::problem;

bool CommunicationChoice::operator==(const CommunicationChoice &other) const {
  for (int kind = 0; kind < kTransferKinds; ++kind)
    if (buckets[kind] != other.buckets[kind])
      return false;
  return isKept == other.isKept;
}

CommunicationChoice fsdp::problem::withoutPlaces(CommunicationChoice choice) {
  for (std::vector<TransferBucket> &buckets : choice.buckets)
    for (TransferBucket &bucket : buckets)
      bucket.place.clear();
  return choice;
}

CommunicationChoice
fsdp::problem::withoutDistances(CommunicationChoice choice) {
  for (std::vector<TransferBucket> &buckets : choice.buckets)
    for (TransferBucket &bucket : buckets)
      bucket.distance = 0;
  return choice;
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

namespace {

/// Finds the transfers of a program by the order that it has when every gather
/// that may be repeated is, and nothing travels together.
class TransferFinder {
public:
  TransferFinder(const Problem &problem, const Candidate &base, size_t number)
      : problem(problem), base(base), program(problem.programs[number]) {
    transfers.program = number;
  }

  Transfers run() {
    Sequence sequence = order(problem, alone(), transfers.program);
    for (const Step &step : sequence.steps)
      for (Id i = step.members.begin; i < step.members.end(); ++i)
        if (isMoved(sequence.members[i].op))
          add(sequence.members[i]);
    findPlaces();
    return std::move(transfers);
  }

private:
  const Decision *decisionOf(size_t program, Id op) const {
    Id number = base.programs[program].of[op];
    return number == kNone ? nullptr : &base.decisions[number];
  }

  bool isMoved(Id number) const {
    const Op &op = program.ops[number];
    if (op.kind != OpKind::Collective ||
        program.collective(op).parameter == kNone)
      return false;
    const Decision *decision = decisionOf(transfers.program, number);
    return decision && decision->merge && decision->overlap &&
           !decision->bucket.empty();
  }

  Candidate alone() const {
    Candidate candidate = base;
    ProgramDecisions &decided = candidate.programs[transfers.program];
    for (Id op = 0; op < program.ops.size(); ++op) {
      if (!isMoved(op))
        continue;
      Decision decision;
      decision.recompute = program.ops[op].is(kCanRecompute);
      decided.of[op] = candidate.add(decision);
      decided.again[op] = candidate.add({});
    }
    return candidate;
  }

  uint32_t unitOf(Id op) {
    const Decision *decision = decisionOf(transfers.program, op);
    auto [at, isNew] =
        unitNumbers.try_emplace(decision->bucket, transfers.units.size());
    if (isNew) {
      transfers.units.push_back(decision->bucket);
      Id block = program.ops[op].block;
      transfers.isBlock.push_back(block != kNone &&
                                  problem.text(block) == decision->bucket);
      transfers.isKept.push_back(program.ops[op].is(kCanRecompute) &&
                                 !decision->recompute);
    }
    return at->second;
  }

  int64_t bytesOf(const Collective &collective) const {
    int64_t bytes = 0;
    for (Id i = collective.items.begin; i < collective.items.end(); ++i) {
      const rt::CollectiveItem &item = program.items[i];
      bytes +=
          collective.isGather() ? item.shard * collective.ranks : item.full;
    }
    return bytes * rt::sizeOf(collective.in);
  }

  void add(const Member &member) {
    const Op &op = program.ops[member.op];
    const Collective &collective = program.collective(op, member.isAgain);
    TransferKind kind = !collective.isGather() ? TransferKind::Reduce
                        : member.isAgain       ? TransferKind::Again
                                               : TransferKind::Forward;
    TransferList &list = transfers.lists[int(kind)];
    auto [at, isNew] =
        numbers.try_emplace({kind, collective.parameter}, Id(list.size()));
    if (isNew) {
      Transfer &transfer = list.emplace_back();
      transfer.unit = unitOf(member.op);
      if (kind == TransferKind::Again)
        transfer.gather =
            numbers.at({TransferKind::Forward, collective.parameter});
    }
    list[at->second].ops.push_back(member.op);
    list[at->second].bytes += bytesOf(collective);
  }

  /// Programs share addresses, and with them decisions.
  void findPlaces() {
    std::map<std::string, Transfers::Place> byAddress;
    for (TransferKind kind :
         {TransferKind::Forward, TransferKind::Again, TransferKind::Reduce}) {
      const TransferList &list = transfers[kind];
      for (Id number = 0; number < list.size(); ++number)
        for (Id op : list[number].ops) {
          Transfers::Place &place =
              byAddress[addressOf(problem, program.ops[op])];
          (kind == TransferKind::Forward ? place.forward
           : kind == TransferKind::Again ? place.again
                                         : place.reduce) = number;
        }
    }
    for (const Program &each : problem.programs) {
      auto &places = transfers.places.emplace_back(each.ops.size());
      for (Id op = 0; op < each.ops.size(); ++op)
        if (each.ops[op].kind == OpKind::Collective)
          if (auto at = byAddress.find(addressOf(problem, each.ops[op]));
              at != byAddress.end())
            places[op] = at->second;
    }
  }

  const Problem &problem;
  const Candidate &base;
  const Program &program;
  Transfers transfers;
  std::map<std::string, uint32_t> unitNumbers;
  std::map<std::pair<TransferKind, Id>, Id> numbers; // by parameter
};

} // namespace

Transfers fsdp::problem::transfersOf(const Problem &problem,
                                     const Candidate &base, size_t program,
                                     bool mayKeep) {
  Transfers transfers = TransferFinder(problem, base, program).run();
  transfers.mayKeep = mayKeep;
  return transfers;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::vector<std::string>
fsdp::problem::bucketNames(const Transfers &transfers, TransferKind kind,
                           const std::vector<TransferBucket> &buckets) {
  const TransferList &list = transfers[kind];
  std::vector<uint32_t> sizes(transfers.units.size());
  for (const Transfer &transfer : list)
    ++sizes[transfer.unit];
  std::vector<std::string> names;
  std::vector<int> parts(transfers.units.size());
  Id begin = 0;
  for (const TransferBucket &bucket : buckets) {
    uint32_t least = list[begin].unit, most = least, members = 0;
    for (Id i = begin; i < begin + bucket.count; ++i) {
      least = std::min(least, list[i].unit);
      most = std::max(most, list[i].unit);
    }
    for (uint32_t unit = least; unit <= most; ++unit)
      members += sizes[unit];
    std::string name = transfers.units[least];
    if (most != least)
      name += " to " + transfers.units[most];
    if (members != bucket.count)
      name += " part " + std::to_string(++parts[least]);
    names.push_back(std::move(name));
    begin += bucket.count;
  }
  return names;
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

namespace {

/// The decision of each transfer of a pass.
class PassDecisions {
public:
  PassDecisions(const Transfers &transfers, TransferKind kind,
                const CommunicationChoice &choice, Candidate &candidate) {
    std::vector<std::string> names = bucketNames(transfers, kind, choice[kind]);
    const TransferList &list = transfers[kind];
    for (size_t b = 0; b < names.size(); ++b) {
      Decision decision;
      decision.bucket = names[b];
      decision.overlap = true;
      const TransferBucket &bucket = choice[kind][b];
      bool isReduction = kind == TransferKind::Reduce;
      (isReduction ? decision.defer : decision.prefetch) = bucket.distance;
      (isReduction ? decision.awaitBefore : decision.startAfter) = bucket.place;
      // By whether it is repeated.
      Id number[2] = {kNone, kNone};
      for (uint32_t i = 0; i < choice[kind][b].count; ++i) {
        decision.recompute = kind == TransferKind::Forward &&
                             !choice.isKept[list[numbers.size()].unit];
        Id &known = number[decision.recompute];
        if (known == kNone) {
          known = Id(candidate.decisions.size());
          candidate.decisions.push_back(decision);
        }
        numbers.push_back(known);
      }
    }
  }
  Id operator[](Id transfer) const { return numbers[transfer]; }

private:
  std::vector<Id> numbers;
};

} // namespace

Candidate fsdp::problem::withCommunication(const Candidate &base,
                                           const Transfers &transfers,
                                           const CommunicationChoice &choice) {
  Candidate candidate = base;
  PassDecisions forward(transfers, TransferKind::Forward, choice, candidate),
      again(transfers, TransferKind::Again, choice, candidate),
      reduce(transfers, TransferKind::Reduce, choice, candidate);
  for (size_t p = 0; p < candidate.programs.size(); ++p) {
    ProgramDecisions &decided = candidate.programs[p];
    for (Id op = 0; op < transfers.places[p].size(); ++op) {
      const Transfers::Place &place = transfers.places[p][op];
      if (place.forward != kNone)
        decided.of[op] = forward[place.forward];
      if (place.again != kNone)
        decided.again[op] = again[place.again];
      if (place.reduce != kNone)
        decided.of[op] = reduce[place.reduce];
    }
  }
  return candidate;
}
