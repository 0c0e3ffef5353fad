//===- TrainerSaves.cpp - Checkpoints and signals of a run ----------------===//
#include "Agreement.h"
#include "LastExport.h"
#include "Trainer.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/Text.h"
#include "runtime/report/Console.h"
#include <cstdio>

using namespace fsdp;
using namespace fsdp::rt;

bool Trainer::isSavePoint(int64_t done) const {
  const RunConfig::Checkpoint &checkpoint = config.checkpoint;
  return saver &&
         (done % checkpoint.interval == 0 || done == config.training.steps ||
          (done == 1 && checkpoint.enableFirstStepCheckpoint));
}

/// The last step is evaluated by itself.
bool Trainer::isValidationPoint(int64_t done) const {
  int64_t freq = config.validation.freq;
  return config.validation.enable && freq > 0 && done % freq == 0 &&
         done != config.training.steps;
}

void Trainer::pauseBehind(int64_t done) {
  if (isSavePoint(done))
    save(done);
  if (isValidationPoint(done))
    validate(done);
}

void Trainer::save(int64_t done) {
  checkpoint::RunState now = state;
  now.step = done;
  Batch batch = rank.stepBatch();
  now.tokens = start.tokens + (done - start.step) * batch.rows *
                                  batch.sequence * rank.dataShard().count();
  now.skippedSteps = skipped;
  now.scheduleStart = start.scheduleStart;
  now.optimizerStart = start.optimizerStart;
  bool isExport =
      done == config.training.steps && config.checkpoint.lastSaveModelOnly;
  saver->save(now, isExport ? SaveContents::Export : SaveContents::Everything);
}

/// Ends a run that a signal has asked to.
void Trainer::saveAndStop() {
  if (saver->lastStep() != done && done > start.step)
    save(done);
  saver->finish();
  bool isSaved = saver->lastStep() == done || done == start.step;
  if (!isSaved)
    throw Error(whyStopping +
                "; the steps behind the last checkpoint are lost");
  if (rank.isFirst())
    tellStop();
  writeTrace();
}

void Trainer::tellStop() {
  print(
      format("%s behind step %s", whyStopping.c_str(), grouped(done).c_str()));
  std::string path =
      done == start.step
          ? start.path
          : checkpoint::stepFolder(checkpointFolder(config), done);
  if (done > 0)
    print(", which " + path + " has: " + commandThatGoesOn(config) +
          " goes on from there");
  print("\n");
  if (done == 0)
    return;
  if (summary.empty()) // it came before the last step was over
    summarize();
  summary["interrupted"] = whyStopping;
  writeSummary();
  tellWritten();
}

/// Whether the step that is over last is a checkpoint of the run.
bool Trainer::isLastSaved() const {
  return saver->lastStep() == done || (start.isOwn && start.step == done);
}

/// A save that fails is tried again by the next one; the last has none.
bool Trainer::lacksLastSave() const {
  return saver && done != start.step && !isLastSaved();
}

void Trainer::checkLastSave() {
  if (!lacksLastSave())
    return;
  requireSuccess(rank.world(),
                 rank.isFirst()
                     ? "step " + std::to_string(done) +
                           ", the last one, is not saved (checkpoint.on_error "
                           "= continue); the same command goes on from the "
                           "newest checkpoint and tries again"
                     : "");
}

/// Behind the last step, which is saved, of a run that is not to end early.
void Trainer::exportLast() {
  if (!isLastSaved()) // as all ranks know, and the first has said
    return;
  hearOthers(); // a signal may have come while it was saved
  if (isStopping)
    return;
  std::string problem;
  if (rank.isFirst())
    problem = problemOf([&] {
      saver->watchWork("the export of step " + std::to_string(done),
                       [&] { exportStep(config, done); });
    });
  Failures failures = countFailures(rank.world(), problem);
  hearOthers(); // a signal that came while they waited for the first rank
  if (failures.count == 0)
    return;
  if (!problem.empty())
    problem += "; step " + std::to_string(done) + " itself is saved, and " +
               commandThatGoesOn(config) + " tries again";
  if (config.checkpoint.onError == SaveErrorPolicy::Stop)
    requireSuccess(rank.world(), problem);
  else if (rank.isFirst())
    printMessage(kRunWarning,
                 problem + (isStopping ? "" : "; the run goes on"));
}

void Trainer::createSeedCheckpoint() {
  if (!start.path.empty())
    throw Error("checkpoint.create_seed_checkpoint = true, but there is '" +
                start.path + "' already; choose another checkpoint.folder");
  state.step = 0;
  saver->save(state, SaveContents::Parameters);
  saver->finish();
  if (saver->lastStep() != 0)
    throw Error("the seed checkpoint could not be saved");
}
