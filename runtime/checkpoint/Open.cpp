//===- Open.cpp - Finding what a path is ----------------------------------===//
#include "Open.h"
#include "fsdp/Support/Error.h"
#include "runtime/checkpoint/dcp/Dcp.h"
#include "runtime/checkpoint/huggingface/HuggingFace.h"
#include "runtime/checkpoint/native/CheckpointFolder.h"
#include "runtime/checkpoint/native/Index.h"
#include "runtime/checkpoint/native/NativeStore.h"
#include "runtime/checkpoint/native/StepFolder.h"
#include <filesystem>

using namespace fsdp;
using namespace fsdp::checkpoint;
namespace fs = std::filesystem;

namespace {

/// What a path may be. The first kind that knows it opens it.
struct Kind {
  const char *name; // for messages
  bool (*matches)(const std::string &path);
  std::unique_ptr<TensorStore> (*open)(const std::string &path);
};

} // namespace

static bool isFolderOfSteps(const std::string &path) {
  return !committedSteps(path).empty();
}

std::string checkpoint::findCheckpoint(const std::string &path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored) || hasMarker(path))
    return path;
  std::vector<int64_t> steps = committedSteps(path);
  return steps.empty() ? path : stepFolder(path, steps.back());
}

static std::unique_ptr<TensorStore> openNewest(const std::string &path) {
  return openNative(findCheckpoint(path));
}

static const Kind kKinds[] = {
    {"a step of a run (with 'committed')", hasMarker, openNative},
    {"a folder of steps", isFolderOfSteps, openNewest},
    {"a directory of Hugging Face (with 'config.json')", isHuggingFace,
     openHuggingFace},
    {"a checkpoint of torch.distributed.checkpoint (with '.metadata')", isDcp,
     openDcp},
};

/// What stands there instead, as far as it can be told.
static std::string whatElse(const std::string &path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    return "there is nothing of this name";
  if (!fs::is_directory(path, ignored))
    return "it is no directory";
  if (fs::exists(path + "/" + kIndexName, ignored))
    return "it has no marker 'committed': its saving was not finished";
  if (fs::exists(path + "/__0_0.distcp", ignored))
    return "it has data of torch.distributed.checkpoint and no '.metadata': "
           "its saving was not finished";
  std::vector<int64_t> steps = stepsIn(path);
  if (!steps.empty() && isDcp(stepFolder(path, steps.back())))
    return "did you mean '" + stepFolder(path, steps.back()) + "'?";
  if (!stepsIn(path, kPartial).empty() || !steps.empty())
    return "none of its steps has a marker 'committed': their saving was not "
           "finished";
  if (isFolderOfSteps(path + "/checkpoint"))
    return "did you mean '" + path + "/checkpoint'?";
  return "a checkpoint has 'index.json' and 'committed', a folder of them has "
         "directories 'step-N'";
}

std::unique_ptr<TensorStore>
checkpoint::openTensorStore(const std::string &path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    for (const Kind &kind : kKinds)
      if (kind.matches(path))
        return kind.open(path);
  std::string kinds;
  for (const Kind &kind : kKinds)
    kinds += (kinds.empty() ? "" : ", ") + std::string(kind.name);
  throw Error("'" + path + "' has no weights in a format that can be read (" +
              kinds + "): " + whatElse(path));
}
