//===- ValidationSchedule.h - When a run validates --------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_VALIDATIONSCHEDULE_H
#define FSDP_RUNTIME_TRAIN_VALIDATIONSCHEDULE_H

#include "ResumePoint.h"

namespace fsdp {

/// Whether a run validates after `done` steps: every validation.freq of them,
/// but not after the last, which is evaluated by itself.
bool isValidationDue(const RunConfig &config, int64_t done);

/// Whether a run that goes on may have to make up for a validation: the run
/// before it may have been ended between the save of a step and its validation.
/// Only where lines are kept can it be known.
bool mayLackValidation(const RunConfig &config, const ResumePoint &start);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_VALIDATIONSCHEDULE_H
