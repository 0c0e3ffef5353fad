//===- CheckpointFixture.h - Manifests, saves of several ranks --*- C++ -*-===//
#ifndef FSDP_TEST_CHECKPOINTFIXTURE_H
#define FSDP_TEST_CHECKPOINTFIXTURE_H

#include "TemporaryFolder.h"
#include "fsdp/Data/Safetensors.h"
#include "runtime/checkpoint/Open.h"
#include "runtime/checkpoint/native/CheckpointFolder.h"
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

namespace fsdp::test {

/// A range of a manifest: its full shape and the axes of each dimension, "tp"
/// for compute, "/dp" for storage, "tp/dp" for both, "" for none.
struct TestRange {
  std::string name, role, dtype;
  std::vector<int64_t> full;
  std::vector<std::string> axes;
};

/// A manifest of these ranges, one after another.
inline rt::Manifest
manifestOf(const std::vector<std::pair<std::string, int64_t>> &mesh,
           const std::vector<TestRange> &ranges) {
  using nlohmann::json;
  json document = {{"format", 5},
                   {"config", json::object()},
                   {"fingerprint", json::object()},
                   {"mesh", {{"axes", json::array()}, {"node_size", 0}}},
                   {"ranges", json::array()},
                   {"programs", json::array()},
                   {"steps", json::object()},
                   {"runs", json::object()}};
  auto sizeOfAxis = [&](const std::string &name) {
    for (const auto &[axis, size] : mesh)
      if (axis == name)
        return size;
    return int64_t{1};
  };
  for (const auto &[name, size] : mesh)
    document["mesh"]["axes"].push_back({{"name", name}, {"size", size}});
  int64_t offset = 0;
  for (const TestRange &range : ranges) {
    json dims = json::array();
    std::vector<int64_t> shape;
    for (size_t d = 0; d < range.full.size(); ++d) {
      const std::string &axes = range.axes[d];
      size_t slash = std::min(axes.find('/'), axes.size());
      std::string compute = axes.substr(0, slash);
      std::string storage = axes.substr(std::min(slash + 1, axes.size()));
      auto listOf = [](const std::string &name) {
        return name.empty() ? json::array() : json::array({name});
      };
      dims.push_back(
          {{"compute", listOf(compute)}, {"storage", listOf(storage)}});
      int64_t parts = sizeOfAxis(storage);
      shape.push_back((range.full[d] / sizeOfAxis(compute) + parts - 1) /
                      parts);
    }
    int64_t bytes = rt::elementCount(shape) *
                    (range.dtype == "bf16"                          ? 2
                     : range.dtype == "i64" || range.dtype == "f64" ? 8
                                                                    : 4);
    document["ranges"].push_back({{"name", range.name},
                                  {"role", range.role},
                                  {"dtype", range.dtype},
                                  {"shape", shape},
                                  {"full", range.full},
                                  {"offset", offset},
                                  {"bytes", bytes},
                                  {"placement", {{"dims", dims}}}});
    offset += (bytes + 63) / 64 * 64;
  }
  document["arena"] = {{"bytes", offset}, {"persistent_bytes", offset}};
  return rt::parseManifest(document.dump(), "m.json");
}

/// Element `index` of the full tensor `name` after `step`, by its bytes.
inline uint64_t testValue(const std::string &name, int64_t step,
                          int64_t index) {
  auto start = static_cast<uint64_t>(step);
  for (char letter : name)
    start = start * 31 + static_cast<uint64_t>(letter);
  return start * 31 + static_cast<uint64_t>(index) * 0x9e3779b97f4a7c15u;
}

/// What a rank stores of a range, padding zero.
inline std::string storedBytes(const rt::Manifest &manifest,
                               const rt::RangeInfo &range, int64_t rank,
                               int64_t step) {
  auto size = static_cast<size_t>(sizeOf(range.dtype));
  std::string bytes(range.bytes, '\0');
  rt::forEachRun(manifest.shardView(range, rank), range.full,
                 [&](int64_t stored, int64_t whole, int64_t count) {
                   for (int64_t i = 0; i < count; ++i) {
                     uint64_t value = testValue(range.name, step, whole + i);
                     std::memcpy(bytes.data() +
                                     static_cast<size_t>(stored + i) * size,
                                 &value, size);
                   }
                 });
  return bytes;
}

/// What a rank stores of a range.
using StoredBytes =
    std::function<std::string(const rt::RangeInfo &range, int64_t rank)>;

/// The boxes of a rank with these bytes.
inline std::vector<checkpoint::SavedChunk>
chunksOf(const rt::Manifest &manifest, int64_t rank,
         const StoredBytes &stored) {
  std::vector<checkpoint::SavedChunk> chunks;
  for (checkpoint::OwnedBox &box : checkpoint::ownedBoxes(manifest, rank)) {
    box.chunk.write = [range = box.range, view = box.view, rank,
                       stored](const auto &write) {
      auto size = static_cast<size_t>(sizeOf(range->dtype));
      std::string bytes = stored(*range, rank);
      rt::forEachRun(view, range->full,
                     [&](int64_t stored, int64_t, int64_t count) {
                       write(std::string_view(bytes).substr(
                           static_cast<size_t>(stored) * size,
                           static_cast<size_t>(count) * size));
                     });
    };
    chunks.push_back(std::move(box.chunk));
  }
  return chunks;
}

/// The same with the bytes of testValue.
inline std::vector<checkpoint::SavedChunk>
chunksOf(const rt::Manifest &manifest, int64_t rank, int64_t step) {
  return chunksOf(manifest, rank,
                  [&manifest, step](const rt::RangeInfo &range, int64_t of) {
                    return storedBytes(manifest, range, of, step);
                  });
}

inline checkpoint::SaveRequest requestOf(const std::string &folder,
                                         const rt::Manifest &manifest,
                                         int64_t step) {
  checkpoint::SaveRequest request;
  request.folder = folder;
  request.state.step = step;
  request.state.tokens = 100 * step;
  request.state.seed = 0xfedcba9876543210u;
  request.state.dataset = "text";
  request.state.datasetPath = "da\xff"
                              "ta";
  request.state.mesh = manifest.meshText();
  request.state.ranks = request.ranks = manifest.ranks();
  request.state.config = {{"optimizer.lr", "8e-4"}};
  request.model = rt::ModelInfo{"llama3", {{"dim", "256"}}};
  request.attempt = "test";
  return request;
}

/// Saves what `request` says, each rank on a thread of its own.
inline void saveAs(const checkpoint::SaveRequest &request,
                   const rt::Manifest &manifest, const StoredBytes &stored) {
  checkpoint::beginSave(request);
  std::vector<std::thread> ranks;
  for (int64_t rank = 0; rank < manifest.ranks(); ++rank)
    ranks.emplace_back([&, rank] {
      checkpoint::SaveRequest own = request;
      own.rank = rank;
      checkpoint::writePart(own, chunksOf(manifest, rank, stored));
    });
  std::atomic<checkpoint::Parts> parts{checkpoint::Parts::Awaited};
  EXPECT_TRUE(checkpoint::commitSave(request, parts));
  for (std::thread &rank : ranks)
    rank.join();
}

/// The same with the bytes of testValue.
inline void saveAs(const checkpoint::SaveRequest &request,
                   const rt::Manifest &manifest) {
  saveAs(request, manifest, [&](const rt::RangeInfo &range, int64_t rank) {
    return storedBytes(manifest, range, rank, request.state.step);
  });
}

inline void saveStep(const std::string &folder, const rt::Manifest &manifest,
                     int64_t step) {
  saveAs(requestOf(folder, manifest, step), manifest);
}

} // namespace fsdp::test

#endif // FSDP_TEST_CHECKPOINTFIXTURE_H
