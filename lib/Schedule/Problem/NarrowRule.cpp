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

namespace {

class CastBatcher final : public Rule {
public:
  explicit CastBatcher(Draft &draft) : draft(draft) {}

  void run() override {
    std::vector<Step> &steps = draft.sequence->steps;
    numberOf.resize(steps.size());
    Id count = 0;
    bool isRun = false;
    for (Id i = 0; i < steps.size(); ++i) {
      const Step step = steps[i];
      bool isCast = narrows(*draft.program, *draft.sequence, step);
      if (isCast && isRun) {
        // Their uses and members follow each other.
        Step &all = steps[count - 1];
        all.kind = StepKind::Narrow;
        all.uses.count = step.uses.end() - all.uses.begin;
        all.members.count = step.members.end() - all.members.begin;
        all.written += step.written;
      } else {
        steps[count] = step;
        if (step.kind == StepKind::Await)
          steps[count].start = numberOf[step.start];
        ++count;
      }
      numberOf[i] = count - 1;
      isRun = isCast;
    }
    steps.resize(count);
  }

private:
  Draft &draft;
  std::vector<Id> numberOf; // of each step before
};

} // namespace

std::unique_ptr<Rule> fsdp::problem::makeBatchCasts(Draft &draft) {
  return std::make_unique<CastBatcher>(draft);
}
