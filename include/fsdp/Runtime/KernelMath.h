//===- KernelMath.h - Scalar functions of emitted kernels -------*- C++ -*-===//
//
// Included by generated CPU code. Each function is one formula for every
// vector lane and tail, so that a value never depends on its position; built
// with -ffp-contract=off. Filled by runtime/cpu's owner.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_KERNELMATH_H
#define FSDP_RUNTIME_KERNELMATH_H
#endif // FSDP_RUNTIME_KERNELMATH_H
