//===- PowerLossTest.cpp - What a loss of power leaves is no torn step ----===//
//
// The calls of saves are recorded. Before each of them the power may go:
// then the disk has one of the trees that DiskModel allows. There no step may
// be torn, and none that somebody was told of may be gone.
//
//===----------------------------------------------------------------------===//
#include "DiskModel.h"
#include "SavedSteps.h"
#include "runtime/checkpoint/store/VerifyTensors.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::test;
namespace fs = std::filesystem;

namespace {

/// The calls of a run, and the newest step that somebody had been told of when
/// each was made, and at the end.
struct Log {
  std::vector<FileCall> calls;
  std::vector<int64_t> promised;
};

using Save = std::function<void(const std::string &folder, int64_t step)>;

/// What a run does, from its start on.
struct SavingRun {
  int64_t first, count; // steps
  Save save = saveInOrder;
};

class PowerLoss : public testing::Test {
protected:
  /// Step 5 is there, and so is step 4.
  PowerLoss() {
    TemporaryFolder folder;
    runSteps(folder.path, 4, 2);
    before = readTree(folder.path);
  }
  ~PowerLoss() override {
    EXPECT_EQ(torn, 0) << first;
    EXPECT_EQ(gone, 0) << first;
    EXPECT_GT(images, 0);
    std::printf("%d images of disks\n", images);
  }

  Log record(const SavingRun &run, const std::string &folder, int64_t promised);
  void lookAtImages(DiskModel disk, const Log &log, const std::string &root,
                    size_t count);
  void lookAt(const Tree &image, int64_t promised, const std::string &when);
  void losePower(const SavingRun &run);
  void losePowerAfterKills(const SavingRun &killed, const SavingRun &next);

  Tree before;
  std::mt19937 random{1};
  int images = 0, torn = 0, gone = 0;
  std::string first; // what was wrong first
};

} // namespace

/// FSDP_DISK_IMAGES: how many, of each test.
static size_t imagesWanted() {
  const char *wanted = std::getenv("FSDP_DISK_IMAGES");
  return wanted ? std::strtoul(wanted, nullptr, 10) : 80;
}

/// Does what `run` does in `folder`.
Log PowerLoss::record(const SavingRun &run, const std::string &folder,
                      int64_t promised) {
  Log log;
  recorder = [&](FileCall call) {
    log.calls.push_back(std::move(call));
    log.promised.push_back(promised);
  };
  cleanCheckpoints(folder);
  // The run says from where it goes on.
  promised = std::max(promised, committedSteps(folder).back());
  for (int64_t step = run.first; step < run.first + run.count; ++step) {
    run.save(folder, step);
    promised = std::max(promised, step);
    pruneCheckpoints(folder, 2);
  }
  recorder = nullptr;
  log.promised.push_back(promised);
  return log;
}

/// Why the step cannot be used; empty: it can.
static std::string problemOf(const std::string &folder, int64_t step) {
  try {
    auto store = openTensorStore(stepFolder(folder, step));
    Verification found = verifyTensors(*store, 1, [](uint64_t) {});
    return found.damage.empty() ? "" : found.damage.front();
  } catch (const Error &error) {
    return error.what();
  }
}

void PowerLoss::lookAt(const Tree &image, int64_t promised,
                       const std::string &when) {
  ++images;
  TemporaryFolder folder;
  writeTree(folder.path, image);
  auto say = [&](int &count, const std::string &what) {
    ++count;
    if (first.empty())
      first = when + ": " + what;
  };
  for (int64_t step : committedSteps(folder.path)) {
    std::string problem = problemOf(folder.path, step);
    if (!problem.empty())
      say(torn, problem);
  }
  cleanCheckpoints(folder.path);
  std::vector<int64_t> steps = committedSteps(folder.path);
  if (steps.empty() || steps.back() < promised)
    say(gone, "step " + std::to_string(promised) + " is gone");
  else if (!problemOf(folder.path, steps.back()).empty())
    say(torn, "after the next start " + problemOf(folder.path, steps.back()));
}

/// Each place in the log has its turn.
void PowerLoss::lookAtImages(DiskModel disk, const Log &log,
                             const std::string &root, size_t count) {
  size_t places = log.calls.size() + 1;
  for (size_t place = 0; place < places; ++place) {
    if (place > 0)
      disk.apply(log.calls[place - 1], root);
    size_t now = count * (place + 1) / places - count * place / places;
    for (size_t i = 0; i < now; ++i)
      lookAt(disk.afterPowerLoss(random), log.promised[place],
             "behind " + std::to_string(place) + " of " +
                 std::to_string(log.calls.size()) + " calls");
  }
  // Without a loss the model is the folder: no call was overlooked.
  EXPECT_EQ(disk.now(), readTree(root));
}

void PowerLoss::losePower(const SavingRun &run) {
  TemporaryFolder folder;
  std::string root = fs::canonical(folder.path).string();
  writeTree(root, before);
  Log log = record(run, root, 5);
  lookAtImages(DiskModel(before), log, root, imagesWanted());
}

/// Whether a run that is killed after the call leaves a step, to be seen or to
/// be moved, of which the disk knows nothing yet.
static bool namesAStep(const FileCall &call, const std::string &root) {
  fs::path to(call.to);
  return to.filename() == "committed" || to.parent_path() == root;
}

/// A run is killed after each of its calls in turn; the power goes in the next
/// one. Half of the images are of the few calls that decide.
void PowerLoss::losePowerAfterKills(const SavingRun &killed,
                                    const SavingRun &next) {
  TemporaryFolder folder;
  std::string root = fs::canonical(folder.path).string();
  writeTree(root, before);
  Log log = record(killed, root, 5);
  auto deciding =
      std::count_if(log.calls.begin(), log.calls.end(),
                    [&](const auto &call) { return namesAStep(call, root); });
  size_t most = log.calls.size() / static_cast<size_t>(deciding);
  size_t all = 2 * most * static_cast<size_t>(deciding), done = 0;
  DiskModel disk(before);
  for (size_t place = 0; place < log.calls.size(); ++place) {
    disk.apply(log.calls[place], root);
    size_t until = done + (namesAStep(log.calls[place], root) ? most : 1);
    TemporaryFolder other;
    std::string otherRoot = fs::canonical(other.path).string();
    writeTree(otherRoot, disk.now());
    Log more = record(next, otherRoot, log.promised[place + 1]);
    lookAtImages(disk, more, otherRoot,
                 imagesWanted() * until / all - imagesWanted() * done / all);
    done = until;
  }
}

TEST_F(PowerLoss, WhileStepsAreSaved) { losePower({6, 2}); }

TEST_F(PowerLoss, WhileRanksWriteAtOnce) {
  losePower({6, 2, [](const std::string &folder, int64_t step) {
               saveStep(folder, savedManifest(), step);
             }});
}

TEST_F(PowerLoss, WhileAStepIsReplaced) { losePower({5, 1}); }

TEST_F(PowerLoss, WhereNamesCannotBeExchanged) {
  canExchange = false;
  losePower({5, 1});
  losePowerAfterKills({5, 1}, {6, 1});
  canExchange = true;
}

TEST_F(PowerLoss, AfterAKilledRun) { losePowerAfterKills({6, 2}, {8, 1}); }

TEST_F(PowerLoss, AfterAKilledRunThatReplacedAStep) {
  losePowerAfterKills({5, 1}, {6, 1});
}
