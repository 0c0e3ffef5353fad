//===- LivenessMonitorTest.cpp - Whether the ranks of a job live ----------===//
//
// Every rank is a process of its own, for it ends with the job. What is decided
// when is FailureDetectorTest's; here are the ends of processes.
//
//===----------------------------------------------------------------------===//
#include "runtime/liveness/LivenessMonitor.h"
#include "TemporaryFolder.h"
#include "fsdp/Rendezvous/Environment.h"
#include "fsdp/Support/AtomicFile.h"
#include "runtime/core/Arena.h"
#include "runtime/liveness/ProcessState.h"
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

namespace {

constexpr double kPeriod = 0.05;
constexpr int kFailed = 8; // the status of a rank with an exception

/// One group of all ranks, and one collective.
class Probe final : public RankProbe {
public:
  Probe(int size, double limit)
      : RankProbe({&artifact, size_t(kStreams), everybody(size), limit}) {
    desc.serves = "fwd layers.3";
    artifact.groups = artifact.collectives = artifact.programs = 1;
    artifact.collective = &desc;
    artifact.program = &program;
  }
  uint64_t readCounters(uint64_t *counters) const override {
    counters[size_t(Stream::Gather)] = gather;
    return 0;
  }
  std::string findProblem() override { return problem; }

  uint64_t gather = 0;
  std::string problem;

private:
  static RanksOfChannel everybody(int size) {
    return [size](int, size_t) {
      std::vector<int> all;
      for (int r = 0; r < size; ++r)
        all.push_back(r);
      return all;
    };
  }
  CollectiveDesc desc{};
  fsdp_program program{"train", nullptr};
  fsdp_artifact artifact{};
};

const uint64_t kInside = ProgressCounter{1, 0, 5, 0, true}.encode();
const char *const kCollective = "all_gather \"fwd layers.3\" (number 5 of "
                                "'train')";

/// What a rank does while it is watched.
using Body = std::function<void(LivenessMonitor &)>;

class MonitorOf : public testing::Test {
protected:
  enum Transport { Sockets, Pages };

  /// Starts a rank for each of `bodies`; one that returns leaves the job and
  /// ends with status 0.
  void start(const std::vector<Body> &bodies, double silence = 60,
             Transport transport = Sockets) {
    ranks.clear();
    size_t size = bodies.size();
    std::vector<int> first(size, -1), others(size, -1);
    gates.assign(size, {-1, -1});
    for (size_t r = 0; r < size; ++r) {
      ASSERT_EQ(pipe2(gates[r].data(), O_CLOEXEC), 0);
      int ends[2];
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      first[r] = ends[0];
      others[r] = ends[1];
    }
    close(std::exchange(first[0], -1));
    close(std::exchange(others[0], -1));
    std::vector<std::byte *> pages;
    auto *memory = static_cast<std::byte *>(
        mmap(nullptr, size * Arena::kControlBytes, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    for (size_t r = 0; r < size; ++r)
      pages.push_back(memory + r * Arena::kControlBytes);
    LivenessLimits limits{silence, 0, kPeriod, kGraceSeconds};
    for (size_t r = 0; r < size; ++r) {
      ranks.push_back(fork());
      if (ranks.back() != 0)
        continue;
      rank = r;
      // No rank has another's ends.
      for (size_t other = 1; other < size; ++other) {
        if (r != 0)
          close(first[other]);
        if (r != other)
          close(others[other]);
      }
      int file = open(folder.file("said." + std::to_string(r)).c_str(),
                      O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(file, STDERR_FILENO);
      if (r == 0 && isFirstLate)
        waitForRelease();
      try {
        LivenessMonitor monitor(
            int(r), int(size), limits,
            transport == Pages
                ? makeSharedHeartbeats(pages, int(r), size_t(kStreams))
                : makeTcpHeartbeats(int(r), int(size),
                                    r == 0 ? first
                                           : std::vector<int>{others[r]},
                                    size_t(kStreams)),
            nullptr, transport == Pages ? EndJob(endAsOnCpus) : EndJob());
        bodies[r](monitor);
      } catch (const Error &) {
        _exit(kFailed);
      }
      _exit(0);
    }
    for (size_t r = 1; r < size; ++r) {
      close(first[r]);
      close(others[r]);
    }
    munmap(memory, size * Arena::kControlBytes);
  }
  void TearDown() override {
    for (pid_t pid : ranks)
      if (pid > 0)
        kill(pid, SIGKILL);
    for (pid_t pid : ranks)
      if (pid > 0)
        waitpid(pid, nullptr, 0);
  }
  int end(size_t r) {
    int status = 0;
    EXPECT_EQ(waitpid(ranks.at(r), &status, 0), ranks.at(r));
    ranks.at(r) = -ranks.at(r);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  void send(size_t r, int signal) { kill(std::abs(ranks.at(r)), signal); }
  void waitUntilStopped(size_t r) {
    int status = 0;
    EXPECT_EQ(waitpid(ranks.at(r), &status, WUNTRACED), ranks.at(r));
    EXPECT_TRUE(WIFSTOPPED(status));
  }
  /// In a rank.
  void waitForRelease() {
    char byte;
    (void)!read(gates[rank][0], &byte, 1);
  }
  void release(size_t r) { EXPECT_EQ(write(gates[r][1], "x", 1), 1); }
  std::string said(size_t r) {
    return readWholeFile(folder.file("said." + std::to_string(r)), "said");
  }
  /// "(process N on HOST)"
  std::string process(size_t r) {
    return "(process " + std::to_string(std::abs(ranks.at(r))) + " on " +
           hostName() + ")";
  }
  std::string lost(size_t r) {
    return "rank " + std::to_string(r) + " " + process(r) +
           " has ended without a word";
  }
  std::string stopped(size_t r) {
    return "no sign of life from rank " + std::to_string(r) + " " + process(r) +
           " for 1 s: it is stopped (FSDP_HEARTBEAT sets the limit)";
  }
  static void endAsOnCpus(int about, const std::string &message) {
    std::fprintf(stderr, "fsdp: %d: %s\n", about, message.c_str());
    _exit(kLostJobStatus);
  }

  // Bodies.
  static void stay(LivenessMonitor &) {
    for (;;)
      pause();
  }
  static void stop(LivenessMonitor &monitor) {
    raise(SIGSTOP);
    stay(monitor);
  }
  static void leave(LivenessMonitor &) {}
  static void die(LivenessMonitor &) { _exit(9); }
  Body later(const Body &body) {
    return [this, body](LivenessMonitor &monitor) {
      waitForRelease();
      body(monitor);
    };
  }
  static Body failing(const char *problem) {
    return [=](LivenessMonitor &monitor) { monitor.fail(problem); };
  }
  /// A rank of two with a context.
  static Body probed(uint64_t counter, const char *problem, double limit) {
    return [=](LivenessMonitor &monitor) {
      static Probe probe(2, limit);
      probe.gather = counter;
      probe.problem = problem;
      monitor.watch(&probe);
      stay(monitor);
    };
  }

  TemporaryFolder folder;
  std::vector<pid_t> ranks; // below 0: it has ended
  std::vector<std::array<int, 2>> gates;
  size_t rank = 0;
  bool isFirstLate = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// Leaving
//===----------------------------------------------------------------------===//

TEST_F(MonitorOf, LeavingIsNoAlarm) {
  for (Transport transport : {Sockets, Pages}) {
    start({leave, later(leave), leave}, 60, transport);
    EXPECT_EQ(end(2), 0);
    release(1);
    EXPECT_EQ(end(0), 0);
    EXPECT_EQ(end(1), 0);
    EXPECT_EQ(said(0) + said(1) + said(2), "");
  }
}

TEST_F(MonitorOf, TheFirstMayLeaveLast) {
  start({later(leave), leave});
  EXPECT_EQ(end(1), 0);
  release(0);
  EXPECT_EQ(end(0), 0);
  EXPECT_EQ(said(0) + said(1), "");
}

// Who is ready to leave waits for the others' word.
TEST_F(MonitorOf, ARankThatEndsWhileTheFirstLeaves) {
  start({leave, later(die), leave});
  EXPECT_EQ(end(2), 0);
  release(1);
  EXPECT_EQ(end(1), 9);
  EXPECT_EQ(end(0), kLostJobStatus);
  EXPECT_EQ(said(0), "fsdp: " + lost(1) + "\n");
}

TEST_F(MonitorOf, AFirstRankThatEndsWhileAnotherLeaves) {
  start({stop, later(leave)});
  waitUntilStopped(0);
  release(1);
  send(0, SIGKILL);
  EXPECT_EQ(end(0), -SIGKILL);
  EXPECT_EQ(end(1), kLostJobStatus);
  EXPECT_EQ(said(1), "fsdp: " + lost(0) + "\n");
}

// The others may wait in a collective: who ends the job does not wait for them.
TEST_F(MonitorOf, AnExceptionWaitsForNobody) {
  start({[](LivenessMonitor &) { throw Error("the disk is full"); }, stay});
  EXPECT_EQ(end(0), kFailed);
  EXPECT_EQ(end(1), kLostJobStatus);
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

TEST_F(MonitorOf, ARankThatEndsWithoutAWord) {
  start({stay, die, stay});
  EXPECT_EQ(end(1), 9);
  EXPECT_EQ(end(0), kLostJobStatus);
  EXPECT_EQ(end(2), kLostJobStatus);
  EXPECT_EQ(said(0), "fsdp: " + lost(1) + "\n");
  EXPECT_EQ(said(2), "");
}

TEST_F(MonitorOf, SeveralAreOneMessage) {
  start({stay, die, stay, die});
  EXPECT_EQ(end(0), kLostJobStatus);
  EXPECT_EQ(end(2), kLostJobStatus);
  EXPECT_EQ(said(0), "fsdp: " + lost(1) + "; so has rank 3\n");
}

TEST_F(MonitorOf, TheFirstRankIsMissedByOne) {
  // All know the backup before its monitor returns.
  start({[](LivenessMonitor &) { _exit(9); }, stay, stay});
  EXPECT_EQ(end(0), 9);
  EXPECT_EQ(end(1), kLostJobStatus);
  EXPECT_EQ(end(2), kLostJobStatus);
  EXPECT_EQ(said(1), "fsdp: " + lost(0) + "\n");
  EXPECT_EQ(said(2), "");
}

// It waits for ranks that are still to come.
TEST_F(MonitorOf, AFirstRankThatHasNotBegun) {
  isFirstLate = true;
  start({leave, leave}, /*silence=*/0.5);
  usleep(1500 * 1000);
  EXPECT_EQ(kill(ranks[1], 0), 0);
  release(0);
  EXPECT_EQ(end(0), 0);
  EXPECT_EQ(end(1), 0);
  EXPECT_EQ(said(0) + said(1), "");
}

// But not for ever for one that has connected and stopped.
TEST_F(MonitorOf, AFirstRankThatSaysNothing) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  auto alone = [&] {
    LivenessLimits limits{60, 0, kPeriod, kGraceSeconds};
    limits.begin = 0.5;
    LivenessMonitor monitor(1, 3, limits,
                            makeTcpHeartbeats(1, 3, {ends[1]}, 0));
    stay(monitor);
  };
  EXPECT_EXIT(alone(), testing::ExitedWithCode(kLostJobStatus),
              "^fsdp: rank 0 has connected and sent no heartbeat within 0.5 s "
              "\\(FSDP_JOIN_TIMEOUT sets the limit\\)\n$");
  for (int end : ends)
    close(end);
}

// Its reason is its own; the connection says no more.
TEST_F(MonitorOf, AFirstRankThatNeverBegins) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  close(ends[0]);
  auto alone = [&] {
    LivenessMonitor monitor(1, 3, {60, 0, kPeriod, kGraceSeconds},
                            makeTcpHeartbeats(1, 3, {ends[1]}, 0));
    stay(monitor);
  };
  EXPECT_EXIT(alone(), testing::ExitedWithCode(kLostJobStatus),
              "^fsdp: rank 0 has ended while the ranks met\n$");
  close(ends[1]);
}

// Who ends for a reason that he says himself is no loss.
TEST_F(MonitorOf, AnErrorIsSaidOnce) {
  auto fail = [](LivenessMonitor &monitor) {
    monitor.claimEnd();
    std::fprintf(stderr, "the text is gone\n");
    monitor.tellEnd(7);
    _exit(7);
  };
  start({stay, fail, stay});
  for (size_t r = 0; r < 3; ++r)
    EXPECT_EQ(end(r), 7);
  EXPECT_EQ(said(0) + said(1) + said(2), "the text is gone\n");
}

//===----------------------------------------------------------------------===//
// Silence
//===----------------------------------------------------------------------===//

TEST_F(MonitorOf, ARankThatIsStopped) {
  start({stay, stop, stay}, /*silence=*/1);
  EXPECT_EQ(end(0), kLostJobStatus);
  EXPECT_EQ(end(2), kLostJobStatus);
  EXPECT_EQ(said(0), "fsdp: " + stopped(1) + "\n");
  // It ends when it can, and has nothing to add.
  send(1, SIGCONT);
  EXPECT_EQ(end(1), kLostJobStatus);
  EXPECT_EQ(said(1) + said(2), "");
}

TEST_F(MonitorOf, AFirstRankThatIsStopped) {
  start({stop, stay}, /*silence=*/1);
  EXPECT_EQ(end(1), kLostJobStatus);
  EXPECT_EQ(said(1), "fsdp: " + stopped(0) + "\n");
  send(0, SIGCONT);
  EXPECT_NE(end(0), 0);
}

TEST_F(MonitorOf, ARankThatIsStoppedOnThisMachine) {
  start({stay, stop, stay}, /*silence=*/1, Pages);
  EXPECT_EQ(end(0), kLostJobStatus);
  EXPECT_EQ(said(0), "fsdp: -1: " + stopped(1) + "\n");
  EXPECT_EQ(said(2), "");
}

// The next one that runs says it.
TEST_F(MonitorOf, TheFirstRanksAreStoppedOnThisMachine) {
  start({stop, stop, stay, stay}, /*silence=*/1, Pages);
  EXPECT_EQ(end(2), kLostJobStatus);
  EXPECT_EQ(said(2), "fsdp: -1: " + stopped(0) + "\n");
  EXPECT_EQ(said(3), "");
}

// A machine that sleeps stops all of them, for longer than the limit.
TEST_F(MonitorOf, AJobThatWasSuspendedGoesOn) {
  for (Transport transport : {Sockets, Pages}) {
    start({later(leave), later(leave)}, /*silence=*/1, transport);
    usleep(4 * 50 * 1000); // some heartbeats
    for (size_t r : {0, 1}) {
      send(r, SIGSTOP);
      waitUntilStopped(r);
    }
    usleep(1500 * 1000);
    for (size_t r : {0, 1})
      send(r, SIGCONT);
    for (size_t r : {0, 1})
      release(r);
    EXPECT_EQ(end(0), 0);
    EXPECT_EQ(end(1), 0);
    EXPECT_EQ(said(0) + said(1), "");
  }
}

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

TEST_F(MonitorOf, TheFirstRankSpeaksForAll) {
  start({stay, stay, failing("the network is gone")});
  for (size_t r = 0; r < 3; ++r)
    EXPECT_EQ(end(r), kLostJobStatus);
  EXPECT_EQ(said(0), "fsdp: rank 2: the network is gone\n");
  EXPECT_EQ(said(1) + said(2), "");
}

TEST_F(MonitorOf, TheFirstRankSpeaksForAllOnThisMachine) {
  start({stay, failing("the network is gone"), failing("it is gone")}, 60,
        Pages);
  EXPECT_EQ(end(0), kLostJobStatus);
  std::string all = said(0);
  EXPECT_TRUE(all == "fsdp: 1: the network is gone\n" ||
              all == "fsdp: 2: it is gone\n")
      << all;
  EXPECT_EQ(said(1) + said(2), "");
}

// An end is the cause of what others notice, whoever is first.
TEST_F(MonitorOf, AnEndComesBeforeWhatItCauses) {
  start({stay, failing("lost the connection"), [](LivenessMonitor &) {
           usleep(100 * 1000);
           _exit(9);
         }});
  EXPECT_EQ(end(0), kLostJobStatus);
  EXPECT_EQ(said(0), "fsdp: " + lost(2) + "\n");
}

TEST_F(MonitorOf, AStageHasALimit) {
  start({stay, [](LivenessMonitor &monitor) {
           {
             StageLimit before(&monitor, "what ends", 1e-3);
           }
           StageLimit stage(&monitor, "the making of communicators", 0.25);
           stay(monitor);
         }});
  EXPECT_EQ(end(0), kLostJobStatus);
  EXPECT_EQ(end(1), kLostJobStatus);
  EXPECT_EQ(said(0) + said(1),
            "fsdp: rank 1: the making of communicators has not ended within "
            "0.25 s (FSDP_TIMEOUT sets the limit)\n");
}

TEST_F(MonitorOf, TheContextIsAsked) {
  start({probed(kInside, "", 0.5),
         probed(ProgressCounter::after(kInside) - 2, "", 0.5)});
  EXPECT_EQ(end(0), kLostJobStatus);
  EXPECT_EQ(end(1), kLostJobStatus);
  std::string in = std::string("in ") + kCollective;
  EXPECT_EQ(said(0).find(std::string("fsdp: rank 0: ") + kCollective +
                         " on stream gather has not ended within 0.5 s "
                         "(FSDP_TIMEOUT sets the limit); rank 1 has not "
                         "arrived; last collectives, at the last heartbeats: "
                         "rank 1: "),
            0u)
      << said(0);
  EXPECT_NE(said(0).find("; rank 0: " + in + "\n"), std::string::npos)
      << said(0);
  start({probed(kInside, "", 0), probed(0, "an error of NCCL", 0)});
  EXPECT_EQ(end(0), kLostJobStatus);
  EXPECT_EQ(end(1), kLostJobStatus);
  EXPECT_EQ(said(0) + said(1),
            "fsdp: rank 1: an error of NCCL; rank 0 waits in " +
                std::string(kCollective) +
                " on stream gather; rank 1 has not arrived; last collectives, "
                "at the last heartbeats: rank 1: none so far; rank 0: " +
                in + "\n");
}

// Rank 0 told the backup where all are.
TEST_F(MonitorOf, TheBackupKnowsWhereTheFirstRankWas) {
  start({probed(kInside, "", 0), probed(kInside, "", 0)}, /*silence=*/1);
  usleep(500 * 1000); // some heartbeats
  send(0, SIGSTOP);
  EXPECT_EQ(end(1), kLostJobStatus);
  EXPECT_EQ(said(1),
            "fsdp: " + stopped(0) + "; rank 1 waits for rank 0 in " +
                kCollective +
                " on stream gather; last collectives, at the last heartbeats: "
                "ranks 0, 1: in " +
                kCollective + "\n");
}

TEST(Host, ThePartOfANameIsAnotherMachine) {
  std::string name = thisHost();
  EXPECT_EQ(name, hostName().substr(0, kHostCharacters));
  EXPECT_TRUE(isThisHost(name));
  EXPECT_FALSE(isThisHost(name.substr(0, name.size() - 1)));
  EXPECT_FALSE(isThisHost(""));
}
