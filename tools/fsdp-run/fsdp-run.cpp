//===- fsdp-run.cpp - Trains with a compiled artifact ---------------------===//
//
// The front: starts the ranks itself (-n), or becomes the rank that a launcher
// has started. A rank is a program beside this one, linked with the runtime of
// the artifact's target, so that a job on GPUs loads neither MPI nor oneDNN and
// one on CPUs no CUDA. This one loads none of them, and neither MLIR nor LLVM
// nor Python.
//
//===----------------------------------------------------------------------===//
#include "CommandLine.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include "runtime/train/Outputs.h"
#include "runtime/train/Prepare.h"
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;

/// The command of a rank.
static std::vector<std::string> commandOf(const RunOptions &options,
                                          const Target &target) {
  std::vector<std::string> command = {rankProgram(target)};
  command.insert(command.end(), options.forRanks.begin(),
                 options.forRanks.end());
  return command;
}

/// So long what a job leaves may take to be removed.
static constexpr unsigned kCleanUpSeconds = 60;

/// Starts `options.ranks` ranks after everything was checked once.
static int startRanks(const RunOptions &options) {
  PreparedRun run =
      prepareRun(std::make_unique<ArtifactFolder>(options.artifact), options,
                 options.ranks);
  const Target &target = targetOf(run.artifact->manifest());
  std::vector<std::string> command = commandOf(options, target);
  Outputs outputs(run.config, options, options.ranks, /*isFirst=*/true);
  try {
    LocalJob job{target, options.ranks,
                 static_cast<int>(run.config.compile.threads), command,
                 options.trains() && savesCheckpoints(run.config)
                     ? run.config.checkpoint.gracePeriodSeconds
                     : 0};
    JobEnd end = runLocalRanks(job);
    if (end.status == 0)
      return 0;
    // A filter whose reader has gone ends without a word.
    bool speaks = !end.message.empty();
    if (speaks)
      std::fprintf(stderr, "fsdp-run: %s", printable(end.message).c_str());
    // A file system that does not answer may be why the job ended: the message
    // comes first, and this process ends too.
    std::signal(SIGALRM, SIG_DFL);
    alarm(kCleanUpSeconds);
    std::string where = outputs.whereStepsAre();
    // What a rank has started may live a moment longer, with its files.
    outputs.discard(/*patienceSeconds=*/5);
    if (speaks)
      std::fprintf(stderr, "%s\n", printable(where).c_str());
    return end.status;
  } catch (...) {
    outputs.discard();
    throw;
  }
}

/// The compute threads of a rank, as OpenMP has to know before it is loaded.
static int threadsOf(std::unique_ptr<ArtifactFolder> artifact,
                     const RunOptions &options, int ranks) {
  try {
    PreparedRun run = prepareRun(std::move(artifact), options, ranks);
    return static_cast<int>(run.config.compile.threads);
  } catch (const std::exception &) {
    // The rank meets the same error and says it: where only MPI knows of other
    // ranks, it knows the cause.
    return 1;
  }
}

/// Goes on as the program of a rank.
static int becomeRank(const RunOptions &options, int ranks) {
  auto artifact = std::make_unique<ArtifactFolder>(options.artifact);
  std::vector<std::string> command =
      commandOf(options, targetOf(artifact->manifest()));
  setThreadEnvironment(threadsOf(std::move(artifact), options, ranks));
  std::vector<char *> argv;
  for (std::string &argument : command)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  throw Error("cannot start " + command[0] + ": " + std::strerror(errno));
}

static int run(const RunOptions &options,
               const std::optional<LaunchEnvironment> &place) {
  if (options.ranks > 1)
    return startRanks(options);
  return becomeRank(options, place ? place->size : 1);
}

int main(int argc, char **argv) { return runMain(argc, argv, run); }
