//===- LrSchedule.h - The learning rate of a step ---------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_LRSCHEDULE_H
#define FSDP_RUNTIME_TRAIN_LRSCHEDULE_H

#include "fsdp/Config/RunConfig.h"

namespace fsdp {

/// The learning rate of step `step` (from 0): a linear warm-up, a stable
/// phase and a decay, as in torchtitan.
double learningRate(const RunConfig &config, int64_t step);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_LRSCHEDULE_H
