//===- Options.h - The command line of fsdp-run -----------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_OPTIONS_H
#define FSDP_RUNTIME_TRAIN_OPTIONS_H

#include <string>
#include <vector>

namespace fsdp {

struct RunOptions {
  std::string artifact; // directory
  std::string config;   // TOML file; empty: the artifact's own settings
  int ranks = 0;        // to start on this machine; 0: join or run alone
  std::string load, dump, program;
  std::string command;      // instead of training: "evaluate", "sample"
  std::string checkpoint;   // whose parameters that command takes
  bool noGraph = false;     // of CUDA, of a training step
  bool checkValues = false; // of every step: all have to be finite
  /// All arguments but -n, for the ranks.
  std::vector<std::string> forRanks;
  /// The arguments `--section.key value`, for the configuration.
  std::vector<std::string> overrides;

  bool trains() const { return program.empty() && command.empty(); }
};

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_OPTIONS_H
