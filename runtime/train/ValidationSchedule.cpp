//===- ValidationSchedule.cpp - When a run validates ----------------------===//
#include "ValidationSchedule.h"

using namespace fsdp;

bool fsdp::isValidationDue(const RunConfig &config, int64_t done) {
  int64_t freq = config.validation.freq;
  return config.validation.enable && freq > 0 && done % freq == 0 &&
         done != config.training.steps;
}

bool fsdp::mayLackValidation(const RunConfig &config,
                             const ResumePoint &start) {
  return start.isOwn && !config.metrics.jsonl.empty() &&
         start.step <= config.training.steps &&
         isValidationDue(config, start.step);
}
