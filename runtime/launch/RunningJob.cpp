//===- RunningJob.cpp - A job on this machine, until it ends --------------===//
#include "RunningJob.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Signals.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

using namespace fsdp;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Signals
//===----------------------------------------------------------------------===//

/// The running processes, for the signal handler; 0: none.
static std::array<std::atomic<pid_t>, kMaxLocalRanks> receivers;

/// The signal that asked us to stop, or 0.
static volatile std::sig_atomic_t stopSignal = 0;

/// Of a job whose ranks save first, signals are only noted: how many wishes
/// they are, and when the first came (0: just now).
static std::atomic<bool> noteSignals{false};
static std::atomic<int> wishes{0};
static std::atomic<double> wishedAt{0};

static double secondsNow() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

/// What comes soon after the first wish is the same.
static void noteWish() {
  int none = 0;
  if (wishes.compare_exchange_strong(none, 1))
    wishedAt = secondsNow();
  else if (double since = wishedAt;
           since != 0 && secondsNow() - since > kSameWishSeconds)
    wishes = 2;
}

static bool isSaving(int signal) {
  return std::find(std::begin(kSavingSignals), std::end(kSavingSignals),
                   signal) != std::end(kSavingSignals);
}

static void forwardSignal(int signal) {
  stopSignal = signal;
  if (noteSignals)
    return isSaving(signal) ? noteWish() : void(wishes = 2);
  for (const std::atomic<pid_t> &receiver : receivers)
    if (pid_t pid = receiver; pid > 0)
      kill(pid, signal == SIGINT ? SIGINT : SIGTERM);
}

static void handleSignals() {
  // Whoever starts a job may have blocked them, and its children inherit that.
  sigset_t handled;
  sigemptyset(&handled);
  sigaddset(&handled, SIGCHLD);
  struct sigaction action{};
  action.sa_handler = forwardSignal; // no SA_RESTART: poll returns at once
  for (int signal : kStopSignals)
    if (!isIgnored(signal)) {
      sigaction(signal, &action, nullptr);
      sigaddset(&handled, signal);
    }
  // The end of a process interrupts poll.
  struct sigaction wake{};
  wake.sa_handler = [](int) {};
  wake.sa_flags = SA_RESTART; // which poll never is
  sigaction(SIGCHLD, &wake, nullptr);
  pthread_sigmask(SIG_UNBLOCK, &handled, nullptr);
}

/// Writing to a reader that has gone becomes an error. Returns whether it was
/// one already.
static bool ignoreBrokenPipes() {
  bool wasIgnored = isIgnored(SIGPIPE);
  std::signal(SIGPIPE, SIG_IGN);
  return wasIgnored;
}

//===----------------------------------------------------------------------===//
// Start
//===----------------------------------------------------------------------===//

void rt::openStandardStreams() {
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

RunningJob::RunningJob(double graceSeconds, double endSeconds)
    : errorPipe(makePipe()), printPipe(makePipe()), errors(errorPipe[0]),
      relay(printPipe[0], STDOUT_FILENO), watch(heartbeatLimit()),
      grace(graceSeconds), endSeconds(endSeconds) {
  std::fflush(nullptr);
  noteSignals = grace > 0;
  wishes = 0;
  wishedAt = 0;
  handleSignals();
}

RunningJob::~RunningJob() {
  if (running > 0) { // not all could be started
    send(SIGKILL);
    for (const Process &process : processes)
      waitpid(process.pid, nullptr, 0);
  }
  for (std::atomic<pid_t> &receiver : receivers)
    receiver = 0;
  for (int end : {errors, errorPipe[1], printPipe[1]})
    if (end >= 0)
      close(end);
}

/// In a child: what the launcher does at a signal is not for it.
static void forgetHandlers() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action;
    if (sigaction(signal, nullptr, &action) == 0 &&
        action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL)
      std::signal(signal, SIG_DFL);
  }
}

void RunningJob::start(const std::string &name,
                       const std::function<void()> &become) {
  // A signal that comes before the child is a program of its own must end it,
  // and not be forwarded by it.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t child = fork();
  if (child == 0)
    forgetHandlers();
  int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0)
    throw Error(std::string("cannot start the ranks: ") + std::strerror(error));
  if (child == 0) {
    dup2(printPipe[1], STDOUT_FILENO);
    dup2(errorPipe[1], STDERR_FILENO);
    become();
    _exit(127);
  }
  receivers.at(processes.size()) = child;
  processes.push_back({child, name});
  ++running;
  watch.add(child, name);
}

//===----------------------------------------------------------------------===//
// While it runs
//===----------------------------------------------------------------------===//

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

/// Handles what the processes have said and printed, once they have. Returns 0
/// if they were silent.
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

void RunningJob::send(int signal) {
  sent.insert(signal);
  for (const Process &process : processes)
    if (process.pid > 0)
      kill(process.pid, signal);
}

static std::chrono::steady_clock::time_point inSeconds(double seconds) {
  using namespace std::chrono;
  return steady_clock::now() +
         duration_cast<steady_clock::duration>(duration<double>(seconds));
}

/// Tells the processes to end. They are given time for that, but not for ever.
void RunningJob::endSoon() {
  Clock::time_point soon = inSeconds(endSeconds);
  if (deadline && *deadline <= soon)
    return;
  send(SIGTERM);
  send(SIGCONT);
  deadline = soon;
  isGrace = false;
}

/// Tells the ranks of the first wish, which then save; of the second they die
/// at once, and so does what is left soon after.
void RunningJob::letRanksSave() {
  if (!deadline) {
    isGrace = true;
    deadline = inSeconds(grace);
  }
  if (wishes == 2 && !endsAtOnce) {
    endsAtOnce = true;
    deadline = inSeconds(2);
    told.clear();
  }
  int signal = stopSignal;
  watch.tellRanks(isSaving(signal) ? signal : SIGTERM, told);
  isLate |= isGrace && !endsAtOnce && Clock::now() > *deadline;
}

void RunningJob::lookAfter() {
  if (stopSignal != 0 && grace > 0)
    letRanksSave();
  else if (stopSignal != 0 && !deadline)
    deadline = inSeconds(10);
  if (lostReader() || (status != 0 && running > 0))
    endSoon();
  if (deadline && Clock::now() > *deadline)
    send(SIGKILL);
  if (Clock::now() - lastLook < std::chrono::duration<double>(watch.period()))
    return;
  lastLook = Clock::now();
  std::string problem = watch.look();
  if (stopped.empty() && !problem.empty()) {
    stopped = problem;
    endSoon();
  }
}

/// Of several processes, one that a signal ended comes first: the others have
/// missed it. Those that end by signals of ours do so for another's sake.
void RunningJob::takeStatus(const std::string &name, int ended) {
  bool isLost = WIFSIGNALED(ended) && sent.count(WTERMSIG(ended)) == 0;
  if (isLost && lost.empty()) {
    lost = name + " was ended by signal " + std::to_string(WTERMSIG(ended)) +
           " (" + strsignal(WTERMSIG(ended)) + "); the whole job was stopped";
    status = 128 + WTERMSIG(ended);
  } else if (status == 0) {
    status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
    if (status != 0)
      first = name;
  }
}

void RunningJob::reap() {
  for (size_t i = 0; i < processes.size(); ++i) {
    Process &process = processes[i];
    int ended = 0;
    if (process.pid == 0 || waitpid(process.pid, &ended, WNOHANG) == 0)
      continue;
    receivers[i] = 0;
    process.pid = 0;
    --running;
    takeStatus(process.name, ended);
  }
}

JobEnd RunningJob::explain() const {
  bool wasToSave = grace > 0 && !endsAtOnce;
  // What went wrong with a process is why nothing was saved.
  bool endedByWish = stopSignal != 0 && status == 128 + stopSignal;
  bool isBroken = !stopped.empty() || (!lost.empty() && !endedByWish);
  if (isLate && !isBroken)
    return {128 + stopSignal,
            stoppedBy(stopSignal) + format("; it had not saved within %g s "
                                           "(checkpoint.grace_period_seconds)",
                                           grace)};
  if (stopSignal != 0 && !wasToSave)
    return {128 + stopSignal, stoppedBy(stopSignal)};
  if (lostReader())
    return {128 + SIGPIPE, ""};
  if (!stopped.empty())
    return {status == 0 ? 1 : status, stopped};
  if (endedByWish) // a rank that was not ready to save
    return {status, stoppedBy(stopSignal)};
  if (!lost.empty())
    return {status, lost};
  if (status != 0)
    return {status, output.failure(first, status)};
  if (relay.error() != 0)
    return {1, std::string("cannot write standard output: ") +
                   std::strerror(relay.error())};
  return {0, ""};
}

JobEnd RunningJob::wait() {
  for (int *end : {&errorPipe[1], &printPipe[1]})
    close(std::exchange(*end, -1));
  endsWithReader = !ignoreBrokenPipes();
  if (stopSignal != 0 && grace == 0) // before there was somebody to tell
    send(SIGTERM);
  while (running > 0) {
    // Ranks that come late are told too.
    bool isTelling = stopSignal != 0 && grace > 0;
    passOn(isTelling ? 50 : static_cast<int>(watch.period() * 1000));
    reap();
    lookAfter();
  }
  while (passOn(0) != 0) {
  }
  if (stopSignal == 0 || (grace > 0 && !endsAtOnce))
    relay.finish();
  if (!unfinished.empty()) {
    unfinished += '\n';
    takeLines();
  }
  return explain();
}
