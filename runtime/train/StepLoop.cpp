//===- StepLoop.cpp - The steps of a run, one after another ---------------===//
#include "StepLoop.h"
#include <algorithm>

using namespace fsdp;

/// `step` from 1.
StepLoop::BegunStep StepLoop::beginStep(int64_t step) {
  BegunStep begun{};
  begun.record.step = step;
  begun.number =
      static_cast<int32_t>(step - nonfinite.skipped() - start.optimizerStart);
  begun.record.lr = rank.setInputs(step, begun.number);
  begun.begin = rank.seconds();
  if (options.checkValues)
    nonfinite.checkStep(step);
  else
    rank.beginStep(step);
  return begun;
}

void StepLoop::endStep(const BegunStep &step) {
  if (!options.checkValues)
    rank.endStep();
  StepRecord record = step.record;
  // Of steps that overlap, each lasts from the end of the one before.
  double end = rank.seconds();
  record.seconds = end - std::max(step.begin, lastEnd);
  lastEnd = end;
  record.loss = rank.loss();
  record.gradNorm = rank.gradNorm();
  nonfinite.look(record, step.number);
  hooks.report(record);
  over = record.step;
  control.hearOthers();
}

void StepLoop::run() {
  std::optional<BegunStep> running;
  auto endRunning = [&] {
    if (running)
      endStep(*running);
    running.reset();
  };
  for (int64_t before = start.step;; ++before) {
    if (!rank.stepsOverlap() || options.maySkip)
      endRunning();
    if (!control.beginsStep(before))
      break;
    BegunStep next = beginStep(before + 1);
    endRunning();
    running = next;
    if (!hooks.isPauseDue(before + 1))
      continue;
    endRunning();
    hooks.pause(before + 1);
  }
  endRunning();
}
