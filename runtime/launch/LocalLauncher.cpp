//===- LocalLauncher.cpp - Ranks on this machine --------------------------===//
//
// mpirun refuses to run as root, to start more ranks than cores, and binds
// each rank to one core whatever its threads: all of it is told here, so that
// `-n 2` simply works. Settings that are already in the environment win.
//
//===----------------------------------------------------------------------===//
#include "JobOutput.h"
#include "JobResources.h"
#include "OutputRelay.h"
#include "RankWatch.h"
#include "fsdp/Runtime/Launch.h"
#include "fsdp/Runtime/Variables.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Signals.h"
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
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

/// What mpirun does well when a terminal sends it to the whole job.
static bool endsMpirunWell(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
}

/// mpirun ends the job at some signals even if it inherits that they are
/// ignored, and dies of others or hands them to the ranks. What is blocked does
/// not reach it; the ranks start unblocked.
static void blockSignals() {
  sigset_t blocked;
  sigemptyset(&blocked);
  for (int signal : kStopSignals)
    if (isIgnored(signal) || !endsMpirunWell(signal))
      sigaddset(&blocked, signal);
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
}

/// Runs in the child; never returns.
[[noreturn]] static void becomeMpirun(int ranks, int threads,
                                      const JobFolders &folders,
                                      const std::vector<std::string> &args) {
  // The job ends with us, even if we are killed.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  blockSignals();
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
  bool hasIt = info->si_code == SI_KERNEL && endsMpirunWell(signal);
  if (launcherProcess > 0 && !hasIt)
    kill(launcherProcess, signal == SIGINT ? SIGINT : SIGTERM);
}

static void handleSignals() {
  struct sigaction action{};
  action.sa_sigaction = forwardSignal;
  action.sa_flags = SA_SIGINFO; // without SA_RESTART: poll returns at once
  for (int signal : kStopSignals)
    if (!isIgnored(signal))
      sigaction(signal, &action, nullptr);
}

/// Writing to a reader that has gone becomes an error. Returns whether it was
/// one already.
static bool ignoreBrokenPipes() {
  bool wasIgnored = isIgnored(SIGPIPE);
  std::signal(SIGPIPE, SIG_IGN);
  return wasIgnored;
}

//===----------------------------------------------------------------------===//
// A running job
//===----------------------------------------------------------------------===//

namespace {

using Clock = std::chrono::steady_clock;

/// mpirun and its ranks, from the start to the end of mpirun.
class RunningJob {
public:
  /// Takes the read ends of mpirun's streams. `endsWithReader`: the job is not
  /// to outlive the reader of its output.
  RunningJob(pid_t mpirun, int errors, int prints, bool endsWithReader)
      : mpirun(mpirun), errors(errors), relay(prints, STDOUT_FILENO),
        endsWithReader(endsWithReader), watch(mpirun, heartbeatLimit()) {}

  JobEnd wait();

private:
  int passOn(int milliseconds);
  void readErrors();
  void takeLines();
  bool lostReader() const;
  JobEnd explain(int status) const;
  void lookAfter();
  void endSoon();

  pid_t mpirun;
  int errors; // the read end of mpirun's error stream; -1: it was closed
  OutputRelay relay;
  bool endsWithReader;
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

void RunningJob::readErrors() {
  char buffer[4096];
  ssize_t count = read(errors, buffer, sizeof buffer);
  if (count < 0 && errno == EINTR)
    return;
  if (count <= 0) {
    close(errors);
    errors = -1;
    return;
  }
  unfinished.append(buffer, static_cast<size_t>(count));
  takeLines();
}

/// Handles what mpirun has said and printed, once it has. Returns 0 if it was
/// silent.
int RunningJob::passOn(int milliseconds) {
  pollfd ready[] = {{errors, POLLIN, 0}, relay.awaited()};
  int count = poll(ready, 2, milliseconds);
  if (count <= 0)
    return 0;
  if (ready[0].revents != 0)
    readErrors();
  if (ready[1].revents != 0)
    relay.move();
  return count;
}

bool RunningJob::lostReader() const {
  return endsWithReader && relay.error() == EPIPE;
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
  if (lostReader() && !deadline)
    endSoon();
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

JobEnd RunningJob::explain(int status) const {
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (stopSignal != 0)
    return {128 + stopSignal, stoppedBy(stopSignal)};
  if (lostReader())
    return {128 + SIGPIPE, ""};
  if (!stopped.empty())
    return {code == 0 ? 1 : code, stopped};
  if (WIFSIGNALED(status))
    return {code, "mpirun was ended by signal " +
                      std::to_string(WTERMSIG(status)) + " (" +
                      strsignal(WTERMSIG(status)) +
                      "); the whole job was stopped"};
  if (code != 0)
    return {code, output.failure(code)};
  if (relay.error() != 0)
    return {1, std::string("cannot write standard output: ") +
                   std::strerror(relay.error())};
  return {0, ""};
}

JobEnd RunningJob::wait() {
  int status = 0;
  for (pid_t ended = 0; ended != mpirun;
       ended = waitpid(mpirun, &status, WNOHANG)) {
    passOn(static_cast<int>(watch.period() * 1000));
    lookAfter();
  }
  while (passOn(0) != 0) {
  }
  if (stopSignal == 0)
    relay.finish();
  if (!unfinished.empty()) {
    unfinished += '\n';
    takeLines();
  }
  // Ranks outlive an mpirun that was killed, for a moment.
  watch.killRanks();
  if (errors >= 0)
    close(errors);
  return explain(status);
}

/// Pipes must not take the place of a standard stream that is closed.
static void openStandardStreams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0)
      (void)open("/dev/null", O_RDWR); // the lowest free number is this one
}

/// A pipe that no other program inherits.
static std::array<int, 2> makePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(std::string("cannot start the ranks: ") + std::strerror(errno));
  return {ends[0], ends[1]};
}

JobEnd rt::runLocalRanks(int ranks, int threads,
                         const std::vector<std::string> &args) {
  openStandardStreams();
  allowOpenFiles(ranks);
  checkFileSize();
  JobFolders folders = makeJobFolders(ranks);
  auto [errors, errorsIn] = makePipe();
  auto [prints, printsIn] = makePipe();
  std::fflush(nullptr);
  handleSignals();
  pid_t child = fork();
  if (child < 0)
    throw Error(std::string("cannot start the ranks: ") + std::strerror(errno));
  if (child == 0) {
    dup2(printsIn, STDOUT_FILENO);
    dup2(errorsIn, STDERR_FILENO);
    becomeMpirun(ranks, threads, folders, args);
  }
  close(errorsIn);
  close(printsIn);
  launcherProcess = child;
  if (stopSignal != 0) // it came before there was somebody to tell
    kill(child, SIGTERM);
  bool endsWithReader = !ignoreBrokenPipes();
  JobEnd end = RunningJob(child, errors, prints, endsWithReader).wait();
  launcherProcess = 0;
  return end;
}
