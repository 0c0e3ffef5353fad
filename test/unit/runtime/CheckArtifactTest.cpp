//===- CheckArtifactTest.cpp - Whether an artifact is what a run wants ----===//
#include "runtime/train/CheckArtifact.h"
#include "TemporaryFolder.h"
#include "fsdp/Config/PlacementPolicy.h"
#include "fsdp/Support/AtomicFile.h"
#include "runtime/checkpoint/huggingface/HuggingFace.h"

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

namespace {

const char *const kConfig = R"({"model_type": "llama", "hidden_size": 64,
  "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 128,
  "vocab_size": 256})";

class CheckArtifact : public testing::Test {
protected:
  /// What fsdp-compile says of the settings.
  void compile() {
    manifest = {};
    manifest.config = compiledSettings(config);
    const std::string &policy = config.parallelism.placementPolicy;
    if (!policy.empty())
      manifest.policy = policyRules(loadPolicy(policy));
    std::optional<ModelFile> file = modelFile(config);
    if (!file)
      return;
    manifest.modelFrom = file->key;
    manifest.model =
        checkpoint::readModelConfig(readWholeFile(file->path, "")).model;
    for (const auto &[name, value] : manifest.config)
      if (manifest.model->fields.count(name.substr(name.find('.') + 1)))
        manifest.model->fields[name.substr(name.find('.') + 1)] = value;
  }

  /// Sets a key on the command line.
  void set(const std::string &name, const std::string &value) {
    setConfigOption(config, name, value, "command line");
  }

  /// What is wrong, or what is warned of.
  std::string check() {
    std::string text;
    std::string problem = messageOf([&] {
      for (const std::string &warning : checkArtifact(manifest, config))
        text += warning + "\n";
    });
    return problem + text;
  }

  TemporaryFolder folder;
  RunConfig config;
  Manifest manifest;
};

} // namespace

TEST_F(CheckArtifact, PoliciesAreComparedByTheirRules) {
  const char *const key = "parallelism.placement_policy";
  std::string path =
      folder.write("policy.toml", "[stream]\n"
                                  "sequence = \"tp\"\n"
                                  "[[parameters]]\n"
                                  "match = \"layers.0.*\"\n"
                                  "frozen = true\n"
                                  "shard = { tp = 0, dp = 1 }\n");
  set(key, path);
  compile();
  EXPECT_EQ(check(), "");
  // Another layout in another place.
  std::string moved = folder.write(
      "moved.toml", "# The same.\n[[parameters]]\nfrozen=true\n"
                    "shard={ dp = 1, tp = 0 }\nmatch='layers.0.*'\n\n"
                    "[stream]\nloss = 'tp'\nsequence = 'tp'\n");
  set(key, moved);
  EXPECT_EQ(check(), "");
  // Another rule in the same place, whoever said the place.
  const std::string rule =
      "stale artifact: parallelism.placement_policy: [[parameters]] 1 is "
      "{ match = \"layers.0.*\", shard = { dp = 1, tp = 0 }, frozen = true } "
      "in "
      "the artifact, the run wants ";
  set(key, path);
  folder.write("policy.toml", "[stream]\nsequence = \"tp\"\n[[parameters]]\n"
                              "match = \"layers.[01].*\"\nfrozen = true\n");
  for (bool isSaid : {true, false}) {
    EXPECT_EQ(check(), rule + "{ match = \"layers.[01].*\", frozen = true } (" +
                           path + ":3); compile it again");
    if (isSaid)
      config.origin.clear();
  }
  // What it matches is shown as text.
  folder.write("policy.toml", "[stream]\nsequence = \"tp\"\n[[parameters]]\n"
                              "match = \"a\\u0000b\\nfsdp-run: c\"\n");
  EXPECT_EQ(check(), rule + "{ match = \"a\\x00b\\nfsdp-run: c\" } (" + path +
                         ":3); compile it again");
  folder.write("policy.toml", "[stream]\nsequence = \"tp\"\n");
  EXPECT_EQ(check(), rule + "unset (" + path + "); compile it again");
  folder.write("policy.toml", "[[rules]]\n");
  EXPECT_EQ(check(), path + ":1: a policy has [stream] and [[parameters]], not "
                            "'rules'");
  set(key, "");
  EXPECT_EQ(check(), "stale artifact: parallelism.placement_policy is " + path +
                         " in the artifact, the run wants \"\" (command "
                         "line); compile it again");
}

TEST_F(CheckArtifact, AFileThatIsNotThereIsTheArtifacts) {
  std::string policy = folder.write("policy.toml", "[stream]\n");
  set("parallelism.placement_policy", policy);
  std::filesystem::create_directory(folder.file("model"));
  folder.write("model/config.json", kConfig);
  set("model.hf_assets_path", folder.file("model"));
  compile();
  std::filesystem::remove_all(folder.file("model"));
  std::filesystem::remove(policy);
  EXPECT_EQ(check(),
            "command line: parallelism.placement_policy: there is no '" +
                policy +
                "'; the run takes what the artifact was compiled with\n" +
                "command line: model.hf_assets_path: there is no '" +
                folder.file("model/config.json") +
                "'; the run takes what the artifact was compiled with\n");
  // What the file would not change still counts.
  set("model.n_layers", "2");
  EXPECT_EQ(check(), "stale artifact: model.n_layers is unset in the artifact, "
                     "the run wants 2 (command line); compile it again");
  config.model.nLayers.reset();
  config.origin.clear();
  EXPECT_EQ(check(), "");
  // An artifact that was made from no file says nothing of one.
  config = {};
  set("model.flavor", "debugmodel");
  compile();
  set("model.flavor", "./smal/config.json");
  EXPECT_EQ(check(), "stale artifact: model.flavor is debugmodel in the "
                     "artifact, the run wants ./smal/config.json (command "
                     "line); compile it again");
}

TEST_F(CheckArtifact, ModelsAreComparedByWhatIsTakenOfTheirFile) {
  for (const char *name : {"model", "moved", "tokenizer"})
    std::filesystem::create_directory(folder.file(name));
  std::string path = folder.write("model/config.json", kConfig);
  set("model.hf_assets_path", folder.file("model"));
  compile();
  EXPECT_EQ(check(), "");
  // Another layout, a key of which nothing is taken, another place.
  std::string text = kConfig;
  std::replace(text.begin(), text.end(), '\n', ' ');
  folder.write("moved/config.json", "{\"made_by\": 1," + text.substr(1));
  set("model.hf_assets_path", folder.file("moved"));
  EXPECT_EQ(check(), "");
  set("model.hf_assets_path", "");
  set("model.flavor", folder.file("moved/config.json"));
  EXPECT_EQ(check(), "");
  set("model.flavor", folder.file("moved"));
  EXPECT_EQ(check(), "");
  // What is left out there, an export says.
  std::string exported = text;
  exported.insert(1, "\"head_dim\": 16, \"num_key_value_heads\": 4, ");
  folder.write("moved/config.json", exported);
  EXPECT_EQ(check(), "");
  exported.replace(exported.find("16"), 2, "32");
  folder.write("moved/config.json", exported);
  EXPECT_EQ(check(), "stale artifact: model.head_dim is 16 in the artifact, "
                     "the run wants 32 (" +
                         folder.file("moved/config.json") +
                         "); compile it again");
  // Another model in the same place, and the same by a setting over it.
  text.replace(text.find("\"num_hidden_layers\": 4"), 22,
               "\"num_hidden_layers\": 2");
  folder.write("model/config.json", text);
  set("model.flavor", "debugmodel");
  set("model.hf_assets_path", folder.file("model"));
  EXPECT_EQ(check(), "stale artifact: model.n_layers is 4 in the artifact, the "
                     "run wants 2 (" +
                         path + "); compile it again");
  set("model.n_layers", "4");
  EXPECT_EQ(check(), "");
  set("model.n_layers", "3");
  EXPECT_EQ(check(), "stale artifact: model.n_layers is 4 in the artifact, the "
                     "run wants 3 (command line); compile it again");
  config.model.nLayers.reset();
  // A tokenizer has no model: then it is that of the flavor.
  set("model.hf_assets_path", folder.file("tokenizer"));
  EXPECT_EQ(check(),
            "stale artifact: model.hf_assets_path is " + folder.file("model") +
                " in the artifact, the run wants " + folder.file("tokenizer") +
                " (command line); compile it again");
  compile();
  set("model.hf_assets_path", "");
  EXPECT_EQ(check(), "");
  set("model.flavor", "8B");
  EXPECT_EQ(check(), "stale artifact: model.flavor is debugmodel in the "
                     "artifact, the run wants 8B (command line); compile it "
                     "again");
}
