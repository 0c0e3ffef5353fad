//===- RankWatch.cpp - The processes of a running job ---------------------===//
#include "RankWatch.h"
#include "../process/ProcessState.h"
#include "fsdp/Runtime/Launch.h"
#include "fsdp/Support/Signals.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <csignal>
#include <vector>

using namespace fsdp;
using namespace fsdp::rt;

/// Names of ranks begin so; mpirun is none.
static const std::string kRank = "rank ";

static bool isRank(const std::string &name) {
  return name.compare(0, kRank.size(), kRank) == 0;
}

RankWatch::RankWatch(double limitSeconds)
    : limit(limitSeconds),
      seconds(limit == 0 ? 1 : std::clamp(limit / 8, 0.05, 1.0)) {}

void RankWatch::add(int64_t pid, const std::string &name) {
  started[pid].name = name;
}

/// So long ranks have to name one that is stopped, behind the limit.
static constexpr double kRanksSpeakSeconds = 10;

RankWatch::Seen RankWatch::lookAt(int64_t pid, const std::string &name,
                                  Process &process) const {
  ProcessState now = processState(pid);
  if (process.startTime == 0)
    process.startTime = now.startTime;
  bool isSame = process.startTime == now.startTime;
  process.stoppedLooks =
      isSame && isStopped(now) ? process.stoppedLooks + 1 : 0;
  bool isThere = isSame && now.state != 0 && now.state != 'Z';
  return {pid, name, double(process.stoppedLooks) * seconds, isThere};
}

/// A child of mpirun has its rank in its environment once it is the rank's
/// program.
static std::string rankOf(int64_t pid) {
  return variableOf(pid, "OMPI_COMM_WORLD_RANK");
}

std::string RankWatch::look() {
  std::vector<Seen> seen;
  for (auto &[process, what] : started) {
    seen.push_back(lookAt(process, what.name, what.process));
    for (int64_t pid : childrenOf(process)) {
      std::string rank = rankOf(pid);
      if (!rank.empty())
        seen.push_back(lookAt(pid, kRank + rank, ranks[pid]));
    }
  }
  bool anyRankRuns = std::any_of(seen.begin(), seen.end(), [](const Seen &one) {
    return isRank(one.name) && one.isThere && one.stoppedFor == 0;
  });
  for (const Seen &one : seen) {
    bool isSaid = anyRankRuns && isRank(one.name);
    if (limit != 0 &&
        one.stoppedFor > limit + (isSaid ? kRanksSpeakSeconds : 0))
      return format("%s (process %lld on %s) has been stopped for %g s "
                    "(FSDP_HEARTBEAT sets the limit); the whole job was ended",
                    one.name.c_str(), static_cast<long long>(one.pid),
                    hostName().c_str(), limit);
  }
  return {};
}

void RankWatch::tellRanks(int signal, std::set<int64_t> &told) {
  auto tell = [&](int64_t pid) {
    if (told.insert(pid).second)
      kill(static_cast<pid_t>(pid), signal);
  };
  for (const auto &[process, what] : started) {
    std::vector<int64_t> children = childrenOf(process);
    if (isRank(what.name))
      tell(process);
    for (int64_t pid : children)
      if (!isRank(what.name) && !rankOf(pid).empty())
        tell(pid);
  }
}

int RankWatch::pendingSignal() const {
  for (const auto &[process, what] : started) {
    uint64_t pending = pendingSignals(process);
    for (int signal : kSavingSignals)
      if (pending >> (signal - 1) & 1)
        return signal;
  }
  return 0;
}

void RankWatch::killRanks() const {
  for (const auto &[pid, process] : ranks)
    // One that was gone when it was looked at has no start time.
    if (process.startTime != 0 &&
        processState(pid).startTime == process.startTime)
      kill(static_cast<pid_t>(pid), SIGKILL);
}
