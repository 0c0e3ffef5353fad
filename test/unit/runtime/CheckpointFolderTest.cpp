//===- CheckpointFolderTest.cpp - What else may lie in a folder -----------===//
//
// Somebody's files and links under the names of steps, what killed processes
// have left, and steps that are damaged: nothing of it is lost or counted.
//
//===----------------------------------------------------------------------===//
#include "CheckpointFixture.h"
#include "fsdp/Support/AtomicFile.h"

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;
using namespace fsdp::test;
namespace fs = std::filesystem;

namespace {

/// A folder with the steps 10, 20 and 30 of one rank.
class CheckpointFolder : public testing::Test {
protected:
  CheckpointFolder() {
    for (int64_t step : {10, 20, 30})
      saveStep(folder.path, manifest, step);
  }

  std::string place(const std::string &name) const { return folder.file(name); }
  /// What beginning to save a step says.
  std::string beginError(int64_t step) const {
    return messageOf(
        [&] { beginSave(requestOf(folder.path, manifest, step)); });
  }

  Manifest manifest =
      manifestOf({{"dp", 1}}, {{"w", "parameter", "f32", {5, 3}, {"/dp", ""}}});
  TemporaryFolder folder;
};

} // namespace

TEST_F(CheckpointFolder, WhatCannotBeLookedAtIsNotAbsent) {
  fs::create_symlink(place("nowhere"), place("step-40"));
  std::string message = messageOf([&] { committedSteps(folder.path); });
  EXPECT_EQ(message, "cannot look at '" + place("step-40") +
                         "': it is a link to '" + place("nowhere") +
                         "', which is not there; mend the link or remove it");
  EXPECT_EQ(messageOf([&] { openTensorStore(folder.path); }), message);
  fs::remove(place("step-40"));
  // A link to a step is one, and a directory without a marker none.
  fs::create_directory_symlink(place("step-10"), place("step-40"));
  fs::create_directory(place("step-50"));
  EXPECT_EQ(committedSteps(folder.path),
            (std::vector<int64_t>{10, 20, 30, 40}));
  // A marker that says nothing: root too may not follow a circle.
  fs::create_symlink("committed", place("step-50/committed"));
  EXPECT_EQ(messageOf([&] { committedSteps(folder.path); }),
            "cannot look at '" + place("step-50/committed") +
                "': Too many levels of symbolic links");
}

TEST_F(CheckpointFolder, WhatIsNoCheckpointIsNotReplaced) {
  folder.write("step-40", "mine");
  folder.write("step-50.partial", "mine");
  folder.write("step-30/notes.txt", "mine");
  fs::create_directory_symlink(place("step-10"), place("step-60.partial"));
  EXPECT_EQ(beginError(40),
            "'" + place("step-40") + "' is no directory; move it away");
  EXPECT_EQ(beginError(50),
            "'" + place("step-50.partial") + "' is no directory; move it away");
  EXPECT_EQ(beginError(60),
            "'" + place("step-60.partial") + "' is no directory; move it away");
  // It is said before anything is written, and again.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(
        beginError(30),
        "'" + place("step-30") +
            "' contains a file that is not part of a checkpoint; move it away");
    EXPECT_FALSE(fs::exists(place("step-30.partial")));
  }
  EXPECT_EQ(cleanCheckpoints(folder.path),
            (std::vector<std::string>{place("step-50.partial"),
                                      place("step-60.partial")}));
  for (const char *name : {"step-40", "step-50.partial", "step-30/notes.txt"})
    EXPECT_EQ(readWholeFile(place(name), "file"), "mine");
  EXPECT_EQ(committedSteps(folder.path), (std::vector<int64_t>{10, 20, 30}));
}

TEST_F(CheckpointFolder, OddDirectoriesStay) {
  fs::create_directories(place("step-40.partial/index.json/mine"));
  fs::create_directories(place("step-50.partial-removed/committed/mine"));
  EXPECT_EQ(cleanCheckpoints(folder.path),
            (std::vector<std::string>{place("step-40.partial"),
                                      place("step-50.partial-removed")}));
  EXPECT_TRUE(fs::exists(place("step-40.partial/index.json/mine")));
}

TEST_F(CheckpointFolder, DamagedStepsDoNotCountAmongThoseKept) {
  fs::resize_file(place("step-30/rank-00000.safetensors"), 7);
  Pruned pruned = pruneCheckpoints(folder.path, 2);
  EXPECT_EQ(pruned.damaged, (std::vector<int64_t>{30}));
  EXPECT_EQ(committedSteps(folder.path), (std::vector<int64_t>{10, 20, 30}));
  pruned = pruneCheckpoints(folder.path, 1);
  EXPECT_EQ(pruned.damaged, (std::vector<int64_t>{30}));
  EXPECT_EQ(committedSteps(folder.path), (std::vector<int64_t>{20, 30}));
  folder.write("step-20/index.json", "{}");
  pruned = pruneCheckpoints(folder.path, 1);
  EXPECT_EQ(pruned.damaged, (std::vector<int64_t>{30, 20}));
  EXPECT_EQ(committedSteps(folder.path), (std::vector<int64_t>{20, 30}));
}

TEST_F(CheckpointFolder, WhatKilledProcessesLeaveIsRemoved) {
  fs::create_directory(place("step-5.partial-removed"));
  folder.write("step-5.partial-removed/index.json", "half");
  EXPECT_TRUE(pruneCheckpoints(folder.path, 3).foreign.empty());
  EXPECT_FALSE(fs::exists(place("step-5.partial-removed")));
  folder.write("step-10/index.json.partial-77", "half");
  folder.write("step-10/notes.partial-77", "mine");
  cleanCheckpoints(folder.path);
  EXPECT_FALSE(fs::exists(place("step-10/index.json.partial-77")));
  EXPECT_TRUE(fs::exists(place("step-10/notes.partial-77")));
}
