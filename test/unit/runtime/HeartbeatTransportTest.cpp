//===- HeartbeatTransportTest.cpp - How heartbeats travel -----------------===//
//
// All ranks are in this process, each with its table and its end of the
// transport.
//
//===----------------------------------------------------------------------===//
#include "runtime/liveness/HeartbeatTransport.h"
#include "runtime/core/Arena.h"
#include <cstring>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace fsdp::rt;

namespace {

constexpr size_t kChannels = 2;

/// A rank's side.
struct RankSide {
  explicit RankSide(int ranks) : table(ranks) {
    table.setChannels(kChannels, nullptr);
  }
  /// Takes what the others have sent. Each has done so already.
  std::optional<int> receive(double now) {
    transport->wait(/*wake=*/-1, Clock::now());
    return transport->receive(table, now);
  }
  std::vector<uint64_t> countersOf(int rank) const {
    std::vector<uint64_t> all;
    for (const ChannelProgress &channel : table.row(rank).channels)
      all.push_back(channel.counter);
    return all;
  }

  ProgressTable table;
  std::unique_ptr<HeartbeatTransport> transport;
};

using Counters = std::vector<uint64_t>;

/// Three ranks; the counters of rank r are {10 r, 10 r + 1}.
class Transports : public testing::Test {
protected:
  void startTcp() {
    std::vector<int> first(kRanks, -1);
    for (int r = 1; r < kRanks; ++r) {
      int ends[2];
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      first[size_t(r)] = ends[0];
      other[r] = ends[1];
      ranks[r].transport = makeTcpHeartbeats(r, kRanks, {ends[1]}, kChannels);
    }
    ranks[0].transport = makeTcpHeartbeats(0, kRanks, first, kChannels);
    begin();
  }
  void startShared() {
    std::vector<std::byte *> all;
    for (auto &one : pages) {
      one.resize(Arena::kControlBytes / sizeof(uint64_t));
      all.push_back(reinterpret_cast<std::byte *>(one.data()));
    }
    for (int r = 0; r < kRanks; ++r) {
      ranks[r].transport = makeSharedHeartbeats(all, r, kChannels);
      auto *cells = all[size_t(r)] + Arena::kProgressAt;
      Counters own = {uint64_t(10 * r), uint64_t(10 * r + 1)};
      std::memcpy(cells, own.data(), sizeof own[0] * kChannels);
    }
    begin();
  }
  void begin() {
    for (int r = 0; r < kRanks; ++r) {
      Counters own = {uint64_t(10 * r), uint64_t(10 * r + 1)};
      RankRow &row = ranks[r].table.row(r);
      row.state = RankState::Here;
      row.heard = 1;
      ranks[r].table.take(r, 0, own.data(), own.size(), 1);
    }
  }
  void sendAll() {
    for (RankSide &rank : ranks)
      rank.transport->send(rank.table);
  }
  void receiveAll(double now) {
    for (RankSide &rank : ranks)
      EXPECT_FALSE(rank.receive(now));
  }
  /// What a peer says that is none.
  void say(int rank, const void *bytes, size_t count) {
    EXPECT_EQ(write(other[rank], bytes, count), ssize_t(count));
  }

  static constexpr int kRanks = 3;
  RankSide ranks[kRanks] = {RankSide(kRanks), RankSide(kRanks),
                            RankSide(kRanks)};
  int other[kRanks] = {};
  std::vector<uint64_t> pages[kRanks];
};

} // namespace

TEST_F(Transports, SocketsTellRankZeroOfAllAndOthersOfRankZero) {
  startTcp();
  sendAll();
  receiveAll(2);
  for (int r = 1; r < kRanks; ++r) {
    const RankRow &row = ranks[0].table.row(r);
    EXPECT_EQ(row.state, RankState::Here);
    EXPECT_EQ(row.pid, getpid());
    EXPECT_EQ(row.heard, 2);
    EXPECT_EQ(ranks[0].countersOf(r),
              (Counters{uint64_t(10 * r), uint64_t(10 * r + 1)}));
    EXPECT_EQ(row.channels[1].since, 2);
    EXPECT_EQ(ranks[r].countersOf(0), (Counters{0, 1}));
    EXPECT_EQ(ranks[r].table.row(0).heard, 2);
    EXPECT_EQ(ranks[r].table.row(3 - r).heard, kNever);
    EXPECT_EQ(ranks[r].table.backup, -1);
  }
  EXPECT_FALSE(ranks[0].transport->isLive());
}

TEST_F(Transports, SocketsTellTheBackupOfAll) {
  startTcp();
  sendAll();
  receiveAll(2);
  for (int backup : {1, 2}) {
    double now = 2 + backup;
    int third = 3 - backup;
    ranks[0].table.backup = backup;
    ranks[backup].table.row(third).heard = kNever;
    double before = ranks[third].table.row(backup).heard;
    sendAll();
    receiveAll(now);
    EXPECT_EQ(ranks[1].table.backup, backup);
    EXPECT_EQ(ranks[2].table.backup, backup);
    EXPECT_EQ(ranks[third].table.row(backup).heard, before);
    EXPECT_EQ(ranks[backup].table.row(third).heard, now);
    for (int r = 0; r < kRanks; ++r) // its own too
      EXPECT_EQ(ranks[backup].countersOf(r),
                (Counters{uint64_t(10 * r), uint64_t(10 * r + 1)}));
  }
}

TEST_F(Transports, SocketsCarryProblemsAndEnds) {
  startTcp();
  ranks[2].transport->tellProblem("the network is gone");
  EXPECT_FALSE(ranks[0].receive(2));
  EXPECT_EQ(ranks[0].table.row(2).problem, "the network is gone");
  EXPECT_EQ(ranks[0].table.row(2).problemSince, 2);
  ranks[0].transport->tellEnd(7);
  EXPECT_EQ(ranks[1].receive(3), 7);
  EXPECT_EQ(ranks[2].receive(3), 7);
}

// Who has left is no loss; rank 0 goes last, when all have left.
TEST_F(Transports, SocketsTellLeavingFromLoss) {
  startTcp();
  receiveAll(1);
  ranks[1].transport->leave();
  EXPECT_FALSE(ranks[1].transport->mayGo(ranks[1].table));
  receiveAll(2);
  EXPECT_TRUE(ranks[1].transport->mayGo(ranks[1].table));
  EXPECT_FALSE(ranks[0].transport->mayGo(ranks[0].table));
  ranks[1].transport = nullptr;
  ranks[2].transport = nullptr;
  ranks[0].receive(3);
  EXPECT_EQ(ranks[0].table.row(1).state, RankState::Left);
  EXPECT_EQ(ranks[0].table.row(2).state, RankState::Lost);
  EXPECT_EQ(ranks[0].table.row(2).lost, 3);
  EXPECT_FALSE(ranks[0].transport->mayGo(ranks[0].table));
}

// A rank that is stopped takes nothing; what it gets later is one heartbeat
// after the last that fitted, and whole.
TEST_F(Transports, HeartbeatsToAStoppedRankDoNotPileUp) {
  startTcp();
  auto least = int(sizeof(uint64_t)) * 8;
  for (int r = 1; r < kRanks; ++r)
    setsockopt(other[r], SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
  for (uint64_t beat = 1; beat <= 100000; ++beat) {
    Counters own = {beat, beat};
    ranks[0].table.take(0, 0, own.data(), own.size(), double(beat));
    ranks[0].transport->send(ranks[0].table);
  }
  ranks[1].receive(2);
  uint64_t last = ranks[1].countersOf(0)[0];
  EXPECT_GT(last, 1u);
  EXPECT_LT(last, 100000u);
  Counters own = {200000, 200000};
  ranks[0].table.take(0, 0, own.data(), own.size(), 1);
  ranks[0].transport->send(ranks[0].table); // the rest of the last one
  ranks[0].transport->send(ranks[0].table);
  ranks[1].receive(3);
  EXPECT_EQ(ranks[1].countersOf(0), own);
}

// Lengths and ranks are checked before they are used.
TEST_F(Transports, WhatIsNoHeartbeatIsNotTaken) {
  startTcp();
  sendAll();
  receiveAll(2);
  struct {
    uint32_t kind, bytes;
    int32_t backup, rank;
    uint32_t channels;
    uint64_t launches, counters[2];
  }
  __attribute__((packed)) message = {1, sizeof message - 8, 7, 2, 2, 0, {5, 5}};
  say(1, &message, sizeof message); // of a rank that is not its own
  message.rank = 0;                 // of the reader
  say(1, &message, sizeof message);
  message.rank = -1;
  say(1, &message, sizeof message);
  message.rank = 1;
  message.channels = ~0U; // more than there are bytes
  say(1, &message, sizeof message);
  message.bytes = 3; // cut
  say(1, &message, 8 + 3);
  EXPECT_FALSE(ranks[0].receive(3));
  EXPECT_EQ(ranks[0].countersOf(0), (Counters{0, 1}));
  EXPECT_EQ(ranks[0].countersOf(1), (Counters{10, 11}));
  EXPECT_EQ(ranks[0].countersOf(2), (Counters{20, 21}));
  EXPECT_EQ(ranks[0].table.backup, -1);
  // What nobody of the job says is no sign of life either.
  double heard = ranks[0].table.row(1).heard;
  message.kind = 99;
  message.bytes = 0;
  say(1, &message, 8);
  EXPECT_FALSE(ranks[0].receive(4));
  EXPECT_EQ(ranks[0].table.row(1).heard, heard);
  message.kind = 1;
  // A whole one is.
  message.bytes = sizeof message - 8;
  message.channels = 2;
  say(1, &message, sizeof message);
  EXPECT_FALSE(ranks[0].receive(3));
  EXPECT_EQ(ranks[0].countersOf(1), (Counters{5, 5}));
}

TEST_F(Transports, PagesShowAllRanksToAll) {
  startShared();
  receiveAll(1);
  sendAll();
  receiveAll(2);
  for (int r = 0; r < kRanks; ++r)
    for (int o = 0; o < kRanks; ++o) {
      const RankRow &row = ranks[r].table.row(o);
      EXPECT_EQ(row.state, RankState::Here);
      EXPECT_EQ(row.heard, o == r ? 1 : 2);
      EXPECT_EQ(ranks[r].countersOf(o),
                (Counters{uint64_t(10 * o), uint64_t(10 * o + 1)}));
    }
  EXPECT_TRUE(ranks[0].transport->isLive());
}

// Of a rank that sends no heartbeats the pages are read all the same.
TEST_F(Transports, PagesOfAStoppedRankStayReadable) {
  startShared();
  sendAll();
  receiveAll(2);
  uint64_t counter = 77;
  std::memcpy(reinterpret_cast<std::byte *>(pages[1].data()) +
                  Arena::kProgressAt,
              &counter, sizeof counter);
  ranks[0].receive(3);
  EXPECT_EQ(ranks[0].table.row(1).heard, 2);
  EXPECT_EQ(ranks[0].countersOf(1), (Counters{77, 11}));
  EXPECT_EQ(ranks[0].table.row(1).channels[0].since, 3);
}

TEST_F(Transports, PagesCarryProblemsAndLeaving) {
  startShared();
  std::string text(1000, 'x');
  ranks[1].transport->tellProblem(text);
  ranks[2].transport->leave();
  receiveAll(2);
  const std::string &problem = ranks[0].table.row(1).problem;
  EXPECT_EQ(problem, text.substr(0, problem.size()));
  EXPECT_GT(problem.size(), 500u);
  EXPECT_EQ(ranks[0].table.row(2).state, RankState::Left);
  EXPECT_EQ(ranks[1].table.row(2).state, RankState::Left);
}
