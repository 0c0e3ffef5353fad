//===- Registry.cpp - Known models and their fields -----------------------===//
#include "ModelFields.h"
#include "fsdp/Families/Families.h"
#include "fsdp/Families/ModelConfig.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/NearestName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using llvm::ArrayRef;
using llvm::Expected;
using llvm::StringRef;

namespace fsdp {

//===----------------------------------------------------------------------===//
// The registry
//===----------------------------------------------------------------------===//

ArrayRef<RegisteredModel> getRegisteredModels() {
  static const std::vector<RegisteredModel> models = [] {
    std::vector<RegisteredModel> all;
    for (const checkpoint::Family &family : checkpoint::families())
      for (const checkpoint::FamilySize &size : family.sizes)
        all.push_back({{size.name, size.config, /*batch=*/1, size.seqLen},
                       size.description,
                       family.title});
    all.push_back({{"odsc_mlp", MlpConfig(), /*batch=*/8192},
                   "8 x (Linear 16384 + ReLU), squared error",
                   "Others"});
    return all;
  }();
  return models;
}

/// What the keys mean is read by HuggingFaceConfig.cpp, which the runtime uses
/// too.
Expected<ModelSpec> parseHuggingFaceConfig(StringRef text, StringRef name) {
  ModelSpec spec;
  spec.name = name.str();
  try {
    checkpoint::ModelConfig config = checkpoint::readModelConfig(text.str());
    spec.config = checkpoint::familyOf(config.model).base;
    for (const std::string &warning : config.warnings)
      spec.warnings.push_back(spec.name + ": " + warning);
    for (const auto &[key, value] : config.model.fields)
      if (llvm::Error error = setModelField(spec, key, value))
        return error;
  } catch (const fsdp::Error &error) {
    return llvm::createStringError(name + ": " + error.what());
  }
  spec.seqLen =
      std::min<int64_t>(std::get<DecoderConfig>(spec.config).maxSeqLen, 8192);
  if (llvm::Error error = verifyModel(spec))
    return error;
  return spec;
}

static Expected<ModelSpec> readConfigFile(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return llvm::createStringError("cannot read '" + path +
                                   "': " + buffer.getError().message());
  Expected<ModelSpec> spec =
      parseHuggingFaceConfig((*buffer)->getBuffer(), path);
  if (spec)
    // ".../Llama-3.1-8B/config.json" is called Llama-3.1-8B.
    spec->name =
        llvm::sys::path::filename(path) == "config.json"
            ? llvm::sys::path::filename(llvm::sys::path::parent_path(path))
                  .str()
            : llvm::sys::path::stem(path).str();
  if (spec && spec->name.empty())
    spec->name = getModelFamily(*spec).str();
  return spec;
}

Expected<ModelSpec> findModel(StringRef model) {
  if (model.ends_with(".json"))
    return readConfigFile(model);
  if (llvm::sys::fs::is_directory(model)) {
    llvm::SmallString<128> config(model);
    llvm::sys::path::remove_dots(config);
    llvm::sys::path::append(config, "config.json");
    return readConfigFile(config);
  }
  std::vector<std::string> names;
  for (const RegisteredModel &known : getRegisteredModels()) {
    if (known.spec.name == model)
      return known.spec;
    names.emplace_back(known.spec.name);
  }
  return llvm::createStringError(
      "unknown model '" + model + "'; known: " + llvm::join(names, ", ") +
      ", or the path of a Hugging Face directory or config.json" +
      didYouMean(model.str(), names));
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

/// A list is stated as text, as nn.model and manifests have no lists.
template <typename T> static const T &stated(const T &value) { return value; }
static std::string stated(const std::vector<double> &value) {
  return valueText(value);
}

std::vector<ModelField> getModelFields(const ModelSpec &spec) {
  std::vector<ModelField> result;
  auto collect = [&](const auto &config) {
    auto base = baseOf(config);
    for (const auto &field : fields(config))
      std::visit(
          [&, &field = field](auto member) {
            if (!field.isRare || config.*member != base.*member)
              result.push_back(
                  {field.key, field.description, stated(config.*member)});
          },
          field.member);
  };
  std::visit(collect, spec.config);
  return result;
}

rt::ModelInfo getModelInfo(const ModelSpec &spec) {
  rt::ModelInfo info;
  info.family = getModelFamily(spec).str();
  for (const ModelField &field : getModelFields(spec))
    info.fields[field.key.str()] = std::visit(
        [](const auto &value) { return valueText(value); }, field.value);
  return info;
}

StringRef getModelFamily(const ModelSpec &spec) {
  const auto *decoder = std::get_if<DecoderConfig>(&spec.config);
  return decoder ? StringRef(decoder->family) : "mlp";
}

static StringRef typeName(int64_t) { return "an integer"; }
static StringRef typeName(double) { return "a number"; }
static StringRef typeName(bool) { return "true or false"; }
static StringRef typeName(const std::string &) { return "a text"; }
static StringRef typeName(const std::vector<double> &) {
  return "numbers with spaces between them";
}

template <typename Config>
static llvm::Error setField(Config &config, StringRef model, StringRef key,
                            StringRef text) {
  std::vector<std::string> keys;
  for (const FieldOf<Config> &field : fields(config)) {
    keys.push_back(field.key);
    if (key != field.key)
      continue;
    auto assign = [&](auto member) -> llvm::Error {
      if (parseValue(text.str(), config.*member))
        return llvm::Error::success();
      return llvm::createStringError(model + ": " + key + " takes " +
                                     typeName(config.*member) + ", not '" +
                                     text + "'");
    };
    return std::visit(assign, field.member);
  }
  return llvm::createStringError(model + " has no field '" + key +
                                 "'; known: " + llvm::join(keys, ", ") +
                                 didYouMean(key.str(), keys));
}

llvm::Error setModelField(ModelSpec &spec, StringRef key, StringRef value) {
  auto set = [&](auto &config) {
    return setField(config, spec.name, key, value);
  };
  return std::visit(set, spec.config);
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Integers are sizes, where 0 stands for no default.
template <typename Config>
static llvm::Error verifySizes(const Config &config) {
  for (const FieldOf<Config> &field : fields(config)) {
    auto *member = std::get_if<int64_t Config::*>(&field.member);
    if (!member)
      continue;
    int64_t value = config.*(*member);
    StringRef key = field.key;
    if (value < field.min)
      return llvm::createStringError(key + " must be positive, not " +
                                     llvm::Twine(value));
    if (value > field.max)
      return llvm::createStringError(key + " must be at most " +
                                     llvm::Twine(field.max) + ", not " +
                                     llvm::Twine(value));
  }
  return llvm::Error::success();
}

llvm::Error verifyModel(const ModelSpec &spec) {
  auto verify = [](const auto &config) -> llvm::Error {
    if (llvm::Error error = verifySizes(config))
      return error;
    return verifyConfig(config);
  };
  if (llvm::Error error = std::visit(verify, spec.config))
    return llvm::createStringError(spec.name + ": " +
                                   llvm::toString(std::move(error)));
  return llvm::Error::success();
}

} // namespace fsdp
