//===- checkpoint_bench.cpp - Speed of checkpoints ------------------------===//
//
//   checkpoint-bench FOLDER [MEGABYTES]
//
// One rank saves tensors of f32 and reads them, beside cp of the same files to
// memory (/dev/shm) in the same run; all of it in the page cache. The best of
// five rounds.
//
//===----------------------------------------------------------------------===//
#include "runtime/checkpoint/Open.h"
#include "runtime/checkpoint/native/CheckpointFolder.h"
#include "runtime/checkpoint/store/VerifyTensors.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

using namespace fsdp;
using namespace fsdp::checkpoint;

static constexpr int64_t kRows = 4096, kColumns = 4096; // 64 MiB
static constexpr int kRounds = 5;

/// The seconds of the fastest of some rounds.
template <typename Work> static double best(Work work) {
  double least = std::numeric_limits<double>::max();
  for (int round = 0; round < kRounds; ++round) {
    auto begin = std::chrono::steady_clock::now();
    work();
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    least = std::min(least, took.count());
  }
  return least;
}

static std::vector<SavedChunk> chunksOf(const std::vector<float> &data,
                                        int64_t count) {
  std::vector<SavedChunk> chunks;
  std::string_view bytes(reinterpret_cast<const char *>(data.data()),
                         data.size() * sizeof(float));
  for (int64_t i = 0; i < count; ++i)
    chunks.push_back({rt::wholeBox({kRows, kColumns}),
                      "w" + std::to_string(i),
                      rt::RangeRole::Parameter,
                      rt::DType::F32,
                      {kRows, kColumns},
                      [bytes](const auto &write) { write(bytes); }});
  return chunks;
}

static void readAll(const std::string &folder, std::vector<std::byte> &to) {
  auto store = openTensorStore(folder);
  for (const StoredTensor &tensor : store->tensors())
    TensorReader(tensor, wholeView(tensor), tensor.dtype)
        .read(0, kRows * kColumns, to.data());
}

static void say(const char *what, double bytes, double seconds) {
  std::printf("%-34s %6.2f GB/s  %7.1f ms\n", what, bytes / seconds / 1e9,
              seconds * 1e3);
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  std::string folder = argv[1];
  int64_t megabytes = argc > 2 ? std::atoll(argv[2]) : 1024;
  int64_t count = megabytes * (1 << 20) / (kRows * kColumns * 4);
  std::vector<float> data(kRows * kColumns);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<float>(i) * 0.001f;
  auto bytes = static_cast<double>(count * kRows * kColumns * 4);

  SaveRequest request;
  request.folder = folder;
  request.state.step = 1;
  std::atomic<Parts> parts{Parts::Awaited};
  say("save, on the disk at the end", bytes, best([&] {
        beginSave(request);
        writePart(request, chunksOf(data, count));
        commitSave(request, parts);
      }));
  std::string file = folder + "/step-1/rank-00000.safetensors";
  std::string copy = "/dev/shm/checkpoint-bench-copy";
  std::string command = "cp '" + file + "' " + copy;
  bool copied = true;
  say("cp to memory", bytes, best([&] {
        std::remove(copy.c_str());
        copied &= std::system(command.c_str()) == 0;
      }));
  say("cp over a copy in memory", bytes,
      best([&] { copied &= std::system(command.c_str()) == 0; }));
  std::remove(copy.c_str());
  std::vector<std::byte> to(kRows * kColumns * 4);
  say("open and read, with checksums", bytes,
      best([&] { readAll(folder, to); }));
  auto store = openTensorStore(folder);
  say("checksums alone, mapped", bytes,
      best([&] { verifyTensors(*store, 1, [](uint64_t) {}); }));
  return copied ? 0 : 1;
}
