//===- RunConfig.h - The description of a run -------------------*- C++ -*-===//
//
// What a TOML file says about a run: model, optimizer, schedule, data, mesh,
// compilation. Sections and keys are torchtitan's where it has them. Every
// key can be overridden on the command line as `--section.key value`.
//
// One table (configOptions) drives the parser, the overrides, `--help` and
// the list of settings a compiled artifact depends on; a second
// (torchtitanKeys) says what becomes of each key of torchtitan. No MLIR here:
// both fsdp-compile and fsdp-run read runs. What is wrong is collected
// (ConfigErrors), or thrown as one fsdp::Error by the forms without a
// collector.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_CONFIG_RUNCONFIG_H
#define FSDP_CONFIG_RUNCONFIG_H

#include "fsdp/Support/Error.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace fsdp {

/// A run. Optional values that are not set mean "what the flavour says".
struct RunConfig {
  struct Job {
    std::string description;
    std::string dumpFolder = "outputs";
  } job;

  struct Model {
    std::string name = "llama3";
    std::string flavor = "debugmodel";
    std::string hfAssetsPath; // a directory; empty: none
    std::optional<int64_t> dim, nLayers, nHeads, nKvHeads, ffnDim, vocabSize;
    std::optional<double> normEps, ropeTheta;
    std::optional<bool> tied;
  } model;

  struct Optimizer {
    std::string name = "AdamW"; // or "none": gradients stay in their ranges
    double lr = 8e-4, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weightDecay = 0.1;
  } optimizer;

  struct LrScheduler {
    int64_t warmupSteps = 200;
    std::optional<double> decayRatio; // unset: all steps after the warm-up
    std::string decayType = "linear";
    double minLrFactor = 0.0;
  } lrScheduler;

  struct Training {
    int64_t localBatchSize = 8, seqLen = 2048;
    std::optional<int64_t> globalBatchSize; // of a step of several microbatches
    double maxNorm = 1.0;                   // 0: no clipping
    int64_t steps = 10000, seed = 42;
    std::string dataset = "bytes";
    std::string datasetPath;
    std::string idsDtype = "u16", idsMaskPath; // with dataset = "ids"
    std::string mixedPrecisionParam = "auto";
    std::string mixedPrecisionReduce = "float32";
    std::string lossMean = "global"; // or "rank": the mean of ranks' means
    std::string onNonfinite = "stop";
    int64_t maxSkippedSteps = 10; // one behind the other
  } training;

  struct Parallelism {
    int64_t dataParallelReplicateDegree = 1;
    int64_t dataParallelShardDegree = -1; // -1: the rest of the ranks
    int64_t tensorParallelDegree = 1;
    bool sequenceParallel = true, disableLossParallel = false;
    std::string placementPolicy; // a TOML file; empty: the plan of the family
    std::string fsdpReshardAfterForward = "default";
  } parallelism;

  struct Compile {
    std::string mode = "auto";
    std::string bucket = "block", overlap = "block", fuse = "chains";
    std::string recompute = "none";
    std::string accumulateGathers = "repeat", accumulateReduce = "every";
    std::string attention = "auto"; // or "plain": without a library
    std::string reduce = "exact";   // or "fast": sums by the library
    /// In which a rank's rows are projected to logits.
    int64_t lossChunks = 1;
    int64_t threads = 1;
    std::string cpu = "native";
  } compile;

  struct Validation {
    bool enable = true;
    double fraction = 0.05;
    int64_t freq = 0; // steps; 0: only after the last one
  } validation;

  struct Checkpoint {
    bool enable = false;
    std::string folder = "checkpoint"; // below job.dump_folder
    int64_t interval = 500, keepLatestK = 10, loadStep = -1;
    std::string initialLoadPath;
    bool initialLoadModelOnly = true, initialLoadInHf = false;
    bool lastSaveModelOnly = false, lastSaveInHf = false;
    std::string exportDtype = "float32";
    bool createSeedCheckpoint = false;
    std::string asyncMode = "disabled";
    std::vector<std::string> excludeFromLoading;
    bool enableFirstStepCheckpoint = false, loadOnly = false;
    std::string onError = "stop";
    double gracePeriodSeconds = 120;
  } checkpoint;

  struct Metrics {
    int64_t logFreq = 10;
    std::string jsonl = "metrics.jsonl";
    double peakTflops = 0;
  } metrics;

  struct Sample {
    std::string prompt;
    /// Unset: none after training, 200 by the command "sample".
    std::optional<int64_t> length;
    double temperature = 0.8;
  } sample;

  /// Where a key was set ("run.toml:7", "command line"); unset keys are
  /// absent.
  std::map<std::string, std::string> origin;
  /// What is wrong with keys that matter only with a feature, if it is on: a
  /// message for each key of torchtitanKeys().
  std::map<std::string, std::string> wrongWithFeature;
};

/// One key: its place in a RunConfig, what it may hold and what it means.
struct ConfigOption {
  using Place =
      std::variant<bool *, int64_t *, double *, std::string *,
                   std::optional<bool> *, std::optional<int64_t> *,
                   std::optional<double> *, std::vector<std::string> *>;
  std::string name; // "training.steps"
  Place place;
  std::string doc;
  double min, max; // bounds of a number, inclusive
  std::vector<std::string>
      choices;         // of a string, or each of a list; empty: any
  bool compiled;       // the artifact depends on it
  bool isLine = false; // a string that must be one plain line

  /// The present value as canonical text; "unset" for an empty optional.
  std::string text() const;
  /// "integer", "number", "boolean", "string" or "list".
  std::string typeName() const;
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
