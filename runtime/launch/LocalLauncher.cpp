//===- LocalLauncher.cpp - Ranks on this machine --------------------------===//
//
// mpirun refuses to run as root, to start more ranks than cores, and binds
// each rank to one core whatever its threads: all of it is told here, so that
// `-n 2` simply works. Settings that are already in the environment win.
//
//===----------------------------------------------------------------------===//
#include "JobOutput.h"
#include "fsdp/Runtime/Launch.h"
#include "fsdp/Support/Error.h"
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

namespace {

/// A folder for mpirun's session. mpirun makes and removes a folder that all
/// jobs of a user share, and fails when two of them start or end at once.
class SessionFolder {
public:
  SessionFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "fsdp-run-XXXXXX").string();
    if (mkdtemp(pattern.data()))
      path = pattern;
  }
  ~SessionFolder() {
    std::error_code ignored;
    if (!path.empty())
      std::filesystem::remove_all(path, ignored);
  }
  std::string path; // empty if it could not be made
};

} // namespace

static void setDefault(const char *name, const std::string &value) {
  setenv(name, value.c_str(), /*overwrite=*/0);
}

static void setLauncherEnvironment(int threads, const SessionFolder &session) {
  if (!session.path.empty())
    setDefault("OMPI_MCA_orte_tmpdir_base", session.path);
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
}

/// Runs in the child; never returns.
[[noreturn]] static void becomeMpirun(int ranks, int threads,
                                      const SessionFolder &session,
                                      const std::vector<std::string> &args) {
  // The job ends with us, even if we are killed.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  setLauncherEnvironment(threads, session);
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

/// The running mpirun, for the signal handler.
static volatile pid_t launcherProcess = 0;

/// The signal that asked us to stop, or 0.
static volatile std::sig_atomic_t stopSignal = 0;

static void forwardSignal(int signal) {
  stopSignal = signal;
  if (launcherProcess > 0)
    kill(launcherProcess, signal);
}

static void filterErrors(int pipe, JobOutput &output) {
  std::FILE *stream = fdopen(pipe, "r");
  char *line = nullptr;
  size_t capacity = 0;
  ssize_t length;
  while ((length = getline(&line, &capacity, stream)) >= 0) {
    std::string text(line, static_cast<size_t>(length));
    if (!text.empty() && text.back() == '\n')
      text.pop_back();
    if (output.takeLine(text))
      std::fprintf(stderr, "%s\n", text.c_str());
  }
  std::free(line);
  std::fclose(stream);
}

static int waitForExit(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR)
    continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int rt::runLocalRanks(int ranks, int threads,
                      const std::vector<std::string> &args) {
  SessionFolder session;
  int errors[2];
  if (pipe(errors) != 0)
    throw Error(std::string("cannot start the ranks: ") + std::strerror(errno));
  std::fflush(nullptr);
  pid_t child = fork();
  if (child < 0)
    throw Error(std::string("cannot start the ranks: ") + std::strerror(errno));
  if (child == 0) {
    dup2(errors[1], STDERR_FILENO);
    close(errors[0]);
    close(errors[1]);
    becomeMpirun(ranks, threads, session, args);
  }
  close(errors[1]);
  launcherProcess = child;
  std::signal(SIGINT, forwardSignal);
  std::signal(SIGTERM, forwardSignal);
  JobOutput output;
  filterErrors(errors[0], output);
  int status = waitForExit(child);
  launcherProcess = 0;
  if (stopSignal != 0) {
    std::fprintf(stderr, "fsdp-run: stopped by signal %d (%s)\n",
                 int(stopSignal), strsignal(stopSignal));
    return 128 + stopSignal;
  }
  if (status != 0)
    std::fprintf(stderr, "fsdp-run: %s\n", output.failure(status).c_str());
  return status;
}
