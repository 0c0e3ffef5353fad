//===- Prepare.cpp - Everything that can be wrong before a run ------------===//
#include "Prepare.h"
#include "CheckArtifact.h"
#include "Data.h"
#include "LastExport.h"
#include "ResumePoint.h"
#include "Step.h"
#include "ValueTable.h"
#include "fsdp/Support/RangeNames.h"

using namespace fsdp;
using namespace fsdp::rt;

/// Takes over the settings an artifact was compiled with.
static void adoptSettings(RunConfig &config, const ArtifactFolder &artifact) {
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
  ParamDtype &precision = config.training.mixedPrecisionParam;
  const char *const key = "training.mixed_precision_param";
  auto compiled = manifest.config.find(key);
  bool open =
      precision == ParamDtype::Auto && compiled != manifest.config.end();
  if (open) {
    OptionTable table;
    table.add(key, precision, "");
    setOption(table.rows.front(), compiled->second, "manifest.json");
  }
  std::string why = !open                        ? "as configured"
                    : !targetOf(manifest).isHost ? "chosen by fsdp-compile"
                    : hasNativeBf16Matmul()
                        ? "chosen by fsdp-compile; this CPU has AMX"
                        : "chosen by fsdp-compile; this CPU has no AMX";
  return "precision: parameters are used in " + spelled(precision) + " (" +
         why + ")";
}

/// A sample finds the logits of one position on whichever ranks have them.
static void checkLogits(const Manifest &manifest, int64_t sampleLength) {
  const RangeInfo *logits = manifest.findRange(range_name::kLogits);
  const RangeInfo *tokens = manifest.findRange(range_name::kTokens);
  if (!logits || logits->full.empty())
    return;
  bool isFound = logits->placement ? logits->full.size() == 3 &&
                                         logits->full[1] == tokens->full[1]
                                   : tokens->shape[1] == tokens->full[1];
  if (!isFound && sampleLength > 0)
    throw Error("the artifact's logits are not placed as those of all its "
                "tokens, [batch, sequence, vocabulary]; --sample.length=0 "
                "trains without a sample");
}

static void checkInput(const Manifest &manifest, const std::string &name) {
  const RangeInfo *range = manifest.findRange(name);
  if (!range || range->dtype != DType::I32 || range->shape.size() != 2)
    throw Error("the artifact has no input '" + name +
                "' of type i32 and shape [batch, sequence]; it cannot train "
                "on text");
  if (range->placement)
    for (const RangePlacement::Dim &dim : range->placement->dims)
      if (!dim.storage.empty())
        throw Error("the artifact's input '" + name +
                    "' has storage axes, which only parameters have");
}

/// Starts are of the whole rows that the rank has tokens of.
static void checkStarts(const Manifest &manifest, const RangeInfo &tokens) {
  const RangeInfo *starts = manifest.findRange(range_name::kDocumentStarts);
  if (!starts)
    return;
  checkInput(manifest, range_name::kDocumentStarts);
  std::optional<RangePlacement> ofRows = tokens.placement;
  if (ofRows)
    ofRows->dims[1].compute.clear();
  if (starts->full != tokens.full || !(starts->placement == ofRows))
    throw Error("the artifact's input 'document_starts' is not of the rows of "
                "its tokens; it cannot train on documents");
}

/// Every target is the token after one of this rank's tokens.
static void checkInputs(const Manifest &manifest) {
  checkInput(manifest, range_name::kTokens);
  checkInput(manifest, range_name::kTargets);
  const RangeInfo *tokens = manifest.findRange(range_name::kTokens);
  const RangeInfo *targets = manifest.findRange(range_name::kTargets);
  if (tokens->shape != targets->shape ||
      !(tokens->placement == targets->placement))
    throw Error("the artifact's inputs 'tokens' and 'targets' differ in shape "
                "or placement; it cannot train on text");
  checkStarts(manifest, *tokens);
}

/// A description of a run has a text for training, but nobody asks for one
/// together with --program without meaning it.
static void refuseText(const RunConfig &config) {
  for (const char *key : {"training.dataset_path", "training.mixture"})
    if (auto origin = config.origin.find(key);
        origin != config.origin.end() && origin->second == "command line")
      throw Error(std::string("--program reads no text: leave --") + key +
                  " out, and give the tokens with --load");
}

static void checkValidation(const RunConfig &config, const Manifest &manifest) {
  if (config.validation.enable && config.validation.freq > 0 &&
      manifest.findProgram("evaluate") < 0)
    throw Error("validation.freq = " + std::to_string(config.validation.freq) +
                ", but the artifact has no program 'evaluate'; "
                "--validation.freq=0 trains without validation");
}

/// What the command sample generates where nobody says how much.
static constexpr int64_t kSampledBytes = 200;

/// What evaluate and sample need.
static void checkCommand(const RunConfig &config, const RunOptions &options,
                         const Manifest &manifest) {
  if (options.command.empty())
    return;
  if (manifest.findProgram("evaluate") < 0)
    throw Error("the artifact has no program 'evaluate'");
  if (options.command == "sample" && *config.sample.length == 0)
    throw Error("sample.length = 0 asks for no text; set --sample.length");
  if (options.command == "evaluate" && config.validation.fraction == 0)
    throw Error("validation.fraction = 0 holds out no text to evaluate");
}

/// Whether the step to load may be one that was being replaced when a run was
/// killed. A run that saves cleans its folder first, and then says what is
/// missing.
static bool mayComeBack(const RunConfig &config) {
  return savesCheckpoints(config) && lacksLoadStep(config);
}

PreparedRun fsdp::prepareRun(std::unique_ptr<ArtifactFolder> artifact,
                             const RunOptions &options, int64_t ranks) {
  PreparedRun run;
  RunConfig &config = run.config;
  run.artifact = std::move(artifact);
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
  checkCheckpoint(config, errors);
  errors.throwIfAny();
  run.warnings = checkArtifact(manifest, config);
  if (!config.sample.length)
    config.sample.length = options.command == "sample" ? kSampledBytes : 0;
  if (!options.program.empty()) {
    if (manifest.findProgram(options.program) < 0)
      throw Error("the artifact has no program '" + options.program + "'");
    refuseText(config);
    return run;
  }
  if (trainStepOf(manifest).empty())
    throw Error("the artifact has no step 'train', only single programs, which "
                "--program runs");
  checkInputs(manifest);
  checkInputsOfStep(manifest);
  checkLogits(manifest, *config.sample.length);
  checkCommand(config, options, manifest);
  if (options.trains()) {
    checkValidation(config, manifest);
    checkLastExport(config, *run.artifact);
  }
  if (options.checkValues)
    readValueTable(*run.artifact);
  if (std::string warning = lrWarning(config);
      options.trains() && !warning.empty())
    run.warnings.push_back(warning);
  run.data = openDataset(config, options, manifest, run.warnings);
  run.text = dynamic_cast<const ByteDataset *>(run.data.get());
  if (!options.checkpoint.empty())
    openParameters(manifest, options.checkpoint);
  else if (config.checkpoint.enable)
    run.state = stateOf(config, manifest, *run.data);
  if (run.state && !mayComeBack(config))
    openResumeSource(config, manifest, *run.state, findResumeSource(config));
  return run;
}
