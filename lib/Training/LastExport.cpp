//===- LastExport.cpp - The last step for Hugging Face --------------------===//
#include "LastExport.h"
#include "Console.h"
#include "Metrics.h"
#include "fsdp/Checkpoint/CheckpointFolder.h"
#include "fsdp/Checkpoint/HuggingFace.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <filesystem>

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
                           const rt::Manifest &manifest) {
  if (exportsLastStep(config))
    checkExportable(manifest.model,
                    "checkpoint.last_save_in_hf = true, but the artifact");
}

void fsdp::checkExportPlace(const RunConfig &config) {
  std::string place = placeOf(config, config.training.steps);
  if (exportsLastStep(config) && fs::exists(place))
    throw Error("'" + place +
                "' is there already, which checkpoint.last_save_in_hf = true "
                "would write behind the last step; move it away, or choose "
                "another checkpoint.folder");
}

void fsdp::exportStep(const RunConfig &config, int64_t step) {
  std::string place = placeOf(config, step);
  if (fs::exists(place))
    return;
  // Of a run that was killed: this one has the folder's lock.
  fs::remove_all(place + ".partial");
  ExportOptions options;
  options.dtype = weightType(config.checkpoint.exportDtype);
  auto store = openTensorStore(stepFolder(checkpointFolder(config), step));
  ExportSummary written = exportHuggingFace(*store, place, options);
  print(format(
      "checkpoint: step %s written for Hugging Face to %s: %s "
      "parameters, %s bytes of %s in %zu file%s\n",
      grouped(step).c_str(), place.c_str(), grouped(written.parameters).c_str(),
      grouped(written.bytes).c_str(), config.checkpoint.exportDtype.c_str(),
      written.files, written.files == 1 ? "" : "s"));
}
