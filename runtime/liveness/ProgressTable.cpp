//===- ProgressTable.cpp - What is known of the ranks of a job ------------===//
#include "ProgressTable.h"
#include <utility>

using namespace fsdp::rt;

void ProgressTable::setChannels(size_t count, RanksOfChannel ranksOfChannel) {
  for (RankRow &row : rows)
    row.channels.assign(count, {});
  ranksOf = std::move(ranksOfChannel);
}

void ProgressTable::take(int rank, uint64_t launches, const uint64_t *counters,
                         size_t count, double now) {
  RankRow &its = row(rank);
  if (count != its.channels.size())
    return;
  bool isNewLaunch = launches != its.launches;
  its.launches = launches;
  for (size_t i = 0; i < count; ++i)
    if (isNewLaunch || counters[i] != its.channels[i].counter)
      its.channels[i] = {counters[i], now};
}

void ProgressTable::stateProblem(int rank, const std::string &problem,
                                 double now) {
  RankRow &its = row(rank);
  if (!its.problem.empty())
    return;
  its.problem = problem;
  its.problemSince = now;
}
