//===- LivenessMonitorTest.cpp - Whether the ranks of a job live -------------------===//
//
// Every rank is a process of its own, for it ends with the job.
//
//===----------------------------------------------------------------------===//
#include "runtime/liveness/Health.h"
#include "TemporaryFolder.h"
#include "fsdp/Rendezvous/Environment.h"
#include "fsdp/Support/AtomicFile.h"
#include "runtime/liveness/ProcessState.h"
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

namespace {

/// Reports the same at every beat and finds one problem.
class Subject : public HealthSubject {
public:
  std::string own, wrong, verdict, where;
  std::string report() override { return own; }
  std::string problem() override { return wrong; }
  std::string judge(const RankReports &reports) override {
    return reports.texts[1] == "stuck" ? verdict : "";
  }
  std::string whereRanksWait(const RankReports &) override { return where; }
  void abandon() override {}
};

class HealthOf : public testing::Test {
protected:
  using Body = std::function<void(Health &)>;

  /// Starts a rank for each of `bodies`; one that returns leaves the job and
  /// ends with status 0.
  void start(const std::vector<Body> &bodies, double silence = 60,
             useconds_t firstIsLate = 0) {
    size_t size = bodies.size();
    std::vector<int> first(size, -1), others(size, -1);
    for (size_t r = 1; r < size; ++r) {
      int ends[2];
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      first[r] = ends[0];
      others[r] = ends[1];
    }
    for (size_t r = 0; r < size; ++r) {
      ranks.push_back(fork());
      if (ranks.back() != 0)
        continue;
      // No rank has another's ends.
      for (size_t other = 1; other < size; ++other) {
        if (r != 0)
          close(first[other]);
        if (r != other)
          close(others[other]);
      }
      int file = open(folder.file("said." + std::to_string(r)).c_str(),
                      O_WRONLY | O_CREAT, 0600);
      dup2(file, STDERR_FILENO);
      if (r == 0)
        usleep(firstIsLate);
      {
        Health health(int(r), int(size),
                      r == 0 ? first : std::vector<int>{others[r]},
                      {silence, 0.05});
        bodies[r](health);
      }
      _exit(0);
    }
    for (size_t r = 1; r < size; ++r) {
      close(first[r]);
      close(others[r]);
    }
  }
  int end(size_t rank) {
    int status = 0;
    EXPECT_EQ(waitpid(ranks.at(rank), &status, 0), ranks.at(rank));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string said(size_t rank) {
    return readWholeFile(folder.file("said." + std::to_string(rank)), "said");
  }
  /// "(process N on HOST)"
  std::string process(size_t rank) {
    return "(process " + std::to_string(ranks.at(rank)) + " on " + hostName() +
           ")";
  }

  TemporaryFolder folder;
  std::vector<pid_t> ranks;
};

void stay(Health &) {
  for (;;)
    pause();
}
void leave(Health &) {}
void leaveLater(Health &) { usleep(300 * 1000); }

} // namespace

TEST_F(HealthOf, LeavingIsNoAlarm) {
  start({leave, leaveLater, leave});
  for (size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(end(r), 0);
    EXPECT_EQ(said(r), "");
  }
}

TEST_F(HealthOf, TheFirstMayLeaveLast) {
  start({leaveLater, leave});
  EXPECT_EQ(end(0), 0);
  EXPECT_EQ(end(1), 0);
  EXPECT_EQ(said(0) + said(1), "");
}

TEST_F(HealthOf, ARankThatEndsWithoutAWord) {
  start({stay, [](Health &) { _exit(9); }, stay});
  EXPECT_EQ(end(1), 9);
  EXPECT_EQ(end(0), kLostJobStatus);
  EXPECT_EQ(end(2), kLostJobStatus);
  EXPECT_EQ(said(0),
            "fsdp: rank 1 " + process(1) + " has ended without a word\n");
  EXPECT_EQ(said(2), "");
}

// Who is ready to leave waits for the others' word.
TEST_F(HealthOf, ARankThatEndsWhileTheFirstLeaves) {
  start({leave,
         [](Health &) {
           usleep(300 * 1000);
           _exit(9);
         },
         leave});
  EXPECT_EQ(end(1), 9);
  EXPECT_EQ(end(0), kLostJobStatus);
  EXPECT_EQ(end(2), 0);
  EXPECT_EQ(said(0),
            "fsdp: rank 1 " + process(1) + " has ended without a word\n");
}

TEST_F(HealthOf, AFirstRankThatEndsWhileAnotherLeaves) {
  start({[](Health &) { raise(SIGSTOP); }, leaveLater});
  usleep(600 * 1000);
  kill(ranks[0], SIGKILL);
  EXPECT_EQ(end(0), -SIGKILL);
  EXPECT_EQ(end(1), kLostJobStatus);
  EXPECT_EQ(said(1),
            "fsdp: rank 0 " + process(0) + " has ended without a word\n");
}

TEST_F(HealthOf, SeveralAreOneMessage) {
  auto die = [](Health &) { _exit(9); };
  start({stay, die, stay, die});
  EXPECT_EQ(end(0), kLostJobStatus);
  EXPECT_EQ(end(2), kLostJobStatus);
  EXPECT_EQ(said(0), "fsdp: rank 1 " + process(1) +
                         " has ended without a word; so has rank 3\n");
  for (size_t r : {1, 3})
    end(r);
}

TEST_F(HealthOf, TheFirstRankIsMissedByOne) {
  auto die = [](Health &) {
    usleep(500 * 1000);
    _exit(9);
  };
  start({die, stay, stay});
  EXPECT_EQ(end(0), 9);
  EXPECT_EQ(end(1), kLostJobStatus);
  EXPECT_EQ(end(2), kLostJobStatus);
  EXPECT_EQ(said(2), "");
  EXPECT_EQ(said(1),
            "fsdp: rank 0 " + process(0) + " has ended without a word\n");
}

TEST_F(HealthOf, ARankThatIsStopped) {
  start({stay, [](Health &) { raise(SIGSTOP); }, stay}, /*silence=*/1);
  EXPECT_EQ(end(0), kLostJobStatus);
  EXPECT_EQ(end(2), kLostJobStatus);
  EXPECT_EQ(said(0), "fsdp: no sign of life from rank 1 " + process(1) +
                         " for 1 s: it is stopped (FSDP_HEARTBEAT sets the "
                         "limit)\n");
  // It ends when it can, and has nothing to add.
  kill(ranks[1], SIGCONT);
  EXPECT_EQ(end(1), kLostJobStatus);
  EXPECT_EQ(said(1) + said(2), "");
}

TEST_F(HealthOf, AFirstRankThatIsStopped) {
  start({[](Health &) { raise(SIGSTOP); }, stay}, /*silence=*/1);
  EXPECT_EQ(end(1), kLostJobStatus);
  EXPECT_EQ(said(1), "fsdp: no sign of life from rank 0 " + process(0) +
                         " for 1 s: it is stopped (FSDP_HEARTBEAT sets the "
                         "limit)\n");
  kill(ranks[0], SIGCONT);
  EXPECT_NE(end(0), 0);
}

// It waits for ranks that are still to come.
TEST_F(HealthOf, AFirstRankThatHasNotBegun) {
  start({leave, leaveLater}, /*silence=*/0.5, /*firstIsLate=*/1500 * 1000);
  EXPECT_EQ(end(0), 0);
  EXPECT_EQ(end(1), 0);
  EXPECT_EQ(said(0) + said(1), "");
}

// Its reason is its own; the connection says no more.
TEST_F(HealthOf, AFirstRankThatNeverBegins) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  close(ends[0]);
  auto alone = [&] {
    Health health(1, 3, {ends[1]}, {60, 0.05});
    stay(health);
  };
  EXPECT_EXIT(alone(), testing::ExitedWithCode(kLostJobStatus),
              "^fsdp: rank 0 has ended while the ranks met\n$");
  close(ends[1]);
}

// A machine that sleeps stops all of them, for longer than the limit.
TEST_F(HealthOf, AJobThatWasSuspendedGoesOn) {
  start({leaveLater, leaveLater}, /*silence=*/1);
  for (pid_t rank : ranks)
    kill(rank, SIGSTOP);
  usleep(1500 * 1000);
  for (pid_t rank : ranks)
    kill(rank, SIGCONT);
  EXPECT_EQ(end(0), 0);
  EXPECT_EQ(end(1), 0);
  EXPECT_EQ(said(0) + said(1), "");
}

// Who ends for a reason that he says himself is no loss.
TEST_F(HealthOf, AnErrorIsSaidOnce) {
  auto fail = [](Health &health) {
    health.claimEnd();
    std::fprintf(stderr, "the text is gone\n");
    health.tellEnd(7);
    _exit(7);
  };
  start({stay, fail, stay});
  for (size_t r = 0; r < 3; ++r)
    EXPECT_EQ(end(r), 7);
  EXPECT_EQ(said(0) + said(1) + said(2), "the text is gone\n");
}

TEST_F(HealthOf, TheFirstRankSpeaksForAll) {
  auto fail = [](Health &health) { health.fail("the network is gone"); };
  start({stay, stay, fail});
  for (size_t r = 0; r < 3; ++r)
    EXPECT_EQ(end(r), kLostJobStatus);
  EXPECT_EQ(said(0), "fsdp: rank 2: the network is gone\n");
  EXPECT_EQ(said(1) + said(2), "");
}

// An end is the cause of what others notice, whoever is first.
TEST_F(HealthOf, AnEndComesBeforeWhatItCauses) {
  auto fail = [](Health &health) { health.fail("lost the connection"); };
  start({stay, fail, [](Health &) {
           usleep(100 * 1000);
           _exit(9);
         }});
  EXPECT_EQ(end(0), kLostJobStatus);
  EXPECT_EQ(said(0),
            "fsdp: rank 2 " + process(2) + " has ended without a word\n");
  end(1);
  end(2);
}

TEST_F(HealthOf, TheSubjectIsAsked) {
  auto ask = [](const char *own, const char *wrong) {
    return [=](Health &health) {
      static Subject subject;
      subject.own = own;
      subject.wrong = wrong;
      subject.verdict = "a collective is stuck";
      subject.where = "; here they wait";
      health.watch(&subject);
      stay(health);
    };
  };
  start({ask("", ""), ask("stuck", "")});
  EXPECT_EQ(end(0), kLostJobStatus);
  EXPECT_EQ(end(1), kLostJobStatus);
  EXPECT_EQ(said(0) + said(1), "fsdp: a collective is stuck\n");
  ranks.clear();
  start({ask("", ""), ask("", "an error of NCCL")});
  EXPECT_EQ(end(0), kLostJobStatus);
  EXPECT_EQ(end(1), kLostJobStatus);
  EXPECT_EQ(said(0) + said(1), "fsdp: rank 1: an error of NCCL; here they "
                               "wait\n");
}

TEST(Host, ThePartOfANameIsAnotherMachine) {
  std::string name = hostName().substr(0, kHostCharacters);
  EXPECT_TRUE(isThisHost(name));
  EXPECT_FALSE(isThisHost(name.substr(0, name.size() - 1)));
  EXPECT_FALSE(isThisHost(""));
}
