//===- DcpTest.cpp - Checkpoints of torch.distributed.checkpoint ----------===//
//
// test/golden/dcp was written by PyTorch on two ranks (torch_dcp.py); dcp.json
// has what is in it.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/dcp/Dcp.h"
#include "../Mutator.h"
#include "CheckpointFixture.h"
#include "fsdp/Support/AtomicFile.h"
#include "runtime/checkpoint/dcp/DcpMetadata.h"
#include "runtime/checkpoint/dcp/TorchSave.h"
#include "runtime/checkpoint/store/VerifyTensors.h"
#include <cstring>
#include <nlohmann/json.hpp>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::test;
using nlohmann::json;

namespace {

const char *const kGolden = FSDP_GOLDEN_DIR "/dcp";

json golden() {
  return json::parse(readWholeFile(FSDP_GOLDEN_DIR "/dcp.json", "the values"));
}

/// All of a tensor, in its own type.
std::string contentsOf(const StoredTensor &tensor) {
  int64_t count = rt::elementCount(tensor.shape);
  std::string bytes(static_cast<size_t>(count * rt::sizeOf(tensor.dtype)),
                    '\0');
  TensorReader(tensor, wholeView(tensor), tensor.dtype)
      .read(0, count, reinterpret_cast<std::byte *>(bytes.data()));
  return bytes;
}

std::vector<float> valuesOf(const StoredTensor &tensor) {
  std::vector<float> values(
      static_cast<size_t>(rt::elementCount(tensor.shape)));
  TensorReader(tensor, wholeView(tensor), rt::DType::F32)
      .read(0, static_cast<int64_t>(values.size()),
            reinterpret_cast<std::byte *>(values.data()));
  return values;
}

/// A copy of the golden checkpoint that a test may damage.
struct Copy {
  Copy() { std::filesystem::copy(kGolden, folder.path); }
  std::string refusal() {
    return messageOf([&] { openTensorStore(folder.path); });
  }
  TemporaryFolder folder;
};

/// A metadata of one tensor, 4 x 2, in two boxes; tests change it.
std::vector<DcpItem> sample() {
  DcpItem item;
  item.name = "w";
  item.path = {"w"};
  item.dtype = "float32";
  item.shape = {4, 2};
  item.boxes = {{{{0, 0}, {3, 2}}, "__0_0.distcp", 0, 64},
                {{{3, 0}, {1, 2}}, "__1_0.distcp", 0, 64}};
  return {item};
}

std::string refusalOf(const std::vector<DcpItem> &items) {
  std::string bytes = writeDcpMetadata(items);
  return messageOf([&] { readDcpMetadata(bytes, "m"); });
}

} // namespace

TEST(Dcp, HasWhatPyTorchWrote) {
  json expected = golden();
  auto store = openTensorStore(kGolden);
  ASSERT_EQ(store->tensors().size(), expected.size());
  for (const StoredTensor &tensor : store->tensors()) {
    SCOPED_TRACE(tensor.name);
    const json &entry = expected.at(tensor.name);
    EXPECT_EQ(rt::dtypeName(tensor.dtype), entry.at("dtype"));
    EXPECT_EQ(tensor.shape, entry.at("shape").get<std::vector<int64_t>>());
    EXPECT_EQ(valuesOf(tensor), entry.at("values").get<std::vector<float>>());
    bool isMoment = tensor.name.find(".exp_avg") != std::string::npos;
    EXPECT_EQ(tensor.role,
              isMoment ? rt::RangeRole::State : rt::RangeRole::Parameter);
  }
  // Uneven rows, and a rank without any.
  EXPECT_EQ(store->find("tok_embeddings.weight")->chunks.size(), 2u);
  EXPECT_EQ(store->find("norm.weight")->chunks.size(), 1u);
  ASSERT_TRUE(store->state());
  EXPECT_EQ(store->state()->step, 7);
}

TEST(Dcp, SaysWhatIsLeftOut) {
  auto store = openTensorStore(kGolden);
  std::vector<std::string> names;
  for (const LeftOut &entry : store->leftOut()) {
    names.push_back(entry.name);
    EXPECT_EQ(entry.what, "an object of Python") << entry.name;
  }
  for (const char *name :
       {"lr_scheduler.last_epoch", "dataloader.dp_rank_1.index",
        "optimizer.param_groups.tok_embeddings.weight.lr"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
}

TEST(Dcp, IsWrittenAndReadBack) {
  auto store = openTensorStore(kGolden);
  TemporaryFolder folder;
  std::string target = folder.file("new/step-7");
  writeDcp(*store, target);
  auto again = openTensorStore(target);
  ASSERT_EQ(again->tensors().size(), store->tensors().size());
  for (const StoredTensor &tensor : store->tensors()) {
    SCOPED_TRACE(tensor.name);
    const StoredTensor *other = again->find(tensor.name);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(other->role, tensor.role);
    EXPECT_EQ(other->chunks.size(), tensor.chunks.size());
    EXPECT_EQ(contentsOf(*other), contentsOf(tensor));
  }
  EXPECT_EQ(again->state()->step, 7);
  EXPECT_EQ(messageOf([&] { writeDcp(*store, target); }),
            "'" + target + "' exists already; give a new directory");
  EXPECT_FALSE(std::filesystem::exists(target + ".partial"));
}

TEST(Dcp, NamesOfNoNewDirectoryAreRefusedFirst) {
  auto store = openTensorStore(kGolden);
  TemporaryFolder folder;
  namespace fs = std::filesystem;
  fs::create_directory(folder.file("empty"));
  fs::create_directory_symlink(folder.file("empty"), folder.file("link"));
  fs::create_directory_symlink(folder.file("none"), folder.file("dangling"));
  fs::create_directory(folder.file("full"));
  folder.write("full/file", "x");
  auto refusal = [&](const std::string &path) {
    return messageOf([&] { writeDcp(*store, path); });
  };
  for (const char *path : {"", ".", "..", "a/..", "/"})
    EXPECT_EQ(refusal(path), "'" + std::string(path) +
                                 "' is no name of a new directory; give one");
  for (const char *name : {"link", "dangling", "link/"})
    EXPECT_EQ(refusal(folder.file(name)),
              "'" + folder.file(name) +
                  "' is a link; give a new directory, or the name that it "
                  "leads to");
  EXPECT_EQ(refusal(folder.file("absent/../full")),
            "'" + folder.file("absent/../full") +
                "' exists already; give a new directory");
  // Nothing was begun.
  auto entries = fs::directory_iterator(folder.path);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 4);
  EXPECT_EQ(refusal(folder.file("empty")), "");
}

/// Hugging Face rotates halves, torchtitan neighbours: read for a program that
/// rotates halves, what was written is what it was.
TEST(Dcp, HasTheRotaryLayoutOfTorchtitan) {
  const std::string from = FSDP_GOLDEN_DIR "/hf_weights/llama3_shards";
  auto store = openTensorStore(from), original = openTensorStore(from);
  rt::ModelInfo model = original->model().value();
  ASSERT_EQ(model.fields.at("rope_halves"), "true");
  TemporaryFolder folder;
  writeDcp(*store, folder.file("torch"));
  auto again = openTensorStore(folder.file("torch"));
  const char *const rotary = "layers.1.attention.wk.weight";
  EXPECT_NE(contentsOf(*again->find(rotary)),
            contentsOf(*original->find(rotary)));
  again->adaptTo(model);
  for (const StoredTensor &tensor : original->tensors())
    EXPECT_EQ(contentsOf(*again->find(tensor.name)), contentsOf(tensor))
        << tensor.name;
  model.fields["rope_halves"] = "false";
  original->adaptTo(model);
  again->adaptTo(model);
  for (const StoredTensor &tensor : original->tensors())
    EXPECT_EQ(contentsOf(*again->find(tensor.name)), contentsOf(tensor))
        << tensor.name;
}

/// What fails on the way leaves nothing.
TEST(Dcp, IsWholeOrNotThere) {
  Copy copy;
  auto store = openTensorStore(copy.folder.path);
  TemporaryFolder folder;
  std::filesystem::create_directories(folder.file("a/_0"));
  EXPECT_EQ(messageOf([&] { writeDcp(*store, folder.file("a")); }),
            "'" + folder.file("a") + "' exists already; give a new directory");
  std::filesystem::create_directory(folder.file("b.partial"));
  EXPECT_NE(messageOf([&] {
              writeDcp(*store, folder.file("b/"));
            }).find("b.partial' exists, from a command that was killed"),
            std::string::npos);
  std::filesystem::create_directory(folder.file("c"));
  writeDcp(*store, folder.file("c"));
  EXPECT_EQ(openTensorStore(folder.file("c"))->tensors().size(), 9u);
  EXPECT_FALSE(std::filesystem::exists(folder.file("c.partial")));
}

/// A checkpoint of a run by four ranks: what PyTorch will find is split as it
/// is.
TEST(Dcp, IsMadeOfACheckpointOfARun) {
  TemporaryFolder folder;
  rt::Manifest manifest = manifestOf(
      {{"dp", 2}, {"tp", 2}},
      {{"wq.weight", "parameter", "f32", {10, 6}, {"/dp", "tp"}},
       {"wq.weight.exp_avg", "state", "f32", {10, 6}, {"/dp", "tp"}},
       {"wq.weight.exp_avg_sq", "state", "f32", {10, 6}, {"/dp", "tp"}},
       {"norm.weight", "parameter", "bf16", {5}, {"/dp"}},
       {"scale", "parameter", "f32", {}, {}}});
  saveStep(folder.path, manifest, 10);
  auto store = openTensorStore(folder.path);
  writeDcp(*store, folder.file("torch"));
  auto again = openTensorStore(folder.file("torch"));
  ASSERT_EQ(again->tensors().size(), 5u);
  for (const StoredTensor &tensor : again->tensors()) {
    SCOPED_TRACE(tensor.name);
    EXPECT_EQ(contentsOf(tensor), contentsOf(*store->find(tensor.name)));
    EXPECT_EQ(tensor.chunks.size(), store->find(tensor.name)->chunks.size());
  }
  EXPECT_EQ(again->find("wq.weight")->chunks.size(), 4u);
  EXPECT_EQ(again->state()->step, 10);
  std::vector<std::string> others;
  for (const LeftOut &entry : again->leftOut())
    others.push_back(entry.name);
  for (const char *name :
       {"lr_scheduler.last_epoch", "optimizer.param_groups.wq.weight.amsgrad",
        "train_state.ntokens_seen"})
    EXPECT_NE(std::find(others.begin(), others.end(), name), others.end())
        << name;
}

/// Skipped steps are none of AdamW's, nor are those before its moments or the
/// schedule began anew.
TEST(Dcp, CountsWhatOptimizerAndScheduleHaveSeen) {
  TemporaryFolder folder;
  rt::Manifest manifest =
      manifestOf({{"dp", 2}}, {{"w", "parameter", "f32", {4}, {"/dp"}},
                               {"w.exp_avg", "state", "f32", {4}, {"/dp"}},
                               {"w.exp_avg_sq", "state", "f32", {4}, {"/dp"}},
                               {"still", "parameter", "f32", {3}, {""}}});
  SaveRequest request = requestOf(folder.path, manifest, 100);
  request.state.skippedSteps = 7;
  request.state.optimizerStart = 20;
  request.state.scheduleStart = 40;
  saveAs(request, manifest);
  const std::string target = folder.file("torch"), metadata = ".metadata";
  writeDcp(*openTensorStore(folder.path), target);
  std::map<std::string, DcpItem> items;
  for (DcpItem &item : readDcpMetadata(
           readWholeFile(target + "/" + metadata, "the names"), metadata))
    items[item.name] = std::move(item);
  auto archiveOf = [&](const std::string &name) {
    const DcpBox &box = items.at(name).boxes.at(0);
    return readWholeFile(target + "/" + box.file, "the archives")
        .substr(box.offset, box.length);
  };
  const std::string count = "optimizer.state.w.step";
  EXPECT_EQ(items.at(count).dtype, "float32");
  EXPECT_TRUE(items.at(count).shape.empty());
  std::string archive = archiveOf(count);
  float updates = 0;
  std::memcpy(&updates, readTorchTensor(archive, count).data, sizeof updates);
  EXPECT_EQ(updates, 73);
  EXPECT_EQ(items.count("optimizer.state.still.step"), 0u);
  auto integerOf = [&](const std::string &name) {
    return readTorchInteger(archiveOf(name), name);
  };
  EXPECT_EQ(integerOf("lr_scheduler.last_epoch"), 60);
  EXPECT_EQ(integerOf("train_state.step"), 100);
  EXPECT_EQ(integerOf("train_state.ntokens_seen"), 5000);
  // Read again, AdamW's next update is the 74th.
  const RunState state = openTensorStore(target)->state().value();
  EXPECT_EQ(state.step - state.skippedSteps - state.optimizerStart, 73);
}

/// Here one count is that of all parameters.
TEST(Dcp, CountsOfUpdatesMustAgree) {
  Copy copy;
  const std::string path = copy.folder.file(".metadata");
  std::vector<DcpItem> items =
      readDcpMetadata(readWholeFile(path, "the names"), path);
  std::vector<DcpItem *> counts;
  const DcpItem *scalar = nullptr;
  for (DcpItem &item : items) {
    item.path = {item.name};
    if (item.name.find("optimizer.state.") == 0 &&
        item.name.find(".step") != std::string::npos)
      counts.push_back(&item);
    if (item.name == "norm.weight")
      scalar = &item;
  }
  ASSERT_GE(counts.size(), 2u);
  ASSERT_NE(scalar, nullptr);
  auto store = openTensorStore(copy.folder.path);
  EXPECT_EQ(store->optimizerProblem(), "");
  EXPECT_EQ(store->state()->optimizerStart, 0); // 7 updates in 7 steps
  auto problem = [&] {
    writeFileAtomically(path, writeDcpMetadata(items));
    return openTensorStore(copy.folder.path)->optimizerProblem();
  };
  // The count lies where something of another size does, in a file of its own.
  DcpBox box = counts[1]->boxes[0];
  std::filesystem::copy(copy.folder.file(scalar->boxes[0].file),
                        copy.folder.file("copy.distcp"));
  counts[1]->boxes[0].file = "copy.distcp";
  counts[1]->boxes[0].offset = scalar->boxes[0].offset;
  counts[1]->boxes[0].length = scalar->boxes[0].length;
  EXPECT_EQ(problem(),
            "'" + counts[1]->name + "' cannot be read: no whole number");
  EXPECT_EQ(openTensorStore(copy.folder.path)->tensors().size(), 9u);
  counts[1]->boxes[0] = box;
  // 7 as a float is 0x40e00000, 3 is 0x40400000.
  std::string bytes = readWholeFile(copy.folder.file(box.file), "the archives");
  const char seven[] = "\0\0\xe0\x40", three[] = "\0\0\x40\x40";
  size_t at = bytes.find(std::string_view(seven, 4), box.offset);
  ASSERT_LT(at, box.offset + box.length);
  bytes.replace(at, 4, three, 4);
  copy.folder.write(box.file, bytes);
  EXPECT_EQ(problem(), "'" + counts[0]->name + "' is 7 and '" +
                           counts[1]->name +
                           "' 3, and here the updates of all parameters are "
                           "as many");
  auto damaged = openTensorStore(copy.folder.path);
  EXPECT_NE(messageOf([&] {
              writeDcp(*damaged, copy.folder.file("new"));
            }).find("the states of the optimizer in '"),
            std::string::npos);
}

TEST(Dcp, ArchivesAreVerified) {
  Copy copy;
  auto verify = [&] {
    return verifyTensors(*openTensorStore(copy.folder.path), 2,
                         [](uint64_t) {});
  };
  Verification whole = verify();
  EXPECT_EQ(whole.checked, 476u);
  EXPECT_EQ(whole.unchecked, 0u);
  EXPECT_TRUE(whole.damage.empty());
  // The last byte of an archive's tensor.
  std::string path = copy.folder.file("__0_0.distcp");
  std::string bytes = readWholeFile(path, "the file");
  auto store = openTensorStore(kGolden);
  const Chunk &chunk = store->find("tok_embeddings.weight")->chunks[0];
  std::string content(reinterpret_cast<const char *>(chunk.data), 48);
  bytes[bytes.find(content) + 47] ^= 1;
  copy.folder.write("__0_0.distcp", bytes);
  Verification damaged = verify();
  ASSERT_EQ(damaged.damage.size(), 1u);
  EXPECT_NE(damaged.damage[0].find("the bytes 0 to 47 of "
                                   "'tok_embeddings.weight' in '"),
            std::string::npos)
      << damaged.damage[0];
}

TEST(Dcp, ModelsThatAreAnEntryLoseItsName) {
  auto store = openTensorStore(kGolden);
  TemporaryFolder folder;
  writeDcp(*store, folder.file("a"));
  std::string path = folder.file("a/.metadata");
  std::vector<DcpItem> items =
      readDcpMetadata(readWholeFile(path, "the metadata"), path);
  for (DcpItem &item : items) {
    if (store->find(item.name))
      item.name = "model." + item.name;
    item.path = {item.name};
  }
  writeFileAtomically(path, writeDcpMetadata(items));
  auto again = openTensorStore(folder.file("a"));
  EXPECT_EQ(again->tensors().size(), store->tensors().size());
  EXPECT_NE(again->find("norm.weight"), nullptr);
}

/// Weights are of use without the step.
TEST(Dcp, StepsThatCannotBeReadAreLeftOut) {
  Copy copy;
  std::string bytes =
      readWholeFile(copy.folder.file("__1_0.distcp"), "the file");
  // The pickle of 7 names something instead.
  size_t at = bytes.find("\x80\x02K\x07.");
  ASSERT_NE(at, std::string::npos);
  while (at != std::string::npos) {
    bytes.replace(at, 5,
                  "\x80\x02"
                  "ca\n");
    at = bytes.find("\x80\x02K\x07.");
  }
  copy.folder.write("__1_0.distcp", bytes);
  auto store = openTensorStore(copy.folder.path);
  EXPECT_EQ(store->tensors().size(), 9u);
  EXPECT_FALSE(store->state());
  bool isSaid = false;
  for (const LeftOut &entry : store->leftOut())
    isSaid |= entry.name == "train_state.step" &&
              entry.what.find("a name without end") != std::string::npos;
  EXPECT_TRUE(isSaid);
}

TEST(Dcp, RefusesMetadataThatContradictsItself) {
  using Items = std::vector<DcpItem>;
  const struct {
    const char *message;
    std::function<void(Items &)> change;
  } cases[] = {
      {"a box of 'w' lies outside of the tensor",
       [](Items &i) { i[0].boxes[1].offsets[0] = 4; }},
      {"a box of 'w' lies outside of the tensor",
       [](Items &i) { i[0].boxes[1].sizes[0] = int64_t{1} << 62; }},
      {"a box of 'w' lies outside of the tensor",
       [](Items &i) { i[0].boxes[1].sizes.pop_back(); }},
      {"a box of 'w' is no size",
       [](Items &i) { i[0].boxes[1].sizes[0] = -1; }},
      {"'w' has an impossible shape",
       [](Items &i) { i[0].shape[0] = int64_t{1} << 60; }},
      {"the shape of 'w' is no size", [](Items &i) { i[0].shape[0] = -1; }},
      {"the file of 'w' is no name in this directory",
       [](Items &i) { i[0].boxes[0].file = "../secret"; }},
      {"the file of 'w' is no name in this directory",
       [](Items &i) { i[0].boxes[0].file = "/etc/passwd"; }},
      {"the file of 'w' is no name in this directory",
       [](Items &i) { i[0].boxes[0].file = ".."; }},
      {"the file of 'w' is no name in this directory",
       [](Items &i) { i[0].boxes[0].file = ""; }},
      {"the offset of 'w' is no size",
       [](Items &i) { i[0].boxes[0].offset = uint64_t{1} << 63; }},
      {"a box of 'w' and one of 'w' lie in the same bytes of '__1_0.distcp'",
       [](Items &i) { i[0].boxes[0].file = "__1_0.distcp"; }},
      {"a box of 'w' and one of 'w' lie in the same bytes of '__1_0.distcp'",
       [](Items &i) {
         i[0].boxes[0].file = "__1_0.distcp";
         i[0].boxes[0].offset = 63;
       }},
      {"a box of 'w' is stored twice",
       [](Items &i) { i[0].boxes.push_back(i[0].boxes[0]); }},
      {"the shape of 'w' has 65 dimensions; a tensor of PyTorch has at most 64",
       [](Items &i) { i[0].shape.assign(65, 1); }},
      {"a name is no line of text", [](Items &i) { i[0].name = "a\nb"; }},
      {"a name is no line of text", [](Items &i) { i[0].name = ""; }},
      {"'torch.Tensor', which is not among",
       [](Items &i) { i[0].dtype = "Tensor"; }},
  };
  for (const auto &c : cases) {
    std::vector<DcpItem> items = sample();
    EXPECT_EQ(refusalOf(items), "");
    c.change(items);
    std::string message = refusalOf(items);
    EXPECT_NE(message.find(c.message), std::string::npos)
        << c.message << ": " << message;
  }
}

TEST(Dcp, RefusesBoxesThatDoNotMakeTheTensor) {
  const struct {
    const char *message;
    std::function<void(DcpItem &)> change;
  } cases[] = {
      {"'tok_embeddings.weight' has 20 elements, its boxes 12",
       [](DcpItem &i) { i.boxes.pop_back(); }},
      {"'tok_embeddings.weight' has boxes that overlap",
       [](DcpItem &i) { i.boxes[1].offsets[0] = 2; }},
      {"'tok_embeddings.weight' has another type or shape there",
       [](DcpItem &i) { i.dtype = "int32"; }},
      {"'tok_embeddings.weight' has another type or shape there",
       [](DcpItem &i) { i.boxes[0].sizes = {3, 3}; }},
  };
  for (const auto &c : cases) {
    Copy copy;
    std::string path = copy.folder.file(".metadata");
    std::vector<DcpItem> items =
        readDcpMetadata(readWholeFile(path, "the metadata"), path);
    for (DcpItem &item : items)
      if (item.name == "tok_embeddings.weight")
        c.change(item);
    writeFileAtomically(path, writeDcpMetadata(items));
    EXPECT_NE(copy.refusal().find(c.message), std::string::npos)
        << copy.refusal();
  }
}

TEST(Dcp, RefusesFilesThatDoNotFit) {
  {
    Copy copy;
    std::filesystem::resize_file(copy.folder.file("__1_0.distcp"), 20000);
    EXPECT_NE(copy.refusal().find("and the file has 20000; it is truncated"),
              std::string::npos);
  }
  {
    Copy copy;
    std::filesystem::remove(copy.folder.file("__1_0.distcp"));
    EXPECT_NE(copy.refusal().find("__1_0.distcp': No such file"),
              std::string::npos);
  }
  {
    Copy copy;
    std::filesystem::remove(copy.folder.file(".metadata"));
    EXPECT_NE(
        copy.refusal().find("no '.metadata': its saving was not finished"),
        std::string::npos);
  }
  {
    Copy copy;
    writeFileAtomically(copy.folder.file(".metadata"), "\x80\x02"
                                                       "cos\nsystem\n.");
    EXPECT_NE(copy.refusal().find("nothing of it was run"), std::string::npos);
  }
  {
    // The files of two ranks, exchanged.
    Copy copy;
    std::filesystem::rename(copy.folder.file("__1_0.distcp"),
                            copy.folder.file("x"));
    std::filesystem::copy(copy.folder.file("__0_0.distcp"),
                          copy.folder.file("__1_0.distcp"));
    EXPECT_NE(copy.refusal().find(
                  "__1_0.distcp: 'tok_embeddings.weight': damaged archive"),
              std::string::npos);
  }
}

/// An error that names a file of the folder, or a store that can be read.
TEST(Dcp, DamageNeverCrashes) {
  for (const char *name : {".metadata", "__0_0.distcp"}) {
    Copy copy;
    std::string path = copy.folder.file(name);
    std::string good = readWholeFile(path, "the file");
    Mutator mutate(7, {"\x94", "h\x01", "K\x7f", "\x86", "\x85", "R", "b",
                       "\x8a\x08", "PK\1\2", "cos\nsystem\n"});
    int accepted = 0;
    for (int i = 0; i < 1000; ++i) {
      // Writing into a file that is there would wait for the disk.
      std::filesystem::remove(path);
      copy.folder.write(name, mutate(good));
      try {
        auto store = openTensorStore(copy.folder.path);
        for (const StoredTensor &tensor : store->tensors())
          contentsOf(tensor);
        ++accepted;
      } catch (const Error &error) {
        EXPECT_NE(std::string(error.what()).find(copy.folder.path),
                  std::string::npos)
            << error.what();
      }
    }
    EXPECT_LT(accepted, 900) << name;
  }
}
