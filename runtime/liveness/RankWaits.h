//===- RankWaits.h - Which ranks wait for which -----------------*- C++ -*-===//
//
// From what all ranks report of their channels: who waits, and for whom. A rank
// that keeps others waiting may itself wait for another, in a collective of
// another group.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_LIVENESS_RANKWAITS_H
#define FSDP_RUNTIME_LIVENESS_RANKWAITS_H

#include "ProgressWord.h"
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// What a rank reports of a channel.
struct ChannelReport {
  uint64_t word = 0;
  /// Beats in which it has been in the same collective.
  uint64_t beats = 0;
};

/// A collective that a rank waits in.
struct RankWait {
  int rank = -1; // nobody waits
  size_t channel = 0;
  ChannelReport report;
};

/// The ranks that keep others waiting in a collective.
struct MissingRanks {
  enum Kind {
    None,   // all have arrived
    Silent, // their reports are older than the wait
    Late,   // they have not come to it
    Gone    // they have ended it alone
  } kind = None;
  std::vector<int> ranks;
  /// "rank 2 has not arrived"
  std::string text() const;
};

class RankWaits {
public:
  /// By rank and channel, of which all have the same number.
  using Reports = std::vector<std::vector<ChannelReport>>;
  /// The ranks of a channel of a rank.
  using RanksOf = std::function<std::vector<int>(int rank, size_t channel)>;

  /// `silent` are ranks that are dead or have not reported lately.
  RankWaits(Reports reports, const std::vector<int> &silent, RanksOf ranksOf);

  RankWait longest() const;
  /// The longest one that a silent rank belongs to.
  RankWait longestForSilent() const;
  /// What keeps the ranks that are late for `wait`, if they wait too, and so
  /// on: the wait whose missing ranks wait for nobody. `wait` itself where
  /// ranks wait for each other.
  RankWait causeOf(const RankWait &wait) const;
  MissingRanks missingIn(const RankWait &wait) const;

private:
  template <typename Counts> RankWait longestOf(const Counts &counts) const;
  RankWait longestOfRank(int rank) const;

  const Reports reports;
  std::vector<bool> isSilent; // by rank
  const RanksOf ranksOf;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LIVENESS_RANKWAITS_H
