//===- StepReport.h - What a simulated step is, to read ---------*- C++ -*-===//
//-*-===//
#ifndef FSDP_SIMULATION_STEPREPORT_H
#define FSDP_SIMULATION_STEPREPORT_H

#include "fsdp/Simulation/Simulate.h"
#include <string>

namespace fsdp::simulation {

struct Report {
  const problem::Problem &problem;
  const StepResult &step;
  const Costs &costs;
};

/// A table; of its collectives the `rows` that are exposed longest.
std::string textOf(const Report &report, size_t rows);

/// One object, with seconds, bytes and flops.
std::string jsonOf(const Report &report);

/// The step as a Chrome trace (trace event format), which Perfetto shows: a row
/// for each stream, and one for what compute waits for.
std::string chromeTraceOf(const Report &report);

} // namespace fsdp::simulation

#endif // FSDP_SIMULATION_STEPREPORT_H
