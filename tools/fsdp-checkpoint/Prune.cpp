//===- Prune.cpp - fsdp-checkpoint prune ----------------------------------===//
#include "Commands.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Message.h"
#include "runtime/checkpoint/native/CheckpointFolder.h"
#include <algorithm>
#include <cstdio>

using namespace fsdp;
using namespace fsdp::checkpoint;

static int prune(const std::string &folder, int64_t keep) {
  std::vector<int64_t> before = committedSteps(folder);
  if (before.empty())
    throw Error("there is no checkpoint in '" + folder +
                "': a folder of them has directories 'step-N' with a marker "
                "'committed'");
  Pruned pruned = pruneCheckpoints(folder, keep);
  std::vector<int64_t> after = committedSteps(folder);
  for (int64_t step : before)
    if (!std::binary_search(after.begin(), after.end(), step))
      std::printf("removed %s\n", stepFolder(folder, step).c_str());
  for (int64_t step : pruned.foreign)
    printMessage(
        "fsdp-checkpoint",
        "'" + stepFolder(folder, step) +
            "' stays: it contains a file that is not part of a checkpoint");
  bool isAnyDamaged = warnOfDamage(
      folder, "it stays and does not count among those to keep; remove it, or "
              "see fsdp-checkpoint verify");
  return pruned.foreign.empty() && !isAnyDamaged ? 0 : 1;
}

std::function<int()> checkpoint::declarePrune(CLI::App &app) {
  struct Options {
    std::string folder;
    int64_t keep = 0;
  };
  auto options = std::make_shared<Options>();
  app.add_option("FOLDER", options->folder, "folder of steps")->required();
  app.add_option("--keep", options->keep, "number of newest steps to keep")
      ->required()
      ->check(CLI::Range(int64_t{1}, INT64_MAX));
  return [options] { return prune(options->folder, options->keep); };
}
