//===- FamilyTensorsTest.cpp - The tables of tensors of families ----------===//
#include "TemporaryFolder.h"
#include "fsdp/Families/Families.h"
#include "fsdp/Families/ModelConfig.h"
#include "fsdp/Support/AtomicFile.h"
#include "lib/Families/DecoderTensors.h"
#include <map>
#include <nlohmann/json.hpp>
#include <set>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::test;
using nlohmann::json;

namespace {

/// By model_type.
Family tableOf(const std::string &type) {
  static const std::map<std::string, TensorRows (*)()> tables = {
      {"llama", llamaTensors},     {"gpt2", gpt2Tensors},
      {"qwen2", qwen2Tensors},     {"qwen3", qwen3Tensors},
      {"mistral", mistralTensors}, {"gemma2", gemma2Tensors},
      {"phi3", phi3Tensors},       {"olmo2", olmo2Tensors},
  };
  Family family{};
  family.tensors = tables.at(type)();
  return family;
}

rt::ModelInfo modelOf(const json &fields) {
  rt::ModelInfo model;
  for (const auto &[name, value] : fields.items())
    model.fields[name] = value.dump();
  return model;
}

/// Every model of the golden file.
template <typename Use> void forEachModel(Use use) {
  json golden = json::parse(
      readWholeFile(FSDP_GOLDEN_DIR "/hf_tensors.json", "the golden file"));
  EXPECT_EQ(golden["families"].size(), 11u);
  for (const auto &[name, type] : golden["families"].items())
    use(name, tableOf(type), modelOf(golden["fields"][name]), golden[name]);
}

} // namespace

TEST(FamilyTensors, FilesHaveTheTensorsOfTransformers) {
  forEachModel([](const std::string &name, const Family &family,
                  const rt::ModelInfo &model, const json &wanted) {
    bool tied = Fields(model).boolean("tied");
    json have = json::array();
    for (const FileTensor &tensor : fileTensorsOf(family, model))
      if (!tied || !tensor.kind().tiedTo)
        have.push_back({tensor.name, tensor.shape});
    EXPECT_EQ(have, wanted) << name;
  });
}

/// No name twice; rotary rows are heads; what is tied is tied to something.
TEST(FamilyTensors, TablesHoldTogether) {
  forEachModel([](const std::string &name, const Family &family,
                  const rt::ModelInfo &model, const json &) {
    std::set<std::string> names, files;
    for (const FileTensor &tensor : fileTensorsOf(family, model)) {
      EXPECT_TRUE(files.insert(tensor.name).second) << tensor.name;
      for (const ModelTensor &part : tensor.parts) {
        EXPECT_TRUE(names.insert(part.ours).second) << part.ours;
        // What one field removes is a whole tensor of files.
        EXPECT_EQ(part.kind->when, tensor.kind().when) << part.ours;
        auto rows = [&] { rotaryRowsOf(part, model); };
        EXPECT_EQ(part.kind->rotary ? messageOf(rows) : "", "") << name;
        const char *tiedTo = part.kind->tiedTo;
        EXPECT_TRUE(!tiedTo || names.count(tiedTo)) << part.ours;
      }
    }
  });
}

/// Every layout that a family needs, by the tensors that have it.
TEST(FamilyTensors, LayoutsAreThoseOfTransformers) {
  std::map<std::string, std::set<std::string>> turned, rotary;
  forEachModel([&](const std::string &name, const Family &family,
                   const rt::ModelInfo &model, const json &) {
    for (const ModelTensor &tensor : tensorsOf(family, model)) {
      if (tensor.ours.rfind("layers.0.", 0) != 0)
        continue;
      std::string rest = tensor.ours.substr(9);
      if (tensor.kind->isTransposed)
        turned[name].insert(rest);
      if (tensor.kind->rotary)
        rotary[name].insert(rest + " " + tensor.kind->rotary);
    }
  });
  const std::set<std::string> conv = {
      "attention.wq.weight",    "attention.wk.weight",
      "attention.wv.weight",    "attention.wo.weight",
      "feed_forward.w1.weight", "feed_forward.w2.weight"};
  EXPECT_EQ(turned, (std::map<std::string, std::set<std::string>>{
                        {"gpt2", conv}, {"gpt2_output", conv}}));
  const std::set<std::string> weights = {"attention.wq.weight head_dim",
                                         "attention.wk.weight head_dim"};
  auto with = [](std::set<std::string> all,
                 std::initializer_list<const char *> more) {
    for (const char *name : more)
      all.insert(std::string("attention.") + name + " head_dim");
    return all;
  };
  auto biases = with(weights, {"wq.bias", "wk.bias"});
  auto norms = with(weights, {"q_norm.weight", "k_norm.weight"});
  auto both = with(biases, {"q_norm.weight", "k_norm.weight"});
  EXPECT_EQ(rotary, (std::map<std::string, std::set<std::string>>{
                        {"llama", weights},
                        {"qwen2", biases},
                        {"qwen3", both},
                        {"qwen3_plain", norms},
                        {"mistral", weights},
                        {"gemma2", weights},
                        {"gemma2_bias", biases},
                        {"phi3",
                         {"attention.wq.weight rotary_dim",
                          "attention.wk.weight rotary_dim"}},
                        {"olmo2", both}}));
}

TEST(FamilyTensors, PartsThatDoNotFitAreRefused) {
  Family family{};
  family.tensors = {{"a", "x", {"dim", "dim"}}, {"b", "x", {"dim", "ffn_dim"}}};
  rt::ModelInfo model;
  model.fields = {{"n_layers", "1"}, {"dim", "4"}, {"ffn_dim", "5"}};
  EXPECT_EQ(messageOf([&] { fileTensorsOf(family, model); }),
            "'b' and 'a' cannot be rows of one tensor, 'x'");
  family.tensors = {{"a", "x", {"dim"}}};
  family.tensors[0].isTransposed = true;
  EXPECT_EQ(messageOf([&] { fileTensorsOf(family, model); }),
            "'x' is transposed and has 1 dimension(s) instead of 2");
  model.fields = {{"n_layers", "1"}, {"dim", "2000000000"}};
  family.tensors = {{"a", "x", {"dim", "dim"}}};
  EXPECT_EQ(messageOf([&] { fileTensorsOf(family, model); }),
            "a size of the model is beyond 2^56: 'x'");
}

/// Positions that are learned are weights; others are computed.
TEST(FamilyTensors, TheLongestSequenceIsADifferenceWherePositionsAreLearned) {
  Family family = tableOf("gpt2");
  family.name = "learned";
  AddedFamily learned(family);
  family = tableOf("mistral");
  family.name = "computed";
  AddedFamily computed(family);
  for (const char *name : {"learned", "computed"}) {
    rt::ModelInfo model{name, {{"dim", "4"}, {"max_seq_len", "8"}}};
    rt::ModelInfo other = model;
    other.fields["max_seq_len"] = "16";
    EXPECT_EQ(modelDifference(model, other),
              name == std::string("learned") ? "max_seq_len is 8 instead of 16"
                                             : "");
  }
}
