//===- StartPointTest.cpp - Where a run begins ----------------------------===//
#include "../../../lib/Training/StartPoint.h"
#include "CheckpointFixture.h"

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

TEST(StartPoint, OptionsOfABeginningAreLeftOutBehindIt) {
  auto command = [](int64_t loadStep, std::vector<std::string> excluded) {
    RunConfig config;
    config.checkpoint.loadStep = loadStep;
    config.checkpoint.excludeFromLoading = std::move(excluded);
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
