//===- Pipelines.h - The named pipelines ------------------------*- C++ -*-===//
#ifndef FSDP_PASSES_PIPELINES_H
#define FSDP_PASSES_PIPELINES_H

#include "fsdp/Config/CompileOptions.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"

namespace fsdp {

/// Where the pipeline can stop.
enum class PipelineLevel {
  Graph,     ///< nn: what is computed, in which types
  Addresses, ///< nn and fsdp: what there is to be scheduled
  Schedule,  ///< nn and fsdp: when every tensor moves
  Exec,      ///< exec: in which bytes everything runs
};

/// From the graph of a model to a planned exec module.
void buildTrainPipeline(mlir::OpPassManager &pm, const CompileOptions &options,
                        PipelineLevel last = PipelineLevel::Exec);

/// The same from a schedule on (`last` is Schedule or Exec), which may have
/// been edited: what it computes is proved before it is lowered.
void buildScheduledPipeline(mlir::OpPassManager &pm,
                            const CompileOptions &options, PipelineLevel last);

/// Its part that writes the addresses and makes the plan, and what follows up
/// to the arena: what a plan takes, without events and proofs.
void addPlan(mlir::OpPassManager &pm, const CompileOptions &options);
void addPlannedArena(mlir::OpPassManager &pm, const CompileOptions &options);

/// Registers the named pipelines with fsdp-opt (see Pipelines.cpp).
void registerFsdpPipelines();

} // namespace fsdp

#endif // FSDP_PASSES_PIPELINES_H
