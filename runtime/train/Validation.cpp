//===- Validation.cpp - The loss on what is held out, in a run ------------===//
#include "Validation.h"
#include "ValidationSchedule.h"

using namespace fsdp;

std::optional<HeldOutScore> Validation::score() {
  if (!rank.hasHeldOut())
    return std::nullopt;
  return rank.evaluateHeldOut([this] { return control.goesOn(); });
}

void Validation::validate(int64_t done) {
  if (std::optional<HeldOutScore> found = score())
    reporter.addValidation(done, *found);
}

void Validation::validateAgain(const RunConfig &config,
                               const ResumePoint &start) {
  if (control.isStopping() || !mayLackValidation(config, start))
    return;
  // The first rank has the metrics.
  if (rank.ofFirst(!reporter.hasValidation(start.step)))
    validate(start.step);
}

void Validation::evaluate() {
  if (std::optional<HeldOutScore> found = score())
    reporter.addHeldOut(*found);
}
