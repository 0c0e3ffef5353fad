//===- Outputs.h - What a run writes, and leaves when it fails --*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_OUTPUTS_H
#define FSDP_RUNTIME_TRAIN_OUTPUTS_H

#include "FolderLock.h"
#include "Options.h"
#include "fsdp/Config/RunConfig.h"
#include <functional>
#include <memory>

namespace fsdp {

/// "dir/state.safetensors" and rank 3 -> "dir/state.rank3.safetensors".
std::string pathOfRank(const std::string &path, int rank);

class Outputs {
public:
  /// Before a run of `ranks` ranks. Throws fsdp::Error if the dump, traces or
  /// the metrics could not be written, or would end up in something else:
  /// better now than after hours of training. The one process that writes for
  /// the whole job (`isFirst`) makes the dump folder, unless it only runs a
  /// program, and holds its lock.
  Outputs(const RunConfig &config, const RunOptions &options, int64_t ranks,
          bool isFirst);

  /// After a failed run: removes files that a rank which was ended from
  /// outside had begun, and the folder if this run made it and it is empty.
  /// The steps' lines stay. Ranks that are being ended are waited for so long.
  void discard(double patienceSeconds = 0);

  /// "; the steps so far are in …" if this run has written any, or nothing.
  std::string whereStepsAre() const;

  /// Ends this process with a message when a signal asks for it; for a rank
  /// that no launcher watches.
  void explainSignals() const;

private:
  void addTraces(int64_t ranks,
                 const std::function<void(const std::string &path)> &require);
  void removeLeftovers() const;
  void takeCheckpointFolder(const std::string &path,
                            const std::string &artifact);

  std::string folder, metrics;
  bool isNewFolder;
  uintmax_t metricsBefore = 0; // bytes
  std::unique_ptr<FolderLock> lock, checkpointLock;
  std::string newCheckpoints; // a folder that this run made; empty: none
  std::vector<std::string> files;
};

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_OUTPUTS_H
