//===- Outputs.h - What a run writes, and leaves when it fails --*- C++ -*-===//
#ifndef FSDP_RUN_OUTPUTS_H
#define FSDP_RUN_OUTPUTS_H

#include "Options.h"
#include "fsdp/Config/RunConfig.h"

namespace fsdp {

class Outputs {
public:
  /// Before a run of `ranks` ranks. Throws fsdp::Error if the dump could not
  /// be written: better now than after hours of training.
  Outputs(const RunConfig &config, const RunOptions &options, int64_t ranks);

  /// After a failed run: removes files that a rank which was ended from
  /// outside had begun, and the folder if this run made it and it is empty.
  void discard() const;

private:
  std::string folder;
  bool isNewFolder;
  std::vector<std::string> files;
};

} // namespace fsdp

#endif // FSDP_RUN_OUTPUTS_H
