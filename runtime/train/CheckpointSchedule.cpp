//===- CheckpointSchedule.cpp - When a run saves, and what ----------------===//
#include "CheckpointSchedule.h"

using namespace fsdp;

bool fsdp::isCheckpointDue(const RunConfig &config, int64_t done) {
  const RunConfig::Checkpoint &checkpoint = config.checkpoint;
  return done % checkpoint.interval == 0 || done == config.training.steps ||
         (done == 1 && checkpoint.enableFirstStepCheckpoint);
}

SaveContents fsdp::contentsOfCheckpoint(const RunConfig &config, int64_t done) {
  bool isExport =
      done == config.training.steps && config.checkpoint.lastSaveModelOnly;
  return isExport ? SaveContents::Export : SaveContents::Everything;
}
