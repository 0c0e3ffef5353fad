//===- Dispatch.cpp - Chooses the kernels for this CPU --------------------===//
#include "Kernels.h"

using namespace fsdp::rt;

#define FSDP_DECLARE(isa)                                                      \
  namespace fsdp::rt::isa {                                                    \
  void addReductionKernels(Kernels &k);                                        \
  void addAttentionKernels(Kernels &k);                                        \
  void addReferenceAttentionKernels(Kernels &k);                               \
  void addModelKernels(Kernels &k);                                            \
  void addOptimizerKernels(Kernels &k);                                        \
  static Kernels all() {                                                       \
    Kernels k{};                                                               \
    addReductionKernels(k);                                                    \
    addAttentionKernels(k);                                                    \
    addReferenceAttentionKernels(k);                                           \
    addModelKernels(k);                                                        \
    addOptimizerKernels(k);                                                    \
    return k;                                                                  \
  }                                                                            \
  }
FSDP_DECLARE(baseline)
FSDP_DECLARE(avx2)
FSDP_DECLARE(avx512)
#undef FSDP_DECLARE

static Kernels choose() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return avx512::all();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
    return avx2::all();
  return baseline::all();
}

const Kernels &fsdp::rt::kernels() {
  static const Kernels chosen = choose();
  return chosen;
}
