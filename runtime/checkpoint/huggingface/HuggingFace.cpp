//===- HuggingFace.cpp - Opens directories of Hugging Face ----------------===//
#include "HuggingFace.h"
#include "WeightMap.h"
#include "fsdp/Data/Safetensors.h"
#include "fsdp/Families/Families.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cstring>
#include <filesystem>

using namespace fsdp;
using namespace fsdp::checkpoint;
using nlohmann::json;
namespace fs = std::filesystem;

static constexpr char kConfig[] = "config.json";
static constexpr char kWhole[] = "model.safetensors";
static constexpr char kIndex[] = "model.safetensors.index.json";

/// What cannot be looked at is not there; opening it says why.
static bool isThere(const fs::path &path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool checkpoint::isHuggingFace(const std::string &path) {
  fs::path folder = path;
  return isThere(folder / kConfig) || isThere(folder / kWhole) ||
         isThere(folder / kIndex);
}

std::string checkpoint::tokenizerOf(const std::string &path) {
  std::error_code ignored;
  fs::path folder = path;
  if (fs::is_regular_file(folder, ignored))
    folder = fs::absolute(folder, ignored).parent_path();
  if (!fs::is_directory(folder, ignored))
    return "";
  for (const char *name : {"tokenizer.json", "tokenizer.model", "vocab.json",
                           "tokenizer_config.json"})
    if (isThere(folder / name))
      return (folder / name).string();
  return "";
}

namespace {

/// All that is wrong with one directory, so that it is mended in one go.
class Problems {
public:
  explicit Problems(std::string place) : place(std::move(place)) {}

  void add(const std::string &problem) {
    ++count;
    if (count <= kShown)
      text += "\n  " + problem;
  }
  void throwIfAny() const {
    if (count == 0)
      return;
    std::string more =
        count > kShown ? "\n  and " + std::to_string(count - kShown) + " more"
                       : "";
    throw Error("'" + place + "' is no model that can be read:" + text + more);
  }

private:
  static constexpr int kShown = 20;
  std::string place, text;
  int count = 0;
};

/// Tensors by the names of files, and the file of each.
struct FoundTensor {
  const rt::TensorView *view;
  std::string file; // its path
};
using FoundTensors = std::map<std::string, FoundTensor>;

class HuggingFaceStore : public TensorStore {
public:
  explicit HuggingFaceStore(const std::string &path);

private:
  const rt::SafetensorsFile &openFile(const std::string &path);
  FoundTensors openWhole();
  FoundTensors openShards();
  void checkFile(const std::string &name,
                 const std::map<std::string, std::string> &map,
                 FoundTensors &tensors, Problems &problems);
  void take(const FoundTensors &files);
  void takeTensor(const FileTensor &wanted, const FoundTensor &found,
                  Problems &problems);
  void refuseRest(const std::vector<FileTensor> &wanted,
                  const FoundTensors &files, const FoundTensors &rest,
                  Problems &problems) const;
  bool isIgnored(const std::string &name) const;
  std::string inside(const std::string &name) const {
    return (fs::path(origin) / name).string();
  }

  const Family *family = nullptr;
  std::vector<std::unique_ptr<rt::SafetensorsFile>> opened;
};

} // namespace

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

const rt::SafetensorsFile &HuggingFaceStore::openFile(const std::string &path) {
  opened.push_back(std::make_unique<rt::SafetensorsFile>(
      path, FileKind::Regular,
      [this](const std::string &name) { return isIgnored(name); }));
  return *opened.back();
}

FoundTensors HuggingFaceStore::openWhole() {
  FoundTensors tensors;
  std::string path = inside(kWhole);
  for (const rt::TensorView &view : openFile(path).tensors())
    tensors[view.name] = {&view, path};
  return tensors;
}

std::map<std::string, std::string>
checkpoint::parseWeightMap(const std::string &text, const std::string &origin) {
  std::string place = "damaged index '" + origin + "'";
  json index = parseJson(text, place);
  auto refuse = [&](const std::string &what) {
    throw Error(place + ": " + what);
  };
  auto map = index.find("weight_map");
  if (!index.is_object() || map == index.end() || !map->is_object())
    refuse("it has no weight_map, an object of files by tensors");
  if (map->empty())
    refuse("its weight_map is empty");
  std::map<std::string, std::string> files;
  for (const auto &[tensor, file] : map->items()) {
    if (!file.is_string())
      refuse("the file of '" + tensor + "' is no string");
    files[tensor] = file.get<std::string>();
    if (fs::path(files[tensor]).filename() != files[tensor] ||
        fs::path(files[tensor]).extension() != ".safetensors")
      refuse("the file of '" + tensor + "' is '" + files[tensor] +
             "', not the name of a .safetensors file beside the index");
  }
  return files;
}

/// Adds the tensors of one shard, each of which the index must place there.
void HuggingFaceStore::checkFile(const std::string &name,
                                 const std::map<std::string, std::string> &map,
                                 FoundTensors &tensors, Problems &problems) {
  std::string path = inside(name);
  if (!isThere(path))
    return problems.add("the file '" + name + "' of the index is missing");
  for (const rt::TensorView &view : openFile(path).tensors()) {
    auto [at, isNew] = tensors.insert({view.name, {&view, path}});
    auto mapped = map.find(view.name);
    if (!isNew)
      problems.add("'" + view.name + "' is in two files, '" + name + "' and '" +
                   fs::path(at->second.file).filename().string() + "'");
    else if (mapped == map.end())
      problems.add("'" + view.name + "' is in '" + name +
                   "', but not in the index");
    else if (mapped->second != name)
      problems.add("'" + view.name + "' is in '" + name +
                   "', but the index says '" + mapped->second + "'");
  }
}

FoundTensors HuggingFaceStore::openShards() {
  std::map<std::string, std::string> map = parseWeightMap(
      readWholeFile(inside(kIndex), "the index", FileKind::Regular),
      inside(kIndex));
  std::vector<std::string> names;
  for (const auto &[tensor, file] : map)
    names.push_back(file);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  Problems problems(inside(kIndex));
  FoundTensors tensors;
  for (const std::string &name : names)
    checkFile(name, map, tensors, problems);
  for (const auto &[tensor, file] : map)
    if (!tensors.count(tensor) && !isIgnored(tensor) && isThere(inside(file)))
      problems.add("'" + tensor + "' is not in '" + file +
                   "', where the index places it");
  problems.throwIfAny();
  return tensors;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

static bool isRead(rt::DType type) {
  return type == rt::DType::F32 || type == rt::DType::BF16 ||
         type == rt::DType::F16;
}

/// What a shape should be and why: of rows of several tensors, of which ones.
static std::string wantedShape(const FileTensor &wanted) {
  std::string text = shapeText(wanted.shape) + ", which config.json says";
  if (wanted.parts.size() == 1)
    return text;
  for (const ModelTensor &part : wanted.parts)
    text += (&part == &wanted.parts.front() ? ": " : ", ") +
            std::to_string(part.shape[0]) + " for '" + part.ours + "'";
  return text;
}

/// Makes each part a tensor of its own, in the bytes of the file.
void HuggingFaceStore::takeTensor(const FileTensor &wanted,
                                  const FoundTensor &found,
                                  Problems &problems) {
  const rt::TensorView &view = *found.view;
  std::string file = fs::path(found.file).filename().string();
  if (view.shape != wanted.shape)
    return problems.add("'" + view.name + "' is " + shapeText(view.shape) +
                        " instead of " + wantedShape(wanted) +
                        "; is it the config.json of '" + file + "'?");
  if (!isRead(view.dtype))
    return problems.add("'" + view.name + "' is " + dtypeName(view.dtype) +
                        "; weights are read from F32, BF16 and F16");
  // The shape is that of the file, so all parts lie in it.
  bool isTransposed = wanted.kind().isTransposed;
  int64_t rowStride = isTransposed ? 1
                                   : rt::elementCount(view.shape) /
                                         std::max<int64_t>(view.shape[0], 1);
  const std::byte *data = view.data;
  for (const ModelTensor &part : wanted.parts) {
    StoredTensor tensor;
    tensor.name = part.ours;
    tensor.role = rt::RangeRole::Parameter;
    tensor.dtype = view.dtype;
    tensor.shape = part.shape;
    Chunk chunk{rt::wholeBox(part.shape), data, found.file, {}};
    if (isTransposed)
      chunk.strides = {1, view.shape[1]};
    tensor.chunks.push_back(std::move(chunk));
    all.push_back(std::move(tensor));
    data += part.shape[0] * rowStride * rt::sizeOf(view.dtype);
  }
}

bool HuggingFaceStore::isIgnored(const std::string &name) const {
  return std::any_of(family->ignored.begin(), family->ignored.end(),
                     [&](const char *end) { return endsWith(name, end); });
}

static bool areEqual(const rt::TensorView &a, const rt::TensorView &b) {
  return a.dtype == b.dtype && a.shape == b.shape &&
         std::memcmp(a.data, b.data,
                     static_cast<size_t>(rt::elementCount(a.shape) *
                                         rt::sizeOf(a.dtype))) == 0;
}

/// Older files leave the prefix out everywhere.
static void takeNamesWithoutPrefix(const std::string &prefix,
                                   const FoundTensors &files,
                                   std::vector<FileTensor> &wanted) {
  auto hasPrefix = [&](const std::string &name) {
    return name.compare(0, prefix.size(), prefix) == 0;
  };
  bool isLeftOut = std::none_of(files.begin(), files.end(), [&](auto &file) {
    return hasPrefix(file.first);
  });
  if (!isLeftOut)
    return;
  for (FileTensor &tensor : wanted)
    if (hasPrefix(tensor.name))
      tensor.name.erase(0, prefix.size());
}

/// Tensors that are no tensor of the model. A part that a file keeps apart is
/// told with the tensor that it is a part of.
void HuggingFaceStore::refuseRest(const std::vector<FileTensor> &wanted,
                                  const FoundTensors &files,
                                  const FoundTensors &rest,
                                  Problems &problems) const {
  std::map<std::string, std::string> wholeOf;
  for (const FileTensor &tensor : wanted)
    for (const ModelTensor &part : tensor.parts)
      if (!part.apart.empty())
        wholeOf[part.apart] = tensor.name;
  for (const auto &[name, found] : rest) {
    std::string file = fs::path(found.file).filename().string();
    auto whole = wholeOf.find(name);
    if (whole == wholeOf.end())
      problems.add("'" + name +
                   "' is no tensor of the model that config.json describes");
    else if (files.count(whole->second))
      problems.add("'" + name + "' has rows of '" + whole->second +
                   "', which is there too; remove it from '" + file +
                   "', as transformers does not read it");
    else
      problems.add("'" + name + "' in '" + file + "' is a part of '" +
                   whole->second + "', into which files of " +
                   family->modelType +
                   " join such parts; save the model with transformers");
  }
}

/// The same weights under two names.
static void checkTied(const FoundTensor &again, const FileTensor &table,
                      const FoundTensors &files, Problems &problems) {
  auto first = files.find(table.name);
  if (first == files.end() || areEqual(*again.view, *first->second.view))
    return;
  problems.add("'" + again.view->name + "' is not equal to '" + table.name +
               "', but tie_word_embeddings is true in config.json; set it to "
               "false, or remove the former from '" +
               fs::path(again.file).filename().string() + "'");
}

void HuggingFaceStore::take(const FoundTensors &files) {
  Problems problems(origin);
  bool tied = Fields(*about).boolean("tied");
  std::vector<FileTensor> wanted = fileTensorsOf(*family, *about);
  if (family->prefix)
    takeNamesWithoutPrefix(family->prefix, files, wanted);
  FoundTensors left = files;
  for (const FileTensor &tensor : wanted) {
    auto found = left.extract(tensor.name);
    const char *tiedTo = tensor.kind().tiedTo;
    if (tied && tiedTo) {
      auto table = std::find_if(wanted.begin(), wanted.end(),
                                [&](const FileTensor &other) {
                                  return other.parts.front().ours == tiedTo;
                                });
      if (!found.empty() && table != wanted.end())
        checkTied(found.mapped(), *table, files, problems);
      continue;
    }
    if (found.empty())
      problems.add(
          "'" + tensor.name + "' is missing" +
          (tiedTo ? ", and tie_word_embeddings is false in config.json" : ""));
    else
      takeTensor(tensor, found.mapped(), problems);
  }
  refuseRest(wanted, files, left, problems);
  problems.throwIfAny();
  std::sort(all.begin(), all.end(),
            [](const StoredTensor &a, const StoredTensor &b) {
              return a.name < b.name;
            });
}

HuggingFaceStore::HuggingFaceStore(const std::string &path) {
  origin = path;
  std::string config = inside(kConfig);
  if (!isThere(config))
    throw Error("'" + path +
                "' has weights, but no config.json that describes their model");
  try {
    about = readModelConfig(
                readWholeFile(config, "the configuration", FileKind::Regular))
                .model;
  } catch (const Error &error) {
    throw Error(config + ": " + error.what());
  }
  family = &familyOf(*about);
  // As transformers: one file comes before shards.
  bool isWhole = isThere(inside(kWhole));
  if (!isWhole && !isThere(inside(kIndex)))
    throw Error("'" + path + "' has a config.json, but neither " + kWhole +
                " nor " + kIndex +
                "; weights in other formats are converted by transformers: "
                "save_pretrained");
  take(isWhole ? openWhole() : openShards());
}

std::unique_ptr<TensorStore>
checkpoint::openHuggingFace(const std::string &path) {
  return std::make_unique<HuggingFaceStore>(path);
}
