//===- HuggingFace.cpp - Opens directories of Hugging Face ----------------===//
#include "HuggingFace.h"
#include "WeightMap.h"
#include "fsdp/Data/Safetensors.h"
#include "fsdp/Families/Families.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"
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
struct FileTensor {
  const rt::TensorView *view;
  std::string file; // its path
};
using FileTensors = std::map<std::string, FileTensor>;

class HuggingFaceStore : public TensorStore {
public:
  explicit HuggingFaceStore(const std::string &path);

private:
  const rt::SafetensorsFile &openFile(const std::string &path);
  FileTensors openWhole();
  FileTensors openShards();
  void checkFile(const std::string &name,
                 const std::map<std::string, std::string> &map,
                 FileTensors &tensors, Problems &problems);
  void take(const Family &family, const FileTensors &files);
  void takeTensor(const ModelTensor &wanted, const FileTensor &found,
                  Problems &problems);
  std::string inside(const std::string &name) const {
    return (fs::path(origin) / name).string();
  }

  std::vector<std::unique_ptr<rt::SafetensorsFile>> opened;
};

} // namespace

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

const rt::SafetensorsFile &HuggingFaceStore::openFile(const std::string &path) {
  opened.push_back(
      std::make_unique<rt::SafetensorsFile>(path, FileKind::Regular));
  return *opened.back();
}

FileTensors HuggingFaceStore::openWhole() {
  FileTensors tensors;
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
                                 FileTensors &tensors, Problems &problems) {
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

FileTensors HuggingFaceStore::openShards() {
  std::map<std::string, std::string> map = parseWeightMap(
      readWholeFile(inside(kIndex), "the index", FileKind::Regular),
      inside(kIndex));
  std::vector<std::string> names;
  for (const auto &[tensor, file] : map)
    names.push_back(file);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  Problems problems(inside(kIndex));
  FileTensors tensors;
  for (const std::string &name : names)
    checkFile(name, map, tensors, problems);
  for (const auto &[tensor, file] : map)
    if (!tensors.count(tensor) && isThere(inside(file)))
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

void HuggingFaceStore::takeTensor(const ModelTensor &wanted,
                                  const FileTensor &found, Problems &problems) {
  const rt::TensorView &view = *found.view;
  if (view.shape != wanted.shape)
    return problems.add("'" + view.name + "' is " + shapeText(view.shape) +
                        " instead of " + shapeText(wanted.shape) +
                        ", which config.json says");
  if (!isRead(view.dtype))
    return problems.add("'" + view.name + "' is " + dtypeName(view.dtype) +
                        "; weights are read from F32, BF16 and F16");
  StoredTensor tensor;
  tensor.name = wanted.ours;
  tensor.role = rt::RangeRole::Parameter;
  tensor.dtype = view.dtype;
  tensor.shape = view.shape;
  tensor.chunks.push_back(
      {rt::wholeBox(view.shape), view.data, found.file, {}, {}});
  all.push_back(std::move(tensor));
}

static bool isIgnored(const Family &family, const std::string &name) {
  auto isEnd = [&](const std::string &end) {
    return name.size() >= end.size() &&
           name.compare(name.size() - end.size(), end.size(), end) == 0;
  };
  return std::any_of(family.ignored.begin(), family.ignored.end(), isEnd);
}

static bool areEqual(const rt::TensorView &a, const rt::TensorView &b) {
  return a.dtype == b.dtype && a.shape == b.shape &&
         std::memcmp(a.data, b.data,
                     static_cast<size_t>(rt::elementCount(a.shape) *
                                         rt::sizeOf(a.dtype))) == 0;
}

void HuggingFaceStore::take(const Family &family, const FileTensors &files) {
  Problems problems(origin);
  bool tied = Fields(*about).boolean("tied");
  std::vector<ModelTensor> wanted = tensorsOf(family, *about);
  std::map<std::string, std::string> theirs; // by our name
  for (const ModelTensor &tensor : wanted)
    theirs[tensor.ours] = tensor.theirs;
  FileTensors left = files;
  for (const ModelTensor &tensor : wanted) {
    auto found = left.extract(tensor.theirs);
    const char *tiedTo = tied ? tensor.kind->tiedTo : nullptr;
    if (!tiedTo && found.empty())
      problems.add("'" + tensor.theirs + "' is missing" +
                   (tensor.kind->tiedTo
                        ? ", and tie_word_embeddings is false in config.json"
                        : ""));
    else if (!tiedTo)
      takeTensor(tensor, found.mapped(), problems);
    else if (!found.empty() && files.count(theirs[tiedTo]) &&
             !areEqual(*found.mapped().view, *files.at(theirs[tiedTo]).view))
      problems.add("'" + tensor.theirs + "' is not equal to '" +
                   theirs[tiedTo] +
                   "', but tie_word_embeddings is true in config.json");
  }
  for (const auto &[name, tensor] : left)
    if (!isIgnored(family, name))
      problems.add("'" + name +
                   "' is no tensor of the model that config.json "
                   "describes");
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
  const Family &family = familyOf(*about);
  // As transformers: one file comes before shards.
  bool isWhole = isThere(inside(kWhole));
  if (!isWhole && !isThere(inside(kIndex)))
    throw Error("'" + path + "' has a config.json, but neither " + kWhole +
                " nor " + kIndex +
                "; weights in other formats are converted by transformers: "
                "save_pretrained");
  take(family, isWhole ? openWhole() : openShards());
}

std::unique_ptr<TensorStore>
checkpoint::openHuggingFace(const std::string &path) {
  return std::make_unique<HuggingFaceStore>(path);
}
