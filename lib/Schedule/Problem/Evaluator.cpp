//===- Evaluator.cpp - Candidate after candidate of one problem -----------===//
#include "Draft.h"
#include "Liveness.h"
#include "fsdp/Schedule/ProblemEvaluator.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Target/Target.h"

using namespace fsdp;
using namespace fsdp::problem;

struct Evaluator::Memory {
  explicit Memory(const Problem &problem)
      : numbers(problem), draft(problem), starts(problem.programs.size()),
        sequences(starts.size()), lives(starts.size()) {
    for (auto *make :
         {makeRecompute, makeMergeBuckets, makeOverlap, makeFuse, makeLower})
      rules.push_back(make(draft));
  }

  DecisionNumbers numbers;
  Draft draft;
  std::vector<std::unique_ptr<Rule>> rules; // in order
  Liveness liveness;
  // Of each program.
  std::vector<std::unique_ptr<ProgramStart>> starts;
  std::vector<Sequence> sequences;
  std::vector<Live> lives;
};

Evaluator::Evaluator(const Problem &problem) : problem(problem) {
  const rt::Target *target = rt::findTarget(problem.target);
  if (!target)
    throw Error("the problem has workspaces of '" + problem.target +
                "', which is no target; there are " + rt::targetNames());
  alignment = target->alignment;
  memory = std::make_unique<Memory>(problem);
}

Evaluator::~Evaluator() = default;

Sequence &Evaluator::order(const Candidate &candidate, size_t program) {
  std::unique_ptr<ProgramStart> &start = memory->starts[program];
  if (!start)
    start = std::make_unique<ProgramStart>(problem.programs[program]);
  memory->numbers.set(candidate);
  Sequence &sequence = memory->sequences[program];
  sequence.refusal.clear();
  sequence.unknown.clear();
  sequence.steps.clear();
  sequence.uses.clear();
  sequence.buffers.clear();
  sequence.members.clear();
  memory->draft.reset(*start, candidate.programs[program], memory->numbers,
                      sequence);
  for (const std::unique_ptr<Rule> &rule : memory->rules)
    if (sequence.refusal.empty())
      rule->run();
  return sequence;
}

Live &Evaluator::live(size_t program) {
  Live &live = memory->lives[program];
  memory->liveness.run(memory->sequences[program], alignment, live);
  return live;
}
