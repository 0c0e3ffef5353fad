//===- Calibrate.h - Measuring this machine ---------------------*- C++ -*-===//
//
// Times what programs call (Runtime.h), on all ranks of the job at once, as in
// a step: matmuls, attention, kernels, collectives, and how much compute and
// communication slow each other. The answer is a machine file, for a job of as
// many ranks and threads on a machine like this one.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CALIBRATE_CALIBRATE_H
#define FSDP_RUNTIME_CALIBRATE_CALIBRATE_H

#include "CalibratedShape.h"
#include <string>
#include <vector>

namespace fsdp::rt {

struct Calibration {
  std::string name;
  int threads = 1;
  /// That all measurements may take, about. What takes too long for that is
  /// left out.
  double seconds = 60;
  /// Shapes of a model, in addition to a table of common ones.
  std::vector<CalibratedShape> shapes;
};

/// Collective over all ranks; all get the same answer. Throws fsdp::Error.
Machine calibrate(const Calibration &calibration);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CALIBRATE_CALIBRATE_H
