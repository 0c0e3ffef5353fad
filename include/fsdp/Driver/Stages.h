//===- Stages.h - From a request to an artifact -----------------*- C++ -*-===//
#ifndef FSDP_DRIVER_STAGES_H
#define FSDP_DRIVER_STAGES_H

#include "fsdp/Config/RunConfig.h"
#include "fsdp/Driver/ComparePlans.h"
#include "fsdp/Emit/Compile.h"
#include "fsdp/Families/ModelSpec.h"
#include "fsdp/Schedule/ProblemOrder.h"
#include "fsdp/Simulation/Durations.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace fsdp {

/// What is wanted of the compiler, in the order of its stages.
enum class Stage {
  Graph,
  Problem,
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
  /// Which tool wants it: its messages begin so.
  const char *tool = "fsdp-compile";
  /// A file of nn text, of a schedule or of exec text; empty: the model of
  /// `config` is traced.
  std::string input;
  /// Resolved; of an input, whose mesh and types are stated there, the part
  /// that its pipeline takes.
  RunConfig config;
  Stage emit = Stage::Library;
  /// Whether a plan is found for the memory budget: compile.plan is "auto", or
  /// a budget and a machine are stated and nothing else says who decides.
  bool decidesPlan = false;
  /// A file, or the directory of an artifact.
  std::string output;
  HostCompiler compiler;
  bool timing = false;
  /// What was asked of the passes by name, which planned text has after it:
  /// "--plan", "--compile.bucket".
  std::vector<std::string> forPasses;
  /// False: exec text is emitted whatever exec-verify thinks of it.
  bool verifyExec = true;
};

/// The model that the settings name, with the sizes that they change.
llvm::Expected<ModelSpec> modelOf(RunConfig config);

/// A problem, and what the plan of the request (its file, or the rule) decides
/// about it.
struct PlannedProblem {
  problem::Problem problem;
  problem::Candidate candidate;
};

/// That of `request`, whatever it wants to be written. Errors are as compile's.
llvm::Expected<PlannedProblem> planProblem(Request request);

/// What the memory budget of `request` costs by the times of `costs`
/// (ExplainPlan.h). Errors are as compile's.
llvm::Expected<std::string> explain(Request request,
                                    const simulation::Costs &costs);

/// What is decided in each budget, by the times of each of `costs`, beside
/// known rules (ComparePlans.h). Errors are as compile's.
llvm::Expected<Comparison> compare(Request request,
                                   const std::vector<simulation::Costs> &costs,
                                   const std::vector<int64_t> &budgets);

/// Runs the stages up to the wanted one and writes what it gives. A summary
/// goes to `log`. On failure the diagnostics have been printed and the error's
/// text is empty, or they are that text; nothing half-written is left.
llvm::Error compile(const Request &request, llvm::raw_ostream &log);

} // namespace fsdp

#endif // FSDP_DRIVER_STAGES_H
