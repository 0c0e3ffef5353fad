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
               "folder of everything the run writes")
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
      table.add("model.name", name, {"llama3"}, "family of the model")
          .inTorchtitan("\"llama3\"");
      table
          .add(
              "model.flavor", flavor,
              "size of the model: debugmodel, 1B, 3B, 8B, 70B or 405B, or the "
              "path of a Hugging Face directory or config.json; the keys below "
              "change single dimensions")
          .inTorchtitan("\"debugmodel\"", "or a Hugging Face directory");
      table
          .add("model.hf_assets_path", hfAssetsPath,
               "a Hugging Face directory; its config.json, if it has one, "
               "describes the model, with which a stated flavor must agree; a "
               "relative path starts at the current directory")
          .inTorchtitan("\"./tests/assets/tokenizer\"",
                        "the model, by its config.json, and no tokenizer");
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
                "whether the output shares the embedding's weight");
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
               "steps over which the rate rises linearly; more than "
               "training.steps: over all steps, with a warning")
          .inTorchtitan("200");
      table
          .add("lr_scheduler.decay_ratio", decayRatio, 0, 1,
               "share of the steps, at their end, over which the rate falls; "
               "unset: "
               "all after the warm-up; more than those: all after the warm-up, "
               "with a warning")
          .inTorchtitan("unset");
      table.add("lr_scheduler.decay_type", decayType, "how the rate falls")
          .inTorchtitan("\"linear\"");
      table
          .add("lr_scheduler.min_lr_factor", minLrFactor, 0, 1,
               "where the rate ends, as a share of its peak")
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
               "whether the held-out text or ids are evaluated after the last "
               "step")
          .inTorchtitan("false");
      table
          .add("validation.freq", freq, 0, OptionTable::kMaxInt,
               "steps between two evaluations of what is held out; 0: only "
               "after the last step")
          .inTorchtitan("10", "and once at the end");
      table.add(
          "validation.fraction", fraction, 0, 0.9,
          "share of the text or ids, at their end, that is never sampled");
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
               "whether the run saves checkpoints, and goes on from the newest "
               "one in its folder")
          .inTorchtitan("false");
      table
          .add("checkpoint.folder", folder,
               "folder of the checkpoints, one directory step-N each; a "
               "relative "
               "path starts at job.dump_folder")
          .inTorchtitan("\"checkpoint\"");
      table
          .add("checkpoint.interval", interval, 1, OptionTable::kMaxInt,
               "steps between two checkpoints; the last step always has one")
          .inTorchtitan("500");
      table
          .add("checkpoint.initial_load_path", initialLoadPath,
               "a checkpoint (step-N or a folder of them) or a directory of "
               "Hugging Face to begin with; used only while the run's own "
               "folder "
               "has no checkpoint")
          .inTorchtitan("unset");
      table
          .add("checkpoint.initial_load_model_only", initialLoadModelOnly,
               "of checkpoint.initial_load_path take the parameters alone and "
               "begin with step 1; false: go on where it stands")
          .inTorchtitan("true");
      table
          .add("checkpoint.initial_load_in_hf", initialLoadInHf,
               "checkpoint.initial_load_path has to be a directory of Hugging "
               "Face; false: what it is is found out")
          .inTorchtitan("false", "what the path is is found out anyway");
      table
          .add("checkpoint.last_save_model_only", lastSaveModelOnly,
               "the checkpoint of the last step has the parameters alone, in "
               "checkpoint.export_dtype: no run can go on from it")
          .inTorchtitan("true", "so that a run that is over can be prolonged");
      table
          .add("checkpoint.last_save_in_hf", lastSaveInHf,
               "behind the last step write its parameters as a directory of "
               "Hugging Face too, step-N-hf beside step-N, in "
               "checkpoint.export_dtype; with checkpoint.last_save_model_only")
          .inTorchtitan("false", "beside the step, as step-N-hf");
      table
          .add("checkpoint.export_dtype", exportDtype,
               "type of the parameters of checkpoint.last_save_model_only and "
               "checkpoint.last_save_in_hf")
          .inTorchtitan("\"float32\"", "", "fsdp-checkpoint export --dtype");
      table
          .add("checkpoint.create_seed_checkpoint", createSeedCheckpoint,
               "save the initial values as step-0 and end; runs of any mesh "
               "that "
               "find it start from it")
          .inTorchtitan("false", "on any number of ranks");
      table
          .add(
              "checkpoint.async_mode", asyncMode,
              "disabled: a save is written before the next step begins; async: "
              "the next step begins when the rank's part is copied to staging "
              "memory, which a thread writes; async_with_pinned_mem: the same "
              "as async, as copies from a GPU go through pinned memory anyway; "
              "the staging memory itself is not pinned")
          .inTorchtitan("\"disabled\"",
                        "async_with_pinned_mem is the same as async");
      table
          .add("checkpoint.keep_latest_k", keepLatestK, 0, OptionTable::kMaxInt,
               "so many checkpoints stay, at least 2; 0: all")
          .inTorchtitan("10");
      table
          .add("checkpoint.load_step", loadStep, -1, OptionTable::kMaxInt,
               "the step to go on from; -1: the newest")
          .inTorchtitan("-1");
      table
          .add("checkpoint.exclude_from_loading", excludeFromLoading,
               "what begins anew: the optimizer's moments; the learning rate's "
               "schedule; the order of the data, whose settings may then "
               "differ; "
               "the count of steps. On the command line with commas between")
          .inTorchtitan("[]");
      table
          .add("checkpoint.enable_first_step_checkpoint",
               enableFirstStepCheckpoint,
               "save behind step 1 too, to see early whether saving works")
          .inTorchtitan("false");
      table.add("checkpoint.load_only", loadOnly, "load and never save")
          .inTorchtitan("false");
      table.add("checkpoint.on_error", onError,
                "a checkpoint that could not be written: stop ends the run, "
                "continue warns and tries again at the next save (the last has "
                "none: the run fails at its end); those before it stay whole");
      table.add(
          "checkpoint.grace_period_seconds", gracePeriodSeconds, 1, 1e6,
          "seconds that a run has to save and end behind a signal (SIGTERM, "
          "SIGINT, SIGUSR1); then it is ended, as by a second signal");
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
          .inTorchtitan("10", "lines on the console; metrics.jsonl has all");
      table.addLine(
          "metrics.jsonl", jsonl,
          "file in the dump folder for one JSON object per step; empty: "
          "none");
      table.add(
          "metrics.peak_tflops", peakTflops, 0, OptionTable::kAny,
          "peak of one rank that utilisation refers to; 0: of a GPU's data "
          "sheet, or else of matrix products that are measured for a second "
          "at the start, unless the run is shorter than ten times that or "
          "the measurement is no good (other work on the cores)");
    }
  } metrics;

  struct Sample {
    std::string prompt;
    /// Unset: none after training, 200 by the command "sample".
    std::optional<int64_t> length;
    double temperature = 0.8;

    void describe(OptionTable &table) {
      table.decide(Decides::Run);
      table.add("sample.prompt", prompt,
                "text to continue; empty: the start of the held-out text");
      table.add(
          "sample.length", length, 0, 1e6,
          "bytes to generate; unset: none after training, for which 0 stands "
          "too, and 200 by the command sample; each takes a run of the "
          "program evaluate");
      table.add("sample.temperature", temperature, 0, 100,
                "0 takes the likeliest byte");
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

/// Checks that compile.loss_chunks divides the rows that a rank of a traced
/// model has.
void checkLossChunks(const RunConfig &config, ConfigErrors &errors);

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
