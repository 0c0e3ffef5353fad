//===- CompileCommand.h - From a command line to a request ------*- C++ -*-===//
#ifndef FSDP_DRIVER_COMPILECOMMAND_H
#define FSDP_DRIVER_COMPILECOMMAND_H

#include "fsdp/Driver/Stages.h"
#include <optional>
#include <string>
#include <vector>

namespace fsdp {

/// What the command line of fsdp-compile says. Unset, or empty: it does not.
struct CompileCommand {
  /// A file of nn text, of a schedule or of exec text.
  std::string input;
  /// The file with the description of the run, and the settings that the
  /// command line has: "--section.key=value", or name and value by turns.
  std::string configPath;
  std::vector<std::string> overrides;
  Stage emit = Stage::Library;
  /// Of Stage::Source: the target whose source is wanted.
  const rt::Target *sourceOf = &rt::kCpuTarget;
  std::string output;
  std::optional<int64_t> ranks;
  std::optional<std::string> mesh;
  std::optional<bool> programsOnly;
  std::optional<std::string> plan;
  std::optional<std::string> memoryBudget;
  /// Null: the CPU, or where another target's source is wanted, that one.
  const rt::Target *target = nullptr;
  std::string gpu; // architecture
  /// Whose workspace sizes; empty: the target's.
  std::string workspaces;
  /// The compiler of what is emitted, and where its headers and the runtime
  /// are; empty: the target's, and beside the tool.
  std::string cxx, runtimeInclude, runtimeLibrary;
  /// The tool's name, and how it was called, by which it finds what is beside
  /// it.
  const char *tool = "fsdp-compile", *argv0 = "";
  bool verbose = false, timing = false, verifyExec = true;
};

/// Splits `--section.key value` and `--section.key=value` off the arguments of
/// a command line; a dot in the name marks them. `options` gets the others,
/// with the tool's name, and `settings` these.
void splitSettings(int argc, char **argv, std::vector<const char *> &options,
                   std::vector<std::string> &settings);

/// The request that the options make. Notes of what settings were chosen go to
/// `log`, warnings to stderr. Throws fsdp::Error with all that is wrong.
Request makeRequest(const CompileCommand &options, llvm::raw_ostream &log);

} // namespace fsdp

#endif // FSDP_DRIVER_COMPILECOMMAND_H
