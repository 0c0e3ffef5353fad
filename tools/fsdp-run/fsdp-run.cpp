//===- fsdp-run.cpp - Trains with a compiled artifact ---------------------===//
//
// Starts the ranks itself (-n), or joins the job of a launcher, and runs the
// programs of an artifact. Needs neither MLIR nor LLVM nor Python.
//
//===----------------------------------------------------------------------===//
#include "Console.h"
#include "Options.h"
#include "Outputs.h"
#include "Prepare.h"
#include "Trainer.h"
#include "fsdp/Runtime/Launch.h"
#include "fsdp/Runtime/Variables.h"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;

static const char *const kDescription =
    "Trains with an artifact that fsdp-compile made.\n\n"
    "  fsdp-run out/bible --config examples/bible.toml -n 2\n"
    "  fsdp-run out/bible -n 2 --training.dataset_path text.txt "
    "--training.steps=100\n"
    "  mpirun -n 2 fsdp-run out/bible --config examples/bible.toml\n\n"
    "Without --config the settings are those of the artifact and the "
    "defaults.";

/// Reads the command line; returns the exit status if the program is to end
/// here (--help, or a wrong option).
static std::optional<int> parseOptions(const std::vector<std::string> &args,
                                       RunOptions &options) {
  // Configuration keys are taken out first: their values must not be read as
  // the artifact's directory.
  // What is wrong with them is said with what is wrong in the file.
  RunConfig scratch;
  ConfigErrors saidLater;
  std::vector<std::string> others =
      applyConfigOverrides(scratch, args, saidLater);
  size_t next = 0;
  for (const std::string &argument : args) {
    if (next < others.size() && others[next] == argument)
      ++next;
    else
      options.overrides.push_back(argument);
  }
  CLI::App app(kDescription, "fsdp-run");
  app.footer("Configuration, as in the TOML file:\n" + configHelp());
  app.add_option("artifact", options.artifact,
                 "folder with step.so and manifest.json")
      ->required();
  app.add_option("--config", options.config, "description of the run (TOML)");
  app.add_option("-n,--ranks", options.ranks,
                 "ranks to start on this machine; without it, joins the job "
                 "of a launcher or runs alone")
      ->check(CLI::Range(1, 4096));
  app.add_option("--load", options.load,
                 "safetensors file with values for ranges, full or as "
                 "FILE.rankN; tokens and targets in it replace the text");
  app.add_option("--dump", options.dump,
                 "after the last step, rank N writes its ranges to this file, "
                 "with .rankN before its extension");
  app.add_option("--program", options.program,
                 "run this program once instead of training and print its "
                 "outputs");
  std::reverse(others.begin(), others.end()); // as CLI11 wants it
  try {
    app.parse(others);
  } catch (const CLI::CallForHelp &help) {
    std::ostringstream text;
    int status = app.exit(help, text);
    print(text.str());
    return status;
  } catch (const CLI::ParseError &error) {
    throw Error(std::string(error.what()) + " (see fsdp-run --help)");
  }
  options.forRanks = {options.artifact};
  auto pass = [&](const char *name, const std::string &value) {
    if (!value.empty())
      options.forRanks.insert(options.forRanks.end(), {name, value});
  };
  pass("--config", options.config);
  pass("--load", options.load);
  pass("--dump", options.dump);
  pass("--program", options.program);
  options.forRanks.insert(options.forRanks.end(), options.overrides.begin(),
                          options.overrides.end());
  return std::nullopt;
}

/// Starts `options.ranks` ranks after everything was checked once.
static int startRanks(const RunOptions &options) {
  PreparedRun run = prepareRun(options, options.ranks);
  Outputs outputs(run.config, options, options.ranks, /*isFirst=*/true);
  try {
    JobEnd end = runLocalRanks(options.ranks,
                               static_cast<int>(run.config.compile.threads),
                               options.forRanks);
    if (end.status == 0)
      return 0;
    std::string where = outputs.whereStepsAre();
    outputs.discard();
    // A filter whose reader has gone ends without a word.
    if (!end.message.empty())
      std::fprintf(stderr, "fsdp-run: %s%s\n", end.message.c_str(),
                   where.c_str());
    return end.status;
  } catch (...) {
    outputs.discard();
    throw;
  }
}

/// Joins the job; ends it if MPI knows another than the environment.
static World joinJob(const LaunchEnvironment &place) {
  World world = joinWorld();
  if (world.size == place.size)
    return world;
  std::string problem = explainMissingMPI(place, world.size);
  if (world.size == 1)
    throw Error(problem);
  abortWorld(problem);
}

/// Prepares the run of one rank. Ranks that only MPI knows take themselves for
/// a job of one, which may not suit the artifact: then that is the cause.
static PreparedRun prepareOneRank(const RunOptions &options,
                                  const LaunchEnvironment &place) {
  try {
    return prepareRun(options, place.size);
  } catch (const std::exception &) {
    if (!place.rankName) {
      joinJob(place);
      leaveWorld();
    }
    throw;
  }
}

/// Runs this process's rank; errors end the whole job.
static int runOneRank(const RunOptions &options, LaunchEnvironment place,
                      char **argv) {
  PreparedRun run = prepareOneRank(options, place);
  int threads = static_cast<int>(run.config.compile.threads);
  ensureThreadEnvironment(threads, argv);
  if (place.rank == 0 && !run.warning.empty())
    std::fprintf(stderr, "fsdp-run: warning: %s\n", run.warning.c_str());
  bindToOwnCores(place, threads);
  // Before each of them locks the folder as the first rank.
  if (!place.rankName)
    joinJob(place);
  Outputs outputs(run.config, options, place.size, place.rank == 0);
  if (!place.rankName)
    outputs.explainSignals();
  World world;
  try {
    world = joinJob(place);
    runRank(run, options, world);
  } catch (const std::exception &error) {
    outputs.discard();
    if (world.size == 1)
      throw;
    abortWorld(error.what());
  }
  leaveWorld();
  return 0;
}

/// A full disk behind standard output must not look like success.
static void checkStandardOutput() {
  int error = outputError();
  if (error == 0)
    return;
  std::fprintf(stderr, "fsdp-run: cannot write standard output: %s\n",
               std::strerror(error));
  _exit(1);
}

int main(int argc, char **argv) {
  std::atexit(checkStandardOutput);
  std::optional<LaunchEnvironment> place;
  // A limit of the size of files is an error like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    RunOptions options;
    if (auto status = parseOptions(
            std::vector<std::string>(argv + 1, argv + argc), options))
      return *status;
    checkVariables();
    place = detectLaunch();
    if (place && options.ranks != 0)
      throw Error("-n starts ranks, but a launcher has already started this "
                  "process as rank " +
                  std::to_string(place->rank) + "; leave -n out");
    if (options.ranks > 1)
      return startRanks(options);
    return runOneRank(options, place.value_or(LaunchEnvironment{0, 1, 0, 1}),
                      argv);
  } catch (const std::exception &error) {
    // What is wrong on all ranks is said by the first, whose end makes the
    // launcher stop the others while they wait.
    if (place && place->rank != 0)
      std::this_thread::sleep_for(std::chrono::seconds(1));
    std::fprintf(stderr, "%s: %s\n", place ? "fsdp" : "fsdp-run", error.what());
    return 1;
  }
}
