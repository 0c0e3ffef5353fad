//===- AdamWScalars.h - What all elements of an AdamW step share *- C++ -*-===//
//
// Shared by the kernels of both targets.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_KERNELS_ADAMWSCALARS_H
#define FSDP_RUNTIME_KERNELS_ADAMWSCALARS_H

#include "Kernels.h"
#include "fsdp/Runtime/Runtime.h"

namespace fsdp::rt {

/// base^exponent for an exponent of at least 0, by squaring. Every product is
/// rounded to f64 in this order, so a GPU has the bits of a CPU, which no two
/// libraries' pow() promise each other.
FSDP_MATH double powerOf(double base, int32_t exponent) {
  double power = 1;
  for (; exponent > 0; exponent >>= 1) {
    power = exponent & 1 ? power * base : power;
    base *= base;
  }
  return power;
}

/// The factor that clips gradients of this norm; NaN, with which AdamW changes
/// nothing, if it is not finite.
FSDP_MATH float clipFactor(float maxNorm, float norm, bool isFinite) {
  const float factor = maxNorm / (norm + 1e-6f);
  const float clipped = maxNorm == 0.0f || factor > 1.0f ? 1.0f : factor;
  return isFinite ? clipped : __builtin_nanf("");
}

/// `step` counts from 1.
FSDP_MATH AdamWStep adamwScalars(const AdamWDesc &d, float lr, int32_t step,
                                 float coefficient) {
  const double rate = lr;
  AdamWStep s;
  s.decay = float(rate * d.weightDecay);
  s.oneMinusBeta1 = float(1 - d.beta1);
  s.beta2 = float(d.beta2);
  s.oneMinusBeta2 = float(1 - d.beta2);
  s.stepSize = float(rate / (1 - powerOf(d.beta1, step)));
  s.rootBias2 = float(__builtin_sqrt(1 - powerOf(d.beta2, step)));
  s.eps = float(d.eps);
  s.coefficient = coefficient;
  return s;
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_ADAMWSCALARS_H
