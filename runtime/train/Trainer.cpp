//===- Trainer.cpp - The run of one rank ----------------------------------===//
#include "Trainer.h"
#include "Agreement.h"
#include "LastExport.h"
#include "LrSchedule.h"
#include "Nonfinite.h"
#include "Results.h"
#include "Resume.h"
#include "RunHeader.h"
#include "Step.h"
#include "StopSignals.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/RangeNames.h"
#include "fsdp/Support/Signals.h"
#include "fsdp/Support/Text.h"
#include "runtime/report/Console.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

using namespace fsdp;
using namespace fsdp::rt;

Trainer::Trainer(const PreparedRun &run, const LoadedArtifact &artifact,
                 const RunOptions &options, World world, DrawCurve draw)
    : run(run), config(run.config), options(options),
      threads(static_cast<int>(config.compile.threads)),
      rank(artifact, world, threads, options.trains(), !options.noGraph),
      draw(std::move(draw)) {
  rank.initialize(static_cast<uint64_t>(config.training.seed));
  if (options.checkValues)
    values = readValueTable(*run.artifact);
  double traces = rt::tracePath("", world.rank).empty() ? 0 : 1;
  rt::allReduceSum(&traces, 1);
  hasTraces = traces != 0;
  begin();
  if (!options.load.empty())
    fixedBatch = rank.load(options.load, options.trains());
}

/// Loads what the run begins with.
void Trainer::begin() {
  if (!options.checkpoint.empty())
    start.path = loadParameters(rank, options.checkpoint);
  if (!options.trains() || !config.checkpoint.enable)
    return;
  state = *run.state;
  start = beginFromCheckpoint(rank, config, state);
  done = start.step;
  skipped = start.skippedSteps;
  requireSuccess(rank.world(), problemOf([&] {
                   if (!rank.isFirst() || !savesCheckpoints(config))
                     return;
                   removeHalfExports(config);
                   checkExportPlace(config, start);
                 }));
  if (savesCheckpoints(config))
    saver = std::make_unique<Saver>(rank, config);
}

void Trainer::runProgramOnce() {
  std::string zeros = rank.unsetInputs(options.program);
  if (rank.isFirst() && !zeros.empty())
    printMessage(kRunWarning, "--program " + options.program +
                                  " runs with zeros for " + zeros +
                                  "; --load sets them");
  rank.run(options.program);
  if (rank.isFirst())
    print(describeResults(rank, options.program));
  if (!options.dump.empty())
    rank.dump(options.dump);
  writeTrace();
}

void Trainer::introduce(const Peak &peak) {
  const Manifest &manifest = run.artifact->manifest();
  int64_t parameters = 0;
  for (const RangeInfo &range : manifest.ranges)
    if (range.role == RangeRole::Parameter)
      parameters += elementCount(range.full);
  print(format("%s: %s parameters on %d ranks (%s), %d thread%s each\n",
               run.artifact->directory().c_str(), grouped(parameters).c_str(),
               rank.world().size, manifest.meshText().c_str(), threads,
               threads == 1 ? "" : "s"));
  print(run.precisionLine + "\n");
  introduceData();
  print(format("memory: %s bytes of arena per rank, planned and allocated\n",
               grouped((int64_t)rank.arenaBytes()).c_str()));
  if (values)
    print("values: every one of every step is looked at when it is made, which "
          "is slow\n");
  if (saver)
    print(format("host memory: %s bytes staging for checkpoints per rank, "
                 "allocated and touched\n",
                 grouped((int64_t)saver->stagingBytes()).c_str()));
  print("peak: " + peak.text + "\n");
}

StepCosts Trainer::measureCosts() {
  const Manifest &manifest = run.artifact->manifest();
  StepCosts costs;
  Batch batch = rank.stepBatch();
  costs.tokens = batch.rows * batch.sequence * rank.dataShard().count();
  costs.flops = modelFlopsOfStep(manifest);
  costs.arenaBytes = rank.arenaBytes();
  auto steps = static_cast<double>(config.training.steps - start.step);
  Peak peak = findPeak(rank, config, steps * costs.flops);
  costs.peak = peak.flops;
  if (rank.isFirst())
    introduce(peak);
  return costs;
}

/// A step's inputs, also if it is run again.
void Trainer::setInputs(BegunStep &step) {
  int64_t before = step.record.step - 1;
  if (!fixedBatch)
    run.data->sampleTraining(static_cast<uint64_t>(config.training.seed),
                             before, rank.dataShard(), rank.stepBatch());
  if (auto *lr = rank.scalar<float>(range_name::kLearningRate)) {
    *lr =
        static_cast<float>(learningRate(config, before - start.scheduleStart));
    step.record.lr = *lr;
  }
  if (auto *number = rank.scalar<int32_t>(range_name::kStep))
    *number = step.number;
}

Trainer::BegunStep Trainer::beginStep(int64_t step) {
  BegunStep begun{};
  begun.record.step = step + 1;
  begun.number =
      static_cast<int32_t>(step + 1 - skipped - start.optimizerStart);
  setInputs(begun);
  begun.begin = Clock::now();
  if (values) {
    checkStep(begun);
    return begun;
  }
  rank.beginStep(begun.record.step);
  ++stepsBegun;
  return begun;
}

void Trainer::endStep(const BegunStep &step) {
  if (!values) {
    rank.endStep();
    --stepsBegun;
  }
  StepRecord record = step.record;
  // Of steps that overlap, each lasts from the end of the one before.
  Clock::time_point end = Clock::now();
  std::chrono::duration<double> seconds = end - std::max(step.begin, lastEnd);
  lastEnd = end;
  record.seconds = seconds.count();
  record.loss = *rank.scalar<float>(range_name::kLoss);
  if (!rank.hasGlobalLoss()) {
    allReduceSum(&record.loss, 1);
    record.loss /= rank.world().size;
  }
  if (const auto *norm = rank.scalar<float>(range_name::kGradNorm))
    record.gradNorm = *norm;
  if (!nonfiniteOf(record).empty())
    skipOrStop(step, record);
  else
    skippedRow = 0;
  if (metrics)
    metrics->add(record);
  done = record.step;
  hearOthers();
}

/// What ranks tell each other behind every step of a run that saves: the signal
/// that one of them got, and that a save fails.
void Trainer::hearOthers() {
  if (!saver)
    return;
  constexpr size_t kSignals = std::size(kSavingSignals);
  double heard[kSignals + 1]; // the ranks that got each, and that fail
  for (size_t i = 0; i < kSignals; ++i)
    heard[i] = stopSignal() == kSavingSignals[i] ? 1 : 0;
  heard[kSignals] = saver->hasFailed() ? 1 : 0;
  allReduceSum(heard, kSignals + 1);
  for (size_t i = 0; i < kSignals; ++i)
    if (heard[i] > 0 && !isStopping) {
      isStopping = true;
      whyStopping = stoppedBy(kSavingSignals[i]);
    }
  if (heard[kSignals] > 0)
    saver->finish();
}

/// While nothing is trained.
bool Trainer::goesOn() {
  hearOthers();
  return !isStopping;
}

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

void Trainer::runSteps() {
  std::optional<BegunStep> running;
  auto endRunning = [&] {
    if (running)
      endStep(*running);
    running.reset();
  };
  for (int64_t step = start.step; step < config.training.steps; ++step) {
    // Whether a step was skipped decides the number of the next.
    if (!rank.stepsOverlap() ||
        config.training.onNonfinite == NonfinitePolicy::Skip)
      endRunning();
    if (isStopping)
      break;
    BegunStep next = beginStep(step);
    endRunning();
    running = next;
    if (!isSavePoint(step + 1) && !isValidationPoint(step + 1))
      continue;
    endRunning();
    pauseBehind(step + 1);
  }
  endRunning();
}

void Trainer::train() {
  if (!rank.scalar<float>(range_name::kLoss))
    throw Error("the artifact's program 'train' gives no loss");
  StepCosts costs = measureCosts();
  const std::string file = config.job.dumpFolder + "/" + config.metrics.jsonl;
  if (rank.isFirst() && start.isOwn && !config.metrics.jsonl.empty()) {
    before = rewindMetrics(file, start.step);
    if (before.linesCut > 0)
      print(format("metrics: %s lines behind step %s were cut from %s\n",
                   grouped(before.linesCut).c_str(),
                   grouped(start.step).c_str(), file.c_str()));
  }
  std::optional<Resumption> from;
  if (!start.path.empty())
    from = {start.step, start.path, start.isOwn};
  if (rank.isFirst())
    metrics = std::make_unique<Metrics>(
        config, costs, runHeader(run, rank.world().size, from));
  if (rank.isFirst() && start.step >= config.training.steps)
    print(format("all %s steps are over\n",
                 grouped(config.training.steps).c_str()));
  trainBegin = Clock::now();
  hearOthers(); // a signal may have come before the first step
  validateAgain();
  runSteps();
  if (isStopping)
    return saveAndStop();
  if (saver)
    saver->finish();
  if (exportsLastStep(config))
    exportLast();
  if (isStopping)
    return saveAndStop();
  summarize();
}

void Trainer::runCommand(const std::string &command) {
  if (rank.isFirst())
    print("parameters of " + start.path + "\n");
  if (command == "sample") {
    sample();
    return writeTrace();
  }
  evaluate();
  writeTrace();
  compareWithGzip();
}

void Trainer::runAll() {
  if (config.checkpoint.createSeedCheckpoint)
    return createSeedCheckpoint();
  train();
  if (isStopping)
    return;
  if (!options.dump.empty())
    rank.dump(options.dump);
  if (run.artifact->manifest().findProgram("evaluate") >= 0) {
    if (config.validation.enable)
      evaluate();
    if (!isStopping)
      writeSample();
  }
  if (isStopping)
    return saveAndStop(); // all is saved
  if (rank.isFirst())
    writeSummary();
  writeTrace();
  if (rank.isFirst()) {
    // A save that lacks is still to be told to all ranks.
    if (!lacksLastSave() && compareWithGzip())
      writeSummary();
    tellWritten();
  }
  checkLastSave();
}

void fsdp::runRank(const PreparedRun &run, const LoadedArtifact &artifact,
                   const RunOptions &options, World world,
                   const DrawCurve &draw, const HandleError &fail) {
  Trainer trainer(run, artifact, options, world, draw);
  try {
    if (options.trains())
      trainer.runAll();
    else if (!options.program.empty())
      trainer.runProgramOnce();
    else
      trainer.runCommand(options.command);
  } catch (const std::exception &error) {
    fail(error);
    throw;
  }
}
