//===- Stages.cpp - From a request to an artifact -------------------------===//
#include "fsdp/Driver/Stages.h"
#include "PlannedText.h"
#include "dialects/Exec/Exec.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Config/PlacementPolicy.h"
#include "fsdp/Config/RecomputePolicy.h"
#include "fsdp/Driver/DecidePlan.h"
#include "fsdp/Driver/Diagnostics.h"
#include "fsdp/Driver/ExplainPlan.h"
#include "fsdp/Driver/RecomputeCheck.h"
#include "fsdp/Emit/Emit.h"
#include "fsdp/Emit/EmitManifest.h"
#include "fsdp/Emit/EmitValues.h"
#include "fsdp/Families/TraceModel.h"
#include "fsdp/Input/Nesting.h"
#include "fsdp/Machine/Machine.h"
#include "fsdp/Memory/Report.h"
#include "fsdp/Schedule/Plan.h"
#include "fsdp/Schedule/ProblemOf.h"
#include "fsdp/Schedule/ProblemText.h"
#include "fsdp/Schedule/Program.h"
#include "fsdp/Support/Signals.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "passes/Pipelines.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include <chrono>

using namespace fsdp;
using namespace mlir;
using llvm::Expected;

namespace {

/// The stages of one compilation and what they pass on.
class Compilation {
public:
  Compilation(const Request &request, llvm::raw_ostream &log)
      : request(request), options(request.config), log(log) {}

  llvm::Error run();
  Expected<PlannedProblem> plan();
  Expected<std::string> explain(const simulation::Costs &costs);
  Expected<Comparison> compare(const std::vector<simulation::Costs> &costs,
                               const std::vector<int64_t> &budgets);

private:
  llvm::Error read();
  /// The same, of what can be planned.
  llvm::Error readUnplanned();
  llvm::Error readFile();
  llvm::Error trace();
  /// Of compile.plan = auto.
  llvm::Error decide();
  llvm::Error runPasses();
  llvm::Error verifyExecText();
  llvm::Error emitSource();
  llvm::Error write();
  llvm::Error writeArtifact();
  llvm::Error print(llvm::function_ref<void(llvm::raw_ostream &)> text);
  void summarize(double seconds);

  bool isWanted(Stage stage) const { return request.emit == stage; }
  Product product() const {
    return isWanted(Stage::Library)  ? Product::Library
           : isWanted(Stage::Object) ? Product::Object
                                     : Product::Source;
  }

  const Request &request;
  CompileOptions options; ///< The request's, but for what is decided.
  llvm::raw_ostream &log;
  llvm::SourceMgr sources;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
  std::string pipeline;
  ArtifactText artifact;
};

} // namespace

//===----------------------------------------------------------------------===//
// Input
//===----------------------------------------------------------------------===//

/// Whether all names are UTF-8: they end in plans and manifests, which are
/// JSON. The module's own name does not.
static LogicalResult checkNames(ModuleOp module) {
  AttrTypeWalker walker;
  auto check = [](StringRef text) {
    return llvm::json::isUTF8(text) ? WalkResult::advance()
                                    : WalkResult::interrupt();
  };
  walker.addWalk([&](StringAttr text) { return check(text.getValue()); });
  walker.addWalk(
      [&](dist::MeshAxisAttr axis) { return check(axis.getName()); });
  walker.addWalk([&](dist::DecisionAttr decision) {
    WalkResult result = WalkResult::advance();
    dist::forEachDecisionField([&](const auto &field) {
      const auto &value = field.in(decision.getDecision());
      if constexpr (std::is_same_v<decltype(field.initial), std::string>)
        if (!result.wasInterrupted())
          result = check(value);
    });
    return result;
  });
  auto checkOp = [&](Operation *op) -> WalkResult {
    for (NamedAttribute attribute : op->getAttrDictionary())
      if ((op != module ||
           attribute.getName() != module.getSymNameAttrName()) &&
          walker.walk(attribute.getValue()).wasInterrupted())
        return op->emitError() << "'" << attribute.getName().getValue()
                               << "' is not UTF-8: " << attribute.getValue();
    return WalkResult::advance();
  };
  return failure(module->walk(checkOp).wasInterrupted());
}

llvm::Error Compilation::readFile() {
  std::string problem;
  auto buffer = openInputFile(request.input, &problem);
  if (!buffer)
    return llvm::createStringError(problem);
  if (llvm::Error error = checkText(*buffer))
    return error;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module || failed(checkNames(*module)))
    return alreadyPrinted();
  // Diagnostics of passes name the module of the model.
  nn::nameLocations(*module);
  return llvm::Error::success();
}

llvm::Error Compilation::trace() {
  const RunConfig &config = request.config;
  Expected<ModelSpec> spec = modelOf(config);
  if (!spec)
    return spec.takeError();
  TraceOptions options;
  // One program for the batch of all data-parallel ranks.
  options.batch = config.training.localBatchSize * dataParallelRanks(config);
  options.seqLen = config.training.seqLen;
  auto traced = traceModel(context, *spec, options);
  if (!traced)
    return traced.takeError();
  module = std::move(*traced);
  if (failed(verify(*module)))
    return alreadyPrinted();
  return llvm::Error::success();
}

llvm::Error Compilation::read() {
  DialectRegistry registry;
  registerFsdpDialects(registry);
  context.appendDialectRegistry(registry);
  // A diagnostic names the place; the whole op may be a whole module.
  context.printOpOnDiagnostic(false);
  return request.input.empty() ? trace() : readFile();
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

/// What the text says of its workspaces must be what it is compiled for: they
/// are proved to suffice for that alone.
static LogicalResult checkWorkspaces(ModuleOp module, const Request &request) {
  auto target = module->getAttrOfType<StringAttr>(exec::kTargetAttr);
  StringRef wanted = request.config.pipeline.target;
  if (target && target.getValue() != wanted) {
    const rt::Target *stated = rt::findTarget(target.getValue());
    bool isOther = stated && stated->summary &&
                   *stated != request.compiler.backend->target;
    return module.emitError("the text has workspaces of target ")
           << target << ", but is compiled with those of \"" << wanted
           << "\"; give --" << (isOther ? "target=" : "workspaces=")
           << target.getValue();
  }
  int64_t wantedThreads = request.config.compile.threads;
  auto threads = module->getAttrOfType<IntegerAttr>(exec::kThreadsAttr);
  if (threads && threads.getInt() != wantedThreads)
    return module.emitError("the text has workspaces for ")
           << threads.getInt() << " threads, but is compiled for "
           << wantedThreads << "; give --threads=" << threads.getInt();
  return success();
}

static LogicalResult checkBudget(ModuleOp module, int64_t budget) {
  for (auto program : module.getOps<exec::ProgramOp>()) {
    auto peak = static_cast<int64_t>(program.getArena().value_or(0));
    if (budget > 0 && peak > budget)
      return program.emitError("program @")
             << program.getSymName() << " needs " << formatBytes(peak) << " ("
             << peak << " bytes), but the memory budget is "
             << formatBytes(budget) << " (" << budget << " bytes)";
  }
  return success();
}

/// Text may have been edited since the passes printed it, or written by hand:
/// if it does not say whose workspaces it has, they are for this target.
llvm::Error Compilation::verifyExecText() {
  if (failed(checkWorkspaces(*module, request)) ||
      failed(checkBudget(*module, request.config.pipeline.memoryBudget)))
    return alreadyPrinted();
  DictionaryAttr stated = (*module)->getAttrDictionary();
  Builder builder(&context);
  (*module)->setAttr(exec::kTargetAttr,
                     builder.getStringAttr(request.config.pipeline.target));
  (*module)->setAttr(exec::kThreadsAttr,
                     builder.getI64IntegerAttr(request.config.compile.threads));
  PassManager passes(&context, ModuleOp::getOperationName());
  passes.addPass(createVerifyExec());
  if (failed(passes.run(*module)))
    return alreadyPrinted();
  (*module)->setAttrs(stated);
  return llvm::Error::success();
}

static void warnOfLargerArena(const char *tool, int64_t arena,
                              std::optional<int64_t> without) {
  if (without && *without < arena)
    startMessage(tool, "warning")
        << "the recomputation of the plan enlarges the arena: "
        << formatBytes(arena) << " (" << arena << " bytes), without its "
        << "recompute rules " << formatBytes(*without) << " (" << *without
        << " bytes); keep the results of blocks (\"recompute\": false), as "
           "compile.recompute = full does\n";
}

llvm::Error Compilation::decide() {
  const CompileOptions &given = request.config;
  auto note = [&]() -> raw_ostream & {
    return startMessage(request.tool, "note") << "compile.plan = auto";
  };
  if (given.compile.plan != Planner::Auto)
    note() << ", because compile.machine and --memory-budget are stated; with "
              "--compile.plan rule the budget is a limit alone\n";
  if (llvm::Error error = decidePlan(*module, options))
    return error;
  // The decided plan says what is computed again, also if that is nothing.
  options.compile.recompute = "none";
  if (options.compile.computeCopy != given.compile.computeCopy)
    note() << " leaves out compile.compute_copy: in this budget copies of "
              "parameters take more time than they save, or do not fit; its "
              "plan is for --compile.compute_copy false\n";
  if (options.compile.embeddingRows != given.compile.embeddingRows)
    note() << " exchanges the rows of the embedding that ranks read, not its "
              "table; its plan is for --compile.embedding_rows true\n";
  int64_t ranks = options.parallelism.fsdpReshardRanks;
  if (ranks != given.parallelism.fsdpReshardRanks)
    note() << " gathers parameters again inside nodes; its plan is for "
              "--parallelism.fsdp_reshard_ranks "
           << ranks << '\n';
  return llvm::Error::success();
}

llvm::Error Compilation::runPasses() {
  // Text that is exec already has been through the passes.
  if (isPlannedExec(*module)) {
    pipeline = "none: the input is a planned exec module";
    if (llvm::Error error = checkOptionsOfExecText(request))
      return error;
    return request.verifyExec && !isWanted(Stage::Graph)
               ? verifyExecText()
               : llvm::Error::success();
  }
  bool isScheduled = isSchedule(*module);
  if (llvm::Error error = isScheduled ? checkOptionsOfSchedule(request)
                                      : checkOptionsOfGraph(request))
    return error;
  if (isScheduled) {
    if (isWanted(Stage::Graph)) // It is printed as it is.
      return llvm::Error::success();
    if (llvm::Error error = takeLowering(*module, options))
      return error;
  } else if (request.decidesPlan && request.emit >= Stage::Plan) {
    if (llvm::Error error = decide())
      return error;
  }
  PassManager passes(&context, ModuleOp::getOperationName());
  if (failed(applyPassManagerCLOptions(passes)))
    return alreadyPrinted();
  if (request.timing)
    passes.enableTiming();
  auto build = isScheduled ? buildScheduledPipeline : buildTrainPipeline;
  build(passes, options,
        isWanted(Stage::Graph)         ? PipelineLevel::Graph
        : isWanted(Stage::Problem)     ? PipelineLevel::Addresses
        : request.emit <= Stage::Costs ? PipelineLevel::Schedule
                                       : PipelineLevel::Exec);
  llvm::raw_string_ostream text(pipeline);
  passes.printAsTextualPipeline(text);
  std::optional<RecomputeCheck> check;
  bool mayRecompute = !request.config.pipeline.plan.empty() ||
                      recomputePolicyFor(request.config.compile.recompute,
                                         /*saysOfValues=*/true) != "none";
  if (mayRecompute && request.emit >= Stage::Exec)
    check.emplace(passes, options);
  if (failed(passes.run(*module)))
    return alreadyPrinted();
  if (check)
    warnOfLargerArena(request.tool, memoryReport(*module).arenaBytes,
                      check->arenaWithoutRules());
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

/// One pass per line.
static std::string wrapPipeline(StringRef pipeline) {
  std::string text;
  int depth = 0;
  for (char c : pipeline) {
    text += c;
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth == 0 && (c == ',' || c == '('))
      text += "\n  ";
  }
  return text;
}

llvm::Error Compilation::emitSource() {
  ManifestInfo info;
  // The settings describe a traced model; of a file only its text counts.
  if (request.input.empty()) {
    info.config = compiledSettings(request.config);
    if (std::optional<ModelFile> file = modelFile(request.config))
      info.modelFrom = file->key;
    const std::string &policy = request.config.parallelism.placementPolicy;
    if (!policy.empty())
      info.policy = policyRules(loadPolicy(policy));
  }
  for (const auto &[key, value] : info.config)
    if (!llvm::json::isUTF8(value))
      return llvm::createStringError(key + " is not UTF-8: '" + value + "'");
  info.pipeline = pipeline;
  Expected<std::string> target = targetText(request.compiler);
  if (!target)
    return target.takeError();
  info.target = *target;
  info.threads = request.config.compile.threads;
  if (request.decidesPlan)
    info.machine = fingerprintOf(loadMachine(request.config.compile.machine));
  FailureOr<std::string> text = makeManifest(*module, info);
  if (failed(text))
    return alreadyPrinted();
  artifact.manifest = std::move(*text);

  SourceInfo about;
  about.backend = request.compiler.backend;
  about.manifest = artifact.manifest;
  about.madeBy = "Passes: " + wrapPipeline(pipeline);
  for (const auto &[key, value] : info.config)
    about.madeBy += "\n" + key + " = " + value;
  llvm::raw_string_ostream os(artifact.source);
  if (failed(fsdp::emitSource(*module, about, os)))
    return alreadyPrinted();
  return llvm::Error::success();
}

/// Text goes to the file -o names, or to stdout.
llvm::Error
Compilation::print(llvm::function_ref<void(llvm::raw_ostream &)> printer) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printer(os);
  return writeWholeFile(request.output.empty() ? "-" : request.output, text);
}

/// Makes the artifact's directory; on failure no new directory is left.
llvm::Error Compilation::writeArtifact() {
  namespace fs = llvm::sys::fs;
  FailureOr<std::string> values = makeValueTable(*module, artifact.manifest);
  if (failed(values))
    return alreadyPrinted();
  artifact.values = std::move(*values);
  DeferredSignals signals; // until the directory is complete or gone
  StringRef existing = request.output;
  while (!existing.empty() && !fs::exists(existing))
    existing = llvm::sys::path::parent_path(existing);
  std::error_code ec = fs::create_directories(
      request.output, /*IgnoreExisting=*/true, fs::perms::all_all);
  if (!ec && !fs::is_directory(request.output))
    ec = std::make_error_code(std::errc::not_a_directory);
  llvm::Error error =
      ec ? llvm::createStringError("cannot create the directory '" +
                                   request.output + "': " + ec.message())
         : compileArtifact(artifact, request.compiler, request.output);
  if (!error)
    return error;
  StringRef made = request.output;
  for (; made != existing; made = llvm::sys::path::parent_path(made))
    (void)fs::remove(made);
  return error;
}

llvm::Error Compilation::write() {
  switch (request.emit) {
  case Stage::Schedule:
    stateLowering(*module, options);
    [[fallthrough]];
  case Stage::Graph:
    // Values are called after the module of the model that they belong to.
    nn::nameLocations(*module);
    return print([&](llvm::raw_ostream &os) {
      module->print(os, OpPrintingFlags().printNameLocAsPrefix());
      os << '\n';
    });
  case Stage::Problem: {
    Expected<problem::Problem> problem = problemFor(*module, options);
    if (!problem)
      return problem.takeError();
    return print(
        [&](llvm::raw_ostream &os) { os << problem::print(*problem); });
  }
  case Stage::Costs:
    return print([&](llvm::raw_ostream &os) {
      schedule::printCosts(*module, options.pipeline.target, os);
    });
  case Stage::Exec:
    return print([&](llvm::raw_ostream &os) { os << *module << '\n'; });
  case Stage::Plan: {
    FailureOr<schedule::Plan> plan = schedule::planOf(*module);
    if (failed(plan))
      return alreadyPrinted();
    return print(
        [&](llvm::raw_ostream &os) { os << schedule::toJSON(*plan) << "\n"; });
  }
  case Stage::Memory:
    return print([&](llvm::raw_ostream &os) {
      printMemoryReport(memoryReport(*module), os);
    });
  case Stage::Source:
    return print([&](llvm::raw_ostream &os) { os << artifact.source; });
  case Stage::Object:
    return compileSource(artifact.source, product(), request.compiler,
                         request.output);
  case Stage::Library:
    return writeArtifact();
  }
  llvm_unreachable("a stage");
}

namespace {
/// What one run of a program hands to streams.
struct Issued {
  int64_t launches = 0, matmuls = 0, collectives = 0, others = 0;

  void count(Operation *body);
};
} // namespace

/// Blocks that repeat are written once and called.
void Issued::count(Operation *body) {
  body->walk([&](Operation *op) {
    if (auto call = dyn_cast<exec::CallOp>(op))
      count(SymbolTable::lookupNearestSymbolFrom(call, call.getCalleeAttr()));
    else if (isa<exec::LaunchOp>(op))
      ++launches;
    else if (isa<exec::GemmOp, exec::GemmAddOp>(op))
      ++matmuls;
    else if (isa<exec::CollectiveOp>(op))
      ++collectives;
    else if (isa<exec::WorkOpInterface>(op))
      ++others;
  });
}

void Compilation::summarize(double seconds) {
  int64_t tensors = 0, elements = 0, kernels = 0;
  for (auto range : module->getOps<exec::RangeOp>())
    if (range.getRole() == exec::Role::Parameter) {
      ++tensors;
      elements += range.getFull()
                      ? cast<ShapedType>(*range.getFull()).getNumElements()
                      : range.getMemRefType().getNumElements();
    }
  for ([[maybe_unused]] auto kernel : module->getOps<exec::KernelOp>())
    ++kernels;
  MemoryReport memory = memoryReport(*module);
  log << llvm::formatv("{0}: {1} parameters in {2} tensors; arena {3} bytes "
                       "({4}), {5} of them persistent\n",
                       request.output, elements, tensors, memory.arenaBytes,
                       formatBytes(memory.arenaBytes),
                       formatBytes(memory.persistentBytes));
  for (const ProgramMemory &program : memory.programs) {
    log << llvm::formatv("  program {0}: peak {1} bytes ({2})\n", program.name,
                         program.peak, formatBytes(program.peak));
    Issued issued;
    issued.count(SymbolTable::lookupSymbolIn(*module, program.name));
    log << llvm::formatv("    {0} launches of kernels, {1} matmuls, {2} "
                         "collectives, {3} other operations\n",
                         issued.launches, issued.matmuls, issued.collectives,
                         issued.others);
  }
  log << llvm::formatv("  {0} kernels, {1} lines of C++ for {2}, {3:F1} s\n",
                       kernels, llvm::count(artifact.source, '\n'),
                       request.compiler.cpu, seconds);
}

llvm::Error Compilation::run() {
  auto begin = std::chrono::steady_clock::now();
  DiagnosticPrinter printer(request.tool, sources, &context);
  if (request.emit >= Stage::Source)
    if (llvm::Error error = checkCompiler(request.compiler, product()))
      return error;
  if (llvm::Error error = read())
    return error;
  if (llvm::Error error = runPasses())
    return error;
  if (request.emit >= Stage::Source)
    if (llvm::Error error = emitSource())
      return error;
  if (llvm::Error error = write())
    return error;
  if (isWanted(Stage::Library))
    summarize(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count());
  return llvm::Error::success();
}

llvm::Error Compilation::readUnplanned() {
  assert(isWanted(Stage::Problem) && "of which planned text has none");
  if (llvm::Error error = read())
    return error;
  if (isPlannedExec(*module))
    return checkOptionsOfExecText(request);
  return isSchedule(*module) ? checkOptionsOfSchedule(request)
                             : checkOptionsOfGraph(request);
}

Expected<std::string> Compilation::explain(const simulation::Costs &costs) {
  DiagnosticPrinter printer(request.tool, sources, &context);
  if (llvm::Error error = readUnplanned())
    return error;
  return explainPlan(*module, options, costs);
}

Expected<Comparison>
Compilation::compare(const std::vector<simulation::Costs> &costs,
                     const std::vector<int64_t> &budgets) {
  DiagnosticPrinter printer(request.tool, sources, &context);
  if (llvm::Error error = readUnplanned())
    return error;
  return comparePlans(*module, options, costs, budgets);
}

Expected<PlannedProblem> Compilation::plan() {
  DiagnosticPrinter printer(request.tool, sources, &context);
  if (llvm::Error error = readUnplanned())
    return error;
  if (request.decidesPlan)
    if (llvm::Error error = decide())
      return error;
  if (llvm::Error error = runPasses())
    return error;
  Expected<problem::Problem> problem = problemFor(*module, options);
  if (!problem)
    return problem.takeError();
  PassManager passes(&context, ModuleOp::getOperationName());
  addPlan(passes, options);
  if (failed(passes.run(*module)))
    return alreadyPrinted();
  problem::Candidate candidate = schedule::candidateOf(*problem, *module);
  return PlannedProblem{std::move(*problem), std::move(candidate)};
}

Expected<PlannedProblem> fsdp::planProblem(Request request) {
  request.emit = Stage::Problem;
  return Compilation(request, llvm::nulls()).plan();
}

Expected<std::string> fsdp::explain(Request request,
                                    const simulation::Costs &costs) {
  request.emit = Stage::Problem;
  return Compilation(request, llvm::nulls()).explain(costs);
}

Expected<Comparison> fsdp::compare(Request request,
                                   const std::vector<simulation::Costs> &costs,
                                   const std::vector<int64_t> &budgets) {
  request.emit = Stage::Problem;
  return Compilation(request, llvm::nulls()).compare(costs, budgets);
}

llvm::Error fsdp::compile(const Request &request, llvm::raw_ostream &log) {
  return Compilation(request, log).run();
}
