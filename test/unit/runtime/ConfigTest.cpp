//===- ConfigTest.cpp - Run descriptions and overrides --------------------===//
#include "TemporaryFolder.h"
#include "fsdp/Config/RunConfig.h"
#include <set>

using namespace fsdp;
using namespace fsdp::test;

/// Loads `text` as run.toml and returns the message of the error, without the
/// folder.
static std::string loadError(const std::string &text) {
  TemporaryFolder folder;
  std::string path = folder.write("run.toml", text);
  std::string message = messageOf([&] {
    RunConfig config;
    loadConfig(config, path);
  });
  size_t at = message.find(folder.path + "/");
  return at == std::string::npos ? message
                                 : message.erase(at, folder.path.size() + 1);
}

static std::string overrideError(const std::vector<std::string> &args) {
  return messageOf([&] {
    RunConfig config;
    applyConfigOverrides(config, args);
  });
}

TEST(Config, ReadsEveryTypeOfValue) {
  TemporaryFolder folder;
  RunConfig config;
  loadConfig(config, folder.write("run.toml", R"(
[job]
description = "a run"
[model]
dim = 512
tied = true
norm_eps = 1e-6
[training]
max_norm = 2 # an integer is a number
[validation]
enable = false
)"));
  EXPECT_EQ(config.job.description, "a run");
  EXPECT_EQ(config.model.dim, 512);
  EXPECT_EQ(config.model.tied, true);
  EXPECT_EQ(config.model.normEps, 1e-6);
  EXPECT_FALSE(config.model.nHeads.has_value());
  EXPECT_EQ(config.training.maxNorm, 2.0);
  EXPECT_FALSE(config.validation.enable);
  EXPECT_EQ(config.origin.at("model.dim"), folder.file("run.toml") + ":5");
}

TEST(Config, NamesAreUniqueAndDocumented) {
  RunConfig config;
  std::set<std::string> names;
  std::string help = configHelp();
  for (const ConfigOption &option : configOptions(config)) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_FALSE(option.doc.empty()) << option.name;
    EXPECT_NE(help.find("--" + option.name), std::string::npos);
  }
}

// The default of every key is a value that the key accepts.
TEST(Config, DefaultsSurviveTheirOwnText) {
  RunConfig config, other;
  for (const ConfigOption &option : configOptions(config))
    if (option.text() != "unset")
      setConfigOption(other, option.name, option.text(), "here");
  EXPECT_EQ(compiledSettings(config), compiledSettings(other));
}

TEST(Config, UnknownKeysGetASuggestion) {
  EXPECT_EQ(loadError("[training]\nstepz = 3\n"),
            "run.toml:2: unknown key 'training.stepz'; did you mean "
            "'training.steps'?");
  // The key exists, in another section.
  EXPECT_EQ(loadError("[training]\nlr = 3\n"),
            "run.toml:2: unknown key 'training.lr'; did you mean "
            "'optimizer.lr'?");
  EXPECT_EQ(loadError("[training.something]\nsteps = 3\n"),
            "run.toml:1: unknown key 'training.something'");
}

TEST(Config, UnknownSectionsGetASuggestion) {
  EXPECT_EQ(loadError("[trainin]\nsteps = 3\n"),
            "run.toml:1: unknown section [trainin]; did you mean [training]?");
  EXPECT_EQ(loadError("steps = 3\n"),
            "run.toml:1: 'steps' stands outside a section; keys belong under "
            "[section]");
}

TEST(Config, WrongTypesNameKeyLineAndType) {
  EXPECT_EQ(loadError("[training]\n\nsteps = \"3\"\n"),
            "run.toml:3: training.steps: expected an integer, got '3'");
  EXPECT_EQ(loadError("[training]\nsteps = 1.5\n"),
            "run.toml:2: training.steps: expected an integer, got 1.5");
  EXPECT_EQ(loadError("[validation]\nenable = 1\n"),
            "run.toml:2: validation.enable: expected a boolean, got 1");
  EXPECT_EQ(loadError("[optimizer]\nlr = [1]\n"),
            "run.toml:2: optimizer.lr: expected a number, got a value of type "
            "array");
  EXPECT_EQ(loadError("[compile]\nbucket = \"blocks\"\n"),
            "run.toml:2: compile.bucket: expected one of none, block, got "
            "'blocks'");
}

TEST(Config, BoundsAreChecked) {
  EXPECT_EQ(loadError("[training]\nsteps = 0\n"),
            "run.toml:2: training.steps: expected at least 1, got 0");
  EXPECT_EQ(loadError("[validation]\nfraction = 1.5\n"),
            "run.toml:2: validation.fraction: expected at most 0.9, got 1.5");
  EXPECT_EQ(loadError("[optimizer]\nlr = nan\n").substr(0, 24),
            "run.toml:2: optimizer.lr");
}

TEST(Config, SyntaxErrorsNameTheLine) {
  EXPECT_EQ(loadError("[training]\nsteps = \n").substr(0, 12), "run.toml:2: ");
  EXPECT_EQ(messageOf([] {
              RunConfig config;
              loadConfig(config, "/nowhere/run.toml");
            }),
            "cannot read the run description '/nowhere/run.toml'");
}

TEST(Config, OverridesWinAndLeaveOtherArguments) {
  RunConfig config;
  std::vector<std::string> rest = applyConfigOverrides(
      config, {"artifact", "--training.steps", "7", "-n", "2",
               "--optimizer.lr=1e-3", "--sample.prompt", "--dashes"});
  EXPECT_EQ(rest, (std::vector<std::string>{"artifact", "-n", "2"}));
  EXPECT_EQ(config.training.steps, 7);
  EXPECT_EQ(config.optimizer.lr, 1e-3);
  EXPECT_EQ(config.sample.prompt, "--dashes");
  EXPECT_EQ(config.origin.at("training.steps"), "command line");
}

TEST(Config, WrongOverridesAreErrors) {
  EXPECT_EQ(overrideError({"--training.step", "7"}),
            "command line: unknown key 'training.step'; did you mean "
            "'training.steps'?");
  EXPECT_EQ(overrideError({"--training.steps", "7x"}),
            "command line: training.steps: expected an integer, got '7x'");
  EXPECT_EQ(overrideError({"--training.steps"}),
            "command line: --training.steps needs a value");
  EXPECT_EQ(overrideError({"--validation.enable=yes"}),
            "command line: validation.enable: expected a boolean, got 'yes'");
}

TEST(Config, TheMeshIsResolvedOrImpossible) {
  RunConfig config;
  config.lrScheduler.warmupSteps = 2;
  config.parallelism.dataParallelReplicateDegree = 2;
  resolveConfig(config, 6);
  EXPECT_EQ(config.parallelism.dataParallelShardDegree, 3);
  EXPECT_EQ(messageOf([&] { resolveConfig(config, 4); }),
            "impossible mesh: parallelism.data_parallel_replicate_degree = 2 "
            "times parallelism.data_parallel_shard_degree = 3 is not the "
            "number of ranks, 4");
  config.parallelism.dataParallelShardDegree = -1;
  EXPECT_EQ(messageOf([&] { resolveConfig(config, 5); }),
            "impossible mesh: parallelism.data_parallel_replicate_degree = 2 "
            "does not divide 5 ranks");
}

TEST(Config, AutoPrecisionIsSaidInOneLine) {
  RunConfig config;
  std::string line = resolveConfig(config, 1);
  EXPECT_EQ(line.find("precision: "), 0u);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(config.training.mixedPrecisionParam,
            hasNativeBf16Matmul() ? "bfloat16" : "float32");
  EXPECT_EQ(resolveConfig(config, 1), "");
}

TEST(Config, TheScheduleMustFitTheSteps) {
  RunConfig config;
  config.training.steps = 100;
  EXPECT_EQ(messageOf([&] { resolveConfig(config, 1); }),
            "lr_scheduler.warmup_steps = 200 exceeds training.steps = 100");
}

// What may change without compiling again is not among the settings.
TEST(Config, CompiledSettingsLeaveOutRunTimeKeys) {
  RunConfig config;
  config.model.dim = 64;
  auto settings = compiledSettings(config);
  EXPECT_EQ(settings.at("model.dim"), "64");
  EXPECT_EQ(settings.at("optimizer.beta2"), "0.95");
  EXPECT_EQ(settings.count("model.n_heads"), 0u);
  EXPECT_EQ(settings.count("optimizer.lr"), 0u);
  EXPECT_EQ(settings.count("training.seed"), 0u);
}
