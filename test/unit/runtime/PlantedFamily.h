//===- PlantedFamily.h - A family with every layout of files ----*- C++ -*-===//
//
// A table that no model has, with every transform alone and with others, and
// what is to come of it, said once more: which element of which file an element
// of ours is.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_PLANTEDFAMILY_H
#define FSDP_TEST_PLANTEDFAMILY_H

#include "fsdp/Data/Safetensors.h"
#include "fsdp/Families/Families.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include "runtime/checkpoint/huggingface/HuggingFace.h"
#include "runtime/checkpoint/store/ConvertElements.h"
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

namespace fsdp::test {

inline checkpoint::FamilyTensor planted(const char *ours, const char *theirs,
                                        std::vector<const char *> shape,
                                        const char *rotary = nullptr,
                                        bool isTransposed = false) {
  checkpoint::FamilyTensor tensor{ours, theirs, std::move(shape), rotary};
  tensor.isTransposed = isTransposed;
  return tensor;
}

/// The tensors of the family.
inline std::vector<checkpoint::FamilyTensor> plantedTensors() {
  constexpr bool kTransposed = true;
  const char *const query = "n_heads*head_dim";
  const char *const key = "n_kv_heads*head_dim";
  const char *const part = "rotary_dim";
  auto biased = [](checkpoint::FamilyTensor tensor) {
    tensor.when = "attention_bias";
    return tensor;
  };
  auto joined = [](checkpoint::FamilyTensor tensor, const char *apart) {
    tensor.apart = apart;
    return tensor;
  };
  checkpoint::FamilyTensor output =
      planted("output.weight", "head.weight", {"vocab_size", "dim"});
  output.tiedTo = "tok_embeddings.weight";
  return {
      planted("tok_embeddings.weight", "base.embed.weight",
              {"vocab_size", "dim"}),
      // Joined, transposed and rotary; its bias joined and rotary.
      planted("layers.*.all.wq.weight", "base.h.*.all.weight", {query, "dim"},
              part, kTransposed),
      planted("layers.*.all.wk.weight", "base.h.*.all.weight", {key, "dim"},
              part, kTransposed),
      planted("layers.*.all.wv.weight", "base.h.*.all.weight", {key, "dim"},
              nullptr, kTransposed),
      biased(
          planted("layers.*.all.wq.bias", "base.h.*.all.bias", {query}, part)),
      biased(planted("layers.*.all.wk.bias", "base.h.*.all.bias", {key}, part)),
      biased(planted("layers.*.all.wv.bias", "base.h.*.all.bias", {key})),
      // Each alone, and what is left of pairs.
      planted("layers.*.transposed.weight", "base.h.*.transposed.weight",
              {"ffn_dim", "dim"}, nullptr, kTransposed),
      planted("layers.*.turned.weight", "base.h.*.turned.weight",
              {query, "dim"}, part, kTransposed),
      planted("layers.*.rotary.weight", "base.h.*.rotary.weight",
              {query, "dim"}, part),
      planted("layers.*.head_norm.weight", "base.h.*.head_norm.weight",
              {"head_dim"}, "head_dim"),
      joined(planted("layers.*.mixed.wq.weight", "base.h.*.mixed.weight",
                     {query, "dim"}, part),
             "base.h.*.q.weight"),
      joined(planted("layers.*.mixed.wv.weight", "base.h.*.mixed.weight",
                     {key, "dim"}),
             "base.h.*.v.weight"),
      planted("layers.*.w1.weight", "base.h.*.gate_up.weight",
              {"ffn_dim", "dim"}),
      planted("layers.*.w3.weight", "base.h.*.gate_up.weight",
              {"ffn_dim", "dim"}),
      planted("layers.*.two.a.weight", "base.h.*.two.weight",
              {"ffn_dim", "dim"}, nullptr, kTransposed),
      planted("layers.*.two.b.weight", "base.h.*.two.weight", {"dim", "dim"},
              nullptr, kTransposed),
      planted("layers.*.w2.weight", "base.h.*.w2.weight", {"dim", "ffn_dim"}),
      planted("norm.weight", "base.norm.weight", {"dim"}),
      output,
  };
}

inline checkpoint::Family plantedFamily() {
  using Type = checkpoint::ConfigField::Type;
  checkpoint::Family family{};
  family.name = family.modelType = "planted";
  family.tensors = plantedTensors();
  family.ignored = {".mask"};
  family.prefix = "base.";
  family.keys = {{"model_type", checkpoint::KeyRole::Used}};
  for (const char *size : {"dim", "n_layers", "n_heads", "n_kv_heads",
                           "head_dim", "rotary_dim", "ffn_dim", "vocab_size"}) {
    family.fields.push_back(
        {size, size, Type::Integer, nullptr, kMaxDimension});
    family.keys.push_back({size, checkpoint::KeyRole::Used});
    family.modelFields.push_back({size});
  }
  for (const char *is : {"attention_bias", "tied"}) {
    family.fields.push_back({is, is, Type::Boolean});
    family.keys.push_back({is, checkpoint::KeyRole::Used});
    family.modelFields.push_back({is});
  }
  family.base.ropeHalves = true; // as files have them
  family.modelFields.push_back({"rope_halves"});
  return family;
}

struct PlantedSizes {
  int64_t layers = 1, heads = 2, kv = 1, head = 8, part = 6, dim = 3, ffn = 5,
          vocab = 6;
  bool bias = true, tied = false;

  nlohmann::json config() const {
    return {{"model_type", "planted"},
            {"n_layers", layers},
            {"n_heads", heads},
            {"n_kv_heads", kv},
            {"head_dim", head},
            {"rotary_dim", part},
            {"dim", dim},
            {"ffn_dim", ffn},
            {"vocab_size", vocab},
            {"attention_bias", bias},
            {"tied", tied}};
  }
};

inline PlantedSizes randomSizes(std::mt19937 &random) {
  auto below = [&](int64_t limit) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
  };
  PlantedSizes sizes;
  sizes.layers = 1 + below(2);
  sizes.kv = 1 + below(3);
  sizes.heads = sizes.kv * (1 + below(3));
  sizes.head = 2 + 2 * below(8);
  sizes.part = 2 + 2 * below(sizes.head / 2);
  sizes.dim = 1 + below(150);
  sizes.ffn = 1 + below(200);
  sizes.vocab = 1 + below(40);
  sizes.bias = below(2);
  sizes.tied = below(2);
  return sizes;
}

/// Where a tensor of ours lies in files.
struct PlantedPart {
  std::string ours, theirs;
  int64_t firstRow, rows, columns; // columns 0: it has one dimension
  int64_t part = 0;                // rotary rows of a head; 0: none
  bool isTransposed = false;

  std::vector<int64_t> shape() const {
    return columns ? std::vector<int64_t>{rows, columns}
                   : std::vector<int64_t>{rows};
  }
};

inline std::vector<PlantedPart> plantedParts(const PlantedSizes &s) {
  int64_t q = s.heads * s.head, k = s.kv * s.head;
  std::vector<PlantedPart> parts = {
      {"tok_embeddings.weight", "base.embed.weight", 0, s.vocab, s.dim},
      {"norm.weight", "base.norm.weight", 0, s.dim, 0}};
  if (!s.tied)
    parts.push_back({"output.weight", "head.weight", 0, s.vocab, s.dim});
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    auto add = [&, ours = "layers." + std::to_string(layer) + ".",
                theirs = "base.h." + std::to_string(layer) + "."](
                   const char *a, const char *b, int64_t first, int64_t rows,
                   int64_t columns, int64_t part = 0, bool turned = false) {
      parts.push_back(
          {ours + a, theirs + b, first, rows, columns, part, turned});
    };
    add("all.wq.weight", "all.weight", 0, q, s.dim, s.part, true);
    add("all.wk.weight", "all.weight", q, k, s.dim, s.part, true);
    add("all.wv.weight", "all.weight", q + k, k, s.dim, 0, true);
    if (s.bias) {
      add("all.wq.bias", "all.bias", 0, q, 0, s.part);
      add("all.wk.bias", "all.bias", q, k, 0, s.part);
      add("all.wv.bias", "all.bias", q + k, k, 0);
    }
    add("transposed.weight", "transposed.weight", 0, s.ffn, s.dim, 0, true);
    add("turned.weight", "turned.weight", 0, q, s.dim, s.part, true);
    add("rotary.weight", "rotary.weight", 0, q, s.dim, s.part);
    add("head_norm.weight", "head_norm.weight", 0, s.head, 0, s.head);
    add("mixed.wq.weight", "mixed.weight", 0, q, s.dim, s.part);
    add("mixed.wv.weight", "mixed.weight", q, k, s.dim);
    add("w1.weight", "gate_up.weight", 0, s.ffn, s.dim);
    add("w3.weight", "gate_up.weight", s.ffn, s.ffn, s.dim);
    add("two.a.weight", "two.weight", 0, s.ffn, s.dim, 0, true);
    add("two.b.weight", "two.weight", s.ffn, s.dim, s.dim, 0, true);
    add("w2.weight", "w2.weight", 0, s.dim, s.ffn);
  }
  return parts;
}

/// A number that every type of weights holds.
inline float plantedValue(const std::string &theirs, int64_t row,
                          int64_t column) {
  uint64_t hash = std::hash<std::string>()(theirs) +
                  static_cast<uint64_t>(row * 1000003 + column);
  hash = (hash ^ (hash >> 29)) * 0x9e3779b97f4a7c15u;
  return static_cast<float>(hash >> 56) - 128;
}

/// Rows of ours by rows of the part in its file: the pairs of a head are
/// neighbours, or as in the file.
inline std::vector<int64_t> plantedRows(const PlantedPart &part, int64_t head,
                                        bool halves) {
  std::vector<int64_t> rows(static_cast<size_t>(part.rows));
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<int64_t>(i);
  if (part.part == 0 || halves)
    return rows;
  for (int64_t first = 0; first < part.rows; first += head)
    for (int64_t pair = 0; pair < part.part / 2; ++pair) {
      auto at = static_cast<size_t>(first + 2 * pair);
      rows[at] = first + pair;
      rows[at + 1] = first + pair + part.part / 2;
    }
  return rows;
}

/// A tensor of ours in f32.
inline std::vector<float> plantedTensor(const PlantedPart &part, int64_t head,
                                        bool halves) {
  std::vector<float> values;
  for (int64_t row : plantedRows(part, head, halves))
    for (int64_t c = 0; c < std::max<int64_t>(part.columns, 1); ++c)
      values.push_back(plantedValue(part.theirs, part.firstRow + row, c));
  return values;
}

/// Tensors of files, by name: shape and values.
struct PlantedFile {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

inline std::map<std::string, PlantedFile>
plantedFiles(const std::vector<PlantedPart> &parts) {
  std::map<std::string, PlantedFile> files;
  for (const PlantedPart &part : parts) { // the last part ends the file's rows
    PlantedFile &file = files[part.theirs];
    int64_t rows = part.firstRow + part.rows, columns = part.columns;
    file.values.clear();
    file.shape = {rows};
    if (columns)
      file.shape = part.isTransposed ? std::vector<int64_t>{columns, rows}
                                     : std::vector<int64_t>{rows, columns};
    int64_t inner = columns ? file.shape[1] : 1;
    for (int64_t i = 0; i < rows * std::max<int64_t>(columns, 1); ++i)
      file.values.push_back(
          part.isTransposed ? plantedValue(part.theirs, i % inner, i / inner)
                            : plantedValue(part.theirs, i / inner, i % inner));
  }
  return files;
}

/// Writes them as one file, in this type.
inline void writePlanted(const std::string &path,
                         const std::map<std::string, PlantedFile> &files,
                         rt::DType dtype) {
  std::vector<rt::TensorSource> tensors;
  for (const auto &[name, file] : files)
    tensors.push_back(
        {name, dtype, file.shape, [&file = file, dtype](const auto &write) {
           auto count = static_cast<int64_t>(file.values.size());
           std::string bytes(static_cast<size_t>(count * sizeOf(dtype)), '\0');
           checkpoint::convertElements(
               rt::DType::F32,
               reinterpret_cast<const std::byte *>(file.values.data()), dtype,
               reinterpret_cast<std::byte *>(bytes.data()), count);
           write(bytes);
         }});
  rt::writeSafetensors(path, std::move(tensors), {{"format", "pt"}});
}

/// A directory of Hugging Face with a model of the family, into a folder that
/// is there.
inline void writePlantedModel(const std::string &folder,
                              const PlantedSizes &sizes, rt::DType dtype) {
  writeFileAtomically(folder + "/config.json", sizes.config().dump());
  writePlanted(folder + "/model.safetensors", plantedFiles(plantedParts(sizes)),
               dtype);
}

/// Such a directory, in memory where there is such a file system, as it is read
/// some thousand times.
class PlantedDirectory {
public:
  PlantedDirectory() {
    std::filesystem::path place = std::filesystem::exists("/dev/shm")
                                      ? "/dev/shm"
                                      : std::filesystem::temp_directory_path();
    path = (place / "fsdp-planted-XXXXXX").string();
    if (!mkdtemp(path.data()))
      throw Error("cannot make '" + path + "'");
    writePlantedModel(path, {}, rt::DType::BF16);
  }
  ~PlantedDirectory() { std::filesystem::remove_all(path); }

  std::string text(const char *name) const {
    return readWholeFile(path + "/" + name, "the file");
  }
  /// Opens the directory with this text in the place of one file, and reads
  /// every element in both rotary layouts. Throws fsdp::Error.
  void readWith(const char *name, const std::string &text) {
    struct Restored {
      std::string file, good;
      ~Restored() { std::ofstream(file, std::ios::binary) << good; }
    } restored{path + "/" + name, this->text(name)};
    std::ofstream(restored.file, std::ios::binary) << text;
    std::unique_ptr<checkpoint::TensorStore> store =
        checkpoint::openHuggingFace(path);
    rt::ModelInfo model = *store->model();
    for (const char *halves : {"true", "false"}) {
      model.fields["rope_halves"] = halves;
      store->adaptTo(model);
      for (const checkpoint::StoredTensor &tensor : store->tensors()) {
        int64_t count = rt::elementCount(tensor.shape);
        std::vector<float> values(static_cast<size_t>(count));
        checkpoint::TensorReader(tensor, checkpoint::wholeView(tensor),
                                 rt::DType::F32)
            .read(0, count, reinterpret_cast<std::byte *>(values.data()));
      }
    }
  }

private:
  std::string path;
};

} // namespace fsdp::test

#endif // FSDP_TEST_PLANTEDFAMILY_H
