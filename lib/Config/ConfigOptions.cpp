//===- ConfigOptions.cpp - The table of all keys --------------------------===//
//
// The one place where a key is spelled: parser, overrides, help and the
// settings of an artifact all come from here.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Config/RunConfig.h"
#include "fsdp/Support/CheckedSize.h"
#include <charconv>
#include <limits>

using namespace fsdp;

static std::string numberText(double value) {
  char buffer[32];
  auto *end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}

static std::string text(bool value) { return value ? "true" : "false"; }
static std::string text(int64_t value) { return std::to_string(value); }
static std::string text(double value) { return numberText(value); }
static std::string text(const std::string &value) { return value; }
/// As on the command line.
static std::string text(const std::vector<std::string> &values) {
  std::string all;
  for (const std::string &value : values)
    all += (all.empty() ? "" : ",") + value;
  return all;
}
template <typename T> static std::string text(const std::optional<T> &value) {
  return value ? text(*value) : "unset";
}

std::string ConfigOption::text() const {
  return std::visit([](auto *value) { return ::text(*value); }, place);
}

std::string ConfigOption::typeName() const {
  struct Name {
    std::string operator()(bool *) { return "boolean"; }
    std::string operator()(int64_t *) { return "integer"; }
    std::string operator()(double *) { return "number"; }
    std::string operator()(std::string *) { return "string"; }
    std::string operator()(std::optional<bool> *) { return "boolean"; }
    std::string operator()(std::optional<int64_t> *) { return "integer"; }
    std::string operator()(std::optional<double> *) { return "number"; }
    std::string operator()(std::vector<std::string> *) { return "list"; }
  };
  return std::visit(Name(), place);
}

namespace {

constexpr double kAny = std::numeric_limits<double>::max();
/// The largest integer that a double, and so a bound, holds exactly.
constexpr double kMaxInt = 9007199254740992.0;

/// Collects the rows of the table.
class Table {
public:
  /// A setting that may change without a new artifact.
  template <typename T>
  void add(const char *name, T &place, double min, double max,
           const char *doc) {
    options.push_back({name, &place, doc, min, max, {}, compiled});
  }
  template <typename T> void add(const char *name, T &place, const char *doc) {
    add(name, place, -kAny, kAny, doc);
  }
  /// Text, or a list of texts, that says one of `choices`.
  template <typename T>
  void add(const char *name, T &place, std::vector<std::string> choices,
           const char *doc) {
    options.push_back(
        {name, &place, doc, -kAny, kAny, std::move(choices), compiled});
  }
  /// Text that others show or keep: isPlainLine.
  void addLine(const char *name, std::string &place, const char *doc) {
    add(name, place, doc);
    options.back().isLine = true;
  }

  std::vector<ConfigOption> options;
  bool compiled = false; // of the rows that follow
};

} // namespace

static void addModel(Table &table, RunConfig::Model &model) {
  table.compiled = true;
  table.add("model.name", model.name, {"llama3"}, "family of the model");
  table.add("model.flavor", model.flavor,
            "size of the model: debugmodel, 1B, 3B, 8B, 70B or 405B, or the "
            "path of a Hugging Face directory or config.json; the keys below "
            "change single dimensions");
  table.add("model.hf_assets_path", model.hfAssetsPath,
            "a Hugging Face directory; its config.json, if it has one, "
            "describes the model, with which a stated flavor must agree; a "
            "relative path starts at the current directory");
  table.add("model.dim", model.dim, 1, kMaxDimension, "width of the model");
  table.add("model.n_layers", model.nLayers, 1, kMaxLayers, "number of blocks");
  table.add("model.n_heads", model.nHeads, 1, kMaxDimension, "attention heads");
  table.add("model.n_kv_heads", model.nKvHeads, 1, kMaxDimension,
            "key and value heads; attention heads share them in groups");
  table.add("model.ffn_dim", model.ffnDim, 1, kMaxDimension,
            "width of the feed-forward layers");
  table.add("model.vocab_size", model.vocabSize, 1, kMaxVocabulary,
            "number of token ids; bytes need 256");
  table.add("model.norm_eps", model.normEps, 0, 1, "epsilon of RMSNorm");
  table.add("model.rope_theta", model.ropeTheta, 1, kAny,
            "base of the rotary frequencies");
  table.add("model.tied", model.tied,
            "whether the output shares the embedding's weight");
}

static void addOptimizer(Table &table, RunConfig &config) {
  RunConfig::Optimizer &optimizer = config.optimizer;
  table.compiled = true;
  table.add("optimizer.name", optimizer.name, {"AdamW", "none"},
            "none leaves the gradients in their ranges and updates nothing");
  table.compiled = false;
  table.add("optimizer.lr", optimizer.lr, 0, kAny, "peak learning rate");
  table.compiled = true;
  table.add("optimizer.beta1", optimizer.beta1, 0, 1,
            "decay of the first moment");
  table.add("optimizer.beta2", optimizer.beta2, 0, 1,
            "decay of the second moment");
  table.add("optimizer.eps", optimizer.eps, 0, 1,
            "added to the root of the second moment");
  table.add("optimizer.weight_decay", optimizer.weightDecay, 0, kAny,
            "decoupled weight decay");
  table.compiled = false;
  RunConfig::LrScheduler &schedule = config.lrScheduler;
  table.add("lr_scheduler.warmup_steps", schedule.warmupSteps, 0, kMaxInt,
            "steps over which the rate rises linearly; more than "
            "training.steps: over all steps, with a warning");
  table.add(
      "lr_scheduler.decay_ratio", schedule.decayRatio, 0, 1,
      "share of the steps, at their end, over which the rate falls; unset: "
      "all after the warm-up; more than those: all after the warm-up, "
      "with a warning");
  table.add("lr_scheduler.decay_type", schedule.decayType,
            {"linear", "sqrt", "cosine"}, "how the rate falls");
  table.add("lr_scheduler.min_lr_factor", schedule.minLrFactor, 0, 1,
            "where the rate ends, as a share of its peak");
}

static void addTraining(Table &table, RunConfig::Training &training) {
  table.compiled = true;
  table.add("training.local_batch_size", training.localBatchSize, 1,
            kMaxDimension, "sequences per rank and microbatch");
  table.add("training.global_batch_size", training.globalBatchSize, -1, kMaxInt,
            "sequences of all ranks per step, a multiple of "
            "training.local_batch_size times the data-parallel ranks: so many "
            "microbatches add up their gradients; unset or -1: one");
  table.add("training.seq_len", training.seqLen, 1, kMaxDimension,
            "tokens per sequence");
  table.add("training.max_norm", training.maxNorm, 0, kAny,
            "gradients are clipped to this norm; 0: not at all");
  table.add("training.mixed_precision_param", training.mixedPrecisionParam,
            {"auto", "float32", "bfloat16"},
            "type in which parameters are gathered and used; auto: bfloat16 "
            "where the CPU has AMX, else float32");
  table.add("training.mixed_precision_reduce", training.mixedPrecisionReduce,
            {"float32"}, "type in which gradients are reduced");
  table.add("training.loss_mean", training.lossMean, {"global", "rank"},
            "global: the mean over the labels of the whole batch; rank: the "
            "mean of the data-parallel ranks' means, as DDP and FSDP2 train, "
            "which differs where labels are ignored");
  table.compiled = false;
  table.add("training.steps", training.steps, 1, kMaxInt, "training steps");
  table.add("training.seed", training.seed, 0, kMaxInt,
            "of the initial values, the sampled windows and the sample");
  table.add("training.dataset", training.dataset, {"bytes", "ids"},
            "bytes: every byte of a text file is a token; ids: token ids that "
            "a tokenizer made, one behind the other in a file. Bytes are "
            "refused for a model with a tokenizer, and have to be said for one "
            "whose vocabulary is not 256");
  table.add("training.dataset_path", training.datasetPath,
            "the text file, or the file of ids; a relative path starts at the "
            "current directory");
  table.add("training.ids_dtype", training.idsDtype, {"u16", "u32", "i32"},
            "type of the ids in training.dataset_path, little-endian; a "
            "vocabulary of more than 65,536 ids asks for it in words");
  table.add("training.ids_mask_path", training.idsMaskPath,
            "a file with a byte per id: 1 where the id is a label, 0 where it "
            "is read and not predicted (prompts, padding); empty: all ids are "
            "labels");
  table.add("training.on_nonfinite", training.onNonfinite, {"stop", "skip"},
            "a step whose loss or gradient norm is not finite: stop ends the "
            "run; skip leaves parameters and optimizer as they are and goes "
            "on");
  table.add("training.max_skipped_steps", training.maxSkippedSteps, 1, kMaxInt,
            "with training.on_nonfinite = skip: so many steps that were "
            "skipped one behind the other end the run");
}

static void addCheckpoint(Table &table, RunConfig::Checkpoint &checkpoint) {
  table.compiled = false;
  table.add("checkpoint.enable", checkpoint.enable,
            "whether the run saves checkpoints, and goes on from the newest "
            "one in its folder");
  table.add("checkpoint.folder", checkpoint.folder,
            "folder of the checkpoints, one directory step-N each; a relative "
            "path starts at job.dump_folder");
  table.add("checkpoint.interval", checkpoint.interval, 1, kMaxInt,
            "steps between two checkpoints; the last step always has one");
  table.add("checkpoint.initial_load_path", checkpoint.initialLoadPath,
            "a checkpoint (step-N or a folder of them) or a directory of "
            "Hugging Face to begin with; used only while the run's own folder "
            "has no checkpoint");
  table.add("checkpoint.initial_load_model_only",
            checkpoint.initialLoadModelOnly,
            "of checkpoint.initial_load_path take the parameters alone and "
            "begin with step 1; false: go on where it stands");
  table.add("checkpoint.initial_load_in_hf", checkpoint.initialLoadInHf,
            "checkpoint.initial_load_path has to be a directory of Hugging "
            "Face; false: what it is is found out");
  table.add("checkpoint.last_save_model_only", checkpoint.lastSaveModelOnly,
            "the checkpoint of the last step has the parameters alone, in "
            "checkpoint.export_dtype: no run can go on from it");
  table.add("checkpoint.last_save_in_hf", checkpoint.lastSaveInHf,
            "behind the last step write its parameters as a directory of "
            "Hugging Face too, step-N-hf beside step-N, in "
            "checkpoint.export_dtype; with checkpoint.last_save_model_only");
  table.add("checkpoint.export_dtype", checkpoint.exportDtype,
            {"float32", "bfloat16"},
            "type of the parameters of checkpoint.last_save_model_only and "
            "checkpoint.last_save_in_hf");
  table.add("checkpoint.create_seed_checkpoint",
            checkpoint.createSeedCheckpoint,
            "save the initial values as step-0 and end; runs of any mesh that "
            "find it start from it");
  table.add("checkpoint.async_mode", checkpoint.asyncMode,
            {"disabled", "async", "async_with_pinned_mem"},
            "disabled: a save is written before the next step begins; async: "
            "the next step begins when the rank's part is copied to staging "
            "memory, which a thread writes; async_with_pinned_mem: the same "
            "as async, as copies from a GPU go through pinned memory anyway; "
            "the staging memory itself is not pinned");
  table.add("checkpoint.keep_latest_k", checkpoint.keepLatestK, 0, kMaxInt,
            "so many checkpoints stay, at least 2; 0: all");
  table.add("checkpoint.load_step", checkpoint.loadStep, -1, kMaxInt,
            "the step to go on from; -1: the newest");
  table.add("checkpoint.exclude_from_loading", checkpoint.excludeFromLoading,
            {"optimizer", "lr_scheduler", "dataloader", "train_state"},
            "what begins anew: the optimizer's moments; the learning rate's "
            "schedule; the order of the data, whose settings may then differ; "
            "the count of steps. On the command line with commas between");
  table.add("checkpoint.enable_first_step_checkpoint",
            checkpoint.enableFirstStepCheckpoint,
            "save behind step 1 too, to see early whether saving works");
  table.add("checkpoint.load_only", checkpoint.loadOnly, "load and never save");
  table.add("checkpoint.on_error", checkpoint.onError, {"stop", "continue"},
            "a checkpoint that could not be written: stop ends the run, "
            "continue warns and tries again at the next save (the last has "
            "none: the run fails at its end); those before it stay whole");
  table.add("checkpoint.grace_period_seconds", checkpoint.gracePeriodSeconds, 1,
            1e6,
            "seconds that a run has to save and end behind a signal (SIGTERM, "
            "SIGINT, SIGUSR1); then it is ended, as by a second signal");
}

static void addParallelism(Table &table, RunConfig::Parallelism &parallelism) {
  table.compiled = true;
  table.add("parallelism.data_parallel_replicate_degree",
            parallelism.dataParallelReplicateDegree, 1, kMaxRanks,
            "groups of ranks that hold the same shards");
  table.add("parallelism.data_parallel_shard_degree",
            parallelism.dataParallelShardDegree, -1, kMaxRanks,
            "ranks over which a parameter is sharded; -1: the rest of the "
            "ranks");
  table.add("parallelism.tensor_parallel_degree",
            parallelism.tensorParallelDegree, 1, kMaxRanks,
            "ranks that compute a layer together");
  table.add("parallelism.sequence_parallel", parallelism.sequenceParallel,
            "with tensor parallelism: activations between layers are cut along "
            "the sequence");
  table.add("parallelism.disable_loss_parallel",
            parallelism.disableLossParallel,
            "with tensor parallelism: every rank computes all logits and the "
            "whole loss; false: they are cut along the sequence");
  table.add("parallelism.placement_policy", parallelism.placementPolicy,
            "TOML file with rules where parameters and activations lie; empty: "
            "the tensor-parallel plan of Llama");
  table.add("parallelism.fsdp_reshard_after_forward",
            parallelism.fsdpReshardAfterForward, {"default", "always", "never"},
            "whether the backward pass gathers parameters again; default: all "
            "but the last unit");
}

static void addCompilation(Table &table, RunConfig::Compile &compile) {
  table.compiled = true;
  table.add("compile.mode", compile.mode,
            {"auto", "fully_shard", "hybrid_shard", "replicate"},
            "where parameters live: sharded over all ranks, sharded over the "
            "shard degree and equal in the groups of the replicate degree, or "
            "whole on every rank; with one group hybrid_shard is fully_shard; "
            "auto: hybrid_shard where data_parallel_replicate_degree exceeds "
            "1, else fully_shard");
  table.add("compile.bucket", compile.bucket, {"none", "block"},
            "which collectives travel together");
  table.add("compile.overlap", compile.overlap, {"none", "block"},
            "block: gathers start one block ahead");
  table.add("compile.fuse", compile.fuse, {"none", "chains"},
            "chains: pointwise and row ops that feed each other share a "
            "kernel");
  table.add("compile.recompute", compile.recompute, {"none", "free", "full"},
            "what the backward pass computes again instead of keeping it: "
            "none; free: in blocks, activation functions, products and norms "
            "of what is kept anyway, for next to no time; full: all of a "
            "block but what the next one takes, for about a quarter more "
            "operations; the bits are the same, and the rules of --plan stand "
            "over it");
  table.add("compile.accumulate_gathers", compile.accumulateGathers,
            {"repeat", "keep"},
            "with several microbatches: whether each gathers the parameters, "
            "or the step does once and keeps them; the bits are the same");
  table.add("compile.accumulate_reduce", compile.accumulateReduce,
            {"every", "once"},
            "with several microbatches: whether each reduces its gradients, or "
            "every rank adds up its own, whole ones, which are reduced once; "
            "the two round differently");
  table.add("compile.loss_chunks", compile.lossChunks, 1, kMaxDimension,
            "so many chunks of its rows does a rank project to logits, one "
            "after the other, each with its loss and its gradient: logits "
            "are never whole; another rounding of the projection's gradient "
            "with every number");
  table.add("compile.attention", compile.attention, {"auto", "plain"},
            "auto: the library's where it has one; plain: a simple kernel that "
            "gives the same bits on every target, slowly");
  table.add("compile.reduce", compile.reduce, {"exact", "fast"},
            "exact: sums over ranks in one fixed order, the same bits in any "
            "mode, plan and library; fast: by NCCL in an order of its own, "
            "with bits that depend on it; of CUDA artifacts alone");
  table.add("compile.threads", compile.threads, 1, 4096,
            "compute threads per rank");
  table.add("compile.cpu", compile.cpu,
            "instruction set of the emitted code, as for -march");
}

static void addReports(Table &table, RunConfig &config) {
  table.compiled = false;
  table.add(
      "validation.enable", config.validation.enable,
      "whether the held-out text or ids are evaluated after the last step");
  table.add("validation.freq", config.validation.freq, 0, kMaxInt,
            "steps between two evaluations of what is held out; 0: only "
            "after the last step");
  table.add("validation.fraction", config.validation.fraction, 0, 0.9,
            "share of the text or ids, at their end, that is never sampled");
  table.add("metrics.log_freq", config.metrics.logFreq, 1, kMaxInt,
            "steps between two lines on the console");
  table.addLine("metrics.jsonl", config.metrics.jsonl,
                "file in the dump folder for one JSON object per step; empty: "
                "none");
  table.add("metrics.peak_tflops", config.metrics.peakTflops, 0, kAny,
            "peak of one rank that utilisation refers to; 0: of a GPU's data "
            "sheet, or else of matrix products that are measured for a second "
            "at the start, unless the run is shorter than ten times that or "
            "the measurement is no good (other work on the cores)");
  table.add("sample.prompt", config.sample.prompt,
            "text to continue; empty: the start of the held-out text");
  table.add("sample.length", config.sample.length, 0, 1e6,
            "bytes to generate; unset: none after training, for which 0 stands "
            "too, and 200 by the command sample; each takes a run of the "
            "program evaluate");
  table.add("sample.temperature", config.sample.temperature, 0, 100,
            "0 takes the likeliest byte");
}

std::vector<ConfigOption> fsdp::configOptions(RunConfig &config) {
  Table table;
  table.addLine("job.description", config.job.description,
                "one line for people");
  table.add("job.dump_folder", config.job.dumpFolder,
            "folder of everything the run writes");
  addModel(table, config.model);
  addOptimizer(table, config);
  addTraining(table, config.training);
  addParallelism(table, config.parallelism);
  addCompilation(table, config.compile);
  addCheckpoint(table, config.checkpoint);
  addReports(table, config);
  return std::move(table.options);
}
