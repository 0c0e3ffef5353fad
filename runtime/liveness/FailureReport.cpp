//===- FailureReport.cpp - The one message that ends a job ----------------===//
#include "FailureReport.h"
#include "ProcessState.h"
#include "fsdp/Support/Text.h"
#include "runtime/core/Timeline.h"
#include <algorithm>
#include <map>

using namespace fsdp;
using namespace fsdp::rt;

/// Texts, ranges and ranks in one message.
static constexpr size_t kMost = 8;

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

std::string rt::nameOfCollective(uint64_t counter,
                                 const fsdp_artifact &artifact) {
  ProgressCounter place = ProgressCounter::decode(counter);
  if (place.program >= artifact.programs ||
      place.index >= uint32_t(artifact.collectives))
    return "a collective of another program";
  const CollectiveDesc &desc = artifact.collective[place.index];
  return format("%s \"%s\" (number %u of '%s')",
                kCollectiveNames[static_cast<int>(desc.kind)], desc.serves,
                place.number, artifact.program[place.program].name);
}

std::string rt::describeRank(const RankRow &row,
                             const fsdp_artifact &artifact) {
  if (row.heard == kNever)
    return "not known";
  auto isInside = [](const ChannelProgress &channel) {
    return (channel.counter & ProgressCounter::kInside) != 0;
  };
  bool isInAny =
      std::any_of(row.channels.begin(), row.channels.end(), isInside);
  std::string text;
  for (const ChannelProgress &channel : row.channels)
    if (channel.counter != 0 && isInside(channel) == isInAny)
      text += (text.empty() ? "" : ", ") +
              nameOfCollective(channel.counter, artifact);
  if (text.empty())
    return "none so far";
  return (isInAny ? "in " : "ended ") + text;
}

std::string rt::describeMissing(const MissingRanks &missing) {
  if (missing.kind == MissingRanks::None)
    return "all its ranks have arrived";
  bool isOne = missing.ranks.size() == 1;
  std::string names = namesOf(missing.ranks);
  if (missing.kind == MissingRanks::Silent)
    return names + (isOne ? " is silent" : " are silent");
  return names + (isOne ? " has" : " have") +
         (missing.kind == MissingRanks::Late ? " not arrived" : " left it");
}

std::string rt::namesOf(const std::vector<int> &ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  size_t ranges = 0;
  for (size_t i = 0; i < ranks.size(); ++ranges) {
    if (ranges == kMost)
      return text + " and " + std::to_string(ranks.size() - i) + " more";
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1)
      ++last;
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    if (last > i)
      text += (last == i + 1 ? ", " : "-") + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

std::string rt::foldRanks(const std::vector<std::string> &texts, int first) {
  // By text, in the order in which they first come.
  std::vector<std::vector<int>> groups;
  std::map<std::string, size_t> groupOf;
  auto textOf = [&](int rank) -> const std::string & {
    return texts[static_cast<size_t>(rank)];
  };
  auto add = [&](int rank) {
    auto [at, isNew] = groupOf.try_emplace(textOf(rank), groups.size());
    if (isNew)
      groups.emplace_back();
    groups[at->second].push_back(rank);
  };
  if (first >= 0)
    add(first);
  for (int rank = 0; rank < static_cast<int>(texts.size()); ++rank)
    if (rank != first)
      add(rank);
  // Of more than there is room for, those are told that few ranks have: who is
  // late is among them.
  if (groups.size() > kMost)
    std::stable_sort(groups.begin() + (first >= 0 ? 1 : 0), groups.end(),
                     [](const auto &one, const auto &other) {
                       return one.size() < other.size();
                     });
  std::string folded;
  size_t others = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    std::sort(groups[g].begin(), groups[g].end());
    if (g < kMost)
      folded += (g == 0 ? "" : "; ") + namesOf(groups[g]) + ": " +
                textOf(groups[g][0]);
    else
      others += groups[g].size();
  }
  if (others > 0)
    folded += "; " + std::to_string(others) + " more ranks elsewhere";
  return folded;
}

//===----------------------------------------------------------------------===//
// The message
//===----------------------------------------------------------------------===//

/// "process 4711 on n08"
static std::string processOf(const RankRow &row) {
  return format("process %lld on %s", static_cast<long long>(row.pid),
                row.host.c_str());
}

static std::string describeLoss(const std::vector<int> &lost,
                                const RankRow &row) {
  std::string text =
      "rank " + std::to_string(lost[0]) +
      (row.pid == 0 ? " has ended while the ranks met"
                    : " (" + processOf(row) + ") has ended without a word");
  for (size_t i = 1; i < lost.size() && i < kMost; ++i)
    text += (i > 1              ? ", "
             : lost.size() == 2 ? "; so has rank "
                                : "; so have ranks ") +
            std::to_string(lost[i]);
  if (lost.size() > kMost)
    text += " and " + std::to_string(lost.size() - kMost) + " more";
  return text;
}

/// With the stream.
static std::string nameOfWait(const RankWait &wait,
                              const fsdp_artifact &artifact) {
  return rt::nameOfCollective(wait.progress.counter, artifact) + " on stream " +
         streamName(Stream(wait.channel / size_t(artifact.groups)));
}

std::string rt::describeProblem(const Failure &failure,
                                const ReportSource &source) {
  auto late = [](const std::string &what, double limit) {
    return what + format(" has not ended within %g s (FSDP_TIMEOUT sets the "
                         "limit)",
                         limit);
  };
  if (failure.kind == Failure::None)
    return {};
  int rank = failure.ranks[0];
  const RankRow &row = source.table.row(rank);
  switch (failure.kind) {
  case Failure::None:
    break;
  case Failure::Silent:
    return format("no sign of life from rank %d (%s) for %g s: %s "
                  "(FSDP_HEARTBEAT sets the limit)",
                  rank, processOf(row).c_str(), source.limits.silence,
                  whyIsSilent(row.pid, row.host));
  case Failure::NotBegun:
    return format("rank %d has connected and sent no heartbeat within %g s "
                  "(FSDP_JOIN_TIMEOUT sets the limit)",
                  rank, source.limits.begin);
  case Failure::Stuck:
    return late("rank " + std::to_string(rank) + ": " +
                    nameOfWait(failure.wait, *source.artifact),
                source.limits.collective);
  case Failure::Lost:
    return describeLoss(failure.ranks, row);
  case Failure::Problem:
    return row.problem;
  case Failure::StageStuck:
    return late(row.stage.what, row.stage.limit);
  }
  return {};
}

/// Where ranks wait, and for whom.
static std::string describeWaits(const Failure &failure,
                                 const fsdp_artifact &artifact) {
  const RankWait &wait = failure.cause;
  const MissingRanks &missing = failure.missing;
  bool isStuck = failure.kind == Failure::Stuck;
  if (wait.rank < 0)
    return {};
  if (isStuck && wait.rank == failure.wait.rank)
    return "; " + describeMissing(missing);
  std::string rank = "; rank " + std::to_string(wait.rank),
              name = nameOfWait(wait, artifact);
  return missing.kind == MissingRanks::Silent && !isStuck
             ? rank + " waits for " + namesOf(missing.ranks) + " in " + name
             : rank + " waits in " + name + "; " + describeMissing(missing);
}

std::string rt::describeFailure(const Failure &failure,
                                const ReportSource &source) {
  std::string text = describeProblem(failure, source);
  if (!source.artifact || source.table.channels() == 0)
    return text;
  std::vector<std::string> all;
  for (const RankRow &row : source.table.rows)
    all.push_back(describeRank(row, *source.artifact));
  // First one that others wait for.
  int first = -1;
  if (!failure.missing.ranks.empty())
    first = failure.missing.ranks[0];
  else if (failure.kind == Failure::Silent || failure.kind == Failure::Lost)
    first = failure.ranks[0];
  return text + describeWaits(failure, *source.artifact) +
         "; last collectives" +
         (source.isLive ? "" : ", at the last heartbeats") + ": " +
         foldRanks(all, first);
}
