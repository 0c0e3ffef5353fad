//===- CompileCommand.cpp - From a command line to a request --------------===//
#include "fsdp/Driver/CompileCommand.h"
#include "fsdp/Config/RecomputePolicy.h"
#include "fsdp/Memory/Report.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Target/Backends.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace fsdp;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------===//

/// Settings that have a short name. They are spelled out before llvm::cl sees
/// the command line, where LLVM itself has registered such names.
static std::string fullName(StringRef name) {
  return llvm::StringSwitch<std::string>(name)
      .Case("--mode", "--compile.mode")
      .Case("--threads", "--compile.threads")
      .Case("--cpu", "--compile.cpu")
      .Case("--optimizer", "--optimizer.name")
      .Default(name.str());
}

void fsdp::splitSettings(int argc, char **argv,
                         std::vector<const char *> &options,
                         std::vector<std::string> &overrides) {
  for (int i = 0; i < argc; ++i) {
    auto [given, value] = StringRef(argv[i]).split('=');
    std::string name = fullName(given);
    if (i == 0 || !given.starts_with("--") || !StringRef(name).contains('.')) {
      options.push_back(argv[i]);
      continue;
    }
    bool hasValue = StringRef(argv[i]).contains('=');
    overrides.push_back(hasValue ? name + "=" + value.str() : name);
    if (!hasValue && i + 1 < argc)
      overrides.emplace_back(argv[++i]);
  }
}

/// Settings, weakest first: defaults, file, command line.
static RunConfig readSettings(const CompileCommand &options,
                              ConfigErrors &errors) {
  RunConfig config;
  if (!options.configPath.empty())
    loadConfig(config, options.configPath, errors);
  applyConfigOverrides(config, options.overrides, errors);
  return config;
}

/// Adds what is wrong with the model that the settings name.
static void checkModel(const char *tool, const RunConfig &config,
                       ConfigErrors &errors) {
  if (errors.concern("model."))
    return;
  llvm::Expected<ModelSpec> spec = modelOf(config);
  if (spec)
    for (const std::string &warning : spec->warnings)
      printMessage(std::string(tool) + ": warning", warning);
  llvm::Error error = spec ? verifyModel(*spec) : spec.takeError();
  if (error)
    errors.add(llvm::toString(std::move(error)));
}

/// The ranks that the settings state, or 1.
static int64_t statedRanks(const CompileCommand &options,
                           const RunConfig &config, ConfigErrors &errors) {
  // The mesh cannot be checked without them.
  const char *const degrees = "parallelism.";
  if (options.ranks && *options.ranks < 1)
    errors.add("--ranks must be at least 1", degrees);
  if (options.ranks && *options.ranks > kMaxRanks)
    errors.add("--ranks must be at most " + std::to_string(kMaxRanks), degrees);
  if (options.ranks)
    return *options.ranks;
  int64_t shard = config.parallelism.dataParallelShardDegree;
  return config.parallelism.dataParallelReplicateDegree *
         config.parallelism.tensorParallelDegree * (shard == -1 ? 1 : shard);
}

//===----------------------------------------------------------------------===//
// What it is compiled with
//===----------------------------------------------------------------------===//

static const rt::Target &targetOf(const CompileCommand &options) {
  if (options.target)
    return *options.target;
  return options.emit == Stage::Source ? *options.sourceOf : rt::kCpuTarget;
}

/// The runtime's files beside the tool: in the build tree or installed.
static void findRuntime(HostCompiler &compiler, const CompileCommand &options) {
  std::string tool = llvm::sys::fs::getMainExecutable(
      options.argv0, reinterpret_cast<void *>(&findRuntime));
  StringRef prefix =
      llvm::sys::path::parent_path(llvm::sys::path::parent_path(tool));
  auto inPrefix = [&](StringRef name) {
    llvm::SmallString<128> path(prefix);
    llvm::sys::path::append(path, name);
    return std::string(path);
  };
  compiler.libraryDir =
      options.runtimeLibrary.empty() ? inPrefix("lib") : options.runtimeLibrary;
  std::string installed = inPrefix("include");
  bool isInstalled =
      llvm::sys::fs::exists(installed + "/fsdp/Runtime/Artifact.h");
  compiler.includeDir = !options.runtimeInclude.empty() ? options.runtimeInclude
                        : isInstalled                   ? installed
                                                        : FSDP_INCLUDE_DIR;
}

/// The compiler of the target.
static void setCompiler(Request &request, const CompileCommand &options) {
  HostCompiler &compiler = request.compiler;
  const rt::Target &target = targetOf(options);
  compiler.backend = backendOf(target);
  compiler.cpu =
      compiler.backend->architecture(request.config.compile.cpu, options.gpu);
  compiler.cxx =
      options.cxx.empty() ? compiler.backend->defaultCompiler() : options.cxx;
  compiler.verbose = options.verbose;
  findRuntime(compiler, options);
  request.config.pipeline.target =
      options.workspaces.empty() ? target.name : options.workspaces;
}

/// The bytes that the arena may have; 0: no limit.
static int64_t readBudget(const CompileCommand &options, ConfigErrors &errors) {
  if (!options.memoryBudget)
    return 0;
  llvm::Expected<int64_t> bytes = parseBytes(*options.memoryBudget);
  if (bytes)
    return *bytes;
  errors.add("--memory-budget: " + llvm::toString(bytes.takeError()));
  return 0;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Why a target does not take a setting; null: it does.
using WhyNot = const char *rt::Target::*;

/// A target that programs run on and that takes a setting.
static const rt::Target *targetWithout(WhyNot whyNot) {
  for (const rt::Target *target : rt::allTargets())
    if (target->summary && !(target->*whyNot))
      return target;
  return nullptr;
}

/// Adds that the target does not take `key` = "fast", which is set. Text with
/// another target's workspaces can be looked at without that target.
static void checkFast(const CompileCommand &options, const char *key,
                      WhyNot whyNot, ConfigErrors &errors) {
  const char *why = targetOf(options).*whyNot;
  const rt::Target *whose = rt::findTarget(options.workspaces);
  bool isText = options.emit < Stage::Source && !options.workspaces.empty() &&
                !(whose && whose->*whyNot);
  if (!why || isText)
    return;
  std::string remedy;
  if (const rt::Target *other = targetWithout(whyNot))
    remedy = std::string(", or compile with --target=") + other->name;
  errors.add(std::string(key) + " = \"fast\" " + why +
                 ". Leave it at \"exact\"" + remedy,
             key);
}

static void checkFastSettings(const CompileCommand &options,
                              const RunConfig &config, ConfigErrors &errors) {
  if (config.compile.reduce == ReduceOrder::Fast)
    checkFast(options, "compile.reduce", &rt::Target::whyNoFastReductions,
              errors);
  if (config.compile.attention == AttentionKernel::Fast)
    checkFast(options, "compile.attention", &rt::Target::whyNoFastAttention,
              errors);
}

/// Adds that an artifact would have the workspaces of another target that runs
/// programs: they may be too small.
static void checkWorkspaces(const CompileCommand &options,
                            ConfigErrors &errors) {
  const rt::Target *whose = rt::findTarget(options.workspaces);
  const rt::Target &target = targetOf(options);
  if (options.emit >= Stage::Object && whose && whose->summary &&
      whose != &target)
    errors.add("--workspaces=" + options.workspaces +
               " is for text (--emit): an artifact for " + target.name +
               " has its own; leave it out");
}

/// Adds what is wrong with an INPUT, or with options that are for one.
static void checkInput(const CompileCommand &options, const RunConfig &config,
                       ConfigErrors &errors) {
  if (options.input.empty()) {
    if (options.mesh || options.programsOnly.value_or(false))
      errors.add("--mesh and --programs-only are for an INPUT; for a run, set "
                 "--ranks and --parallelism.*");
    return;
  }
  if (config.training.globalBatchSize.value_or(-1) != -1)
    errors.add("training.global_batch_size is for a traced model; INPUT states "
               "its own batch",
               "training.global_batch_size");
  if (config.training.lossMean != LossMean::Global)
    errors.add("training.loss_mean is for a traced model; for an INPUT, use "
               "nn-differentiate with parts=N of fsdp-opt",
               "training.loss_mean");
  if (!options.configPath.empty())
    errors.add(
        "--config does not go with an INPUT, which states its own sizes");
}

static bool isStated(const RunConfig &config, const char *name) {
  return config.origin.count(name) != 0;
}

/// Whether settings say another schedule of collectives than the rule's.
static bool saysOfCollectives(const RunConfig &config) {
  return config.compile.bucket != Bucketing::Block ||
         config.compile.overlap != Overlap::Block;
}

/// Request::decidesPlan.
static bool decidesPlan(const CompileCommand &options,
                        const RunConfig &config) {
  if (config.compile.plan == Planner::Auto)
    return true;
  bool isTrained =
      options.input.empty() && !options.programsOnly.value_or(false);
  bool isDecided = options.plan || isStated(config, "compile.plan") ||
                   isStated(config, "compile.recompute") ||
                   saysOfCollectives(config);
  return isTrained && !isDecided && options.memoryBudget &&
         isStated(config, "compile.machine");
}

/// Adds what is wrong with a plan that is to be found.
static void checkPlanner(const CompileCommand &options, const RunConfig &config,
                         ConfigErrors &errors) {
  if (config.compile.plan != Planner::Auto)
    return;
  auto refuse = [&](const std::string &why) {
    errors.add("compile.plan = \"auto\" " + why, "compile.plan");
  };
  if (!options.memoryBudget)
    refuse("finds a plan for a budget; say the bytes that the arena may have "
           "with --memory-budget");
  if (options.plan)
    refuse("decides itself; leave out --plan, or compile.plan");
  if (options.programsOnly.value_or(false))
    refuse("is for training; leave it out with --programs-only");
  if (recomputePolicyFor(config.compile.recompute, /*saysOfValues=*/true) !=
      "none")
    refuse("decides what is computed again; leave out compile.recompute");
  if (saysOfCollectives(config))
    refuse("decides about collectives; leave out compile.bucket and "
           "compile.overlap");
}

/// Adds what is wrong with the policy of recomputation.
static void checkRecompute(const RunConfig &config, ConfigErrors &errors) {
  try {
    parseRecomputePolicy(
        recomputePolicyFor(config.compile.recompute, /*saysOfValues=*/false));
  } catch (const Error &error) {
    errors.add(error.what(), "compile.recompute");
  }
}

/// Adds what is wrong with where plan and output are.
static void checkFiles(const CompileCommand &options, ConfigErrors &errors) {
  std::string plan = options.plan.value_or("");
  std::error_code ec =
      llvm::sys::fs::access(plan, llvm::sys::fs::AccessMode::Exist);
  if (ec && !plan.empty() && plan != "-")
    errors.add("cannot read the plan: cannot open input file '" + plan +
               "': " + ec.message());
  if (options.output.empty() && options.emit == Stage::Object)
    errors.add("no output is named: name the object file with -o FILE");
  if (options.output.empty() && options.emit == Stage::Library)
    errors.add("no output is named: name the artifact with -o DIR");
  const rt::Target &target = targetOf(options);
  if (options.emit == Stage::Source && *options.sourceOf != target)
    errors.add(std::string("the source of --target=") + target.name +
               " is --emit=" + target.sourceStage);
}

//===----------------------------------------------------------------------===//
// The request
//===----------------------------------------------------------------------===//

/// What was asked of the passes, by name. Threads and instruction set are what
/// the program is compiled for, however it is planned; what a run alone reads
/// is no question here.
static std::vector<std::string> namesForPasses(const CompileCommand &options,
                                               RunConfig config) {
  std::vector<ConfigOption> table = configOptions(config);
  auto isForPasses = [&](StringRef name) {
    return name != "compile.threads" && name != "compile.cpu" &&
           llvm::any_of(table, [&](const ConfigOption &option) {
             return option.isCompiled() && name == option.name;
           });
  };
  std::vector<std::string> names;
  for (const auto &[isGiven, name] :
       {std::pair(options.ranks.has_value(), "--ranks"),
        std::pair(options.mesh.has_value(), "--mesh"),
        std::pair(options.plan.has_value(), "--plan"),
        std::pair(options.programsOnly.has_value(), "--programs-only")})
    if (isGiven)
      names.emplace_back(name);
  for (const std::string &text : options.overrides) {
    StringRef name = StringRef(text).split('=').first;
    if (name.consume_front("--") && isForPasses(name))
      names.push_back("--" + name.str());
  }
  return names;
}

/// Puts the settings of the run, checked, into the request.
static void setConfig(Request &request, const CompileCommand &options,
                      llvm::raw_ostream &log) {
  ConfigErrors errors;
  RunConfig &config = request.config;
  config = readSettings(options, errors);
  checkInput(options, config, errors);
  checkFiles(options, errors);
  checkFastSettings(options, config, errors);
  checkWorkspaces(options, errors);
  checkPlanner(options, config, errors);
  checkRecompute(config, errors);
  ParamDtype stated = config.training.mixedPrecisionParam;
  int64_t jobRanks = statedRanks(options, config, errors);
  std::string note = resolveConfig(config, jobRanks, errors);
  bool isTraced = options.input.empty();
  if (isTraced) {
    checkReshardRanks(config, errors);
    checkModel(options.tool, config, errors);
    checkLossChunks(config, errors);
    checkComputeCopy(config, errors);
    checkNodeSize(config, jobRanks, errors);
  } else {
    // "auto" leaves a text in the types that it states.
    config.training.mixedPrecisionParam = stated;
  }
  config.pipeline.memoryBudget = readBudget(options, errors);
  errors.throwIfAny();
  if (!note.empty() && isTraced && options.emit == Stage::Library)
    log << note << '\n';
}

/// Says what follows from the settings, which are resolved, and from the
/// command line.
static void setPipeline(RunConfig &config, const CompileCommand &options) {
  CompileOptions::Pipeline &pipeline = config.pipeline;
  pipeline.train = !options.programsOnly.value_or(false);
  pipeline.mesh = options.mesh.value_or("");
  if (options.input.empty())
    pipeline.mesh = meshText(resolvedMesh(config));
  else if (pipeline.mesh.empty() && pipeline.train)
    pipeline.mesh = meshText({{"dp_shard", 1, AxisKind::Data}});
  pipeline.lossParts = config.training.lossMean == LossMean::Rank
                           ? dataParallelRanks(config)
                           : 1;
  pipeline.microbatches = microbatches(config);
  pipeline.plan = options.plan.value_or("");
  pipeline.mayChooseRows = !isStated(config, "compile.embedding_rows");
}

Request fsdp::makeRequest(const CompileCommand &options,
                          llvm::raw_ostream &log) {
  Request request;
  setConfig(request, options, log);
  request.tool = options.tool;
  request.input = options.input;
  setPipeline(request.config, options);
  request.decidesPlan = decidesPlan(options, request.config);
  request.forPasses = namesForPasses(options, request.config);
  request.emit = options.emit;
  request.output = options.output;
  request.timing = options.timing;
  request.verifyExec = options.verifyExec;
  setCompiler(request, options);
  return request;
}
