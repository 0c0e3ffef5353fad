//===- StepTimes.cpp - How long the steps of a sequence compute -----------===//
#include "fsdp/Schedule/StepTimes.h"
#include "fsdp/Simulation/Durations.h"
#include <memory>

using namespace fsdp;
using namespace fsdp::problem;

namespace {
struct Known {
  Known(const Problem &problem, const CostModel &cost)
      : costs{cost}, durations(problem, costs) {}

  simulation::Costs costs;
  simulation::StepDurations durations;
};
} // namespace

StepDuration fsdp::problem::stepTimes(const Problem &problem, size_t program,
                                      const CostModel &cost) {
  auto known = std::make_shared<Known>(problem, cost);
  return [known, program](const Sequence &sequence, const Step &step) {
    return step.collective == CollectiveRole::None
               ? known->durations.of(program, sequence, step)
               : Duration();
  };
}
