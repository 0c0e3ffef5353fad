//===- ManifestTest.cpp - Damaged manifests are refused -------------------===//
#include "TemporaryFolder.h"
#include "fsdp/Artifact/Loader.h"
#include <nlohmann/json.hpp>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;
using nlohmann::json;

/// Two ranks, one sharded parameter of 5 x 2, one scalar.
static json goodManifest() {
  return json::parse(R"({
    "format": 5,
    "config": {"model.dim": "64", "optimizer.eps": 1e-8},
    "fingerprint": {"threads": 1},
    "model": {"family": "llama3", "fields": {"dim": 64, "norm_eps": 1e-05,
                                             "tied": false}},
    "mesh": {"axes": [{"name": "dp_shard", "size": 2}], "node_size": 0},
    "arena": {"bytes": 256, "persistent_bytes": 128},
    "ranges": [
      {"name": "w", "role": "parameter", "dtype": "f32", "shape": [3, 2],
       "offset": 0, "bytes": 24, "full": [5, 2],
       "init": {"kind": "normal", "std": 0.02, "cut": 3},
       "placement": {"dims": [{"compute": [], "storage": ["dp_shard"]},
                              {"compute": [], "storage": []}]}},
      {"name": "loss", "role": "output", "dtype": "f32", "shape": [],
       "offset": 64, "bytes": 4, "full": null, "init": null,
       "placement": null}],
    "programs": [{"name": "train", "inputs": [], "outputs": ["loss"],
                  "reads": ["w"], "writes": ["w", "loss"], "adds": [],
                  "clears": [],
                  "arena_bytes": 256, "flops": 1e6}],
    "steps": {"train": [{"program": "train", "times": 3}]},
    "runs": {"train": {"train": 3}}})");
}

/// Of one dimension of a box begin and end, and for how much there is room.
static std::vector<int64_t> dimOf(const ShardView &view, size_t d) {
  return {view.offsets[d], view.end(d), view.stored[d]};
}

static std::string parseError(const json &document) {
  return messageOf([&] { parseManifest(document.dump(), "m.json"); });
}

TEST(Manifest, ReadsEveryField) {
  Manifest manifest = parseManifest(goodManifest().dump(), "m.json");
  EXPECT_EQ(manifest.ranks(), 2);
  EXPECT_EQ(manifest.meshText(), "dp_shard=2");
  EXPECT_EQ(manifest.config.at("model.dim"), "64");
  ASSERT_TRUE(manifest.model);
  EXPECT_EQ(manifest.model->family, "llama3");
  EXPECT_EQ(manifest.model->fields,
            (std::map<std::string, std::string>{
                {"dim", "64"}, {"norm_eps", "1e-05"}, {"tied", "false"}}));
  EXPECT_EQ(manifest.arenaBytes, 256u);
  const RangeInfo &w = *manifest.findRange("w");
  EXPECT_EQ(w.full, (std::vector<int64_t>{5, 2}));
  EXPECT_EQ(w.init->std, 0.02);
  EXPECT_EQ(manifest.findProgram("train"), 0);
  EXPECT_EQ(manifest.findProgram("evaluate"), -1);
  ASSERT_EQ(manifest.steps.at("train").size(), 1u);
  EXPECT_EQ(manifest.steps.at("train")[0].program, 0);
  EXPECT_EQ(manifest.steps.at("train")[0].times, 3);
  ShardView last = manifest.shardView(w, 1);
  EXPECT_EQ(dimOf(last, 0), (std::vector<int64_t>{3, 5, 3}));
  EXPECT_EQ(dimOf(last, 1), (std::vector<int64_t>{0, 2, 2}));
}

TEST(Manifest, DamageIsNamed) {
  auto damaged = [](auto change) {
    json document = goodManifest();
    change(document);
    return parseError(document);
  };
  EXPECT_EQ(messageOf([] { parseManifest("{\"format\": 1", "m.json"); }),
            "damaged manifest m.json: line 1, column 12: this is not JSON: "
            "unexpected end of input; expected '}'");
  EXPECT_EQ(damaged([](json &m) { m.erase("arena"); }),
            "damaged manifest m.json: the field 'arena' is missing");
  EXPECT_EQ(damaged([](json &m) { m["format"] = 1; }),
            "damaged manifest m.json: format is not 5; the artifact is from "
            "another version; compile it again with fsdp-compile");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][0]["offset"] = -64; }),
            "damaged manifest m.json: ranges[0]: offset: expected an integer "
            "from 0 to 2^62");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][0]["bytes"] = 28; }),
            "damaged manifest m.json: ranges[0]: 'w' has 28 bytes, its shape "
            "and type need 24");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][0]["offset"] = 128; }),
            "damaged manifest m.json: ranges[0]: 'w' lies outside the "
            "persistent ranges");
  // An output may lie after them, but not outside the arena.
  EXPECT_EQ(damaged([](json &m) { m["ranges"][1]["offset"] = 128; }), "");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][1]["offset"] = 256; }),
            "damaged manifest m.json: ranges[1]: 'loss' lies outside the "
            "arena");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][1]["offset"] = 0; }),
            "damaged manifest m.json: the ranges 'w' and 'loss' overlap");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][1]["name"] = "a\n\x1b[2J"; }),
            "damaged manifest m.json: ranges[1]: name: expected one line of "
            "text without control characters, got 'a\\n\\x1b[2J'");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][1]["name"] = "w"; }),
            "damaged manifest m.json: two ranges are called 'w'");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][0]["shape"] = {1e30, 2}; }),
            "damaged manifest m.json: ranges[0]: shape[0]: expected an "
            "integer from 0 to 2^62");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][0]["dtype"] = "f12"; }),
            "damaged manifest m.json: ranges[0]: dtype: unknown type 'f12'");
  EXPECT_EQ(damaged([](json &m) { m["ranges"][0]["full"] = {7, 2}; }),
            "damaged manifest m.json: ranges[0]: the shape is not the rank's "
            "shard of the full shape");
  EXPECT_EQ(damaged([](json &m) { m["mesh"]["axes"][0]["name"] = "x"; }),
            "damaged manifest m.json: ranges[0]: placement: dims[0]: "
            "storage[0]: the mesh has no axis 'dp_shard'");
  EXPECT_EQ(damaged([](json &m) { m["programs"][0]["inputs"] = {"x"}; }),
            "damaged manifest m.json: programs[0]: 'train' uses 'x', which is "
            "no range");
  EXPECT_EQ(damaged([](json &m) { m["programs"][0]["arena_bytes"] = 257; }),
            "damaged manifest m.json: programs[0]: 'train' needs more than "
            "the arena");
  EXPECT_EQ(damaged([](json &m) { m["model"] = nullptr; }), "");
  EXPECT_EQ(damaged([](json &m) { m["model"]["family"] = ""; }),
            "damaged manifest m.json: model: family: expected a string that "
            "is not empty");
  EXPECT_EQ(damaged([](json &m) { m["model"].erase("fields"); }),
            "damaged manifest m.json: model: the field 'fields' is missing");
  EXPECT_EQ(damaged([](json &m) { m["model"]["fields"]["dim"] = {64}; }),
            "damaged manifest m.json: model: fields: dim: expected a string, "
            "a number or a boolean");
  auto action = [](json &m) -> json & { return m["steps"]["train"][0]; };
  EXPECT_EQ(damaged([](json &m) { m.erase("steps"); }),
            "damaged manifest m.json: the field 'steps' is missing");
  EXPECT_EQ(damaged([](json &m) { m["steps"] = json::array(); }),
            "damaged manifest m.json: steps: expected an object");
  EXPECT_EQ(damaged([](json &m) { m["steps"]["train"] = json::array(); }),
            "damaged manifest m.json: steps: train: a step runs at least one "
            "program");
  EXPECT_EQ(damaged([&](json &m) { action(m)["program"] = "x"; }),
            "damaged manifest m.json: steps: train[0]: program: there is no "
            "program 'x'");
  EXPECT_EQ(damaged([&](json &m) { action(m)["times"] = 0; }),
            "damaged manifest m.json: steps: train[0]: times: expected an "
            "integer from 1 to 2^62");
  EXPECT_EQ(damaged([&](json &m) { action(m)["times"] = (1 << 20) + 1; }),
            "damaged manifest m.json: steps: train[0]: a step runs a program "
            "at most 2^20 times");
  EXPECT_EQ(damaged([](json &m) { m["arena"]["bytes"] = 64; }),
            "damaged manifest m.json: the persistent ranges are larger than "
            "the arena");
}

/// A step of four microbatches: the programs hand on a count, and a sum that
/// @accumulate adds to and @update clears.
static json accumulating() {
  json m = goodManifest();
  m["ranges"] = json::array();
  int offset = 0;
  for (auto [name, role] : {std::pair("w", "parameter"),
                            {"sum", "state"},
                            {"g", "gradient"},
                            {"targets", "input"},
                            {"count", "input"},
                            {"loss", "output"}}) {
    m["ranges"].push_back({{"name", name},
                           {"role", role},
                           {"dtype", "f32"},
                           {"shape", json::array()},
                           {"offset", offset},
                           {"bytes", 4}});
    offset += 64;
  }
  m["arena"] = {{"bytes", offset}, {"persistent_bytes", offset}};
  using Names = std::vector<std::string>;
  m["programs"] = json::array();
  auto add = [&](const char *name, Names inputs, Names outputs, Names reads,
                 Names writes, Names adds, Names clears) {
    m["programs"].push_back({{"name", name},
                             {"inputs", inputs},
                             {"outputs", outputs},
                             {"reads", reads},
                             {"writes", writes},
                             {"adds", adds},
                             {"clears", clears},
                             {"arena_bytes", 64},
                             {"flops", 1}});
  };
  add("label", {"targets"}, {"count"}, {"targets"}, {"count"}, {}, {});
  add("accumulate", {"targets", "count"}, {}, {"w", "targets", "count", "sum"},
      {"sum"}, {"sum"}, {});
  add("update", {}, {"loss"}, {"w", "sum"}, {"w", "sum", "g", "loss"}, {},
      {"sum"});
  m["steps"]["train"] = {{{"program", "label"}, {"times", 1}},
                         {{"program", "accumulate"}, {"times", 4}},
                         {{"program", "update"}, {"times", 1}}};
  m["runs"] = {{"train", {{"label", 1}, {"accumulate", 4}, {"update", 1}}}};
  return m;
}

TEST(Manifest, StepsDoWhatTheirProgramsState) {
  EXPECT_EQ(parseError(accumulating()), "");
  auto changed = [](auto change) {
    json document = accumulating();
    change(document);
    return parseError(document);
  };
  auto list = [](json &m) -> json & { return m["steps"]["train"]; };
  const std::string place = "damaged manifest m.json: step 'train'";
  EXPECT_EQ(changed([&](json &m) { list(m).erase(0); }),
            place + " runs 'label', which writes 'count', 0 times, but states "
                    "once; compile the model again");
  EXPECT_EQ(changed([&](json &m) { list(m).erase(2); }),
            place + " runs 'update', which writes 'w', 0 times, but states "
                    "once; compile the model again");
  EXPECT_EQ(changed([&](json &m) { list(m)[2]["times"] = 2; }),
            place + " runs 'update', which writes 'w', 2 times, but states "
                    "once; compile the model again");
  EXPECT_EQ(changed([&](json &m) { list(m)[1]["times"] = 3; }),
            place + " runs 'accumulate', which writes 'sum', 3 times, but "
                    "states 4 times; compile the model again");
  EXPECT_EQ(changed([&](json &m) { std::swap(list(m)[0], list(m)[1]); }),
            place + ": 'accumulate' reads 'count', which 'label' writes, "
                    "before that has run; compile the model again");
  EXPECT_EQ(changed([&](json &m) { std::swap(list(m)[1], list(m)[2]); }),
            place + ": 'update' reads 'sum', a sum to which nothing has been "
                    "added by then; compile the model again");
  // Statements that agree with a wrong list.
  EXPECT_EQ(changed([&](json &m) {
              list(m).erase(2);
              m["runs"]["train"].erase("update");
            }),
            place + ": it ends with what 'accumulate' has added to 'sum', with "
                    "which the next step would begin; compile the model again");
  EXPECT_EQ(changed([&](json &m) {
              list(m)[2]["times"] = m["runs"]["train"]["update"] = 2;
            }),
            place + ": 'update' reads 'sum', a sum to which nothing has been "
                    "added by then; compile the model again");
  EXPECT_EQ(changed([&](json &m) { m["programs"].erase(0); }),
            "damaged manifest m.json: steps: train[0]: program: there is no "
            "program 'label'");
  EXPECT_EQ(changed([&](json &m) {
              m["programs"].erase(0);
              list(m).erase(0);
            }),
            place + " runs 'label', which does not exist, 0 times, but states "
                    "once; compile the model again");
  EXPECT_EQ(changed([](json &m) { m["runs"]["other"]["label"] = 1; }),
            "damaged manifest m.json: step 'other' runs 'label', which writes "
            "'count', 0 times, but states once; compile the model again");
  EXPECT_EQ(changed([](json &m) { m["runs"]["train"]["label"] = 0; }),
            "damaged manifest m.json: runs: train: label: expected an integer "
            "from 1 to 2^62");
  EXPECT_EQ(changed([](json &m) { m["programs"][2]["writes"].erase(3); }),
            "damaged manifest m.json: programs[2]: 'update' gives 'loss', but "
            "does not state that it writes it");
  EXPECT_EQ(changed([](json &m) { m["programs"][1]["reads"].erase(3); }),
            "damaged manifest m.json: programs[1]: 'accumulate' adds to 'sum', "
            "but does not state that it reads and writes it");
  EXPECT_EQ(changed([](json &m) { m["programs"][2]["writes"].erase(1); }),
            "damaged manifest m.json: programs[2]: 'update' clears 'sum', but "
            "does not state that it writes it");
  EXPECT_EQ(changed([](json &m) { m["programs"][1]["clears"] = {"sum"}; }),
            "damaged manifest m.json: programs[1]: 'accumulate' states both "
            "that it adds to 'sum' and that it clears it");
  EXPECT_EQ(changed([](json &m) { m["programs"][1]["inputs"].erase(1); }),
            "damaged manifest m.json: programs[1]: 'accumulate' reads 'count', "
            "which is none of its inputs");
  EXPECT_EQ(changed([](json &m) { m["programs"][0]["reads"] = {"x"}; }),
            "damaged manifest m.json: programs[0]: 'label' uses 'x', which is "
            "no range");
}

/// The same with rows: a microbatch has 2 of 4.
static json sliced() {
  json m = accumulating();
  json step = m["ranges"][3];
  step["name"] = "targets.of_step";
  step["offset"] = m["arena"]["bytes"];
  for (json *range : {&m["ranges"][3], &step}) {
    int64_t rows = range == &step ? 8 : 2;
    (*range)["shape"] = {rows, 1};
    (*range)["bytes"] = 4 * rows;
  }
  m["ranges"].push_back(step);
  m["arena"] = {{"bytes", 1024}, {"persistent_bytes", 1024}};
  for (const char *list : {"inputs", "reads"})
    m["programs"][0][list] = {"targets.of_step"};
  return m;
}

TEST(Manifest, InputsSayHowManyMicrobatches) {
  EXPECT_EQ(parseError(sliced()), "");
  auto changed = [](auto change) {
    json document = sliced();
    change(document);
    return parseError(document);
  };
  auto runs = [](json &m, int64_t times) {
    m["steps"]["train"][1]["times"] = m["runs"]["train"]["accumulate"] = times;
  };
  const std::string place = "damaged manifest m.json: step 'train' runs "
                            "'accumulate', which takes 'targets', ";
  EXPECT_EQ(changed([&](json &m) { runs(m, 3); }),
            place + "3 times, but 'targets.of_step' of 'label' holds 4 of it; "
                    "compile the model again");
  auto rows = [](json &m, int64_t rows) {
    m["ranges"][6]["shape"] = {rows, 1};
    m["ranges"][6]["bytes"] = 4 * rows;
  };
  EXPECT_EQ(changed([&](json &m) {
              rows(m, 6);
              runs(m, 3);
            }),
            "");
  for (int64_t wrong : {0, 1, 7})
    EXPECT_EQ(changed([&](json &m) { rows(m, wrong); }),
              place + "but 'targets.of_step' of 'label' holds no whole number "
                      "of it; compile the model again");
  // A sum is cleared, and nothing else does; and it begins with zeros.
  EXPECT_EQ(changed([](json &m) { m["programs"][2]["clears"].clear(); }),
            "damaged manifest m.json: step 'train': it ends with what 'update' "
            "has written to 'sum', with which the next step would begin; "
            "compile the model again");
  EXPECT_EQ(
      changed([](json &m) { m["ranges"][1]["init"] = {{"kind", "ones"}}; }),
      "damaged manifest m.json: step 'train': 'accumulate' adds to 'sum', "
      "which does not begin with zeros; compile the model again");
  // What every microbatch makes anew is not what all of them add up to.
  EXPECT_EQ(changed([](json &m) {
              m["programs"][1]["reads"].erase(3);
              m["programs"][1]["adds"].clear();
            }),
            "damaged manifest m.json: step 'train': 'update' reads 'sum', "
            "which 'accumulate' produces anew for every microbatch: all but "
            "the last one are lost; compile the model again");
}

// A rank's coordinates are (dp_shard, tp), the second faster. 10 rows over 2 x
// 2 storage ranks are 3, 3, 3, 1; over tp and then dp_shard 3, 2 | 3, 2.
TEST(Manifest, PlacementsAreBoxes) {
  auto rows = [](const char *dim, std::vector<int64_t> shape) {
    json document = goodManifest();
    document["mesh"]["axes"] = {{{"name", "dp_shard"}, {"size", 2}},
                                {{"name", "tp"}, {"size", 2}}};
    json &w = document["ranges"][0];
    w["full"] = {10};
    w["shape"] = shape;
    w["bytes"] = 4 * shape[0];
    w["placement"] = {{"dims", {json::parse(dim)}}};
    Manifest manifest = parseManifest(document.dump(), "m.json");
    std::vector<std::vector<int64_t>> boxes;
    for (int64_t rank = 0; rank < 4; ++rank)
      boxes.push_back(
          dimOf(manifest.shardView(*manifest.findRange("w"), rank), 0));
    return boxes;
  };
  using Boxes = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(rows(R"({"compute": [], "storage": ["dp_shard", "tp"]})", {3}),
            (Boxes{{0, 3, 3}, {3, 6, 3}, {6, 9, 3}, {9, 10, 3}}));
  EXPECT_EQ(rows(R"({"compute": [], "storage": ["tp", "dp_shard"]})", {3}),
            (Boxes{{0, 3, 3}, {6, 9, 3}, {3, 6, 3}, {9, 10, 3}}));
  EXPECT_EQ(rows(R"({"compute": ["tp"], "storage": ["dp_shard"]})", {3}),
            (Boxes{{0, 3, 3}, {5, 8, 3}, {3, 5, 3}, {8, 10, 3}}));
  EXPECT_EQ(rows(R"({"compute": ["tp"], "storage": []})", {5}),
            (Boxes{{0, 5, 5}, {5, 10, 5}, {0, 5, 5}, {5, 10, 5}}));
  EXPECT_EQ(rows(R"({"compute": [], "storage": []})", {10}),
            (Boxes{{0, 10, 10}, {0, 10, 10}, {0, 10, 10}, {0, 10, 10}}));
}

// Both halves of an axis of 4: on either dimension one coordinate.
TEST(Manifest, PlacementsNameParts) {
  json document = goodManifest();
  document["mesh"]["axes"] = {{{"name", "a"}, {"size", 4}}};
  json &w = document["ranges"][0];
  w["full"] = {6, 5};
  w["shape"] = {3, 3};
  w["bytes"] = 36;
  w["placement"] = json::parse(R"({"dims": [
      {"compute": [{"axis": "a", "pre": 1, "size": 2}], "storage": []},
      {"compute": [], "storage": [{"axis": "a", "pre": 2, "size": 2}]}]})");
  Manifest manifest = parseManifest(document.dump(), "m.json");
  for (int64_t rank = 0; rank < 4; ++rank) {
    ShardView view = manifest.shardView(*manifest.findRange("w"), rank);
    using Dim = std::vector<int64_t>;
    EXPECT_EQ(dimOf(view, 0), (Dim{rank / 2 * 3, rank / 2 * 3 + 3, 3})) << rank;
    EXPECT_EQ(dimOf(view, 1), (rank % 2 ? Dim{3, 5, 3} : Dim{0, 3, 3})) << rank;
  }
}

TEST(Manifest, BadPlacementsAreNamed) {
  auto error = [](const std::string &placement) {
    json document = goodManifest();
    document["mesh"]["axes"] = {{{"name", "dp_shard"}, {"size", 2}},
                                {{"name", "tp"}, {"size", 4}}};
    document["ranges"][0]["placement"] = json::parse(placement);
    std::string message = parseError(document);
    std::string place = "damaged manifest m.json: ranges[0]: ";
    EXPECT_EQ(message.substr(0, place.size()), place);
    return message.substr(std::min(place.size(), message.size()));
  };
  // The rows' axes; nothing shards the columns.
  auto axes = [&](const std::string &compute, const std::string &storage) {
    return error(R"({"dims": [{"compute": [)" + compute + R"(], "storage": [)" +
                 storage + R"(]}, {"compute": [], "storage": []}]})");
  };
  std::string compute = "placement: dims[0]: compute";
  EXPECT_EQ(error("[]"), "placement: expected an object");
  EXPECT_EQ(error(R"({"kind": "replicated"})"),
            "placement: the field 'dims' is missing");
  EXPECT_EQ(error(R"({"dims": [{"compute": []}]})"),
            "placement: dims[0]: the field 'storage' is missing");
  EXPECT_EQ(error(R"({"dims": [{"compute": [], "storage": ["dp_shard"]}]})"),
            "the placement has 1 dimensions, the tensor has 2");
  EXPECT_EQ(axes("1", ""), compute + "[0]: expected an object");
  EXPECT_EQ(axes("\"cp\"", ""), compute + "[0]: the mesh has no axis 'cp'");
  EXPECT_EQ(axes(R"({"axis": "cp", "pre": 1, "size": 2})", ""),
            compute + "[0]: the mesh has no axis 'cp'");
  EXPECT_EQ(axes(R"({"axis": "tp", "size": 2})", ""),
            compute + "[0]: the field 'pre' is missing");
  EXPECT_EQ(axes(R"({"axis": "tp", "pre": 0, "size": 2})", ""),
            compute + "[0]: pre: expected an integer from 1 to 2^62");
  EXPECT_EQ(axes(R"({"axis": "tp", "pre": 1, "size": 3})", ""),
            compute +
                "[0]: the axis 'tp' of 4 ranks has no sub-axis of 3 after 1");
  EXPECT_EQ(axes(R"({"axis": "tp", "pre": 4, "size": 2})", ""),
            compute +
                "[0]: the axis 'tp' of 4 ranks has no sub-axis of 2 after 4");
  // Their product is 0 in 64 bits.
  EXPECT_EQ(
      axes(R"({"axis": "tp", "pre": 4294967296, "size": 4294967296})", ""),
      compute + "[0]: the axis 'tp' of 4 ranks has no sub-axis of 4294967296 "
                "after 4294967296");
  EXPECT_EQ(axes("", R"("dp_shard", "dp_shard")"),
            "placement: dims[0]: storage[1]: the placement names ranks of the "
            "axis 'dp_shard' twice");
  EXPECT_EQ(axes("\"tp\"", R"({"axis": "tp", "pre": 2, "size": 2})"),
            "placement: dims[0]: storage[0]: the placement names ranks of the "
            "axis 'tp' twice");
  EXPECT_EQ(axes(R"({"axis": "tp", "pre": 1, "size": 2})",
                 R"({"axis": "tp", "pre": 1, "size": 4})"),
            "placement: dims[0]: storage[0]: the placement names ranks of the "
            "axis 'tp' twice");
  // w is [5, 2] in full and [3, 2] here.
  EXPECT_EQ(axes("\"dp_shard\"", ""), "the compute axes split dimension 0 into "
                                      "2 parts, which do not divide its 5");
  EXPECT_EQ(axes("", "\"tp\""),
            "the shape is not the rank's shard of the full shape");
  EXPECT_EQ(axes("", ""),
            "the shape is not the rank's shard of the full shape");
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
            "damaged manifest m.json: line 1, column " +
                std::to_string(good.find("\"format\"") + 19) +
                ": 'format' appears twice");
  // In an object within another, too.
  size_t arena = good.find("\"arena\":{") + 9;
  EXPECT_EQ(error(good.substr(0, arena) + "\"bytes\":1," + good.substr(arena)),
            "damaged manifest m.json: line 1, column " +
                std::to_string(good.find("\"bytes\"", arena) + 17) +
                ": arena: 'bytes' appears twice");
  auto deep = [](int column) {
    return "damaged manifest m.json: line 1, column " + std::to_string(column) +
           ": nested deeper than 64 levels";
  };
  EXPECT_EQ(error(std::string(300000, '[')), deep(65));
  // Closed, and in a field that is kept as text.
  std::string nested = std::string(300000, '[') + std::string(300000, ']');
  EXPECT_EQ(error("{\"config\":{\"x\":" + nested + "}}"), deep(15 + 63));
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
      checkSettings(manifest.config, wanted, {{"model.dim", "run.toml:5"}});
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
            "  compile.cpu is unset in the artifact, the run wants native "
            "(default)\n"
            "  model.dim is 64 in the artifact, the run wants 128 "
            "(run.toml:5)\n"
            "  optimizer.eps is 1e-08 in the artifact, the run wants unset "
            "(default)");
  EXPECT_EQ(check({{"optimizer.eps", "1e-08"}}),
            "stale artifact: model.dim is 64 in the artifact, the run wants "
            "unset (run.toml:5); compile it again");
}
