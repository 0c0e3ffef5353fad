//===- KillsTest.cpp - A save that dies anywhere loses nothing ------------===//
//
// Each call that changes files is counted, and a child that saves dies by
// SIGKILL after the n-th of them, for every n there is; then at random times.
// What it leaves must open and verify, and be clean after the next run.
//
//===----------------------------------------------------------------------===//
#include "FileCalls.h"
#include "SavedSteps.h"
#include "runtime/checkpoint/store/VerifyTensors.h"
#include <csignal>
#include <cstdio>
#include <random>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;
using namespace fsdp::test;
namespace fs = std::filesystem;

/// The names of new directories are on the disk too, up to one that was there.
TEST(CheckpointKills, NewFoldersAreDurable) {
  TemporaryFolder folder;
  fs::path root = fs::canonical(folder.path);
  synced.clear();
  saveInOrder((root / "a/b").string(), 1);
  for (const char *name : {"", "a", "a/b", "a/b/step-1.partial"})
    EXPECT_EQ(synced.count(*name ? root / name : root), 1u) << name;
}

/// The newest step opens, verifies and has its values; returns it.
static int64_t checkNewest(const std::string &folder) {
  auto store = openTensorStore(folder);
  int64_t step = store->state()->step;
  EXPECT_EQ(verifyTensors(*store, 1, [](uint64_t) {}).damage.size(), 0u);
  Manifest saved = savedManifest();
  for (const RangeInfo &range : saved.ranges) {
    ShardView view = saved.shardView(range, 0);
    TensorReader reader(*store->find(range.name), view, range.dtype);
    std::string bytes(range.bytes, '\x5a');
    reader.read(0, range.elements(),
                reinterpret_cast<std::byte *>(bytes.data()));
    EXPECT_EQ(bytes, storedBytes(saved, range, 0, step)) << range.name;
  }
  return step;
}

/// Every file below the folder.
static std::set<std::string> listing(const std::string &folder) {
  std::set<std::string> files;
  for (const auto &entry : fs::recursive_directory_iterator(folder))
    files.insert(fs::relative(entry.path(), folder).string());
  return files;
}

static std::set<std::string> filesOf(std::initializer_list<int64_t> steps) {
  std::set<std::string> files;
  for (int64_t step : steps) {
    std::string place = "step-" + std::to_string(step);
    files.insert(place);
    for (const char *name :
         {"committed", "index.json", "rank-00000.safetensors",
          "rank-00001.safetensors", "rank-00002.safetensors"})
      files.insert(place + "/" + name);
  }
  return files;
}

/// After the next run nothing is left but the newest steps.
static void checkNextRun(const std::string &folder, int64_t step) {
  runSteps(folder, step, 2);
  EXPECT_EQ(listing(folder), filesOf({step, step + 1}));
  EXPECT_EQ(checkNewest(folder), step + 1);
}

/// Runs `work` in a child that may make so many calls. True if it came to its
/// end.
template <typename Work> static bool survives(int calls, Work work) {
  pid_t child = fork();
  if (child == 0) {
    callsLeft = calls;
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL
                                  : WEXITSTATUS(status) == 0);
  return WIFEXITED(status);
}

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

/// Lets `work` die after each of its calls, over a folder with the steps 4 and
/// 5; `newest` are those that may be the newest then.
template <typename Work>
static void dieEverywhere(Work work, std::set<int64_t> newest) {
  std::set<int64_t> seen;
  bool ended = false;
  int calls = 0;
  for (; !ended; ++calls) {
    TemporaryFolder folder;
    runSteps(folder.path, 4, 2);
    ended = survives(calls, [&] { work(folder.path); });
    int64_t step = checkNewest(folder.path);
    EXPECT_TRUE(newest.count(step)) << step << " after " << calls << " calls";
    seen.insert(step);
    cleanCheckpoints(folder.path);
    EXPECT_GE(checkNewest(folder.path), 5);
    checkNextRun(folder.path, 7);
    ASSERT_FALSE(testing::Test::HasFailure()) << calls << " calls";
  }
  EXPECT_EQ(seen, newest);
  std::printf("died at %d places\n", calls - 1);
  // Files of three ranks, the index and the marker, each written and renamed.
  EXPECT_GT(calls, 20);
}

TEST(CheckpointKills, AfterEveryCallOfANewStep) {
  dieEverywhere([](const std::string &folder) { runSteps(folder, 6, 1); },
                {5, 6});
}

TEST(CheckpointKills, AfterEveryCallOfAStepThatIsThere) {
  dieEverywhere([](const std::string &folder) { runSteps(folder, 5, 1); }, {5});
}

TEST(CheckpointKills, WhereNamesCannotBeExchanged) {
  // Between two renames step 5 has another name, until somebody cleans.
  canExchange = false;
  dieEverywhere([](const std::string &folder) { runSteps(folder, 5, 1); },
                {4, 5});
  canExchange = true;
}

TEST(CheckpointKills, ADiskThatDoesNotTakeTheLastName) {
  TemporaryFolder folder;
  runSteps(folder.path, 4, 1);
  failingFolder = folder.path;
  std::string message = messageOf([&] { saveInOrder(folder.path, 5); });
  failingFolder.clear();
  EXPECT_EQ(message, "'" + folder.path +
                         "/step-5' is complete, but may not be on the disk: "
                         "cannot write the folder '" +
                         folder.path + "': Input/output error");
  EXPECT_EQ(checkNewest(folder.path), 5);
}

/// FSDP_KILLS: how many.
TEST(CheckpointKills, AtRandomTimes) {
  const char *wanted = std::getenv("FSDP_KILLS");
  int kills = wanted ? std::atoi(wanted) : 20;
  std::mt19937 random(1);
  TemporaryFolder folder;
  runSteps(folder.path, 1, 1);
  int64_t newest = 1;
  for (int i = 0; i < kills; ++i) {
    pid_t child = fork();
    if (child == 0) {
      cleanCheckpoints(folder.path);
      for (int64_t step = newest + 1;; ++step) {
        saveStep(folder.path, savedManifest(), step); // ranks are threads
        pruneCheckpoints(folder.path, 2);
      }
    }
    usleep(random() % 150000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    int64_t step = checkNewest(folder.path);
    EXPECT_GE(step, newest);
    newest = step;
  }
  std::printf("%d kills, at step %lld\n", kills,
              static_cast<long long>(newest));
  checkNextRun(folder.path, newest + 1);
}
