//===- TransferTimes.cpp - What rules ask about transfers -----------------===//
#include "TransferTimes.h"
#include <map>

using namespace fsdp;
using namespace fsdp::problem;

TransferTimes::TransferTimes(const Problem &problem, const Candidate &base,
                             const Transfers &transfers,
                             const simulation::Costs &costs)
    : problem(problem), program(problem.programs[transfers.program]),
      moved(transfers), costs(costs) {
  findCompute(base);
}

Duration TransferTimes::travel(TransferKind kind, Id begin, Id end) const {
  std::map<Id, std::vector<Member>> byKey;
  bool isAgain = kind == TransferKind::Again;
  for (Id i = begin; i < end; ++i)
    for (Id op : moved[kind][i].ops)
      byKey[program.collective(program.ops[op], isAgain).key].push_back(
          {op, isAgain});
  Duration all;
  for (const auto &[key, members] : byKey)
    all += costs.model.collective(
        simulation::callOf(problem, program, members, costs));
  return all;
}

int64_t TransferTimes::bytes(TransferKind kind, Id begin, Id end) const {
  int64_t sum = 0;
  for (Id i = begin; i < end; ++i)
    sum += moved[kind][i].bytes;
  return sum;
}

/// Each transfer on the compute stream, and every gather that may be is
/// repeated.
Candidate TransferTimes::alone(const Candidate &base) const {
  Candidate candidate = base;
  Decision keeps, repeats;
  repeats.recompute = true;
  Id kept = candidate.add(keeps), repeated = candidate.add(repeats);
  ProgramDecisions &decided = candidate.programs[moved.program];
  for (Id op = 0; op < program.ops.size(); ++op) {
    const Transfers::Place &place = moved.places[moved.program][op];
    if (place.forward == kNone && place.reduce == kNone)
      continue;
    decided.of[op] = place.again != kNone ? repeated : kept;
    decided.again[op] = kept;
  }
  return candidate;
}

/// Writes what `step` moves to `last`, by kind; false if it moves no transfer.
bool TransferTimes::begin(const Sequence &sequence, const Step &step,
                          Id *last) const {
  bool isAny = false;
  for (Id i = step.members.begin; i < step.members.end(); ++i) {
    const Member &member = sequence.members[i];
    const Transfers::Place &place = moved.places[moved.program][member.op];
    TransferKind kind = place.reduce != kNone ? TransferKind::Reduce
                        : member.isAgain      ? TransferKind::Again
                                              : TransferKind::Forward;
    Id number = place.reduce != kNone ? place.reduce
                : member.isAgain      ? place.again
                                      : place.forward;
    if (number == kNone)
      continue;
    last[int(kind)] = number;
    isAny = true;
  }
  return isAny;
}

/// Whether `step` goes along where a collective moves.
bool TransferTimes::moves(const Sequence &sequence, const Step &step) const {
  for (Id i = step.members.begin; i < step.members.end(); ++i)
    if (!program.ops[sequence.members[i].op].is(kMovable))
      return false;
  return step.members.count != 0;
}

void TransferTimes::findCompute(const Candidate &base) {
  for (int kind = 0; kind < kTransferKinds; ++kind) {
    between[kind].resize(moved.lists[kind].size());
    count[kind].resize(moved.lists[kind].size());
  }
  Sequence sequence = order(problem, alone(base), moved.program);
  Id last[kTransferKinds] = {kNone, kNone, kNone};
  auto isOver = [&](TransferKind kind) {
    return last[int(kind)] != kNone &&
           last[int(kind)] + 1 == moved[kind].size();
  };
  for (const Step &step : sequence.steps) {
    bool isCollective = step.collective != CollectiveRole::None;
    if (isCollective && begin(sequence, step, last))
      continue;
    Duration time =
        simulation::durationOf(problem, program, sequence, step, costs);
    if (last[int(TransferKind::Forward)] == kNone || moves(sequence, step))
      before += time;
    if (isOver(TransferKind::Forward) &&
        last[int(TransferKind::Reduce)] == kNone)
      middle += time;
    if (isOver(TransferKind::Reduce))
      after += time;
    for (int kind = 0; kind < kTransferKinds && !isCollective; ++kind)
      if (last[kind] != kNone) {
        between[kind][last[kind]] += time;
        count[kind][last[kind]] += step.kind == StepKind::Work;
      }
  }
}
