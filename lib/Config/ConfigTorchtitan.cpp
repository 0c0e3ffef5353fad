//===- ConfigTorchtitan.cpp - What becomes of torchtitan's keys -----------===//
//
// Every key of the last torchtitan that reads TOML, in its order, and after
// the keys of each section those that earlier ones had there. A key whose
// feature is not here passes with the value that leaves it off and is refused
// with others: what is asked for is never dropped. Keys that matter only while
// a feature is on may hold anything, since the feature's own key keeps it off.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Config/RunConfig.h"
#include <cstdlib>

using namespace fsdp;

namespace {

/// Collects the rows of the table.
class Rows {
public:
  using Values = std::vector<std::string>;

  /// The section of the rows that follow.
  Rows &section(const char *name) {
    prefix = std::string(name) + ".";
    isEarlier = false;
    return *this;
  }
  /// One that the last version has under another name.
  Rows &earlierSection(const char *name) {
    section(name);
    isEarlier = true;
    return *this;
  }
  /// A key of ours, whose record says the rest.
  void works(const char *key) {
    for (const ConfigOption &option : options)
      if (option.name == prefix + key && option.torchtitan) {
        const InTorchtitan &there = *option.torchtitan;
        return add(key, TorchtitanKey::Works, there.standard.c_str(), {},
                   there.note.c_str(), there.instead.c_str());
      }
    std::abort(); // no option says that torchtitan has it
  }
  /// Any value passes.
  void any(const char *key, const char *standard, const char *meaning) {
    add(key, TorchtitanKey::Any, standard, {}, meaning, "");
  }
  void only(Values values, const char *key, const char *standard,
            const char *meaning, const char *instead = "") {
    add(key, TorchtitanKey::Only, standard, std::move(values), meaning,
        instead);
  }
  /// Any value passes while the key `feature` of ours is false.
  void onlyWith(const char *feature, Values values, const char *key,
                const char *standard, const char *meaning,
                const char *instead) {
    only(std::move(values), key, standard, meaning, instead);
    keys.back().feature = feature;
  }
  /// One of `values` is said of the key `ours` too.
  void sets(const char *ours, Values values, const char *key,
            const char *standard, const char *meaning, const char *instead) {
    only(std::move(values), key, standard, meaning, instead);
    keys.back().sets = ours;
  }
  void refused(const char *key, const char *standard, const char *meaning,
               const char *instead) {
    add(key, TorchtitanKey::Refused, standard, {}, meaning, instead);
  }
  /// A name that the section had once.
  void renamed(const char *key, const char *instead) {
    refused(key, kEarlier, "an earlier name", instead);
  }

  /// In the place of a default: that there is none any more.
  static constexpr const char *kEarlier = "";
  /// That it is None, which TOML cannot say.
  static constexpr const char *kUnset = "unset";

  std::vector<TorchtitanKey> keys;

private:
  void add(const char *key, TorchtitanKey::Fate fate, const char *standard,
           Values values, const char *meaning, const char *instead) {
    keys.push_back({prefix + key, fate, isEarlier ? kEarlier : standard,
                    std::move(values), meaning, instead, "", ""});
  }

  RunConfig defaults;
  std::vector<ConfigOption> options = configOptions(defaults);
  std::string prefix;
  bool isEarlier = false;
};

} // namespace

static const char *const noPython = "there is no Python";
static const char *const noExperts = "there are no experts";
static const char *const noFloat8 = "there is no Float8 and no MX";
static const char *const ofConverters =
    "matters only with model.converters, which is []";
static const char *const noPipeline = "there is no pipeline parallelism";
static const char *const compiled = "every program is compiled ahead of time";
static const char *const sameBits =
    "a run always produces the same bits, unless compile.reduce or "
    "compile.attention is fast";
static const char *const whatIsHeldOut =
    "all of the held-out end of the text (validation.fraction) is evaluated, "
    "in the batches of training";

static void addJob(Rows &rows) {
  const char *const settings =
      "the line \"run\" of metrics.jsonl, which has every setting";
  const char *const notPrinted = "settings are not printed";
  rows.section("job");
  rows.refused("config_file", Rows::kUnset, "no key names the file",
               "the option --config");
  rows.works("dump_folder");
  rows.works("description");
  rows.only({"false"}, "print_config", "false", notPrinted, settings);
  rows.refused("save_config_file", Rows::kUnset, "no such file is written",
               settings);
  rows.only({"\"\""}, "custom_config_module", "\"\"", noPython);
  rows.only({"false"}, "print_args", Rows::kEarlier, notPrinted, settings);
  rows.any("use_for_integration_test", Rows::kEarlier, "changes no run");
}

static void addProfiling(Rows &rows) {
  const char *const noProfile = "no profile is written";
  rows.section("profiling");
  rows.only({"false"}, "enable_profiling", "false", noProfile,
            "the environment variable FSDP_TRACE, which writes a trace");
  rows.any("save_traces_folder", "\"profile_traces\"", noProfile);
  rows.any("profile_freq", "10", noProfile);
  rows.any("profiler_active", "1", noProfile);
  rows.any("profiler_warmup", "3", noProfile);
  rows.only({"false"}, "enable_memory_snapshot", "false",
            "the arena is planned ahead of time", "fsdp-compile --emit=memory");
  rows.any("save_memory_snapshot_folder", "\"memory_snapshot\"", noProfile);
}

static void addMetrics(Rows &rows) {
  const char *const noBoard = "metrics are lines of JSON";
  const char *const file = "metrics.jsonl";
  rows.section("metrics");
  rows.works("log_freq");
  rows.only({"false"}, "enable_tensorboard", "false", noBoard, file);
  rows.any("disable_color_printing", "false", "nothing is coloured");
  rows.any("save_tb_folder", "\"tb\"", noBoard);
  rows.only({"false"}, "save_for_all_ranks", "false",
            "the values are those of all ranks", file);
  rows.only({"false"}, "enable_wandb", "false", noBoard, file);
  rows.any("enable_color_printing", Rows::kEarlier, "nothing is coloured");
  rows.only({"true"}, "rank_0_only", Rows::kEarlier,
            "the values are those of all ranks", file);
}

static void addModel(Rows &rows) {
  rows.section("model");
  rows.works("name");
  rows.works("flavor");
  rows.works("hf_assets_path");
  rows.only({"\"\""}, "tokenizer_path", Rows::kUnset, "bytes are tokens");
  rows.only({"[]"}, "converters", "[]", noFloat8);
  rows.any("print_after_conversion", "false", ofConverters);
  rows.only({"\"rmsnorm\""}, "norm_type", Rows::kEarlier,
            "Llama's norms are RMSNorm");
}

static void addOptimizer(Rows &rows) {
  rows.section("optimizer");
  rows.works("name");
  rows.works("lr");
  rows.works("beta1");
  rows.works("beta2");
  rows.works("eps");
  rows.works("weight_decay");
  rows.only({"\"fused\"", "\"foreach\"", "\"for-loop\""}, "implementation",
            "\"fused\"", "one kernel updates many parameters");
  rows.only({"false"}, "early_step_in_backward", "false",
            "the update follows the backward pass");
  rows.any("fused", Rows::kEarlier, "one kernel updates many parameters");

  rows.section("lr_scheduler");
  rows.works("warmup_steps");
  rows.refused("total_steps", Rows::kUnset,
               "the schedule covers training.steps",
               "training.steps, and a signal to end the run earlier");
  rows.works("decay_ratio");
  rows.works("decay_type");
  rows.works("min_lr_factor");
  rows.renamed("lr_min", "lr_scheduler.min_lr_factor");
}

static void addDataLoader(Rows &rows) {
  const char *const noWorkers = "every rank reads the text from memory";
  rows.any("dataloader.num_workers", "0", noWorkers);
  rows.any("dataloader.persistent_workers", "false", noWorkers);
  rows.any("dataloader.pin_memory", "false", noWorkers);
  rows.any("dataloader.prefetch_factor", Rows::kUnset, noWorkers);
}

static void addTraining(Rows &rows) {
  rows.section("training");
  rows.works("dataset");
  rows.works("dataset_path");
  rows.works("local_batch_size");
  rows.works("global_batch_size");
  rows.works("seq_len");
  rows.works("max_norm");
  rows.works("steps");
  rows.only({"false"}, "enable_cpu_offload", "false",
            "everything stays in the arena");
  rows.only({"\"float32\""}, "dtype", "\"float32\"",
            "parameters are kept in f32", "training.mixed_precision_param");
  rows.works("mixed_precision_param");
  rows.works("mixed_precision_reduce");
  rows.any("gc_freq", "50", noPython);
  rows.any("gc_debug", "false", noPython);
  addDataLoader(rows);
  rows.renamed("batch_size", "training.local_batch_size");
  rows.any("compile", Rows::kEarlier, compiled);
  rows.works("seed");
  rows.any("deterministic", Rows::kEarlier, sameBits);
  rows.any("debug_moe_force_load_balance", Rows::kEarlier, noExperts);
}

static void addPipeline(Rows &rows) {
  rows.only({"1"}, "pipeline_parallel_degree", "1", noPipeline,
            "parallelism.data_parallel_shard_degree or "
            "parallelism.tensor_parallel_degree");
  rows.any("module_fqns_per_model_part", Rows::kUnset, noPipeline);
  rows.any("pipeline_parallel_first_stage_less_layers", "1", noPipeline);
  rows.any("pipeline_parallel_last_stage_less_layers", "1", noPipeline);
  rows.any("pipeline_parallel_layers_per_stage", Rows::kUnset, noPipeline);
  rows.any("pipeline_parallel_schedule", "\"1F1B\"", noPipeline);
  rows.any("pipeline_parallel_schedule_csv", "\"\"", noPipeline);
  rows.any("pipeline_parallel_microbatch_size", "1", noPipeline);
  rows.any("pipeline_parallel_expert_parallel_overlap", "true", noPipeline);
}

static void addParallelism(Rows &rows) {
  const char *const noContext = "there is no context parallelism";
  rows.section("parallelism");
  rows.works("data_parallel_replicate_degree");
  rows.works("data_parallel_shard_degree");
  rows.works("fsdp_reshard_after_forward");
  rows.works("tensor_parallel_degree");
  rows.works("disable_loss_parallel");
  rows.only({"false"}, "enable_async_tensor_parallel", "false",
            "collectives of tensor-parallel layers are not split into pieces "
            "that a matmul hides");
  addPipeline(rows);
  rows.only({"1"}, "context_parallel_degree", "1", noContext,
            "parallelism.tensor_parallel_degree, which splits activations "
            "along the sequence between layers");
  rows.any("context_parallel_load_balancer", "\"headtail\"", noContext);
  rows.any("context_parallel_rotate_method", "\"allgather\"", noContext);
  rows.only({"1"}, "expert_parallel_degree", "1", noExperts);
  rows.only({"1"}, "expert_tensor_parallel_degree", "1", noExperts);
  rows.any("expert_parallel_comm_backend", "\"standard\"", noExperts);
  rows.any("enable_compiled_autograd", Rows::kEarlier, compiled);
  rows.any("pipeline_parallel_split_points", Rows::kEarlier, noPipeline);
  rows.any("pipeline_parallel_microbatches", Rows::kEarlier, noPipeline);
}

static void addCheckpoint(Rows &rows) {
  rows.section("checkpoint");
  rows.works("enable");
  rows.any("enable_ft_dataloader_checkpoints", "true",
           "matters only with fault_tolerance.enable, which is false");
  rows.works("folder");
  rows.works("interval");
  rows.works("initial_load_path");
  rows.works("initial_load_model_only");
  rows.works("initial_load_in_hf");
  rows.only({"false"}, "initial_load_in_hf_quantized", "false",
            "weights are read in F32, BF16 and F16",
            "transformers, which can write dequantized weights");
  rows.works("last_save_model_only");
  rows.works("last_save_in_hf");
  rows.works("export_dtype");
  rows.works("async_mode");
  rows.works("keep_latest_k");
  rows.works("load_step");
  rows.works("exclude_from_loading");
  rows.works("enable_first_step_checkpoint");
  rows.works("create_seed_checkpoint");
  rows.works("load_only");
  rows.only({"false"}, "enable_checkpoint", Rows::kEarlier, "an earlier name",
            "checkpoint.enable");
  rows.only({"\"steps\""}, "interval_type", Rows::kEarlier,
            "checkpoint.interval is in steps");
  rows.renamed("model_weights_only", "checkpoint.last_save_model_only");
  rows.renamed("last_save_model_weights_only",
               "checkpoint.last_save_model_only");
  rows.renamed("last_save_in_safetensors_format", "checkpoint.last_save_in_hf");
  rows.renamed("initial_load_model_weights_only",
               "checkpoint.initial_load_model_only");
}

static void addRecomputation(Rows &rows) {
  const char *const ofSelective =
      "matters only with activation_checkpoint.mode = \"selective\", which is "
      "refused";
  const char *const ofBudget = "matters only with activation_checkpoint.mode = "
                               "\"memory_budget\", which is refused";
  rows.section("activation_checkpoint");
  rows.sets("compile.recompute", {"\"none\"", "\"full\""}, "mode",
            "\"selective\"", "the same as compile.recompute",
            "compile.recompute = \"free\", which recomputes the values that "
            "take almost no time, \"selective\" for selective_ac_option = "
            "\"op\" or \"every-2\" for \"2\"");
  rows.any("selective_ac_option", "\"2\"", ofSelective);
  rows.any("per_op_sac_force_recompute_mm_shapes_by_fqns",
           "[\"moe.router.gate\"]", ofSelective);
  rows.any("early_stop", "false",
           "only what the backward pass uses is computed again");
  rows.any("memory_budget", "0.5", ofBudget);
  rows.any("visualize_memory_budget_pareto", "false", ofBudget);
  rows.any("preserve_rng_state", "true", "no layer draws random numbers");
  rows.any("determinism_check", "\"default\"",
           "recomputed values have the same bits");
  rows.any("debug", "false",
           "fsdp-compile --emit=plan lists the recomputed values");
}

static void addCompilation(Rows &rows) {
  addRecomputation(rows);
  rows.section("compile");
  rows.any("enable", "false", compiled);
  rows.any("components", "[\"model\", \"loss\"]", compiled);
  rows.any("backend", "\"inductor\"", compiled);
}

static void addFloat8(Rows &rows) {
  rows.any("enable_fsdp_float8_all_gather", "false", ofConverters);
  rows.any("precompute_float8_dynamic_scale_for_fsdp", "false", ofConverters);
  rows.any("recipe_name", Rows::kUnset, ofConverters);
  rows.any("filter_fqns", "[]", ofConverters);
  rows.any("emulate", "false", ofConverters);
}

static void addMX(Rows &rows) {
  rows.any("mxfp8_dim1_cast_kernel_choice", "\"triton\"", ofConverters);
  rows.any("recipe_name", "\"mxfp8_cublas\"", ofConverters);
  rows.any("filter_fqns", "[\"output\"]", ofConverters);
}

static void addQuantization(Rows &rows) {
  addFloat8(rows.section("quantize.linear.float8"));
  addMX(rows.section("quantize.linear.mx"));
  rows.section("quantize.grouped_mm.float8").any("fqns", "[]", ofConverters);
  rows.section("quantize.grouped_mm.mx");
  rows.any("recipe_name", "\"mxfp8\"", ofConverters);
  rows.any("fqns", "[]", ofConverters);
  addFloat8(rows.earlierSection("float8"));
  rows.only({"false"}, "enable_float8_linear", Rows::kEarlier, noFloat8);
  rows.any("force_recompute_fp8_weight_in_bwd", Rows::kEarlier, ofConverters);
  rows.any("moe_fqns_prototype", Rows::kEarlier, ofConverters);
  addMX(rows.earlierSection("mx"));
  rows.any("use_fp8_dim1_cast_triton_kernel", Rows::kEarlier, ofConverters);
  rows.any("moe_fqns_prototype", Rows::kEarlier, ofConverters);
}

static void addJobs(Rows &rows) {
  const char *const named = "a collective that hangs is always named";
  rows.section("comm");
  rows.refused("init_timeout_seconds", "300", "no key sets a timeout",
               "the environment variables FSDP_JOIN_TIMEOUT and FSDP_TIMEOUT");
  rows.refused("train_timeout_seconds", "100", "no key sets a timeout",
               "the environment variable FSDP_TIMEOUT");
  rows.any("trace_buf_size", "20000", named);
  rows.any("save_traces_folder", "\"comm_traces\"", named);
  rows.any("save_traces_file_prefix", "\"rank_\"", named);
  rows.only({"\"default\""}, "mode", "\"default\"", "collectives are real",
            "fsdp-compile, which needs no job, or fsdp-interpret, which "
            "simulates ranks");

  const char *const exact = "the arena is exact";
  const char *const table = "fsdp-compile --emit=memory";
  rows.section("memory_estimation");
  rows.only({"false"}, "enable", "false", exact, table);
  rows.any("disable_fake_mode", "false", exact);
  rows.only({"false"}, "enabled", Rows::kEarlier, exact, table);

  const char *const ofEnable =
      "matters only with fault_tolerance.enable, which is false";
  rows.section("fault_tolerance");
  rows.only({"false"}, "enable", "false", "a lost rank ends the job",
            "checkpoint.enable, and start the job again");
  rows.any("process_group", "\"gloo\"", ofEnable);
  rows.any("process_group_timeout_ms", "10000", ofEnable);
  rows.any("replica_id", "0", ofEnable);
  rows.any("group_size", "0", ofEnable);
  rows.any("min_replica_size", "1", ofEnable);
  rows.any("semi_sync_method", Rows::kUnset, ofEnable);
  for (const char *key : {"sync_steps", "should_quantize", "num_fragments",
                          "fragment_sync_delay", "fragment_update_alpha"})
    rows.any(key, Rows::kEarlier, ofEnable);

  rows.section("experimental");
  rows.only({"\"\""}, "custom_import", "\"\"", noPython);
  rows.only({"\"\""}, "custom_args_module", "\"\"", noPython);
}

static void addValidation(Rows &rows) {
  const char *const feature = "validation.enable";
  rows.section("validation");
  rows.works("enable");
  rows.onlyWith(feature, {}, "dataset", "\"c4_validation\"", whatIsHeldOut,
                "validation.fraction");
  rows.onlyWith(feature, {}, "dataset_path", Rows::kUnset, whatIsHeldOut,
                "validation.fraction");
  rows.onlyWith(feature, {}, "local_batch_size", "8", whatIsHeldOut,
                "training.local_batch_size");
  rows.onlyWith(feature, {}, "seq_len", "2048", whatIsHeldOut,
                "training.seq_len");
  rows.works("freq");
  rows.onlyWith(feature, {"-1"}, "steps", "-1", whatIsHeldOut,
                "validation.fraction");
  addDataLoader(rows);
  rows.renamed("enabled", "validation.enable");

  rows.section("debug");
  rows.refused("seed", Rows::kUnset, "the seed belongs to the training",
               "training.seed");
  rows.any("deterministic", "false", sameBits);
  rows.any("deterministic_warn_only", "false", sameBits);
  rows.any("moe_force_load_balance", "false", noExperts);
}

static std::vector<TorchtitanKey> makeTable() {
  Rows rows;
  addJob(rows);
  addProfiling(rows);
  addMetrics(rows);
  addModel(rows);
  addOptimizer(rows);
  addTraining(rows);
  addParallelism(rows);
  addCheckpoint(rows);
  addCompilation(rows);
  addQuantization(rows);
  addJobs(rows);
  addValidation(rows);
  return std::move(rows.keys);
}

const std::vector<TorchtitanKey> &fsdp::torchtitanKeys() {
  static const std::vector<TorchtitanKey> keys = makeTable();
  return keys;
}

const TorchtitanKey *fsdp::findTorchtitanKey(const std::string &name) {
  for (const TorchtitanKey &key : torchtitanKeys())
    if (key.name == name)
      return &key;
  return nullptr;
}
