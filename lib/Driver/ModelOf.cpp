//===- ModelOf.cpp - The model that settings name -------------------------===//
#include "fsdp/Driver/Stages.h"
#include "fsdp/Families/ModelConfig.h"
#include "llvm/Support/FileSystem.h"

using namespace fsdp;
using llvm::Expected;
using llvm::StringRef;

/// The registry's name of a flavor: "debugmodel" is llama3_debug, "8B"
/// llama3_8b.
static std::string registryName(const RunConfig::Model &model) {
  std::string flavor =
      model.flavor == "debugmodel" ? "debug" : StringRef(model.flavor).lower();
  return model.name + "_" + flavor;
}

/// The model that model.flavor names.
static Expected<ModelSpec> flavorOf(const RunConfig::Model &model) {
  StringRef flavor = model.flavor;
  bool isPath = flavor.ends_with(".json") || flavor.contains('/') ||
                llvm::sys::fs::is_directory(flavor);
  return findModel(isPath ? model.flavor : registryName(model));
}

/// The model that model.hf_assets_path describes, or else model.flavor. What
/// both describe must be the same.
static Expected<ModelSpec> baseModel(const RunConfig &config) {
  const std::string &assets = config.model.hfAssetsPath;
  if (assets.empty())
    return flavorOf(config.model);
  bool isStated = config.origin.count("model.flavor");
  if (!llvm::sys::fs::is_directory(assets))
    return llvm::createStringError(
        config.origin.at("model.hf_assets_path") +
        ": model.hf_assets_path: there is no directory '" + assets +
        "'; without the key, model.flavor names the model");
  if (!llvm::sys::fs::exists(assets + "/config.json")) {
    // A tokenizer alone, as torchtitan's assets for tests.
    if (isStated)
      return flavorOf(config.model);
    return llvm::createStringError("model.hf_assets_path: '" + assets +
                                   "' has no config.json that describes a "
                                   "model; state model.flavor");
  }
  Expected<ModelSpec> spec = findModel(assets);
  if (!spec || !isStated)
    return spec;
  Expected<ModelSpec> flavor = flavorOf(config.model);
  if (!flavor)
    return flavor;
  std::string difference =
      checkpoint::modelDifference(getModelInfo(*spec), getModelInfo(*flavor));
  if (difference.empty())
    return spec;
  return llvm::createStringError(
      "model.hf_assets_path: '" + assets +
      "/config.json' describes another model than model.flavor = " +
      config.model.flavor + ": " + difference + "; leave out model.flavor");
}

Expected<ModelSpec> fsdp::modelOf(RunConfig config) {
  Expected<ModelSpec> spec = baseModel(config);
  if (!spec)
    return spec;
  for (const ConfigOption &option : configOptions(config)) {
    StringRef key = option.name;
    if (!key.consume_front("model.") || key == "name" || key == "flavor" ||
        key == "hf_assets_path" || option.text() == "unset")
      continue;
    if (llvm::Error error = setModelField(*spec, key, option.text()))
      return error;
  }
  return spec;
}
