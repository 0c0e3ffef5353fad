//===- RunConfig.h - The description of a run -------------------*- C++ -*-===//
//
// What a TOML file says about a run: model, optimizer, schedule, data, mesh,
// compilation. Sections and keys are torchtitan's where it has them. Every
// key can be overridden on the command line as `--section.key value`.
//
// The options of the sections (ConfigOption.h) are one table, configOptions;
// a second (torchtitanKeys) says what becomes of each key of torchtitan. No
// MLIR here: both fsdp-compile and fsdp-run read runs. What is wrong is
// collected (ConfigErrors), or thrown as one fsdp::Error by the forms without a
// collector.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_CONFIG_RUNCONFIG_H
#define FSDP_CONFIG_RUNCONFIG_H

#include "fsdp/Config/CompileOptions.h"
#include "fsdp/Support/Error.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fsdp {

enum class DecayType { Linear, Sqrt, Cosine };
template <> struct Spellings<DecayType> {
  static constexpr Spelling<DecayType> all[] = {{DecayType::Linear, "linear"},
                                                {DecayType::Sqrt, "sqrt"},
                                                {DecayType::Cosine, "cosine"}};
};

/// Of parameters that are exported.
enum class ExportDtype { Float32, BFloat16 };
template <> struct Spellings<ExportDtype> {
  static constexpr Spelling<ExportDtype> all[] = {
      {ExportDtype::Float32, "float32"}, {ExportDtype::BFloat16, "bfloat16"}};
};

enum class AsyncMode { Disabled, Async, AsyncWithPinnedMemory };
template <> struct Spellings<AsyncMode> {
  static constexpr Spelling<AsyncMode> all[] = {
      {AsyncMode::Disabled, "disabled"},
      {AsyncMode::Async, "async"},
      {AsyncMode::AsyncWithPinnedMemory, "async_with_pinned_mem"}};
};

/// What a run may begin anew.
enum class CheckpointPart { Optimizer, LrScheduler, DataLoader, TrainState };
template <> struct Spellings<CheckpointPart> {
  static constexpr Spelling<CheckpointPart> all[] = {
      {CheckpointPart::Optimizer, "optimizer"},
      {CheckpointPart::LrScheduler, "lr_scheduler"},
      {CheckpointPart::DataLoader, "dataloader"},
      {CheckpointPart::TrainState, "train_state"}};
};

enum class SaveErrorPolicy { Stop, Continue };
template <> struct Spellings<SaveErrorPolicy> {
  static constexpr Spelling<SaveErrorPolicy> all[] = {
      {SaveErrorPolicy::Stop, "stop"}, {SaveErrorPolicy::Continue, "continue"}};
};

/// A run. Optional values that are not set mean "what the flavour says".
struct RunConfig : CompileOptions {
  struct Job {
    std::string description;
    std::string dumpFolder = "outputs";

    void describe(OptionTable &table) {
      table.decide(Decides::Run);
      table.addLine("job.description", description, "one line for people")
          .inTorchtitan("\"default job\"");
      table
          .add("job.dump_folder", dumpFolder,
               "folder of all files that the run writes")
          .inTorchtitan("\"./outputs\"");
    }
  } job;

  struct Model {
    std::string name = "llama3";
    std::string flavor = "debugmodel";
    std::string hfAssetsPath; // a directory; empty: none
    std::optional<int64_t> dim, nLayers, nHeads, nKvHeads, ffnDim, vocabSize;
    std::optional<double> normEps, ropeTheta;
    std::optional<bool> tied;

    void describe(OptionTable &table) {
      table.decide(Decides::Artifact);
      table
          .add("model.name", name,
               {"llama3", "gpt2", "qwen2.5", "qwen3", "mistral", "gemma2",
                "phi3", "olmo2"},
               "family of the model")
          .inTorchtitan("\"llama3\"");
      table
          .add("model.flavor", flavor,
               "size of the model: of llama3 debugmodel, 1B, 3B, 8B, 70B or "
               "405B, of others what fsdp-trace --list has after the name (of "
               "gpt2 small, of qwen2.5 0.5B), or the path of a Hugging Face "
               "directory or config.json; the keys below change single "
               "dimensions")
          .inTorchtitan("\"debugmodel\"", "or a Hugging Face directory");
      table
          .add("model.hf_assets_path", hfAssetsPath,
               "a Hugging Face directory; its config.json, if it has one, "
               "describes the model, and a stated flavor must agree with it; a "
               "relative path starts at the current directory")
          .inTorchtitan(
              "\"./tests/assets/tokenizer\"",
              "the config.json describes the model; no tokenizer is read");
      table.add("model.dim", dim, 1, kMaxDimension, "width of the model");
      table.add("model.n_layers", nLayers, 1, kMaxLayers, "number of blocks");
      table.add("model.n_heads", nHeads, 1, kMaxDimension, "attention heads");
      table.add("model.n_kv_heads", nKvHeads, 1, kMaxDimension,
                "key and value heads; attention heads share them in groups");
      table.add("model.ffn_dim", ffnDim, 1, kMaxDimension,
                "width of the feed-forward layers");
      table.add("model.vocab_size", vocabSize, 1, kMaxVocabulary,
                "number of token ids; bytes need 256");
      table.add("model.norm_eps", normEps, 0, 1, "epsilon of RMSNorm");
      table.add("model.rope_theta", ropeTheta, 1, OptionTable::kAny,
                "base of the rotary frequencies");
      table.add("model.tied", tied,
                "whether the output layer shares the weight of the embedding");
    }
  } model;

  struct LrScheduler {
    int64_t warmupSteps = 200;
    std::optional<double> decayRatio; // unset: all steps after the warm-up
    DecayType decayType = DecayType::Linear;
    double minLrFactor = 0.0;

    void describe(OptionTable &table) {
      table.decide(Decides::Run);
      table
          .add("lr_scheduler.warmup_steps", warmupSteps, 0,
               OptionTable::kMaxInt,
               "steps over which the learning rate rises linearly; more than "
               "training.steps: all steps, with a warning")
          .inTorchtitan("200");
      table
          .add("lr_scheduler.decay_ratio", decayRatio, 0, 1,
               "share of the steps, at the end, over which the learning rate "
               "falls; unset: all steps after the warm-up; more than those: "
               "all of them, with a warning")
          .inTorchtitan("unset");
      table
          .add("lr_scheduler.decay_type", decayType,
               "curve on which the learning rate falls")
          .inTorchtitan("\"linear\"");
      table
          .add("lr_scheduler.min_lr_factor", minLrFactor, 0, 1,
               "final learning rate, as a share of its peak")
          .inTorchtitan("0.0");
    }
  } lrScheduler;

  struct Validation {
    bool enable = true;
    double fraction = 0.05;
    int64_t freq = 0; // steps; 0: only after the last one

    void describe(OptionTable &table) {
      table.decide(Decides::Run);
      table
          .add("validation.enable", enable,
               "whether the run evaluates the held-out text or ids after the "
               "last step")
          .inTorchtitan("false");
      table
          .add("validation.freq", freq, 0, OptionTable::kMaxInt,
               "steps between two evaluations of the held-out data; 0: only "
               "after the last step")
          .inTorchtitan("10", "and once after the last step");
      table.add("validation.fraction", fraction, 0, 0.9,
                "share of the text or ids, at the end, that is held out: never "
                "sampled for training");
    }
  } validation;

  struct Checkpoint {
    bool enable = false;
    std::string folder = "checkpoint"; // below job.dump_folder
    int64_t interval = 500, keepLatestK = 10, loadStep = -1;
    std::string initialLoadPath;
    bool initialLoadModelOnly = true, initialLoadInHf = false;
    bool lastSaveModelOnly = false, lastSaveInHf = false;
    ExportDtype exportDtype = ExportDtype::Float32;
    bool createSeedCheckpoint = false;
    AsyncMode asyncMode = AsyncMode::Disabled;
    std::vector<CheckpointPart> excludeFromLoading;
    bool enableFirstStepCheckpoint = false, loadOnly = false;
    SaveErrorPolicy onError = SaveErrorPolicy::Stop;
    double gracePeriodSeconds = 120;

    void describe(OptionTable &table) {
      table.decide(Decides::Run);
      table
          .add("checkpoint.enable", enable,
               "whether the run saves checkpoints and resumes from the newest "
               "one in its folder")
          .inTorchtitan("false");
      table
          .add("checkpoint.folder", folder,
               "folder of the checkpoints, with a directory step-N for each; a "
               "relative path starts at job.dump_folder")
          .inTorchtitan("\"checkpoint\"");
      table
          .add("checkpoint.interval", interval, 1, OptionTable::kMaxInt,
               "steps between two checkpoints; the last step is always saved")
          .inTorchtitan("500");
      table
          .add("checkpoint.initial_load_path", initialLoadPath,
               "a checkpoint (step-N or a folder of them) or a Hugging Face "
               "directory that the run starts from, if its own folder has no "
               "checkpoint")
          .inTorchtitan("unset");
      table
          .add("checkpoint.initial_load_model_only", initialLoadModelOnly,
               "from checkpoint.initial_load_path load only the parameters and "
               "start at step 1; false: load everything and resume after its "
               "step")
          .inTorchtitan("true");
      table
          .add("checkpoint.initial_load_in_hf", initialLoadInHf,
               "require that checkpoint.initial_load_path is a Hugging Face "
               "directory; false: the run detects the format")
          .inTorchtitan("false", "the run detects the format of the path");
      table
          .add(
              "checkpoint.last_save_model_only", lastSaveModelOnly,
              "save only the parameters at the last step, in "
              "checkpoint.export_dtype; no run can resume from that checkpoint")
          .inTorchtitan("true", "so that a finished run can be continued");
      table
          .add("checkpoint.last_save_in_hf", lastSaveInHf,
               "after the last step also write the parameters as a Hugging "
               "Face directory, step-N-hf beside step-N, in "
               "checkpoint.export_dtype; needs checkpoint.last_save_model_only")
          .inTorchtitan("false", "written beside the step, as step-N-hf");
      table
          .add("checkpoint.export_dtype", exportDtype,
               "type of the parameters that checkpoint.last_save_model_only "
               "and checkpoint.last_save_in_hf write")
          .inTorchtitan("\"float32\"", "", "fsdp-checkpoint export --dtype");
      table
          .add("checkpoint.create_seed_checkpoint", createSeedCheckpoint,
               "save the initial values as step-0 and exit; a run on any mesh "
               "whose folder has it starts from it")
          .inTorchtitan("false", "on any number of ranks");
      table
          .add("checkpoint.async_mode", asyncMode,
               "disabled: a checkpoint is written before the next step starts; "
               "async: the next step starts when the rank has copied its shard "
               "to staging memory, and a thread writes that memory; "
               "async_with_pinned_mem: the same as async; copies from a GPU "
               "always go through pinned memory, and the staging memory itself "
               "is not pinned")
          .inTorchtitan("\"disabled\"",
                        "async_with_pinned_mem is the same as async");
      table
          .add("checkpoint.keep_latest_k", keepLatestK, 0, OptionTable::kMaxInt,
               "number of newest checkpoints to keep, at least 2; 0: all")
          .inTorchtitan("10");
      table
          .add("checkpoint.load_step", loadStep, -1, OptionTable::kMaxInt,
               "step to resume from; -1: the newest")
          .inTorchtitan("-1");
      table
          .add("checkpoint.exclude_from_loading", excludeFromLoading,
               "parts of a checkpoint that the run does not load but starts "
               "anew: the optimizer's moments; the learning rate's schedule; "
               "the order of the data, whose settings may then differ; the "
               "step count. On the command line, separated by commas")
          .inTorchtitan("[]");
      table
          .add("checkpoint.enable_first_step_checkpoint",
               enableFirstStepCheckpoint,
               "also save after step 1, to see early whether saving works")
          .inTorchtitan("false");
      table
          .add("checkpoint.load_only", loadOnly,
               "load checkpoints and never save")
          .inTorchtitan("false");
      table.add(
          "checkpoint.on_error", onError,
          "what to do if a checkpoint cannot be written; stop: end the run; "
          "continue: warn and try again at the next save (if the last save "
          "fails, the run fails at its end); earlier checkpoints stay intact");
      table.add("checkpoint.grace_period_seconds", gracePeriodSeconds, 1, 1e6,
                "seconds that a run has to save and exit after a signal "
                "(SIGTERM, SIGINT, SIGUSR1); after that the signal kills it, "
                "as a second signal does");
    }
  } checkpoint;

  struct Metrics {
    int64_t logFreq = 10;
    std::string jsonl = "metrics.jsonl";
    double peakTflops = 0;

    void describe(OptionTable &table) {
      table.decide(Decides::Run);
      table
          .add("metrics.log_freq", logFreq, 1, OptionTable::kMaxInt,
               "steps between two lines on the console")
          .inTorchtitan("10",
                        "lines on the console; metrics.jsonl has all steps");
      table.addLine(
          "metrics.jsonl", jsonl,
          "file in the dump folder with one JSON object per step; empty: none");
      table.add(
          "metrics.peak_tflops", peakTflops, 0, OptionTable::kAny,
          "roofline peak of one rank, in TFLOP/s, for the utilisation; 0: that "
          "of the GPU's data sheet, or else that of matrix products measured "
          "for a second at the start, unless the run is shorter than ten times "
          "that or the measurement is unreliable (other work on the cores)");
    }
  } metrics;

  struct Sample {
    std::string prompt, promptIds;
    /// Unset: none after training, 200 by the command "sample".
    std::optional<int64_t> length;
    double temperature = 0.8;

    void describe(OptionTable &table) {
      table.decide(Decides::Run);
      table.add("sample.prompt", prompt,
                "with training.dataset = bytes: text to continue; empty: the "
                "start of the held-out text");
      table.add("sample.prompt_ids", promptIds,
                "with training.dataset = tokens: ids to continue, with commas "
                "between, as tools/fsdp-tokenize --prompt prints them; empty: "
                "the first held-out ids");
      table.add("sample.length", length, 0, 1e6,
                "bytes or tokens to generate; unset: none after training, and "
                "200 with the command sample; 0: none after training; each "
                "takes one run of the program evaluate");
      table.add("sample.temperature", temperature, 0, 100,
                "sampling temperature; 0: take the likeliest byte or token");
    }
  } sample;

  /// Where a key was set ("run.toml:7", "command line"); unset keys are
  /// absent.
  std::map<std::string, std::string> origin;
  /// What is wrong with keys that matter only with a feature, if it is on: a
  /// message for each key of torchtitanKeys().
  std::map<std::string, std::string> wrongWithFeature;
};

/// The table of all keys, bound to `config`, in the order of the sections.
std::vector<ConfigOption> configOptions(RunConfig &config);

/// A key of torchtitan's run descriptions, and what becomes of it here.
struct TorchtitanKey {
  enum Fate {
    Works,   // a key of ours, in configOptions()
    Any,     // any value passes and changes nothing
    Only,    // one of `values` passes, or any while `feature` is off
    Refused, // no value passes
  };
  std::string name;
  Fate fate;
  std::string standard;            // torchtitan's default; empty: it has no
                                   // such key any more
  std::vector<std::string> values; // TOML literals
  std::string meaning;             // what is so here
  std::string instead; // of a refused value; empty: nothing here does that
  std::string feature; // a key of ours, true or false; empty: none
  std::string sets;    // a key of ours that a passing value is one of too;
                       // empty: none
};

/// The table of all torchtitan's keys, in the order of the sections.
const std::vector<TorchtitanKey> &torchtitanKeys();

/// The row of a key, or null.
const TorchtitanKey *findTorchtitanKey(const std::string &name);

/// What is wrong with the settings of a run: everything, so that a file is
/// mended in one go.
class ConfigErrors {
public:
  /// `key` is what the message is about, if it is one key.
  void add(const std::string &message, const std::string &key = "");
  /// Whether a key that begins with `prefix` is wrong. Checks of several keys
  /// leave those out.
  bool concern(const std::string &prefix) const;
  /// Throws one fsdp::Error with a line for each, if there are any.
  void throwIfAny() const;

private:
  std::vector<std::string> messages, keys;
};

/// Reads a TOML file over `config`.
void loadConfig(RunConfig &config, const std::string &path,
                ConfigErrors &errors);
void loadConfig(RunConfig &config, const std::string &path);

/// Sets one key from text; `origin` says where the text stood.
void setConfigOption(RunConfig &config, const std::string &name,
                     const std::string &text, const std::string &origin);

/// Applies each `--section.key value` and `--section.key=value` among `args`
/// and returns the other arguments in order.
std::vector<std::string>
applyConfigOverrides(RunConfig &config, const std::vector<std::string> &args,
                     ConfigErrors &errors);
std::vector<std::string>
applyConfigOverrides(RunConfig &config, const std::vector<std::string> &args);

/// What an unknown `option` of a command line ("--dump_folder") probably means:
/// "; did you mean '--job.dump_folder'?" for a key without its section, the
/// nearest of the tool's `options` ("config") or of the keys, or nothing.
std::string suggestOption(const std::string &option,
                          const std::vector<std::string> &options);

/// The reference of all keys with types, defaults and choices, for --help.
std::string configHelp();

/// The same with torchtitan's keys as Markdown, docs/reference/config.md,
/// without the end of the last line.
std::string configReference();

/// Replaces "auto" and -1 by what they mean on `ranks` ranks and this machine,
/// and checks what concerns several keys that are compiled. Returns one line
/// that says how the precision was chosen, or nothing if it was stated.
std::string resolveConfig(RunConfig &config, int64_t ranks,
                          ConfigErrors &errors);
std::string resolveConfig(RunConfig &config, int64_t ranks);

/// Checks that the ranks of the job are whole nodes of parallelism.node_size.
void checkNodeSize(const RunConfig &config, int64_t ranks,
                   ConfigErrors &errors);

/// Checks that parameters are gathered again where
/// parallelism.fsdp_reshard_ranks says from how many ranks.
void checkReshardRanks(const RunConfig &config, ConfigErrors &errors);

/// Checks that compile.loss_chunks divides the rows that a rank of a traced
/// model has.
void checkLossChunks(const RunConfig &config, ConfigErrors &errors);

/// Checks that compile.compute_copy has parameters that are cast.
void checkComputeCopy(const RunConfig &config, ConfigErrors &errors);

/// Checks what concerns several keys of a run that an artifact does not depend
/// on.
void checkCheckpoint(const RunConfig &config, ConfigErrors &errors);

/// The folder of a run's checkpoints.
std::string checkpointFolder(const RunConfig &config);

/// Whether a run saves checkpoints, and so ends well at a signal.
bool savesCheckpoints(const RunConfig &config);

/// Microbatches of a step of a resolved run.
int64_t microbatches(const RunConfig &config);

/// The mesh of a resolved run, slowest axis first: what tensor parallel ranks
/// exchange stays nearest.
std::vector<MeshAxisOption> resolvedMesh(const RunConfig &config);

/// Ranks that have a part of the batch each, once resolveConfig() knows them.
int64_t dataParallelRanks(const RunConfig &config);

/// How the steps divide. The rate rises during the warm-up, which is cut to
/// training.steps, and falls during the decay, which is cut to the steps after
/// the warm-up.
struct LrPhases {
  int64_t warmup, stable, decay;
};
LrPhases lrPhases(const RunConfig &config);

/// One line about what lrPhases had to cut, or nothing. Only a run asks: the
/// schedule is not compiled.
std::string lrWarning(const RunConfig &config);

/// The settings an artifact depends on, as "section.key" -> text: the
/// manifest's "config". Unset keys are absent.
std::map<std::string, std::string> compiledSettings(const RunConfig &config);

/// The config.json that describes a run's model, whether it is there or not,
/// and the key that names it. A stated model.hf_assets_path without a
/// config.json is a tokenizer's.
struct ModelFile {
  std::string key, path;
};
/// Unset: model.flavor is one of those that have a name.
std::optional<ModelFile> modelFile(const RunConfig &config);

/// Whether this CPU multiplies bf16 matrices natively (AMX).
bool hasNativeBf16Matmul();

} // namespace fsdp

#endif // FSDP_CONFIG_RUNCONFIG_H
