//===- Registry.cpp - Known models and their fields -----------------------===//
#include "fsdp/Families/ModelSpec.h"
#include "fsdp/Support/CheckedSize.h"
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

/// A published size of Llama 3; what is not listed is LlamaConfig's default.
static ModelSpec llama(StringRef name, int64_t seqLen, LlamaConfig config) {
  return {name.str(), config, /*batch=*/1, seqLen};
}

static LlamaConfig size(int64_t dim, int64_t layers, int64_t heads,
                        int64_t kvHeads, int64_t ffnDim, bool tied = false) {
  LlamaConfig config;
  config.dim = dim;
  config.layers = layers;
  config.heads = heads;
  config.kvHeads = kvHeads;
  config.ffnDim = ffnDim;
  config.tied = tied;
  return config;
}

static LlamaConfig withVocab(LlamaConfig config, int64_t vocab) {
  config.vocab = vocab;
  return config;
}

ArrayRef<RegisteredModel> getRegisteredModels() {
  static const std::vector<RegisteredModel> models = {
      {llama("llama3_debug", 2048, withVocab(size(256, 6, 16, 16, 768), 2048)),
       "Llama 3 for tests, 6 M parameters"},
      {llama("llama3_1b", 8192, size(2048, 16, 32, 8, 8192, /*tied=*/true)),
       "Llama 3.2 1B, tied"},
      {llama("llama3_3b", 8192, size(3072, 28, 24, 8, 8192, /*tied=*/true)),
       "Llama 3.2 3B, tied"},
      {llama("llama3_8b", 8192, size(4096, 32, 32, 8, 14336)), "Llama 3.1 8B"},
      {llama("llama3_70b", 8192, size(8192, 80, 64, 8, 28672)),
       "Llama 3.1 70B"},
      {llama("llama3_405b", 8192, size(16384, 126, 128, 8, 53248)),
       "Llama 3.1 405B"},
      {{"odsc_mlp", MlpConfig(), /*batch=*/8192, /*seqLen=*/1},
       "8 x (Linear 16384 + ReLU), squared error"},
  };
  return models;
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
    spec->name = "llama";
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

template <typename Config> struct Field {
  StringRef key, description;
  std::variant<int64_t Config::*, double Config::*, bool Config::*> member;
  int64_t max = kMaxDimension; // of an integer
};

/// The keys are torchtitan's where it has them.
static ArrayRef<Field<LlamaConfig>> fields(const LlamaConfig &) {
  using C = LlamaConfig;
  static const Field<C> all[] = {
      {"dim", "width of the residual stream", &C::dim},
      {"n_layers", "transformer blocks", &C::layers, kMaxLayers},
      {"n_heads", "query heads", &C::heads},
      {"n_kv_heads", "key and value heads", &C::kvHeads},
      {"head_dim", "width of a head (0: dim / n_heads)", &C::headDim},
      {"ffn_dim", "inner width of the feed-forward layer", &C::ffnDim},
      {"vocab_size", "tokens in the vocabulary", &C::vocab, kMaxVocabulary},
      {"max_seq_len", "longest sequence allowed", &C::maxSeqLen},
      {"norm_eps", "epsilon of the norms", &C::normEps},
      {"rope_theta", "base of the rotary frequencies", &C::ropeTheta},
      {"rope_factor", "stretch of low frequencies (1: none)", &C::ropeFactor},
      {"rope_low", "low_freq_factor of the stretch", &C::ropeLow},
      {"rope_high", "high_freq_factor of the stretch", &C::ropeHigh},
      {"rope_original", "context length before the stretch", &C::ropeOriginal},
      {"rope_halves", "true: rotate halves of a head, not neighbours",
       &C::ropeHalves},
      {"tied", "true: the output layer reads the embedding", &C::tied},
  };
  return all;
}

static ArrayRef<Field<MlpConfig>> fields(const MlpConfig &) {
  using C = MlpConfig;
  static const Field<C> all[] = {
      {"dim", "width of every layer", &C::dim},
      {"n_layers", "pairs of linear and ReLU", &C::layers, kMaxLayers},
  };
  return all;
}

std::vector<ModelField> getModelFields(const ModelSpec &spec) {
  std::vector<ModelField> result;
  auto collect = [&](const auto &config) {
    for (const auto &field : fields(config))
      std::visit(
          [&, &field = field](auto member) {
            result.push_back({field.key, field.description, config.*member});
          },
          field.member);
  };
  std::visit(collect, spec.config);
  return result;
}

/// As a manifest's JSON has it.
static std::string text(int64_t value) { return std::to_string(value); }
static std::string text(bool value) { return value ? "true" : "false"; }
static std::string text(double value) {
  std::string digits;
  llvm::raw_string_ostream os(digits);
  llvm::json::OStream(os).value(value);
  return digits;
}

rt::ModelInfo getModelInfo(const ModelSpec &spec) {
  rt::ModelInfo info;
  info.family = getModelFamily(spec).str();
  for (const ModelField &field : getModelFields(spec))
    info.fields[field.key.str()] =
        std::visit([](auto value) { return text(value); }, field.value);
  return info;
}

StringRef getModelFamily(const ModelSpec &spec) {
  return std::holds_alternative<LlamaConfig>(spec.config) ? "llama3" : "mlp";
}

// Each says whether `text` was a value of the member's type.
static bool parse(StringRef text, int64_t &value) {
  return !text.getAsInteger(10, value);
}
static bool parse(StringRef text, double &value) {
  return !text.getAsDouble(value);
}
static bool parse(StringRef text, bool &value) {
  value = text == "true";
  return value || text == "false";
}

static StringRef typeName(int64_t) { return "an integer"; }
static StringRef typeName(double) { return "a number"; }
static StringRef typeName(bool) { return "true or false"; }

template <typename Config>
static llvm::Error setField(Config &config, StringRef model, StringRef key,
                            StringRef text) {
  std::vector<std::string> keys;
  for (const Field<Config> &field : fields(config)) {
    keys.push_back(field.key.str());
    if (field.key != key)
      continue;
    auto assign = [&](auto member) -> llvm::Error {
      if (parse(text, config.*member))
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

/// Every integer except head_dim, whose 0 means dim / n_heads, is a size.
template <typename Config>
static llvm::Error verifySizes(const Config &config) {
  for (const Field<Config> &field : fields(config)) {
    auto *member = std::get_if<int64_t Config::*>(&field.member);
    if (!member)
      continue;
    int64_t value = config.*(*member);
    if (value < (field.key == "head_dim" ? 0 : 1))
      return llvm::createStringError(field.key + " must be positive, not " +
                                     llvm::Twine(value));
    if (value > field.max)
      return llvm::createStringError(field.key + " must be at most " +
                                     llvm::Twine(field.max) + ", not " +
                                     llvm::Twine(value));
  }
  return llvm::Error::success();
}

static llvm::Error verifyConfig(const MlpConfig &config) {
  return verifySizes(config);
}

static llvm::Error verifyConfig(const LlamaConfig &config) {
  if (llvm::Error error = verifySizes(config))
    return error;
  if (!config.headDim && config.dim % config.heads)
    return llvm::createStringError(
        "dim = " + llvm::Twine(config.dim) +
        " is not divisible by n_heads = " + llvm::Twine(config.heads));
  if (config.heads % config.kvHeads)
    return llvm::createStringError(
        "n_heads = " + llvm::Twine(config.heads) +
        " is not divisible by n_kv_heads = " + llvm::Twine(config.kvHeads));
  if (config.getHeadDim() % 2)
    return llvm::createStringError(
        "a head of " + llvm::Twine(config.getHeadDim()) +
        " elements has no rotary pairs: its width must be even");
  if (!(config.normEps >= 0))
    return llvm::createStringError("norm_eps must not be negative");
  if (!(config.ropeTheta > 0) || !(config.ropeFactor > 0))
    return llvm::createStringError(
        "rope_theta and rope_factor must be positive");
  if (config.ropeFactor != 1 &&
      !(config.ropeLow > 0 && config.ropeHigh > config.ropeLow))
    return llvm::createStringError(
        "rope_high must be greater than rope_low, and both positive");
  return llvm::Error::success();
}

llvm::Error verifyModel(const ModelSpec &spec) {
  auto verify = [](const auto &config) { return verifyConfig(config); };
  if (llvm::Error error = std::visit(verify, spec.config))
    return llvm::createStringError(spec.name + ": " +
                                   llvm::toString(std::move(error)));
  return llvm::Error::success();
}

} // namespace fsdp
