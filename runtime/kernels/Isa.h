//===- Isa.h - What every kernel file starts with ---------------*- C++ -*-===//
//
// FSDP_ISA names the instruction set that a file is being compiled for, and
// its namespace. Nothing here may define an inline function of external
// linkage, or a class that differs between instruction sets under one name: the
// linker would keep one instruction set's copy for all.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_KERNELS_ISA_H
#define FSDP_RUNTIME_KERNELS_ISA_H

#include "Kernels.h"

namespace fsdp::rt::FSDP_ISA {
/// Each file fills its part of the table.
void addReductionKernels(Kernels &k);
void addAttentionKernels(Kernels &k);
void addReferenceAttentionKernels(Kernels &k);
void addModelKernels(Kernels &k);
void addOptimizerKernels(Kernels &k);
} // namespace fsdp::rt::FSDP_ISA

#endif // FSDP_RUNTIME_KERNELS_ISA_H
