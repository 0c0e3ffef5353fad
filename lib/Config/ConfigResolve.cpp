//===- ConfigResolve.cpp - What a run means on this machine ---------------===//
//
// Settings that depend on the number of ranks or on the CPU, and the list of
// settings an artifact depends on.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Config/RunConfig.h"
#include "fsdp/Support/CheckedSize.h"
#include <algorithm>
#include <cmath>
#include <cpuid.h>
#include <filesystem>

using namespace fsdp;

bool fsdp::hasNativeBf16Matmul() {
  // CPUID leaf 7: EDX bit 22 is AMX-BF16, bit 24 AMX-TILE.
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) &&
         (edx >> 22 & edx >> 24 & 1);
}

static void resolveMesh(RunConfig &config, int64_t ranks) {
  int64_t replicate = config.parallelism.dataParallelReplicateDegree;
  int64_t tensor = config.parallelism.tensorParallelDegree;
  int64_t &shard = config.parallelism.dataParallelShardDegree;
  if (shard == 0)
    throw Error("parallelism.data_parallel_shard_degree: expected -1 or at "
                "least 1, got 0");
  std::string stated = "parallelism.data_parallel_replicate_degree = " +
                       std::to_string(replicate);
  if (tensor > 1)
    stated +=
        " times parallelism.tensor_parallel_degree = " + std::to_string(tensor);
  if (shard == -1) {
    if (ranks % (replicate * tensor) != 0)
      throw Error("impossible mesh: " + stated + " does not divide " +
                  std::to_string(ranks) + " ranks");
    shard = ranks / (replicate * tensor);
  }
  // Each is at most 2^20 ranks.
  if (replicate * shard * tensor != ranks)
    throw Error("impossible mesh: " + stated +
                " times parallelism.data_parallel_shard_degree = " +
                std::to_string(shard) + " is not the number of ranks, " +
                std::to_string(ranks));
}

std::vector<MeshAxisOption> fsdp::resolvedMesh(const RunConfig &config) {
  const RunConfig::Parallelism &parallelism = config.parallelism;
  std::vector<MeshAxisOption> mesh;
  if (parallelism.dataParallelReplicateDegree > 1)
    mesh.push_back({"dp_replicate", parallelism.dataParallelReplicateDegree,
                    AxisKind::Data});
  mesh.push_back(
      {"dp_shard", parallelism.dataParallelShardDegree, AxisKind::Data});
  if (parallelism.tensorParallelDegree > 1)
    mesh.push_back({"tp", parallelism.tensorParallelDegree, AxisKind::Tensor});
  return mesh;
}

int64_t fsdp::dataParallelRanks(const RunConfig &config) {
  return config.parallelism.dataParallelReplicateDegree *
         config.parallelism.dataParallelShardDegree;
}

/// Sequences of one microbatch of all ranks.
static int64_t microbatchSize(const RunConfig &config) {
  return config.training.localBatchSize * dataParallelRanks(config);
}

/// Leaves the size of the global batch unset where a step has one microbatch.
static void resolveBatch(RunConfig &config, ConfigErrors &errors) {
  const char *const key = "training.global_batch_size";
  std::optional<int64_t> &global = config.training.globalBatchSize;
  int64_t size = microbatchSize(config);
  if (!global || *global == -1 || *global == size) {
    global.reset();
    return;
  }
  std::string stated =
      config.origin.count(key) ? config.origin.at(key) + ": " : "";
  stated += std::string(key) + " = " + std::to_string(*global);
  std::string is =
      std::to_string(size) + ", which training.local_batch_size = " +
      std::to_string(config.training.localBatchSize) + " on " +
      std::to_string(dataParallelRanks(config)) + " data-parallel ranks takes";
  if (*global < 1 || *global % size != 0)
    errors.add(stated + " is no multiple of " + is, key);
  else if (*global / size > kMaxProgramRuns)
    errors.add(stated + " is more than 2^20 times " + is, key);
  else if (config.training.lossMean != LossMean::Global)
    errors.add(
        stated +
            " splits a step into several microbatches, whose loss is the mean "
            "over all their labels; leave out training.loss_mean = " +
            spelled(config.training.lossMean),
        key);
}

int64_t fsdp::microbatches(const RunConfig &config) {
  std::optional<int64_t> global = config.training.globalBatchSize;
  return global ? *global / microbatchSize(config) : 1;
}

void fsdp::checkNodeSize(const RunConfig &config, int64_t ranks,
                         ConfigErrors &errors) {
  const char *const key = "parallelism.node_size";
  int64_t size = config.parallelism.nodeSize;
  if (errors.concern("parallelism.") || size <= 1 || ranks % size == 0)
    return;
  errors.add((config.origin.count(key) ? config.origin.at(key) + ": " : "") +
                 key + " = " + std::to_string(size) +
                 " does not divide the number of ranks, " +
                 std::to_string(ranks),
             key);
}

void fsdp::checkReshardRanks(const RunConfig &config, ConfigErrors &errors) {
  const char *const key = "parallelism.fsdp_reshard_ranks";
  int64_t ranks = config.parallelism.fsdpReshardRanks;
  if (ranks == 0 || errors.concern("parallelism."))
    return;
  const char *problem = nullptr;
  int64_t sharding = config.compile.mode == ShardMode::FullyShard
                         ? dataParallelRanks(config)
                         : config.parallelism.dataParallelShardDegree;
  std::string more = " is more than the ranks that shard a parameter, " +
                     std::to_string(sharding);
  if (ranks > sharding)
    problem = more.c_str();
  else if (ranks == 1)
    problem = " would keep parameters whole; that is "
              "parallelism.fsdp_reshard_after_forward = \"never\"";
  else if (config.parallelism.fsdpReshardAfterForward == ReshardPolicy::Never)
    problem = " is about parameters that are gathered again, and with "
              "parallelism.fsdp_reshard_after_forward = \"never\" none is; "
              "leave one of them out";
  else if (config.compile.mode == ShardMode::Replicate)
    problem = " is about parameters that are gathered, and with "
              "compile.mode = \"replicate\" none is; leave one of them out";
  else if (microbatches(config) > 1 &&
           config.compile.accumulateGathers == AccumulateGathers::Keep)
    problem = " is about parameters that are gathered again, and with "
              "compile.accumulate_gathers = \"keep\" none is; leave one of "
              "them out";
  if (problem)
    errors.add((config.origin.count(key) ? config.origin.at(key) + ": " : "") +
                   key + " = " + std::to_string(ranks) + problem,
               key);
}

void fsdp::checkLossChunks(const RunConfig &config, ConfigErrors &errors) {
  const char *const key = "compile.loss_chunks";
  // Sizes that are wrong by themselves have no product.
  if (errors.concern("training.") || errors.concern("parallelism."))
    return;
  int64_t chunks = config.compile.lossChunks;
  int64_t ranks = config.parallelism.tensorParallelDegree;
  // Where a policy shards the rows, the compiler finds out.
  bool hasPolicy = !config.parallelism.placementPolicy.empty();
  if (chunks == 1 || (hasPolicy && ranks > 1))
    return;
  bool isSharded = ranks > 1 && !config.parallelism.disableLossParallel;
  int64_t rows = config.training.localBatchSize * config.training.seqLen;
  std::string stated =
      "training.local_batch_size = " +
      std::to_string(config.training.localBatchSize) +
      " times training.seq_len = " + std::to_string(config.training.seqLen);
  if (isSharded) {
    // That the ranks divide the sequence is checked where it is sharded.
    rows /= ranks;
    stated +=
        " on parallelism.tensor_parallel_degree = " + std::to_string(ranks) +
        " ranks";
  }
  if (rows % chunks != 0)
    errors.add((config.origin.count(key) ? config.origin.at(key) + ": " : "") +
                   key + " = " + std::to_string(chunks) + " does not divide " +
                   std::to_string(rows) +
                   ", the rows of logits that a rank "
                   "has: " +
                   stated + "; choose a divisor of it",
               key);
}

void fsdp::checkComputeCopy(const RunConfig &config, ConfigErrors &errors) {
  const char *const key = "compile.compute_copy";
  if (config.compile.computeCopy &&
      config.training.mixedPrecisionParam == ParamDtype::Float32)
    errors.add((config.origin.count(key) ? config.origin.at(key) + ": " : "") +
                   key +
                   " = true needs training.mixed_precision_param = bfloat16: "
                   "in float32 parameters are computed with as they are",
               key);
}

void fsdp::checkCheckpoint(const RunConfig &config, ConfigErrors &errors) {
  const RunConfig::Checkpoint &checkpoint = config.checkpoint;
  auto refuse = [&](const std::string &key, const std::string &why) {
    std::string name = "checkpoint." + key;
    auto origin = config.origin.find(name);
    errors.add((origin == config.origin.end() ? "" : origin->second + ": ") +
                   name + why,
               name);
  };
  if (!checkpoint.enable) {
    const char *const needsEnable =
        " needs checkpoint.enable = true; with checkpoint.load_only = true "
        "nothing is saved";
    if (!checkpoint.initialLoadPath.empty())
      refuse("initial_load_path", needsEnable);
    if (checkpoint.loadStep >= 0)
      refuse("load_step", needsEnable);
    if (checkpoint.createSeedCheckpoint)
      refuse("create_seed_checkpoint",
             " = true needs checkpoint.enable = true");
    if (checkpoint.lastSaveInHf)
      refuse("last_save_in_hf", " = true needs checkpoint.enable = true");
    return;
  }
  if (checkpoint.keepLatestK == 1)
    refuse("keep_latest_k",
           " = 1 would keep no checkpoint while the next one is written; set "
           "it to 2 or more, or to 0 to keep all");
  if (checkpoint.lastSaveInHf && !checkpoint.lastSaveModelOnly)
    refuse("last_save_in_hf",
           " = true needs checkpoint.last_save_model_only = true: a Hugging "
           "Face directory has only parameters");
  if (checkpoint.lastSaveInHf && checkpoint.loadOnly)
    refuse("last_save_in_hf",
           " = true saves, which checkpoint.load_only = true forbids");
  if (checkpoint.folder.empty())
    refuse("folder", " is empty; it names the folder of the checkpoints");
  if (checkpoint.initialLoadInHf && checkpoint.initialLoadPath.empty())
    refuse(
        "initial_load_in_hf",
        " = true needs checkpoint.initial_load_path, a Hugging Face directory");
  if (checkpoint.createSeedCheckpoint && checkpoint.loadOnly)
    refuse("create_seed_checkpoint", " = true saves, which "
                                     "checkpoint.load_only = true forbids");
  if (checkpoint.createSeedCheckpoint && !checkpoint.initialLoadPath.empty())
    refuse(
        "create_seed_checkpoint",
        " = true saves initial values; leave out checkpoint.initial_load_path");
}

std::string fsdp::checkpointFolder(const RunConfig &config) {
  return (std::filesystem::path(config.job.dumpFolder) /
          config.checkpoint.folder)
      .string();
}

bool fsdp::savesCheckpoints(const RunConfig &config) {
  return config.checkpoint.enable && !config.checkpoint.loadOnly;
}

/// What a policy of one's own says is said there alone.
static void checkPolicy(const RunConfig &config, ConfigErrors &errors) {
  if (config.parallelism.placementPolicy.empty())
    return;
  for (const char *key :
       {"parallelism.sequence_parallel", "parallelism.disable_loss_parallel"})
    if (config.origin.count(key))
      errors.add(config.origin.at(key) + ": " + key +
                     " is for the built-in plan; set [stream] in the file of "
                     "parallelism.placement_policy instead",
                 key);
}

/// What is wrong with torchtitan's keys of features that are on.
static void checkFeatures(RunConfig &config, ConfigErrors &errors) {
  std::vector<ConfigOption> options = configOptions(config);
  for (const auto &[name, message] : config.wrongWithFeature) {
    const std::string &feature = findTorchtitanKey(name)->feature;
    for (const ConfigOption &option : options)
      if (option.name == feature && *std::get<bool *>(option.place))
        errors.add(message + "; with " + feature + " = false any value passes",
                   name);
  }
}

static void resolveMode(RunConfig &config) {
  bool groups = config.parallelism.dataParallelReplicateDegree > 1;
  if (config.compile.mode == ShardMode::Auto)
    config.compile.mode =
        groups ? ShardMode::HybridShard : ShardMode::FullyShard;
}

std::string fsdp::resolveConfig(RunConfig &config, int64_t ranks,
                                ConfigErrors &errors) {
  if (!errors.concern("parallelism.")) {
    try {
      resolveMesh(config, ranks);
      if (!errors.concern("training."))
        resolveBatch(config, errors);
    } catch (const Error &error) {
      errors.add(error.what());
    }
  }
  resolveMode(config);
  checkPolicy(config, errors);
  checkFeatures(config, errors);
  ParamDtype &precision = config.training.mixedPrecisionParam;
  if (precision != ParamDtype::Auto)
    return "";
  bool native = hasNativeBf16Matmul();
  precision = native ? ParamDtype::BFloat16 : ParamDtype::Float32;
  return native ? "precision: bfloat16 with float32 master weights (this CPU "
                  "has AMX)"
                : "precision: float32 (this CPU has no AMX)";
}

std::string fsdp::resolveConfig(RunConfig &config, int64_t ranks) {
  ConfigErrors errors;
  std::string line = resolveConfig(config, ranks, errors);
  errors.throwIfAny();
  return line;
}

//===----------------------------------------------------------------------===//
// The learning rate's phases
//===----------------------------------------------------------------------===//

/// The steps of the decay as they are asked for; all after the warm-up if the
/// ratio is unset.
static int64_t wantedDecay(const RunConfig &config, int64_t afterWarmup) {
  const std::optional<double> &ratio = config.lrScheduler.decayRatio;
  return ratio
             ? std::llround(*ratio * static_cast<double>(config.training.steps))
             : afterWarmup;
}

LrPhases fsdp::lrPhases(const RunConfig &config) {
  int64_t steps = config.training.steps;
  LrPhases phases{};
  phases.warmup = std::min(config.lrScheduler.warmupSteps, steps);
  int64_t rest = steps - phases.warmup;
  phases.decay = std::min(wantedDecay(config, rest), rest);
  phases.stable = rest - phases.decay;
  return phases;
}

std::string fsdp::lrWarning(const RunConfig &config) {
  LrPhases phases = lrPhases(config);
  int64_t steps = config.training.steps;
  int64_t warmup = config.lrScheduler.warmupSteps;
  int64_t decay = wantedDecay(config, phases.decay);
  if (warmup > steps)
    return "lr_scheduler.warmup_steps = " + std::to_string(warmup) +
           " exceeds training.steps = " + std::to_string(steps) +
           ": the rate rises in all steps and never falls";
  if (decay > phases.decay)
    return "lr_scheduler.decay_ratio asks for a decay of " +
           std::to_string(decay) +
           " steps, but lr_scheduler.warmup_steps = " + std::to_string(warmup) +
           " leaves " + std::to_string(phases.decay) +
           ": the rate falls over those";
  return "";
}

std::map<std::string, std::string>
fsdp::compiledSettings(const RunConfig &config) {
  RunConfig copy = config;
  std::map<std::string, std::string> settings;
  for (const ConfigOption &option : configOptions(copy))
    if (option.isCompiled() && option.text() != "unset")
      settings[option.name] = option.text();
  return settings;
}

std::optional<ModelFile> fsdp::modelFile(const RunConfig &config) {
  namespace fs = std::filesystem;
  const auto &[assets, flavor] =
      std::tie(config.model.hfAssetsPath, config.model.flavor);
  std::error_code error; // what cannot be looked at is not there
  fs::path inAssets = fs::path(assets) / "config.json";
  if (!assets.empty() &&
      (fs::exists(inAssets, error) || !fs::is_directory(assets, error)))
    return ModelFile{"model.hf_assets_path", inAssets.string()};
  if (fs::path(flavor).extension() == ".json")
    return ModelFile{"model.flavor", flavor};
  if (flavor.find('/') != std::string::npos || fs::is_directory(flavor, error))
    return ModelFile{"model.flavor", fs::path(flavor) / "config.json"};
  return std::nullopt;
}
