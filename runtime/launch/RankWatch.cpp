//===- RankWatch.cpp - The processes of a running job ---------------------===//
#include "RankWatch.h"
#include "fsdp/Rendezvous/Environment.h"
#include "fsdp/Support/Text.h"
#include "runtime/liveness/ProcessState.h"
#include <algorithm>
#include <csignal>
#include <vector>

using namespace fsdp;
using namespace fsdp::rt;

RankWatch::RankWatch(double limitSeconds)
    : limit(limitSeconds),
      seconds(limit == 0 ? 1 : std::clamp(limit / 8, 0.05, 1.0)) {}

void RankWatch::add(int64_t pid, const std::string &name) {
  ranks[pid].name = name;
}

/// So long ranks have to name one that is stopped, after the limit.
static constexpr double kRanksSpeakSeconds = 10;

RankWatch::Seen RankWatch::lookAt(int64_t pid, Process &process) const {
  ProcessState now = processState(pid);
  if (process.startTime == 0)
    process.startTime = now.startTime;
  bool isSame = process.startTime == now.startTime;
  process.stoppedLooks =
      isSame && isStopped(now) ? process.stoppedLooks + 1 : 0;
  bool isThere = isSame && now.state != 0 && now.state != 'Z';
  return {pid, process.name, double(process.stoppedLooks) * seconds, isThere};
}

std::string RankWatch::look() {
  std::vector<Seen> seen;
  for (auto &[pid, process] : ranks)
    seen.push_back(lookAt(pid, process));
  bool anyRuns = std::any_of(seen.begin(), seen.end(), [](const Seen &one) {
    return one.isThere && one.stoppedFor == 0;
  });
  for (const Seen &one : seen) {
    if (limit != 0 &&
        one.stoppedFor > limit + (anyRuns ? kRanksSpeakSeconds : 0))
      return format("%s (process %lld on %s) has been stopped for %g s "
                    "(FSDP_HEARTBEAT sets the limit); the whole job was ended",
                    one.name.c_str(), static_cast<long long>(one.pid),
                    hostName().c_str(), limit);
  }
  return {};
}

void RankWatch::tellRanks(int signal, std::set<int64_t> &told) const {
  for (const auto &[pid, process] : ranks)
    if (told.insert(pid).second)
      kill(static_cast<pid_t>(pid), signal);
}
