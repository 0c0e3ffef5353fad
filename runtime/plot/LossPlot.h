//===- LossPlot.h - The curve of the loss as SVG ----------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_PLOT_LOSSPLOT_H
#define FSDP_RUNTIME_PLOT_LOSSPLOT_H

#include "runtime/report/LossCurve.h"

namespace fsdp {

/// The picture as SVG: every step's loss, a moving average, and the values on
/// the held-out text. What is not finite is left out.
std::string drawLossCurve(const LossCurve &curve);

/// Round numbers 1, 2 or 5 times a power of ten apart, about `count` of them,
/// at least two, that cover [low, high]. None if these are not finite.
std::vector<double> axisTicks(double low, double high, int count);

} // namespace fsdp

#endif // FSDP_RUNTIME_PLOT_LOSSPLOT_H
