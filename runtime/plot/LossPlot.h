//===- LossCurve.h - A picture of a run -------------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_REPORT_LOSSCURVE_H
#define FSDP_RUNTIME_REPORT_LOSSCURVE_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsdp {

/// What the picture shows; losses in one unit, one per step.
/// Those that are not finite are left out.
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

/// The picture as SVG: every step's loss, a moving average, and the values on
/// the held-out text.
std::string drawLossCurve(const LossCurve &curve);

/// Round numbers 1, 2 or 5 times a power of ten apart, about `count` of them,
/// at least two, that cover [low, high]. None if these are not finite.
std::vector<double> axisTicks(double low, double high, int count);

} // namespace fsdp

#endif // FSDP_RUNTIME_REPORT_LOSSCURVE_H
