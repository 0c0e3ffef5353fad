//===- LocalLauncher.cpp - Ranks on this machine --------------------------===//
//
// mpirun refuses to run as root, to start more ranks than cores, and binds
// each rank to one core whatever its threads: all of it is told here, so that
// `-n 2` simply works. Settings that are already in the environment win.
//
//===----------------------------------------------------------------------===//
#include "JobOutput.h"
#include "JobResources.h"
#include "RankWatch.h"
#include "fsdp/Runtime/Launch.h"
#include "fsdp/Runtime/Variables.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Signals.h"
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
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
  setDefault("OMP_WAIT_POLICY", "passive");
  setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
  setenv(kLauncherVariable, std::to_string(getppid()).c_str(), 1);
}

/// The signals that ask the job to end.
static constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP};

/// mpirun ends the job at these signals even if it inherits that they are
/// ignored. What is blocked does not reach it; the ranks start unblocked.
static void blockIgnoredSignals() {
  sigset_t ignored;
  sigemptyset(&ignored);
  for (int signal : kStops)
    if (isIgnored(signal))
      sigaddset(&ignored, signal);
  sigprocmask(SIG_BLOCK, &ignored, nullptr);
}

/// Runs in the child; never returns.
[[noreturn]] static void becomeMpirun(int ranks, int threads,
                                      const JobFolders &folders,
                                      const std::vector<std::string> &args) {
  // The job ends with us, even if we are killed.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  blockIgnoredSignals();
  setLauncherEnvironment(threads, folders);
  std::vector<std::string> command = {
      "mpirun",
      "-n",
      std::to_string(ranks),
      "--allow-run-as-root",
      "--oversubscribe",
      "--bind-to",
      "none",
      std::filesystem::read_symlink("/proc/self/exe").string()};
  command.insert(command.end(), args.begin(), args.end());
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

//===----------------------------------------------------------------------===//
// Signals
//===----------------------------------------------------------------------===//

/// The running mpirun, for the signal handler.
static volatile pid_t launcherProcess = 0;

/// The signal that asked us to stop, or 0.
static volatile std::sig_atomic_t stopSignal = 0;

static void forwardSignal(int signal, siginfo_t *info, void *) {
  stopSignal = signal;
  // A terminal sends its signals to mpirun too, which takes a second one for
  // impatience and ends without cleaning up.
  if (launcherProcess > 0 && info->si_code != SI_KERNEL)
    kill(launcherProcess, signal == SIGHUP ? SIGTERM : signal);
}

static void handleSignals() {
  struct sigaction action{};
  action.sa_sigaction = forwardSignal;
  action.sa_flags = SA_SIGINFO; // without SA_RESTART: poll returns at once
  for (int signal : kStops)
    if (!isIgnored(signal))
      sigaction(signal, &action, nullptr);
}

//===----------------------------------------------------------------------===//
// A running job
//===----------------------------------------------------------------------===//

namespace {

using Clock = std::chrono::steady_clock;

/// mpirun and its ranks, from the start to the end of mpirun.
class RunningJob {
public:
  RunningJob(pid_t mpirun, int errors)
      : mpirun(mpirun), errors(errors), watch(mpirun, heartbeatLimit()) {}

  JobEnd wait();

private:
  void readErrors(bool mayWait);
  void takeLines();
  void lookAfter();
  void endSoon();

  pid_t mpirun;
  int errors; // the read end of mpirun's error stream; -1: it was closed
  RankWatch watch;
  JobOutput output;
  std::string unfinished; // a line without its end
  std::string stopped;    // what is wrong with a process that was stopped
  std::optional<Clock::time_point> deadline; // of a job that was told to end
  Clock::time_point lastLook = Clock::now();
};

} // namespace

/// Prints what is no diagnostic.
void RunningJob::takeLines() {
  size_t begin = 0;
  for (size_t end; (end = unfinished.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    std::string line = unfinished.substr(begin, end - begin);
    if (output.takeLine(line))
      std::fprintf(stderr, "%s\n", line.c_str());
  }
  unfinished.erase(0, begin);
}

/// Reads what mpirun has said, waiting for it for one period of the watch.
void RunningJob::readErrors(bool mayWait) {
  pollfd ready{errors, POLLIN, 0};
  int wait = mayWait ? static_cast<int>(watch.period() * 1000) : 0;
  while (poll(&ready, 1, wait) > 0 && errors >= 0) {
    char buffer[4096];
    ssize_t count = read(errors, buffer, sizeof buffer);
    if (count <= 0) {
      close(errors);
      errors = -1;
      break;
    }
    unfinished.append(buffer, static_cast<size_t>(count));
    wait = 0;
  }
  takeLines();
}

/// Tells mpirun to end the job. It is given time for that, but not for ever.
void RunningJob::endSoon() {
  kill(mpirun, SIGTERM);
  kill(mpirun, SIGCONT);
  deadline = Clock::now() + std::chrono::seconds(10);
}

void RunningJob::lookAfter() {
  if (stopSignal != 0 && !deadline)
    deadline = Clock::now() + std::chrono::seconds(10);
  if (deadline && Clock::now() > *deadline) {
    watch.killRanks();
    kill(mpirun, SIGKILL);
  }
  if (Clock::now() - lastLook < std::chrono::duration<double>(watch.period()))
    return;
  lastLook = Clock::now();
  std::string problem = watch.look();
  if (stopped.empty() && !problem.empty()) {
    stopped = problem;
    endSoon();
  }
}

JobEnd RunningJob::wait() {
  int status = 0;
  for (pid_t ended = 0; ended != mpirun;
       ended = waitpid(mpirun, &status, WNOHANG)) {
    readErrors(/*mayWait=*/true);
    lookAfter();
  }
  readErrors(/*mayWait=*/false);
  if (!unfinished.empty()) {
    unfinished += '\n';
    takeLines();
  }
  // Ranks outlive an mpirun that was killed, for a moment.
  watch.killRanks();
  if (errors >= 0)
    close(errors);
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (stopSignal != 0)
    return {128 + stopSignal, "stopped by signal " +
                                  std::to_string(int(stopSignal)) + " (" +
                                  strsignal(stopSignal) + ")"};
  if (!stopped.empty())
    return {code == 0 ? 1 : code, stopped};
  if (WIFSIGNALED(status))
    return {code, "mpirun was ended by signal " +
                      std::to_string(WTERMSIG(status)) + " (" +
                      strsignal(WTERMSIG(status)) +
                      "); the whole job was stopped"};
  return {code, code == 0 ? "" : output.failure(code)};
}

JobEnd rt::runLocalRanks(int ranks, int threads,
                         const std::vector<std::string> &args) {
  allowFiles(ranks);
  JobFolders folders = makeJobFolders(ranks);
  int errors[2];
  if (pipe2(errors, O_CLOEXEC) != 0)
    throw Error(std::string("cannot start the ranks: ") + std::strerror(errno));
  std::fflush(nullptr);
  handleSignals();
  pid_t child = fork();
  if (child < 0)
    throw Error(std::string("cannot start the ranks: ") + std::strerror(errno));
  if (child == 0) {
    dup2(errors[1], STDERR_FILENO);
    becomeMpirun(ranks, threads, folders, args);
  }
  close(errors[1]);
  launcherProcess = child;
  JobEnd end = RunningJob(child, errors[0]).wait();
  launcherProcess = 0;
  return end;
}
