//===- FailureDetector.cpp - Whether a job can go on ----------------------===//
#include "FailureDetector.h"
#include <algorithm>

using namespace fsdp::rt;

double LivenessLimits::grace() const {
  return std::max(kGraceSeconds, kGraceHeartbeats * period);
}

LivenessLimits fsdp::rt::livenessLimits(double heartbeat, double timeout) {
  double least = heartbeat == 0 ? timeout : std::min(heartbeat, timeout);
  LivenessLimits limits;
  limits.silence = heartbeat;
  limits.period = std::clamp(least / 8, 0.05, 1.0);
  limits.lossGrace = limits.grace();
  return limits;
}

bool fsdp::rt::isOld(const RankRow &row, double now,
                     const LivenessLimits &limits) {
  return row.state == RankState::Lost || row.state == RankState::Left ||
         (row.heard != kNever &&
          now - row.heard >= kOldHeartbeats * limits.period);
}

int fsdp::rt::chooseBackup(const ProgressTable &table, int coordinator) {
  int first = -1;
  for (int r = 0; r < table.ranks(); ++r) {
    if (r == coordinator || table.row(r).state != RankState::Here)
      continue;
    if (table.row(r).host != table.row(coordinator).host)
      return r;
    if (first < 0)
      first = r;
  }
  return first;
}

/// Whether a rank whose channel has come to `other` has been in the collective
/// `mine`. Ranks of a channel are in the same collective or one apart. A graph
/// repeats its counters, so that of two runs of a program the one that is
/// further on is the earlier one; where they are as far, and of programs whose
/// runs are not next to each other, it is not to be seen.
static bool hasLeft(uint64_t other, uint64_t mine) {
  if (other == 0)
    return false;
  ProgressCounter its = ProgressCounter::decode(other),
                  own = ProgressCounter::decode(mine);
  if (its.program != own.program)
    return its.run == uint8_t(own.run + 1);
  if (its.run != own.run)
    return its.number < own.number;
  return its.number > own.number || (its.number == own.number && !its.isInside);
}

namespace {

class Detector {
public:
  Detector(const ProgressTable &table, double now, const LivenessLimits &limits,
           int me)
      : table(table), now(now), limits(limits), me(me) {
    while (coordinator < me && table.row(coordinator).state == RankState::Left)
      ++coordinator;
  }

  FailureVerdict detect() const;

private:
  bool isSilent(const RankRow &row) const {
    return row.state == RankState::Here && limits.silence > 0 &&
           now - row.heard > limits.silence;
  }
  /// Whether this rank decides about rank `r`.
  bool watches(int r) const {
    return r != me && (me == coordinator || r == coordinator);
  }
  FailureVerdict findSilent() const;
  FailureVerdict findStuck() const;
  FailureVerdict findLost() const;
  FailureVerdict findProblem() const;
  int firstToSpeak() const;
  FailureVerdict::Speaker speakerFor(const FailureVerdict &verdict) const;
  void explain(FailureVerdict &verdict) const;

  double secondsIn(const RankWait &wait) const {
    return wait.rank < 0 ? 0 : now - wait.progress.since;
  }
  /// What a silent rank waited in is long ago.
  template <typename Counts> RankWait longestWait(const Counts &counts) const;
  bool isSure(const RankWait &wait) const {
    return secondsIn(wait) >= kOldHeartbeats * limits.period;
  }
  RankWait longestWait() const {
    return longestWait([this](const RankWait &wait) { return isSure(wait); });
  }
  RankWait longestWaitOf(int rank) const;
  RankWait longestWaitForSilent() const;
  RankWait causeOf(const RankWait &wait) const;
  MissingRanks missingIn(const RankWait &wait) const;

  const ProgressTable &table;
  const double now;
  const LivenessLimits &limits;
  const int me;
  /// The first rank that has not left.
  int coordinator = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// What is wrong
//===----------------------------------------------------------------------===//

FailureVerdict Detector::findSilent() const {
  for (int r = 0; r < table.ranks(); ++r)
    if (const RankRow &row = table.row(r); watches(r) && isSilent(row))
      return {FailureVerdict::Silent, {r}, row.heard + limits.silence};
  return {};
}

FailureVerdict Detector::findStuck() const {
  if (me != coordinator || limits.collective == 0)
    return {};
  RankWait wait = longestWait();
  if (secondsIn(wait) <= limits.collective)
    return {};
  return {FailureVerdict::Stuck,
          {wait.rank},
          wait.progress.since + limits.collective};
}

/// All that are lost, when the first of them has been for long enough.
FailureVerdict Detector::findLost() const {
  FailureVerdict found;
  for (int r = 0; r < table.ranks(); ++r) {
    const RankRow &row = table.row(r);
    if (!watches(r) || row.state != RankState::Lost)
      continue;
    double due = row.lost + limits.lossGrace;
    found.due = found.ranks.empty() ? due : std::min(found.due, due);
    found.ranks.push_back(r);
  }
  if (!found.ranks.empty() && now >= found.due)
    found.kind = FailureVerdict::Lost;
  return found;
}

/// The first problem that is known.
FailureVerdict Detector::findProblem() const {
  FailureVerdict found;
  auto add = [&](FailureVerdict::Kind kind, int rank, double since) {
    double due = since + limits.grace();
    if (now >= due && (found.kind == FailureVerdict::None || due < found.due))
      found = {kind, {rank}, due};
  };
  for (int r = 0; r < table.ranks(); ++r) {
    const RankRow &row = table.row(r);
    if (r != me && me != coordinator)
      continue;
    if (!row.problem.empty())
      add(FailureVerdict::Problem, r, row.problemSince);
    if (const LimitedStage &stage = row.stage;
        !stage.what.empty() && now - stage.since > stage.limit)
      add(FailureVerdict::StageStuck, r, stage.since + stage.limit);
  }
  return found;
}

/// Who speaks where the coordinator cannot. Without a backup everybody does.
int Detector::firstToSpeak() const {
  auto canSpeak = [this](int r) {
    const RankRow &row = table.row(r);
    return r != coordinator && !isSilent(row) && row.state != RankState::Lost &&
           row.state != RankState::Left;
  };
  int first = table.backup < 0 ? me : table.backup;
  for (int r = 0; !canSpeak(first) && r < table.ranks(); ++r)
    first = r;
  return first;
}

/// Whoever is to speak and does not leaves it to the others.
FailureVerdict::Speaker
Detector::speakerFor(const FailureVerdict &verdict) const {
  if (me == coordinator)
    return FailureVerdict::This;
  bool isOwn = verdict.ranks[0] == me;
  if (isOwn && table.row(me).told == kNever)
    return FailureVerdict::Coordinator;
  double since = isOwn ? table.row(me).told : verdict.due;
  return (!isOwn && firstToSpeak() == me) || now - since > kSpeechSeconds
             ? FailureVerdict::This
             : FailureVerdict::Another;
}

FailureVerdict Detector::detect() const {
  FailureVerdict found = findSilent();
  if (found.kind == FailureVerdict::None)
    found = findStuck();
  // Ranks that have ended come before what others say of it.
  if (found.kind == FailureVerdict::None)
    found = findLost();
  if (found.kind == FailureVerdict::None && found.ranks.empty())
    found = findProblem();
  if (found.kind == FailureVerdict::None)
    return {};
  found.speaker = speakerFor(found);
  explain(found);
  return found;
}

void Detector::explain(FailureVerdict &verdict) const {
  RankWait forSilent = verdict.kind == FailureVerdict::Stuck
                           ? RankWait()
                           : longestWaitForSilent();
  if (forSilent.rank >= 0) {
    verdict.wait = verdict.cause = forSilent;
  } else {
    verdict.wait = longestWait();
    if (verdict.wait.rank < 0)
      return;
    verdict.cause = causeOf(verdict.wait);
  }
  verdict.missing = missingIn(verdict.cause);
}

FailureVerdict fsdp::rt::detectFailure(const ProgressTable &table, double now,
                                       const LivenessLimits &limits, int rank) {
  return Detector(table, now, limits, rank).detect();
}

//===----------------------------------------------------------------------===//
// Who waits for whom
//===----------------------------------------------------------------------===//

template <typename Counts>
RankWait Detector::longestWait(const Counts &counts) const {
  RankWait longest;
  for (int r = 0; r < table.ranks(); ++r) {
    const RankRow &row = table.row(r);
    if (isOld(row, now, limits))
      continue;
    for (size_t i = 0; i < row.channels.size(); ++i) {
      RankWait wait{r, i, row.channels[i]};
      if ((wait.progress.counter & ProgressCounter::kInside) != 0 &&
          secondsIn(wait) > secondsIn(longest) && counts(wait))
        longest = wait;
    }
  }
  return longest;
}

RankWait Detector::longestWaitOf(int rank) const {
  return longestWait(
      [&](const RankWait &wait) { return wait.rank == rank && isSure(wait); });
}

RankWait Detector::longestWaitForSilent() const {
  return longestWait([this](const RankWait &wait) {
    return missingIn(wait).kind == MissingRanks::Silent;
  });
}

MissingRanks Detector::missingIn(const RankWait &wait) const {
  std::vector<int> silent, late, gone;
  for (int rank : table.ranksOf(wait.rank, wait.channel)) {
    uint64_t counter = table.row(rank).channels[wait.channel].counter;
    if (isOld(table.row(rank), now, limits))
      silent.push_back(rank);
    else if (counter != wait.progress.counter)
      (hasLeft(counter, wait.progress.counter) ? gone : late).push_back(rank);
  }
  if (!silent.empty())
    return {MissingRanks::Silent, silent};
  if (!late.empty())
    return {MissingRanks::Late, late};
  return {gone.empty() ? MissingRanks::None : MissingRanks::Gone, gone};
}

RankWait Detector::causeOf(const RankWait &wait) const {
  RankWait cause = wait;
  std::vector<bool> isSeen(size_t(table.ranks()));
  for (;;) {
    MissingRanks missing = missingIn(cause);
    if (missing.kind != MissingRanks::Late)
      return cause;
    RankWait next;
    for (int rank : missing.ranks) {
      next = longestWaitOf(rank);
      if (next.rank < 0)
        return cause;
    }
    if (isSeen[size_t(next.rank)])
      return wait;
    isSeen[size_t(next.rank)] = true;
    cause = next;
  }
}
