//===- Pipelines.h - The named pipelines ------------------------*- C++ -*-===//
#ifndef FSDP_PASSES_PIPELINES_H
#define FSDP_PASSES_PIPELINES_H

namespace fsdp {

/// Registers the named pipelines with fsdp-opt (see Pipelines.cpp).
void registerFsdpPipelines();

} // namespace fsdp

#endif // FSDP_PASSES_PIPELINES_H
