//===- ProgressTable.h - What is known of the ranks of a job ----*- C++ -*-===//
//
// Every rank has a table with a row per rank. Its own row comes from its
// channels, the others from heartbeats (HeartbeatTransport.h). FailureDetector
// decides by it, FailureReport prints it.
//
// Times are on the table's clock, in seconds: it advances by one period per own
// heartbeat, so a job that was suspended as a whole goes on where it was.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_LIVENESS_PROGRESSTABLE_H
#define FSDP_RUNTIME_LIVENESS_PROGRESSTABLE_H

#include "ProgressCounter.h"
#include <functional>
#include <vector>

namespace fsdp::rt {

/// No time on the table's clock.
inline constexpr double kNever = -1;

/// A channel of a rank.
struct ChannelProgress {
  uint64_t counter = 0;
  /// When the counter was first seen.
  double since = 0;
};

enum class RankState : uint8_t {
  NotBegun, // it has connected, and nothing has come from it
  Here,
  Left, // it has said that it leaves
  Lost  // its connection has closed without that
};

/// Something that all ranks do together before there are channels.
struct LimitedStage {
  std::string what; // empty: there is none
  double limit = 0; // seconds
  double since = 0;
};

struct RankRow {
  RankState state = RankState::NotBegun;
  int64_t pid = 0;
  std::string host;
  /// When the last heartbeat came.
  double heard = kNever;
  /// When the state became Lost.
  double lost = 0;
  /// What is wrong with the rank as it says itself, and since when that is
  /// known; empty: nothing.
  std::string problem;
  double problemSince = 0;
  /// Of the own row: when the coordinator was told of it.
  double told = kNever;
  LimitedStage stage; // of the own row
  /// Programs and steps launched so far. A step that is launched again has the
  /// same counters.
  uint64_t launches = 0;
  std::vector<ChannelProgress> channels;
};

/// The ranks of a channel of a rank, itself among them.
using RanksOfChannel =
    std::function<std::vector<int>(int rank, size_t channel)>;

struct ProgressTable {
  explicit ProgressTable(int ranks) : rows(size_t(ranks)) {}

  std::vector<RankRow> rows; // by rank
  /// The rank that speaks if the coordinator is lost; -1: none is named.
  int32_t backup = -1;
  RanksOfChannel ranksOf;

  RankRow &row(int rank) { return rows[size_t(rank)]; }
  const RankRow &row(int rank) const { return rows[size_t(rank)]; }
  int ranks() const { return int(rows.size()); }
  /// Of each rank; 0: nobody counts.
  size_t channels() const { return rows[0].channels.size(); }

  /// Forgets all progress.
  void setChannels(size_t count, RanksOfChannel ranksOfChannel);
  /// The counters of a rank, as seen at `now`. Not those of a rank with another
  /// number of channels: it has no context yet. Allocates nothing.
  void take(int rank, uint64_t launches, const uint64_t *counters, size_t count,
            double now);
  /// The first problem of a rank counts.
  void stateProblem(int rank, const std::string &problem, double now);
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LIVENESS_PROGRESSTABLE_H
