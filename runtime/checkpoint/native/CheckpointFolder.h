//===- CheckpointFolder.h - Saving and keeping checkpoints ------*- C++ -*-===//
//
// A folder of checkpoints has one directory per step. Ranks write aside, into
// step-N.partial; what is whole is renamed to step-N:
//
//   checkpoint/
//     step-500/
//       rank-00000.safetensors   the boxes that this rank writes
//       rank-00001.safetensors
//       index.json               every tensor: type, shape, its boxes with
//                                file and checksums; RunState; model
//       committed                checksum and size of index.json: the marker,
//                                written last
//     step-1000.partial/         being written, or left by a run that died
//
// A step counts only with its marker. Nothing here talks to other ranks but
// through the folder, which all of them see: a rank says that its part is
// written by rank-00001.json beside it, and the first rank commits when all
// parts are there.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CHECKPOINT_NATIVE_CHECKPOINTFOLDER_H
#define FSDP_RUNTIME_CHECKPOINT_NATIVE_CHECKPOINTFOLDER_H

#include "fsdp/Artifact/Manifest.h"
#include "runtime/checkpoint/store/RunState.h"
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdp::checkpoint {

/// A box of a tensor that a rank writes.
struct SavedChunk : rt::Box {
  std::string tensor;
  rt::RangeRole role = rt::RangeRole::Parameter;
  rt::DType dtype;
  std::vector<int64_t> shape; // of the full tensor
  /// Hands the bytes of the box, row-major and without padding, to its
  /// argument, in order.
  std::function<void(const std::function<void(std::string_view)> &)> write;
};

/// Whether a run goes on from what the range holds.
bool isSaved(const rt::RangeInfo &range);

/// The boxes of persistent ranges that `rank` writes: each box of the job once,
/// by one of the ranks that have it, in turn, so that all write alike. Ranges
/// that are made anew from nothing (tables of angles), that belong to one
/// program, or that are zero between two steps are left out. `write` is unset.
struct OwnedBox {
  const rt::RangeInfo *range;
  rt::ShardView view; // of this rank
  SavedChunk chunk;
};
std::vector<OwnedBox> ownedBoxes(const rt::Manifest &manifest, int64_t rank);

/// Everything of one checkpoint that is written together.
struct SaveRequest {
  std::string folder; // of all checkpoints
  RunState state;
  std::optional<rt::ModelInfo> model;
  int64_t rank = 0, ranks = 1;
  /// Distinguishes the saves of one run from what others have left.
  std::string attempt;
  /// So long the first rank looks for a part that is written: other machines
  /// may see a name later than it was given.
  double patienceSeconds = 10;
};

/// Makes step-N.partial empty, on the first rank, before any part is written.
void beginSave(const SaveRequest &request);
/// Writes this rank's part and says so. On any thread. Throws fsdp::Error.
void writePart(const SaveRequest &request, std::vector<SavedChunk> chunks);
/// What is known of the parts of a save: that ranks may still write theirs,
/// that all have said that theirs is written, or that one never will be.
enum class Parts { Awaited, Written, Cancelled };
/// Waits until all parts are there and commits, on the first rank; false if
/// `parts` became Cancelled before. A part that is not there though all are
/// Written is an error. Throws fsdp::Error.
bool commitSave(const SaveRequest &request, const std::atomic<Parts> &parts);
/// Removes what a save has left that will not be committed.
void abandonSave(const SaveRequest &request);

/// The directory of a step.
std::string stepFolder(const std::string &folder, int64_t step);
/// Steps with a marker, ascending. None if the folder does not exist. Throws
/// fsdp::Error if a step cannot be looked at: it may have one.
std::vector<int64_t> committedSteps(const std::string &folder);
/// The steps that a pruning has left besides those that were to be kept.
struct Pruned {
  std::vector<int64_t> foreign; // something lies there that is no file of ours
  std::vector<int64_t> damaged; // not whole, and newer than those kept
};
/// Removes all but the newest `keep` committed steps that are whole (marker,
/// index, sizes of files) and what is newer; 0 keeps all. What a pruning that
/// was killed has left goes too.
Pruned pruneCheckpoints(const std::string &folder, int64_t keep);

/// A step of which something is missing or has another size.
struct DamagedStep {
  int64_t step;
  std::string why; // "'…/rank-00000.safetensors': No such file or directory"
};
/// Those with or without a marker, ascending.
std::vector<DamagedStep> damagedSteps(const std::string &folder);
/// Removes what dead runs have left: partial and half-removed directories, and
/// partial files. What was whole and only not yet renamed stays a checkpoint.
/// After it the disk has what is there.
/// Returns the directories that stay because something lies there that is no
/// file of ours.
std::vector<std::string> cleanCheckpoints(const std::string &folder);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_NATIVE_CHECKPOINTFOLDER_H
