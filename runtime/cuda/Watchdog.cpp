//===- Watchdog.cpp - Collectives that do not end -------------------------===//
#include "Watchdog.h"
#include "../collectives/Pieces.h"
#include "../collectives/RankProgress.h"
#include "fsdp/Support/Text.h"
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

Watchdog::Watchdog(Context &c, Health &health, std::vector<int64_t> meshAxes,
                   double timeout)
    : c(c), health(health), meshAxes(std::move(meshAxes)), timeout(timeout),
      states(c.channels.size()) {
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
  for (size_t i = 0; i < states.size(); ++i) {
    uint64_t word = c.progress->word(i);
    bool isSame = isSameLaunch && word == states[i].word;
    bool isWaiting = isSame && word != 0 && progressOf(word).isInside;
    states[i] = {word, isWaiting ? states[i].beats + 1 : 0};
  }
  return std::string(reinterpret_cast<const char *>(states.data()),
                     states.size() * sizeof states[0]);
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

Watchdog::State Watchdog::stateOf(const std::string &report, size_t channel) {
  State state;
  size_t at = channel * sizeof state;
  // A rank that has made no context yet reports nothing.
  if (at + sizeof state <= report.size())
    std::memcpy(&state, report.data() + at, sizeof state);
  return state;
}

Watchdog::Wait
Watchdog::longestWait(const std::vector<std::string> &reports) const {
  Wait longest;
  for (size_t r = 0; r < reports.size(); ++r)
    for (size_t i = 0; i < states.size(); ++i) {
      State state = stateOf(reports[r], i);
      if (state.beats > longest.state.beats)
        longest = {int(r), i, state};
    }
  return longest;
}

/// all_gather "layers.0" (number 3 of 'train')
std::string Watchdog::nameOf(const State &state) const {
  ProgressPlace place = progressOf(state.word);
  const fsdp_artifact &a = *c.artifact;
  if (place.program >= c.collectives.size() ||
      place.number >= c.collectives[place.program].size())
    return "a collective of another program";
  const CollectiveDesc &desc =
      a.collective[c.collectives[place.program][place.number]];
  return rt::nameOf(desc, unsigned(place.number),
                    a.program[place.program].name);
}

std::string Watchdog::nameOf(const Wait &wait) const {
  return nameOf(wait.state) + " on stream " +
         streamName(Stream(wait.channel / size_t(c.artifact->groups)));
}

/// Ranks of a channel are in the same collective or one apart, so that those
/// elsewhere have not come yet, but for one that has ended it alone. Which of
/// two words is the later one is not to be seen: a graph repeats them.
Watchdog::Missing
Watchdog::missingIn(const Wait &wait,
                    const std::vector<std::string> &reports) const {
  const GroupDesc &group =
      c.artifact->group[wait.channel % size_t(c.artifact->groups)];
  std::vector<int> late, gone;
  for (int rank : groupRanks(group, meshAxes, wait.rank)) {
    uint64_t word = stateOf(reports[size_t(rank)], wait.channel).word;
    if (word == wait.state.word)
      continue;
    ProgressPlace left = progressOf(wait.state.word);
    left.isInside = false;
    (word == wordOf(left) ? gone : late).push_back(rank);
  }
  const std::vector<int> &named = late.empty() ? gone : late;
  if (named.empty())
    return {"all its ranks have arrived"};
  return {namesOf(named) + (named.size() == 1 ? " has " : " have ") +
              (late.empty() ? "left it" : "not arrived"),
          named[0]};
}

/// By the last beats of the ranks.
std::string Watchdog::lastCollectives(const std::vector<std::string> &reports,
                                      int first) const {
  if (!c.progress) // nobody says where it is
    return {};
  std::vector<std::string> texts;
  for (const std::string &report : reports) {
    std::vector<LastCollective> channels;
    for (size_t i = 0; i < states.size(); ++i)
      if (State state = stateOf(report, i); state.word != 0)
        channels.push_back({nameOf(state), progressOf(state.word).isInside});
    texts.push_back(describeRank(channels));
  }
  return "; last collectives, at the last beats: " + foldRanks(texts, first);
}

std::string Watchdog::judge(const std::vector<std::string> &reports) {
  Wait wait = longestWait(reports);
  if (double(wait.state.beats) * health.period() <= timeout)
    return {};
  Missing missing = missingIn(wait, reports);
  return format("rank %d: %s has not ended within %g s (FSDP_TIMEOUT sets the "
                "limit); %s",
                wait.rank, nameOf(wait).c_str(), timeout,
                missing.text.c_str()) +
         lastCollectives(reports, missing.rank);
}

std::string Watchdog::whereRanksWait(const std::vector<std::string> &reports) {
  Wait wait = longestWait(reports);
  if (wait.rank < 0)
    return lastCollectives(reports, /*first=*/-1);
  Missing missing = missingIn(wait, reports);
  return format("; rank %d waits in %s; %s", wait.rank, nameOf(wait).c_str(),
                missing.text.c_str()) +
         lastCollectives(reports, missing.rank);
}
