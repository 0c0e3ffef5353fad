//===- problem.cpp - Any text as a problem --------------------------------===//
//
// What is accepted means the same when it is written again, and has an order
// and live bytes under decisions that the bytes choose, and takes a time.
//
//===----------------------------------------------------------------------===//
#include "Fuzz.h"
#include "fsdp/Schedule/ProblemText.h"
#include "fsdp/Simulation/StepReport.h"

using namespace fsdp;
using namespace fsdp::problem;
using namespace fsdp::test;

/// Decisions that follow from the numbers of ops.
static Candidate decided(const Problem &problem, size_t seed) {
  Candidate candidate(problem);
  for (size_t number = 0; number < problem.programs.size(); ++number) {
    const Program &program = problem.programs[number];
    for (size_t i = 0; i < program.ops.size(); ++i) {
      size_t dice = (i + 1) * 2654435761u * (seed + 1) >> 7;
      Decision decision;
      decision.recompute = dice % 3 == 0;
      if (program.ops[i].kind == OpKind::Collective) {
        decision.overlap = dice % 2 == 0;
        decision.prefetch = decision.defer = dice / 2 % 3;
        decision.bucket = dice / 8 % 3 == 0   ? ""
                          : dice / 8 % 3 == 1 ? "a"
                                              : "b";
        if (dice / 32 % 8 == 0)
          decision.startAfter =
              addressOf(problem, program.ops[dice / 256 % program.ops.size()]);
      }
      candidate.programs[number].of[i] = candidate.add(decision);
      decision.recompute = false;
      candidate.programs[number].again[i] = candidate.add(decision);
    }
  }
  return candidate;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  useOrRefuse([&] {
    Problem problem = parse(textOf(data, size), "problem");
    std::string written = print(problem);
    require(print(parse(written, "again")) == written);
    Candidate candidate = decided(problem, size);
    for (size_t i = 0; i < problem.programs.size(); ++i) {
      Sequence sequence = order(problem, candidate, i);
      require(live(problem, sequence).peak >= 0);
      blockClassesOf(problem, problem.programs[i]);
    }
    static const CostModel model(loadMachine("h100"));
    simulation::Costs costs{model};
    simulation::StepResult step =
        simulation::simulate(problem, candidate, "train", costs);
    require(step.bound <= step.total);
    simulation::textOf({problem, step, costs}, 10);
    simulation::jsonOf({problem, step, costs});
  });
  return 0;
}
