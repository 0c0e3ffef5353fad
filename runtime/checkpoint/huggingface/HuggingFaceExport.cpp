//===- HuggingFaceExport.cpp - Writes directories of Hugging Face ---------===//
//
// The directory is written beside its place and renamed when it is whole.
// Tensors are read and written in pieces, so that memory does not grow with
// the model.
//
//===----------------------------------------------------------------------===//
#include "HuggingFace.h"
#include "fsdp/Data/Safetensors.h"
#include "fsdp/Families/Families.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"
#include "fsdp/Support/Signals.h"
#include "runtime/checkpoint/store/NewFolder.h"
#include <algorithm>
#include <cstring>
#include <filesystem>

using namespace fsdp;
using namespace fsdp::checkpoint;
using nlohmann::json;
namespace fs = std::filesystem;

/// Elements that are read at once.
static constexpr int64_t kPiece = int64_t{1} << 20;

/// What a directory may have of a tokenizer and of its use.
static const char *const kAssets[] = {"tokenizer.json",
                                      "tokenizer_config.json",
                                      "special_tokens_map.json",
                                      "added_tokens.json",
                                      "tokenizer.model",
                                      "vocab.json",
                                      "merges.txt",
                                      "chat_template.jinja",
                                      "chat_template.json",
                                      "generation_config.json"};

//===----------------------------------------------------------------------===//
// What is written
//===----------------------------------------------------------------------===//

namespace {

/// A tensor of files, and the tensors of the store whose rows it has.
struct Exported {
  FileTensor there;
  std::vector<const StoredTensor *> parts;
};
using Shard = std::vector<Exported>;

} // namespace

/// The tensors in the order of transformers. Throws if the store has not all
/// of them as the model says.
static std::vector<Exported> findTensors(const TensorStore &store,
                                         const rt::ModelInfo &model) {
  bool tied = Fields(model).boolean("tied");
  std::vector<Exported> tensors;
  std::string missing;
  for (FileTensor &wanted : fileTensorsOf(familyOf(model), model)) {
    if (tied && wanted.kind().tiedTo)
      continue;
    std::vector<const StoredTensor *> parts;
    for (const ModelTensor &part : wanted.parts) {
      parts.push_back(store.find(part.ours));
      bool isMissing = !parts.back();
      if (isMissing || parts.back()->shape != part.shape)
        missing += (missing.empty() ? "'" : ", '") + part.ours + "'" +
                   (isMissing ? "" : " (of another shape)");
    }
    tensors.push_back({std::move(wanted), std::move(parts)});
  }
  if (!missing.empty())
    throw Error(
        "'" + store.path() +
        "' is not a complete model; these parameters are missing: " + missing);
  return tensors;
}

static int64_t bytesOf(const Exported &tensor, rt::DType dtype) {
  return rt::elementCount(tensor.there.shape) * rt::sizeOf(dtype);
}

/// As huggingface_hub's split_state_dict_into_shards_factory: in order, a new
/// shard where one would be too large; a tensor that is too large by itself
/// gets one of its own, before the shard that is being filled.
static std::vector<Shard> splitIntoShards(const std::vector<Exported> &tensors,
                                          const ExportOptions &options) {
  std::vector<Shard> shards;
  Shard current;
  int64_t size = 0;
  for (const Exported &tensor : tensors) {
    int64_t bytes = bytesOf(tensor, options.dtype);
    if (bytes > options.shardBytes) {
      shards.push_back({tensor});
      continue;
    }
    if (bytes > options.shardBytes - size) {
      shards.push_back(std::move(current));
      current.clear();
      size = 0;
    }
    current.push_back(tensor);
    size += bytes;
  }
  if (!current.empty())
    shards.push_back(std::move(current));
  return shards;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

namespace {

/// One export, into a directory that is not there yet.
class Export {
public:
  Export(const TensorStore &store, const rt::ModelInfo &model,
         const ExportOptions &options)
      : model(model), options(options),
        shards(splitIntoShards(findTensors(store, model), options)) {}

  void writeTo(const fs::path &directory) const;
  ExportSummary summary() const;

private:
  std::string shardName(size_t index) const;
  void writeShard(const Shard &shard, const std::string &path) const;
  void writeIndex(const std::string &path) const;
  void copyAssets(const fs::path &directory) const;
  std::map<std::string, std::string> tokenIds() const;

  const rt::ModelInfo &model;
  const ExportOptions &options;
  std::vector<Shard> shards;
};

} // namespace

std::string Export::shardName(size_t index) const {
  if (shards.size() == 1)
    return "model.safetensors";
  char name[64];
  snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", index + 1,
           shards.size());
  return name;
}

namespace {

/// Writes tensors of files in pieces.
class TensorWriter {
public:
  TensorWriter(rt::DType dtype,
               const std::function<void(std::string_view)> &write)
      : dtype(dtype), write(write) {}

  void writeRows(const StoredTensor &tensor);
  void writeTransposed(const std::vector<const StoredTensor *> &parts);

private:
  void flush(std::vector<std::byte> &piece, int64_t count) const;

  rt::DType dtype;
  const std::function<void(std::string_view)> &write;
};

} // namespace

void TensorWriter::flush(std::vector<std::byte> &piece, int64_t count) const {
  write({reinterpret_cast<const char *>(piece.data()),
         static_cast<size_t>(count * rt::sizeOf(dtype))});
}

void TensorWriter::writeRows(const StoredTensor &tensor) {
  TensorReader reader(tensor, wholeView(tensor), dtype);
  int64_t elements = rt::elementCount(tensor.shape);
  std::vector<std::byte> piece(
      static_cast<size_t>(std::min(elements, kPiece) * rt::sizeOf(dtype)));
  for (int64_t first = 0; first < elements; first += kPiece) {
    DeferredSignals::throwIfPending();
    int64_t count = std::min(kPiece, elements - first);
    reader.read(first, count, piece.data());
    flush(piece, count);
  }
}

/// A row of the file is a column of each part, one after another.
void TensorWriter::writeTransposed(
    const std::vector<const StoredTensor *> &parts) {
  int64_t size = rt::sizeOf(dtype), rows = parts[0]->shape[1], width = 0;
  std::vector<StoredTensor> columns;
  for (const StoredTensor *part : parts) {
    columns.push_back(transposed(*part));
    width += part->shape[0];
  }
  std::vector<TensorReader> readers;
  for (const StoredTensor &part : columns)
    readers.emplace_back(part, wholeView(part), dtype);
  int64_t most = std::clamp<int64_t>(kPiece / std::max<int64_t>(width, 1), 1,
                                     std::max<int64_t>(rows, 1));
  std::vector<std::byte> piece(static_cast<size_t>(most * width * size)),
      columnsOfPart(piece.size());
  for (int64_t row = 0; row < rows; row += most) {
    DeferredSignals::throwIfPending();
    int64_t count = std::min(most, rows - row), before = 0;
    for (size_t i = 0; i < readers.size(); ++i) {
      int64_t own = columns[i].shape[1];
      readers[i].read(row * own, count * own, columnsOfPart.data());
      for (int64_t r = 0; r < count; ++r)
        std::memcpy(piece.data() + (r * width + before) * size,
                    columnsOfPart.data() + r * own * size,
                    static_cast<size_t>(own * size));
      before += own;
    }
    flush(piece, count * width);
  }
}

void Export::writeShard(const Shard &shard, const std::string &path) const {
  std::vector<rt::TensorSource> sources;
  for (const Exported &tensor : shard)
    sources.push_back({tensor.there.name, options.dtype, tensor.there.shape,
                       [&tensor, dtype = options.dtype](const auto &write) {
                         TensorWriter writer(dtype, write);
                         if (tensor.there.kind().isTransposed)
                           return writer.writeTransposed(tensor.parts);
                         for (const StoredTensor *part : tensor.parts)
                           writer.writeRows(*part);
                       }});
  rt::writeSafetensors(path, std::move(sources), {{"format", "pt"}});
}

void Export::writeIndex(const std::string &path) const {
  json map = json::object();
  for (size_t i = 0; i < shards.size(); ++i)
    for (const Exported &tensor : shards[i])
      map[tensor.there.name] = shardName(i);
  ExportSummary total = summary();
  json index = {
      {"metadata",
       {{"total_parameters", total.parameters}, {"total_size", total.bytes}}},
      {"weight_map", map}};
  writeFileAtomically(path, index.dump(2) + "\n");
}

ExportSummary Export::summary() const {
  ExportSummary total;
  total.files = shards.size();
  for (const Shard &shard : shards)
    for (const Exported &tensor : shard) {
      ++total.tensors;
      total.parameters += rt::elementCount(tensor.there.shape);
      total.bytes += bytesOf(tensor, options.dtype);
    }
  return total;
}

void Export::copyAssets(const fs::path &directory) const {
  bool any = false;
  for (const char *name : kAssets) {
    fs::path from = fs::path(options.assets) / name;
    if (!fs::exists(from))
      continue;
    any = true;
    writeFileAtomically(
        (directory / name).string(),
        readWholeFile(from.string(), "the file", FileKind::Regular));
  }
  if (!any)
    throw Error("'" + options.assets +
                "' has no files of a tokenizer (tokenizer.json and the like)");
}

/// The ids of special tokens in the config.json of the assets, which no weight
/// says.
std::map<std::string, std::string> Export::tokenIds() const {
  std::map<std::string, std::string> ids;
  fs::path config = fs::path(options.assets) / "config.json";
  if (options.assets.empty() || !fs::exists(config))
    return ids;
  json document = parseJson(
      readWholeFile(config.string(), "the configuration", FileKind::Regular),
      config.string());
  if (!document.is_object())
    throw Error(config.string() + ": expected an object");
  for (const char *key : {"bos_token_id", "eos_token_id", "pad_token_id"})
    if (document.contains(key))
      ids[key] = document[key].dump();
  return ids;
}

void Export::writeTo(const fs::path &directory) const {
  auto inside = [&](const std::string &name) {
    return (directory / name).string();
  };
  for (size_t i = 0; i < shards.size(); ++i)
    writeShard(shards[i], inside(shardName(i)));
  if (shards.size() > 1)
    writeIndex(inside("model.safetensors.index.json"));
  if (!options.assets.empty())
    copyAssets(directory);
  writeFileAtomically(inside("config.json"),
                      writeModelConfig(model, options.dtype, tokenIds()));
}

void checkpoint::checkExportable(const std::optional<rt::ModelInfo> &model,
                                 const std::string &owner) {
  if (!model)
    throw Error(owner + " does not state its model, which config.json must "
                        "describe: its program was compiled from text");
  try {
    familyOf(*model);
  } catch (const Error &error) {
    throw Error(owner + ": " + error.what());
  }
}

ExportSummary checkpoint::exportHuggingFace(TensorStore &store,
                                            const std::string &path,
                                            const ExportOptions &options) {
  checkExportable(store.model(), "'" + store.path() + "'");
  rt::ModelInfo model = *store.model();
  if (hasRotaryRows(familyOf(model)))
    model.fields["rope_halves"] = "true";
  store.adaptTo(model);
  Export exported(store, model, options);

  writeNewFolder(
      path, [&](const std::string &partial) { exported.writeTo(partial); });
  return exported.summary();
}
