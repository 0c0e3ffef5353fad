//===- CalibrateCommand.h - fsdp-sim --calibrate ----------------*- C++ -*-===//
#ifndef FSDP_TOOLS_SIM_CALIBRATECOMMAND_H
#define FSDP_TOOLS_SIM_CALIBRATECOMMAND_H

#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace fsdp {

struct CalibrateCommand {
  /// The machine file to write.
  std::string output;
  int64_t ranks = 1;
  /// What starts the ranks, as "mpirun -np 2"; empty: this machine's launcher.
  std::string launcher;
  double seconds = 0;
  /// Descriptions of runs whose shapes are measured, and settings for each.
  std::vector<std::string> runs, settings;
  const char *argv0 = "";
};

/// Measures this machine with as many ranks and writes its file. Throws
/// fsdp::Error.
llvm::Error calibrateMachine(const CalibrateCommand &command);

} // namespace fsdp

#endif // FSDP_TOOLS_SIM_CALIBRATECOMMAND_H
