//===- Health.cpp - Whether the ranks of a job live -----------------------===//
#include "Health.h"
#include "ProcessState.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/Signals.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;

namespace {

/// In front of a message's text.
struct Header {
  uint32_t kind, bytes;
};
struct Identity {
  int64_t pid;
  char host[64];
};

} // namespace

/// So long a rank's end or problem is not the last word: a job that is killed
/// as a whole ends before that, and of several problems the cause is found. In
/// two beats it shows who waits.
static constexpr double kGraceSeconds = 0.5;
static constexpr int64_t kGraceBeats = 2;

/// Of a rank that has not been heard in so many beats the last report is old.
static constexpr int64_t kSilentBeats = 2;

/// Reports of all channels are far shorter.
static constexpr size_t kMostReceived = 16 << 20;

/// Between two looks at the connections: those of thousands of ranks are looked
/// at together, and not for every beat.
static constexpr std::chrono::milliseconds kPause{5};

HealthLimits rt::healthLimits(double heartbeat, double timeout) {
  double least = heartbeat == 0 ? timeout : std::min(heartbeat, timeout);
  return {heartbeat, std::clamp(least / 8, 0.05, 1.0)};
}

template <typename T> static std::string bytesOf(const T &value) {
  return std::string(reinterpret_cast<const char *>(&value), sizeof value);
}

template <typename T> static T valueOf(const std::string &bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

Health::Health(int rank, int size, const std::vector<int> &sockets,
               HealthLimits limits)
    : rank(rank), limits(limits), wakeEvent(eventfd(0, EFD_CLOEXEC)) {
  for (int other = 0; other < (rank == 0 ? size : 1); ++other)
    if (other != rank) {
      peers.emplace_back();
      peers.back().rank = other;
      peers.back().socket = sockets[static_cast<size_t>(other)];
    }
  Identity mine{getpid(), {}};
  hostName().copy(mine.host, sizeof mine.host - 1);
  for (Peer &peer : peers)
    say(peer, Kind::Hello, bytesOf(mine));
  thread = std::thread([this] { loop(); });
}

Health::~Health() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    subject = nullptr;
    isLeaving = true;
    if (rank != 0)
      say(peers[0], Kind::Leaving, "");
  }
  wake();
  thread.join();
  for (Peer &peer : peers)
    if (peer.socket >= 0)
      ::close(peer.socket);
  ::close(wakeEvent);
}

void Health::wake() const {
  uint64_t one = 1;
  (void)!::write(wakeEvent, &one, sizeof one);
}

void Health::watch(HealthSubject *newSubject) {
  std::lock_guard<std::mutex> lock(mutex);
  subject = newSubject;
  ownReport.clear();
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void Health::flush(Peer &peer) {
  while (!peer.unsent.empty()) {
    ssize_t sent = ::send(peer.socket, peer.unsent.data(), peer.unsent.size(),
                          MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR)
      continue;
    // Whether the peer has gone is seen where it is listened to.
    if (sent <= 0)
      return;
    peer.unsent.erase(0, static_cast<size_t>(sent));
  }
}

void Health::say(Peer &peer, Kind kind, const std::string &text) {
  if (peer.state == State::Lost)
    return;
  flush(peer);
  // A rank that is stopped takes nothing: beats must not pile up.
  if (kind == Kind::Beat && !peer.unsent.empty())
    return;
  peer.unsent += bytesOf(Header{static_cast<uint32_t>(kind),
                                static_cast<uint32_t>(text.size())}) +
                 text;
  flush(peer);
}

/// Takes all that has come, and only then notices that there is no more.
void Health::receive(Peer &peer) {
  char buffer[4096];
  ssize_t count;
  while ((count = ::recv(peer.socket, buffer, sizeof buffer, MSG_DONTWAIT)) > 0)
    peer.received.append(buffer, static_cast<size_t>(count));
  bool hasGone = count == 0 || (errno != EAGAIN && errno != EINTR);
  // Nobody of this job sends so much at once.
  hasGone |= peer.received.size() > kMostReceived;
  while (peer.received.size() >= sizeof(Header)) {
    auto header = valueOf<Header>(peer.received);
    if (peer.received.size() - sizeof header < header.bytes)
      break;
    std::string text = peer.received.substr(sizeof header, header.bytes);
    peer.received.erase(0, sizeof header + header.bytes);
    take(peer, static_cast<Kind>(header.kind), text);
  }
  if (!hasGone)
    return;
  ::close(peer.socket);
  peer.socket = -1;
  // Nobody goes without a word, not even to a rank that is leaving itself.
  if (peer.state == State::Here)
    peer.state = State::Lost;
}

void Health::take(Peer &peer, Kind kind, const std::string &text) {
  peer.wasHeard = true;
  switch (kind) {
  case Kind::Hello: {
    auto identity = valueOf<Identity>(text);
    peer.pid = identity.pid;
    peer.host.assign(identity.host, strnlen(identity.host, 63));
    return;
  }
  case Kind::Beat:
    if (rank == 0)
      peer.report = text;
    else
      deputy = valueOf<int32_t>(text);
    return;
  case Kind::Problem:
    if (problem.empty())
      problem = text;
    return;
  case Kind::Ending:
    end("", valueOf<int32_t>(text));
  case Kind::Leaving:
    peer.state = State::Left;
    if (rank == 0)
      say(peer, Kind::Leaving, "");
    return;
  }
}

//===----------------------------------------------------------------------===//
// The thread
//===----------------------------------------------------------------------===//

/// Rank 0 goes when all have left, the others when rank 0 has heard of it.
bool Health::isDone() const {
  return isLeaving && std::all_of(peers.begin(), peers.end(), [](auto &peer) {
           return peer.state == State::Left;
         });
}

void Health::poll(Time until) {
  std::vector<pollfd> files = {{wakeEvent, POLLIN, 0}};
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (const Peer &peer : peers)
      files.push_back({peer.socket, POLLIN, 0}); // poll skips those below 0
  }
  if (::poll(files.data(), files.size(), millisecondsUntil(until)) <= 0)
    return;
  uint64_t ignored = 0;
  if (files[0].revents != 0)
    (void)!::read(wakeEvent, &ignored, sizeof ignored);
  std::lock_guard<std::mutex> lock(mutex);
  for (size_t i = 0; i < peers.size(); ++i)
    if (files[i + 1].revents != 0)
      receive(peers[i]);
}

/// Silence is counted in own beats, not in time: when the whole machine or job
/// was suspended, everybody goes on where they were.
void Health::loop() {
  auto period = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(limits.period));
  for (Time next = Clock::now();;) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (isDone())
        return;
      if (Clock::now() >= next) {
        beat();
        next = Clock::now() + period;
      }
      decide();
    }
    poll(next);
    std::this_thread::sleep_for(kPause);
  }
}

/// The first problem of this rank counts.
void Health::note(const std::string &text) {
  if (problem.empty())
    problem = "rank " + std::to_string(rank) + ": " + text;
}

void Health::beat() {
  if (subject) {
    ownReport = subject->report();
    if (std::string found = subject->problem(); !found.empty())
      note(found);
  }
  if (beatsToVerdict > 0)
    --beatsToVerdict;
  std::string text = rank == 0 ? bytesOf(chooseDeputy()) : ownReport;
  for (Peer &peer : peers) {
    if (peer.state != State::Here)
      continue;
    say(peer, Kind::Beat, text);
    // Rank 0 beats once all ranks have come, which has a limit of its own.
    bool isSilent = peer.hasBegun() && !peer.wasHeard;
    peer.silentBeats = isSilent ? peer.silentBeats + 1 : 0;
    peer.wasHeard = false;
  }
  listen();
}

/// Who speaks if rank 0 is lost: the first rank of another machine, which need
/// not be lost with it.
int Health::chooseDeputy() const {
  const Peer *first = nullptr;
  for (const Peer &peer : peers) {
    if (peer.state != State::Here || !peer.hasBegun())
      continue;
    if (!isThisHost(peer.host))
      return peer.rank;
    if (!first)
      first = &peer;
  }
  return first ? first->rank : -1;
}

/// Ends the job if somebody is silent, or if the reports say that it is stuck.
void Health::listen() {
  for (const Peer &peer : peers) {
    double silence = static_cast<double>(peer.silentBeats) * limits.period;
    if (limits.silence == 0 || peer.state != State::Here ||
        silence <= limits.silence)
      continue;
    end(format("no sign of life from rank %d (process %lld on %s) for %g s: %s "
               "(FSDP_HEARTBEAT sets the limit)",
               peer.rank, static_cast<long long>(peer.pid), peer.host.c_str(),
               limits.silence, whyIsSilent(peer.pid, peer.host)) +
            (subject && rank == 0 ? subject->whereRanksWait(reports()) : ""),
        kLostJobStatus);
  }
  if (rank != 0 || !subject)
    return;
  if (std::string stuck = subject->judge(reports()); !stuck.empty())
    end(stuck, kLostJobStatus);
}

/// Ranks that have ended come before what others say of it.
void Health::decide() {
  std::string lost = lostRanks();
  if (lost.empty() && problem.empty())
    return;
  if (beatsToVerdict < 0)
    beatsToVerdict = std::max(kGraceBeats, static_cast<int64_t>(std::ceil(
                                               kGraceSeconds / limits.period)));
  if (beatsToVerdict > 0)
    return;
  // Rank 0 speaks for all, as long as it is there.
  if (rank != 0 && lost.empty()) {
    say(peers[0], Kind::Problem, problem);
    problem.clear();
    beatsToVerdict = -1;
    return;
  }
  std::string where =
      subject && rank == 0 ? subject->whereRanksWait(reports()) : "";
  end((lost.empty() ? problem : lost) + where, kLostJobStatus);
}

/// What is lost, empty if nobody is.
std::string Health::lostRanks() const {
  const Peer *first = nullptr;
  std::string others;
  int64_t count = 0;
  for (const Peer &peer : peers) {
    if (peer.state != State::Lost)
      continue;
    if (++count == 1)
      first = &peer;
    else if (count <= 8)
      others += (others.empty() ? "" : ", ") + std::to_string(peer.rank);
  }
  if (!first)
    return {};
  std::string text =
      "rank " + std::to_string(first->rank) +
      (first->hasBegun()
           ? format(" (process %lld on %s) has ended without a word",
                    static_cast<long long>(first->pid), first->host.c_str())
           : " has ended while the ranks met");
  if (count > 1)
    text += (count == 2 ? "; so has rank " : "; so have ranks ") + others +
            (count > 8 ? " and " + std::to_string(count - 8) + " more" : "");
  return text;
}

RankReports Health::reports() const {
  RankReports all{std::vector<std::string>(peers.size() + 1), {}};
  all.texts[static_cast<size_t>(rank)] = ownReport;
  for (const Peer &peer : peers) {
    all.texts[static_cast<size_t>(peer.rank)] = peer.report;
    if (peer.state != State::Here || peer.silentBeats >= kSilentBeats)
      all.silent.push_back(peer.rank);
  }
  return all;
}

//===----------------------------------------------------------------------===//
// The end of the process
//===----------------------------------------------------------------------===//

[[noreturn]] static void hold() {
  for (;;)
    ::pause();
}

void Health::holdIfEnding() const {
  if (ending)
    hold();
}

void Health::claimEnd() {
  if (ending.exchange(true))
    hold();
}

void Health::tellEnd(int status) {
  std::lock_guard<std::mutex> lock(mutex);
  for (Peer &peer : peers)
    say(peer, Kind::Ending, bytesOf(static_cast<int32_t>(status)));
}

void Health::fail(const std::string &text) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    note(text);
  }
  wake();
  hold();
}

/// With the mutex, which whoever ends the process already may need.
void Health::end(const std::string &message, int status) {
  if (ending.exchange(true)) {
    mutex.unlock();
    hold();
  }
  for (Peer &peer : peers)
    say(peer, Kind::Ending, bytesOf(static_cast<int32_t>(status)));
  bool speaks = rank == 0 || deputy < 0 || deputy == rank;
  if (speaks && !message.empty())
    printMessage("fsdp", message);
  if (subject)
    subject->abandon();
  // Somebody who hangs while he prints does not hold this up.
  if (ftrylockfile(stdout) == 0) {
    std::fflush(stdout);
    funlockfile(stdout);
  }
  removeFilesOnSignal();
  _exit(status);
}
