//===- LocalLaunchTest.cpp - Ranks that are children of fsdp-run ----------===//
//
// The ranks are shells. The launcher runs in a process of its own, because it
// handles signals and reaps children.
//
//===----------------------------------------------------------------------===//
#include "TemporaryFolder.h"
#include "fsdp/Launch/Launch.h"
#include "fsdp/Support/AtomicFile.h"
#include "runtime/liveness/ProcessState.h"
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

namespace {

bool waitUntil(const std::function<bool()> &isDone) {
  for (int i = 0; i < 6000; ++i) {
    if (isDone())
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class LocalLaunch : public testing::Test {
protected:
  /// Starts a launcher of `ranks` shells that run `script`. It begins when
  /// `begin` has something to read, at once if that is none.
  void start(int ranks, const std::string &script, int begin = -1) {
    std::fflush(stdout); // what gtest has said is not the ranks'
    launcher = fork();
    ASSERT_GE(launcher, 0);
    if (launcher != 0)
      return;
    char byte;
    if (begin >= 0 && read(begin, &byte, 1) != 1)
      _exit(98);
    for (int signal : {SIGTERM, SIGINT, SIGHUP})
      std::signal(signal, SIG_DFL);
    redirect("out", STDOUT_FILENO);
    redirect("err", STDERR_FILENO);
    JobEnd end{99, ""};
    try {
      end = runLocalRanks(
          {target,
           ranks,
           1,
           {"/bin/sh", "-c", "cd '" + folder.path + "'\n" + script}});
    } catch (const std::exception &error) {
      end.message = error.what();
    }
    folder.write("message", end.message);
    _exit(end.status);
  }
  /// Waits for its end and returns its status.
  int end() {
    int status = 0;
    EXPECT_EQ(waitpid(launcher, &status, 0), launcher);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string text(const std::string &name) {
    return readWholeFile(folder.file(name), "the test's file");
  }
  bool exists(const std::string &name) {
    return std::filesystem::exists(folder.file(name));
  }
  /// One that nobody has waited for yet runs no more.
  static bool hasEnded(int pid) {
    char state = processState(pid).state;
    return state == 0 || state == 'Z';
  }
  /// Whether the ranks, which write their numbers to pid.RANK, have ended.
  bool haveEnded(int ranks) {
    for (int rank = 0; rank < ranks; ++rank)
      if (!hasEnded(std::stoi(text("pid." + std::to_string(rank)))))
        return false;
    return true;
  }
  bool haveStarted(int ranks) {
    for (int rank = 0; rank < ranks; ++rank)
      if (!exists("pid." + std::to_string(rank)))
        return false;
    return true;
  }

  TemporaryFolder folder;
  pid_t launcher = -1;
  Target target = kCudaTarget;

private:
  void redirect(const char *name, int stream) {
    int file = open(folder.file(name).c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(file, stream);
    close(file);
  }
};

/// A rank that writes its number of process, under its final name at once, and
/// stays. `exec`: there is no second process.
const char *const kStay = "echo $$ > part.$RANK\n"
                          "mv part.$RANK pid.$RANK\n"
                          "exec sleep 600\n";

} // namespace

TEST_F(LocalLaunch, RanksKnowTheirPlace) {
  start(3, "test -n \"$FSDP_JOB\" && test \"$FSDP_PORT\" -gt 0 || exit 9\n"
           "test $RANK = 0 || test -z \"$FSDP_LISTENER\" || exit 8\n"
           "test $RANK != 0 || test -S /proc/self/fd/$FSDP_LISTENER || exit 7\n"
           "echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE at "
           "$MASTER_ADDR > out.$RANK\n"
           "test $RANK = 2 && echo all is well\n"
           "echo a warning >&2\n"
           "exit 0");
  EXPECT_EQ(end(), 0);
  EXPECT_EQ(text("message"), "");
  for (int rank = 0; rank < 3; ++rank) {
    std::string number = std::to_string(rank);
    EXPECT_EQ(text("out." + number),
              number + " of 3, " + number + " of 3 at 127.0.0.1\n");
  }
  EXPECT_EQ(text("out"), "all is well\n");
  EXPECT_EQ(text("err"), "a warning\na warning\na warning\n");
}

// Ranks on CPUs inherit memory, and no socket.
TEST_F(LocalLaunch, RanksOnCpusHaveABoard) {
  target = kCpuTarget;
  start(2,
        "test -z \"$FSDP_LISTENER\" || exit 9\n"
        "test $(stat -L -c %s /proc/self/fd/$FSDP_BOARD) = 131072 || exit 8\n"
        "ls -l /proc/self/fd | grep -q socket: && exit 7\n"
        "exit 0");
  EXPECT_EQ(end(), 0) << text("err");
}

// One message, that of the cause; nobody is left.
TEST_F(LocalLaunch, ALostRankEndsTheJob) {
  start(3, "test $RANK = 1 || { echo $$ > part.$RANK; mv part.$RANK pid.$RANK; "
           "exec sleep 600; }\n"
           "until test -e pid.0 && test -e pid.2; do sleep 0.01; done\n"
           "echo $$ > pid.1\n"
           "kill -9 $$");
  EXPECT_EQ(end(), 128 + SIGKILL);
  EXPECT_EQ(text("message"), "rank 1 was ended by signal 9 (Killed); the whole "
                             "job was stopped");
  EXPECT_TRUE(haveEnded(3));
}

TEST_F(LocalLaunch, AFailingRankSaysWhy) {
  start(2, "test $RANK = 1 || { echo $$ > part.$RANK; mv part.$RANK pid.$RANK; "
           "exec sleep 600; }\n"
           "until test -e pid.0; do sleep 0.01; done\n"
           "echo $$ > pid.1\n"
           "echo fsdp: rank 1: the text is gone >&2\n"
           "exit 3");
  EXPECT_EQ(end(), 3);
  EXPECT_EQ(text("message"), "rank 1: the text is gone");
  EXPECT_EQ(text("err"), "");
  EXPECT_TRUE(haveEnded(2));
}

TEST_F(LocalLaunch, SignalsReachTheRanks) {
  start(2, kStay);
  ASSERT_TRUE(waitUntil([&] { return haveStarted(2); }));
  kill(launcher, SIGTERM);
  EXPECT_EQ(end(), 128 + SIGTERM);
  EXPECT_EQ(text("message"), "stopped by signal 15 (Terminated)");
  EXPECT_TRUE(haveEnded(2));
}

// Whatever they do: one ignores signals, the other is stopped.
TEST_F(LocalLaunch, NoRankOutlivesItsLauncher) {
  start(2,
        std::string("test $RANK = 1 && trap '' TERM HUP INT QUIT\n") + kStay);
  ASSERT_TRUE(waitUntil([&] { return haveStarted(2); }));
  kill(std::stoi(text("pid.0")), SIGSTOP);
  kill(launcher, SIGKILL);
  EXPECT_EQ(end(), -SIGKILL);
  EXPECT_TRUE(waitUntil([&] { return haveEnded(2); }));
}

TEST_F(LocalLaunch, AStoppedRankIsNoticed) {
  setenv("FSDP_HEARTBEAT", "0.5", 1);
  start(2, kStay);
  unsetenv("FSDP_HEARTBEAT");
  ASSERT_TRUE(waitUntil([&] { return haveStarted(2); }));
  kill(std::stoi(text("pid.1")), SIGSTOP);
  EXPECT_EQ(end(), 128 + SIGTERM);
  EXPECT_EQ(text("message").find("rank 1 (process "), 0u) << text("message");
  EXPECT_NE(text("message").find(" has been stopped for 0.5 s"),
            std::string::npos);
  EXPECT_TRUE(haveEnded(2));
}

// Killed between the fork of a rank and its program, of which this process sees
// both: the rank ends before it begins.
TEST_F(LocalLaunch, ALauncherThatIsKilledAtAFork) {
  int gate[2], status = 0;
  ASSERT_EQ(pipe(gate), 0);
  start(1, kStay, gate[0]);
  if (ptrace(PTRACE_SEIZE, launcher, nullptr, PTRACE_O_TRACEFORK) != 0) {
    kill(launcher, SIGKILL);
    waitpid(launcher, &status, 0);
    GTEST_SKIP() << "this system does not let a process trace another";
  }
  ASSERT_EQ(write(gate[1], "x", 1), 1);
  ASSERT_EQ(waitpid(launcher, &status, 0), launcher);
  ASSERT_EQ(status >> 8, SIGTRAP | PTRACE_EVENT_FORK << 8);
  unsigned long rank = 0;
  ASSERT_EQ(ptrace(PTRACE_GETEVENTMSG, launcher, nullptr, &rank), 0);
  kill(launcher, SIGKILL);
  ASSERT_EQ(end(), -SIGKILL);
  ASSERT_EQ(waitpid(pid_t(rank), &status, __WALL), pid_t(rank));
  ptrace(PTRACE_DETACH, pid_t(rank), nullptr, nullptr);
  EXPECT_TRUE(waitUntil([&] { return hasEnded(int(rank)); }));
  EXPECT_FALSE(exists("pid.0"));
  close(gate[0]);
  close(gate[1]);
}

TEST_F(LocalLaunch, AProgramThatIsNone) {
  launcher = fork();
  if (launcher == 0) {
    JobEnd end = runLocalRanks({kCpuTarget, 2, 1, {folder.file("nothing")}});
    folder.write("message", end.message);
    _exit(end.status);
  }
  EXPECT_EQ(end(), 127);
  EXPECT_EQ(text("message"), "cannot start " + folder.file("nothing") +
                                 ": No such file or directory");
}
