//===- Prepare.cpp - Everything that can be wrong before a run ------------===//
#include "Prepare.h"

using namespace fsdp;
using namespace fsdp::rt;

/// Takes over the settings an artifact was compiled with.
static void adoptSettings(RunConfig &config, const LoadedArtifact &artifact) {
  for (const auto &[name, value] : artifact.manifest().config)
    setConfigOption(config, name, value,
                    artifact.directory() + "/manifest.json");
  // An artifact made from text has no settings, but its workspaces are made
  // for a number of threads.
  const auto &fingerprint = artifact.manifest().fingerprint;
  auto threads = fingerprint.find("threads");
  if (artifact.manifest().config.empty() && threads != fingerprint.end())
    setConfigOption(config, "compile.threads", threads->second,
                    artifact.directory() + "/manifest.json");
  config.origin.clear();
}

/// "auto" accepts whatever the artifact was compiled for: the runtime keeps
/// its roundings on every CPU. Returns the line that says what it is.
static std::string adoptPrecision(RunConfig &config, const Manifest &manifest) {
  std::string &precision = config.training.mixedPrecisionParam;
  const char *const key = "training.mixed_precision_param";
  auto compiled = manifest.config.find(key);
  bool open = precision == "auto" && compiled != manifest.config.end();
  if (open)
    precision = compiled->second;
  std::string why = !open ? "as configured"
                    : hasNativeBf16Matmul()
                        ? "chosen by fsdp-compile; this CPU has AMX"
                        : "chosen by fsdp-compile; this CPU has no AMX";
  return "precision: parameters are used in " + precision + " (" + why + ")";
}

/// The tokens of a batch index a table of `vocab_size` rows.
static void checkVocabulary(const Manifest &manifest) {
  const RangeInfo *logits = manifest.findRange("logits");
  if (logits && !logits->shape.empty() && logits->shape.back() < 256)
    throw Error("model.vocab_size is " + std::to_string(logits->shape.back()) +
                ", but training.dataset = bytes has 256 tokens");
}

static void checkInput(const Manifest &manifest, const std::string &name) {
  const RangeInfo *range = manifest.findRange(name);
  if (!range || range->dtype != DType::I32 || range->shape.size() != 2)
    throw Error("the artifact has no input '" + name +
                "' of type i32 and shape [batch, sequence]; it cannot train "
                "on text");
}

/// A description of a run has a text for training, but nobody asks for one
/// together with --program without meaning it.
static void refuseText(const RunConfig &config) {
  const char *const key = "training.dataset_path";
  auto origin = config.origin.find(key);
  if (origin != config.origin.end() && origin->second == "command line")
    throw Error(std::string("--program reads no text: leave --") + key +
                " out, and give the tokens with --load");
}

PreparedRun fsdp::prepareRun(const RunOptions &options, int64_t ranks) {
  PreparedRun run;
  RunConfig &config = run.config;
  run.artifact = std::make_unique<LoadedArtifact>(options.artifact);
  const Manifest &manifest = run.artifact->manifest();
  checkWorldSize(manifest, ranks);
  checkTarget(manifest);
  ConfigErrors errors;
  if (options.config.empty())
    adoptSettings(config, *run.artifact);
  else
    loadConfig(config, options.config, errors);
  applyConfigOverrides(config, options.overrides, errors);
  run.precisionLine = adoptPrecision(config, manifest);
  resolveConfig(config, ranks, errors);
  errors.throwIfAny();
  checkSettings(manifest, compiledSettings(config), config.origin);
  if (!options.program.empty()) {
    if (manifest.findProgram(options.program) < 0)
      throw Error("the artifact has no program '" + options.program + "'");
    refuseText(config);
    return run;
  }
  if (manifest.findProgram("train") < 0)
    throw Error("the artifact has no program 'train'");
  checkInput(manifest, "tokens");
  checkInput(manifest, "targets");
  checkVocabulary(manifest);
  run.warning = lrWarning(config);
  run.text = std::make_unique<ByteDataset>(
      config.training.datasetPath, config.validation.fraction,
      manifest.findRange("tokens")->shape[1]);
  return run;
}
