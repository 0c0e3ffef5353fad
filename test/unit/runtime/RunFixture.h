//===- RunFixture.h - fsdp-run with an artifact made by hand ----*- C++ -*-===//
//
// Inputs/unigram.cpp, compiled once for one and for two ranks.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_UNIT_RUNTIME_RUNFIXTURE_H
#define FSDP_TEST_UNIT_RUNTIME_RUNFIXTURE_H

#include "TemporaryFolder.h"
#include "fsdp/Config/RunConfig.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Checksum.h"
#include <chrono>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

namespace fsdp::test {

inline nlohmann::json unigramRange(const char *name, const char *role,
                                   const char *dtype,
                                   std::vector<int64_t> shape, int offset) {
  int64_t bytes = 4;
  for (int64_t size : shape)
    bytes *= size;
  return {{"name", name},    {"role", role},     {"dtype", dtype},
          {"shape", shape},  {"offset", offset}, {"bytes", bytes},
          {"full", nullptr}, {"init", nullptr},  {"placement", nullptr}};
}

/// The manifest of Inputs/unigram.cpp for so many ranks.
inline nlohmann::json unigramManifest(int ranks) {
  RunConfig config;
  config.training.localBatchSize = 2;
  config.training.seqLen = 16;
  config.lrScheduler.warmupSteps = 0;
  resolveConfig(config, ranks);
  constexpr int arena = 1536 + 2 * 16 * 256 * 4;
  return {
      {"format", 5},
      {"config", compiledSettings(config)},
      {"fingerprint", nlohmann::json::object()},
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
         {"adds", nlohmann::json::array()},
         {"clears", nlohmann::json::array()},
         {"arena_bytes", arena},
         {"flops", 1e4}},
        {{"name", "evaluate"},
         {"inputs", {"tokens", "targets"}},
         {"outputs", {"loss", "logits"}},
         {"reads", {"w", "tokens", "targets"}},
         {"writes", {"loss", "logits"}},
         {"adds", nlohmann::json::array()},
         {"clears", nlohmann::json::array()},
         {"arena_bytes", arena},
         {"flops", 1e4}}}},
      {"steps", {{"train", {{{"program", "train"}, {"times", 1}}}}}},
      {"runs", {{"train", {{"train", 1}}}}}};
}

/// Says that a range of a manifest is a part of one of shape `full`: `axes` are
/// the compute axes of its dimensions, "" for none.
inline void place(nlohmann::json &manifest, const std::string &name,
                  std::vector<int64_t> full, std::vector<std::string> axes) {
  for (nlohmann::json &range : manifest["ranges"]) {
    if (range["name"] != name)
      continue;
    range["full"] = full;
    range["placement"] = {{"dims", nlohmann::json::array()}};
    for (const std::string &axis : axes) {
      nlohmann::json compute = nlohmann::json::array();
      if (!axis.empty())
        compute.push_back(axis);
      range["placement"]["dims"].push_back(
          {{"compute", compute}, {"storage", nlohmann::json::array()}});
    }
  }
}

/// The manifest for two ranks along `tp`, all of which have the same of the
/// batch unless somebody says more.
inline nlohmann::json tensorParallelManifest() {
  nlohmann::json manifest = unigramManifest(2);
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

  /// Runs fsdp-run with `arguments`; `before` goes before the command.
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
    for (const nlohmann::json &step : metrics())
      result.push_back(step["loss_hex"]);
    return result;
  }
  nlohmann::json summary() {
    return nlohmann::json::parse(
        readWholeFile(folder.file("dump/summary.json"), ""));
  }
  std::string whereStepsAre() {
    return "; the steps so far are in '" + folder.file("dump/metrics.jsonl") +
           "'";
  }
  std::vector<nlohmann::json> metricLines() {
    std::ifstream file(folder.file("dump/metrics.jsonl"));
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(file, line);)
      lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  /// The steps of the last run.
  std::vector<nlohmann::json> metrics() {
    std::vector<nlohmann::json> steps;
    for (const nlohmann::json &line : metricLines()) {
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
  static inline TemporaryFolder *shared = nullptr;
  TemporaryFolder folder;
};

} // namespace fsdp::test

#endif // FSDP_TEST_UNIT_RUNTIME_RUNFIXTURE_H
