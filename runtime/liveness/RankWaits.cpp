//===- RankWaits.cpp - Which ranks wait for which -------------------------===//
#include "RankWaits.h"
#include "FailureReport.h"
#include <algorithm>

using namespace fsdp::rt;

/// In so many beats of a wait all ranks that live have reported since it began.
static constexpr uint64_t kSureBeats = 2;

RankWaits::RankWaits(Reports reports, const std::vector<int> &silent,
                     RanksOf ranksOf)
    : reports(std::move(reports)), isSilent(this->reports.size()),
      ranksOf(std::move(ranksOf)) {
  for (int rank : silent)
    isSilent[size_t(rank)] = true;
}

/// Of the waits that count; what a silent rank waited in is long ago.
template <typename Counts>
RankWait RankWaits::longestOf(const Counts &counts) const {
  RankWait longest;
  for (size_t r = 0; r < reports.size(); ++r)
    for (size_t i = 0; i < reports[r].size() && !isSilent[r]; ++i) {
      RankWait wait{int(r), i, reports[r][i]};
      if (wait.report.beats > longest.report.beats && counts(wait))
        longest = wait;
    }
  return longest;
}

RankWait RankWaits::longest() const {
  return longestOf(
      [](const RankWait &wait) { return wait.report.beats >= kSureBeats; });
}

RankWait RankWaits::longestForSilent() const {
  return longestOf([this](const RankWait &wait) {
    return missingIn(wait).kind == MissingRanks::Silent;
  });
}

RankWait RankWaits::longestOfRank(int rank) const {
  return longestOf([rank](const RankWait &wait) {
    return wait.rank == rank && wait.report.beats >= kSureBeats;
  });
}

/// Whether a rank whose channel has come to `word` has been in the collective
/// of `wait`. Ranks of a channel are in the same collective or one apart. A
/// graph repeats its words, so that of two runs of a program the one that is
/// further on is the earlier one; where they are as far, and of programs whose
/// runs are not next to each other, it is not to be seen.
static bool hasLeft(uint64_t word, uint64_t wait) {
  ProgressPlace other = progressOf(word), mine = progressOf(wait);
  if (word == 0)
    return false;
  if (other.program != mine.program)
    return other.run == uint16_t(mine.run + 1);
  if (other.run != mine.run)
    return other.number < mine.number;
  return other.number > mine.number ||
         (other.number == mine.number && !other.isInside);
}

MissingRanks RankWaits::missingIn(const RankWait &wait) const {
  std::vector<int> silent, late, gone;
  for (int rank : ranksOf(wait.rank, wait.channel)) {
    uint64_t word = reports[size_t(rank)][wait.channel].word;
    if (isSilent[size_t(rank)])
      silent.push_back(rank);
    else if (word != wait.report.word)
      (hasLeft(word, wait.report.word) ? gone : late).push_back(rank);
  }
  if (!silent.empty())
    return {MissingRanks::Silent, silent};
  if (!late.empty())
    return {MissingRanks::Late, late};
  return {gone.empty() ? MissingRanks::None : MissingRanks::Gone, gone};
}

RankWait RankWaits::causeOf(const RankWait &wait) const {
  RankWait cause = wait;
  std::vector<bool> isSeen(reports.size());
  for (;;) {
    MissingRanks missing = missingIn(cause);
    if (missing.kind != MissingRanks::Late)
      return cause;
    RankWait next;
    for (int rank : missing.ranks) {
      next = longestOfRank(rank);
      if (next.rank < 0)
        return cause;
    }
    if (isSeen[size_t(next.rank)])
      return wait;
    isSeen[size_t(next.rank)] = true;
    cause = next;
  }
}

std::string MissingRanks::text() const {
  bool isOne = ranks.size() == 1;
  switch (kind) {
  case None:
    return "all its ranks have arrived";
  case Silent:
    return namesOf(ranks) + (isOne ? " is silent" : " are silent");
  case Late:
    return namesOf(ranks) + (isOne ? " has" : " have") + " not arrived";
  case Gone:
    return namesOf(ranks) + (isOne ? " has" : " have") + " left it";
  }
  return {};
}
