//===- LastExport.cpp - The last step for Hugging Face --------------------===//
#include "LastExport.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/FileCalls.h"
#include "fsdp/Support/Signals.h"
#include "fsdp/Support/Text.h"
#include "runtime/checkpoint/Open.h"
#include "runtime/checkpoint/huggingface/HuggingFace.h"
#include "runtime/checkpoint/native/CheckpointFolder.h"
#include "runtime/report/Console.h"
#include "runtime/report/Metrics.h"
#include <filesystem>
#include <regex>

using namespace fsdp;
using namespace fsdp::checkpoint;
namespace fs = std::filesystem;

static std::string placeOf(const RunConfig &config, int64_t step) {
  return stepFolder(checkpointFolder(config), step) + "-hf";
}

bool fsdp::exportsLastStep(const RunConfig &config) {
  return savesCheckpoints(config) && config.checkpoint.lastSaveInHf;
}

void fsdp::checkLastExport(const RunConfig &config,
                           const rt::ArtifactFolder &artifact) {
  if (!exportsLastStep(config))
    return;
  try {
    checkExportable(artifact.manifest().model,
                    "the artifact '" + artifact.directory() + "'");
  } catch (const Error &error) {
    throw Error(
        "checkpoint.last_save_in_hf = true: " + std::string(error.what()) +
        "; leave the key out, or use an artifact that fsdp-compile compiled "
        "from a [model] of such a family");
  }
}

void fsdp::removeHalfExports(const RunConfig &config) {
  fs::path folder = checkpointFolder(config);
  const std::regex name("step-[0-9]+-hf\\.partial");
  std::error_code error;
  std::vector<fs::path> left;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error))
    if (std::regex_match(entry.path().filename().string(), name))
      left.push_back(entry.path());
  for (const fs::path &path : left) {
    fs::remove_all(path, error);
    if (error)
      throw Error(
          "cannot remove '" + path.string() +
          "', which a run that was killed has left: " + error.message());
  }
}

/// Whether nothing has the name, or a directory that is empty, which an export
/// replaces. A link has it, wherever it leads.
static bool isFree(const std::string &place) {
  FileCall call("stat", place);
  std::error_code error;
  fs::file_status status = fs::symlink_status(place, error);
  if (status.type() == fs::file_type::not_found)
    return true;
  bool isEmpty = fs::is_directory(status) && fs::is_empty(place, error);
  if (error)
    throw Error("cannot look at '" + place + "': " + error.message());
  return isEmpty;
}

void fsdp::checkExportPlace(const RunConfig &config, const ResumePoint &start) {
  if (!exportsLastStep(config))
    return;
  bool isOver = start.step >= config.training.steps;
  if (isOver && !start.isOwn)
    throw Error(
        "checkpoint.last_save_in_hf = true, but no step is trained, "
        "and so none saved: '" +
        start.path + "' is of step " + std::to_string(start.step) +
        " and training.steps = " + std::to_string(config.training.steps) +
        "; raise that, or use fsdp-checkpoint export");
  std::string place = placeOf(config, config.training.steps);
  if (!isOver && !isFree(place))
    throw Error("'" + place +
                "' exists already, which checkpoint.last_save_in_hf = true "
                "would write after the last step; move it away, or choose "
                "another checkpoint.folder");
}

void fsdp::exportStep(const RunConfig &config, int64_t step) {
  std::string place = placeOf(config, step);
  if (!isFree(place)) {
    if (!isHuggingFace(place))
      throw Error(
          "'" + place +
          "' exists and is not a Hugging Face directory, which "
          "checkpoint.last_save_in_hf = true would write; move it away");
    print(format("checkpoint: step %s is there for Hugging Face already: %s\n",
                 grouped(step).c_str(), place.c_str()));
    return;
  }
  ExportOptions options;
  options.dtype = weightType(spelled(config.checkpoint.exportDtype));
  auto store = openTensorStore(stepFolder(checkpointFolder(config), step));
  ExportSummary written;
  try {
    written = exportHuggingFace(*store, place, options);
  } catch (const Interrupted &) {
    return;
  }
  print(format("checkpoint: step %s written for Hugging Face to %s: %s "
               "parameters, %s bytes of %s in %zu file%s\n",
               grouped(step).c_str(), place.c_str(),
               grouped(written.parameters).c_str(),
               grouped(written.bytes).c_str(),
               spelled(config.checkpoint.exportDtype).c_str(), written.files,
               written.files == 1 ? "" : "s"));
}
