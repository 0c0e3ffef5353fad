//===- TorchtitanKeysTest.cpp - What becomes of torchtitan's keys ---------===//
#include "TemporaryFolder.h"
#include "fsdp/Config/RunConfig.h"
#include <set>

using namespace fsdp;
using namespace fsdp::test;

using Key = TorchtitanKey;

/// What is wrong with a file that says `name` = `literal`, with its place cut
/// off, and with what `more` says on the command line.
static std::string errorOf(const std::string &name, const std::string &literal,
                           const std::vector<std::string> &more = {}) {
  size_t dot = name.rfind('.');
  TemporaryFolder folder;
  std::string path =
      folder.write("run.toml", "[" + name.substr(0, dot) + "]\n" +
                                   name.substr(dot + 1) + " = " + literal);
  RunConfig config;
  ConfigErrors errors;
  loadConfig(config, path, errors);
  applyConfigOverrides(config, more, errors);
  resolveConfig(config, 1, errors);
  std::string message = messageOf([&] { errors.throwIfAny(); });
  std::string place = path + ":2: ";
  return message.rfind(place, 0) == 0 ? message.substr(place.size()) : message;
}

/// Values of every type that stand in no row.
static const char *const kStrange[] = {"\"strange\"", "-77", "[\"strange\"]",
                                       "7.5"};

/// The message for a value that does not pass.
static std::string refusal(const Key &key, const std::string &literal) {
  std::string text =
      key.name + " = " + literal + " is not supported (" + key.meaning + "); ";
  if (!key.instead.empty())
    text += "use " + key.instead + ", and ";
  text += "leave the key out";
  for (size_t i = 0; i < key.values.size(); ++i)
    text += (i == 0 ? " or set it to " : " or ") + key.values[i];
  return text;
}

TEST(TorchtitanKeys, AreOursOrNotAsTheTableSays) {
  RunConfig config;
  std::set<std::string> ours, names;
  for (const ConfigOption &option : configOptions(config)) {
    ours.insert(option.name);
    EXPECT_EQ(findTorchtitanKey(option.name) != nullptr,
              option.torchtitan.has_value())
        << option.name;
  }
  for (const Key &key : torchtitanKeys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_EQ(ours.count(key.name), key.fate == Key::Works) << key.name;
    EXPECT_TRUE(key.sets.empty() || ours.count(key.sets)) << key.name;
    EXPECT_EQ(findTorchtitanKey(key.name), &key);
  }
  EXPECT_EQ(findTorchtitanKey("compile.loss_chunks"), nullptr); // ours alone
}

TEST(TorchtitanKeys, AnyValuePassesAndChangesNothing) {
  for (const Key &key : torchtitanKeys()) {
    if (key.fate != Key::Any)
      continue;
    for (const char *value : kStrange)
      EXPECT_EQ(errorOf(key.name, value), "");
    RunConfig config, other;
    applyConfigOverrides(config, {"--" + key.name, "strange"});
    EXPECT_EQ(compiledSettings(config), compiledSettings(other));
    EXPECT_TRUE(config.origin.empty());
  }
}

TEST(TorchtitanKeys, ValuesThatSayWhatIsSoPassAndOthersAreErrors) {
  for (const Key &key : torchtitanKeys()) {
    if (key.fate != Key::Only)
      continue;
    for (const std::string &value : key.values) {
      EXPECT_EQ(errorOf(key.name, value), "");
      // The command line has no quotes.
      std::string bare =
          value[0] == '"' ? value.substr(1, value.size() - 2) : value;
      EXPECT_EQ(errorOf("training.steps", "1", {"--" + key.name + "=" + bare}),
                "");
    }
    std::string ending = key.feature.empty() ? ""
                                             : "; with " + key.feature +
                                                   " = false any value passes";
    for (const char *value : kStrange) {
      EXPECT_EQ(errorOf(key.name, value), refusal(key, value) + ending);
      // A string is no boolean and no number.
      if (!key.values.empty() && key.values[0][0] != '"') {
        std::string text = '"' + key.values[0] + '"';
        EXPECT_EQ(errorOf(key.name, text), refusal(key, text) + ending);
      }
    }
  }
}

TEST(TorchtitanKeys, MatterOnlyWithTheirFeature) {
  int count = 0;
  for (const Key &key : torchtitanKeys()) {
    if (key.feature.empty())
      continue;
    ++count;
    for (const char *value : kStrange)
      EXPECT_EQ(errorOf(key.name, value, {"--" + key.feature + "=false"}), "");
  }
  EXPECT_EQ(count, 5);
  // What is said last counts.
  EXPECT_EQ(errorOf("validation.steps", "10", {"--validation.steps=-1"}), "");
}

// Some values are those of a key of ours.
TEST(TorchtitanKeys, SetKeysOfOurs) {
  const std::string mode = "activation_checkpoint.mode";
  for (const char *value : {"none", "full"}) {
    RunConfig config;
    applyConfigOverrides(config, {"--" + mode, value});
    EXPECT_EQ(config.compile.recompute, value);
  }
  EXPECT_EQ(errorOf(mode, "\"selective\""),
            "activation_checkpoint.mode = \"selective\" is not supported (the "
            "same as compile.recompute); use compile.recompute = \"free\", "
            "which recomputes the values that take almost no time, "
            "\"selective\" for selective_ac_option = \"op\" or \"every-2\" for "
            "\"2\", and leave the key out or set it to \"none\" or \"full\"");
  // Neither a command line nor a file may contradict itself by two keys; of
  // one key on the command line the last value counts.
  auto commandLine = [](const std::vector<std::string> &args) {
    RunConfig config;
    std::string problem =
        messageOf([&] { applyConfigOverrides(config, args); });
    return problem.empty() ? config.compile.recompute : problem;
  };
  const std::string full = "--" + mode + "=full";
  const std::string none = "--" + mode + "=none";
  EXPECT_EQ(commandLine({none, full}), "full");
  EXPECT_EQ(commandLine({full, "--compile.recompute=full", full}), "full");
  EXPECT_EQ(commandLine({full, "--compile.recompute=free"}),
            "command line: compile.recompute: 'free' contradicts 'full' of --" +
                mode + "; leave one of them out");
  EXPECT_EQ(commandLine({"--compile.recompute=free", full}),
            "command line: compile.recompute: 'full' contradicts 'free' of "
            "--compile.recompute; leave one of them out");
  EXPECT_EQ(errorOf(mode, "\"full\"", {"--compile.recompute=free"}), "");
  EXPECT_EQ(errorOf(mode, "\"full\"\n[compile]\nrecompute = \"full\""), "");
  EXPECT_NE(errorOf(mode, "\"full\"\n[compile]\nrecompute = \"free\"")
                .find("run.toml:4: compile.recompute: 'free' contradicts "
                      "'full' at "),
            std::string::npos);
}

TEST(TorchtitanKeys, WhatIsRefusedNamesWhatToUse) {
  for (const Key &key : torchtitanKeys()) {
    if (key.fate != Key::Refused)
      continue;
    EXPECT_NE(key.instead, "") << key.name;
    for (const char *value : kStrange)
      EXPECT_EQ(errorOf(key.name, value), refusal(key, value));
  }
}

// torchtitan's own defaults are values of ours, but for its data.
TEST(TorchtitanKeys, DefaultsOfKeysThatWorkAreAccepted) {
  for (const Key &key : torchtitanKeys())
    if (key.fate == Key::Works && !key.standard.empty() &&
        key.standard != "unset" && key.name != "training.dataset") {
      EXPECT_EQ(errorOf(key.name, key.standard), "");
    }
  EXPECT_EQ(errorOf("training.dataset", "\"c4_test\""),
            "training.dataset: expected one of bytes, ids, tokens, megatron, "
            "llmc, got 'c4_test'; use training.dataset_path, a file of text or "
            "of token ids");
}

// A remedy that begins with the name of a key names one that there is.
TEST(TorchtitanKeys, RemediesAreKeysOfOurs) {
  RunConfig config;
  std::set<std::string> ours;
  for (const ConfigOption &option : configOptions(config))
    ours.insert(option.name);
  for (const Key &key : torchtitanKeys()) {
    std::string first = key.instead.substr(0, key.instead.find_first_of(" ,"));
    if (first.find('.') != std::string::npos) {
      EXPECT_EQ(ours.count(first), 1u) << key.name << ": " << first;
    }
  }
}

TEST(TorchtitanKeys, MessagesReadWell) {
  EXPECT_EQ(
      errorOf("parallelism.context_parallel_degree", "2"),
      "parallelism.context_parallel_degree = 2 is not supported (there is no "
      "context parallelism); use parallelism.tensor_parallel_degree, which "
      "splits activations along the sequence between layers, and leave the key "
      "out or set it to 1");
  EXPECT_EQ(errorOf("model.converters", "[\"float8\"]"),
            "model.converters = [\"float8\"] is not supported (there is no "
            "Float8 and no MX); leave the key out or set it to []");
  EXPECT_EQ(errorOf("training.batch_size", "8"),
            "training.batch_size = 8 is not supported (an earlier name); use "
            "training.local_batch_size, and leave the key out");
  EXPECT_EQ(errorOf("checkpoint.enabel", "false"),
            "unknown key 'checkpoint.enabel'; did you mean "
            "'checkpoint.enable'?");
  // Where an earlier torchtitan had it.
  EXPECT_EQ(errorOf("experimental.pipeline_parallel_degree", "2"),
            "unknown key 'experimental.pipeline_parallel_degree'; did you mean "
            "'parallelism.pipeline_parallel_degree'?");
  EXPECT_EQ(messageOf([] {
              RunConfig config;
              applyConfigOverrides(config, {"--debug.seed", "7"});
            }),
            "command line: debug.seed = 7 is not supported (the seed belongs "
            "to the training); use training.seed, and leave the key out");
}
