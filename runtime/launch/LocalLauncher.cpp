//===- LocalLauncher.cpp - Ranks on this machine --------------------------===//
//
// The ranks get torchrun's variables. Those on CPUs inherit memory where they
// meet, and nothing listens. Those on GPUs meet at a socket that is open before
// the first of them starts, so that nobody else can take its port and nobody
// comes too early.
//
//===----------------------------------------------------------------------===//
#include "RunningJob.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Support/Error.h"
#include "runtime/rendezvous/Board.h"
#include "runtime/rendezvous/Rendezvous.h"
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <sys/prctl.h>
#include <unistd.h>
#include <utility>

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

/// The rank ends with its launcher, however that is ended and whatever the rank
/// does: even one that is stopped.
static void endWith(pid_t launcher) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) // it was killed before
    _exit(1);
}

namespace {

/// Where the ranks of a job meet: one of both.
struct Place {
  int board = -1;
  Listener listener;

  Place() = default;
  Place(const Place &) = delete;
  Place &operator=(const Place &) = delete;
  ~Place() { close(); }
  void close() {
    if (board >= 0)
      ::close(std::exchange(board, -1));
    listener.close();
  }
};

} // namespace

/// Sets what all ranks are told of it.
static void makePlace(const LocalJob &job, Place &place) {
  const char *const here = "127.0.0.1";
  set("MASTER_ADDR", here);
  for (const char *name : {kListenerVariable, kBoardVariable})
    unsetenv(name);
  if (job.target.isHost) {
    place.board = Board::create(job.ranks);
    set(kBoardVariable, std::to_string(place.board));
    return;
  }
  place.listener = listenAt(here, 0);
  set(kPortVariable, std::to_string(place.listener.port));
  set(kJobVariable, newJobName());
}

/// Runs in the child; never returns.
[[noreturn]] static void becomeRank(const LocalJob &job, int rank,
                                    pid_t launcher, const Place &place) {
  endWith(launcher);
  // What a terminal or a batch system sends to the launcher's group, ranks hear
  // from the launcher, once.
  setpgid(0, 0);
  for (const char *name : {"RANK", "LOCAL_RANK"})
    set(name, std::to_string(rank));
  for (const char *name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"})
    set(name, std::to_string(job.ranks));
  set(kLauncherVariable, std::to_string(launcher));
  // What stays open for the rank's program.
  if (place.board >= 0)
    fcntl(place.board, F_SETFD, 0);
  if (rank == 0 && place.listener.socket >= 0) {
    fcntl(place.listener.socket, F_SETFD, 0);
    set(kListenerVariable, std::to_string(place.listener.socket));
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

JobEnd rt::runLocalRanks(const LocalJob &job) {
  if (job.target.isHost && !wantsSharedMemory())
    throw Error("environment: with FSDP_SHARED_MEMORY = 0 ranks on CPUs send "
                "messages, for which MPI starts them: type 'mpirun -n " +
                std::to_string(job.ranks) + " fsdp-run …' without -n");
  openStandardStreams();
  Place place;
  makePlace(job, place);
  RunningJob running(job.graceSeconds, job.target.endSeconds);
  pid_t self = getpid();
  for (int rank = 0; rank < job.ranks; ++rank)
    running.start("rank " + std::to_string(rank),
                  [&] { becomeRank(job, rank, self, place); });
  place.close();
  return running.wait();
}
