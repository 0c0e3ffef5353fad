//===- SavedSteps.h - Steps that a test saves and looks at ------*- C++ -*-===//
#ifndef FSDP_TEST_CHECKPOINT_SAVEDSTEPS_H
#define FSDP_TEST_CHECKPOINT_SAVEDSTEPS_H

#include "../CheckpointFixture.h"

namespace fsdp::test {

/// What is saved: three ranks, which all have a part.
inline rt::Manifest savedManifest() {
  return manifestOf({{"dp", 3}},
                    {{"a", "parameter", "f32", {10, 6}, {"/dp", ""}},
                     {"a.exp_avg", "state", "f32", {10, 6}, {"/dp", ""}},
                     {"b", "parameter", "bf16", {5}, {""}}});
}

/// Saves a step, one rank after the other.
inline void saveInOrder(const std::string &folder, int64_t step) {
  rt::Manifest saved = savedManifest();
  checkpoint::SaveRequest request = requestOf(folder, saved, step);
  checkpoint::beginSave(request);
  for (request.rank = 0; request.rank < request.ranks; ++request.rank)
    checkpoint::writePart(request, chunksOf(saved, request.rank, step));
  std::atomic<checkpoint::Parts> parts{checkpoint::Parts::Awaited};
  checkpoint::commitSave(request, parts);
}

/// What a run does at its start and at each of some steps.
inline void runSteps(const std::string &folder, int64_t first, int64_t count) {
  checkpoint::cleanCheckpoints(folder);
  for (int64_t step = first; step < first + count; ++step) {
    saveInOrder(folder, step);
    checkpoint::pruneCheckpoints(folder, 2);
  }
}

} // namespace fsdp::test

#endif // FSDP_TEST_CHECKPOINT_SAVEDSTEPS_H
