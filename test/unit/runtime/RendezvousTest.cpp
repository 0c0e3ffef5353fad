//===- RendezvousTest.cpp - How ranks find each other without MPI ---------===//
#include "runtime/rendezvous/Rendezvous.h"
#include "TemporaryFolder.h"
#include "runtime/rendezvous/HostList.h"
#include <algorithm>
#include <arpa/inet.h>
#include <future>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

//===----------------------------------------------------------------------===//
// Lists of hosts
//===----------------------------------------------------------------------===//

TEST(HostList, TheFirstHostAsItIsWritten) {
  auto read = [](const char *text) {
    HostList list = parseHostList(text, "LIST");
    return list.first + (list.hasOthers ? " and others" : "");
  };
  EXPECT_EQ(read("node7"), "node7");
  EXPECT_EQ(read("a,b"), "a and others");
  EXPECT_EQ(read("node[01-04,7],other"), "node01 and others");
  EXPECT_EQ(read("node[007]"), "node007");
  EXPECT_EQ(read("node[7-7]"), "node7");
  EXPECT_EQ(read("node[7],other[1-2]"), "node7 and others");
  EXPECT_EQ(read("rack[2,4]n[10-12]-ib"), "rack2n10-ib and others");
}

TEST(HostList, WhatIsNone) {
  for (const char *text :
       {"", ",a", "a[", "a[]", "a[1", "a[1-", "a[1-]", "a[-1]", "a[1,", "a[1,]",
        "a[1;2]", "a[1]]", "a]", "a[[1]]", "a b", "a\n", "a[1-2-3]"})
    EXPECT_EQ(messageOf([&] { parseHostList(text, "LIST"); }),
              std::string("environment: LIST = '") + text +
                  "' is no list of hosts");
}

//===----------------------------------------------------------------------===//
// Where they meet
//===----------------------------------------------------------------------===//

namespace {

const char *const kVariables[] = {"MASTER_ADDR",         "MASTER_PORT",
                                  "FSDP_PORT",           "FSDP_JOB",
                                  "FSDP_LISTENER",       "TORCHELASTIC_RUN_ID",
                                  "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST",
                                  "SLURM_JOB_ID",        "SLURM_STEP_ID",
                                  "PMIX_NAMESPACE"};

class Rendezvous : public testing::Test {
protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  void clear() {
    for (const char *name : kVariables)
      unsetenv(name);
  }
  void set(const char *name, const char *value) { setenv(name, value, 1); }

  LaunchEnvironment torch{1, 4, 1, 4, "RANK", "WORLD_SIZE"};
  LaunchEnvironment slurm{1, 4, 1, 4, "SLURM_PROCID", "SLURM_NTASKS"};
};

} // namespace

TEST_F(Rendezvous, BesideTheStoreOfTorchrun) {
  set("MASTER_ADDR", "head");
  set("MASTER_PORT", "29500");
  EXPECT_EQ(rendezvousEndpoint(torch).host, "head");
  EXPECT_EQ(rendezvousEndpoint(torch).port, 29501);
  set("MASTER_PORT", "65535");
  EXPECT_EQ(rendezvousEndpoint(torch).port, 65534);
  set("FSDP_PORT", "1234");
  EXPECT_EQ(rendezvousEndpoint(torch).port, 1234);
  for (const char *value : {"0", "65536", "-1", "12x", "port"}) {
    set("FSDP_PORT", value);
    EXPECT_EQ(messageOf([&] { rendezvousEndpoint(torch); }),
              std::string("environment: FSDP_PORT = '") + value +
                  "' is no port");
  }
}

TEST_F(Rendezvous, AtTheFirstHostOfSlurm) {
  set("SLURM_JOB_NODELIST", "n[08-11]");
  EXPECT_EQ(rendezvousEndpoint(slurm).host, "n08");
  set("SLURM_STEP_NODELIST", "n10");
  EXPECT_EQ(rendezvousEndpoint(slurm).host, "127.0.0.1");
  set("SLURM_STEP_NODELIST", "n[10");
  EXPECT_EQ(messageOf([&] { rendezvousEndpoint(slurm); }),
            "environment: SLURM_STEP_NODELIST = 'n[10' is no list of hosts");
}

TEST_F(Rendezvous, SeveralMachinesNeedAnAddress) {
  set("TORCHELASTIC_RUN_ID", "one");
  EXPECT_EQ(rendezvousEndpoint(torch).host, "127.0.0.1");
  torch.localSize = 2;
  EXPECT_EQ(messageOf([&] { rendezvousEndpoint(torch); }),
            "the job has ranks on several machines (2 of 4 on this one); set "
            "MASTER_ADDR to the address of rank 0's");
}

// Hydra and Intel MPI give none: two jobs would have one port.
TEST_F(Rendezvous, AJobNeedsANameOrAPort) {
  LaunchEnvironment hydra{1, 4, 1, 4, "PMI_RANK", "PMI_SIZE"};
  EXPECT_EQ(messageOf([&] { rendezvousEndpoint(hydra); }),
            "the launcher of this job sets no name and no port, so its ranks "
            "could join another job; set FSDP_JOB to a name that no other job "
            "has, the same for all ranks");
  set("FSDP_JOB", "mine");
  int port = rendezvousEndpoint(hydra).port;
  set("FSDP_JOB", "yours");
  EXPECT_NE(rendezvousEndpoint(hydra).port, port);
  unsetenv("FSDP_JOB");
  set("FSDP_PORT", "1234");
  EXPECT_EQ(rendezvousEndpoint(hydra).port, 1234);
}

TEST_F(Rendezvous, JobsHaveNames) {
  set("MASTER_PORT", "29500");
  uint64_t unnamed = rendezvousEndpoint(torch).job;
  unsetenv("MASTER_PORT");
  set("TORCHELASTIC_RUN_ID", "one");
  uint64_t one = rendezvousEndpoint(torch).job;
  EXPECT_NE(one, unnamed);
  // Another launcher's variables need not be on all machines.
  set("SLURM_JOB_ID", "7");
  EXPECT_EQ(rendezvousEndpoint(torch).job, one);
  RendezvousEndpoint seven = rendezvousEndpoint(slurm);
  set("SLURM_JOB_ID", "8");
  RendezvousEndpoint eight = rendezvousEndpoint(slurm);
  EXPECT_NE(seven.job, eight.job);
  EXPECT_NE(seven.port, eight.port);
  EXPECT_GE(seven.port, 20000);
  EXPECT_LT(seven.port, 30000);
  torch.size = torch.localSize = 5;
  EXPECT_NE(rendezvousEndpoint(torch).job, one);
}

//===----------------------------------------------------------------------===//
// The rendezvous
//===----------------------------------------------------------------------===//

namespace {

constexpr const char *kHere = "127.0.0.1";
constexpr uint64_t kJob = 42;

/// A rank that comes, in a thread of its own. Its connections, or an error.
std::future<Lines> come(int port, int rank, int size, uint64_t job = kJob,
                        double seconds = 60) {
  return std::async(std::launch::async, [=] {
    return rendezvous({kHere, port, job}, rank, size, seconds);
  });
}

/// A client of somebody else, which says `text`.
int stranger(int port, const std::string &text) {
  int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, kHere, &address.sin_addr);
  EXPECT_EQ(
      connect(client, reinterpret_cast<sockaddr *>(&address), sizeof address),
      0);
  EXPECT_EQ(write(client, text.data(), text.size()), ssize_t(text.size()));
  return client;
}

/// Whether what goes in at one end comes out at the other.
void expectConnected(int one, int other) {
  char sent = 'x', got = 0;
  EXPECT_EQ(write(one, &sent, 1), 1);
  EXPECT_EQ(read(other, &got, 1), 1);
  EXPECT_EQ(got, sent);
  close(one);
  close(other);
}

/// Those of rank 0 to a rank and of that one.
void expectConnected(const Lines &other, const Lines &first, size_t rank) {
  expectConnected(other.data.at(0), first.data.at(rank));
  expectConnected(other.heartbeats.at(0), first.heartbeats.at(rank));
}

void closeAll(const Lines &lines) {
  for (const auto &sockets : {lines.data, lines.heartbeats})
    for (int socket : sockets)
      close(socket);
}

} // namespace

TEST_F(Rendezvous, EveryRankIsConnectedToTheFirst) {
  Listener listener = listenAt(kHere, 0);
  ASSERT_GT(listener.port, 0);
  std::vector<std::future<Lines>> others;
  for (int rank = 3; rank > 0; --rank)
    others.push_back(come(listener.port, rank, 4));
  Lines lines = acceptRanks(listener, kJob, 4, 60);
  ASSERT_EQ(lines.data.size(), 4u);
  ASSERT_EQ(lines.heartbeats.size(), 4u);
  EXPECT_EQ(lines.data[0], -1);
  EXPECT_EQ(lines.heartbeats[0], -1);
  for (int rank = 3; rank > 0; --rank)
    expectConnected(others[3 - rank].get(), lines, rank);
}

// The first rank opens its port after the others have come.
TEST_F(Rendezvous, RanksWaitForTheFirst) {
  int port = listenAt(kHere, 0).port;
  auto other = come(port, 1, 2);
  usleep(200 * 1000);
  Lines lines = rendezvous({kHere, port, kJob}, 0, 2, 60);
  expectConnected(other.get(), lines, 1);
}

// The launcher's socket, which was open before any rank.
TEST_F(Rendezvous, TheFirstRankTakesTheSocketOfItsLauncher) {
  Listener listener = listenAt(kHere, 0);
  auto other = come(listener.port, 1, 2);
  int inherited = dup(listener.socket);
  set("FSDP_LISTENER", std::to_string(inherited).c_str());
  // Any other port: it is not used.
  Lines lines = rendezvous({kHere, 1, kJob}, 0, 2, 60);
  EXPECT_EQ(getenv("FSDP_LISTENER"), nullptr);
  expectConnected(other.get(), lines, 1);
}

// Clients of somebody else do not keep the ranks from meeting.
TEST_F(Rendezvous, StrangersEndNothing) {
  Listener listener = listenAt(kHere, 0);
  int silent = stranger(listener.port, "");
  int talkative = stranger(listener.port, std::string(200, '?'));
  auto ofAnotherJob = come(listener.port, 1, 2, kJob + 1, 1);
  usleep(100 * 1000);
  auto other = come(listener.port, 1, 2);
  Lines lines = acceptRanks(listener, kJob, 2, 60);
  expectConnected(other.get(), lines, 1);
  listener.close();
  EXPECT_EQ(messageOf([&] {
              ofAnotherJob.get();
            }).find("rank 1 cannot reach rank 0 at 127.0.0.1 port "),
            0u);
  close(silent);
  close(talkative);
}

// Both sides say what is missing.
TEST_F(Rendezvous, WhoIsMissingIsNamed) {
  Listener listener = listenAt(kHere, 0);
  auto second = come(listener.port, 2, 4);
  int talkative = stranger(listener.port, std::string(200, '?'));
  EXPECT_EQ(messageOf([&] { acceptRanks(listener, kJob, 4, 3); }),
            "ranks 1, 3 of 4 did not connect to port " +
                std::to_string(listener.port) +
                " of rank 0 within 3 s (FSDP_JOIN_TIMEOUT sets the limit); "
                "connections that were not of this job: 1");
  closeAll(second.get());
  close(talkative);
  int port = listener.port;
  listener.close();
  EXPECT_EQ(messageOf([&] { rendezvous({kHere, port, kJob}, 1, 2, 0.2); }),
            "rank 1 cannot reach rank 0 at 127.0.0.1 port " +
                std::to_string(port) +
                " within 0.2 s (FSDP_JOIN_TIMEOUT sets the limit): Connection "
                "refused");
}

TEST_F(Rendezvous, ARankComesOnce) {
  Listener listener = listenAt(kHere, 0);
  auto one = come(listener.port, 1, 3, kJob, 2);
  auto two = come(listener.port, 1, 3, kJob, 2);
  EXPECT_EQ(messageOf([&] { acceptRanks(listener, kJob, 3, 60); }),
            "two processes say that they are rank 1 of this job; the "
            "launcher's variables are wrong");
  listener.close();
  for (auto *rank : {&one, &two}) // one of them was welcome
    messageOf([&] { closeAll(rank->get()); });
}

// A rank that gave up, with a word that nobody has read, and began anew.
TEST_F(Rendezvous, ARankMayComeAgainWhenItHasGone) {
  Listener listener = listenAt(kHere, 0);
  struct {
    char magic[8] = {'f', 's', 'd', 'p', 'm', 'e', 'e', 't'};
    uint64_t job = kJob;
    int32_t size = 3, rank = 1, line = 0;
    char more[4] = {};
  } greeting;
  std::string text(reinterpret_cast<const char *>(&greeting), 32);
  auto first = std::async(std::launch::async,
                          [&] { return acceptRanks(listener, kJob, 3, 60); });
  int gone = stranger(listener.port, text);
  char answer[32];
  ASSERT_GT(recv(gone, answer, sizeof answer, MSG_WAITALL), 27);
  close(gone);
  auto one = come(listener.port, 1, 3), two = come(listener.port, 2, 3);
  Lines lines = first.get();
  expectConnected(one.get(), lines, 1);
  expectConnected(two.get(), lines, 2);
}

TEST_F(Rendezvous, ThePortIsTaken) {
  Listener listener = listenAt(kHere, 0);
  std::string port = std::to_string(listener.port);
  EXPECT_EQ(messageOf([&] { listenAt(kHere, listener.port); }),
            "cannot listen at 127.0.0.1 port " + port +
                ": Address already in use; set FSDP_PORT to a free port, the "
                "same for all ranks");
  EXPECT_EQ(
      messageOf([&] { rendezvous({kHere, listener.port, kJob}, 0, 2, 0.2); }),
      "cannot listen at port " + port +
          ": Address already in use; set FSDP_PORT to a free port, the "
          "same for all ranks");
}

// Of the job before, which is just ending.
TEST_F(Rendezvous, APortBecomesFree) {
  Listener before = listenAt("", 0);
  int port = before.port;
  auto other = come(port, 1, 2);
  auto first = std::async(std::launch::async, [&] {
    return rendezvous({kHere, port, kJob}, 0, 2, 60);
  });
  usleep(200 * 1000);
  before.close();
  expectConnected(other.get(), first.get(), 1);
}

// What listens at the first address takes connections and says nothing.
TEST_F(Rendezvous, ASilentAddressLeavesTimeForTheNext) {
  Listener silent, listener;
  try {
    silent = listenAt("::1", 0);
    listener = listenAt(kHere, silent.port);
  } catch (const Error &error) {
    GTEST_SKIP() << error.what(); // no IPv6, or somebody has that port
  }
  auto other = std::async(std::launch::async, [&] {
    return rendezvous({"localhost", silent.port, kJob}, 1, 2, 4);
  });
  Lines lines = acceptRanks(listener, kJob, 2, 60);
  expectConnected(other.get(), lines, 1);
}

// Ranks that MPI has told where rank 0 listens, for heartbeats alone.
TEST_F(Rendezvous, RanksFollowAnInvitation) {
  Listener listener = listenAt(kHere, 0);
  // Nobody listens at the first of the addresses.
  Invitation invitation{kJob, listener.port, 2, {"127.0.0.2", "127.0.0.1"}};
  int talkative = stranger(listener.port, std::string(200, '?'));
  auto other = std::async(std::launch::async, [&] {
    return connectInvited(invitation, Listener(), 1, 2, 60);
  });
  std::vector<int> first = connectInvited(invitation, listener, 0, 2, 60);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0], -1);
  expectConnected(other.get().at(0), first[1]);
  close(talkative);
}

TEST_F(Rendezvous, AnInvitationHasAllAddresses) {
  Listener listener = listenAt("", 0);
  Invitation one = inviteRanks(listener), other = inviteRanks(listener);
  EXPECT_NE(one.job, other.job);
  EXPECT_EQ(one.port, listener.port);
  std::vector<std::string> all(one.address, one.address + one.count);
  EXPECT_NE(std::find(all.begin(), all.end(), "127.0.0.1"), all.end());
}

// Hours otherwise.
TEST_F(Rendezvous, AMachineThatIsGoneIsNoticedSoon) {
  Listener listener = listenAt(kHere, 0);
  auto come1 = come(listener.port, 1, 2);
  Lines first = acceptRanks(listener, kJob, 2, 60), other = come1.get();
  for (int socket :
       {first.data[1], first.heartbeats[1], other.data[0], other.heartbeats[0]})
    for (auto [option, wanted] : {std::pair(TCP_KEEPIDLE, kKeepAliveIdle),
                                  std::pair(TCP_KEEPINTVL, kKeepAliveInterval),
                                  std::pair(TCP_KEEPCNT, kKeepAliveCount)}) {
      int value = 0;
      socklen_t size = sizeof value;
      getsockopt(socket, IPPROTO_TCP, option, &value, &size);
      EXPECT_EQ(value, wanted);
    }
  expectConnected(other, first, 1);
}

// Rank 0 of a large job has more connections than a process may have by
// default. In a process of its own, which keeps its limit.
TEST_F(Rendezvous, ManyRanksNeedManyFiles) {
  auto rendezvousWith = [](rlim_t soft, rlim_t hard) {
    rlimit limit{soft, hard};
    setrlimit(RLIMIT_NOFILE, &limit);
    std::string message =
        messageOf([] { rendezvous({kHere, 0, kJob}, 0, 500, 0.01); });
    getrlimit(RLIMIT_NOFILE, &limit);
    std::fprintf(stderr, "%d: %s", int(limit.rlim_cur), message.c_str());
    std::exit(0);
  };
  EXPECT_EXIT(rendezvousWith(64, 256), testing::ExitedWithCode(0),
              "64: only 256 files may be open at once, but rank 0 of 500 ranks "
              "needs 1064; raise the limit");
  EXPECT_EXIT(rendezvousWith(64, 2048), testing::ExitedWithCode(0),
              "1064: ranks 1, 2, 3, 4, 5, 6, 7, 8 and 491 more of 500 did not "
              "connect");
}
