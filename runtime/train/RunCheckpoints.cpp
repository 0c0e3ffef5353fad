//===- RunCheckpoints.cpp - The checkpoints of a run ----------------------===//
#include "RunCheckpoints.h"
#include "CheckpointSchedule.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Message.h"

using namespace fsdp;

bool RunCheckpoints::isDue(int64_t done) const {
  return writer && isCheckpointDue(run.config, done);
}

void RunCheckpoints::save(int64_t done, int64_t skipped) {
  const ResumePoint &start = run.start;
  checkpoint::RunState now = *run.state;
  now.step = done;
  now.tokens = start.tokens + (done - start.step) * run.tokensOfStep;
  now.skippedSteps = skipped;
  now.scheduleStart = start.scheduleStart;
  now.optimizerStart = start.optimizerStart;
  writer->save(now, contentsOfCheckpoint(run.config, done));
}

void RunCheckpoints::finish() {
  if (writer)
    writer->finish();
}

void RunCheckpoints::saveBeforeStop(int64_t done, int64_t skipped) {
  if (writer->lastStep() != done && done > run.start.step)
    save(done, skipped);
  writer->finish();
  if (writer->lastStep() != done && done != run.start.step)
    throw Error(control.whyStopping() +
                "; the steps after the last checkpoint are lost");
}

void RunCheckpoints::saveSeed() {
  if (!run.start.path.empty())
    throw Error("checkpoint.create_seed_checkpoint = true, but there is '" +
                run.start.path + "' already; choose another checkpoint.folder");
  checkpoint::RunState state = *run.state;
  state.step = 0;
  writer->save(state, SaveContents::Parameters);
  writer->finish();
  if (writer->lastStep() != 0)
    throw Error("the seed checkpoint could not be saved");
}

//===----------------------------------------------------------------------===//
// The last step
//===----------------------------------------------------------------------===//

bool RunCheckpoints::isSaved(int64_t done) const {
  return writer->lastStep() == done ||
         (run.start.isOwn && run.start.step == done);
}

bool RunCheckpoints::lacksLast(int64_t done) const {
  return writer && done != run.start.step && !isSaved(done);
}

void RunCheckpoints::requireLast(int64_t done) {
  if (!lacksLast(done))
    return;
  rank.requireSuccess(
      rank.isFirst() ? "step " + std::to_string(done) +
                           ", the last one, is not saved (checkpoint.on_error "
                           "= continue); the same command resumes from the "
                           "newest checkpoint and tries again"
                     : "");
}

void RunCheckpoints::exportLast(int64_t done) {
  if (!isSaved(done)) // as all ranks know, and the first has said
    return;
  control.hearOthers(); // a signal may have come while it was saved
  if (control.isStopping())
    return;
  std::string problem;
  if (rank.isFirst())
    problem = problemOf([&] { writer->exportSaved(done); });
  Failures failures = rank.countFailures(problem);
  control.hearOthers(); // a signal that came while they waited for the first
  if (failures.count == 0)
    return;
  if (!problem.empty())
    problem += "; step " + std::to_string(done) + " itself is saved, and " +
               commandThatGoesOn(run.config) + " tries again";
  if (run.config.checkpoint.onError == SaveErrorPolicy::Stop)
    rank.requireSuccess(problem);
  else if (rank.isFirst())
    printMessage(kRunWarning,
                 problem + (control.isStopping() ? "" : "; the run continues"));
}
