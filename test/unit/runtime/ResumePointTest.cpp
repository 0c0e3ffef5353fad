//===- ResumePointTest.cpp - Where a run begins ---------------------------===//
#include "runtime/train/ResumePoint.h"
#include "CheckpointFixture.h"
#include "fsdp/Support/AtomicFile.h"

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

TEST(ResumePoint, OptionsOfABeginningAreLeftOutAfterIt) {
  auto command = [](int64_t loadStep,
                    const std::vector<std::string> &excluded) {
    RunConfig config;
    config.checkpoint.loadStep = loadStep;
    for (const std::string &part : excluded)
      config.checkpoint.excludeFromLoading.push_back(
          readSpelling<CheckpointPart>(part).value());
    return commandThatGoesOn(config);
  };
  EXPECT_EQ(command(-1, {}), "the same command");
  EXPECT_EQ(command(-1, {"dataloader"}), "the same command");
  EXPECT_EQ(command(4, {}), "the same command without checkpoint.load_step");
  for (const char *part : {"optimizer", "lr_scheduler", "train_state"})
    EXPECT_EQ(command(0, {"dataloader", part}),
              "the same command without checkpoint.load_step and "
              "checkpoint.exclude_from_loading");
  EXPECT_EQ(command(-1, {"train_state", "optimizer"}),
            "the same command without checkpoint.exclude_from_loading");
}

TEST(ResumePoint, ADamagedCheckpointHasARemedy) {
  TemporaryFolder folder;
  RunConfig config;
  config.job.dumpFolder = folder.path;
  const std::string steps = checkpointFolder(config);
  Manifest manifest =
      manifestOf({{"dp", 1}}, {{"w", "parameter", "f32", {2}, {""}}});
  saveStep(steps, manifest, 4);
  saveStep(steps, manifest, 8);
  auto damage = [&](const std::string &path) {
    writeFileAtomically(path + "/index.json", "{}");
    std::string message = messageOf([&] {
      openResumeSource(config, manifest, checkpoint::RunState(),
                       {path, /*isOwn=*/true});
    });
    return message.substr(message.find('\n') + 1);
  };
  EXPECT_EQ(damage(steps + "/step-8"),
            "--checkpoint.load_step=4 resumes from the one before, and so does "
            "the same command with '" +
                steps + "/step-8' moved away");
  config.checkpoint.loadStep = 8;
  EXPECT_EQ(damage(steps + "/step-8"),
            "the same command without checkpoint.load_step resumes from the "
            "newest checkpoint");
  config.checkpoint.loadStep = -1;
  EXPECT_EQ(damage(steps + "/step-4"),
            "with '" + steps + "/step-4' moved away, the run starts anew");
}
