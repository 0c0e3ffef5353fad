//===- HuggingFaceTest.cpp - Weights of transformers as tensors of ours ---===//
#include "runtime/checkpoint/huggingface/HuggingFace.h"
#include "TemporaryFolder.h"
#include "fsdp/Data/Safetensors.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Half.h"
#include "runtime/checkpoint/Open.h"
#include <cstring>
#include <nlohmann/json.hpp>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;
using namespace fsdp::test;

static std::string golden(const std::string &name) {
  return std::string(FSDP_GOLDEN_DIR) + "/hf_weights/" + name;
}

/// A tensor of the golden files under the name that transformers gives it.
static std::vector<float> reference(const std::string &file,
                                    const std::string &name) {
  SafetensorsFile tensors(golden(file));
  for (const TensorView &view : tensors.tensors())
    if (view.name == name) {
      std::vector<float> values(elementCount(view.shape));
      for (size_t i = 0; i < values.size(); ++i) {
        uint32_t bits = 0;
        std::memcpy(&bits, view.data + i * sizeOf(view.dtype),
                    sizeOf(view.dtype));
        auto half = static_cast<uint16_t>(bits);
        values[i] = view.dtype == DType::F16    ? f16ToFloat(half)
                    : view.dtype == DType::BF16 ? bf16ToFloat(half)
                                                : floatWithBits(bits);
      }
      return values;
    }
  ADD_FAILURE() << name;
  return {};
}

/// The rows [begin, end) of a tensor, padded to `size`, in f32.
static std::vector<float> readRows(const TensorStore &store,
                                   const std::string &name, int64_t begin,
                                   int64_t end, int64_t size) {
  const StoredTensor *tensor = store.find(name);
  if (!tensor) {
    ADD_FAILURE() << name;
    return {};
  }
  ShardView view = wholeView(*tensor);
  view.offsets[0] = begin;
  view.sizes[0] = end - begin;
  view.stored[0] = size;
  std::vector<float> values(
      size * elementCount(tensor->shape) / tensor->shape[0], -1);
  TensorReader reader(*tensor, view, DType::F32);
  int64_t count = static_cast<int64_t>(values.size());
  for (int64_t first = 0; first < count; first += 7) // pieces of odd size
    reader.read(first, std::min<int64_t>(7, count - first),
                reinterpret_cast<std::byte *>(values.data() + first));
  return values;
}

static std::vector<float> readWhole(const TensorStore &store,
                                    const std::string &name) {
  int64_t rows = store.find(name)->shape[0];
  return readRows(store, name, 0, rows, rows);
}

/// Rows whose pairs are the halves of heads, with pairs of neighbours: [heads,
/// 2, half, columns] becomes [heads, half, 2, columns].
static std::vector<float> neighbours(const std::vector<float> &halves,
                                     int64_t headDim, int64_t columns) {
  std::vector<float> result;
  int64_t heads = static_cast<int64_t>(halves.size()) / (headDim * columns);
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t pair = 0; pair < headDim / 2; ++pair)
      for (int64_t half = 0; half < 2; ++half)
        for (int64_t c = 0; c < columns; ++c)
          result.push_back(
              halves[((head * 2 + half) * (headDim / 2) + pair) * columns + c]);
  return result;
}

TEST(HuggingFace, NamesAndLayoutsBecomeThoseOfTheArtifact) {
  const char *const shard = "llama3_shards/model-00002-of-00005.safetensors";
  std::vector<float> q =
      reference(shard, "model.layers.0.self_attn.q_proj.weight");
  std::vector<float> k =
      reference(shard, "model.layers.0.self_attn.k_proj.weight");
  auto store = openTensorStore(golden("llama3_shards"));
  EXPECT_EQ(store->tensors().size(), 21u);
  EXPECT_EQ(store->model()->fields.at("head_dim"), "8");
  EXPECT_FALSE(store->state());

  rt::ModelInfo artifact = *store->model();
  store->adaptTo(artifact);
  EXPECT_EQ(readWhole(*store, "layers.0.attention.wq.weight"), q);

  artifact.fields["rope_halves"] = "false";
  artifact.fields["max_seq_len"] = "17"; // changes no weight
  store->adaptTo(artifact);
  std::vector<float> wq = readWhole(*store, "layers.0.attention.wq.weight");
  EXPECT_EQ(wq, neighbours(q, 8, 16));
  EXPECT_NE(wq, q);
  EXPECT_EQ(readWhole(*store, "layers.0.attention.wk.weight"),
            neighbours(k, 8, 16));
  EXPECT_EQ(readWhole(*store, "layers.0.attention.wv.weight"),
            reference("llama3_shards/model-00002-of-00005.safetensors",
                      "model.layers.0.self_attn.v_proj.weight"));

  // A rank's rows, the last ones with padding.
  std::vector<float> rows =
      readRows(*store, "layers.0.attention.wq.weight", 22, 32, 11);
  EXPECT_EQ(std::vector<float>(rows.begin(), rows.begin() + 160),
            std::vector<float>(wq.begin() + 22 * 16, wq.end()));
  EXPECT_EQ(std::vector<float>(rows.begin() + 160, rows.end()),
            std::vector<float>(16, 0.0f));

  // And back.
  artifact.fields["rope_halves"] = "true";
  store->adaptTo(artifact);
  EXPECT_EQ(readWhole(*store, "layers.0.attention.wq.weight"), q);
}

TEST(HuggingFace, NarrowTypesAreWidened) {
  auto half = openTensorStore(golden("code_llama"));
  EXPECT_EQ(half->find("output.weight")->dtype, DType::F16);
  EXPECT_EQ(readWhole(*half, "output.weight"),
            reference("code_llama/model.safetensors", "lm_head.weight"));
  auto tied = openTensorStore(golden("llama3_tied"));
  EXPECT_EQ(tied->find("tok_embeddings.weight")->dtype, DType::BF16);
  EXPECT_EQ(tied->find("output.weight"), nullptr);
  EXPECT_EQ(readWhole(*tied, "norm.weight"),
            reference("llama3_tied/model.safetensors", "model.norm.weight"));
}

TEST(HuggingFace, WhatCannotBeExportedIsNamedWithItsOwner) {
  EXPECT_EQ(messageOf([] { checkExportable(std::nullopt, "'x'"); }),
            "'x' does not state its model, which config.json must describe: "
            "its program was compiled from text");
  std::string said = messageOf([] {
    checkExportable(rt::ModelInfo{"unheard", {}}, "the artifact 'y'");
  });
  EXPECT_EQ(said.rfind("the artifact 'y': no table says how Hugging Face names "
                       "the tensors of the family 'unheard'; known: ",
                       0),
            0u)
      << said;
}

TEST(HuggingFace, AllFieldsThatDifferAreNamed) {
  auto store = openTensorStore(golden("llama2"));
  rt::ModelInfo artifact = *store->model();
  artifact.fields["dim"] = "32";
  artifact.fields["head_dim"] = "0"; // 32 / 4 heads
  artifact.fields["rope_theta"] = "500000.0";
  artifact.fields["tied"] = "true";
  EXPECT_EQ(messageOf([&] { store->adaptTo(artifact); }),
            "'" + golden("llama2") +
                "' is of another model than the artifact: dim is 16 instead of "
                "32, head_dim is 4 instead of 8, rope_theta is 10000 instead "
                "of 500000.0, tied is false instead of true");
  artifact.family = "mlp";
  EXPECT_EQ(messageOf([&] { store->adaptTo(artifact); }),
            "'" + golden("llama2") +
                "' is of another model than the artifact: the family is llama3 "
                "instead of mlp");
}

TEST(HuggingFace, WhatIsTheSameIsNoDifference) {
  rt::ModelInfo model = openTensorStore(golden("llama2"))->model().value();
  rt::ModelInfo other = model;
  other.fields["head_dim"] = "0";
  other.fields["rope_theta"] = "1e4";
  // Without a stretch its limits say nothing.
  other.fields["rope_low"] = "2";
  other.fields["rope_original"] = "16";
  EXPECT_EQ(modelDifference(model, other), "");
  other.fields.erase("dim");
  EXPECT_EQ(messageOf([&] { modelDifference(model, other); }),
            "the model's field 'dim' is missing");
}

TEST(HuggingFace, ConfigsAreReadAsTheyAreWritten) {
  for (const char *name : {"llama2", "llama3_shards", "tied_shards"}) {
    rt::ModelInfo model = openTensorStore(golden(name))->model().value();
    ModelConfig again = readModelConfig(
        writeModelConfig(model, DType::BF16, {{"bos_token_id", "7"}}));
    EXPECT_EQ(again.model.fields, model.fields);
    EXPECT_EQ(again.warnings, std::vector<std::string>());
  }
  rt::ModelInfo mlp{"mlp", {{"dim", "4"}}};
  EXPECT_EQ(messageOf([&] { writeModelConfig(mlp, DType::F32, {}); }),
            "no table says how Hugging Face names the tensors of the family "
            "'mlp'; known: llama3, gpt2, qwen2, qwen3, mistral, gemma2, phi3, "
            "olmo2");
  rt::ModelInfo bad{"llama3", {{"n_layers", "-1"}}};
  EXPECT_EQ(messageOf([&] { writeModelConfig(bad, DType::F32, {}); }),
            "the model's field 'dim' is missing");
}

TEST(HuggingFace, NumbersThatNoModelHasAreRefused) {
  using nlohmann::json;
  std::string text = readWholeFile(golden("llama3_shards/config.json"), "it");
  auto refusal = [&](auto change) {
    json config = json::parse(text);
    // Of the two places of rotary numbers, the one of version 5.
    config.erase("rope_scaling");
    config["rope_parameters"] = {
        {"rope_type", "llama3"},   {"rope_theta", 10000.0},
        {"factor", 8.0},           {"low_freq_factor", 1.0},
        {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 8192}};
    change(config, config["rope_parameters"]);
    return messageOf([&] { readModelConfig(config.dump()); });
  };
  EXPECT_EQ(refusal([](json &, json &) {}), "");
  EXPECT_EQ(refusal([](json &c, json &) { c["rms_norm_eps"] = 0; }), "");
  EXPECT_EQ(refusal([](json &c, json &) { c["rms_norm_eps"] = -1; }),
            "expected a positive number at config.rms_norm_eps, got -1");
  EXPECT_EQ(refusal([](json &c, json &) { c["rope_theta"] = 0; }),
            "expected a positive number at config.rope_theta, got 0");
  EXPECT_EQ(refusal([](json &, json &r) { r["rope_theta"] = -2.5; }),
            "expected a positive number at config.rope_parameters.rope_theta, "
            "got -2.5");
  EXPECT_EQ(refusal([](json &, json &r) { r["factor"] = 0.0; }),
            "expected a positive number at config.rope_parameters.factor, got "
            "0.0");
  EXPECT_EQ(refusal([](json &, json &r) { r["high_freq_factor"] = 1; }),
            "expected more than low_freq_factor at "
            "config.rope_parameters.high_freq_factor");
}
