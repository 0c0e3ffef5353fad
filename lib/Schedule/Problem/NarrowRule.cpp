//===- NarrowRule.cpp - Casts that follow each other ----------------------===//
//
// What exec-batch-casts does: consecutive work that only rounds from f32 to
// bf16 is one operation where the last of it is.
//
//===----------------------------------------------------------------------===//
#include "Draft.h"

using namespace fsdp;
using namespace fsdp::problem;

static bool narrows(const Program &program, const Sequence &sequence,
                    const Step &step) {
  return step.kind == StepKind::Work && step.members.count == 1 &&
         program.ops[sequence.members[step.members.begin].op].is(kNarrows);
}

void fsdp::problem::batchCasts(const Program &program, Sequence &sequence) {
  std::vector<Step> steps;
  std::vector<Id> numberOf(sequence.steps.size());
  steps.reserve(sequence.steps.size());
  bool isRun = false;
  for (size_t i = 0; i < sequence.steps.size(); ++i) {
    Step step = sequence.steps[i];
    if (step.kind == StepKind::Await)
      step.start = numberOf[step.start];
    bool isCast = narrows(program, sequence, step);
    if (isCast && isRun) {
      // Their uses and members follow each other.
      Step &all = steps.back();
      all.kind = StepKind::Narrow;
      all.uses.count = step.uses.end() - all.uses.begin;
      all.members.count = step.members.end() - all.members.begin;
      all.written += step.written;
      all.bytes += step.bytes;
    } else {
      steps.push_back(step);
    }
    numberOf[i] = steps.size() - 1;
    isRun = isCast;
  }
  sequence.steps = std::move(steps);
}
