//===- CheckpointDamageTest.cpp - Damage is found and named ---------------===//
#include "CheckpointFixture.h"
#include "fsdp/Support/AtomicFile.h"
#include "runtime/checkpoint/native/Index.h"
#include "runtime/checkpoint/store/VerifyTensors.h"
#include <random>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;
using namespace fsdp::test;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// A checkpoint of two ranks that a test may damage.
class Damaged : public testing::Test {
protected:
  Damaged() { saveStep(folder.path, manifest, 10); }

  static Manifest manifestOfTwo() {
    return manifestOf({{"dp", 2}},
                      {{"w", "parameter", "f32", {5, 3}, {"/dp", ""}},
                       {"v", "parameter", "bf16", {4}, {"/dp"}},
                       {"n", "parameter", "i64", {}, {}}});
  }

  std::string path(const std::string &name) const {
    return folder.path + "/step-10" + (name.empty() ? "" : "/") + name;
  }
  /// Writes an index with a marker of its own.
  void writeIndex(const std::string &text) const {
    writeFileAtomically(path("index.json"), text);
    writeFileAtomically(path("committed"), markerText(text));
  }
  json index() const {
    return json::parse(readWholeFile(path("index.json"), "index"));
  }
  std::string openError() const {
    std::string message =
        messageOf([&] { openTensorStore(folder.path + "/step-10"); });
    // Folders have other names every time.
    for (size_t at;
         (at = message.find(folder.path + "/")) != std::string::npos;)
      message.erase(at, folder.path.size() + 1);
    return message;
  }
  /// What is said of the index after a change.
  template <typename Change> std::string with(Change change) const {
    json damaged = index();
    change(damaged);
    std::string before = readWholeFile(path("index.json"), "index");
    writeIndex(damaged.dump());
    std::string message = openError();
    writeIndex(before);
    const std::string prefix = "damaged checkpoint 'step-10/index.json': ";
    return message.substr(0, prefix.size()) == prefix
               ? message.substr(prefix.size())
               : message;
  }

  Manifest manifest = manifestOfTwo();
  TemporaryFolder folder;
};

} // namespace

TEST_F(Damaged, NothingIsWrongAtFirst) { EXPECT_EQ(openError(), ""); }

TEST_F(Damaged, IndexesAreRefused) {
  auto chunk = [](json &index, int i = 0) -> json & {
    return index["tensors"]["w"]["chunks"][static_cast<size_t>(i)];
  };
  EXPECT_EQ(with([](json &j) { j.erase("format"); }),
            "the field 'format' is missing");
  EXPECT_EQ(with([](json &j) { j["format"] = "other"; }),
            "this is no index of a checkpoint of fsdp");
  EXPECT_EQ(with([](json &j) { j["version"] = 2; }),
            "its version is 2, this program reads 1");
  EXPECT_EQ(with([](json &j) { j["state"]["step"] = -1; }),
            "state: step: expected an integer from 0 to 2^62");
  EXPECT_EQ(with([](json &j) { j["state"]["seed"] = 1.5; }),
            "state: seed: expected an integer from 0 to 2^64 - 1");
  EXPECT_EQ(with([](json &j) { j["state"]["skipped_steps"] = 11; }),
            "state: skipped_steps: more steps were skipped than there were");
  EXPECT_EQ(with([](json &j) { j["state"]["schedule_start"] = 11; }),
            "state: schedule_start: the schedule cannot have started after the "
            "last step");
  EXPECT_EQ(with([](json &j) { j["state"].erase("mesh"); }),
            "state: the field 'mesh' is missing");
  EXPECT_EQ(with([](json &j) { j["state"]["config"] = 3; }),
            "state: config: expected an object");
  EXPECT_EQ(with([](json &j) { j["model"] = "llama3"; }),
            "model: expected an object");
  EXPECT_EQ(with([](json &j) { j["tensors"] = json::array(); }),
            "tensors: expected an object");
  EXPECT_EQ(with([](json &j) { j["tensors"][""] = j["tensors"]["w"]; }),
            "tensors: : this is no name of a tensor");
  EXPECT_EQ(with([](json &j) { j["tensors"]["w"]["dtype"] = "F31"; }),
            "tensors: w: dtype: unsupported type 'F31'");
  EXPECT_EQ(with([](json &j) { j["tensors"]["w"]["role"] = "weight"; }),
            "tensors: w: role: unknown role 'weight'");
  EXPECT_EQ(with([](json &j) { j["tensors"]["w"]["shape"] = {5, "3"}; }),
            "tensors: w: shape[1]: expected an integer from 0 to 2^62");
  EXPECT_EQ(
      with([](json &j) { j["tensors"]["w"]["shape"] = {1 << 30, 1 << 30}; }),
      "tensors: w: shape: the shape has more than 2^56 elements");
  EXPECT_EQ(with([](json &j) { j["tensors"]["w"]["chunks"] = json::array(); }),
            "'w' has 15 elements, its boxes 0");
  EXPECT_EQ(with([&](json &j) { chunk(j)["file"] = "../other.safetensors"; }),
            "tensors: w: chunks[0]: the file '../other.safetensors' is not "
            "among the files");
  EXPECT_EQ(with([&](json &j) {
              j["files"]["../other.safetensors"] =
                  j["files"]["rank-00000.safetensors"];
            }),
            "files: ../other.safetensors: no checkpoint has a file of this "
            "name");
  EXPECT_EQ(with([&](json &j) { chunk(j)["offsets"] = {0}; }),
            "tensors: w: chunks[0]: the box [3, 3] at [0] is not inside the "
            "tensor's [5, 3]");
  EXPECT_EQ(with([&](json &j) { chunk(j)["offsets"] = {3, 0}; }),
            "tensors: w: chunks[0]: the box [3, 3] at [3, 0] is not inside the "
            "tensor's [5, 3]");
  EXPECT_EQ(with([&](json &j) { chunk(j)["offsets"] = {-1, 0}; }),
            "tensors: w: chunks[0]: offsets[0]: expected an integer from 0 to "
            "2^62");
  EXPECT_EQ(with([&](json &j) { chunk(j, 1)["offsets"] = {2, 0}; }),
            "'w' has boxes that overlap, in 'rank-00000.safetensors' at [0, 0] "
            "and in 'rank-00001.safetensors' at [2, 0]");
  EXPECT_EQ(with([&](json &j) { chunk(j, 1)["shape"] = {1, 3}; }),
            "'w' has 15 elements, its boxes 12");
  EXPECT_EQ(with([&](json &j) {
              json &chunks = j["tensors"]["w"]["chunks"];
              chunks.push_back(chunks[0]);
            }),
            "'w' has 15 elements, its boxes 24");
  EXPECT_EQ(with([&](json &j) {
              json &chunks = j["tensors"]["w"]["chunks"];
              chunks.push_back(chunks[0]);
              chunks[2]["shape"] = {0, 3};
              chunks[2]["xxh3"] = json::array();
            }),
            "'w' has a box without elements in 'rank-00000.safetensors'");
  EXPECT_EQ(with([&](json &j) { chunk(j)["xxh3"] = json::array(); }),
            "tensors: w: chunks[0]: a box of 36 bytes has 1 checksums, not 0");
  for (const char *text :
       {"", "12345678", "0123456789ABCDEF", "0x23456789abcdef"})
    EXPECT_EQ(with([&](json &j) { chunk(j)["xxh3"][0] = text; }),
              "tensors: w: chunks[0]: xxh3[0]: expected a checksum, 16 "
              "hexadecimal digits");
  EXPECT_EQ(
      with([](json &j) { j["files"]["rank-00000.safetensors"]["bytes"] = -5; }),
      "files: rank-00000.safetensors: bytes: expected an integer from 0 "
      "to 2^62");
}

TEST_F(Damaged, WhatIndexAndFilesSayMustAgree) {
  auto w = [](json &index) -> json & {
    return index["tensors"]["w"]["chunks"][0];
  };
  EXPECT_EQ(
      with([](json &j) { j["files"]["rank-00001.safetensors"]["bytes"] = 7; }),
      "damaged checkpoint: 'step-10/rank-00001.safetensors' has " +
          std::to_string(fs::file_size(path("rank-00001.safetensors"))) +
          " bytes, the index says 7");
  EXPECT_EQ(with([](json &j) {
              j["files"]["rank-00001.safetensors"]["header_xxh3"] =
                  "0000000000000000";
            }),
            "damaged checkpoint: the header of "
            "'step-10/rank-00001.safetensors' is not the one that was written");
  EXPECT_EQ(with([&](json &j) { w(j)["name"] = "u"; }),
            "damaged checkpoint: 'step-10/rank-00000.safetensors' has no "
            "tensor 'u', the index says it has");
  EXPECT_EQ(with([&](json &j) { w(j)["name"] = "v"; }),
            "damaged checkpoint: 'v' in 'step-10/rank-00000.safetensors' has "
            "another type or shape than the index says");
  EXPECT_EQ(with([](json &j) { j["tensors"].erase("v"); }),
            "damaged checkpoint: 'step-10/rank-00000.safetensors' has tensors "
            "of which the index says nothing");
  // As many as there are, one of them twice.
  EXPECT_EQ(with([](json &j) {
              json &tensors = j["tensors"];
              tensors["x"] = tensors["w"];
              for (json &chunk : tensors["x"]["chunks"])
                chunk["name"] = "w";
              tensors.erase("v");
            }),
            "damaged checkpoint: the index uses 'w' in "
            "'step-10/rank-00000.safetensors' twice");
  EXPECT_EQ(with([](json &j) { j["tensors"]["v"]["dtype"] = "I8"; }),
            "damaged checkpoint: 'v' in 'step-10/rank-00000.safetensors' has "
            "another type or shape than the index says");
}

TEST_F(Damaged, MarkersAreRefused) {
  std::string good = readWholeFile(path("committed"), "marker");
  EXPECT_EQ(good.substr(0, 5), "xxh3 ");
  const std::string said = "damaged checkpoint 'step-10': 'index.json' is not "
                           "what 'committed' is the checksum of";
  std::vector<std::string> markers = {"",
                                      "x",
                                      good + "\n",
                                      good + good,
                                      good.substr(1),
                                      std::string(4096, '\0')};
  for (size_t length : {1u, 5u, 20u})
    markers.push_back(good.substr(0, length));
  for (const std::string &text : markers) {
    writeFileAtomically(path("committed"), text);
    EXPECT_EQ(openError(), said) << text;
  }
  fs::remove(path("committed"));
  EXPECT_EQ(
      openError(),
      "'step-10' has no weights in a format that can be read (a step of a run "
      "(with 'committed'), a folder of steps, a directory of Hugging "
      "Face (with 'config.json'), a checkpoint of "
      "torch.distributed.checkpoint (with '.metadata')): it has no "
      "marker 'committed': its saving was not finished");
}

TEST_F(Damaged, MissingAndForeignFilesAreNamed) {
  fs::path file = path("rank-00001.safetensors");
  auto size = static_cast<size_t>(fs::file_size(file));
  for (size_t left : {size_t{0}, size_t{8}, size / 2, size - 1}) {
    fs::resize_file(file, left);
    EXPECT_EQ(openError(), "damaged checkpoint: "
                           "'step-10/rank-00001.safetensors' has " +
                               std::to_string(left) +
                               " bytes, the index says " +
                               std::to_string(size));
  }
  fs::resize_file(file, size); // zeros at the end: data alone is damaged
  EXPECT_NE(openError(), "");
  fs::remove(file);
  EXPECT_EQ(openError(), "cannot read the tensors in "
                         "'step-10/rank-00001.safetensors': No such file or "
                         "directory");
  fs::create_directory(file);
  EXPECT_EQ(openError(), "cannot read the tensors in "
                         "'step-10/rank-00001.safetensors': Is a directory");
  fs::remove(path("index.json"));
  EXPECT_EQ(openError(),
            "cannot read the index 'step-10/index.json': No such file or "
            "directory");
}

TEST_F(Damaged, AFlipAnywhereIsFound) {
  std::mt19937 random(1);
  std::vector<std::string> names;
  for (const auto &entry : fs::directory_iterator(path("")))
    names.push_back(entry.path().filename().string());
  ASSERT_EQ(names.size(), 4u);
  int atOpening = 0, atVerifying = 0;
  for (int i = 0; i < 400; ++i) {
    const std::string &name = names[random() % names.size()];
    std::string good = readWholeFile(path(name), "file"), bad = good;
    bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
    writeFileAtomically(path(name), bad);
    std::string message = openError();
    atOpening += !message.empty();
    if (message.empty()) {
      auto store = openTensorStore(folder.path);
      Verification found = verifyTensors(*store, 2, [](uint64_t) {});
      ASSERT_EQ(found.damage.size(), 1u) << name;
      message = found.damage[0];
      ++atVerifying;
    }
    bool isNamed = message.find(name) != std::string::npos;
    EXPECT_TRUE(isNamed) << message;
    writeFileAtomically(path(name), good);
  }
  EXPECT_GT(atOpening, 100);
  EXPECT_GT(atVerifying, 10);
}

TEST_F(Damaged, AReaderNamesTensorAndFile) {
  std::string file = path("rank-00001.safetensors");
  std::string bytes = readWholeFile(file, "file");
  std::string part = storedBytes(manifest, *manifest.findRange("w"), 1, 10);
  size_t at = bytes.find(part.substr(0, 24));
  ASSERT_NE(at, std::string::npos);
  bytes[at + 5] ^= 1;
  writeFileAtomically(file, bytes);
  auto store = openTensorStore(folder.path);
  const StoredTensor &w = *store->find("w");
  std::vector<std::byte> to(60);
  // Rank 0 reads its own bytes alone.
  TensorReader first(w, manifest.shardView(*manifest.findRange("w"), 0),
                     DType::F32);
  first.read(0, 9, to.data());
  TensorReader whole(w, wholeView(w), DType::F32);
  EXPECT_EQ(messageOf([&] { whole.read(0, 15, to.data()); }),
            "damaged checkpoint: the bytes of 'w' in '" + file +
                "' are not those that were written");
}

TEST_F(Damaged, WhatIsNoCheckpointIsSaid) {
  auto error = [](const std::string &path) {
    std::string message = messageOf([&] { openTensorStore(path); });
    return message.substr(message.rfind("): ") + 3);
  };
  EXPECT_EQ(error(folder.file("none")), "there is nothing of this name");
  EXPECT_EQ(error(folder.write("file", "x")), "it is no directory");
  TemporaryFolder other;
  EXPECT_EQ(error(other.path),
            "a checkpoint has 'index.json' and 'committed', a folder of them "
            "has directories 'step-N'");
  fs::create_directory(other.file("step-3.partial"));
  EXPECT_EQ(error(other.path), "none of its steps has a marker 'committed': "
                               "their saving was not finished");
  TemporaryFolder outputs;
  saveStep(outputs.file("checkpoint"), manifest, 1);
  EXPECT_EQ(error(outputs.path),
            "did you mean '" + outputs.path + "/checkpoint'?");
}

TEST_F(Damaged, OnlyWhatCanBeNothingElseIsRemoved) {
  saveStep(folder.path, manifest, 20);
  saveStep(folder.path, manifest, 30);
  for (const char *name :
       {"step-40.partial", "step-50.partial-removed", "step-60.partial",
        "step-07.partial", "step-70", "mine.partial", "step-80.partial-other"})
    fs::create_directory(folder.file(name));
  folder.write("step-40.partial/rank-00000.safetensors.partial-17", "x");
  folder.write("step-50.partial-removed/committed", "x");
  folder.write("step-60.partial/notes.txt", "mine");
  folder.write("step-10/notes.txt", "mine");
  cleanCheckpoints(folder.path);
  EXPECT_FALSE(fs::exists(folder.file("step-40.partial")));
  EXPECT_FALSE(fs::exists(folder.file("step-50.partial-removed")));
  for (const char *name : {"step-60.partial/notes.txt", "step-07.partial",
                           "step-70", "mine.partial", "step-80.partial-other"})
    EXPECT_TRUE(fs::exists(folder.file(name))) << name;
  EXPECT_EQ(committedSteps(folder.path), (std::vector<int64_t>{10, 20, 30}));
  EXPECT_EQ(pruneCheckpoints(folder.path, 1).foreign,
            (std::vector<int64_t>{10}));
  EXPECT_EQ(committedSteps(folder.path), (std::vector<int64_t>{10, 30}));
  EXPECT_EQ(pruneCheckpoints(folder.path, 0).foreign, (std::vector<int64_t>{}));
}

TEST_F(Damaged, SavesThatCannotBe) {
  SaveRequest request = requestOf(folder.path, manifest, 20);
  beginSave(request);
  std::vector<SavedChunk> chunks = chunksOf(manifest, 0, 20);
  chunks[0].write = [](const auto &write) { write("short"); };
  EXPECT_EQ(messageOf([&] { writePart(request, std::move(chunks)); }),
            "the box [3, 3] of 'w' has 36 bytes, but 5 were to be saved");
  // Both ranks say that they have written the same box.
  for (request.rank = 0; request.rank < 2; ++request.rank)
    writePart(request, chunksOf(manifest, 0, 20));
  std::atomic<Parts> parts{Parts::Awaited};
  request.rank = 0;
  std::string partial = folder.path + "/step-20.partial";
  EXPECT_EQ(messageOf([&] { commitSave(request, parts); }),
            "'" + partial + "': 'n' has 1 elements, its boxes 2");
  abandonSave(request);
  EXPECT_FALSE(fs::exists(partial));
  EXPECT_EQ(messageOf([&] { commitSave(request, parts); }),
            "the folder '" + partial +
                "' has vanished while a checkpoint was written into it");
  // All have said that their part is written, but one is gone.
  beginSave(request);
  writePart(request, chunksOf(manifest, 0, 20));
  parts = Parts::Written;
  request.patienceSeconds = 0.1;
  EXPECT_EQ(messageOf([&] { commitSave(request, parts); }),
            "'" + partial +
                "/rank-00001.json' is gone, or of another run: rank 1 has "
                "written it, and somebody has changed the folder since");
  beginSave(request);
  parts = Parts::Cancelled;
  EXPECT_FALSE(commitSave(request, parts));
  EXPECT_EQ(committedSteps(folder.path), (std::vector<int64_t>{10}));
}
