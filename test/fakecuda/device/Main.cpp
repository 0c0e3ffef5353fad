//===- Main.cpp - fsdp-fake-device PROGRAM ARGUMENTS... -------------------===//
//
// Starts a job whose processes find the stand-in libraries instead of CUDA's,
// is the device of all of them, and ends with the job. Settings come from the
// environment: see ../README.md.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"
#include "Server.h"
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

using namespace fsdp::fake;

static std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

static std::runtime_error systemError(const char *what) {
  return std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

//===----------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------===//

template <typename T> static void readCount(const char *name, T &count) {
  std::string text = variable(name);
  if (text.empty())
    return;
  const char *end = text.data() + text.size();
  auto result = std::from_chars(text.data(), end, count);
  if (result.ec != std::errc() || result.ptr != end)
    throw std::runtime_error(std::string(name) + "=" + text + " is no count");
}

static Options readOptions() {
  Options options;
  int hangs = 0, isDry = 0;
  readCount("FSDP_FAKECUDA_SEED", options.seed);
  readCount("FSDP_FAKECUDA_THREADS", options.threads);
  readCount("FSDP_FAKECUDA_HANGS", hangs);
  readCount("FSDP_FAKECUDA_DRY", isDry);
  options.hangs = hangs != 0;
  options.isDry = isDry != 0;
  options.tracePrefix = variable("FSDP_FAKECUDA_TRACE");
  options.fault = variable(kFaultVariable);
  std::string policy = variable("FSDP_FAKECUDA_POLICY");
  if (policy == "compute-first")
    options.policy = Options::Policy::ComputeFirst;
  else if (policy == "communication-first")
    options.policy = Options::Policy::CommunicationFirst;
  else if (!policy.empty() && policy != "random")
    throw std::runtime_error(
        "FSDP_FAKECUDA_POLICY=" + policy +
        " is not random, compute-first or communication-first");
  return options;
}

static void loadAllHostBuilds(const std::string &folder) {
  loadHostBuilds(folder + "/libfsdp_fake_runtime_host_builds.so");
  std::string names = variable("FSDP_FAKECUDA_TWINS");
  for (size_t begin = 0, end; begin < names.size(); begin = end + 1) {
    end = std::min(names.find(':', begin), names.size());
    loadHostBuilds(names.substr(begin, end - begin));
  }
}

//===----------------------------------------------------------------------===//
// The job
//===----------------------------------------------------------------------===//

/// Listens at an abstract name, which ends with this process.
static int listenAt(const std::string &name) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path + 1, name.data(), name.size());
  auto size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 ||
      ::bind(listener, reinterpret_cast<sockaddr *>(&at), size) != 0 ||
      ::listen(listener, SOMAXCONN) != 0)
    throw systemError("cannot listen");
  return listener;
}

/// Puts `value` before a list of paths.
static void putFirst(const char *name, const std::string &value) {
  std::string before = variable(name);
  setenv(name, (before.empty() ? value : value + ":" + before).c_str(), 1);
}

static int startJob(char **arguments, const std::string &folder,
                    const std::string &socketName) {
  int parent = ::getpid(), job = ::fork();
  if (job != 0)
    return job;
  // The job does not outlive its device.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent)
    ::_exit(1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setenv(kSocketVariable, socketName.c_str(), 1);
  putFirst("LD_LIBRARY_PATH", folder);
  putFirst("LD_PRELOAD", folder + "/libfsdp_fake_attention.so");
  ::execvp(arguments[0], arguments);
  std::fprintf(stderr, "fsdp-fake-device: cannot start %s: %s\n", arguments[0],
               std::strerror(errno));
  ::_exit(127);
}

/// Signals of the job's life come through a file.
static int takeSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP})
    sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return ::signalfd(-1, &set, SFD_CLOEXEC);
}

static int serve(char **arguments) {
  Options options = readOptions();
  std::string folder =
      std::filesystem::read_symlink("/proc/self/exe").parent_path();
  loadAllHostBuilds(folder);
  std::random_device entropy;
  std::string name = "fsdp-fakecuda-" + std::to_string(::getpid()) + "-" +
                     std::to_string(entropy());
  int listener = listenAt(name), signals = takeSignals();
  int job = startJob(arguments, folder, name);
  if (job < 0)
    throw systemError("cannot start the job");
  installFaultHandler();
  return Server(options, listener, signals, job).run();
}

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fputs("usage: fsdp-fake-device PROGRAM ARGUMENTS...\n", stderr);
    return 2;
  }
  try {
    return serve(argv + 1);
  } catch (const std::exception &e) {
    std::fprintf(stderr, "fsdp-fake-device: %s\n", e.what());
    return 1;
  }
}
