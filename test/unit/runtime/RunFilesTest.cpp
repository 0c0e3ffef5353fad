//===- RunFilesTest.cpp - Folders and artifacts of fsdp-run ---------------===//
#include "RunFixture.h"
#include "fsdp/Artifact/Loader.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Checksum.h"
#include "fsdp/Support/Text.h"
#include <cinttypes>
#include <sys/stat.h>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;
using nlohmann::json;

// A second run goes after the first, each after a line that says what it is.
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

// Where a result cannot come, it is said before the first step.
TEST_F(Run, AFolderInThePlaceOfAResult) {
  for (const char *name : {"loss.svg", "summary.json"}) {
    std::filesystem::remove_all(folder.file("dump"));
    std::string path = folder.file(std::string("dump/") + name);
    std::filesystem::create_directories(path);
    Outcome outcome = run(good(1, 2));
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.err,
              "fsdp-run: cannot write '" + path + "': it is a directory\n");
    EXPECT_FALSE(std::filesystem::exists(folder.file("dump/metrics.jsonl")));
  }
  // One that comes meanwhile leaves the summary.
  std::filesystem::remove_all(folder.file("dump"));
  std::string path = folder.file("dump/loss.svg");
  Outcome outcome = run(good(1, 2), "UNIGRAM_MKDIR=" + path);
  EXPECT_EQ(outcome.err,
            "fsdp-run: cannot write '" + path + "': Is a directory\n");
  EXPECT_EQ(summary()["held_out_predictions"], 249);
}

// root may write to /proc as far as permissions go.
TEST_F(Run, ATraceThatCannotBeMade) {
  Outcome outcome = run(good(2, 2), "FSDP_TRACE=/proc/x");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err.rfind("fsdp-run: environment: FSDP_TRACE: cannot ", 0),
            0u)
      << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder.file("dump")));
}

TEST_F(Run, ALostTraceKeepsTheResults) {
  for (int ranks : {1, 2}) {
    std::string artifact = "unigram" + std::to_string(ranks);
    json programs;
    for (const char *name : {"train", "evaluate"})
      programs.push_back(
          {{"name", name}, {"calls", 0}, {"values", json::array()}});
    std::string manifest =
        readWholeFile(shared->file(artifact + "/manifest.json"), "manifest");
    json table = {{"format", 1},
                  {"manifest", format("%" PRIx64, checksumOf(manifest))},
                  {"names", json::array()},
                  {"types", json::array()},
                  {"programs", programs}};
    shared->write(artifact + "/values.json", table.dump());
    // A folder that comes meanwhile is in its place.
    std::filesystem::remove_all(folder.file("dump"));
    std::string trace = folder.file("trace" + std::to_string(ranks));
    std::string last = trace + "." + std::to_string(ranks - 1) + ".json";
    Outcome outcome =
        run(good(ranks, 20), "FSDP_TRACE=" + trace + " UNIGRAM_MKDIR=" + last);
    EXPECT_EQ(outcome.status, 1);
    std::string who = ranks > 1 ? "rank 1: " : "";
    std::string where = ranks > 1 ? whereStepsAre() : "";
    EXPECT_EQ(outcome.err, "fsdp-run: " + who +
                               "the trace is lost: cannot write '" + last +
                               "': Is a directory; the training is complete, "
                               "and its output is in '" +
                               folder.file("dump") + "'" + where + "\n");
    EXPECT_EQ(summary()["steps"], 20);
    EXPECT_TRUE(std::filesystem::exists(folder.file("dump/loss.svg")));
  }
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
  expectFailure(run(copy),
                "damaged manifest " + copy +
                    "/manifest.json: line 1, column 100: this is not JSON: "
                    "invalid string: missing closing quote");
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
                    "/step.so.xxh3: an older fsdp-compile wrote it, or the "
                    "file was not copied; compile the artifact again");
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
