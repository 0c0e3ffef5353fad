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

static bool hasGone(const RankRow &row) {
  return row.state == RankState::Left || row.state == RankState::Lost;
}

int fsdp::rt::chooseBackup(const ProgressTable &table, int coordinator) {
  int first = -1;
  for (int r = 0; r < table.ranks(); ++r) {
    if (r == coordinator || table.row(r).state != RankState::Here)
      continue;
    if (table.row(r).host != table.row(coordinator).host)
      return r;
    first = first < 0 ? r : first;
  }
  return first;
}

/// Whether a rank whose channel has come to `other`, which is not `mine`, has
/// been in the collective `mine`. Ranks of a channel are in the same collective
/// or one apart. A graph repeats its counters, so that of two runs of a program
/// the one that is further on is the earlier one; where they are as far, and of
/// programs whose runs are not next to each other, it is not to be seen.
static bool hasLeft(uint64_t other, uint64_t mine) {
  if (other == 0)
    return false;
  auto its = ProgressCounter::decode(other),
       own = ProgressCounter::decode(mine);
  if (its.program != own.program)
    return its.run == uint8_t(own.run + 1);
  if (its.run != own.run)
    return its.number < own.number;
  return its.number >= own.number;
}

namespace {

/// Who waits for whom at a time.
class Waits {
public:
  Waits(const ProgressTable &table, double now, const LivenessLimits &limits)
      : table(table), now(now), least(kOldHeartbeats * limits.period) {}

  /// 0 if nobody waits.
  double secondsOf(const RankWait &wait) const {
    return wait.rank < 0 ? 0 : now - wait.progress.since;
  }
  /// Of those that count; of one rank unless that is below 0.
  RankWait longest(int rank = -1) const {
    return longestOf([&](const RankWait &wait) {
      return (rank < 0 || wait.rank == rank) && secondsOf(wait) >= least;
    });
  }
  RankWait longestForSilent() const {
    return longestOf([&](const RankWait &wait) {
      return missingIn(wait).kind == MissingRanks::Silent;
    });
  }
  RankWait causeOf(const RankWait &wait) const;
  MissingRanks missingIn(const RankWait &wait) const;

private:
  /// What the rank said last is older than a wait that counts.
  bool isOld(const RankRow &row) const {
    return hasGone(row) || (row.heard != kNever && now - row.heard >= least);
  }
  template <typename Counts> RankWait longestOf(const Counts &counts) const;

  const ProgressTable &table;
  const double now, least;
};

class Detector {
public:
  Detector(const ProgressTable &table, double now, const LivenessLimits &limits,
           int me)
      : table(table), now(now), limits(limits), me(me),
        waits(table, now, limits) {
    while (coordinator < me && table.row(coordinator).state == RankState::Left)
      ++coordinator;
  }

  Failure detect() const;

private:
  bool isSilent(const RankRow &row) const {
    return row.state == RankState::Here && limits.silence > 0 &&
           now - row.heard > limits.silence;
  }
  /// Whether this rank decides about rank `r`.
  bool watches(int r) const {
    return r != me && (me == coordinator || r == coordinator);
  }
  Failure findSilent() const;
  Failure findNotBegun() const;
  Failure findStuck() const;
  Failure findLost() const;
  Failure findProblem() const;
  int firstToSpeak() const;
  Failure::Speaker speakerFor(const Failure &failure) const;
  void explain(Failure &failure) const;

  const ProgressTable &table;
  const double now;
  const LivenessLimits &limits;
  const int me;
  const Waits waits;
  int coordinator = 0; // the first rank that has not left
};

} // namespace

//===----------------------------------------------------------------------===//
// What is wrong
//===----------------------------------------------------------------------===//

Failure Detector::findSilent() const {
  for (int r = 0; r < table.ranks(); ++r)
    if (const RankRow &row = table.row(r); watches(r) && isSilent(row))
      return {Failure::Silent, {r}, row.heard + limits.silence};
  return {};
}

Failure Detector::findNotBegun() const {
  if (limits.begin == 0 || now <= limits.begin)
    return {};
  for (int r = 0; r < table.ranks(); ++r)
    if (watches(r) && table.row(r).state == RankState::NotBegun)
      return {Failure::NotBegun, {r}, limits.begin};
  return {};
}

Failure Detector::findStuck() const {
  if (me != coordinator || limits.collective == 0)
    return {};
  RankWait wait = waits.longest();
  if (waits.secondsOf(wait) <= limits.collective)
    return {};
  return {Failure::Stuck, {wait.rank}, wait.progress.since + limits.collective};
}

/// All that are lost, when the first of them has been for long enough.
Failure Detector::findLost() const {
  Failure found;
  for (int r = 0; r < table.ranks(); ++r) {
    const RankRow &row = table.row(r);
    if (!watches(r) || row.state != RankState::Lost)
      continue;
    double due = row.lost + limits.lossGrace;
    found.due = found.ranks.empty() ? due : std::min(found.due, due);
    found.ranks.push_back(r);
  }
  if (!found.ranks.empty() && now >= found.due)
    found.kind = Failure::Lost;
  return found;
}

/// The first problem that is known.
Failure Detector::findProblem() const {
  Failure found;
  auto add = [&](Failure::Kind kind, int rank, double since) {
    double due = since + limits.grace();
    if (now >= due && (found.kind == Failure::None || due < found.due))
      found = {kind, {rank}, due};
  };
  for (int r = 0; r < table.ranks(); ++r) {
    const RankRow &row = table.row(r);
    if (r != me && me != coordinator)
      continue;
    if (!row.problem.empty())
      add(Failure::Problem, r, row.problemSince);
    if (!row.stage.what.empty())
      add(Failure::StageStuck, r, row.stage.since + row.stage.limit);
  }
  return found;
}

/// Who speaks where the coordinator cannot. Without a backup everybody does.
int Detector::firstToSpeak() const {
  auto canSpeak = [this](int r) {
    const RankRow &row = table.row(r);
    return !isSilent(row) && !hasGone(row);
  };
  int first = table.backup < 0 ? me : table.backup;
  for (int r = 0; !canSpeak(first) && r < table.ranks(); ++r)
    first = r;
  return first;
}

/// Whoever is to speak and does not leaves it to the others.
Failure::Speaker Detector::speakerFor(const Failure &failure) const {
  if (me == coordinator)
    return Failure::This;
  bool isOwn = failure.ranks[0] == me;
  if (isOwn && table.row(me).told == kNever)
    return Failure::Coordinator;
  double since = isOwn ? table.row(me).told : failure.due;
  return (!isOwn && firstToSpeak() == me) || now - since > kSpeechSeconds
             ? Failure::This
             : Failure::Another;
}

Failure Detector::detect() const {
  Failure found = findSilent();
  if (found.kind == Failure::None)
    found = findNotBegun();
  if (found.kind == Failure::None)
    found = findStuck();
  // Ranks that have ended come before what others say of it.
  if (found.kind == Failure::None)
    found = findLost();
  if (found.kind == Failure::None && found.ranks.empty())
    found = findProblem();
  if (found.kind == Failure::None)
    return {};
  found.speaker = speakerFor(found);
  explain(found);
  return found;
}

void Detector::explain(Failure &failure) const {
  if (failure.kind != Failure::Stuck)
    failure.wait = failure.cause = waits.longestForSilent();
  if (failure.wait.rank < 0) {
    failure.wait = waits.longest();
    failure.cause = waits.causeOf(failure.wait);
  }
  failure.missing = waits.missingIn(failure.cause);
}

Failure fsdp::rt::detectFailure(const ProgressTable &table, double now,
                                const LivenessLimits &limits, int rank) {
  return Detector(table, now, limits, rank).detect();
}

//===----------------------------------------------------------------------===//
// Who waits for whom
//===----------------------------------------------------------------------===//

/// What a silent rank waited in is long ago.
template <typename Counts>
RankWait Waits::longestOf(const Counts &counts) const {
  RankWait longest;
  for (int r = 0; r < table.ranks(); ++r) {
    const RankRow &row = table.row(r);
    for (size_t i = 0; i < row.channels.size() && !isOld(row); ++i) {
      RankWait wait{r, i, row.channels[i]};
      if ((wait.progress.counter & ProgressCounter::kInside) != 0 &&
          secondsOf(wait) > secondsOf(longest) && counts(wait))
        longest = wait;
    }
  }
  return longest;
}

MissingRanks Waits::missingIn(const RankWait &wait) const {
  if (wait.rank < 0)
    return {};
  std::vector<int> silent, late, gone;
  for (int rank : table.ranksOf(wait.rank, wait.channel)) {
    const RankRow &row = table.row(rank);
    uint64_t counter = row.channels[wait.channel].counter;
    if (row.state == RankState::Left) {
      gone.push_back(rank);
    } else if (isOld(row)) {
      // Of others than the coordinator, whom it told of, nothing is known.
      if (row.state != RankState::NotBegun)
        silent.push_back(rank);
    } else if (counter != wait.progress.counter) {
      (hasLeft(counter, wait.progress.counter) ? gone : late).push_back(rank);
    }
  }
  if (!silent.empty())
    return {MissingRanks::Silent, silent};
  if (!late.empty())
    return {MissingRanks::Late, late};
  return {gone.empty() ? MissingRanks::None : MissingRanks::Gone, gone};
}

RankWait Waits::causeOf(const RankWait &wait) const {
  RankWait cause = wait;
  std::vector<bool> isSeen(size_t(table.ranks()));
  for (;;) {
    MissingRanks missing = missingIn(cause);
    if (missing.kind != MissingRanks::Late)
      return cause;
    RankWait next;
    for (int rank : missing.ranks)
      if (next = longest(rank); next.rank < 0)
        return cause;
    if (isSeen[size_t(next.rank)])
      return wait;
    isSeen[size_t(next.rank)] = true;
    cause = next;
  }
}
