//===- CheckArtifact.cpp - Whether an artifact is what a run wants --------===//
#include "CheckArtifact.h"
#include "fsdp/Artifact/Loader.h"
#include "fsdp/Config/PlacementPolicy.h"
#include "fsdp/Support/AtomicFile.h"
#include "runtime/checkpoint/huggingface/HuggingFace.h"
#include <filesystem>

using namespace fsdp;
using namespace fsdp::rt;

namespace {

using Settings = std::map<std::string, std::string>;

/// Settings of an artifact and of a run, in which the paths of files give way
/// to what is taken from the files.
class Comparison {
public:
  Comparison(const Manifest &manifest, const RunConfig &config)
      : manifest(manifest), config(config), compiled(manifest.config),
        wanted(compiledSettings(config)), origin(config.origin) {}

  void comparePolicies();
  void compareModels();
  void comparePlanners();

  const Manifest &manifest;
  const RunConfig &config;
  Settings compiled, wanted, origin;
  std::vector<std::string> warnings;

private:
  void forget(const std::string &name) {
    compiled.erase(name);
    wanted.erase(name);
  }
  bool isThere(const std::string &name, const std::string &path);
};

} // namespace

/// Whether the file is there; else the artifact stands for it.
bool Comparison::isThere(const std::string &name, const std::string &path) {
  std::error_code error; // what cannot be looked at is not there
  if (std::filesystem::exists(path, error))
    return true;
  auto place = origin.find(name);
  if (place != origin.end())
    warnings.push_back(place->second + ": " + name + ": there is no '" + path +
                       "'; the run takes what the artifact was compiled with");
  return false;
}

void Comparison::comparePolicies() {
  const char *const name = "parallelism.placement_policy";
  const std::string &path = config.parallelism.placementPolicy;
  // The built-in plan is no file's.
  if (path.empty() || compiled[name].empty())
    return;
  forget(name);
  if (!isThere(name, path))
    return;
  auto nameOf = [&](const std::string &place) { return name + (": " + place); };
  PlacementPolicy policy = loadPolicy(path);
  for (const auto &[place, rule] : manifest.policy) {
    compiled[nameOf(place)] = rule;
    origin[nameOf(place)] = path; // of a rule that the run has not
  }
  for (const auto &[place, rule] : policyRules(policy))
    wanted[nameOf(place)] = rule;
  if (policy.stream)
    origin[nameOf("[stream]")] = policy.stream->origin;
  for (size_t i = 0; i < policy.parameters.size(); ++i)
    origin[nameOf("[[parameters]] " + std::to_string(i + 1))] =
        policy.parameters[i].origin;
}

/// The fields that a config.json says, with those of the settings over them.
static Settings fieldsOf(const std::string &path, const Settings &settings) {
  try {
    ModelInfo model =
        checkpoint::readModelConfig(
            readWholeFile(path, "the configuration", FileKind::Regular))
            .model;
    for (auto &[key, value] : model.fields)
      if (auto stated = settings.find("model." + key); stated != settings.end())
        value = stated->second;
    return checkpoint::effectiveFields(model);
  } catch (const Error &error) {
    throw Error(path + ": " + error.what());
  }
}

void Comparison::compareModels() {
  const char *const assets = "model.hf_assets_path";
  const char *const flavor = "model.flavor";
  std::optional<ModelFile> file = modelFile(config);
  if (!file) {
    // Of assets without a config.json nothing is compiled.
    if (manifest.modelFrom.empty())
      forget(assets);
    return;
  }
  // Of a file that it was not compiled from, the artifact can say nothing.
  std::error_code error; // what cannot be looked at is not there
  if (manifest.modelFrom.empty() && !std::filesystem::exists(file->path, error))
    return;
  bool isRead = isThere(file->key, file->path);
  forget(assets);
  if (isRead || file->key == flavor)
    forget(flavor);
  if (!isRead)
    return;
  Settings artifacts;
  if (manifest.model)
    artifacts = checkpoint::effectiveFields(*manifest.model);
  for (const auto &[key, value] : fieldsOf(file->path, wanted)) {
    std::string name = "model." + key;
    // A setting stands over the file.
    if (wanted.emplace(name, value).second)
      origin[name] = file->path;
    compiled.erase(name);
    if (auto found = artifacts.find(key); found != artifacts.end())
      compiled[name] = found->second;
  }
}

/// Only a decided plan has a machine. Whoever wants one gets it, also where
/// nobody said so when it was compiled.
void Comparison::comparePlanners() {
  if (config.compile.plan == Planner::Auto &&
      manifest.fingerprint.count("machine"))
    forget("compile.plan");
}

std::vector<std::string> fsdp::checkArtifact(const Manifest &manifest,
                                             const RunConfig &config) {
  if (manifest.config.empty())
    return {};
  Comparison comparison(manifest, config);
  comparison.comparePolicies();
  comparison.compareModels();
  comparison.comparePlanners();
  checkSettings(comparison.compiled, comparison.wanted, comparison.origin);
  return comparison.warnings;
}
