//===- MpiLauncher.cpp - Ranks on this machine, by mpirun -----------------===//
//
// mpirun refuses to run as root, to start more ranks than cores, and binds
// each rank to one core whatever its threads: all of it is told here, so that
// `-n 2` simply works. Settings that are already in the environment win.
//
//===----------------------------------------------------------------------===//
#include "JobResources.h"
#include "RunningJob.h"
#include "fsdp/Support/Signals.h"
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;

/// Whether a process may read another's memory, which Open MPI's single copy
/// needs and containers often forbid. Tried rather than guessed: a child
/// reads one word of ours.
static bool maySingleCopy() {
  static volatile int word = 42;
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  pid_t parent = getpid();
  pid_t child = fork();
  if (child == 0) {
    int copy = 0;
    iovec local{&copy, sizeof copy};
    iovec remote{const_cast<int *>(&word), sizeof word};
    bool read = process_vm_readv(parent, &local, 1, &remote, 1, 0) ==
                static_cast<ssize_t>(sizeof copy);
    _exit(read ? 0 : 1);
  }
  int status = 1;
  if (child > 0)
    waitpid(child, &status, 0);
  return status == 0;
}

static void setDefault(const char *name, const std::string &value) {
  setenv(name, value.c_str(), /*overwrite=*/0);
}

static void setLauncherEnvironment(int threads, const JobFolders &folders) {
  setDefault("OMPI_MCA_orte_tmpdir_base", folders.session->path());
  if (folders.messages)
    setDefault(kMessageFolder, folders.messages->path());
  // Ranks and communication threads share the cores.
  setDefault("OMPI_MCA_mpi_yield_when_idle", "1");
  if (!maySingleCopy())
    setDefault("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
  // Only this machine: shared memory, no network or cluster is looked for.
  setDefault("OMPI_MCA_pml", "ob1");
  setDefault("OMPI_MCA_btl", "self,vader");
  setDefault("OMPI_MCA_plm", "isolated");
  setDefault("OMPI_MCA_ras", "^slurm,gridengine");
  setThreadEnvironment(threads);
  setenv(kLauncherVariable, std::to_string(getppid()).c_str(), 1);
}

/// mpirun ends the job at some signals even if it inherits that they are
/// ignored, and dies of others or hands them to the ranks. What is blocked does
/// not reach it; the ranks start unblocked. While ranks save, mpirun has to
/// live on, and the launcher sees what waits for it (RankWatch).
static void blockSignals(bool ranksSave) {
  sigset_t blocked;
  sigemptyset(&blocked);
  for (int signal : kStopSignals)
    if (ranksSave || isIgnored(signal) || !endsJobWell(signal))
      sigaddset(&blocked, signal);
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
}

/// Runs in the child; never returns.
[[noreturn]] static void becomeMpirun(const LocalJob &job,
                                      const JobFolders &folders) {
  // The job ends with us, even if we are killed.
  bool ranksSave = job.graceSeconds > 0;
  prctl(PR_SET_PDEATHSIG, ranksSave ? SIGKILL : SIGTERM);
  blockSignals(ranksSave);
  setLauncherEnvironment(job.threads, folders);
  std::vector<std::string> command = {"mpirun",
                                      "-n",
                                      std::to_string(job.ranks),
                                      "--allow-run-as-root",
                                      "--oversubscribe",
                                      "--bind-to",
                                      "none"};
  command.insert(command.end(), job.command.begin(), job.command.end());
  std::vector<char *> argv;
  for (std::string &argument : command)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  // Debian's name for Open MPI's launcher, in case MPICH is there too.
  execvp("mpirun.openmpi", argv.data());
  execvp("mpirun", argv.data());
  std::fprintf(stderr,
               "fsdp: cannot start mpirun (%s); Debian's package is "
               "openmpi-bin\n",
               std::strerror(errno));
  _exit(127);
}

JobEnd rt::runRanksByMpirun(const LocalJob &job) {
  openStandardStreams();
  // Measured with Open MPI 4.1: 36 for 2 ranks, 64 for 8. With a few less,
  // mpirun hangs.
  allowOpenFiles(32 + 6 * static_cast<uint64_t>(job.ranks),
                 std::to_string(job.ranks) + " ranks need");
  checkFileSize();
  JobFolders folders = makeJobFolders(job.ranks);
  RunningJob running(job.graceSeconds);
  running.start("mpirun", [&] { becomeMpirun(job, folders); });
  return running.wait();
}
