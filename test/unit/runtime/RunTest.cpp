//===- RunTest.cpp - fsdp-run from end to end, without the compiler -------===//
//
// A hand-written artifact (Inputs/unigram.cpp) is compiled once and run in
// every way that fsdp-run can be started, and in many ways that must fail.
//
//===----------------------------------------------------------------------===//
#include "TemporaryFolder.h"
#include "fsdp/Config/RunConfig.h"
#include "fsdp/Runtime/Loader.h"
#include "fsdp/Runtime/Safetensors.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Checksum.h"
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;
using nlohmann::json;

namespace {

json unigramRange(const char *name, const char *role, const char *dtype,
                  std::vector<int64_t> shape, int offset) {
  int64_t bytes = 4;
  for (int64_t size : shape)
    bytes *= size;
  return {{"name", name},    {"role", role},     {"dtype", dtype},
          {"shape", shape},  {"offset", offset}, {"bytes", bytes},
          {"full", nullptr}, {"init", nullptr},  {"placement", nullptr}};
}

/// The manifest of Inputs/unigram.cpp for so many ranks.
json unigramManifest(int ranks) {
  RunConfig config;
  config.training.localBatchSize = 2;
  config.training.seqLen = 16;
  config.lrScheduler.warmupSteps = 0;
  resolveConfig(config, ranks);
  constexpr int arena = 1536 + 2 * 16 * 256 * 4;
  return {
      {"format", 4},
      {"config", compiledSettings(config)},
      {"fingerprint", json::object()},
      {"mesh",
       {{"axes", {{{"name", "dp_shard"}, {"size", ranks}}}}, {"node_size", 0}}},
      {"arena", {{"bytes", arena}, {"persistent_bytes", arena}}},
      {"ranges",
       {unigramRange("w", "parameter", "f32", {256}, 0),
        unigramRange("tokens", "input", "i32", {2, 16}, 1024),
        unigramRange("targets", "input", "i32", {2, 16}, 1152),
        unigramRange("lr", "input", "f32", {}, 1280),
        unigramRange("step", "input", "i32", {}, 1344),
        unigramRange("loss", "output", "f32", {}, 1408),
        unigramRange("grad_norm", "output", "f32", {}, 1472),
        unigramRange("logits", "output", "f32", {2, 16, 256}, 1536)}},
      {"programs",
       {{{"name", "train"},
         {"inputs", {"tokens", "targets", "lr", "step"}},
         {"outputs", {"loss", "grad_norm"}},
         {"reads", {"w", "tokens", "targets", "lr", "step"}},
         {"writes", {"w", "loss", "grad_norm"}},
         {"adds", json::array()},
         {"arena_bytes", arena},
         {"flops", 1e4}},
        {{"name", "evaluate"},
         {"inputs", {"tokens", "targets"}},
         {"outputs", {"loss", "logits"}},
         {"reads", {"w", "tokens", "targets"}},
         {"writes", {"loss", "logits"}},
         {"adds", json::array()},
         {"arena_bytes", arena},
         {"flops", 1e4}}}},
      {"steps", {{"train", {{{"program", "train"}, {"times", 1}}}}}},
      {"runs", {{"train", {{"train", 1}}}}}};
}

/// Says that a range of a manifest is a part of one of shape `full`: `axes` are
/// the compute axes of its dimensions, "" for none.
void place(json &manifest, const std::string &name, std::vector<int64_t> full,
           std::vector<std::string> axes) {
  for (json &range : manifest["ranges"]) {
    if (range["name"] != name)
      continue;
    range["full"] = full;
    range["placement"] = {{"dims", json::array()}};
    for (const std::string &axis : axes) {
      json compute = json::array();
      if (!axis.empty())
        compute.push_back(axis);
      range["placement"]["dims"].push_back(
          {{"compute", compute}, {"storage", json::array()}});
    }
  }
}

/// The manifest for two ranks along `tp`, all of which have the same of the
/// batch unless somebody says more.
json tensorParallelManifest() {
  json manifest = unigramManifest(2);
  manifest["mesh"]["axes"] = {{{"name", "dp_shard"}, {"size", 1}},
                              {{"name", "tp"}, {"size", 2}}};
  place(manifest, "tokens", {2, 16}, {"dp_shard", ""});
  place(manifest, "targets", {2, 16}, {"dp_shard", ""});
  return manifest;
}

struct Outcome {
  int status;
  std::string out, err;
  double seconds;
};

class Run : public testing::Test {
protected:
  /// Compiles the artifact for 1 and for 2 ranks.
  static void SetUpTestSuite() {
    shared = new TemporaryFolder;
    for (int ranks : {1, 2})
      compile("unigram" + std::to_string(ranks), unigramManifest(ranks).dump());
    // Half "a", a quarter "b", an eighth "c" and "d": 1.75 bits per byte.
    std::string text;
    for (int i = 0; i < 5000; ++i)
      text += "abacabad"[i % 8];
    shared->write("text", text);
    // Other windows are other bytes.
    std::string counted;
    for (int i = 0; i < 5000; ++i)
      counted += static_cast<char>('a' + i / 8 % 26);
    shared->write("counted", counted);
  }
  static void TearDownTestSuite() { delete shared; }

  static void compile(const std::string &name, const std::string &manifest) {
    std::string folder = shared->file(name);
    std::filesystem::create_directories(folder);
    shared->write(name + "/manifest.json", manifest);
    shared->write(name + "/manifest.inc", "R\"json(" + manifest + ")json\"");
    std::string command = FSDP_CXX " -std=c++17 -O1 -shared -fPIC "
                                   "-I " FSDP_INCLUDE_DIR " -I " +
                          folder + " " FSDP_TEST_INPUTS "/unigram.cpp -o " +
                          folder + "/step.so";
    ASSERT_EQ(std::system(command.c_str()), 0);
    shared->write(name + "/step.so.xxh3",
                  checksumLine(readWholeFile(folder + "/step.so", "step")));
  }

  /// Runs fsdp-run with `arguments`; `before` goes in front of the command.
  Outcome run(const std::string &arguments, const std::string &before = "") {
    auto start = std::chrono::steady_clock::now();
    std::string command = before + " " FSDP_RUN " " + arguments + " > " +
                          folder.file("out") + " 2> " + folder.file("err");
    int status = std::system(command.c_str());
    std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            readWholeFile(folder.file("out"), "output"),
            readWholeFile(folder.file("err"), "errors"), seconds.count()};
  }
  /// The arguments of a good run.
  std::string good(int ranks, int steps, const std::string &text = "text") {
    return shared->file("unigram" + std::to_string(ranks)) +
           " --training.dataset_path " + shared->file(text) +
           " --training.steps " + std::to_string(steps) +
           " --lr_scheduler.warmup_steps=0 --optimizer.lr 2.0" +
           " --sample.length 20 --job.dump_folder " + folder.file("dump") +
           (ranks > 1 ? " -n " + std::to_string(ranks) : "");
  }
  /// Expects one line of error and no file left behind.
  void expectFailure(const Outcome &outcome, const std::string &message) {
    EXPECT_NE(outcome.status, 0);
    EXPECT_EQ(outcome.err, "fsdp-run: " + message + "\n");
    EXPECT_LT(outcome.seconds, kSoon);
    EXPECT_FALSE(std::filesystem::exists(folder.file("dump")));
  }
  /// The same for a run that had begun: its steps stay, and nothing else.
  void expectEnd(const Outcome &outcome, const std::string &message,
                 size_t steps) {
    EXPECT_NE(outcome.status, 0);
    EXPECT_EQ(outcome.err, "fsdp-run: " + message + "\n");
    EXPECT_LT(outcome.seconds, kSoon);
    EXPECT_GE(metrics().size(), steps);
    for (const auto &entry :
         std::filesystem::directory_iterator(folder.file("dump")))
      EXPECT_EQ(entry.path().filename(), "metrics.jsonl");
  }
  /// The losses of a run of the artifact `name` on two ranks.
  std::vector<std::string> lossesOf(const std::string &name,
                                    const std::string &more = "") {
    std::string arguments = good(2, 20, "counted") + more;
    size_t at = arguments.find("unigram2");
    Outcome outcome = run(arguments.replace(at, 8, name));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return losses();
  }
  /// The losses of the last run.
  std::vector<std::string> losses() {
    std::vector<std::string> result;
    for (const json &step : metrics())
      result.push_back(step["loss_hex"]);
    return result;
  }
  json summary() {
    return json::parse(readWholeFile(folder.file("dump/summary.json"), ""));
  }
  std::string whereStepsAre() {
    return "; the steps so far are in '" + folder.file("dump/metrics.jsonl") +
           "'";
  }
  std::vector<json> metricLines() {
    std::ifstream file(folder.file("dump/metrics.jsonl"));
    std::vector<json> lines;
    for (std::string line; std::getline(file, line);)
      lines.push_back(json::parse(line));
    return lines;
  }
  /// The steps of the last run.
  std::vector<json> metrics() {
    std::vector<json> steps;
    for (const json &line : metricLines()) {
      if (line.contains("run"))
        steps.clear();
      else
        steps.push_back(line);
    }
    return steps;
  }

  /// Seconds in which whatever ends has ended, on a machine that has more to
  /// do.
  static constexpr double kSoon = 240;
  static TemporaryFolder *shared;
  TemporaryFolder folder;
};

TemporaryFolder *Run::shared = nullptr;

} // namespace

TEST_F(Run, OneRankTrainsEvaluatesAndSamples) {
  Outcome outcome = run(good(1, 200));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  std::vector<json> steps = metrics();
  ASSERT_EQ(steps.size(), 200u);
  // All logits are 0 at first: the loss is ln 256.
  EXPECT_NEAR(steps[0]["loss"], std::log(256.0), 1e-6);
  EXPECT_EQ(std::stod(steps[0]["loss_hex"].get<std::string>()),
            static_cast<double>(std::log(256.0f)));
  EXPECT_EQ(steps[0]["lr"], 2.0);
  json summary =
      json::parse(readWholeFile(folder.file("dump/summary.json"), "summary"));
  // The entropy of the text is 1.75 bits per byte; batches are noisy.
  EXPECT_NEAR(summary["held_out_bits_per_byte"], 1.75, 0.1);
  EXPECT_EQ(summary["held_out_predictions"], 249);
  EXPECT_NE(readWholeFile(folder.file("dump/loss.svg"), "").find("</svg>"),
            std::string::npos);
  std::string sample = readWholeFile(folder.file("dump/sample.txt"), "");
  EXPECT_EQ(sample.size(), 64u + 20);
  EXPECT_NE(outcome.out.find("step:   200 of 200  loss:"), std::string::npos);
  EXPECT_NE(outcome.out.find("peak: not measured for a run this short; "
                             "metrics.peak_tflops can state it\n"),
            std::string::npos);
  EXPECT_NE(outcome.out.find("held-out text (249 bytes predicted)"),
            std::string::npos);
}

TEST_F(Run, TwoRanksAreStartedAndAgree) {
  Outcome outcome = run(good(2, 20));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(metrics().size(), 20u);
  // Only the first rank speaks.
  size_t first = outcome.out.find("step:     1");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(outcome.out.find("step:     1", first + 1), std::string::npos);
}

// In a collective behind gzip, the two would wait for each other.
TEST_F(Run, NoRankWaitsForGzip) {
#ifdef FSDP_SANITIZE
  GTEST_SKIP() << "the sanitizers would have to come before what is preloaded";
#endif
  std::string library = folder.file("gzip-behind-rank-1.so");
  std::string source = FSDP_TEST_INPUTS "/gzip-behind-rank-1.c";
  std::string command = "cc -shared -fPIC " + source + " -o " + library;
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::string left = folder.file("left");
  Outcome outcome = run(good(2, 2), "FSDP_TIMEOUT=30 LEFT_FILE=" + left +
                                        " LD_PRELOAD=" + library);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(std::filesystem::exists(left));
  EXPECT_TRUE(summary().contains("gzip_bits_per_byte_held_out"));
  EXPECT_FALSE(summary().contains("gzip_bits_per_byte_whole"));
}

// A byte of a sample takes a run of "evaluate", as long as a step of "train"
// here.
TEST_F(Run, SamplesOnlyWhenAsked) {
  std::string arguments = good(1, 2);
  const std::string length = " --sample.length 20";
  arguments.erase(arguments.find(length), length.size());
  Outcome outcome = run(arguments);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("sample"), std::string::npos) << outcome.out;
  EXPECT_FALSE(std::filesystem::exists(folder.file("dump/sample.txt")));
  outcome = run(good(1, 2));
  size_t at = outcome.out.find(
      "sample: 20 bytes, each by a run of the program 'evaluate': the work of "
      "about 20 steps\nsample: 2 of 20 bytes\nsample: 4 of 20 bytes\n");
  EXPECT_NE(at, std::string::npos) << outcome.out;
}

TEST_F(Run, JoinsTheJobOfMpirun) {
  std::string arguments = good(2, 3);
  arguments.resize(arguments.size() - 5); // without -n 2
  Outcome outcome = run(arguments, "mpirun --allow-run-as-root --oversubscribe "
                                   "--bind-to none -n 2");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(metrics().size(), 3u);
}

// Two ranks that differ only along `tp` get the same windows and count once:
// the run is that of one rank.
TEST_F(Run, RanksOfOnePieceAreOne) {
  ASSERT_EQ(run(good(1, 20, "counted")).status, 0);
  std::vector<std::string> one = losses();
  json alone = summary();
  std::string sample = readWholeFile(folder.file("dump/sample.txt"), "");
  json manifest = tensorParallelManifest();
  // 512 classes, of which bytes are the first rank's.
  place(manifest, "logits", {2, 16, 512}, {"dp_shard", "", "tp"});
  compile("tensor-parallel", manifest.dump());
  // Nobody is to train such a model on bytes without meaning it.
  std::string arguments = good(2, 20, "counted");
  std::filesystem::remove_all(folder.file("dump"));
  expectFailure(
      run(arguments.replace(arguments.find("unigram2"), 8, "tensor-parallel")),
      "training.dataset is not set, bytes are 256 tokens, and the model's "
      "vocabulary has 512 tokens: if it has a tokenizer, tokenize the text "
      "with it and set training.dataset = ids (docs/hugging-face.md shows "
      "how); training.dataset = bytes in words trains on bytes");
  EXPECT_EQ(lossesOf("tensor-parallel", " --training.dataset bytes"), one);
  EXPECT_EQ(summary()["held_out_predictions"], 249);
  EXPECT_EQ(summary()["held_out_bits_per_byte"],
            alone["held_out_bits_per_byte"]);
  EXPECT_EQ(readWholeFile(folder.file("dump/sample.txt"), ""), sample);
}

// A placed loss is global and taken as it is; these ranks compute it wrong,
// each from its own rows, so that an average would show. The first gets the
// rows of a single rank.
TEST_F(Run, PlacedLossesAreNotAveraged) {
  ASSERT_EQ(run(good(1, 20, "counted")).status, 0);
  std::vector<std::string> one = losses();
  json manifest = unigramManifest(2);
  place(manifest, "tokens", {4, 16}, {"dp_shard", ""});
  place(manifest, "targets", {4, 16}, {"dp_shard", ""});
  compile("own-losses", manifest.dump());
  EXPECT_NE(lossesOf("own-losses"), one);
  EXPECT_EQ(summary()["held_out_predictions"], 249);
  place(manifest, "loss", {}, {});
  compile("global-loss", manifest.dump());
  EXPECT_EQ(lossesOf("global-loss"), one);
  EXPECT_EQ(summary()["held_out_predictions"], 249);
}

// Each rank has half of every window, and the last logits are the second's.
TEST_F(Run, SequencesAreCut) {
  json manifest = tensorParallelManifest();
  place(manifest, "tokens", {2, 32}, {"dp_shard", "tp"});
  place(manifest, "targets", {2, 32}, {"dp_shard", "tp"});
  place(manifest, "logits", {2, 32, 256}, {"dp_shard", "tp", ""});
  compile("sequence-parallel", manifest.dump());
  std::string artifact = shared->file("sequence-parallel");
  // Of random windows only their number is known.
  EXPECT_EQ(lossesOf("sequence-parallel").size(), 20u);
  EXPECT_EQ(summary()["held_out_predictions"], 249);
  EXPECT_EQ(readWholeFile(folder.file("dump/sample.txt"), "").size(), 64u + 20);
  // A whole batch is cut when it is loaded.
  std::vector<int32_t> tokens(64);
  for (int i = 0; i < 64; ++i)
    tokens[i] = i;
  std::string batch = folder.file("batch.safetensors");
  writeSafetensors(batch,
                   {{"tokens",
                     DType::I32,
                     {2, 32},
                     reinterpret_cast<const std::byte *>(tokens.data())}},
                   {});
  ASSERT_EQ(run(artifact + " -n 2 --program evaluate --load " + batch +
                " --dump " + folder.file("cut.st"))
                .status,
            0);
  for (int rank : {0, 1}) {
    SafetensorsFile dumped(
        folder.file("cut.rank" + std::to_string(rank) + ".st"));
    for (const TensorView &tensor : dumped.tensors())
      for (int i = 0; tensor.name == "tokens" && i < 32; ++i)
        EXPECT_EQ(reinterpret_cast<const int32_t *>(tensor.data)[i],
                  i / 16 * 32 + rank * 16 + i % 16);
  }
}

// A batch that is given has the model's own tokens; a text has none for it.
TEST_F(Run, LoadedBatchesAskForNoVocabulary) {
  json manifest = unigramManifest(1);
  manifest["ranges"].erase(7); // logits, as of a loss in chunks
  manifest["programs"][1]["outputs"] = {"loss"};
  manifest["programs"][1]["writes"] = {"loss"};
  manifest["model"] = {{"family", "llama3"},
                       {"fields", {{"vocab_size", "64"}}}};
  compile("small-vocabulary", manifest.dump());
  std::string arguments = shared->file("small-vocabulary") +
                          " --training.dataset_path " + shared->file("text") +
                          " --training.steps 2 --lr_scheduler.warmup_steps=0 "
                          "--job.dump_folder " +
                          folder.file("dump");
  expectFailure(run(arguments),
                "training.dataset = bytes has 256 tokens, and the model's "
                "vocabulary has 64 tokens; train it on ids of its own with "
                "training.dataset = ids");
  std::vector<int32_t> ids(32, 63);
  const auto *data = reinterpret_cast<const std::byte *>(ids.data());
  std::string batch = folder.file("batch.safetensors");
  writeSafetensors(batch,
                   {{"tokens", DType::I32, {2, 16}, data},
                    {"targets", DType::I32, {2, 16}, data}},
                   {});
  arguments += " --load " + batch;
  expectFailure(run(arguments),
                "training.dataset = bytes has 256 tokens, and the model's "
                "vocabulary has 64 tokens; with the batch of "
                "--load, --validation.enable=false and no sample none is read");
  Outcome outcome = run(arguments + " --validation.enable false");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(metrics().size(), 2u);
}

TEST_F(Run, InputsThatCannotBeFilled) {
  auto expectRefused = [&](const json &manifest, const std::string &message) {
    compile("refused", manifest.dump());
    std::string arguments = good(2, 5);
    expectFailure(
        run(arguments.replace(arguments.find("unigram2"), 8, "refused")),
        message);
  };
  json manifest = tensorParallelManifest();
  place(manifest, "targets", {2, 32}, {"dp_shard", "tp"});
  expectRefused(manifest, "the artifact's inputs 'tokens' and 'targets' differ "
                          "in shape or placement; it cannot train on text");
  manifest = tensorParallelManifest();
  place(manifest, "logits", {16384}, {"tp"});
  for (json &range : manifest["ranges"])
    if (range["name"] == "logits")
      range["shape"] = {8192};
  const std::string noSample =
      "the artifact's logits are not placed as those of all its tokens, "
      "[batch, sequence, vocabulary]; --sample.length=0 trains without a "
      "sample";
  expectRefused(manifest, noSample);
  // Half of every window, and logits that do not say so.
  manifest = tensorParallelManifest();
  place(manifest, "tokens", {2, 32}, {"dp_shard", "tp"});
  place(manifest, "targets", {2, 32}, {"dp_shard", "tp"});
  expectRefused(manifest, noSample);
  manifest = tensorParallelManifest();
  for (json &range : manifest["ranges"])
    if (range["name"] == "tokens")
      range["placement"]["dims"][0]["storage"] = {"tp"},
      range["full"] = {4, 16};
  expectRefused(manifest, "the artifact's input 'tokens' has storage axes, "
                          "which only parameters have");
}

// A second run goes behind the first, each behind a line that says what it is.
TEST_F(Run, RunsOfOneFolderAreTold) {
  ASSERT_EQ(run(good(1, 2)).status, 0);
  std::string half = "{\"step\": 3, \"lo";
  std::ofstream(folder.file("dump/metrics.jsonl"), std::ios::app) << half;
  ASSERT_EQ(run(good(1, 3)).status, 0);
  std::vector<json> lines = metricLines();
  ASSERT_EQ(lines.size(), 1u + 2 + 1 + 3);
  json first = lines[0]["run"], second = lines[3]["run"];
  EXPECT_NE(first["id"], second["id"]);
  EXPECT_EQ(second["artifact"], shared->file("unigram1"));
  EXPECT_EQ(second["ranks"], 1);
  EXPECT_EQ(second["mesh"], "dp_shard=1");
  EXPECT_EQ(second["date"].get<std::string>().size(), 20u);
  EXPECT_EQ(second["config"]["training.steps"], 3);
  EXPECT_EQ(second["config"]["validation.enable"], true);
  EXPECT_EQ(second["config"]["optimizer.beta2"], 0.95);
  EXPECT_EQ(second["config"]["compile.mode"], "fully_shard");
  EXPECT_TRUE(second.contains("fingerprint"));
  EXPECT_EQ(lines[4]["step"], 1);
  // Every line has its time, later ones no earlier one.
  EXPECT_EQ(lines[4]["time"].get<std::string>().size(), 24u);
  EXPECT_LE(lines[4]["time"], lines[5]["time"]);
}

TEST_F(Run, OneJobWritesToAFolder) {
  ASSERT_EQ(run(good(1, 2)).status, 0);
  std::string lock =
      folder.write("dump/run.lock", "{\"process\": 7, \"host\": \"far\", "
                                    "\"since\": \"yesterday\", \"artifact\": "
                                    "\"other\"}");
  for (int ranks : {1, 2}) {
    Outcome outcome = run(good(ranks, 2), "flock " + lock);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.err,
              "fsdp-run: the folder '" + folder.file("dump") +
                  "' is in use by process 7 on far since yesterday, with the "
                  "artifact 'other'; wait for it, or choose another "
                  "--job.dump_folder\n");
  }
  EXPECT_EQ(metricLines().size(), 3u);
  // The file of a holder that was killed is no obstacle.
  EXPECT_EQ(run(good(2, 2)).status, 0);
  EXPECT_FALSE(std::filesystem::exists(lock));
}

TEST_F(Run, RemovesWhatKilledRunsLeft) {
  ASSERT_EQ(run(good(1, 1)).status, 0);
  for (const char *name :
       {"summary.json", "loss.svg", "sample.txt", "metrics.jsonl", "notes"})
    folder.write(std::string("dump/") + name + ".partial-77", "half");
  ASSERT_EQ(run(good(1, 1)).status, 0);
  for (const char *name :
       {"summary.json", "loss.svg", "sample.txt", "metrics.jsonl"})
    EXPECT_FALSE(std::filesystem::exists(
        folder.file(std::string("dump/") + name + ".partial-77")))
        << name;
  EXPECT_TRUE(std::filesystem::exists(folder.file("dump/notes.partial-77")));
}

TEST_F(Run, AFullDiskKeepsEarlierSteps) {
  // Room for the header and some steps: 8 blocks of 1 KiB.
  Outcome outcome = run(good(1, 1000), "ulimit -f 8;");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err, "fsdp-run: cannot write '" +
                             folder.file("dump/metrics.jsonl") +
                             "': File too large\n");
  EXPECT_GT(metrics().size(), 3u);
  EXPECT_EQ(readWholeFile(folder.file("dump/metrics.jsonl"), "").back(), '\n');
}

TEST_F(Run, TwoRunsAreBitwiseEqual) {
  ASSERT_EQ(run(good(1, 30)).status, 0);
  std::vector<json> first = metrics();
  ASSERT_EQ(run(good(1, 30)).status, 0);
  std::vector<json> second = metrics();
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(first[i]["loss_hex"], second[i]["loss_hex"]) << i;
}

TEST_F(Run, DumpsAndLoadsRanges) {
  std::string state = folder.file("state.safetensors");
  ASSERT_EQ(run(good(1, 5) + " --dump " + state).status, 0);
  SafetensorsFile dumped(folder.file("state.rank0.safetensors"));
  EXPECT_EQ(dumped.tensors().size(), 8u);
  // The program "evaluate" alone, on the loaded state: its logits are w.
  std::string arguments = shared->file("unigram1") + " --program evaluate";
  Outcome outcome =
      run(arguments + " --load " + state + " --dump " + folder.file("e.st"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("program 'evaluate', rank 0 of 1:\n"
                             "  loss: f32: "),
            0u)
      << outcome.out;
  EXPECT_NE(outcome.out.find("\n  logits: f32 2x16x256: min "),
            std::string::npos);
  SafetensorsFile evaluated(folder.file("e.rank0.st"));
  std::map<std::string, const float *> values;
  for (const TensorView &tensor : evaluated.tensors())
    values[tensor.name] = reinterpret_cast<const float *>(tensor.data);
  for (int i = 0; i < 512; ++i)
    EXPECT_EQ(values["logits"][i], values["w"][i % 256]);
  EXPECT_NE(values["w"]['a'], 0.0f);
}

// Before any rank is started, and its library opened.
TEST_F(Run, ValidationNeedsAProgram) {
  json manifest = unigramManifest(2);
  json programs = json::array();
  for (const json &program : manifest["programs"])
    if (program["name"] != "evaluate")
      programs.push_back(program);
  manifest["programs"] = programs;
  compile("no-evaluate", manifest.dump());
  std::string arguments = shared->file("no-evaluate") +
                          " -n 2 --training.steps=2 --training.dataset_path " +
                          shared->file("text") + " --job.dump_folder " +
                          folder.file("dump");
  expectFailure(
      run(arguments + " --validation.enable true --validation.freq 1"),
      "validation.freq = 1, but the artifact has no program "
      "'evaluate'; --validation.freq=0 trains without validation");
}

// A single program needs no batch of text, whatever the steps.
TEST_F(Run, ProgramsOfAStepRunWithoutTokens) {
  json manifest = unigramManifest(1);
  manifest["ranges"][1]["name"] = "x";
  for (json &program : manifest["programs"])
    program["inputs"][0] = program["reads"][1] = "x";
  manifest["steps"]["train"][0]["times"] = 4;
  manifest["runs"]["train"]["train"] = 4;
  compile("no-tokens", manifest.dump());
  Outcome outcome = run(shared->file("no-tokens") + " --program evaluate");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

// Inputs in the loaded file replace the sampled windows.
TEST_F(Run, LoadedBatchesAreFixed) {
  std::vector<int32_t> tokens(32, 'a'), targets(32, 'b');
  auto bytes = [](const std::vector<int32_t> &values) {
    return reinterpret_cast<const std::byte *>(values.data());
  };
  std::string batch = folder.file("batch.safetensors");
  writeSafetensors(batch,
                   {{"tokens", DType::I32, {2, 16}, bytes(tokens)},
                    {"targets", DType::I32, {2, 16}, bytes(targets)}},
                   {});
  ASSERT_EQ(run(good(1, 100) + " --load " + batch).status, 0);
  EXPECT_LT(metrics().back()["loss"], 0.1);
}

TEST_F(Run, ALostRankEndsTheJobWithOneMessage) {
  expectEnd(run(good(2, 50), "UNIGRAM_KILL=5 UNIGRAM_RANK=1"),
            "rank 1 was ended by signal 9 (Killed); the whole job was "
            "stopped" +
                whereStepsAre(),
            3);
}

// The signal goes to fsdp-run alone, which must stop its ranks.
TEST_F(Run, AStoppedJobEndsItsRanks) {
  for (int ranks : {1, 2}) {
    std::filesystem::remove_all(folder.file("dump"));
    expectEnd(run(good(ranks, 1000000), FSDP_TEST_INPUTS
                                            "/stop-behind-steps.sh " +
                                            folder.file("dump/metrics.jsonl")),
              "stopped by signal 15 (Terminated)" + whereStepsAre(), 0);
  }
}

TEST_F(Run, NonFiniteLossesEndTheJob) {
  expectEnd(run(good(1, 50), "UNIGRAM_NAN=7"),
            "step 7: the loss is not finite; the run was stopped: all "
            "parameters are finite, the step's own values are not; it has "
            "changed the parameters and cannot be run again, but fsdp-run "
            "--check-values finds the first such value when it is made",
            6);
  // One rank's loss is enough, and the message comes once.
  Outcome outcome = run(good(2, 50), "UNIGRAM_NAN=7 UNIGRAM_RANK=1");
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.err.find("step 7: the loss is not finite"),
            std::string::npos);
  EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
}

TEST_F(Run, WrongWorldSizes) {
  expectFailure(run(good(1, 5) + " -n 3"),
                "wrong number of ranks: the artifact is compiled for 1 "
                "(dp_shard=1), this job has 3");
}

TEST_F(Run, StaleArtifacts) {
  expectFailure(run(good(1, 5) + " --model.dim 512"),
                "stale artifact: model.dim is unset in the artifact, the run "
                "wants 512 (command line); compile it again");
  std::string config = folder.write("run.toml", "[training]\nseq_len = 32\n");
  expectFailure(
      run(good(1, 5) + " --training.local_batch_size=2 --config " + config),
      "stale artifact: training.seq_len is 16 in the artifact, the "
      "run wants 32 (" +
          config + ":2); compile it again");
}

// The second example of --help: few steps, and nothing said of the warm-up,
// whose default is longer.
TEST_F(Run, AWarmupLongerThanTheRunIsCutWithAWarning) {
  for (const char *ranks : {"1", "2"}) {
    Outcome outcome =
        run(shared->file("unigram") + ranks + " -n " + ranks +
            " --training.dataset_path " + shared->file("text") +
            " --training.steps=4 --optimizer.lr 2.0 --sample.length 0"
            " --job.dump_folder " +
            folder.file("dump"));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err,
              "fsdp-run: warning: lr_scheduler.warmup_steps = 200 exceeds "
              "training.steps = 4: the rate rises in all steps and never "
              "falls\n");
    std::vector<json> lines = metrics();
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_EQ(lines[0]["lr"], 0.5);
    EXPECT_EQ(lines[3]["lr"], 2.0);
  }
  // Where nothing is trained, no rate rises.
  std::string settings = " --training.dataset_path " + shared->file("text") +
                         " --training.steps=4 --sample.length 0"
                         " --job.dump_folder " +
                         folder.file("saved");
  Outcome saved =
      run(shared->file("unigram1") + settings + " --checkpoint.enable=true");
  ASSERT_EQ(saved.status, 0) << saved.err;
  Outcome evaluated = run(shared->file("unigram1") + " evaluate --checkpoint " +
                          folder.file("saved/checkpoint") + settings);
  EXPECT_EQ(evaluated.status, 0) << evaluated.err;
  EXPECT_EQ(evaluated.err, "");
}

TEST_F(Run, WrongArguments) {
  std::string artifact = shared->file("unigram1");
  expectFailure(run(artifact + " --training.stepz 5"),
                "command line: unknown key 'training.stepz'; did you mean "
                "'training.steps'?");
  expectFailure(run(artifact + " --training.stepz 5 --optimizer.lr=x"),
                "2 settings are wrong:\n"
                "  command line: unknown key 'training.stepz'; did you mean "
                "'training.steps'?\n"
                "  command line: optimizer.lr: expected a number, got 'x'");
  expectFailure(run(artifact + " --frequency=5"),
                "unknown option '--frequency' (see fsdp-run --help)");
  // A key without its section.
  for (const char *option : {"--dump_folder x", "--dump-folder=x"})
    expectFailure(run(artifact + " " + option),
                  "unknown option '" + std::string(option).substr(0, 13) +
                      "'; did you mean '--job.dump_folder'? (see fsdp-run "
                      "--help)");
  expectFailure(run(artifact + " -helpless"),
                "unknown option '-helpless' (see fsdp-run --help)");
  expectFailure(run(artifact + " evaluated"),
                "command: evaluated not in {evaluate,sample} (see fsdp-run "
                "--help)");
  expectFailure(run(artifact + " sample"),
                "'sample' needs --checkpoint: a checkpoint (step-N), a folder "
                "of them, or a directory of Hugging Face");
  expectFailure(run(artifact), "training.dataset_path is not set: which text?");
  expectFailure(run(artifact + " --training.dataset_path /nowhere"),
                "cannot read the text '/nowhere': No such file or directory");
  expectFailure(run(artifact + " --program fly"),
                "the artifact has no program 'fly'");
  expectFailure(run("/nowhere"), "no artifact directory '/nowhere'; "
                                 "fsdp-compile makes one");
}

static std::string damagedLibrary(const std::string &artifact) {
  return "the artifact's library " + artifact +
         "/step.so is damaged or was changed (strip, patchelf): " + artifact +
         "/step.so.xxh3 is not its checksum; compile the artifact again";
}

TEST_F(Run, DamagedArtifacts) {
  std::string copy = folder.file("artifact");
  auto fresh = [&] {
    std::filesystem::remove_all(copy);
    std::filesystem::copy(shared->file("unigram1"), copy);
  };
  fresh();
  std::filesystem::remove(copy + "/step.so");
  expectFailure(run(copy),
                "the artifact's library " + copy + "/step.so is missing");
  fresh();
  std::filesystem::resize_file(copy + "/manifest.json", 100);
  expectFailure(run(copy), "damaged manifest " + copy +
                               "/manifest.json: this is not JSON");
  // A good manifest, but of another artifact.
  fresh();
  std::filesystem::copy_file(shared->file("unigram2/manifest.json"),
                             copy + "/manifest.json",
                             std::filesystem::copy_options::overwrite_existing);
  expectFailure(run(copy), copy + "/manifest.json is not the manifest inside " +
                               copy + "/step.so; compile the artifact again");
  fresh();
  std::filesystem::resize_file(copy + "/step.so", 5000);
  expectFailure(run(copy), damagedLibrary(copy));
  fresh();
  std::filesystem::remove(copy + "/step.so.xxh3");
  expectFailure(run(copy),
                "the artifact has no checksum of its library, " + copy +
                    "/step.so.xxh3: an older fsdp-compile has made it, or the "
                    "file was left behind; compile the artifact again");
  // A pipe that nobody writes to would be waited for.
  for (auto [name, what] : {std::pair("step.so", "the artifact's library"),
                            {"manifest.json", "the artifact's manifest"}}) {
    fresh();
    std::string path = copy + "/" + name;
    std::filesystem::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    expectFailure(run(copy), std::string("cannot read ") + what + " '" + path +
                                 "': it is no regular file");
  }
}

TEST_F(Run, FlippedBitsOfALibraryAreFound) {
  std::string copy = folder.file("artifact");
  std::filesystem::copy(shared->file("unigram1"), copy);
  ArtifactFolder whole(copy);
  const std::string bytes = readWholeFile(whole.libraryPath(), "step");
  constexpr size_t kFlips = 600;
  for (size_t i = 0; i < kFlips; ++i) {
    std::string flipped = bytes;
    flipped[bytes.size() * i / kFlips] ^= static_cast<char>(1 << i % 8);
    // Writing into a file that is there would wait for the disk.
    std::filesystem::remove(whole.libraryPath());
    folder.write("artifact/step.so", flipped);
    ASSERT_EQ(messageOf([&] { ArtifactFolder again(copy); }),
              damagedLibrary(copy))
        << i;
  }
  folder.write("artifact/step.so", bytes);
  folder.write("artifact/step.so.xxh3", "xxh3\n");
  EXPECT_EQ(messageOf([&] { ArtifactFolder again(copy); }),
            damagedLibrary(copy));
}

TEST_F(Run, HelpTeaches) {
  Outcome outcome = run("--help");
  EXPECT_EQ(outcome.status, 0);
  for (const char *text : {"--training.steps <integer> (10000)", "-n,--ranks",
                           "linear|sqrt|cosine", "mpirun -n 2"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text;
}
