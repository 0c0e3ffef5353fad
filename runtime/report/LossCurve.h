//===- LossCurve.h - The losses of a run, to be drawn -----------*- C++ -*-===//
#ifndef FSDP_RUNTIME_REPORT_LOSSCURVE_H
#define FSDP_RUNTIME_REPORT_LOSSCURVE_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fsdp {

/// The losses of a run in one unit, one per step.
struct LossCurve {
  std::string title;
  std::string unit = "bits per byte";
  std::string tokens = "text"; // or "ids": what is held out
  std::vector<double> losses;
  int64_t firstStep = 1;                               // of the losses
  std::vector<std::pair<int64_t, double>> validations; // step, held-out loss
  std::optional<double> heldOut;                       // after the last step
  std::optional<double> gzipHeldOut;                   // a line to compare with
};

/// Draws a curve: the contents of loss.svg. Training is given one by the
/// program that runs it, and links none.
using DrawCurve = std::function<std::string(const LossCurve &)>;

} // namespace fsdp

#endif // FSDP_RUNTIME_REPORT_LOSSCURVE_H
