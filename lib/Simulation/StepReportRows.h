//===- StepReportRows.h - What reports say of steps -------------*- C++ -*-===//
#ifndef FSDP_LIB_SIMULATION_STEPREPORTROWS_H
#define FSDP_LIB_SIMULATION_STEPREPORTROWS_H

#include "fsdp/Simulation/StepReport.h"

namespace fsdp::simulation {

struct CollectiveRow {
  std::string address;
  CollectiveCall call;
  int64_t times = 1;
  Duration time, exposed; ///< Of one time.
};

/// Those that are exposed longest first.
std::vector<CollectiveRow> collectiveRowsOf(const Report &report);

/// Of the step that issues `step`: its address, and how many more ops it has.
std::string nameOf(const problem::Problem &problem,
                   const problem::Program &program,
                   const problem::Sequence &sequence,
                   const problem::Step &step);

/// Peaks by what they are for.
std::vector<std::pair<const char *, int64_t>> rowsOf(const PeakMemory &peak);

} // namespace fsdp::simulation

#endif // FSDP_LIB_SIMULATION_STEPREPORTROWS_H
