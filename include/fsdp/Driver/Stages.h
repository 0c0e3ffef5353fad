//===- Stages.h - From a request to an artifact -----------------*- C++ -*-===//
#ifndef FSDP_DRIVER_STAGES_H
#define FSDP_DRIVER_STAGES_H

#include "fsdp/Config/RunConfig.h"
#include "fsdp/Emit/Compile.h"
#include "fsdp/Families/ModelSpec.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace fsdp {

/// What is wanted of the compiler, in the order of its stages.
enum class Stage {
  Graph,
  Plan,
  Schedule,
  Costs,
  Exec,
  Memory,
  Source,
  Object,
  Library
};

/// What is to be compiled, and how.
struct Request {
  /// A file of nn or exec text; empty: the model of `config` is traced.
  std::string input;
  RunConfig config;
  /// Whether parameters are used in bf16 and not in f32.
  bool computesInBf16 = false;
  /// Axes of the mesh, as for fsdp-shard; empty: the input states its own.
  std::string mesh;
  /// False: public functions are programs as they are.
  bool train = true;
  std::string planFile;
  int64_t memoryBudget = 0;
  /// Whose workspace sizes: the name of a target, "test" for sizes that do not
  /// depend on the machine.
  std::string workspaces = "cpu";
  Stage emit = Stage::Library;
  /// A file, or the directory of an artifact.
  std::string output;
  HostCompiler compiler;
  bool timing = false;
  /// What was asked of the passes by name, which exec text has behind it:
  /// "--plan", "--compile.bucket".
  std::vector<std::string> forPasses;
  /// False: exec text is emitted whatever exec-verify thinks of it.
  bool verifyExec = true;
};

/// The model that the settings name, with the sizes that they change.
llvm::Expected<ModelSpec> modelOf(RunConfig config);

/// Runs the stages up to the wanted one and writes what it gives. A summary
/// goes to `log`. On failure the diagnostics have been printed and the error's
/// text is empty, or they are that text; nothing half-written is left.
llvm::Error compile(const Request &request, llvm::raw_ostream &log);

} // namespace fsdp

#endif // FSDP_DRIVER_STAGES_H
