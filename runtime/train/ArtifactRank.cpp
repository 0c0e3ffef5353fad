//===- ArtifactRank.cpp - The rank that runs an artifact ------------------===//
#include "ArtifactRank.h"
#include "LrSchedule.h"
#include "StopSignals.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Rendezvous/Environment.h"
#include "fsdp/Support/ParallelFor.h"
#include "fsdp/Support/RangeNames.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::rt;

/// For the host's work before the first step. A rank that is bound to its cores
/// has those of its compute threads; others share the machine's.
static int hostThreads(const RunConfig &config) {
  std::optional<LaunchEnvironment> launch = detectLaunch();
  int ranks = launch ? std::max(1, launch->localSize) : 1;
  return std::max({1, static_cast<int>(config.compile.threads),
                   availableThreads() / ranks});
}

ArtifactRank::ArtifactRank(const PreparedRun &run,
                           const LoadedArtifact &artifact,
                           const RunOptions &options, World world)
    : run(run), options(options),
      rank(artifact, world, static_cast<int>(run.config.compile.threads),
           options.trains(), !options.noGraph) {
  rank.initialize(static_cast<uint64_t>(run.config.training.seed),
                  hostThreads(run.config));
  if (options.checkValues)
    values = readValueTable(*run.artifact);
  double traces = rt::tracePath("", world.rank).empty() ? 0 : 1;
  allReduceSum(&traces, 1);
  hasTraces = traces != 0;
}

void ArtifactRank::loadRanges() {
  if (!options.load.empty())
    fixedBatch = rank.load(options.load, options.trains());
}

int64_t ArtifactRank::tokensOfStep() {
  Batch batch = rank.stepBatch();
  return batch.rows * batch.sequence * rank.dataShard().count();
}

void ArtifactRank::writeTraces() {
  if (!hasTraces)
    return;
  std::string problem = problemOf([this] { rank.writeTrace(); });
  if (!problem.empty()) {
    problem = "the trace is lost: " + problem;
    if (options.trains())
      problem += "; the training is complete, and its output is in '" +
                 run.config.job.dumpFolder + "'";
  }
  requireSuccess(problem);
}

double ArtifactRank::seconds() const {
  return std::chrono::duration<double>(Clock::now() - created).count();
}

int ArtifactRank::stopSignal() const { return fsdp::stopSignal(); }

//===----------------------------------------------------------------------===//
// Agreement
//===----------------------------------------------------------------------===//

void ArtifactRank::sum(double *values, int64_t count) {
  allReduceSum(values, count);
}

bool ArtifactRank::ofFirst(bool value) {
  broadcast(&value, sizeof value);
  return value;
}

Failures ArtifactRank::countFailures(const std::string &problem) {
  return fsdp::countFailures(rank.world(), problem);
}

void ArtifactRank::requireSuccess(const std::string &problem) {
  fsdp::requireSuccess(rank.world(), problem);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

std::optional<double> ArtifactRank::setInputs(int64_t step, int32_t number) {
  int64_t before = step - 1;
  if (!fixedBatch)
    run.data->sampleTraining(static_cast<uint64_t>(run.config.training.seed),
                             before, rank.dataShard(), rank.stepBatch());
  if (auto *place = rank.scalar<int32_t>(range_name::kStep))
    *place = number;
  auto *lr = rank.scalar<float>(range_name::kLearningRate);
  if (!lr)
    return std::nullopt;
  *lr = static_cast<float>(learningRate(run.config, before - scheduleStart));
  return *lr;
}

void ArtifactRank::beginStep(int64_t step) {
  rank.beginStep(step);
  ++begun;
}

void ArtifactRank::endStep() {
  rank.endStep();
  --begun;
}

double ArtifactRank::loss() {
  double loss = *rank.scalar<float>(range_name::kLoss);
  if (!rank.hasGlobalLoss()) {
    allReduceSum(&loss, 1);
    loss /= rank.world().size;
  }
  return loss;
}

std::optional<double> ArtifactRank::gradNorm() const {
  const auto *norm = rank.scalar<float>(range_name::kGradNorm);
  return norm ? std::optional<double>(*norm) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Values that are not finite
//===----------------------------------------------------------------------===//

std::string ArtifactRank::readValueNames() {
  std::string problem =
      problemOf([&] { values = readValueTable(*run.artifact); });
  Failures failures = countFailures(problem);
  return failures.count > 0 ? broadcastText(problem, failures.first) : "";
}

std::string ArtifactRank::firstNonfiniteParameter() {
  return fsdp::firstNonfiniteParameter(rank);
}

FoundValue ArtifactRank::firstNonfiniteOfStep() {
  return fsdp::firstNonfiniteOfStep(rank, *values);
}

//===----------------------------------------------------------------------===//
// What is held out
//===----------------------------------------------------------------------===//

bool ArtifactRank::hasHeldOut() const { return run.data->hasHeldOut(); }

std::optional<HeldOutScore>
ArtifactRank::evaluateHeldOut(const GoesOn &goesOn) {
  Batch batch = rank.batch();
  int64_t places = fixedBatch ? batch.rows * batch.sequence : 0;
  std::vector<int32_t> tokens(batch.tokens, batch.tokens + places),
      targets(batch.targets, batch.targets + places);
  std::optional<HeldOutScore> score =
      fsdp::evaluateHeldOut(rank, *run.data, goesOn);
  std::copy(tokens.begin(), tokens.end(), batch.tokens);
  std::copy(targets.begin(), targets.end(), batch.targets);
  return score;
}
