//===- Curve.h - Between measured points ------------------------*- C++ -*-===//
//
// Between two points y is a power of x, which is a straight line in log-log. It
// is found by halving: the middle of two points in log-log has the geometric
// means, and a square root has the same bits everywhere, which logarithms have
// not. What is larger in x is never smaller in y, by construction.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_MACHINE_CURVE_H
#define FSDP_MACHINE_CURVE_H

#include "fsdp/Machine/Machine.h"

namespace fsdp {

/// Seconds of a message of so many bytes. Below the first point as that; above
/// the last at the rate between the last two. A point that is faster than a
/// smaller one counts as that: measurements scatter.
double secondsAt(const Machine::Points &points, double bytes);

/// What `bytes` of a rank count as where the full bandwidth is meant: they,
/// divided by the share that so many reach.
double rampedBytes(const Machine::Ramp &ramp, double bytes);

/// Flop per second at sizes above 0, from rates that were measured: where one
/// has these sizes, that; else their mean, in which nearer ones count more, by
/// the sixth power of the distance in powers of two. Never empty.
double rateAt(const Machine::Rates &rates, const std::array<double, 3> &sizes);

} // namespace fsdp

#endif // FSDP_MACHINE_CURVE_H
