//===- FuzzTest.cpp - Damaged input never crashes the runtime -------------===//
//
// Some thousand damaged copies of every text that the runtime reads. Each is
// either refused with an fsdp::Error or is harmless: what was accepted is also
// used. Sanitizer builds see more than the assertions here.
//
//===----------------------------------------------------------------------===//
#include "../Mutator.h"
#include "PlantedFamily.h"
#include "TemporaryFolder.h"
#include "fsdp/Artifact/Manifest.h"
#include "fsdp/Config/RunConfig.h"
#include "fsdp/Data/Initialize.h"
#include "fsdp/Data/Safetensors.h"
#include "fsdp/Support/AtomicFile.h"
#include <algorithm>
#include <sys/mman.h>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

namespace {

/// A file that never touches a disk, as thousands of them would be slow.
class MemoryFile {
public:
  MemoryFile() : file(memfd_create("fuzz", MFD_CLOEXEC)) {}
  ~MemoryFile() { close(file); }
  /// Replaces the contents and returns the file's path.
  std::string write(const std::string &text) {
    EXPECT_EQ(ftruncate(file, 0), 0);
    EXPECT_EQ(pwrite(file, text.data(), text.size(), 0), (ssize_t)text.size());
    return "/proc/self/fd/" + std::to_string(file);
  }

private:
  int file;
};

/// Calls accept(text) on damaged copies of `text` and counts those that it
/// takes; anything but an fsdp::Error with a message fails the test.
template <typename Accept>
int countAccepted(const std::string &text, int mutations, Mutator mutate,
                  Accept accept) {
  int accepted = 0;
  for (int i = 0; i < mutations; ++i) {
    std::string damaged = mutate(text);
    try {
      accept(damaged);
      ++accepted;
    } catch (const Error &error) {
      EXPECT_STRNE(error.what(), "") << damaged;
    } catch (const std::exception &error) {
      ADD_FAILURE() << error.what() << " of\n" << damaged;
    }
  }
  return accepted;
}

const char *const kManifest = R"({
  "format": 5,
  "config": {"model.dim": "64", "optimizer.eps": 1e-8},
  "fingerprint": {"threads": 1},
  "mesh": {"axes": [{"name": "dp_replicate", "size": 2},
                    {"name": "dp_shard", "size": 2}], "node_size": 0},
  "arena": {"bytes": 2048, "persistent_bytes": 1024},
  "ranges": [
    {"name": "w", "role": "parameter", "dtype": "f32", "shape": [3, 2],
     "offset": 0, "bytes": 24, "full": [5, 2],
     "init": {"kind": "normal", "std": 0.02, "cut": 3},
     "placement": {"dims": [{"compute": [], "storage": ["dp_shard"]},
                          {"compute": [], "storage": []}]}},
    {"name": "v", "role": "state", "dtype": "f32", "shape": [2, 3],
     "offset": 64, "bytes": 24, "full": [2, 12],
     "init": {"kind": "uniform", "bound": 0.5},
     "placement": {"dims": [{"compute": [], "storage": []},
                            {"compute": [{"axis": "dp_shard", "pre": 1,
                                          "size": 2}],
                             "storage": ["dp_replicate"]}]}},
    {"name": "table", "role": "buffer", "dtype": "f32", "shape": [4, 2, 2],
     "offset": 128, "bytes": 64, "full": null,
     "init": {"kind": "rotary_table", "frequencies": [1, 0.01], "scale": 1,
              "start": 0}, "placement": null},
    {"name": "tokens", "role": "input", "dtype": "i32", "shape": [1, 2],
     "offset": 192, "bytes": 8, "full": null, "init": null,
     "placement": null},
    {"name": "loss", "role": "output", "dtype": "f32", "shape": [],
     "offset": 256, "bytes": 4, "full": null, "init": {"kind": "ones"},
     "placement": {"dims": []}}],
  "programs": [{"name": "train", "inputs": ["tokens"], "outputs": ["loss"],
                "reads": ["w", "tokens"], "writes": ["w", "loss"],
                "adds": ["w"], "clears": [], "arena_bytes": 2048, "flops": 1e6},
               {"name": "clear", "inputs": [], "outputs": [], "reads": [],
                "writes": ["w"], "adds": [], "clears": ["w"],
                "arena_bytes": 2048, "flops": 0}],
  "steps": {"train": [{"program": "clear", "times": 1},
                      {"program": "train", "times": 2}]},
  "runs": {"train": {"train": 2, "clear": 1}}})";

/// First values are written into an arena with guards around it.
void useManifest(const std::string &text) {
  Manifest manifest = parseManifest(text, "m.json");
  if (manifest.arenaBytes > 1 << 20)
    return;
  constexpr size_t guard = 4096;
  size_t bytes = manifest.arenaBytes;
  std::vector<std::byte> memory(bytes + 2 * guard, std::byte{0x5a});
  int64_t ranks = std::min<int64_t>(manifest.ranks(), 4);
  for (int64_t rank = 0; rank < ranks; ++rank)
    initializeRanges(manifest, rank, 1, memory.data() + guard);
  auto untouched = [](std::byte b) { return b == std::byte{0x5a}; };
  EXPECT_TRUE(std::all_of(memory.begin(), memory.begin() + guard, untouched));
  EXPECT_TRUE(std::all_of(memory.end() - guard, memory.end(), untouched));
}

} // namespace

TEST(Fuzz, Manifest) {
  useManifest(kManifest);
  Mutator mutate(1, {"null", "[]", "{}", "\"\"", "-1", "true", ",", "\"w\"",
                     "\"dp_shard\"", "\"bf16\"", "\"i8\"", "0.05",
                     "\"format\":3,", "\"bytes\":24,",
                     std::string(120, '[') + std::string(120, ']')});
  int accepted = countAccepted(kManifest, 8000, mutate, useManifest);
  // Some numbers may be anything, most text may not.
  EXPECT_GT(accepted, 80);
  EXPECT_LT(accepted, 4000);
}

TEST(Fuzz, Safetensors) {
  TemporaryFolder folder;
  std::vector<float> data(16, 1);
  auto view = [&](const char *name, DType type, std::vector<int64_t> shape) {
    return TensorView{name, type, std::move(shape),
                      reinterpret_cast<const std::byte *>(data.data())};
  };
  std::string path = folder.file("good");
  writeSafetensors(path,
                   {view("a", DType::F32, {2, 3}), view("b", DType::I64, {}),
                    view("c", DType::BF16, {0, 4}), view("d", DType::I8, {5})},
                   {{"format", "pt"}});
  std::string good = readWholeFile(path, "file");
  MemoryFile damaged;
  auto use = [&](const std::string &bytes) {
    SafetensorsFile file(damaged.write(bytes));
    // Every byte that a tensor claims is read.
    int sum = 0;
    for (const TensorView &tensor : file.tensors())
      for (int64_t i = 0; i < elementCount(tensor.shape) * sizeOf(tensor.dtype);
           ++i)
        sum += static_cast<int>(tensor.data[i]);
    EXPECT_GE(sum, 0);
  };
  use(good);
  Mutator mutate(2,
                 {"\"F32\"", "\"F64\"", "[0,0]", "null", "{", "]", "\xff", ".5",
                  ",8", "-", "\"a\":", "\"shape\":[],", std::string(120, '[')});
  countAccepted(good, 4000, mutate, use);
}

/// Directories of a family with every layout: config.json or the weights are
/// damaged. What is accepted is read.
TEST(Fuzz, HuggingFaceDirectory) {
  checkpoint::AddedFamily family(plantedFamily());
  PlantedDirectory directory;
  Mutator mutate(5, {"\"BF16\"", "\"I32\"", "[0,0]", "[8,3]", "null", "{", "]",
                     "base.", "\"base.h.0.q.weight\":", "true", "false", ",8"});
  for (const char *name : {"config.json", "model.safetensors"}) {
    auto use = [&](const std::string &text) { directory.readWith(name, text); };
    std::string good = directory.text(name);
    use(good);
    // A byte of a weight is a weight.
    EXPECT_GT(countAccepted(good, 1000, mutate, use), 20) << name;
  }
}

TEST(Fuzz, RunDescription) {
  MemoryFile file;
  const char *good = R"(
[job]
description = "a run"
[model]
flavor = "debugmodel"
dim = 64
tied = true
[optimizer]
lr = 8e-4
[training]
seq_len = 64
steps = 10
dataset_path = "text"
[lr_scheduler]
warmup_steps = 2
decay_ratio = 0.8
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = -1
)";
  auto use = [&](const std::string &text) {
    RunConfig config;
    loadConfig(config, file.write(text));
    resolveConfig(config, 4);
    compiledSettings(config);
  };
  use(good);
  Mutator mutate(3, {"[training]", "steps", "=", "\"\"\"", "true", "nan", "[[",
                     "{a = 1}", "1979-05-27", "'", "#", "0x"});
  EXPECT_GT(countAccepted(good, 4000, mutate, use), 40);
}

TEST(Fuzz, CommandLine) {
  auto use = [](const std::string &line) {
    RunConfig config;
    applyConfigOverrides(config, {line, "4"});
  };
  Mutator mutate(4, {"--", ".", "=", "model", "nan", "inf"});
  for (const char *good :
       {"--training.steps", "--optimizer.lr=8e-4", "--model.tied=true",
        "--compile.mode=replicate", "--lr_scheduler.decay_ratio=0.5"}) {
    use(good);
    countAccepted(good, 1000, mutate, use);
  }
}
