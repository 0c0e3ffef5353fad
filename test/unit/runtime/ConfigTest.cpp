//===- ConfigTest.cpp - Run descriptions and overrides --------------------===//
#include "TemporaryFolder.h"
#include "fsdp/Config/RunConfig.h"

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

// Sizes are bounded before anything is computed from them.
TEST(Config, SizesBeyondAnyMachine) {
  EXPECT_EQ(overrideError({"--training.local_batch_size", "1073741824"}),
            "command line: training.local_batch_size: expected at most "
            "16777216, got 1073741824");
  EXPECT_EQ(overrideError({"--model.n_layers", "10001"}),
            "command line: model.n_layers: expected at most 10000, got 10001");
  for (const char *key :
       {"model.dim", "model.n_layers", "model.n_heads", "model.n_kv_heads",
        "model.ffn_dim", "model.vocab_size", "training.local_batch_size",
        "training.seq_len", "parallelism.data_parallel_replicate_degree",
        "parallelism.data_parallel_shard_degree"})
    EXPECT_NE(overrideError({"--" + std::string(key), "4294967296"}), "")
        << key;
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

// A pipeline takes keys by their names, and what is no key has another.
TEST(Config, OptionsOfAPipelineAreKeysOrNone) {
  RunConfig config;
  CompileOptions options;
  std::map<std::string, ConfigOption> keys;
  for (const ConfigOption &key : configOptions(config))
    keys.emplace(key.name, key);
  std::set<std::string> names;
  for (const ConfigOption &option : pipelineOptions(options)) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    auto key = keys.find(option.name);
    EXPECT_EQ(key != keys.end(), option.isCompiled()) << option.name;
    if (key != keys.end()) {
      EXPECT_EQ(key->second.text(), option.text());
    }
    setOption(option, option.text(), "here");
  }
  EXPECT_EQ(names.count("compile.recompute"), 1u);
  EXPECT_EQ(names.count("compile.cpu"), 0u);
  EXPECT_EQ(names.count("optimizer.lr"), 0u);
  setOption(pipelineOptions(options).front(), "dp_shard=2", "here");
  EXPECT_EQ(options.pipeline.mesh, "dp_shard=2");
}

TEST(Config, SpellingsAreReadAsTheyArePrinted) {
  for (const Spelling<ShardMode> &row : Spellings<ShardMode>::all)
    EXPECT_EQ(readSpelling<ShardMode>(spelled(row.value)), row.value);
  EXPECT_EQ(readSpelling<ShardMode>("half"), std::nullopt);
  // Every enumeration of the table: what help offers is what is taken.
  RunConfig config;
  int choices = 0;
  for (const ConfigOption &option : configOptions(config)) {
    if (!std::holds_alternative<ChoicePlace>(option.place))
      continue;
    ++choices;
    for (const std::string &name : option.choices) {
      setOption(option, name, "here");
      EXPECT_EQ(option.text(), name) << option.name;
    }
  }
  EXPECT_GE(choices, 24);
}

TEST(Config, NamesOfThePastAreReadAndNotPrinted) {
  TemporaryFolder folder;
  RunConfig config;
  loadConfig(config,
             folder.write("run.toml", "[compile]\nattention = \"auto\"\n"));
  EXPECT_EQ(config.compile.attention, AttentionKernel::Exact);
  EXPECT_EQ(compiledSettings(config).at("compile.attention"), "exact");
  EXPECT_EQ(
      loadError("[compile]\nattention = \"slow\"\n"),
      "run.toml:2: compile.attention: expected one of exact, fast, plain, got "
      "'slow'");
}

TEST(Config, UnknownKeysGetASuggestion) {
  EXPECT_EQ(loadError("[training]\nstepz = 3\n"),
            "run.toml:2: unknown key 'training.stepz'; did you mean "
            "'training.steps'?");
  // The key exists, in another section.
  EXPECT_EQ(loadError("[training]\nlr = 3\n"),
            "run.toml:2: unknown key 'training.lr'; did you mean "
            "'optimizer.lr'?");
  EXPECT_EQ(loadError("[training.unheard_of]\nsteps = 3\n"),
            "run.toml:1: unknown key 'training.unheard_of'");
  // A file writes no lines of its own into a message.
  EXPECT_EQ(loadError("[training]\n\"a\\nfsdp-run: b\\u0000\" = 3\n"),
            "run.toml:2: unknown key 'training.a\\nfsdp-run: b\\x00'");
}

TEST(Config, UnknownSectionsGetASuggestion) {
  EXPECT_EQ(loadError("[trainin]\nsteps = 3\n"),
            "run.toml:1: unknown section [trainin]; did you mean 'training'?");
  // A part of a name says enough where no name is near.
  EXPECT_EQ(loadError("[lr]\nsteps = 3\n"),
            "run.toml:1: unknown section [lr]; did you mean 'lr_scheduler'?");
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
  EXPECT_EQ(loadError("[optimizer]\nlr = inf\n"),
            "run.toml:2: optimizer.lr: expected a finite number, got inf");
  EXPECT_EQ(loadError("[optimizer]\nlr = nan\n").substr(0, 24),
            "run.toml:2: optimizer.lr");
}

TEST(Config, SyntaxErrorsNameTheLine) {
  EXPECT_EQ(loadError("[training]\nsteps = \n").substr(0, 12), "run.toml:2: ");
  EXPECT_EQ(messageOf([] {
              RunConfig config;
              loadConfig(config, "/nowhere/run.toml");
            }),
            "cannot read the run description '/nowhere/run.toml': No such "
            "file or directory");
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
  config.parallelism.tensorParallelDegree = 2;
  resolveConfig(config, 12);
  EXPECT_EQ(config.parallelism.dataParallelShardDegree, 3);
  config.parallelism.dataParallelShardDegree = -1;
  EXPECT_EQ(messageOf([&] { resolveConfig(config, 6); }),
            "impossible mesh: parallelism.data_parallel_replicate_degree = 2 "
            "times parallelism.tensor_parallel_degree = 2 does not divide 6 "
            "ranks");
}

TEST(Config, TheGlobalBatchIsMicrobatchesOfAllRanks) {
  RunConfig config;
  config.lrScheduler.warmupSteps = 2;
  config.training.localBatchSize = 2;
  config.parallelism.dataParallelReplicateDegree = 2;
  auto resolved = [&](int64_t global, int64_t tensor = 1) {
    RunConfig copy = config;
    copy.training.globalBatchSize = global;
    copy.parallelism.tensorParallelDegree = tensor;
    resolveConfig(copy, 4 * tensor);
    return copy;
  };
  EXPECT_EQ(microbatches(resolved(24)), 3);
  EXPECT_EQ(microbatches(resolved(24, /*tensor=*/2)), 3);
  EXPECT_EQ(compiledSettings(resolved(24)).at("training.global_batch_size"),
            "24");
  // One microbatch is what an artifact without the key has.
  for (int64_t global : {-1, 8}) {
    EXPECT_EQ(microbatches(resolved(global)), 1);
    EXPECT_EQ(
        compiledSettings(resolved(global)).count("training.global_batch_size"),
        0u);
  }
  for (int64_t global : {0, 4, 12})
    EXPECT_EQ(messageOf([&] { resolved(global); }),
              "training.global_batch_size = " + std::to_string(global) +
                  " is no multiple of 8, which training.local_batch_size = 2 "
                  "on 4 data-parallel ranks takes");
  EXPECT_EQ(messageOf([&] { resolved(int64_t(8) << 21); }),
            "training.global_batch_size = 16777216 is more than 2^20 times 8, "
            "which training.local_batch_size = 2 on 4 data-parallel ranks "
            "takes");
}

TEST(Config, AutoModeIsHybridWhereRanksAreInGroups) {
  RunConfig config;
  config.lrScheduler.warmupSteps = 2;
  EXPECT_EQ(config.compile.mode, ShardMode::Auto);
  resolveConfig(config, 4);
  EXPECT_EQ(config.compile.mode, ShardMode::FullyShard);
  RunConfig groups;
  groups.parallelism.dataParallelReplicateDegree = 2;
  resolveConfig(groups, 4);
  EXPECT_EQ(groups.compile.mode, ShardMode::HybridShard);
  // The settings of the artifact say what was compiled, not how it was chosen.
  EXPECT_EQ(compiledSettings(groups).at("compile.mode"), "hybrid_shard");
}

TEST(Config, AStatedModeStays) {
  for (const char *mode : {"fully_shard", "hybrid_shard", "replicate"})
    for (int64_t replicate : {1, 2}) {
      RunConfig config;
      config.parallelism.dataParallelReplicateDegree = replicate;
      setConfigOption(config, "compile.mode", mode, "test");
      resolveConfig(config, 4);
      EXPECT_EQ(spelled(config.compile.mode), mode);
    }
}

TEST(Config, AutoPrecisionIsSaidInOneLine) {
  RunConfig config;
  std::string line = resolveConfig(config, 1);
  EXPECT_EQ(line.find("precision: "), 0u);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(config.training.mixedPrecisionParam,
            hasNativeBf16Matmul() ? ParamDtype::BFloat16 : ParamDtype::Float32);
  EXPECT_EQ(resolveConfig(config, 1), "");
}

// The compiler resolves what it needs, and the schedule is not that.
TEST(Config, TheScheduleIsCutToTheSteps) {
  RunConfig config;
  config.training.steps = 100;
  EXPECT_EQ(messageOf([&] { resolveConfig(config, 1); }), "");
  EXPECT_EQ(lrWarning(config),
            "lr_scheduler.warmup_steps = 200 exceeds training.steps = 100: the "
            "rate rises in all steps and never falls");
  auto expectPhases = [&](int64_t warmup, int64_t stable, int64_t decay) {
    LrPhases phases = lrPhases(config);
    EXPECT_EQ(phases.warmup, warmup);
    EXPECT_EQ(phases.stable, stable);
    EXPECT_EQ(phases.decay, decay);
  };
  expectPhases(100, 0, 0);
  config.lrScheduler.decayRatio = 0.8;
  expectPhases(100, 0, 0);
  config.lrScheduler.warmupSteps = 50;
  expectPhases(50, 0, 50);
  EXPECT_EQ(lrWarning(config),
            "lr_scheduler.decay_ratio asks for a decay of 80 steps, but "
            "lr_scheduler.warmup_steps = 50 leaves 50: the rate falls over "
            "those");
  config.lrScheduler.warmupSteps = 20;
  expectPhases(20, 0, 80);
  EXPECT_EQ(lrWarning(config), "");
  config.lrScheduler.warmupSteps = 10;
  expectPhases(10, 10, 80);
  config.lrScheduler.decayRatio.reset();
  expectPhases(10, 0, 90);
  EXPECT_EQ(lrWarning(config), "");
}

// A file is mended in one go: every message is there, in the file's order, and
// then those of the command line and of keys that do not go together.
TEST(Config, EverythingThatIsWrongIsSaidAtOnce) {
  TemporaryFolder folder;
  std::string path = folder.write("run.toml", R"([training]
steps = "3"
seq_length = 8
[modle]
dim = 4
[compile]
bucket = "blocks"
threads = 0
[checkpoint]
enable_checkpoint = true
)");
  RunConfig config;
  ConfigErrors errors;
  loadConfig(config, path, errors);
  applyConfigOverrides(config, {"--optimizer.lr", "fast", "--model.dims=3"},
                       errors);
  config.parallelism.dataParallelShardDegree = 3;
  resolveConfig(config, 2, errors);
  std::string message = messageOf([&] { errors.throwIfAny(); });
  std::string expected = "9 settings are wrong:";
  for (const char *line :
       {"FILE:2: training.steps: expected an integer, got '3'",
        "FILE:3: unknown key 'training.seq_length'; did you mean "
        "'training.seq_len'?",
        "FILE:4: unknown section [modle]; did you mean 'model'?",
        "FILE:7: compile.bucket: expected one of none, block, got 'blocks'",
        "FILE:8: compile.threads: expected at least 1, got 0",
        "FILE:10: checkpoint.enable_checkpoint = true is not supported "
        "(an earlier name); use checkpoint.enable, and leave the key out or "
        "set it to false",
        "command line: optimizer.lr: expected a number, got 'fast'",
        "command line: unknown key 'model.dims'; did you mean 'model.dim'?",
        "impossible mesh: parallelism.data_parallel_replicate_degree = 1 times "
        "parallelism.data_parallel_shard_degree = 3 is not the number of "
        "ranks, 2"}) {
    std::string text = line;
    if (text.rfind("FILE", 0) == 0)
      text = path + text.substr(4);
    expected += "\n  " + text;
  }
  EXPECT_EQ(message, expected);
}

// What is known to be wrong is not judged again together with other keys.
TEST(Config, AWrongMeshKeyIsSaidOnce) {
  RunConfig config;
  ConfigErrors errors;
  applyConfigOverrides(
      config, {"--parallelism.data_parallel_replicate_degree=two"}, errors);
  config.parallelism.dataParallelShardDegree = 3;
  resolveConfig(config, 2, errors);
  EXPECT_EQ(messageOf([&] { errors.throwIfAny(); }),
            "command line: parallelism.data_parallel_replicate_degree: "
            "expected an integer, got 'two'");
}

TEST(Config, ListsComeFromTomlAndFromTheCommandLine) {
  TemporaryFolder folder;
  RunConfig config;
  loadConfig(config, folder.write("run.toml", R"([checkpoint]
exclude_from_loading = ["optimizer", "dataloader"]
)"));
  std::vector<CheckpointPart> both = {CheckpointPart::Optimizer,
                                      CheckpointPart::DataLoader};
  EXPECT_EQ(config.checkpoint.excludeFromLoading, both);
  applyConfigOverrides(config, {"--checkpoint.exclude_from_loading="});
  EXPECT_TRUE(config.checkpoint.excludeFromLoading.empty());
  applyConfigOverrides(
      config, {"--checkpoint.exclude_from_loading", "optimizer,dataloader"});
  EXPECT_EQ(config.checkpoint.excludeFromLoading, both);
  EXPECT_EQ(overrideError({"--checkpoint.exclude_from_loading=optimiser"}),
            "command line: checkpoint.exclude_from_loading: expected a list of "
            "optimizer, lr_scheduler, dataloader, train_state, got "
            "[optimiser]");
  EXPECT_EQ(loadError("[checkpoint]\nexclude_from_loading = \"optimizer\"\n"),
            "run.toml:2: checkpoint.exclude_from_loading: expected a list of "
            "optimizer, lr_scheduler, dataloader, train_state, got "
            "'optimizer'");
  EXPECT_EQ(loadError("[checkpoint]\nexclude_from_loading = [1]\n"),
            "run.toml:2: checkpoint.exclude_from_loading: expected a list of "
            "optimizer, lr_scheduler, dataloader, train_state, got a value of "
            "type array");
}

static std::string checkpointError(const std::vector<std::string> &arguments) {
  RunConfig config;
  ConfigErrors errors;
  applyConfigOverrides(config, arguments, errors);
  checkCheckpoint(config, errors);
  return messageOf([&] { errors.throwIfAny(); });
}

TEST(Config, KeysOfCheckpointsThatDoNotGoTogether) {
  EXPECT_EQ(checkpointError({"--checkpoint.keep_latest_k=1"}),
            ""); // of a feature that is off
  EXPECT_EQ(checkpointError({"--checkpoint.last_save_in_hf=true"}),
            "command line: checkpoint.last_save_in_hf = true needs "
            "checkpoint.enable = true");
  EXPECT_EQ(checkpointError(
                {"--checkpoint.enable=true", "--checkpoint.keep_latest_k=1"}),
            "command line: checkpoint.keep_latest_k = 1 would keep no "
            "checkpoint while the next one is written; set it to 2 or more, or "
            "to 0 to keep all");
  EXPECT_EQ(checkpointError({"--checkpoint.initial_load_path=x"}),
            "command line: checkpoint.initial_load_path needs "
            "checkpoint.enable = true; with checkpoint.load_only = true "
            "nothing is saved");
  EXPECT_EQ(checkpointError({"--checkpoint.enable=true",
                             "--checkpoint.last_save_in_hf=true"}),
            "command line: checkpoint.last_save_in_hf = true needs "
            "checkpoint.last_save_model_only = true: a Hugging Face directory "
            "has only parameters");
  EXPECT_EQ(checkpointError({"--checkpoint.enable=true",
                             "--checkpoint.last_save_model_only=true",
                             "--checkpoint.load_only=true",
                             "--checkpoint.last_save_in_hf=true"}),
            "command line: checkpoint.last_save_in_hf = true saves, which "
            "checkpoint.load_only = true forbids");
  EXPECT_EQ(checkpointError({"--checkpoint.enable=true",
                             "--checkpoint.last_save_model_only=true",
                             "--checkpoint.last_save_in_hf=true"}),
            "");
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

TEST(Config, OptionsWithoutASectionSuggestTheKey) {
  auto suggest = [](const std::string &option) {
    return suggestOption(option, {"config", "ranks"});
  };
  EXPECT_EQ(suggest("--dump_folder"), "; did you mean '--job.dump_folder'?");
  EXPECT_EQ(suggest("--dump-foldr"), "; did you mean '--job.dump_folder'?");
  EXPECT_EQ(suggest("--confg"), "; did you mean '--config'?");
  // In several sections; one that only torchtitan has.
  EXPECT_EQ(suggest("--enable"), "; did you mean '--checkpoint.enable' or "
                                 "'--validation.enable'?");
  EXPECT_EQ(suggest("--gc_freq"), "; did you mean '--training.gc_freq'?");
  for (const char *option : {"--fly", "--x", "-", "--"})
    EXPECT_EQ(suggest(option), "") << option;
}

// What an axis of the mesh is for is stated, also where its name would say it.
TEST(Config, AxesOfTheMeshHaveKinds) {
  RunConfig config;
  applyConfigOverrides(config,
                       {"--parallelism.tensor_parallel_degree", "2",
                        "--parallelism.data_parallel_replicate_degree", "3"});
  resolveConfig(config, 24);
  EXPECT_EQ(meshText(resolvedMesh(config)),
            "dp_replicate=3:data,dp_shard=4:data,tp=2:tensor");
}

TEST(Config, ReadsAMesh) {
  EXPECT_EQ(meshText(parseMesh("dp_shard=4,tp=2")),
            "dp_shard=4:data,tp=2:tensor");
  // A name is one thing and a kind another.
  EXPECT_EQ(meshText(parseMesh("x = 4 : data,dp=2:tensor, dpx=3 ")),
            "x=4:data,dp=2:tensor,dpx=3");
  EXPECT_EQ(messageOf([] { parseMesh("a=2,b=0:data"); }),
            "mesh \"a=2,b=0:data\": expected NAME=SIZE with SIZE at least 1, "
            "got \"b=0:data\"");
  for (const char *text : {"", "a", "=2", "a=", "a=2x", "a=2,", "a=:data",
                           "a=99999999999999999999"})
    EXPECT_NE(messageOf([&] { parseMesh(text); }).find("expected NAME=SIZE"),
              std::string::npos)
        << text;
  EXPECT_EQ(messageOf([] { parseMesh("a=2:"); }),
            "mesh \"a=2:\": the kind of an axis is data or tensor, got \"\"");
}
