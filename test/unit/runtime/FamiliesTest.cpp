//===- FamiliesTest.cpp - Tables of families beside transformers ----------===//
//
// test/golden/hf_defaults.json has what the configuration classes of
// transformers 5.23 say when nothing is set.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Families/Families.h"
#include "fsdp/Families/ModelConfig.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"
#include <fstream>
#include <gtest/gtest.h>

namespace fsdp::checkpoint {
namespace {

using nlohmann::json;

json defaultsOfTransformers() {
  std::ifstream file(std::string(FSDP_GOLDEN_DIR) + "/hf_defaults.json");
  return json::parse(file);
}

/// The fields of a config.json, or what is said of it.
rt::ModelInfo modelOf(const json &config) {
  return readModelConfig(config.dump()).model;
}

std::string refusal(const json &config) {
  try {
    readModelConfig(config.dump());
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(Families, EveryFamilyOfTheTablesHasItsDefaults) {
  json defaults = defaultsOfTransformers();
  for (const Family &family : families())
    EXPECT_TRUE(defaults.contains(family.modelType)) << family.modelType;
}

TEST(Families, KeysThatAreLeftOutHaveTransformersDefaults) {
  int compared = 0;
  json all = defaultsOfTransformers();
  for (const auto &[type, defaults] : all.items()) {
    rt::ModelInfo whole = modelOf(defaults);
    for (const auto &[key, value] : defaults.items()) {
      json config = defaults;
      config.erase(key);
      std::string why = refusal(config);
      if (why == "missing value at config." + key)
        continue;
      EXPECT_EQ(why, "") << type << "." << key;
      if (!why.empty())
        continue;
      rt::ModelInfo model = modelOf(config);
      EXPECT_EQ(modelDifference(model, whole), "") << type << "." << key;
      EXPECT_EQ(model.fields["max_seq_len"], whole.fields["max_seq_len"]);
      ++compared;
    }
  }
  EXPECT_GT(compared, 150);
}

TEST(Families, WhatIsWrittenReadsAsWhatWasRead) {
  json all = defaultsOfTransformers();
  for (const auto &[type, defaults] : all.items()) {
    ModelConfig config = readModelConfig(defaults.dump());
    EXPECT_TRUE(config.warnings.empty() || type == "gpt2") << type;
    ModelConfig again =
        readModelConfig(writeModelConfig(config.model, rt::DType::F32, {}));
    EXPECT_EQ(again.model.fields, config.model.fields) << type;
    EXPECT_TRUE(again.warnings.empty()) << type;
  }
}

TEST(Families, RatesOfDropoutAreWarnedAbout) {
  ModelConfig config = readModelConfig(defaultsOfTransformers()["gpt2"].dump());
  ASSERT_EQ(config.warnings.size(), 3u);
  EXPECT_EQ(config.warnings[0], "config.resid_pdrop is 0.1, and training goes "
                                "without dropout");
}

TEST(Families, WindowsOfLayers) {
  json qwen = defaultsOfTransformers()["qwen3"];
  qwen["num_hidden_layers"] = 4;
  qwen.erase("layer_types");
  auto windows = [](const json &config) {
    std::map<std::string, std::string> fields = modelOf(config).fields;
    return fields["window"] + " " + fields["window_layers"];
  };
  EXPECT_EQ(windows(qwen), " ");
  qwen["use_sliding_window"] = true;
  qwen["sliding_window"] = 8;
  qwen["max_window_layers"] = 3;
  EXPECT_EQ(windows(qwen), "8 from 3");
  qwen["max_window_layers"] = 4;
  EXPECT_EQ(windows(qwen), " ");
  const char *const sliding = "sliding_attention", *full = "full_attention";
  qwen["layer_types"] = {sliding, full, full, sliding};
  EXPECT_EQ(windows(qwen), "8 0 3");
  qwen["layer_types"] = {sliding, full, sliding, full};
  EXPECT_EQ(windows(qwen), "8 even");
  qwen["layer_types"] = {sliding, full, full};
  EXPECT_EQ(refusal(qwen), "expected 4 names, one for each layer, at "
                           "config.layer_types, got 3");
  qwen["layer_types"] = {sliding, full, full, "chunked_attention"};
  EXPECT_EQ(refusal(qwen),
            "expected \"full_attention\" or \"sliding_attention\" at "
            "config.layer_types[3], got \"chunked_attention\"");
  qwen["layer_types"] = {full, full, full, sliding};
  qwen["use_sliding_window"] = false;
  EXPECT_EQ(refusal(qwen), "expected \"full_attention\", as the file has no "
                           "sliding_window in use, at config.layer_types[3]");
}

TEST(Families, FieldsThatChangeWhatIsComputedAreRefused) {
  json defaults = defaultsOfTransformers();
  auto with = [&](const char *type, const char *key, const json &value) {
    json config = defaults[type];
    config[key] = value;
    return refusal(config);
  };
  EXPECT_EQ(with("gpt2", "activation_function", "tanh"),
            "expected one of \"gelu_new\", \"silu\", \"swish\", "
            "\"gelu_pytorch_tanh\", \"gelu\", \"relu\" at "
            "config.activation_function, got \"tanh\"");
  EXPECT_EQ(with("gpt2", "hidden_size", 64),
            "expected null (GPT-2 has it as n_embd) at config.hidden_size, got "
            "64");
  EXPECT_EQ(with("qwen2", "head_dim", 64),
            "expected null (heads have hidden_size / num_attention_heads "
            "elements) at config.head_dim, got 64");
  EXPECT_EQ(with("gemma2", "use_bidirectional_attention", true),
            "expected null (a token sees none after it) at "
            "config.use_bidirectional_attention, got true");
  EXPECT_EQ(with("gemma2", "sliding_window", nullptr),
            "expected \"full_attention\", as the file has no sliding_window in "
            "use, at config.layer_types[0]");
  EXPECT_EQ(with("phi3", "rope_parameters",
                 {{"rope_type", "longrope"},
                  {"short_factor", {1, 2}},
                  {"long_factor", {1, 2}}}),
            "expected 48 numbers, one for each rotary pair, at "
            "config.rope_parameters.short_factor, got 2");
  EXPECT_EQ(with("phi3", "rope_parameters", {{"partial_rotary_factor", 0.01}}),
            "expected a part of a head of 96 elements that is even at "
            "config.rope_parameters.partial_rotary_factor, got 0.01");
  EXPECT_EQ(with("olmo2", "rope_parameters", {{"rope_type", "dynamic"}}),
            "expected one of \"default\", \"llama3\", \"linear\", \"yarn\", "
            "\"longrope\" at config.rope_parameters.rope_type, got "
            "\"dynamic\"");
}

TEST(Families, EveryKeyThatATableRefusesNamesItself) {
  json all = defaultsOfTransformers();
  int refused = 0;
  for (const Family &family : families())
    for (const ConfigKey &key : family.keys) {
      if (key.role != KeyRole::Fixed)
        continue;
      json config = all[family.modelType];
      config[key.name] = "another";
      std::string why = refusal(config);
      EXPECT_NE(why.find("at config." + std::string(key.name) + ", got"),
                std::string::npos)
          << family.modelType << "." << key.name << ": " << why;
      EXPECT_NE(why.find(key.why), std::string::npos) << why;
      ++refused;
    }
  EXPECT_GT(refused, 60);
}

TEST(Families, EveryFieldHasATypeAndBounds) {
  json all = defaultsOfTransformers();
  int refused = 0;
  for (const Family &family : families())
    for (const ConfigField &field : family.fields) {
      using Type = ConfigField::Type;
      std::vector<json> wrong = {json::array({1}), json::object()};
      if (field.type != Type::Name)
        wrong.push_back("another");
      if (field.type == Type::Integer)
        wrong.insert(wrong.end(), {json(0), json(-1), json(1.5), json(1e300)});
      for (const json &value : wrong) {
        json config = all[family.modelType];
        config[field.key] = value;
        std::string why = refusal(config);
        EXPECT_NE(why.find("at config." + std::string(field.key)),
                  std::string::npos)
            << family.modelType << "." << field.key << " = " << value << ": "
            << why;
        ++refused;
      }
    }
  EXPECT_GT(refused, 300);
}

} // namespace
} // namespace fsdp::checkpoint
