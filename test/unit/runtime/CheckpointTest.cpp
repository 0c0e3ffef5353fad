//===- CheckpointTest.cpp - Saved on one mesh, read on others -------------===//
#include "CheckpointFixture.h"
#include "fsdp/Support/AtomicFile.h"
#include "runtime/checkpoint/store/ConvertElements.h"
#include <cmath>
#include <cstdlib>
#include <set>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;
using namespace fsdp::test;

/// Parameters and states, uneven on purpose; `axes` says how dimensions 0 and
/// 1 are cut.
static std::vector<TestRange> ranges(const std::string &zero,
                                     const std::string &one) {
  return {{"a.weight", "parameter", "f32", {10, 6}, {zero, one}},
          {"a.weight.exp_avg", "state", "f32", {10, 6}, {zero, one}},
          {"a.weight.grad_sum", "state", "f32", {10, 6}, {zero, one}},
          {"b", "parameter", "bf16", {6}, {zero}},
          {"c", "parameter", "f32", {2, 4, 3}, {zero, one, ""}},
          {"d", "parameter", "i64", {}, {}},
          {"e", "parameter", "f32", {14, 2, 5}, {zero, "", ""}},
          {"table", "buffer", "f32", {4}, {""}},
          {"tokens", "input", "i32", {4}, {""}}};
}

namespace {
struct Case {
  const char *name;
  std::vector<std::pair<std::string, int64_t>> mesh;
  const char *zero, *one;
};
} // namespace

static const Case kCases[] = {
    {"one rank", {}, "", ""},
    {"replicate 2", {{"dp", 2}}, "", ""},
    {"fully 2", {{"dp", 2}}, "/dp", ""},
    {"fully 3", {{"dp", 3}}, "/dp", ""},
    {"fully 4", {{"dp", 4}}, "/dp", ""},
    {"hybrid 2 x 2", {{"r", 2}, {"dp", 2}}, "/dp", ""},
    {"hybrid, the other axis", {{"dp", 2}, {"r", 2}}, "/dp", ""},
    {"tensor parallel", {{"dp", 2}, {"tp", 2}}, "/dp", "tp"},
    {"both in one dimension", {{"dp", 2}, {"tp", 2}}, "tp/dp", ""},
    {"columns", {{"dp", 4}}, "", "/dp"},
    {"one compute rank", {{"dp", 2}, {"tp", 1}}, "/dp", "tp"},
    {"an axis of one rank between",
     {{"r", 2}, {"cp", 1}, {"dp", 2}},
     "cp/dp",
     ""},
};

static Manifest manifestOf(const Case &c) {
  return manifestOf(c.mesh, ranges(c.zero, c.one));
}

/// Reads the part of a rank in pieces of `piece` elements.
static std::string readPart(const StoredTensor &tensor,
                            const Manifest &manifest, const RangeInfo &range,
                            int64_t rank, int64_t piece) {
  TensorReader reader(tensor, manifest.shardView(range, rank), range.dtype);
  std::string bytes(range.bytes, '\x5a');
  for (int64_t first = 0; first < range.elements(); first += piece)
    reader.read(first, std::min(piece, range.elements() - first),
                reinterpret_cast<std::byte *>(bytes.data()) +
                    first * sizeOf(range.dtype));
  return bytes;
}

TEST(Checkpoint, EveryPlacementReadsWhatEveryOtherSaved) {
  for (const Case &saved : kCases) {
    TemporaryFolder folder;
    saveStep(folder.path, manifestOf(saved), 10);
    auto store = openTensorStore(folder.path);
    ASSERT_EQ(store->tensors().size(), 6u) << saved.name;
    for (const Case &wanted : kCases) {
      Manifest manifest = manifestOf(wanted);
      for (int64_t rank = 0; rank < manifest.ranks(); ++rank)
        for (const StoredTensor &tensor : store->tensors())
          for (int64_t piece : {1, 7, 1000}) {
            const RangeInfo &range = *manifest.findRange(tensor.name);
            EXPECT_EQ(readPart(tensor, manifest, range, rank, piece),
                      storedBytes(manifest, range, rank, 10))
                << saved.name << " on " << wanted.name << ", " << tensor.name;
          }
    }
  }
}

/// Checkpoints of before must open for ever, and the same contents have the
/// same bytes. Made anew by FSDP_NEW_CHECKPOINTS=FOLDER.
TEST(Checkpoint, BytesAreThoseOfBefore) {
  TemporaryFolder temporary;
  const char *keep = std::getenv("FSDP_NEW_CHECKPOINTS");
  std::string folder = keep ? keep : temporary.path;
  saveStep(folder, manifestOf(kCases[5]), 10);
  saveStep(folder, manifestOf(kCases[4]), 20);
  for (const char *step : {"step-10", "step-20"})
    for (const char *name :
         {"committed", "index.json", "rank-00000.safetensors",
          "rank-00001.safetensors", "rank-00002.safetensors",
          "rank-00003.safetensors"}) {
      std::string file = std::string("/") + step + "/" + name;
      EXPECT_EQ(readWholeFile(folder + file, "file"),
                readWholeFile(FSDP_TEST_INPUTS "/checkpoint" + file, "file"))
          << file;
    }
}

TEST(Checkpoint, KeepsWhereTheRunStands) {
  TemporaryFolder folder;
  Manifest manifest = manifestOf(kCases[5]);
  saveStep(folder.path, manifest, 10);
  auto store = openTensorStore(folder.path + "/step-10");
  RunState wrote = requestOf("", manifest, 10).state;
  const RunState &state = store->state().value();
  EXPECT_EQ(state.step, 10);
  EXPECT_EQ(state.tokens, 1000);
  EXPECT_EQ(state.seed, wrote.seed);
  EXPECT_EQ(state.dataset, "text");
  EXPECT_EQ(state.datasetPath, "da\xef\xbf\xbdta"); // JSON is UTF-8
  EXPECT_EQ(state.mesh, "r=2 x dp=2");
  EXPECT_EQ(state.ranks, 4);
  EXPECT_EQ(state.config, wrote.config);
  EXPECT_EQ(store->model().value().family, "llama3");
  EXPECT_EQ(store->model().value().fields.at("dim"), "256");
  EXPECT_EQ(store->find("b")->role, RangeRole::Parameter);
  EXPECT_EQ(store->find("b")->shape, (std::vector<int64_t>{6}));
  EXPECT_EQ(store->find("table"), nullptr);
}

TEST(Checkpoint, KeepsWhatBeganAnew) {
  TemporaryFolder folder;
  Manifest manifest =
      manifestOf({{"dp", 1}}, {{"w", "parameter", "f32", {2}, {""}}});
  auto save = [&](int64_t step, int64_t optimizerStart) {
    SaveRequest request = requestOf(folder.path, manifest, step);
    request.state.scheduleStart = 3;
    request.state.skippedSteps = 1;
    request.state.optimizerStart = optimizerStart;
    beginSave(request);
    writePart(request, chunksOf(manifest, 0, step));
    std::atomic<Parts> parts{Parts::Awaited};
    EXPECT_TRUE(commitSave(request, parts));
    return stepFolder(folder.path, step);
  };
  auto store = openTensorStore(save(10, 9));
  EXPECT_EQ(store->state()->scheduleStart, 3);
  EXPECT_EQ(store->state()->optimizerStart, 9);
  std::string path = save(11, 11);
  std::string message = messageOf([&] { openTensorStore(path); });
  EXPECT_NE(message.find("the optimizer cannot have started after"),
            std::string::npos)
      << message;
}

TEST(Checkpoint, KeepsTheChecksumOfTheText) {
  TemporaryFolder folder;
  Manifest manifest =
      manifestOf({{"dp", 1}}, {{"w", "parameter", "f32", {2}, {""}}});
  SaveRequest request = requestOf(folder.path, manifest, 1);
  saveAs(request, manifest);
  // None of one that was saved without it.
  EXPECT_FALSE(openTensorStore(folder.path)->state()->datasetChecksum);
  request.state.step = 2;
  request.state.datasetChecksum = checksumOf("a text");
  saveAs(request, manifest);
  EXPECT_EQ(openTensorStore(folder.path)->state()->datasetChecksum,
            checksumOf("a text"));
}

TEST(Checkpoint, EachBoxIsWrittenOnceAndAllWriteAlike) {
  // 1024 ranks, 8 of them with the same: by count and by bytes.
  std::vector<TestRange> ranges;
  for (int i = 0; i < 1000; ++i)
    ranges.push_back({"w" + std::to_string(i),
                      "parameter",
                      "f32",
                      {2048, 64 + i % 3},
                      {"/dp", ""}});
  Manifest manifest = test::manifestOf({{"r", 8}, {"dp", 128}}, ranges);
  std::set<std::pair<std::string, std::vector<int64_t>>> seen;
  uint64_t least = UINT64_MAX, most = 0;
  for (int64_t rank = 0; rank < 1024; ++rank) {
    uint64_t bytes = 0;
    for (const OwnedBox &box : ownedBoxes(manifest, rank)) {
      EXPECT_TRUE(seen.insert({box.chunk.tensor, box.chunk.offsets}).second);
      bytes += box.range->bytes;
    }
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
  EXPECT_EQ(seen.size(), 128u * 1000);
  EXPECT_LT(static_cast<double>(most), 1.01 * static_cast<double>(least));
}

TEST(Checkpoint, WhatIsEachRanksOwnCannotBeSaved) {
  Manifest manifest = manifestOf(kCases[4]);
  manifest.ranges[1].placement.reset();
  EXPECT_EQ(
      messageOf([&] { ownedBoxes(manifest, 0); }),
      "the state 'a.weight.exp_avg' of the artifact has no placement: its "
      "contents are each rank's own, which a checkpoint cannot store");
  manifest = manifestOf(kCases[4]);
  manifest.ranges[2].placement.reset(); // a sum, zero between two steps
  EXPECT_EQ(ownedBoxes(manifest, 0).size(), 6u);
}

TEST(Checkpoint, TypesBecomeEachOther) {
  TemporaryFolder folder;
  Manifest manifest = manifestOf(kCases[2]);
  saveStep(folder.path, manifest, 1);
  auto store = openTensorStore(folder.path);
  Manifest whole = manifestOf(kCases[0]);
  const RangeInfo &b = *whole.findRange("b");
  std::string narrow = readPart(*store->find("b"), whole, b, 0, 100);
  RangeInfo wide = b;
  wide.dtype = DType::F32;
  wide.bytes = 24;
  wide.shape = b.full;
  std::string bytes = readPart(*store->find("b"), whole, wide, 0, 100);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(bytes.substr(4 * i, 2), std::string(2, '\0'));
    EXPECT_EQ(bytes.substr(4 * i + 2, 2),
              storedBytes(whole, *whole.findRange("b"), 0, 1).substr(2 * i, 2));
  }
  // Every value of 16 bits there and back, and by way of F64.
  std::vector<uint16_t> halves(65536), back(halves.size());
  std::vector<double> wider(halves.size());
  for (size_t i = 0; i < halves.size(); ++i)
    halves[i] = static_cast<uint16_t>(i);
  for (DType type : {DType::BF16, DType::F16})
    for (DType through : {DType::F32, DType::F64}) {
      convertElements(type, reinterpret_cast<std::byte *>(halves.data()),
                      through, reinterpret_cast<std::byte *>(wider.data()),
                      65536);
      convertElements(through, reinterpret_cast<std::byte *>(wider.data()),
                      type, reinterpret_cast<std::byte *>(back.data()), 65536);
      for (size_t i = 0; i < halves.size(); ++i) {
        bool isNumber = type == DType::BF16 ? (i & 0x7f80) != 0x7f80
                                            : (i & 0x7c00) != 0x7c00;
        if (isNumber) {
          ASSERT_EQ(back[i], halves[i]) << dtypeName(type);
        }
      }
    }
  int64_t number = -7;
  double value = 0;
  convertElements(DType::I64, reinterpret_cast<std::byte *>(&number),
                  DType::F64, reinterpret_cast<std::byte *>(&value), 1);
  EXPECT_EQ(value, -7);
  EXPECT_EQ(messageOf([&] {
              TensorReader(*store->find("b"), whole.shardView(b, 0),
                           DType::I32);
            }),
            "the tensor 'b' has the type BF16, which does not become I32");
}

TEST(Checkpoint, NoValueBecomesInfinite) {
  float values[] = {1, -70000, 65504, HUGE_VALF};
  StoredTensor tensor;
  tensor.name = "w";
  tensor.shape = {4};
  tensor.chunks.push_back(
      {wholeBox({4}), reinterpret_cast<std::byte *>(values), "f", {}});
  auto messageAs = [&](DType type) {
    std::byte to[32];
    TensorReader reader(tensor, wholeView(tensor), type);
    return messageOf([&] { reader.read(0, 4, to); });
  };
  EXPECT_EQ(messageAs(DType::F16),
            "the tensor 'w' has a value of magnitude 70000, which would be "
            "infinite as F16; bfloat16 and float32 hold it");
  EXPECT_EQ(messageAs(DType::BF16), "");
  EXPECT_EQ(messageAs(DType::F64), "");
  values[1] = 65504;
  EXPECT_EQ(messageAs(DType::F16), "");
  values[1] = 3.4e38f;
  EXPECT_EQ(messageAs(DType::BF16),
            "the tensor 'w' has a value of magnitude 3.4e+38, which would be "
            "infinite as BF16");
}
