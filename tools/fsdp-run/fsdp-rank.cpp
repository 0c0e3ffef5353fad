//===- fsdp-rank.cpp - One rank of a run ----------------------------------===//
//
// Joins the job, if a launcher has started one, and runs the programs of an
// artifact. Linked once with the runtime of each target, as fsdp-rank-cpu and
// fsdp-rank-cuda; fsdp-run starts the one that an artifact needs.
//
//===----------------------------------------------------------------------===//
#include "CommandLine.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Explain.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/Signals.h"
#include "runtime/plot/LossPlot.h"
#include "runtime/train/Outputs.h"
#include "runtime/train/Prepare.h"
#include "runtime/train/RunRank.h"
#include "runtime/train/StopSignals.h"
#include <cstdio>

using namespace fsdp;
using namespace fsdp::rt;

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

namespace {
/// What one rank runs.
struct RankRun {
  PreparedRun prepared;
  std::unique_ptr<LoadedArtifact> artifact;
};
} // namespace

/// Prepares the run of one rank. Ranks that only MPI knows take themselves for
/// a job of one, which may not suit the artifact: then that is the cause.
static RankRun prepareOneRank(const RunOptions &options,
                              const LaunchEnvironment &place) {
  try {
    auto folder = std::make_unique<ArtifactFolder>(options.artifact);
    const Target &target = targetOf(folder->manifest());
    if (target != runtimeTarget())
      throw Error(std::string("the artifact's target is ") + target.name +
                  ", this program's is " + runtimeTarget().name +
                  "; start it by fsdp-run");
    auto artifact = std::make_unique<LoadedArtifact>(*folder);
    return {prepareRun(std::move(folder), options, place.size),
            std::move(artifact)};
  } catch (const std::exception &) {
    if (!place.rankName) {
      joinJob(place);
      leaveWorld();
    }
    throw;
  }
}

/// Runs this process's rank; errors end the whole job.
static int runOneRank(const RunOptions &options,
                      const std::optional<LaunchEnvironment> &launched) {
  handleSignalsInOwnThread();
  if (options.ranks != 0)
    throw Error("this program is one rank; fsdp-run starts ranks (-n)");
  LaunchEnvironment place = launched.value_or(LaunchEnvironment{0, 1, 0, 1});
  auto [run, artifact] = prepareOneRank(options, place);
  if (place.rank == 0)
    for (const std::string &warning : run.warnings)
      printMessage(kRunWarning, warning);
  // A rank with a GPU computes there; its threads help the libraries.
  if (runtimeTarget().isHost)
    bindToOwnCores(place, static_cast<int>(run.config.compile.threads));
  // Before each of them locks the folder as the first rank.
  if (!place.rankName)
    joinJob(place);
  Outputs outputs(run.config, options, place.size, place.rank == 0);
  if (!place.rankName)
    outputs.explainSignals();
  if (options.trains() && savesCheckpoints(run.config))
    catchStopSignals(run.config.checkpoint.gracePeriodSeconds);
  World world;
  auto fail = [&](const std::exception &error) {
    outputs.discard();
    if (world.size > 1)
      abortWorld(explain(error));
  };
  try {
    world = joinJob(place);
    runRank(run, *artifact, options, world, drawLossCurve, fail);
  } catch (const std::exception &error) {
    fail(error);
    throw;
  }
  leaveWorld();
  return 0;
}

int main(int argc, char **argv) { return runMain(argc, argv, runOneRank); }
