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
#include "fsdp/Config/RecomputePolicy.h"
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

enum class DatasetKind { Bytes, Ids, Tokens, Megatron, Llmc };
template <> struct Spellings<DatasetKind> {
  static constexpr Spelling<DatasetKind> all[] = {
      {DatasetKind::Bytes, "bytes"},
      {DatasetKind::Ids, "ids"},
      {DatasetKind::Tokens, "tokens"},
      {DatasetKind::Megatron, "megatron"},
      {DatasetKind::Llmc, "llmc"}};
};

/// Which windows of the data a step sees. Auto: random for bytes and ids,
/// shuffle for the other datasets.
enum class DataOrder { Auto, Random, Shuffle, Documents };
template <> struct Spellings<DataOrder> {
  static constexpr Spelling<DataOrder> all[] = {
      {DataOrder::Auto, "auto"},
      {DataOrder::Random, "random"},
      {DataOrder::Shuffle, "shuffle"},
      {DataOrder::Documents, "documents"}};
};

/// training.packing: how rows are made of documents.
enum class DataPacking { Wrapped, Padded, BestFit };
template <> struct Spellings<DataPacking> {
  static constexpr Spelling<DataPacking> all[] = {
      {DataPacking::Wrapped, "wrapped"},
      {DataPacking::Padded, "padded"},
      {DataPacking::BestFit, "best_fit"}};
};

enum class IdsDtype { U16, U32, I32 };
template <> struct Spellings<IdsDtype> {
  static constexpr Spelling<IdsDtype> all[] = {
      {IdsDtype::U16, "u16"}, {IdsDtype::U32, "u32"}, {IdsDtype::I32, "i32"}};
};

/// The type in which parameters are used. Auto: the one in which the CPU is
/// fast; for an IR text, the types that it has.
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

/// The mean over the labels of all ranks, or of the means of each rank.
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

/// Who decides what is computed again.
enum class Planner { Rule, Auto };
template <> struct Spellings<Planner> {
  static constexpr Spelling<Planner> all[] = {
      {Planner::Rule, "rule", "what compile.recompute says"},
      {Planner::Auto, "auto", "what takes least time in --memory-budget"}};
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

enum class AccumulateProducts { Round, Add };
template <> struct Spellings<AccumulateProducts> {
  static constexpr Spelling<AccumulateProducts> all[] = {
      {AccumulateProducts::Round, "round"}, {AccumulateProducts::Add, "add"}};
};

/// What computes attention, which is exact either way: the library, if the
/// target has one for it, or the reference attention of the runtime, which
/// options call "plain".
enum class AttentionKernel { Exact, Fast, Reference };
template <> struct Spellings<AttentionKernel> {
  static constexpr Spelling<AttentionKernel> all[] = {
      {AttentionKernel::Exact, "exact"},
      {AttentionKernel::Fast, "fast"},
      {AttentionKernel::Reference, "plain"},
      {AttentionKernel::Exact, "auto", "", /*isPast=*/true}};
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
               "AdamW; none: keep the gradients in their ranges and update "
               "nothing")
          .inTorchtitan("\"AdamW\"");
      table.decide(Decides::Run);
      table.add("optimizer.lr", lr, 0, OptionTable::kAny, "peak learning rate")
          .inTorchtitan("8e-4");
      table.decide(Decides::Passes);
      table.add("optimizer.beta1", beta1, 0, 1, "decay of the first moment")
          .belowMax()
          .inTorchtitan("0.9");
      table.add("optimizer.beta2", beta2, 0, 1, "decay of the second moment")
          .belowMax()
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
    std::vector<std::string> mixture; // PATH=WEIGHT
    /// With DatasetKind::Ids.
    IdsDtype idsDtype = IdsDtype::U16;
    std::string idsMaskPath;
    DataOrder dataOrder = DataOrder::Auto;
    DataPacking packing = DataPacking::Wrapped;
    bool documentMask = false;
    ParamDtype mixedPrecisionParam = ParamDtype::Auto;
    ReduceDtype mixedPrecisionReduce = ReduceDtype::Float32;
    LossMean lossMean = LossMean::Global;
    NonfinitePolicy onNonfinite = NonfinitePolicy::Stop;
    int64_t maxSkippedSteps = 10; // consecutive

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
               "training.local_batch_size times the data-parallel ranks; the "
               "quotient is the number of microbatches whose gradients a step "
               "adds up; unset or -1: one microbatch")
          .inTorchtitan("-1");
      table
          .add("training.seq_len", seqLen, 1, kMaxDimension,
               "tokens per sequence")
          .inTorchtitan("2048");
      table.decide(Decides::Passes);
      table
          .add("training.max_norm", maxNorm, 0, OptionTable::kAny,
               "norm to which gradients are clipped; 0: no clipping")
          .inTorchtitan("1.0");
      table.add("training.document_mask", documentMask,
                "attention sees the document of each token alone; needs data "
                "with documents (training.dataset = tokens or megatron)");
      table
          .add("training.mixed_precision_param", mixedPrecisionParam,
               "type in which parameters are gathered and used; auto: bfloat16 "
               "if the CPU has AMX, else float32; for an IR text: the types "
               "that it has")
          .inTorchtitan("\"bfloat16\"", "bfloat16 if the CPU has AMX");
      table.decide(Decides::Artifact);
      table
          .add("training.mixed_precision_reduce", mixedPrecisionReduce,
               "type in which gradients are reduced")
          .inTorchtitan("\"float32\"");
      table.add(
          "training.loss_mean", lossMean,
          "global: the mean over the labels of the whole batch; rank: the mean "
          "of the means of the data-parallel ranks, as in DDP and FSDP2; the "
          "two differ if ranks ignore different numbers of labels");
      table.decide(Decides::Run);
      table
          .add("training.steps", steps, 1, OptionTable::kMaxInt,
               "training steps")
          .inTorchtitan("10000");
      table
          .add("training.seed", seed, 0, OptionTable::kMaxInt,
               "seed of the initial values, the sampled windows and the sample")
          .inTorchtitan("", "debug.seed in the last version");
      table
          .add("training.dataset", dataset,
               "bytes: every byte of a text file is a token; tokens: a folder "
               "of tools/fsdp-tokenize; ids: a file of bare token ids; "
               "megatron: .idx and .bin of Megatron-LM; llmc: .bin of llm.c. A "
               "model with a tokenizer refuses bytes, and a model whose "
               "vocabulary is not 256 needs this key")
          .inTorchtitan(
              "\"c4_test\"", "",
              "training.dataset_path, a file of text or of token ids");
      table
          .add("training.dataset_path", datasetPath,
               "the text file, the file of ids, the token folder, Megatron's "
               "prefix, or a pattern of llm.c's files; a relative path starts "
               "at the current directory")
          .inTorchtitan("unset", "the file of text or ids");
      table.add("training.mixture", mixture,
                "several sources instead of training.dataset_path, each as "
                "PATH=WEIGHT, all of training.dataset = tokens, megatron or "
                "llmc; of any number of rows each source gives its share, "
                "rounded up or down");
      table.add("training.data_order", dataOrder,
                "which windows of training.seq_len tokens a step sees; "
                "shuffle: each window once per epoch, every epoch in another "
                "order; documents: so, and the documents that windows are of "
                "come in another order in every epoch; random: windows at "
                "offsets that are drawn; auto: random for bytes and ids, else "
                "shuffle. All depend on training.seed, the step and the row of "
                "the batch alone");
      table.add("training.packing", packing,
                "how rows are made of documents; wrapped: windows of the "
                "tokens, whatever the documents; padded: a document per row, "
                "and a longer one in pieces of a row; best_fit: as many whole "
                "documents per row as fit, with training.document_mask. Places "
                "without a document are padding, of which the run says how "
                "much there is");
      table.add("training.ids_dtype", idsDtype,
                "little-endian type of the ids in training.dataset_path; a "
                "vocabulary of more than 65,536 ids needs this key");
      table.add("training.ids_mask_path", idsMaskPath,
                "file with one byte per id: 1 if the id is a label, 0 if it is "
                "only read (prompts, padding); empty: all ids are labels");
      table.add("training.on_nonfinite", onNonfinite,
                "what to do at a step whose loss or gradient norm is not "
                "finite; stop: end the run; skip: leave parameters and "
                "optimizer unchanged and continue");
      table.add("training.max_skipped_steps", maxSkippedSteps, 1,
                OptionTable::kMaxInt,
                "with training.on_nonfinite = skip: number of consecutive "
                "skipped steps that ends the run");
    }
  } training;

  struct Parallelism {
    int64_t dataParallelReplicateDegree = 1;
    int64_t dataParallelShardDegree = -1; // -1: the rest of the ranks
    int64_t tensorParallelDegree = 1;
    int64_t nodeSize = 0; // 0: not stated
    bool sequenceParallel = true, disableLossParallel = false;
    std::string placementPolicy; // a TOML file; empty: the plan of the family
    ReshardPolicy fsdpReshardAfterForward = ReshardPolicy::Default;
    int64_t fsdpReshardRanks = 0; // 0: those of the forward pass

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
               "ranks over which a parameter is sharded; -1: the remaining "
               "ranks")
          .inTorchtitan("-1");
      table
          .add("parallelism.tensor_parallel_degree", tensorParallelDegree, 1,
               kMaxRanks, "ranks that compute a layer together")
          .inTorchtitan("1");
      table.decide(Decides::Passes);
      table.add("parallelism.node_size", nodeSize, 0, kMaxRanks,
                "consecutive ranks that share a node; gradients are then "
                "summed inside nodes first and between nodes after, with the "
                "same bits; 0: not stated, in one exchange between all ranks");
      table.add("parallelism.sequence_parallel", sequenceParallel,
                "with tensor parallelism: split the activations between layers "
                "along the sequence");
      table
          .add(
              "parallelism.disable_loss_parallel", disableLossParallel,
              "with tensor parallelism: every rank computes all logits and the "
              "whole loss; false: logits and loss are split along the sequence")
          .inTorchtitan("false");
      table.add("parallelism.placement_policy", placementPolicy,
                "TOML file with the placements of parameters and activations; "
                "empty: the tensor-parallel plan");
      table
          .add("parallelism.fsdp_reshard_after_forward",
               fsdpReshardAfterForward,
               "which parameters the backward pass gathers again; default: all "
               "but the bucket that the forward pass uses last")
          .inTorchtitan("\"default\"");
      table.add("parallelism.fsdp_reshard_ranks", fsdpReshardRanks, 0,
                kMaxRanks,
                "consecutive ranks, as those of a node, from which the "
                "backward pass gathers parameters again: each keeps its part "
                "of them; with the same bits; 0: from all that shard them");
    }
  } parallelism;

  struct Compile {
    ShardMode mode = ShardMode::Auto;
    Bucketing bucket = Bucketing::Block;
    Overlap overlap = Overlap::Block;
    Fusion fuse = Fusion::Chains;
    /// See recomputePolicyFor. ReshardPolicy decides about gathered
    /// parameters.
    std::string recompute = "auto";
    AccumulateGathers accumulateGathers = AccumulateGathers::Repeat;
    AccumulateReduce accumulateReduce = AccumulateReduce::Every;
    AccumulateProducts accumulateProducts = AccumulateProducts::Round;
    AttentionKernel attention = AttentionKernel::Exact;
    ReduceOrder reduce = ReduceOrder::Exact;
    bool computeCopy = false;
    bool wideProducts = false;
    bool embeddingRows = false;
    /// In which a rank's rows are projected to logits.
    int64_t lossChunks = 1;
    int64_t threads = 1;
    std::string cpu = "native";
    Planner plan = Planner::Rule;
    std::string machine = "h100";

    void describe(OptionTable &table) {
      table.decide(Decides::Passes);
      table.add("compile.mode", mode,
                "storage placement of parameters; fully_shard: sharded over "
                "all data-parallel ranks; hybrid_shard: sharded over "
                "data_parallel_shard_degree ranks and replicated over "
                "data_parallel_replicate_degree groups; replicate: whole on "
                "every rank; auto: hybrid_shard if "
                "data_parallel_replicate_degree exceeds 1, else fully_shard");
      table.add("compile.bucket", bucket,
                "collectives that are merged into one; none; block: those of "
                "the parameters of a block");
      table.add("compile.overlap", overlap,
                "collectives that run beside compute; none; block: all, and "
                "gathers start one block before their use");
      table.add("compile.fuse", fuse,
                "kernels of pointwise and row ops; none: one per op; chains: "
                "ops that feed each other share a kernel");
      table.add("compile.recompute", recompute, kRecomputeDoc);
      table.add("compile.accumulate_gathers", accumulateGathers,
                "with several microbatches; repeat: each microbatch gathers "
                "the parameters; keep: the step gathers them once and keeps "
                "them; the bits are the same");
      table.add(
          "compile.accumulate_reduce", accumulateReduce,
          "with several microbatches; every: each microbatch reduces its "
          "gradients; once: every rank adds up its own unsharded gradients, "
          "which are reduced once per step; the two round differently");
      table.add("compile.accumulate_products", accumulateProducts,
                "with several microbatches, for weights whose gradients no "
                "reduction follows; round: a product is rounded and added to "
                "the sum; add: it adds to the sum in float32 itself, and no "
                "gradient is stored; the two round differently");
      table.add("compile.loss_chunks", lossChunks, 1, kMaxDimension,
                "number of chunks of its rows that a rank projects to logits "
                "one after the other, each with its loss and its gradient, so "
                "that it never holds all logits; every number rounds the "
                "projection's gradient differently");
      table.add("compile.attention", attention,
                "exact: the library's attention, if the target has one for it "
                "(auto means the same); fast: its gradient adds in no fixed "
                "order, so that runs do not repeat to the bit, in a workspace "
                "that grows with the sequence and not with its square; only "
                "CUDA artifacts take fast; plain: the reference attention, "
                "which is slow and produces the same bits on every target");
      table.add(
          "compile.reduce", reduce,
          "sums over ranks; exact: in one fixed order, with the same bits in "
          "any mode, plan and library; fast: by NCCL in its own order, with "
          "bits that depend on it; only CUDA artifacts take fast");
      describeParameters(table);
      table.add("compile.threads", threads, 1, 4096,
                "compute threads per rank");
      describeArtifact(table);
    }
    void describeParameters(OptionTable &table) {
      table.add("compile.compute_copy", computeCopy,
                "in bfloat16: the optimizer writes parameters in bf16 too, so "
                "that no step casts; same bits; auto plans may leave them out");
      table.add("compile.wide_products", wideProducts,
                "products of one input are one: queries, keys and values, and "
                "the two of a gated feed-forward; rounds differently");
      table.add("compile.embedding_rows", embeddingRows,
                "where that is fewer bytes, ranks exchange the rows of an "
                "embedding that their tokens name instead of its table, and "
                "the rows' gradients; same bits, with compile.reduce = exact; "
                "auto plans may choose it unless it is stated");
    }
    void describeArtifact(OptionTable &table) {
      table.decide(Decides::Artifact);
      table.add("compile.cpu", cpu,
                "instruction set of the emitted code, as for -march");
      table.add("compile.plan", plan,
                "who decides the schedule; rule: block buckets, one ahead, and "
                "compile.recompute; auto: the compiler, the fastest step that "
                "it finds for --memory-budget. Where that and compile.machine "
                "are stated, and neither this, a plan nor compile.recompute, "
                "another bucket or overlap, a trained model's is auto");
      table.add("compile.machine", machine,
                "with compile.plan = auto: a machine's name or TOML file");
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
    int64_t maxInFlight = 0;
    /// Whether compile.embedding_rows is not stated. No pass asks.
    bool mayChooseRows = true;

    void describe(OptionTable &table) {
      constexpr double most = OptionTable::kMaxInt;
      table.decide(Decides::PassesAlone);
      table.add(
          "mesh", mesh,
          "Axes of the mesh, slowest first, as NAME=SIZE or NAME=SIZE:KIND "
          "with the kinds data and tensor: dp_replicate=2,dp_shard=4; empty: "
          "the module is already sharded, or has no parameters");
      table.add("wide", wide,
                "With bfloat16: parameters and modules that stay f32; see "
                "nn-precision");
      table.add("train", train,
                "Produce @train and @evaluate from @forward; false: the public "
                "functions are the programs");
      table.add("loss-parts", lossParts, 1, kMaxRanks,
                "Parts of the batch; the training loss is the mean of their "
                "mean losses; see nn-differentiate");
      table.add("microbatches", microbatches, 1, kMaxProgramRuns,
                "Microbatches of a step; see nn-accumulate");
      table.add("plan", plan,
                "JSON file with the schedule plan; empty: by rule");
      table.add("max-in-flight", maxInFlight, 0, most,
                "Bytes in flight at once, at most; 0: no limit");
      table.add("memory-budget", memoryBudget, 0, most,
                "Bytes that the arena may have; 0: no limit");
      table.add("target", target,
                "Name of the target that workspaces are sized for; the sizes "
                "of test do not depend on the machine");
    }
  } pipeline;
};

/// The options that a pipeline takes, bound to `options`.
std::vector<ConfigOption> pipelineOptions(CompileOptions &options);

} // namespace fsdp

#endif // FSDP_CONFIG_COMPILEOPTIONS_H
