//===- Trainer.cpp - A training, put together -----------------------------===//
#include "Trainer.h"
#include "Introduction.h"
#include "LastExport.h"
#include "Resume.h"
#include "RunHeader.h"
#include "Sampling.h"
#include "ValidationSchedule.h"

using namespace fsdp;

Trainer::Trainer(ArtifactRank &rank, const PreparedRun &run,
                 const RunOptions &options, Reporter &reporter)
    : rank(rank), prepared(run), config(run.config), options(options),
      reporter(reporter), start(beginTraining(rank.context(), run)),
      checkpointer(savesCheckpoints(config)
                       ? std::make_unique<Checkpointer>(rank.context(), config)
                       : nullptr),
      control(rank, checkpointer.get(), config.training.steps),
      checkpoints(rank, control, checkpointer.get(),
                  {config, start, run.state, rank.tokensOfStep()}),
      nonfinite(rank, checkpointer.get(), config.training, start.skippedSteps),
      validation(rank, control, reporter),
      steps(
          rank, control, nonfinite, start,
          {config.training.onNonfinite == NonfinitePolicy::Skip,
           options.checkValues},
          {[this](const StepRecord &record) { this->reporter.addStep(record); },
           [this](int64_t done) {
             return checkpoints.isDue(done) || isValidationDue(config, done);
           },
           [this](int64_t done) { pause(done); }}) {
  rank.setScheduleStart(start.scheduleStart);
}

void Trainer::pause(int64_t done) {
  if (checkpoints.isDue(done))
    checkpoints.save(done, nonfinite.skipped());
  if (isValidationDue(config, done))
    validation.validate(done);
}

void Trainer::train() {
  StepCosts costs =
      introduceRun(rank, prepared, start.step,
                   {options.checkValues,
                    checkpointer ? std::optional(checkpointer->stagingBytes())
                                 : std::nullopt});
  int ranks = rank.context().world().size;
  reporter.beginTraining(
      start, costs,
      rank.isFirst()
          ? runHeader(prepared, ranks, start, rank.context().algorithmDigest())
          : "");
  control.hearOthers(); // a signal may have come before the first step
  validation.validateAgain(config, start);
  steps.run();
  if (control.isStopping())
    return;
  checkpoints.finish();
  if (exportsLastStep(config))
    checkpoints.exportLast(steps.done());
  if (!control.isStopping())
    reporter.endTraining(steps.done(), nonfinite.skipped());
}

void Trainer::evaluate() {
  if (prepared.artifact->manifest().findProgram("evaluate") < 0)
    return;
  if (config.validation.enable)
    validation.evaluate();
  if (control.isStopping() || *config.sample.length == 0)
    return;
  if (auto text = printSample(rank.context(), prepared,
                              [this] { return control.goesOn(); }))
    reporter.writeSample(*text);
}

/// Ends a run that a signal has asked to.
void Trainer::stop() {
  checkpoints.saveBeforeStop(steps.done(), nonfinite.skipped());
  reporter.endStopped(control.whyStopping(), steps.done(), nonfinite.skipped(),
                      start);
  rank.writeTraces();
}

void Trainer::run() {
  if (config.checkpoint.createSeedCheckpoint)
    return checkpoints.saveSeed();
  train();
  if (!control.isStopping()) {
    if (!options.dump.empty())
      rank.context().dump(options.dump);
    evaluate();
  }
  if (control.isStopping())
    return stop();
  reporter.writeSummary();
  rank.writeTraces();
  // A save that lacks is still to be told to all ranks.
  if (!checkpoints.lacksLast(steps.done()) && reporter.compareWithGzip())
    reporter.writeSummary();
  reporter.tellWritten();
  checkpoints.requireLast(steps.done());
  reporter.requireMetrics();
}
