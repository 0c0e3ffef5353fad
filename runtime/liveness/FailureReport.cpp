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

std::string rt::nameOf(uint64_t counter, const fsdp_artifact &artifact) {
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
    return "no answer";
  auto isInside = [](const ChannelProgress &channel) {
    return (channel.counter & ProgressCounter::kInside) != 0;
  };
  bool isInAny =
      std::any_of(row.channels.begin(), row.channels.end(), isInside);
  std::string text;
  for (const ChannelProgress &channel : row.channels)
    if (channel.counter != 0 && isInside(channel) == isInAny)
      text += (text.empty() ? "" : ", ") + nameOf(channel.counter, artifact);
  if (text.empty())
    return "none so far";
  return (isInAny ? "in " : "ended ") + text;
}

std::string rt::describeMissing(const MissingRanks &missing) {
  bool isOne = missing.ranks.size() == 1;
  switch (missing.kind) {
  case MissingRanks::None:
    return "all its ranks have arrived";
  case MissingRanks::Silent:
    return namesOf(missing.ranks) + (isOne ? " is silent" : " are silent");
  case MissingRanks::Late:
    return namesOf(missing.ranks) + (isOne ? " has" : " have") + " not arrived";
  case MissingRanks::Gone:
    return namesOf(missing.ranks) + (isOne ? " has" : " have") + " left it";
  }
  return {};
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

static std::string describeSilence(const FailureVerdict &verdict,
                                   const ReportSource &source) {
  const RankRow &row = source.table.row(verdict.ranks[0]);
  return format("no sign of life from rank %d (%s) for %g s: %s "
                "(FSDP_HEARTBEAT sets the limit)",
                verdict.ranks[0], processOf(row).c_str(), source.limits.silence,
                whyIsSilent(row.pid, row.host));
}

static std::string describeLoss(const FailureVerdict &verdict,
                                const ReportSource &source) {
  const std::vector<int> &lost = verdict.ranks;
  const RankRow &row = source.table.row(lost[0]);
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
static std::string nameOf(const RankWait &wait, const ReportSource &source) {
  size_t groups = size_t(source.artifact->groups);
  return rt::nameOf(wait.progress.counter, *source.artifact) + " on stream " +
         streamName(Stream(wait.channel / groups));
}

static std::string describeStuck(const FailureVerdict &verdict,
                                 const ReportSource &source) {
  return format("rank %d: %s has not ended within %g s (FSDP_TIMEOUT sets the "
                "limit)",
                verdict.wait.rank, nameOf(verdict.wait, source).c_str(),
                source.limits.collective);
}

static std::string describeStage(const FailureVerdict &verdict,
                                 const ReportSource &source) {
  const LimitedStage &stage = source.table.row(verdict.ranks[0]).stage;
  return format("%s has not ended within %g s (FSDP_TIMEOUT sets the limit)",
                stage.what.c_str(), stage.limit);
}

std::string rt::describeProblem(const FailureVerdict &verdict,
                                const ReportSource &source) {
  switch (verdict.kind) {
  case FailureVerdict::None:
    break;
  case FailureVerdict::Silent:
    return describeSilence(verdict, source);
  case FailureVerdict::Stuck:
    return describeStuck(verdict, source);
  case FailureVerdict::Lost:
    return describeLoss(verdict, source);
  case FailureVerdict::Problem:
    return source.table.row(verdict.ranks[0]).problem;
  case FailureVerdict::StageStuck:
    return describeStage(verdict, source);
  }
  return {};
}

/// Where ranks wait, and for whom.
static std::string describeWaits(const FailureVerdict &verdict,
                                 const ReportSource &source) {
  const RankWait &wait = verdict.cause;
  if (wait.rank < 0)
    return {};
  if (verdict.kind == FailureVerdict::Stuck && wait.rank == verdict.wait.rank)
    return "; " + describeMissing(verdict.missing);
  std::string name = nameOf(wait, source);
  if (verdict.missing.kind == MissingRanks::Silent &&
      verdict.kind != FailureVerdict::Stuck)
    return format("; rank %d waits for %s in %s", wait.rank,
                  namesOf(verdict.missing.ranks).c_str(), name.c_str());
  return format("; rank %d waits in %s; %s", wait.rank, name.c_str(),
                describeMissing(verdict.missing).c_str());
}

/// Beginning with one that others wait for.
static std::string describeAll(const FailureVerdict &verdict,
                               const ReportSource &source) {
  std::vector<std::string> texts;
  for (const RankRow &row : source.table.rows)
    texts.push_back(describeRank(row, *source.artifact));
  int first = -1;
  if (!verdict.missing.ranks.empty())
    first = verdict.missing.ranks[0];
  else if (verdict.kind == FailureVerdict::Silent ||
           verdict.kind == FailureVerdict::Lost)
    first = verdict.ranks[0];
  return std::string("; last collectives") +
         (source.isLive ? "" : ", at the last heartbeats") + ": " +
         foldRanks(texts, first);
}

std::string rt::describeFailure(const FailureVerdict &verdict,
                                const ReportSource &source) {
  std::string text = describeProblem(verdict, source);
  if (!source.artifact || source.table.channels() == 0)
    return text;
  return text + describeWaits(verdict, source) + describeAll(verdict, source);
}
