//===- DirectLauncher.cpp - Ranks on this machine, without MPI ------------===//
//
// The ranks get torchrun's variables. They meet at a socket that is open before
// the first of them starts, so that nobody else can take its port and nobody
// comes too early.
//
//===----------------------------------------------------------------------===//
#include "Meeting.h"
#include "RunningJob.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Signals.h"
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sys/prctl.h>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;

/// A name that no other job has.
static std::string newJobName() {
  std::random_device random;
  return std::to_string(random()) + "-" + std::to_string(getpid());
}

static void set(const char *name, const std::string &value) {
  setenv(name, value.c_str(), /*overwrite=*/1);
}

/// The rank ends with its launcher, even if that is killed.
static void endWith(pid_t launcher) {
  prctl(PR_SET_PDEATHSIG, isIgnored(SIGTERM) ? SIGKILL : SIGTERM);
  if (getppid() != launcher) // it was killed before
    _exit(1);
}

/// Runs in the child; never returns.
[[noreturn]] static void becomeRank(const LocalJob &job, int rank,
                                    pid_t launcher, const Listener &listener) {
  endWith(launcher);
  for (const char *name : {"RANK", "LOCAL_RANK"})
    set(name, std::to_string(rank));
  for (const char *name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"})
    set(name, std::to_string(job.ranks));
  set(kLauncherVariable, std::to_string(launcher));
  if (rank == 0) {
    fcntl(listener.socket, F_SETFD, 0); // stays open for the rank's program
    set(kListenerVariable, std::to_string(listener.socket));
  }
  setThreadEnvironment(job.threads);
  std::vector<std::string> command = job.command;
  std::vector<char *> argv;
  for (std::string &argument : command)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  std::fprintf(stderr, "fsdp: cannot start %s: %s\n", argv[0],
               std::strerror(errno));
  _exit(127);
}

JobEnd rt::runRanksDirectly(const LocalJob &job) {
  openStandardStreams();
  const char *const here = "127.0.0.1";
  Listener listener = listenAt(here, 0);
  set("MASTER_ADDR", here);
  set(kPortVariable, std::to_string(listener.port));
  set(kJobVariable, newJobName());
  unsetenv(kListenerVariable);
  RunningJob running(job.graceSeconds);
  pid_t self = getpid();
  for (int rank = 0; rank < job.ranks; ++rank)
    running.start("rank " + std::to_string(rank),
                  [&] { becomeRank(job, rank, self, listener); });
  listener.close();
  return running.wait();
}
