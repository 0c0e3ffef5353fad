//===- RunTest.cpp - fsdp-run from end to end, without the compiler -------===//
//
// A hand-written artifact (RunFixture.h) is run in every way that fsdp-run can
// be started, and in many ways that must fail.
//
//===----------------------------------------------------------------------===//
#include "RunFixture.h"
#include <cmath>

using namespace fsdp;
using namespace fsdp::test;
using nlohmann::json;

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

// In a collective after gzip, the two would wait for each other.
TEST_F(Run, NoRankWaitsForGzip) {
#ifdef FSDP_SANITIZE
  GTEST_SKIP() << "the sanitizers would have to come before what is preloaded";
#endif
  std::string library = folder.file("gzip-after-rank-1.so");
  std::string source = FSDP_TEST_INPUTS "/gzip-after-rank-1.c";
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

TEST_F(Run, TwoRunsAreBitwiseEqual) {
  ASSERT_EQ(run(good(1, 30)).status, 0);
  std::vector<json> first = metrics();
  ASSERT_EQ(run(good(1, 30)).status, 0);
  std::vector<json> second = metrics();
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(first[i]["loss_hex"], second[i]["loss_hex"]) << i;
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
                                            "/stop-after-steps.sh " +
                                            folder.file("dump/metrics.jsonl")),
              "stopped by signal 15 (Terminated)" + whereStepsAre(), 0);
  }
}

TEST_F(Run, NonFiniteLossesEndTheJob) {
  expectEnd(run(good(1, 50), "UNIGRAM_NAN=7"),
            "step 7: the loss is not finite; the run was stopped: all "
            "parameters are finite, the step's own values are not; it has "
            "changed the parameters and cannot be run again, but fsdp-run "
            "--check-values finds the first such value when it is produced",
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
                "of them, or a Hugging Face directory");
  expectFailure(run(artifact),
                "training.dataset_path is not set; name the text file");
  expectFailure(run(artifact + " --training.dataset_path /nowhere"),
                "cannot read the text '/nowhere': No such file or directory");
  expectFailure(run(artifact + " --program fly"),
                "the artifact has no program 'fly'");
  expectFailure(run("/nowhere"),
                "no artifact directory '/nowhere'; fsdp-compile writes one");
}

TEST_F(Run, HelpTeaches) {
  Outcome outcome = run("--help");
  EXPECT_EQ(outcome.status, 0);
  for (const char *text : {"--training.steps <integer> (10000)", "-n,--ranks",
                           "linear|sqrt|cosine", "mpirun -n 2"})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text;
}
