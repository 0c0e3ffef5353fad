//===- Watchdog.cpp - Collectives that do not end -------------------------===//
#include "Watchdog.h"
#include "fsdp/Support/Text.h"
#include "runtime/collectives/Groups.h"
#include "runtime/liveness/FailureReport.h"
#include <algorithm>
#include <cstring>
#include <future>
#include <thread>

using namespace fsdp;
using namespace fsdp::rt;

LimitedStage::LimitedStage(Health *health, std::string what, double timeout)
    : health(health), what(std::move(what)), timeout(timeout) {
  if (health)
    health->watch(this);
}

LimitedStage::~LimitedStage() {
  if (health)
    health->watch(nullptr);
}

std::string LimitedStage::problem() {
  if (double(++beats) * health->period() <= timeout)
    return {};
  return format("%s has not ended within %g s (FSDP_TIMEOUT sets the limit)",
                what.c_str(), timeout);
}

Watchdog::Watchdog(CudaContext &c, Health &health,
                   std::vector<int64_t> meshAxes, double timeout)
    : c(c), health(health), meshAxes(std::move(meshAxes)), timeout(timeout),
      own(c.channels.size()) {
  health.watch(this);
}

Watchdog::~Watchdog() { health.watch(nullptr); }

std::unique_lock<std::timed_mutex> Watchdog::issuing() {
  std::unique_lock<std::timed_mutex> lock(issue);
  if (health.isEnding()) {
    lock.unlock();
    health.holdIfEnding();
  }
  return lock;
}

//===----------------------------------------------------------------------===//
// This rank
//===----------------------------------------------------------------------===//

/// A step that is launched again has the same words; so many launches tell it
/// from the one before.
std::string Watchdog::report() {
  if (!c.progress)
    return {};
  uint64_t now = c.progress->launches();
  bool isSameLaunch = now == launches;
  launches = now;
  for (size_t i = 0; i < own.size(); ++i) {
    uint64_t word = c.progress->word(i);
    bool isSame = isSameLaunch && word == own[i].word;
    bool isWaiting = isSame && word != 0 && progressOf(word).isInside;
    own[i] = {word, isWaiting ? own[i].beats + 1 : 0};
  }
  return std::string(reinterpret_cast<const char *>(own.data()),
                     own.size() * sizeof own[0]);
}

std::string Watchdog::problem() {
  for (size_t i = 0; i < c.channels.size(); ++i) {
    if (!c.channels[i])
      continue;
    ncclResult_t status = c.channels[i]->asynchronousError();
    if (status != ncclSuccess && status != ncclInProgress)
      return std::string("NCCL reports an error on stream ") +
             streamName(Stream(i / size_t(c.artifact->groups))) + ": " +
             statusText(status);
  }
  return {};
}

/// Neither waits for ever for a thread that is inside of NCCL nor for NCCL.
void Watchdog::abandon() {
  std::unique_lock<std::timed_mutex> lock(issue, std::chrono::seconds(1));
  if (!lock)
    return;
  // Each may wait for the kernels of the others, and for graphs that hold its
  // own: all are told before any is waited for.
  std::vector<std::future<void>> aborted;
  auto abort = [&](auto &&how) {
    std::packaged_task<void()> task(how);
    aborted.push_back(task.get_future());
    std::thread(std::move(task)).detach();
  };
  for (auto &channel : c.channels)
    if (channel)
      abort([&channel] { channel->abort(); });
  abort([this] { ncclCommAbort(c.worldCommunicator); });
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (std::future<void> &one : aborted)
    one.wait_until(end);
}

//===----------------------------------------------------------------------===//
// All ranks, on rank 0
//===----------------------------------------------------------------------===//

/// What a rank said of its channels. One that has made no context yet says
/// nothing.
static std::vector<ChannelReport> channelsOf(const std::string &report,
                                             size_t channels) {
  std::vector<ChannelReport> found(channels);
  if (report.size() == channels * sizeof found[0])
    std::memcpy(found.data(), report.data(), report.size());
  return found;
}

RankWaits Watchdog::waitsIn(const RankReports &reports) const {
  RankWaits::Reports channels;
  for (const std::string &report : reports.texts)
    channels.push_back(channelsOf(report, own.size()));
  return {
      std::move(channels), reports.silent, [this](int rank, size_t channel) {
        auto groups = size_t(c.artifact->groups);
        return groupRanks(c.artifact->group[channel % groups], meshAxes, rank);
      }};
}

/// all_gather "layers.0" (number 3 of 'train')
std::string Watchdog::nameOf(uint64_t word) const {
  ProgressPlace place = progressOf(word);
  const fsdp_artifact &a = *c.artifact;
  if (place.program >= c.collectives.size() ||
      place.number >= c.collectives[place.program].size())
    return "a collective of another program";
  const CollectiveDesc &desc =
      a.collective[c.collectives[place.program][place.number]];
  return rt::nameOf(desc, unsigned(place.number),
                    a.program[place.program].name);
}

std::string Watchdog::nameOf(const RankWait &wait) const {
  return nameOf(wait.report.word) + " on stream " +
         streamName(Stream(wait.channel / size_t(c.artifact->groups)));
}

/// By the last beats of the ranks, first of one that is missing.
std::string Watchdog::lastCollectives(const RankReports &reports,
                                      const std::vector<int> &missing) const {
  if (!c.progress) // nobody says where it is
    return {};
  std::vector<std::string> texts;
  for (const std::string &report : reports.texts) {
    std::vector<LastCollective> channels;
    for (auto [word, beats] : channelsOf(report, own.size()))
      if (word != 0)
        channels.push_back({nameOf(word), progressOf(word).isInside});
    texts.push_back(describeRank(channels));
  }
  return "; last collectives, at the last beats: " +
         foldRanks(texts, missing.empty() ? -1 : missing[0]);
}

std::string Watchdog::judge(const RankReports &reports) {
  RankWaits waits = waitsIn(reports);
  RankWait wait = waits.longest();
  if (double(wait.report.beats) * health.period() <= timeout)
    return {};
  RankWait cause = waits.causeOf(wait);
  MissingRanks missing = waits.missingIn(cause);
  return format("rank %d: %s has not ended within %g s (FSDP_TIMEOUT sets the "
                "limit); %s",
                wait.rank, nameOf(wait).c_str(), timeout,
                cause.rank == wait.rank
                    ? ""
                    : format("rank %d waits in %s; ", cause.rank,
                             nameOf(cause).c_str())
                          .c_str()) +
         missing.text() + lastCollectives(reports, missing.ranks);
}

std::string Watchdog::whereRanksWait(const RankReports &reports) {
  RankWaits waits = waitsIn(reports);
  if (RankWait wait = waits.longestForSilent(); wait.rank >= 0)
    return format("; rank %d waits for %s in %s", wait.rank,
                  namesOf(waits.missingIn(wait).ranks).c_str(),
                  nameOf(wait).c_str()) +
           lastCollectives(reports, reports.silent);
  RankWait wait = waits.causeOf(waits.longest());
  if (wait.rank < 0)
    return lastCollectives(reports, reports.silent);
  MissingRanks missing = waits.missingIn(wait);
  return format("; rank %d waits in %s; %s", wait.rank, nameOf(wait).c_str(),
                missing.text().c_str()) +
         lastCollectives(reports, missing.ranks);
}
