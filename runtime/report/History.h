//===- History.h - What a run that goes on has done before ------*- C++ -*-===//
#ifndef FSDP_RUNTIME_REPORT_HISTORY_H
#define FSDP_RUNTIME_REPORT_HISTORY_H

#include "Metrics.h"

namespace fsdp {

/// The steps of the last run in a file of metrics, with those of the runs that
/// it went on from.
struct History {
  std::vector<StepRecord> steps;
  std::vector<ValidationRecord> validations;
  int64_t linesCut = 0;
};

/// Takes what follows step `last` of the last run from the file, in one
/// go, and returns the rest. A file that does not exist has no steps. Throws
/// fsdp::Error that names the file.
History rewindMetrics(const std::string &path, int64_t last);

} // namespace fsdp

#endif // FSDP_RUNTIME_REPORT_HISTORY_H
