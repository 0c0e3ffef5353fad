//===- Data.cpp - The tokens of a run, and what its loss is of ------------===//
#include "Data.h"
#include "LoadedFile.h"
#include "fsdp/Data/MixedDataset.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/RangeNames.h"
#include "runtime/checkpoint/huggingface/HuggingFace.h"
#include "runtime/report/LossUnit.h"
#include <cstdlib>
#include <filesystem>
#include <set>

using namespace fsdp;
using namespace fsdp::rt;

/// Tokens that the model knows; 0: the artifact does not say. Logits may be
/// made in chunks, so that no range has them.
static int64_t vocabularyOf(const Manifest &manifest) {
  const RangeInfo *logits = manifest.findRange(range_name::kLogits);
  if (logits && !logits->full.empty())
    return logits->full.back();
  if (!manifest.model)
    return 0;
  auto field = manifest.model->fields.find("vocab_size");
  return field == manifest.model->fields.end()
             ? 0
             : std::strtoll(field->second.c_str(), nullptr, 10);
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

static constexpr int64_t kBytes = 256; // of tokens

static const char *const kUseIds =
    "tokenize the text with it and set training.dataset = tokens "
    "(docs/data.md shows how)";

/// A file of a tokenizer that belongs to the model or the weights of a run;
/// empty: none is found.
static std::string findTokenizer(const RunConfig &config,
                                 const RunOptions &options) {
  for (const std::string &path :
       {config.model.hfAssetsPath, config.model.flavor,
        config.checkpoint.initialLoadPath, options.checkpoint})
    if (std::string file = checkpoint::tokenizerOf(path); !file.empty())
      return file;
  return "";
}

/// A model that is made for ids learns nothing from bytes, and forgets what it
/// knew.
static void checkBytes(const RunConfig &config, const RunOptions &options,
                       int64_t vocabulary) {
  bool isEvaluated = config.validation.enable && config.validation.fraction > 0;
  // The batch of all steps may come from a file.
  bool isGiven = !options.load.empty() && loadsBatch(options.load);
  bool areUsed = !isGiven || isEvaluated || *config.sample.length;
  std::string has =
      "the model's vocabulary has " + std::to_string(vocabulary) + " tokens";
  if (vocabulary > 0 && vocabulary < kBytes && areUsed)
    throw Error(
        "training.dataset = bytes has 256 tokens, and " + has +
        (isGiven ? "; with the batch of --load, set --validation.enable=false "
                   "and generate no sample, so that no text is read"
                 : "; train it on ids of its own with "
                   "training.dataset = ids"));
  if (isGiven)
    return;
  std::string tokenizer = findTokenizer(config, options);
  if (!tokenizer.empty())
    throw Error("training.dataset = bytes takes every byte for a token, but "
                "the model has a tokenizer, '" +
                tokenizer + "': " + kUseIds);
  if (vocabulary != 0 && vocabulary != kBytes &&
      !config.origin.count("training.dataset"))
    throw Error("training.dataset is not set, bytes are 256 tokens, and " +
                has + ": if it has a tokenizer, " + kUseIds +
                "; to train on bytes, set training.dataset = bytes explicitly");
}

/// Keys of one dataset say nothing of another.
static void refuseKeysOfOthers(const RunConfig &config) {
  auto refuse = [&](DatasetKind kind, std::initializer_list<const char *> keys) {
    for (const char *key : keys)
      if (auto origin = config.origin.find(key);
          origin != config.origin.end() && config.training.dataset != kind)
        throw Error(origin->second + ": " + key +
                    " is for training.dataset = " + spelled(kind) +
                    ", and training.dataset is " +
                    spelled(config.training.dataset));
  };
  refuse(DatasetKind::Ids, {"training.ids_dtype", "training.ids_mask_path"});
  bool isMixed = !config.training.mixture.empty();
  if (isMixed && (config.training.dataset == DatasetKind::Bytes ||
                  config.training.dataset == DatasetKind::Ids))
    throw Error(
        "training.mixture is for training.dataset = tokens, megatron or "
        "llmc, and training.dataset is " +
        spelled(config.training.dataset));
  if (isMixed && !config.training.datasetPath.empty())
    throw Error("training.mixture and training.dataset_path are both set: name "
                "all sources in training.mixture, each with its weight");
  if (*config.sample.length == 0)
    return;
  if (config.training.dataset == DatasetKind::Bytes)
    refuse(DatasetKind::Tokens, {"sample.prompt_ids"});
  if (config.training.dataset == DatasetKind::Tokens)
    refuse(DatasetKind::Bytes, {"sample.prompt"});
}

//===----------------------------------------------------------------------===//
// Ids
//===----------------------------------------------------------------------===//

/// Text is generated by whoever has the tokenizer, or a table of its tokens.
static void refuseSample(const RunConfig &config, const RunOptions &options) {
  if (*config.sample.length == 0)
    return;
  std::string why = " generates text, and training.dataset = " +
                    spelled(config.training.dataset) +
                    " has no table of the bytes of each token: ";
  if (options.command == "sample")
    throw Error("the command sample" + why +
                "export the checkpoint (fsdp-checkpoint export) and generate "
                "with the model's tokenizer, or give a folder of "
                "tools/fsdp-tokenize");
  throw Error("sample.length = " + std::to_string(*config.sample.length) + why +
              "leave it out, or set --sample.length=0");
}

/// The default is no type for a vocabulary that it has no names for; a file of
/// low ids alone may have it all the same.
static void checkIdsType(const RunConfig &config, int64_t vocabulary) {
  constexpr int64_t kMostOfU16 = 65536;
  if (vocabulary > kMostOfU16 && config.training.idsDtype == IdsDtype::U16 &&
      !config.origin.count("training.ids_dtype"))
    throw Error(
        "training.ids_dtype is not set, its default u16 ends at id " +
        std::to_string(kMostOfU16 - 1) + ", and the model's vocabulary has " +
        std::to_string(vocabulary) +
        " tokens: set training.ids_dtype = \"u32\" or \"i32\", whichever the "
        "file has; set \"u16\" explicitly for a file of only lower ids");
}

/// "'PATH'", or that of each source of a mixture.
static std::string namesOfSources(const RunConfig &config) {
  std::string names;
  for (const std::string &source : config.training.mixture)
    names +=
        (names.empty() ? "'" : ", '") + parseMixedSource(source).path + "'";
  return names.empty() ? "'" + config.training.datasetPath + "'" : names;
}

/// What is evaluated has something to predict: a token after the first of those
/// held out, which the mask, if there is one, makes a label.
static void checkHeldOut(const RunConfig &config, const RunOptions &options,
                         const Manifest &manifest, const Dataset &data) {
  bool isCommand = options.command == "evaluate";
  bool isEvaluated =
      isCommand || (options.trains() && config.validation.enable &&
                    manifest.findProgram("evaluate") >= 0);
  bool isExpected = isCommand || (isEvaluated && config.validation.freq > 0);
  int64_t train = data.trainTokens(), heldOut = data.heldOutTokens();
  int64_t labels = 0;
  for (const TokenStream *stream : data.streams())
    labels += stream->heldOutLabels();
  std::string remedy = "raise validation.fraction";
  if (!isCommand)
    remedy += ", or set validation.enable = false";
  if (isExpected && !data.hasHeldOut())
    throw Error("validation.fraction holds out " + std::to_string(heldOut) +
                " of the " + std::to_string(train + heldOut) + " tokens of " +
                namesOfSources(config) + ", and it takes two to predict one; " +
                remedy);
  if (isEvaluated && data.hasHeldOut() && labels == 0)
    throw Error(config.training.dataset == DatasetKind::Ids
                    ? "the mask '" + config.training.idsMaskPath +
                          "' marks none of the " + std::to_string(heldOut) +
                          " held-out ids as a label; " + remedy
                    : "of the " + std::to_string(heldOut) +
                          " held-out ids of " + namesOfSources(config) +
                          " none is a label to predict; " + remedy);
}

static TokenSource openSource(DatasetKind kind, const std::string &path) {
  if (path.empty())
    throw Error("training.dataset_path is not set; name the tokens");
  switch (kind) {
  case DatasetKind::Megatron:
    return openMegatron(path);
  case DatasetKind::Llmc:
    return openLlmc(path);
  default:
    return openTokenFolder(path);
  }
}

/// Other datasets are files, of which the system would only say that this is
/// none.
static void refuseFolder(DatasetKind kind, const std::string &path) {
  std::error_code ignored;
  if (std::filesystem::exists(path + "/tokens.json", ignored))
    throw Error("'" + path +
                "' is a token folder of tools/fsdp-tokenize: set "
                "training.dataset = tokens, not " +
                spelled(kind));
}

/// Whether the artifact's attention sees the document of each token alone.
static bool keepsDocumentsApart(const Manifest &manifest) {
  return manifest.findRange(range_name::kDocumentStarts);
}

/// Of tokens of which it is not known where documents begin.
static void refuseDocuments(const RunConfig &config, bool areApart) {
  const RunConfig::Training &training = config.training;
  auto refuse = [&](const std::string &key, const std::string &remedy) {
    throw Error(key + ", and training.dataset = " + spelled(training.dataset) +
                " does not say where they begin; tokenize the text with "
                "tools/fsdp-tokenize, or " +
                remedy);
  };
  if (areApart)
    refuse("training.document_mask keeps documents apart",
           "compile without it");
  if (training.packing != DataPacking::Wrapped)
    refuse("training.packing = " + spelled(training.packing) +
               " makes rows of documents",
           "leave it out");
  if (training.dataOrder == DataOrder::Documents)
    refuse("training.data_order = documents shuffles documents",
           "leave it out");
}

/// Rows of whole documents come in an order of their own. Throws where several
/// documents of a row would see each other.
static Packing packingOf(const RunConfig &config, bool areApart) {
  const RunConfig::Training &training = config.training;
  if (training.packing == DataPacking::Wrapped)
    return Packing::Wrapped;
  std::string key = "training.packing = " + spelled(training.packing);
  if (training.dataOrder == DataOrder::Random ||
      training.dataOrder == DataOrder::Documents)
    throw Error("training.data_order = " + spelled(training.dataOrder) +
                " is an order of windows, and " + key +
                " makes rows of whole documents, each of which comes once per "
                "epoch, every epoch in another order; leave "
                "training.data_order out");
  if (training.packing == DataPacking::Padded)
    return Packing::Padded;
  if (!areApart)
    throw Error(key + " puts several documents into a row, which would see "
                      "each other; compile with training.document_mask = true, "
                      "or set training.packing = padded");
  return Packing::BestFit;
}

/// What the tokens of every source of a run are opened with.
struct TokensOfRun {
  const RunConfig &config;
  const RunOptions &options;
  int64_t sequence, vocabulary;
  bool areApart; // documents
};

static std::unique_ptr<TokenDataset> openTokens(const TokensOfRun &run,
                                                const std::string &path) {
  DatasetKind kind = run.config.training.dataset;
  if (kind != DatasetKind::Tokens)
    refuseFolder(kind, path);
  if (kind == DatasetKind::Llmc)
    refuseDocuments(run.config, run.areApart);
  Packing packing = packingOf(run.config, run.areApart);
  TokenSource source = openSource(kind, path);
  if (source.tablePath.empty())
    refuseSample(run.config, run.options);
  auto data = std::make_unique<TokenDataset>(
      std::move(source), run.config.validation.fraction, run.sequence,
      run.vocabulary, packing);
  if (run.areApart && data->hasDocuments())
    data->separateDocuments();
  if (orderOf(run.config) == WindowOrder::Documents)
    data->checkDocuments();
  return data;
}

static std::unique_ptr<Dataset> openMixture(const TokensOfRun &run) {
  std::vector<MixedDataset::Part> parts;
  std::set<std::string> paths;
  for (const std::string &text : run.config.training.mixture) {
    MixedSource source = parseMixedSource(text);
    // Its rows would come in the same order again.
    if (!paths.insert(source.path).second)
      throw Error("training.mixture names '" + source.path +
                  "' twice; give it one weight");
    parts.push_back({openTokens(run, source.path), source.weight});
  }
  return std::make_unique<MixedDataset>(std::move(parts));
}

static std::unique_ptr<Dataset> open(const RunConfig &config,
                                     const RunOptions &options,
                                     const Manifest &manifest) {
  const RunConfig::Training &training = config.training;
  int64_t sequence = manifest.findRange(range_name::kTokens)->full[1];
  int64_t vocabulary = vocabularyOf(manifest);
  double fraction = config.validation.fraction;
  refuseKeysOfOthers(config);
  if (!isIds(config)) {
    refuseFolder(training.dataset, training.datasetPath);
    checkBytes(config, options, vocabulary);
    return std::make_unique<ByteDataset>(training.datasetPath, fraction,
                                         sequence);
  }
  if (training.dataset == DatasetKind::Ids) {
    refuseFolder(training.dataset, training.datasetPath);
    refuseSample(config, options);
    checkIdsType(config, vocabulary);
    return std::make_unique<IdsDataset>(IdsFile{training.datasetPath,
                                                spelled(training.idsDtype),
                                                training.idsMaskPath},
                                        fraction, sequence, vocabulary);
  }
  TokensOfRun run{config, options, sequence, vocabulary,
                  keepsDocumentsApart(manifest)};
  return training.mixture.empty() ? openTokens(run, training.datasetPath)
                                  : openMixture(run);
}

WindowOrder fsdp::orderOf(const RunConfig &config) {
  bool isStream = config.training.dataset == DatasetKind::Bytes ||
                  config.training.dataset == DatasetKind::Ids;
  switch (config.training.dataOrder) {
  case DataOrder::Random:
    return WindowOrder::Random;
  case DataOrder::Shuffle:
    return WindowOrder::Shuffled;
  case DataOrder::Documents:
    return WindowOrder::Documents;
  case DataOrder::Auto:
    break;
  }
  return isStream ? WindowOrder::Random : WindowOrder::Shuffled;
}

std::unique_ptr<Dataset> fsdp::openDataset(const RunConfig &config,
                                           const RunOptions &options,
                                           const Manifest &manifest,
                                           std::vector<std::string> &warnings) {
  std::unique_ptr<Dataset> data = open(config, options, manifest);
  data->setOrder(orderOf(config));
  if (!data->hasDocuments())
    refuseDocuments(config, keepsDocumentsApart(manifest));
  checkHeldOut(config, options, manifest, *data);
  if (isIds(config) && vocabularyOf(manifest) == 0)
    warnings.push_back("the artifact does not state the vocabulary of its "
                       "model, so the ids of " +
                       namesOfSources(config) + " are not checked against it");
  return data;
}
