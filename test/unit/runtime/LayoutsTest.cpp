//===- LayoutsTest.cpp - Tensors of files become ours, and back -----------===//
#include "CheckpointFixture.h"
#include "PlantedFamily.h"
#include "fsdp/Support/AtomicFile.h"
#include "runtime/checkpoint/dcp/Dcp.h"
#include "runtime/checkpoint/huggingface/HuggingFace.h"

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;
using namespace fsdp::test;
using nlohmann::json;

namespace {

/// Tests know the planted family.
class Layouts : public ::testing::Test {
  AddedFamily family{plantedFamily()};
};

constexpr DType kTypes[] = {DType::F32, DType::BF16, DType::F16};

/// The model in another rotary layout.
ModelInfo withHalves(const TensorStore &store, bool halves) {
  ModelInfo model = *store.model();
  model.fields["rope_halves"] = halves ? "true" : "false";
  return model;
}

/// A random box, and some room behind it.
ShardView randomBox(const std::vector<int64_t> &shape, std::mt19937 &random) {
  ShardView view;
  for (int64_t size : shape) {
    int64_t begin = static_cast<int64_t>(random()) % size;
    int64_t count = static_cast<int64_t>(random()) % (size - begin + 1);
    view.offsets.push_back(begin);
    view.sizes.push_back(count);
    view.stored.push_back(std::max<int64_t>(1, count + random() % 3));
  }
  return view;
}

/// What the box has of these values, padding zero.
std::vector<float> slice(const std::vector<float> &whole,
                         const std::vector<int64_t> &shape,
                         const ShardView &view) {
  std::vector<float> part(static_cast<size_t>(elementCount(view.stored)), 0);
  forEachRun(view, shape, [&](int64_t stored, int64_t from, int64_t count) {
    std::copy_n(whole.begin() + from, count, part.begin() + stored);
  });
  return part;
}

/// Reads a box in pieces of random sizes.
std::vector<float> readBox(const StoredTensor &tensor, const ShardView &view,
                           std::mt19937 &random) {
  int64_t count = elementCount(view.stored);
  std::vector<float> values(static_cast<size_t>(count), -1);
  TensorReader reader(tensor, view, DType::F32);
  for (int64_t first = 0, now; first < count; first += now) {
    int64_t most = random() % 2 ? count : 1 + count / 3;
    now = std::min<int64_t>(1 + static_cast<int64_t>(random()) % most,
                            count - first);
    reader.read(first, now,
                reinterpret_cast<std::byte *>(values.data() + first));
  }
  return values;
}

/// Exports in one file.
void exportWhole(TensorStore &store, const std::string &path, DType dtype) {
  ExportOptions options;
  options.dtype = dtype;
  exportHuggingFace(store, path, options);
}

std::string bytesOf(const std::string &path) {
  return readWholeFile(path, "the file");
}

} // namespace

TEST_F(Layouts, ShardsAreSlicesOfTheWhole) {
  std::mt19937 random(1);
  int boxes = 0;
  for (int model = 0; model < 12; ++model) {
    PlantedSizes sizes = randomSizes(random);
    TemporaryFolder folder;
    writePlantedModel(folder.path, sizes, kTypes[model % 3]);
    auto store = openTensorStore(folder.path);
    std::vector<PlantedPart> parts = plantedParts(sizes);
    ASSERT_EQ(store->tensors().size(), parts.size());
    for (bool halves : {true, false}) {
      store->adaptTo(withHalves(*store, halves));
      for (const PlantedPart &part : parts) {
        const StoredTensor *tensor = store->find(part.ours);
        ASSERT_TRUE(tensor && tensor->shape == part.shape()) << part.ours;
        std::vector<float> whole = plantedTensor(part, sizes.head, halves);
        for (int i = 0; i < 4; ++i, ++boxes) {
          ShardView view =
              i == 0 ? wholeView(*tensor) : randomBox(part.shape(), random);
          ASSERT_EQ(readBox(*tensor, view, random),
                    slice(whole, part.shape(), view))
              << part.ours << " of " << sizes.config();
        }
      }
    }
  }
  EXPECT_GT(boxes, 1000);
}

TEST_F(Layouts, ExportsAreTheFilesThatWereRead) {
  std::mt19937 random(2);
  for (int model = 0; model < 9; ++model) {
    PlantedSizes sizes = randomSizes(random);
    TemporaryFolder folder;
    ExportOptions options;
    options.dtype = kTypes[model % 3];
    writePlantedModel(folder.path, sizes, options.dtype);
    auto store = openTensorStore(folder.path);
    // Whatever layout it has been given.
    store->adaptTo(withHalves(*store, model % 2));
    exportHuggingFace(*store, folder.file("again"), options);
    EXPECT_EQ(bytesOf(folder.file("again/model.safetensors")),
              bytesOf(folder.file("model.safetensors")))
        << sizes.config();

    options.shardBytes = 3000;
    exportHuggingFace(*store, folder.file("shards"), options);
    auto shards = openTensorStore(folder.file("shards"));
    exportWhole(*shards, folder.file("one"), options.dtype);
    EXPECT_EQ(bytesOf(folder.file("one/model.safetensors")),
              bytesOf(folder.file("model.safetensors")));
  }
}

/// Tensors are transposed in more than one piece of the writer.
TEST_F(Layouts, LargeTensorsGoThroughMemoryInPieces) {
  PlantedSizes sizes;
  sizes.head = sizes.part = 300;
  sizes.dim = 1200;
  TemporaryFolder folder;
  writePlantedModel(folder.path, sizes, DType::BF16);
  auto store = openTensorStore(folder.path);
  store->adaptTo(withHalves(*store, false));
  exportWhole(*store, folder.file("again"), DType::BF16);
  EXPECT_TRUE(bytesOf(folder.file("again/model.safetensors")) ==
              bytesOf(folder.file("model.safetensors")));
}

//===----------------------------------------------------------------------===//
// Checkpoints between
//===----------------------------------------------------------------------===//

/// The parameters of the model in f32 on a mesh of these axes: rows or columns
/// cut, or neither.
static Manifest
manifestOf(const std::vector<PlantedPart> &parts,
           const std::vector<std::pair<std::string, int64_t>> &mesh) {
  std::vector<TestRange> ranges;
  for (const PlantedPart &part : parts) {
    TestRange range{part.ours, "parameter", "f32", part.shape(), {}};
    range.axes.assign(range.full.size(), "");
    size_t cut = ranges.size() % 3;
    if (cut < range.axes.size())
      range.axes[cut] = "/dp";
    ranges.push_back(std::move(range));
  }
  return test::manifestOf(mesh, ranges);
}

/// Every rank reads its boxes of `from` and saves them as a step of `folder`.
static void saveFrom(TensorStore &from, const Manifest &manifest,
                     const ModelInfo &model, const std::string &folder) {
  from.adaptTo(model);
  SaveRequest request = requestOf(folder, manifest, 10);
  request.model = model;
  saveAs(request, manifest, [&](const RangeInfo &range, int64_t rank) {
    std::string bytes(range.bytes, '\0');
    TensorReader(*from.find(range.name), manifest.shardView(range, rank),
                 range.dtype)
        .read(0, range.elements(), reinterpret_cast<std::byte *>(bytes.data()));
    return bytes;
  });
}

/// Import, a checkpoint of four ranks, one of two, export: the bytes that were
/// read, and those of one rank's checkpoint.
TEST_F(Layouts, CheckpointsOfAnyRanksExportTheSameBytes) {
  std::mt19937 random(3);
  for (int i = 0; i < 4; ++i) {
    PlantedSizes sizes = randomSizes(random);
    std::vector<PlantedPart> parts = plantedParts(sizes);
    TemporaryFolder folder;
    writePlantedModel(folder.path, sizes, DType::F32);
    auto import = openTensorStore(folder.path);
    ModelInfo neighbours = withHalves(*import, false),
              halves = withHalves(*import, true);
    saveFrom(*import, manifestOf(parts, {{"dp", 4}}), neighbours,
             folder.file("four"));
    saveFrom(*openTensorStore(folder.file("four")),
             manifestOf(parts, {{"dp", 2}}), i % 2 ? halves : neighbours,
             folder.file("two"));
    saveFrom(*import, manifestOf(parts, {{"dp", 1}}), halves,
             folder.file("one"));
    std::string whole = bytesOf(folder.file("model.safetensors"));
    for (const char *ranks : {"four", "two", "one"}) {
      std::string target = folder.file(std::string("from-") + ranks);
      exportWhole(*openTensorStore(folder.file(ranks)), target, DType::F32);
      EXPECT_TRUE(bytesOf(target + "/model.safetensors") == whole)
          << ranks << " of " << sizes.config();
    }
  }
}

/// Of a transpose in two boxes, whose rows lie in the other box each.
TEST_F(Layouts, PermutedRowsMayLieInAnyBox) {
  constexpr int64_t kRows = 300, kColumns = 4, kFirst = 150;
  std::vector<float> data, wanted;
  for (int64_t i = 0; i < kRows * kColumns; ++i)
    data.push_back(static_cast<float>(i));
  for (int64_t c = 0; c < kColumns; ++c)
    for (int64_t r = 0; r < kRows; ++r)
      wanted.push_back(static_cast<float>((kRows - 1 - r) * kColumns + c));
  StoredTensor tensor;
  tensor.shape = {kRows, kColumns};
  tensor.rowInFile = [](int64_t i) { return kRows - 1 - i; };
  for (int64_t row : {int64_t{0}, kFirst})
    tensor.chunks.push_back(
        {{{row, 0}, {kFirst, kColumns}},
         reinterpret_cast<const std::byte *>(data.data() + row * kColumns),
         "",
         {}});
  StoredTensor turned = transposed(tensor);
  std::mt19937 random(5);
  EXPECT_EQ(readBox(turned, wholeView(turned), random), wanted);
}

/// PyTorch's checkpoint has our tensors, and neighbours as torchtitan.
TEST_F(Layouts, DcpHasOurTensors) {
  PlantedSizes sizes;
  TemporaryFolder folder;
  writePlantedModel(folder.path, sizes, DType::BF16);
  writeDcp(*openTensorStore(folder.path), folder.file("dcp"));
  auto store = openTensorStore(folder.file("dcp"));
  std::vector<PlantedPart> parts = plantedParts(sizes);
  EXPECT_EQ(store->tensors().size(), parts.size());
  std::mt19937 random(4);
  for (const PlantedPart &part : parts) {
    const StoredTensor *tensor = store->find(part.ours);
    ASSERT_TRUE(tensor && tensor->shape == part.shape()) << part.ours;
    EXPECT_EQ(readBox(*tensor, wholeView(*tensor), random),
              plantedTensor(part, sizes.head, /*halves=*/false))
        << part.ours;
  }
}

//===----------------------------------------------------------------------===//
// What is refused
//===----------------------------------------------------------------------===//

namespace {

/// A directory with something wrong.
struct Damaged {
  PlantedSizes sizes;
  std::map<std::string, PlantedFile> files = plantedFiles(plantedParts(sizes));

  /// What opening and loading it says, without the line that names the
  /// directory; empty: nothing.
  std::string message(const json &changes = json::object()) const {
    TemporaryFolder folder;
    json config = sizes.config();
    config.update(changes);
    folder.write("config.json", config.dump());
    writePlanted(folder.file("model.safetensors"), files, DType::F32);
    std::string text = messageOf([&] {
      auto store = openTensorStore(folder.path);
      store->adaptTo(withHalves(*store, false));
    });
    std::string begin =
        "'" + folder.path + "' is no model that can be read:\n  ";
    return text.rfind(begin, 0) == 0 ? text.substr(begin.size()) : text;
  }
  void rename(const std::string &from, const std::string &to) {
    auto file = files.extract(from);
    file.key() = to;
    files.insert(std::move(file));
  }
};

} // namespace

TEST_F(Layouts, JoinedTensorsOfOtherRowsAreRefused) {
  Damaged wrong;
  PlantedFile &file = wrong.files["base.h.0.all.weight"];
  file.shape[1] -= 1;
  file.values.resize(static_cast<size_t>(elementCount(file.shape)));
  EXPECT_EQ(wrong.message(),
            "'base.h.0.all.weight' is 3 x 31 instead of 3 x 32, which "
            "config.json says: 16 for 'layers.0.all.wq.weight', 8 for "
            "'layers.0.all.wk.weight', 8 for 'layers.0.all.wv.weight'; is it "
            "the config.json of 'model.safetensors'?");
  Damaged turned;
  std::swap(turned.files["base.h.0.transposed.weight"].shape[0],
            turned.files["base.h.0.transposed.weight"].shape[1]);
  EXPECT_EQ(turned.message(),
            "'base.h.0.transposed.weight' is 5 x 3 instead of 3 x 5, which "
            "config.json says; is it the config.json of 'model.safetensors'?");
  Damaged flat;
  flat.files["base.h.0.all.bias"].shape = {4, 8};
  EXPECT_EQ(flat.message().substr(0, 51),
            "'base.h.0.all.bias' is 4 x 8 instead of 32, which c");
}

TEST_F(Layouts, PartsThatAFileKeepsApartAreRefused) {
  Damaged both;
  both.files["base.h.0.q.weight"] = both.files["base.h.0.rotary.weight"];
  EXPECT_EQ(both.message(),
            "'base.h.0.q.weight' has rows of 'base.h.0.mixed.weight', which "
            "is there too; remove it from 'model.safetensors', as transformers "
            "does not read it");
  both.files.erase("base.h.0.mixed.weight");
  EXPECT_EQ(both.message(),
            "'base.h.0.mixed.weight' is missing\n  'base.h.0.q.weight' in "
            "'model.safetensors' is a part of 'base.h.0.mixed.weight', into "
            "which files of planted join such parts; save the model with "
            "transformers");
}

TEST_F(Layouts, TiedModelsHaveOneTable) {
  Damaged tied;
  EXPECT_EQ(tied.message({{"tied", true}}),
            "'head.weight' is not equal to 'base.embed.weight', but "
            "tie_word_embeddings is true in config.json; set it to false, or "
            "remove the former from 'model.safetensors'");
  tied.files["head.weight"] = tied.files["base.embed.weight"];
  EXPECT_EQ(tied.message({{"tied", true}}), "");
}

TEST_F(Layouts, TensorsAreThereWhereAFieldSaysSo) {
  Damaged biased;
  EXPECT_EQ(biased.message(), "");
  EXPECT_EQ(biased.message({{"attention_bias", false}}),
            "'base.h.0.all.bias' is no tensor of the model that config.json "
            "describes");
  Damaged bare;
  bare.files.erase("base.h.0.all.bias");
  EXPECT_EQ(bare.message(), "'base.h.0.all.bias' is missing");
  EXPECT_EQ(bare.message({{"attention_bias", false}}), "");
}

TEST_F(Layouts, HeadsWithoutPairsAreRefused) {
  Damaged model;
  EXPECT_EQ(model.message({{"rotary_dim", 3}}),
            "a head of 3 elements has no rotary pairs");
  EXPECT_EQ(model.message({{"rotary_dim", 10}}),
            "a head of 8 elements has not the 10 rotary ones that the model's "
            "fields say");
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

TEST_F(Layouts, OlderFilesLeaveThePrefixOut) {
  Damaged older;
  std::map<std::string, PlantedFile> files;
  for (const auto &[name, file] : older.files)
    files[name.rfind("base.", 0) == 0 ? name.substr(5) : name] = file;
  older.files = files;
  EXPECT_EQ(older.message(), "");
  older.rename("norm.weight", "base.norm.weight"); // of some names alone
  EXPECT_NE(older.message().find("'base.embed.weight' is missing"),
            std::string::npos);
}

/// A mask is no weight, whatever its type; so old files of GPT-2 have them.
TEST_F(Layouts, MasksAreIgnored) {
  PlantedSizes sizes;
  TemporaryFolder folder;
  writePlantedModel(folder.path, sizes, DType::BF16);
  std::string file = bytesOf(folder.file("model.safetensors"));
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  json header = json::parse(file.substr(8, length));
  std::string data = file.substr(8 + length);
  auto writeWith = [&](const char *name, size_t extra) {
    json with = header;
    with[name] = {{"dtype", "BOOL"},
                  {"shape", {1, 4}},
                  {"data_offsets", {data.size(), data.size() + 4}}};
    std::string text = with.dump();
    uint64_t size = text.size();
    folder.write("model.safetensors",
                 std::string(reinterpret_cast<char *>(&size), sizeof size) +
                     text + data + std::string(extra, '\1'));
    return messageOf([&] { openTensorStore(folder.path); });
  };
  std::string begin =
      "damaged safetensors file '" + folder.file("model.safetensors") + "': ";
  EXPECT_EQ(writeWith("base.h.0.mask", 4), "");
  EXPECT_EQ(openTensorStore(folder.path)->tensors().size(),
            plantedParts(sizes).size());
  EXPECT_EQ(writeWith("base.h.0.other", 4),
            begin + "'base.h.0.other' has the unsupported type BOOL");
  EXPECT_EQ(writeWith("base.h.0.mask", 3),
            begin + "'base.h.0.mask' lies outside the file");
  EXPECT_EQ(writeWith("base.h.0.mask", 5),
            begin + "there are bytes after the last tensor");
}

/// The index of shards may have them too.
TEST_F(Layouts, MasksOfAnIndexAreIgnored) {
  TemporaryFolder folder;
  PlantedSizes sizes;
  writePlantedModel(folder.path, sizes, DType::F32);
  json map;
  for (const auto &[name, file] : plantedFiles(plantedParts(sizes)))
    map[name] = "a.safetensors";
  map["base.h.0.mask"] = "a.safetensors";
  folder.write("model.safetensors.index.json",
               json{{"weight_map", map}}.dump());
  std::filesystem::rename(folder.file("model.safetensors"),
                          folder.file("a.safetensors"));
  EXPECT_EQ(messageOf([&] { openTensorStore(folder.path); }), "");
}
