//===- Artifact.h - The C ABI of a compiled artifact ------------*- C++ -*-===//
//
// A compiled artifact is one shared object that exports `fsdp_get_artifact`
// and a manifest.json beside it with the same text as `manifest`. It links
// against the runtime library only.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_ARTIFACT_H
#define FSDP_RUNTIME_ARTIFACT_H

#include "fsdp/Runtime/Runtime.h"

extern "C" {

/// Changes whenever this header, Runtime.h, or what a function needs as a
/// workspace does.
#define FSDP_ARTIFACT_ABI 14

struct fsdp_program {
  const char *name;
  void (*run)(fsdp::rt::Context &);
};

struct fsdp_artifact {
  uint32_t abi; // FSDP_ARTIFACT_ABI of the compiler
  const char *manifest;
  uint64_t arena_bytes;
  int32_t events; // number of events used
  int32_t gemms;
  const fsdp::rt::GemmDesc *gemm;
  int32_t attentions;
  const fsdp::rt::AttentionDesc *attention;
  int32_t groups;
  const fsdp::rt::GroupDesc *group;
  int32_t collectives;
  const fsdp::rt::CollectiveDesc *collective;
  int32_t programs;
  const fsdp_program *program;
};

/// The one symbol an artifact exports.
const fsdp_artifact *fsdp_get_artifact(void);
}

#endif // FSDP_RUNTIME_ARTIFACT_H
