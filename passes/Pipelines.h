//===- Pipelines.h - The named pipelines ------------------------*- C++ -*-===//
#ifndef FSDP_PASSES_PIPELINES_H
#define FSDP_PASSES_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "passes/Passes.h"

namespace fsdp {

/// Options of `fsdp-train`. Those of single passes have the passes' names.
struct TrainPipelineOptions
    : public mlir::PassPipelineOptions<TrainPipelineOptions> {
  Option<ComputeType> computeDtype{
      *this, "compute_dtype",
      llvm::cl::desc("What parameters are cast to where they are used"),
      llvm::cl::init(ComputeType::F32),
      llvm::cl::values(
          clEnumValN(ComputeType::F32, "f32", "nothing"),
          clEnumValN(ComputeType::BF16, "bf16", "bfloat16; see nn-precision"))};
  Option<std::string> mesh{
      *this, "mesh",
      llvm::cl::desc("Axes of the mesh, slowest first: "
                     "dp_replicate=2,dp_shard=4; empty: the module is "
                     "sharded already, or has no parameters")};
  Option<ShardMode> mode{
      *this, "mode", llvm::cl::desc("Layout of parameters"),
      llvm::cl::init(ShardMode::FullyShard),
      llvm::cl::values(
          clEnumValN(ShardMode::FullyShard, "fully_shard",
                     "split over all axes"),
          clEnumValN(ShardMode::HybridShard, "hybrid_shard",
                     "split over the last axis, replicated over the others"),
          clEnumValN(ShardMode::Replicate, "replicate",
                     "every rank holds every parameter"))};
  Option<std::string> policy{
      *this, "policy",
      llvm::cl::desc("TOML file with placements of parameters and of the "
                     "residual stream; without, an axis \"tp\" has the "
                     "tensor-parallel plan of Llama")};
  Option<bool> sequence{
      *this, "sequence",
      llvm::cl::desc("Under that plan cut the residual stream along the "
                     "sequence"),
      llvm::cl::init(true)};
  Option<bool> loss{
      *this, "loss",
      llvm::cl::desc("Under that plan cut logits and loss along the sequence"),
      llvm::cl::init(true)};
  Option<bool> train{
      *this, "train",
      llvm::cl::desc("Make @train and @evaluate of @forward; without, the "
                     "public functions are the programs"),
      llvm::cl::init(true)};
  Option<int64_t> lossParts{
      *this, "loss-parts",
      llvm::cl::desc("Train on the mean of the mean losses of so many parts of "
                     "the batch; see nn-differentiate"),
      llvm::cl::init(1)};
  Option<int64_t> microbatches{
      *this, "microbatches",
      llvm::cl::desc("Microbatches of a step; see nn-accumulate"),
      llvm::cl::init(1)};
  Option<bool> keepGathers{
      *this, "keep-gathers",
      llvm::cl::desc("Gather parameters once per step of several microbatches"),
      llvm::cl::init(false)};
  Option<bool> reduceOnce{
      *this, "reduce-once",
      llvm::cl::desc("Reduce gradients once per step of several microbatches"),
      llvm::cl::init(false)};
  Option<int64_t> lossChunks{
      *this, "loss-chunks",
      llvm::cl::desc("Chunks of rows in which logits and their loss are "
                     "computed; see nn-chunk-loss"),
      llvm::cl::init(1)};
  Option<bool> optimizer{
      *this, "optimizer",
      llvm::cl::desc("Update parameters by AdamW; without, gradients stay in "
                     "the ranges <parameter>.grad"),
      llvm::cl::init(true)};
  Option<double> beta1{*this, "beta1",
                       llvm::cl::desc("Decay of the first moment"),
                       llvm::cl::init(0.9)};
  Option<double> beta2{*this, "beta2",
                       llvm::cl::desc("Decay of the second moment"),
                       llvm::cl::init(0.95)};
  Option<double> eps{*this, "eps",
                     llvm::cl::desc("Added to the root of the second moment"),
                     llvm::cl::init(1e-8)};
  Option<double> weightDecay{*this, "weight_decay",
                             llvm::cl::desc("Decoupled weight decay"),
                             llvm::cl::init(0.1)};
  Option<double> maxNorm{
      *this, "max_norm",
      llvm::cl::desc("Gradients are clipped to this norm; 0: never"),
      llvm::cl::init(1.0)};
  Option<std::string> plan{
      *this, "plan",
      llvm::cl::desc("JSON file with the schedule plan; empty: by rule")};
  Option<schedule::ReshardPolicy> reshard{
      *this, "reshard-after-forward",
      llvm::cl::desc("Gather again in the backward pass?"),
      llvm::cl::init(schedule::ReshardPolicy::Default),
      llvm::cl::values(
          clEnumValN(schedule::ReshardPolicy::Always, "always", "all"),
          clEnumValN(schedule::ReshardPolicy::Never, "never",
                     "keep gathered parameters"),
          clEnumValN(schedule::ReshardPolicy::Default, "default",
                     "all but the bucket that the forward pass uses last"))};
  Option<schedule::RecomputePolicy> recompute{
      *this, "recompute",
      llvm::cl::desc("Which values of blocks are computed again in the "
                     "backward pass"),
      llvm::cl::init(schedule::RecomputePolicy::None),
      llvm::cl::values(
          clEnumValN(schedule::RecomputePolicy::None, "none", "none"),
          clEnumValN(schedule::RecomputePolicy::Free, "free",
                     "what one pass over values that are kept anyway gives"),
          clEnumValN(schedule::RecomputePolicy::Full, "full",
                     "all but what leaves the block"))};
  Option<bool> bucket{*this, "bucket",
                      llvm::cl::desc("Merge a unit's collectives into one"),
                      llvm::cl::init(true)};
  Option<bool> overlap{*this, "overlap",
                       llvm::cl::desc("Run collectives beside compute"),
                       llvm::cl::init(true)};
  Option<bool> fuse{*this, "fuse",
                    llvm::cl::desc("Make kernels of chains of ops"),
                    llvm::cl::init(true)};
  Option<bool> plainAttention{
      *this, "plain-attention",
      llvm::cl::desc("Attention without the library; see exec-lower"),
      llvm::cl::init(false)};
  Option<bool> fastReductions{
      *this, "fast-reductions",
      llvm::cl::desc("Sums over ranks by the library; see exec-lower"),
      llvm::cl::init(false)};
  Option<int64_t> threads{*this, "threads",
                          llvm::cl::desc("Compute threads per rank"),
                          llvm::cl::init(1)};
  Option<int64_t> memoryBudget{
      *this, "memory-budget",
      llvm::cl::desc("Bytes that the arena may have; 0: no limit"),
      llvm::cl::init(0)};
  Option<std::string> target{
      *this, "target",
      llvm::cl::desc(
          "Whose workspace sizes: the name of a target; those of test do "
          "not depend on the machine"),
      llvm::cl::init("cpu")};
};

/// Where the pipeline can stop.
enum class PipelineLevel {
  Graph,    ///< nn: what is computed, in which types
  Schedule, ///< nn and fsdp: when every tensor moves
  Exec,     ///< exec: in which bytes everything runs
};

/// From the graph of a model to a planned exec module.
void buildTrainPipeline(mlir::OpPassManager &pm,
                        const TrainPipelineOptions &options,
                        PipelineLevel last = PipelineLevel::Exec);

/// Its part that writes the addresses and makes the plan, and what follows up
/// to the arena: what a plan takes, without events and proofs.
void addPlan(mlir::OpPassManager &pm, const TrainPipelineOptions &options);
void addPlannedArena(mlir::OpPassManager &pm,
                     const TrainPipelineOptions &options);

/// Registers the named pipelines with fsdp-opt (see Pipelines.cpp).
void registerFsdpPipelines();

} // namespace fsdp

#endif // FSDP_PASSES_PIPELINES_H
