//===- TcpHeartbeats.cpp - Heartbeats through sockets ---------------------===//
//
// A star: every rank has a connection to rank 0, the coordinator. Heartbeats of
// the others carry their own row. Those of rank 0 carry the rank that it names
// as its backup, its own row, and to the backup all rows.
//
//===----------------------------------------------------------------------===//
#include "HeartbeatTransport.h"
#include "ProcessState.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace fsdp::rt;

namespace {

enum class Kind : uint32_t { Hello, Heartbeat, Problem, Ending, Leaving };
/// Before the bytes of a message.
struct Header {
  Kind kind;
  uint32_t bytes;
};
struct Identity {
  int64_t pid;
  char host[kHostCharacters + 1];
};
/// Before the counters of a row. A heartbeat is the backup (int32_t) and rows.
struct RowHeader {
  int32_t rank;
  uint32_t channels;
  uint64_t launches;
};

/// Of the texts of problems.
constexpr size_t kMostText = 16 << 20;

/// Between two looks at the connections: those of thousands of ranks are looked
/// at together, and not for every heartbeat.
constexpr std::chrono::milliseconds kPause{5};

/// The other end of a connection.
struct Peer {
  int rank, socket;
  std::string received, unsent; // parts of messages
};

/// The value that the text begins with, which is then behind it. False if the
/// text is too short.
template <typename T> bool takeValue(std::string_view &text, T &value) {
  if (text.size() < sizeof value)
    return false;
  std::memcpy(&value, text.data(), sizeof value);
  text.remove_prefix(sizeof value);
  return true;
}
template <typename T> std::string_view bytesOf(const T &value) {
  return {reinterpret_cast<const char *>(&value), sizeof value};
}

class TcpHeartbeats final : public HeartbeatTransport {
public:
  TcpHeartbeats(int rank, int size, const std::vector<int> &sockets,
                size_t channels);
  ~TcpHeartbeats() override {
    for (Peer &peer : peers)
      close(peer);
  }

  void send(const ProgressTable &table) override;
  std::optional<int> receive(ProgressTable &table, double now) override {
    for (size_t i = 0; i < peers.size(); ++i)
      if (std::exchange(files[i + 1].revents, 0) != 0)
        takeMessages(peers[i], table, now);
    return end;
  }
  void wait(int wake, Time until) override;
  void tellProblem(const std::string &problem) override {
    say(peers[0], Kind::Problem, problem);
  }
  void tellEnd(int status) override {
    for (Peer &peer : peers)
      say(peer, Kind::Ending, bytesOf(int32_t(status)));
  }
  void leave() override {
    if (rank != 0)
      say(peers[0], Kind::Leaving, {});
  }
  /// Rank 0 goes when all have left, the others when rank 0 has heard of it.
  bool mayGo(const ProgressTable &table) const override {
    return std::all_of(peers.begin(), peers.end(), [&](const Peer &peer) {
      return table.row(peer.rank).state == RankState::Left;
    });
  }
  bool isLive() const override { return false; }

private:
  static void close(Peer &peer) {
    if (peer.socket >= 0)
      ::close(std::exchange(peer.socket, -1));
  }
  static void flush(Peer &peer);
  static void say(Peer &peer, Kind kind, std::string_view text);
  void addRow(const ProgressTable &table, int r);
  void takeMessages(Peer &peer, ProgressTable &table, double now);
  void take(Peer &peer, Kind kind, std::string_view text, ProgressTable &table,
            double now);
  void takeRows(int from, std::string_view text, ProgressTable &table,
                double now);

  const int rank;
  size_t ofAll; // bytes of two heartbeats with all rows
  std::vector<Peer> peers;
  std::vector<pollfd> files; // what wakes this rank, then by peer
  std::string heartbeat;
  std::vector<uint64_t> counters; // of the row that is read
  std::optional<int> end;
};

} // namespace

TcpHeartbeats::TcpHeartbeats(int rank, int size,
                             const std::vector<int> &sockets, size_t channels)
    : rank(rank), files{{-1, POLLIN, 0}} {
  Identity mine{getpid(), {}};
  thisHost().copy(mine.host, kHostCharacters);
  size_t row = sizeof(RowHeader) + channels * sizeof(uint64_t),
         begin = sizeof(Header) + std::max(sizeof(Identity), sizeof(int32_t));
  // Two heartbeats. Only rank 0 sends all rows, and only to its backup.
  size_t ofOne = 2 * (begin + row);
  ofAll = 2 * (begin + row * size_t(size));
  counters.reserve(channels);
  heartbeat.reserve(ofAll);
  for (int other = 0; other < (rank == 0 ? size : 1); ++other) {
    if (other == rank)
      continue;
    peers.push_back({other, sockets[size_t(other)], {}, {}});
    peers.back().received.reserve(rank == 0 ? ofOne : ofAll);
    peers.back().unsent.reserve(ofOne);
    files.push_back({peers.back().socket, POLLIN, 0});
    say(peers.back(), Kind::Hello, bytesOf(mine));
  }
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void TcpHeartbeats::flush(Peer &peer) {
  while (!peer.unsent.empty()) {
    ssize_t sent = ::send(peer.socket, peer.unsent.data(), peer.unsent.size(),
                          MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR)
      continue;
    // Whether the peer has gone is seen where it is listened to.
    if (sent <= 0)
      return;
    peer.unsent.erase(0, size_t(sent));
  }
}

void TcpHeartbeats::say(Peer &peer, Kind kind, std::string_view text) {
  if (peer.socket < 0)
    return;
  flush(peer);
  // A rank that is stopped takes nothing: heartbeats must not pile up.
  if (kind == Kind::Heartbeat && !peer.unsent.empty())
    return;
  peer.unsent += bytesOf(Header{kind, uint32_t(text.size())});
  peer.unsent += text;
  flush(peer);
}

void TcpHeartbeats::addRow(const ProgressTable &table, int r) {
  const RankRow &row = table.row(r);
  heartbeat +=
      bytesOf(RowHeader{r, uint32_t(row.channels.size()), row.launches});
  for (const ChannelProgress &channel : row.channels)
    heartbeat += bytesOf(channel.counter);
}

void TcpHeartbeats::send(const ProgressTable &table) {
  heartbeat.clear();
  heartbeat += bytesOf(table.backup);
  addRow(table, rank);
  size_t own = heartbeat.size();
  for (int r = 0; rank == 0 && r < table.ranks(); ++r)
    if (r != rank && table.row(r).heard != kNever)
      addRow(table, r);
  std::string_view all = heartbeat;
  for (Peer &peer : peers) {
    bool isBackup = peer.rank == table.backup;
    if (isBackup)
      peer.unsent.reserve(ofAll);
    if (table.row(peer.rank).state != RankState::Left)
      say(peer, Kind::Heartbeat, isBackup ? all : all.substr(0, own));
  }
}

void TcpHeartbeats::wait(int wake, Time until) {
  files[0].fd = wake;
  for (size_t i = 0; i < peers.size(); ++i)
    files[i + 1].fd = peers[i].socket; // poll skips those below 0
  if (::poll(files.data(), files.size(), millisecondsUntil(until)) <= 0)
    for (pollfd &file : files)
      file.revents = 0;
  std::this_thread::sleep_for(kPause);
}

/// Takes all that has come, and only then notices that there is no more.
void TcpHeartbeats::takeMessages(Peer &peer, ProgressTable &table, double now) {
  char buffer[4096];
  ssize_t count;
  while ((count = ::recv(peer.socket, buffer, sizeof buffer, MSG_DONTWAIT)) > 0)
    peer.received.append(buffer, size_t(count));
  bool hasGone = count == 0 || (errno != EAGAIN && errno != EINTR);
  // Nobody of this job sends so much at once.
  hasGone |= peer.received.size() > ofAll + kMostText;
  std::string_view left = peer.received;
  for (;;) {
    std::string_view rest = left;
    Header header{};
    if (!takeValue(rest, header) || rest.size() < header.bytes)
      break;
    take(peer, header.kind, rest.substr(0, header.bytes), table, now);
    left = rest.substr(header.bytes);
  }
  peer.received.erase(0, peer.received.size() - left.size());
  if (!hasGone)
    return;
  close(peer);
  // Nobody goes without a word, not even to a rank that is leaving itself.
  RankRow &row = table.row(peer.rank);
  if (row.state == RankState::Left)
    return;
  row.state = RankState::Lost;
  row.lost = now;
}

void TcpHeartbeats::take(Peer &peer, Kind kind, std::string_view text,
                         ProgressTable &table, double now) {
  // What is no message of these is no sign of life.
  if (kind > Kind::Leaving)
    return;
  RankRow &row = table.row(peer.rank);
  row.heard = now;
  switch (kind) {
  case Kind::Hello: {
    Identity identity{};
    takeValue(text, identity);
    row.pid = identity.pid;
    row.host.assign(identity.host, strnlen(identity.host, kHostCharacters));
    row.state = RankState::Here;
    return;
  }
  case Kind::Heartbeat: {
    int32_t backup = -1;
    takeValue(text, backup);
    if (rank != 0 && backup < table.ranks())
      table.backup = backup;
    return takeRows(peer.rank, text, table, now);
  }
  case Kind::Problem:
    return table.stateProblem(peer.rank, std::string(text), now);
  case Kind::Ending: {
    int32_t status = 0;
    if (takeValue(text, status))
      end = status;
    return;
  }
  case Kind::Leaving:
    row.state = RankState::Left;
    if (rank == 0)
      say(peer, Kind::Leaving, {});
    return;
  }
}

void TcpHeartbeats::takeRows(int from, std::string_view text,
                             ProgressTable &table, double now) {
  RowHeader header{};
  while (takeValue(text, header)) {
    size_t bytes = header.channels * sizeof(uint64_t);
    // Only rank 0 speaks of others.
    if (bytes > text.size() || header.rank < 0 ||
        header.rank >= table.ranks() || (from != 0 && header.rank != from))
      return;
    counters.resize(header.channels);
    std::memcpy(counters.data(), text.data(), bytes);
    text.remove_prefix(bytes);
    if (header.rank == rank) // which knows better
      continue;
    table.row(header.rank).heard = now;
    table.take(header.rank, header.launches, counters.data(), header.channels,
               now);
  }
}

std::unique_ptr<HeartbeatTransport>
fsdp::rt::makeTcpHeartbeats(int rank, int size, const std::vector<int> &sockets,
                            size_t channels) {
  return std::make_unique<TcpHeartbeats>(rank, size, sockets, channels);
}
