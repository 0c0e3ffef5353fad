//===- CompileOptions.h - What a pipeline is told ---------------*- C++ -*-===//
//
// The part of a run's description that decides what is compiled, and what a
// pipeline is told besides. It goes as it is from the description of a run, or
// from the options of `fsdp-train`, to buildTrainPipeline. No MLIR here.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_CONFIG_COMPILEOPTIONS_H
#define FSDP_CONFIG_COMPILEOPTIONS_H

#include "fsdp/Config/ConfigOption.h"
#include "fsdp/Config/MeshOption.h"
#include "fsdp/Support/CheckedSize.h"

namespace fsdp {

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

enum class OptimizerKind { AdamW, None };
template <> struct Spellings<OptimizerKind> {
  static constexpr Spelling<OptimizerKind> all[] = {
      {OptimizerKind::AdamW, "AdamW"}, {OptimizerKind::None, "none"}};
};

enum class DatasetKind { Bytes, Ids };
template <> struct Spellings<DatasetKind> {
  static constexpr Spelling<DatasetKind> all[] = {{DatasetKind::Bytes, "bytes"},
                                                  {DatasetKind::Ids, "ids"}};
};

enum class IdsDtype { U16, U32, I32 };
template <> struct Spellings<IdsDtype> {
  static constexpr Spelling<IdsDtype> all[] = {
      {IdsDtype::U16, "u16"}, {IdsDtype::U32, "u32"}, {IdsDtype::I32, "i32"}};
};

/// The type in which parameters are used. Auto: what the CPU is fast in, or
/// that of a text.
enum class ParamDtype { Auto, Float32, BFloat16 };
template <> struct Spellings<ParamDtype> {
  static constexpr Spelling<ParamDtype> all[] = {
      {ParamDtype::Auto, "auto"},
      {ParamDtype::Float32, "float32"},
      {ParamDtype::BFloat16, "bfloat16"}};
};

enum class ReduceDtype { Float32 };
template <> struct Spellings<ReduceDtype> {
  static constexpr Spelling<ReduceDtype> all[] = {
      {ReduceDtype::Float32, "float32"}};
};

/// Of the labels of all ranks, or of the means of each rank's.
enum class LossMean { Global, Rank };
template <> struct Spellings<LossMean> {
  static constexpr Spelling<LossMean> all[] = {{LossMean::Global, "global"},
                                               {LossMean::Rank, "rank"}};
};

enum class NonfinitePolicy { Stop, Skip };
template <> struct Spellings<NonfinitePolicy> {
  static constexpr Spelling<NonfinitePolicy> all[] = {
      {NonfinitePolicy::Stop, "stop"}, {NonfinitePolicy::Skip, "skip"}};
};

/// Which gathered parameters the backward pass gathers again.
enum class ReshardPolicy {
  Default, ///< All but what is used last in forward: it is needed at once.
  Always,
  Never,
};
template <> struct Spellings<ReshardPolicy> {
  static constexpr Spelling<ReshardPolicy> all[] = {
      {ReshardPolicy::Default, "default",
       "all but the bucket that the forward pass uses last"},
      {ReshardPolicy::Always, "always", "all"},
      {ReshardPolicy::Never, "never", "keep gathered parameters"}};
};

/// How fsdp-shard lays parameters out over the mesh.
enum class ShardMode {
  Auto,        ///< HybridShard over several data axes, else FullyShard
  FullyShard,  ///< split over every data axis
  HybridShard, ///< split over the last data axis, replicated over the others
  Replicate,   ///< every rank holds everything
};
template <> struct Spellings<ShardMode> {
  static constexpr Spelling<ShardMode> all[] = {
      {ShardMode::Auto, "auto",
       "hybrid_shard over several data axes, else fully_shard"},
      {ShardMode::FullyShard, "fully_shard", "split over all data axes"},
      {ShardMode::HybridShard, "hybrid_shard",
       "split over the last data axis, replicated over the others"},
      {ShardMode::Replicate, "replicate", "every rank holds every parameter"}};
};

enum class Bucketing { None, Block };
template <> struct Spellings<Bucketing> {
  static constexpr Spelling<Bucketing> all[] = {{Bucketing::None, "none"},
                                                {Bucketing::Block, "block"}};
};

enum class Overlap { None, Block };
template <> struct Spellings<Overlap> {
  static constexpr Spelling<Overlap> all[] = {{Overlap::None, "none"},
                                              {Overlap::Block, "block"}};
};

enum class Fusion { None, Chains };
template <> struct Spellings<Fusion> {
  static constexpr Spelling<Fusion> all[] = {{Fusion::None, "none"},
                                             {Fusion::Chains, "chains"}};
};

/// Which values of blocks are computed again. What parameters are gathered for
/// is ReshardPolicy's.
enum class RecomputePolicy {
  None,
  Free, ///< What one pass over values that are kept anyway gives.
  Full, ///< All but what leaves the block.
};
template <> struct Spellings<RecomputePolicy> {
  static constexpr Spelling<RecomputePolicy> all[] = {
      {RecomputePolicy::None, "none", "none"},
      {RecomputePolicy::Free, "free",
       "what one pass over values that are kept anyway gives"},
      {RecomputePolicy::Full, "full", "all but what leaves the block"}};
};

enum class AccumulateGathers { Repeat, Keep };
template <> struct Spellings<AccumulateGathers> {
  static constexpr Spelling<AccumulateGathers> all[] = {
      {AccumulateGathers::Repeat, "repeat"}, {AccumulateGathers::Keep, "keep"}};
};

enum class AccumulateReduce { Every, Once };
template <> struct Spellings<AccumulateReduce> {
  static constexpr Spelling<AccumulateReduce> all[] = {
      {AccumulateReduce::Every, "every"}, {AccumulateReduce::Once, "once"}};
};

/// The library's, where the target has one, or the runtime's reference kernel,
/// which options call "plain".
enum class AttentionKernel { Auto, Reference };
template <> struct Spellings<AttentionKernel> {
  static constexpr Spelling<AttentionKernel> all[] = {
      {AttentionKernel::Auto, "auto"}, {AttentionKernel::Reference, "plain"}};
};

/// Sums over ranks: in one fixed order, or by the library in its own.
enum class ReduceOrder { Exact, Fast };
template <> struct Spellings<ReduceOrder> {
  static constexpr Spelling<ReduceOrder> all[] = {{ReduceOrder::Exact, "exact"},
                                                  {ReduceOrder::Fast, "fast"}};
};

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// A pipeline reads the options that `Passes` and `PassesAlone` decide; the
/// others of a section are what a run says besides.
struct CompileOptions {
  struct Optimizer {
    /// None: gradients stay in their ranges.
    OptimizerKind name = OptimizerKind::AdamW;
    double lr = 8e-4, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weightDecay = 0.1;

    void describe(OptionTable &table) {
      table.decide(Decides::Passes);
      table
          .add("optimizer.name", name,
               "none leaves the gradients in their ranges and updates nothing")
          .inTorchtitan("\"AdamW\"");
      table.decide(Decides::Run);
      table.add("optimizer.lr", lr, 0, OptionTable::kAny, "peak learning rate")
          .inTorchtitan("8e-4");
      table.decide(Decides::Passes);
      table.add("optimizer.beta1", beta1, 0, 1, "decay of the first moment")
          .inTorchtitan("0.9");
      table.add("optimizer.beta2", beta2, 0, 1, "decay of the second moment")
          .inTorchtitan("0.95");
      table
          .add("optimizer.eps", eps, 0, 1,
               "added to the root of the second moment")
          .inTorchtitan("1e-8");
      table
          .add("optimizer.weight_decay", weightDecay, 0, OptionTable::kAny,
               "decoupled weight decay")
          .inTorchtitan("0.1");
    }
  } optimizer;

  struct Training {
    int64_t localBatchSize = 8, seqLen = 2048;
    std::optional<int64_t> globalBatchSize; // of a step of several microbatches
    double maxNorm = 1.0;                   // 0: no clipping
    int64_t steps = 10000, seed = 42;
    DatasetKind dataset = DatasetKind::Bytes;
    std::string datasetPath;
    /// With DatasetKind::Ids.
    IdsDtype idsDtype = IdsDtype::U16;
    std::string idsMaskPath;
    ParamDtype mixedPrecisionParam = ParamDtype::Auto;
    ReduceDtype mixedPrecisionReduce = ReduceDtype::Float32;
    LossMean lossMean = LossMean::Global;
    NonfinitePolicy onNonfinite = NonfinitePolicy::Stop;
    int64_t maxSkippedSteps = 10; // one after another

    void describe(OptionTable &table) {
      table.decide(Decides::Artifact);
      table
          .add("training.local_batch_size", localBatchSize, 1, kMaxDimension,
               "sequences per rank and microbatch")
          .inTorchtitan("8");
      table
          .add("training.global_batch_size", globalBatchSize, -1,
               OptionTable::kMaxInt,
               "sequences of all ranks per step, a multiple of "
               "training.local_batch_size times the data-parallel ranks: so "
               "many "
               "microbatches add up their gradients; unset or -1: one")
          .inTorchtitan("-1");
      table
          .add("training.seq_len", seqLen, 1, kMaxDimension,
               "tokens per sequence")
          .inTorchtitan("2048");
      table.decide(Decides::Passes);
      table
          .add("training.max_norm", maxNorm, 0, OptionTable::kAny,
               "gradients are clipped to this norm; 0: not at all")
          .inTorchtitan("1.0");
      table
          .add("training.mixed_precision_param", mixedPrecisionParam,
               "type in which parameters are gathered and used; auto: bfloat16 "
               "where the CPU has AMX, else float32; of a text, as it is "
               "written")
          .inTorchtitan("\"bfloat16\"",
                        "which is bfloat16 where the CPU has AMX");
      table.decide(Decides::Artifact);
      table
          .add("training.mixed_precision_reduce", mixedPrecisionReduce,
               "type in which gradients are reduced")
          .inTorchtitan("\"float32\"");
      table.add(
          "training.loss_mean", lossMean,
          "global: the mean over the labels of the whole batch; rank: the "
          "mean of the data-parallel ranks' means, as DDP and FSDP2 train, "
          "which differs where labels are ignored");
      table.decide(Decides::Run);
      table
          .add("training.steps", steps, 1, OptionTable::kMaxInt,
               "training steps")
          .inTorchtitan("10000");
      table
          .add("training.seed", seed, 0, OptionTable::kMaxInt,
               "of the initial values, the sampled windows and the sample")
          .inTorchtitan("", "debug.seed in the last version");
      table
          .add("training.dataset", dataset,
               "bytes: every byte of a text file is a token; ids: token ids "
               "that "
               "a tokenizer made, one behind the other in a file. Bytes are "
               "refused for a model with a tokenizer, and have to be said for "
               "one "
               "whose vocabulary is not 256")
          .inTorchtitan(
              "\"c4_test\"", "",
              "training.dataset_path, a file of text or of token ids");
      table
          .add("training.dataset_path", datasetPath,
               "the text file, or the file of ids; a relative path starts at "
               "the "
               "current directory")
          .inTorchtitan("unset", "the file of text or ids");
      table.add("training.ids_dtype", idsDtype,
                "type of the ids in training.dataset_path, little-endian; a "
                "vocabulary of more than 65,536 ids asks for it in words");
      table.add(
          "training.ids_mask_path", idsMaskPath,
          "a file with a byte per id: 1 where the id is a label, 0 where it "
          "is read and not predicted (prompts, padding); empty: all ids are "
          "labels");
      table.add(
          "training.on_nonfinite", onNonfinite,
          "a step whose loss or gradient norm is not finite: stop ends the "
          "run; skip leaves parameters and optimizer as they are and goes "
          "on");
      table.add("training.max_skipped_steps", maxSkippedSteps, 1,
                OptionTable::kMaxInt,
                "with training.on_nonfinite = skip: so many steps that were "
                "skipped one behind the other end the run");
    }
  } training;

  struct Parallelism {
    int64_t dataParallelReplicateDegree = 1;
    int64_t dataParallelShardDegree = -1; // -1: the rest of the ranks
    int64_t tensorParallelDegree = 1;
    bool sequenceParallel = true, disableLossParallel = false;
    std::string placementPolicy; // a TOML file; empty: the plan of the family
    ReshardPolicy fsdpReshardAfterForward = ReshardPolicy::Default;

    void describe(OptionTable &table) {
      table.decide(Decides::Artifact);
      table
          .add("parallelism.data_parallel_replicate_degree",
               dataParallelReplicateDegree, 1, kMaxRanks,
               "groups of ranks that hold the same shards")
          .inTorchtitan("1");
      table
          .add("parallelism.data_parallel_shard_degree",
               dataParallelShardDegree, -1, kMaxRanks,
               "ranks over which a parameter is sharded; -1: the rest of the "
               "ranks")
          .inTorchtitan("-1");
      table
          .add("parallelism.tensor_parallel_degree", tensorParallelDegree, 1,
               kMaxRanks, "ranks that compute a layer together")
          .inTorchtitan("1");
      table.decide(Decides::Passes);
      table.add(
          "parallelism.sequence_parallel", sequenceParallel,
          "with tensor parallelism: activations between layers are cut along "
          "the sequence");
      table
          .add(
              "parallelism.disable_loss_parallel", disableLossParallel,
              "with tensor parallelism: every rank computes all logits and the "
              "whole loss; false: they are cut along the sequence")
          .inTorchtitan("false");
      table.add(
          "parallelism.placement_policy", placementPolicy,
          "TOML file with rules where parameters and activations lie; empty: "
          "the tensor-parallel plan of Llama");
      table
          .add("parallelism.fsdp_reshard_after_forward",
               fsdpReshardAfterForward,
               "whether the backward pass gathers parameters again; default: "
               "all "
               "but the last unit")
          .inTorchtitan("\"default\"");
    }
  } parallelism;

  struct Compile {
    ShardMode mode = ShardMode::Auto;
    Bucketing bucket = Bucketing::Block;
    Overlap overlap = Overlap::Block;
    Fusion fuse = Fusion::Chains;
    RecomputePolicy recompute = RecomputePolicy::None;
    AccumulateGathers accumulateGathers = AccumulateGathers::Repeat;
    AccumulateReduce accumulateReduce = AccumulateReduce::Every;
    AttentionKernel attention = AttentionKernel::Auto;
    ReduceOrder reduce = ReduceOrder::Exact;
    /// In which a rank's rows are projected to logits.
    int64_t lossChunks = 1;
    int64_t threads = 1;
    std::string cpu = "native";

    void describe(OptionTable &table) {
      table.decide(Decides::Passes);
      table.add(
          "compile.mode", mode,
          "where parameters live: sharded over all ranks, sharded over the "
          "shard degree and equal in the groups of the replicate degree, or "
          "whole on every rank; with one group hybrid_shard is fully_shard; "
          "auto: hybrid_shard where data_parallel_replicate_degree exceeds "
          "1, else fully_shard");
      table.add("compile.bucket", bucket, "which collectives travel together");
      table.add("compile.overlap", overlap,
                "block: gathers start one block ahead");
      table.add("compile.fuse", fuse,
                "chains: pointwise and row ops that feed each other share a "
                "kernel");
      table.add(
          "compile.recompute", recompute,
          "what the backward pass computes again instead of keeping it: "
          "none; free: in blocks, activation functions, products and norms "
          "of what is kept anyway, for next to no time; full: all of a "
          "block but what the next one takes, for about a quarter more "
          "operations; the bits are the same, and the rules of --plan stand "
          "over it");
      table.add(
          "compile.accumulate_gathers", accumulateGathers,
          "with several microbatches: whether each gathers the parameters, "
          "or the step does once and keeps them; the bits are the same");
      table.add(
          "compile.accumulate_reduce", accumulateReduce,
          "with several microbatches: whether each reduces its gradients, or "
          "every rank adds up its own, whole ones, which are reduced once; "
          "the two round differently");
      table.add(
          "compile.loss_chunks", lossChunks, 1, kMaxDimension,
          "so many chunks of its rows does a rank project to logits, one "
          "after the other, each with its loss and its gradient: logits "
          "are never whole; another rounding of the projection's gradient "
          "with every number");
      table.add(
          "compile.attention", attention,
          "auto: the library's where it has one; plain: a simple kernel that "
          "gives the same bits on every target, slowly");
      table.add(
          "compile.reduce", reduce,
          "exact: sums over ranks in one fixed order, the same bits in any "
          "mode, plan and library; fast: by NCCL in an order of its own, "
          "with bits that depend on it; of CUDA artifacts alone");
      table.add("compile.threads", threads, 1, 4096,
                "compute threads per rank");
      table.decide(Decides::Artifact);
      table.add("compile.cpu", cpu,
                "instruction set of the emitted code, as for -march");
    }
  } compile;

  /// What follows from several keys of a run or from the command line of
  /// fsdp-compile; here fsdp-opt says it.
  struct Pipeline {
    std::string mesh; // see parseMesh
    bool train = true;
    int64_t lossParts = 1, microbatches = 1;
    std::string plan; // a JSON file
    int64_t memoryBudget = 0;
    std::string target = "cpu";
    std::vector<std::string> wide;
    int64_t nodeSize = 0, maxInFlight = 0;

    void describe(OptionTable &table) {
      constexpr double most = OptionTable::kMaxInt;
      table.decide(Decides::PassesAlone);
      table.add("mesh", mesh,
                "Axes of the mesh, slowest first, as fsdp-shard takes them: "
                "dp_replicate=2,dp_shard=4; empty: the module is sharded "
                "already, or has no parameters");
      table.add("node-size", nodeSize, 0, kMaxRanks,
                "Consecutive ranks that share a node; 0: not stated");
      table.add("wide", wide,
                "With bfloat16: parameters and modules that stay f32; see "
                "nn-precision");
      table.add("train", train,
                "Make @train and @evaluate of @forward; without, the public "
                "functions are the programs");
      table.add("loss-parts", lossParts, 1, kMaxRanks,
                "Train on the mean of the mean losses of so many parts of the "
                "batch; see nn-differentiate");
      table.add("microbatches", microbatches, 1, kMaxProgramRuns,
                "Microbatches of a step; see nn-accumulate");
      table.add("plan", plan,
                "JSON file with the schedule plan; empty: by rule");
      table.add("max-in-flight", maxInFlight, 0, most,
                "Bytes that may be in flight at once; 0: no limit");
      table.add("memory-budget", memoryBudget, 0, most,
                "Bytes that the arena may have; 0: no limit");
      table.add("target", target,
                "Whose workspace sizes: the name of a target; those of test do "
                "not depend on the machine");
    }
  } pipeline;
};

/// The options that a pipeline takes, bound to `options`.
std::vector<ConfigOption> pipelineOptions(CompileOptions &options);

} // namespace fsdp

#endif // FSDP_CONFIG_COMPILEOPTIONS_H
