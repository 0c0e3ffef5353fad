//===- ManifestTest.cpp - Damaged manifests are refused -------------------===//
#include "TemporaryFolder.h"
#include "fsdp/Runtime/Loader.h"
#include <nlohmann/json.hpp>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;
using nlohmann::json;

/// Two ranks, one sharded parameter of 5 x 2, one scalar.
static json goodManifest() {
  return json::parse(R"({
    "format": 1,
    "config": {"model.dim": "64", "optimizer.eps": 1e-8},
    "fingerprint": {"threads": 1},
    "mesh": {"axes": [{"name": "dp_shard", "size": 2}], "node_size": 0},
    "arena": {"bytes": 256, "persistent_bytes": 128},
    "ranges": [
      {"name": "w", "role": "parameter", "dtype": "f32", "shape": [3, 2],
       "offset": 0, "bytes": 24, "full": [5, 2],
       "init": {"kind": "normal", "std": 0.02, "cut": 3},
       "placement": {"kind": "shard", "dim": 0, "axes": ["dp_shard"]}},
      {"name": "loss", "role": "output", "dtype": "f32", "shape": [],
       "offset": 64, "bytes": 4, "full": null, "init": null,
       "placement": null}],
    "programs": [{"name": "train", "inputs": [], "outputs": ["loss"],
                  "arena_bytes": 256, "flops": 1e6}]})");
}

static std::string parseError(const json &document) {
  return messageOf([&] { parseManifest(document.dump(), "m.json"); });
}

TEST(Manifest, ReadsEveryField) {
  Manifest manifest = parseManifest(goodManifest().dump(), "m.json");
  EXPECT_EQ(manifest.ranks(), 2);
  EXPECT_EQ(manifest.meshText(), "dp_shard=2");
  EXPECT_EQ(manifest.config.at("model.dim"), "64");
  EXPECT_EQ(manifest.arenaBytes, 256u);
  const RangeInfo &w = *manifest.findRange("w");
  EXPECT_EQ(w.full, (std::vector<int64_t>{5, 2}));
  EXPECT_EQ(w.init->std, 0.02);
  EXPECT_EQ(manifest.findProgram("train"), 0);
  EXPECT_EQ(manifest.findProgram("evaluate"), -1);
  ShardView last = manifest.shardView(w, 1);
  EXPECT_EQ(last.begin, 3);
  EXPECT_EQ(last.end, 5);
  EXPECT_EQ(last.size, 3);
}

TEST(Manifest, DamageIsNamed) {
  auto damaged = [](auto change) {
    json document = goodManifest();
    change(document);
    return parseError(document);
  };
  EXPECT_EQ(messageOf([] { parseManifest("{\"format\": 1", "m.json"); }),
            "damaged manifest m.json: this is not JSON");
  EXPECT_EQ(damaged([](json &m) { m.erase("arena"); }),
            "damaged manifest m.json: the field 'arena' is missing");
  EXPECT_EQ(damaged([](json &m) { m["format"] = 2; }),
            "damaged manifest m.json: format is not 1; the artifact is from "
            "another version");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][0]["offset"] = -64; }),
            "damaged manifest m.json: ranges[0]: offset: expected an integer "
            "from 0 to 2^62");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][0]["bytes"] = 28; }),
            "damaged manifest m.json: ranges[0]: 'w' has 28 bytes, its shape "
            "and type need 24");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][0]["offset"] = 128; }),
            "damaged manifest m.json: ranges[0]: 'w' lies outside the "
            "persistent ranges");
  // An output may lie behind them, but not outside the arena.
  EXPECT_EQ(damaged([](json &m) { m["ranges"][1]["offset"] = 128; }), "");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][1]["offset"] = 256; }),
            "damaged manifest m.json: ranges[1]: 'loss' lies outside the "
            "arena");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][1]["offset"] = 0; }),
            "damaged manifest m.json: the ranges 'w' and 'loss' overlap");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][1]["name"] = "w"; }),
            "damaged manifest m.json: two ranges are called 'w'");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][0]["shape"] = {1e30, 2}; }),
            "damaged manifest m.json: ranges[0]: shape[0]: expected an "
            "integer from 0 to 2^62");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][0]["dtype"] = "f12"; }),
            "damaged manifest m.json: ranges[0]: dtype: unknown type 'f12'");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][0]["full"] = {7, 2}; }),
            "damaged manifest m.json: ranges[0]: the shape is not the rank's "
            "part of the full shape");
  EXPECT_EQ(damaged([](json &m) { m["mesh"]["axes"][0]["name"] = "x"; }),
            "damaged manifest m.json: ranges[0]: the mesh has no axis "
            "'dp_shard'");
  EXPECT_EQ(damaged([](json &m) { m["programs"][0]["inputs"] = {"x"}; }),
            "damaged manifest m.json: programs[0]: 'train' uses 'x', which is "
            "no range");
  EXPECT_EQ(damaged([](json &m) { m["programs"][0]["arena_bytes"] = 257; }),
            "damaged manifest m.json: programs[0]: 'train' needs more than "
            "the arena");
  EXPECT_EQ(damaged([](json &m) { m["arena"]["bytes"] = 64; }),
            "damaged manifest m.json: the persistent ranges are larger than "
            "the arena");
}

// Numbers that are no sizes, and sizes whose products and sums leave 64 bits.
TEST(Manifest, NumbersBeyondAnyMachine) {
  auto damaged = [](auto change) {
    json document = goodManifest();
    change(document);
    return parseError(document);
  };
  const std::string refused = "expected an integer from 0 to 2^62";
  const uint64_t wraps = uint64_t(1) << 63;
  for (const json &number :
       {json(1.5), json(-1), json(wraps), json(UINT64_MAX), json(1e30),
        json((int64_t(1) << 62) + 1), json("64"), json(nullptr)})
    for (const char *field : {"offset", "bytes"})
      EXPECT_EQ(damaged([&](json &m) { m["ranges"][0][field] = number; }),
                "damaged manifest m.json: ranges[0]: " + std::string(field) +
                    ": " + refused)
          << number;
  EXPECT_EQ(damaged([&](json &m) { m["arena"]["bytes"] = wraps; }),
            "damaged manifest m.json: arena: bytes: " + refused);
  EXPECT_EQ(damaged([](json &m) {
              m["ranges"][0]["shape"] = {int64_t(1) << 32, int64_t(1) << 32};
            }),
            "damaged manifest m.json: ranges[0]: shape: the shape has more "
            "than 2^56 elements");
  EXPECT_EQ(damaged([](json &m) { m["mesh"]["axes"][0]["size"] = 1 << 21; }),
            "damaged manifest m.json: mesh: axes[0]: the mesh is beyond 2^20 "
            "ranks");
  // The largest offset and size that are read can be added.
  EXPECT_EQ(
      damaged([](json &m) { m["ranges"][0]["offset"] = int64_t(1) << 62; }),
      "damaged manifest m.json: ranges[0]: 'w' lies outside the "
      "persistent ranges");
}

TEST(Manifest, OneMeaningAndBoundedDepth) {
  auto error = [](const std::string &text) {
    return messageOf([&] { parseManifest(text, "m.json"); });
  };
  std::string good = goodManifest().dump();
  EXPECT_EQ(error("{\"format\":1," + good.substr(1)),
            "damaged manifest m.json: 'format' appears twice");
  // In an object within another, too.
  size_t arena = good.find("\"arena\":{") + 9;
  EXPECT_EQ(error(good.substr(0, arena) + "\"bytes\":1," + good.substr(arena)),
            "damaged manifest m.json: 'bytes' appears twice");
  std::string deep = "damaged manifest m.json: nested deeper than 64 levels";
  EXPECT_EQ(error(std::string(300000, '[')), deep);
  // Closed, and in a field that is kept as text.
  std::string nested = std::string(300000, '[') + std::string(300000, ']');
  EXPECT_EQ(error("{\"config\":{\"x\":" + nested + "}}"), deep);
  // Brackets in a text are no brackets.
  std::string name = std::string(200, '[') + "\\\"{";
  EXPECT_EQ(error("{\"" + name + "\":1," + good.substr(1)), "");
}

// Whatever a file is cut to, reading it ends in an error, never in a crash.
TEST(Manifest, TruncatedFilesAreRefused) {
  std::string text = goodManifest().dump();
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_NE(messageOf([&] { parseManifest(text.substr(0, size), "m"); }), "")
        << size;
}

TEST(Manifest, WrongWorldSize) {
  Manifest manifest = parseManifest(goodManifest().dump(), "m.json");
  EXPECT_EQ(messageOf([&] { checkWorldSize(manifest, 3); }),
            "wrong number of ranks: the artifact is compiled for 2 "
            "(dp_shard=2), this job has 3");
}

TEST(Manifest, StaleSettingsAreNamed) {
  Manifest manifest = parseManifest(goodManifest().dump(), "m.json");
  auto check = [&](std::map<std::string, std::string> wanted) {
    return messageOf([&] {
      checkSettings(manifest, wanted, {{"model.dim", "run.toml:5"}});
    });
  };
  // The same number in another spelling is the same setting.
  EXPECT_EQ(check({{"model.dim", "64"}, {"optimizer.eps", "0.00000001"}}), "");
  EXPECT_EQ(check({{"model.dim", "128"}, {"optimizer.eps", "1e-08"}}),
            "stale artifact: model.dim is 64 in the artifact, the run wants "
            "128 (run.toml:5); compile it again");
  // Every one is named, also what the run has not at all.
  EXPECT_EQ(check({{"model.dim", "128"}, {"compile.cpu", "native"}}),
            "stale artifact: 3 settings differ; compile it again\n"
            "  compile.cpu is unset in the artifact, the run wants native\n"
            "  model.dim is 64 in the artifact, the run wants 128 "
            "(run.toml:5)\n"
            "  optimizer.eps is 1e-08 in the artifact, the run wants unset");
  EXPECT_EQ(check({{"optimizer.eps", "1e-08"}}),
            "stale artifact: model.dim is 64 in the artifact, the run wants "
            "unset (run.toml:5); compile it again");
}
