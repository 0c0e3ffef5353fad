//===- fsdp-compile.cpp - A model to a training program -------------------===//
//
// The command line of the compiler: what to compile (a run description, or
// text of nn or exec), how, and which stage to write.
//
//===----------------------------------------------------------------------===//
#include "CompilerTool.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Driver/Stages.h"
#include "fsdp/Memory/Report.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Message.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/PrettyStackTrace.h"

namespace cl = llvm::cl;
using namespace fsdp;
using llvm::StringRef;

static const char *const kOverview =
    R"(fsdp-compile: compiles a model to a sharded training program

Without INPUT, the model that the run's settings name is traced. With INPUT
(nn text as fsdp-trace prints it, or planned exec text), that is compiled.
The artifact is a directory with step.so, its checksum, manifest.json and
values.json; fsdp-run runs it.
Every setting of a run can be given as --section.key value; --mode, --threads
and --cpu are short for --compile.*, --optimizer for --optimizer.name.)";

static const char *const kExamples = R"(
EXAMPLES:

  The artifact of a run on two ranks:
    fsdp-compile --config run.toml --ranks 2 -o artifact

  A published model, by the directory that was downloaded:
    fsdp-compile --config run.toml --model.hf_assets_path Llama-3.2-1B --ranks 2 -o artifact

  The first run, another model size and no overlap of communication:
    fsdp-compile --config run.toml --ranks 2 --model.n_layers 2 --compile.overlap none -o artifact

  What does the schedule look like, and what lives at the peak?
    fsdp-compile --config run.toml --ranks 2 --emit=schedule
    fsdp-compile --config run.toml --ranks 2 --emit=memory

  The plan of the schedule as JSON; edited, it is fed back:
    fsdp-compile --config run.toml --ranks 2 --emit=plan -o plan.json
    fsdp-compile --config run.toml --ranks 2 --plan plan.json -o artifact

  The generated C++ of a model traced by hand:
    fsdp-trace llama3_debug --seq 128 | fsdp-compile - --mesh dp_shard=2 --emit=cpp

  The same, in bf16 mixed precision:
    fsdp-trace llama3_debug --seq 128 | fsdp-compile - --training.mixed_precision_param bfloat16 --emit=cpp

  The same run for GPUs: the generated CUDA C++, and the artifact:
    fsdp-compile --config run.toml --ranks 8 --emit=cuda
    fsdp-compile --config run.toml --ranks 8 --target=cuda -o artifact

  Every public function of a file as a program, without a training step:
    fsdp-compile ops.mlir --programs-only -o artifact

SETTINGS (--section.key value, or in the file of --config):

)";

static cl::OptionCategory category("Options");

static cl::opt<std::string> input(cl::Positional, cl::desc("[INPUT.mlir]"),
                                  cl::cat(category));
static cl::opt<std::string>
    configPath("config", cl::value_desc("FILE.toml"),
               cl::desc("Description of the run (see SETTINGS)"),
               cl::cat(category));
static cl::opt<std::string>
    output("o", cl::value_desc("PATH"),
           cl::desc("Directory of the artifact, or file of the object; for "
                    "other stages a file, stdout if not given"),
           cl::cat(category));
static cl::opt<Stage> emitStage(
    "emit", cl::desc("What to write:"), cl::init(Stage::Library),
    cl::values(
        clEnumValN(Stage::Graph, "graph", "the model's graph (nn)"),
        clEnumValN(Stage::Plan, "plan", "the plan of the schedule (JSON)"),
        clEnumValN(Stage::Schedule, "schedule",
                   "the scheduled program (nn and fsdp)"),
        clEnumValN(Stage::Costs, "costs",
                   "what each step of the schedule computes, touches "
                   "and sends (table)"),
        clEnumValN(Stage::Exec, "mlir",
                   "the planned program after all passes (exec)"),
        clEnumValN(Stage::Memory, "memory",
                   "what lives in the arena at its "
                   "peak (table)"),
        clEnumValN(Stage::Source, "cpp", "the generated C++"),
        clEnumValN(Stage::CudaSource, "cuda",
                   "the generated CUDA C++; implies --target=cuda"),
        clEnumValN(Stage::Object, "object", "an object file"),
        clEnumValN(Stage::Library, "library",
                   "the artifact: step.so, its checksum, manifest.json and "
                   "values.json (default)")),
    cl::cat(category));
static cl::opt<int64_t> ranks("ranks", cl::value_desc("N"),
                              cl::desc("Ranks of the job (default: what the "
                                       "settings say, else 1)"),
                              cl::cat(category));
static cl::alias ranksShort("n", cl::aliasopt(ranks), cl::desc("--ranks"),
                            cl::cat(category));
static cl::opt<std::string>
    mesh("mesh", cl::value_desc("AXES"),
         cl::desc("Mesh for an INPUT: dp_replicate=2,dp_shard=4 (default: one "
                  "rank, or with --programs-only what INPUT states)"),
         cl::cat(category));
static cl::opt<bool>
    programsOnly("programs-only",
                 cl::desc("Compile every public function of INPUT as it is: no "
                          "gradients, no optimizer"),
                 cl::cat(category));
static cl::opt<std::string>
    planFile("plan", cl::value_desc("FILE.json"),
             cl::desc("Plan of the schedule, as --emit=plan prints it"),
             cl::cat(category));
static cl::opt<std::string>
    memoryBudget("memory-budget", cl::value_desc("SIZE"),
                 cl::desc("Fail if the arena is larger (60GiB, 500MB, or "
                          "bytes); says what fills it"),
                 cl::cat(category));
static cl::opt<Language>
    target("target", cl::desc("What the program runs on:"),
           cl::init(Language::Cpp),
           cl::values(clEnumValN(Language::Cpp, "cpu", "the CPU (default)"),
                      clEnumValN(Language::Cuda, "cuda", "NVIDIA GPUs")),
           cl::cat(category));
static cl::opt<std::string> gpu("gpu", cl::value_desc("ARCHITECTURE"),
                                cl::desc("Of --target=cuda (default sm_90)"),
                                cl::init("sm_90"), cl::cat(category));
static cl::opt<std::string> workspaces(
    "workspaces", cl::value_desc("cpu|cuda|test"),
    cl::desc("Whose workspace sizes: this CPU's, a GPU's, or fixed ones for "
             "tests (default: the target's)"),
    cl::cat(category));
static cl::opt<std::string>
    cxx("cxx", cl::value_desc("COMPILER"),
        cl::desc("C++ compiler (default g++, or nvcc for --target=cuda)"),
        cl::cat(category));
static cl::opt<std::string> runtimeInclude(
    "runtime-include", cl::value_desc("DIR"),
    cl::desc("Headers of the runtime (default: beside the tool)"),
    cl::cat(category));
static cl::opt<std::string>
    runtimeLibrary("runtime-library", cl::value_desc("DIR"),
                   cl::desc("Directory of libfsdp_runtime.so or "
                            "libfsdp_runtime_cuda.so (default: beside the "
                            "tool)"),
                   cl::cat(category));
static cl::opt<bool> verbose("v", cl::desc("Print the C++ compiler's command"),
                             cl::cat(category));
static cl::opt<bool>
    skipExecVerify("skip-exec-verify", cl::ReallyHidden,
                   cl::desc("Emit exec text that exec-verify refuses: for "
                            "tests of the emitter"));
static cl::opt<bool> timing("timing", cl::desc("Print the time of each pass"),
                            cl::cat(category));

//===----------------------------------------------------------------------===//
// From options to a request
//===----------------------------------------------------------------------===//

/// Settings, weakest first: defaults, file, command line.
static RunConfig readSettings(const std::vector<std::string> &overrides,
                              ConfigErrors &errors) {
  RunConfig config;
  if (!configPath.empty())
    loadConfig(config, configPath, errors);
  applyConfigOverrides(config, overrides, errors);
  return config;
}

/// Adds what is wrong with the model that the settings name.
static void checkModel(const RunConfig &config, ConfigErrors &errors) {
  if (errors.concern("model."))
    return;
  llvm::Expected<ModelSpec> spec = modelOf(config);
  if (spec)
    for (const std::string &warning : spec->warnings)
      printMessage("fsdp-compile: warning", warning);
  llvm::Error error = spec ? verifyModel(*spec) : spec.takeError();
  if (error)
    errors.add(llvm::toString(std::move(error)));
}

/// The ranks that the settings state, or 1.
static int64_t statedRanks(const RunConfig &config, ConfigErrors &errors) {
  // The mesh cannot be checked without them.
  const char *const degrees = "parallelism.";
  if (ranks.getNumOccurrences() && ranks < 1)
    errors.add("--ranks must be at least 1", degrees);
  if (ranks > kMaxRanks)
    errors.add("--ranks must be at most " + std::to_string(kMaxRanks), degrees);
  if (ranks.getNumOccurrences())
    return ranks;
  int64_t shard = config.parallelism.dataParallelShardDegree;
  return config.parallelism.dataParallelReplicateDegree *
         config.parallelism.tensorParallelDegree * (shard == -1 ? 1 : shard);
}

/// Slowest axis first: what tensor parallel ranks exchange stays nearest.
static std::string meshOf(const RunConfig &config) {
  const RunConfig::Parallelism &parallelism = config.parallelism;
  std::string mesh =
      "dp_shard=" + std::to_string(parallelism.dataParallelShardDegree);
  if (parallelism.dataParallelReplicateDegree > 1)
    mesh = "dp_replicate=" +
           std::to_string(parallelism.dataParallelReplicateDegree) + "," + mesh;
  if (parallelism.tensorParallelDegree > 1)
    mesh += ",tp=" + std::to_string(parallelism.tensorParallelDegree);
  return mesh;
}

/// The runtime's files beside the tool: in the build tree or installed.
static void findRuntime(HostCompiler &compiler, const char *argv0) {
  std::string tool = llvm::sys::fs::getMainExecutable(
      argv0, reinterpret_cast<void *>(&findRuntime));
  StringRef prefix =
      llvm::sys::path::parent_path(llvm::sys::path::parent_path(tool));
  auto inPrefix = [&](StringRef name) {
    llvm::SmallString<128> path(prefix);
    llvm::sys::path::append(path, name);
    return std::string(path);
  };
  compiler.libraryDir =
      runtimeLibrary.empty() ? inPrefix("lib") : runtimeLibrary.getValue();
  std::string installed = inPrefix("include");
  bool isInstalled =
      llvm::sys::fs::exists(installed + "/fsdp/Runtime/Artifact.h");
  compiler.includeDir = !runtimeInclude.empty() ? runtimeInclude.getValue()
                        : isInstalled           ? installed
                                                : FSDP_INCLUDE_DIR;
}

/// The compiler of the target.
static void setCompiler(Request &request, const char *argv0) {
  HostCompiler &compiler = request.compiler;
  bool cuda = target == Language::Cuda;
  compiler.language = target;
  compiler.cpu = cuda ? gpu.getValue() : resolveCpu(request.config.compile.cpu);
  compiler.cxx = !cxx.empty() ? cxx.getValue() : cuda ? findNvcc() : "g++";
  compiler.verbose = verbose;
  findRuntime(compiler, argv0);
  request.workspaces = !workspaces.empty() ? workspaces.getValue()
                       : cuda              ? "cuda"
                                           : "cpu";
}

/// The bytes that the arena may have; 0: no limit.
static int64_t readBudget(ConfigErrors &errors) {
  if (!memoryBudget.getNumOccurrences())
    return 0;
  llvm::Expected<int64_t> bytes = parseBytes(memoryBudget);
  if (bytes)
    return *bytes;
  errors.add("--memory-budget: " + llvm::toString(bytes.takeError()));
  return 0;
}

/// Only text with a GPU's workspaces can be looked at without its target.
static void checkReduce(const RunConfig &config, ConfigErrors &errors) {
  bool isCuda = target == Language::Cuda || emitStage == Stage::CudaSource;
  bool isText =
      emitStage < Stage::Source && !workspaces.empty() && workspaces != "cpu";
  if (config.compile.reduce == "fast" && !isCuda && !isText)
    errors.add(
        "compile.reduce = \"fast\" leaves sums over ranks to NCCL, which "
        "the CPU target does not have: ranks read each other's pieces "
        "and add them in the fixed order either way. Leave it at "
        "\"exact\", or compile with --target=cuda",
        "compile.reduce");
}

/// Adds what is wrong with options that need no setting.
static void checkOptions(const RunConfig &config, ConfigErrors &errors) {
  if (input.empty() && (mesh.getNumOccurrences() || programsOnly))
    errors.add("--mesh and --programs-only are for an INPUT; a run's mesh is "
               "--ranks and --parallelism.*");
  if (!input.empty() && config.training.globalBatchSize.value_or(-1) != -1)
    errors.add("training.global_batch_size is for a traced model; INPUT states "
               "its own batch",
               "training.global_batch_size");
  if (!input.empty() && config.training.lossMean != "global")
    errors.add("training.loss_mean is for a traced model; for an INPUT "
               "fsdp-opt has nn-differentiate with parts=N",
               "training.loss_mean");
  if (!input.empty() && !configPath.empty())
    errors.add("either an INPUT or --config: the text states its own sizes");
  std::error_code ec = llvm::sys::fs::access(planFile.getValue(),
                                             llvm::sys::fs::AccessMode::Exist);
  if (ec && !planFile.empty() && planFile != "-")
    errors.add("cannot read the plan: cannot open input file '" + planFile +
               "': " + ec.message());
  if (output.empty() && emitStage == Stage::Object)
    errors.add("where to? Name the object file with -o FILE");
  if (output.empty() && emitStage == Stage::Library)
    errors.add("where to? Name the artifact with -o DIR");
  if (emitStage == Stage::Source && target == Language::Cuda)
    errors.add("the source of --target=cuda is --emit=cuda");
}

/// What was asked of the passes, by name. Threads and instruction set are what
/// the program is compiled for, however it is planned; what a run alone reads
/// is no question here.
static std::vector<std::string>
namesForPasses(const std::vector<std::string> &overrides, RunConfig config) {
  std::vector<ConfigOption> table = configOptions(config);
  auto isForPasses = [&](StringRef name) {
    return name != "compile.threads" && name != "compile.cpu" &&
           llvm::any_of(table, [&](const ConfigOption &option) {
             return option.compiled && name == option.name;
           });
  };
  std::vector<std::string> names;
  for (const cl::Option *option :
       {static_cast<cl::Option *>(&ranks), static_cast<cl::Option *>(&mesh),
        static_cast<cl::Option *>(&planFile),
        static_cast<cl::Option *>(&programsOnly)})
    if (option->getNumOccurrences())
      names.push_back("--" + option->ArgStr.str());
  for (const std::string &text : overrides) {
    StringRef name = StringRef(text).split('=').first;
    if (name.consume_front("--") && isForPasses(name))
      names.push_back("--" + name.str());
  }
  return names;
}

static Request makeRequest(const std::vector<std::string> &overrides,
                           const char *argv0) {
  Request request;
  ConfigErrors errors;
  request.config = readSettings(overrides, errors);
  checkOptions(request.config, errors);
  checkReduce(request.config, errors);
  request.input = input;
  const std::string &precision = request.config.training.mixedPrecisionParam;
  // "auto" leaves a text in the types that it states.
  request.computesInBf16 = precision == "bfloat16";
  int64_t jobRanks = statedRanks(request.config, errors);
  std::string note = resolveConfig(request.config, jobRanks, errors);
  if (input.empty()) {
    checkModel(request.config, errors);
    checkLossChunks(request.config, errors);
  }
  request.memoryBudget = readBudget(errors);
  errors.throwIfAny();
  if (!note.empty() && input.empty() && emitStage == Stage::Library)
    llvm::outs() << note << '\n';
  request.mesh = mesh;
  if (input.empty())
    request.mesh = meshOf(request.config);
  else if (mesh.empty() && !programsOnly)
    request.mesh = "dp_shard=1";
  request.train = !programsOnly;
  request.planFile = planFile;
  request.forPasses = namesForPasses(overrides, request.config);
  request.emit = emitStage;
  request.output = output;
  request.timing = timing;
  request.verifyExec = !skipExecVerify;
  if (emitStage == Stage::CudaSource)
    target = Language::Cuda;
  setCompiler(request, argv0);
  return request;
}

static const char *const kCrashed =
    "fsdp-compile crashed, which is a bug of the compiler. With\n"
    "--mlir-pass-pipeline-crash-reproducer=FILE.mlir the same command writes "
    "what shows it;\nfsdp-opt --run-reproducer FILE.mlir repeats it. Please "
    "report both.\n";

/// The options of MLIR's pass manager work here as in mlir-opt; that for
/// reproducers is the one of them that --help names.
static void showReproducerOption() {
  mlir::registerPassManagerCLOptions();
  auto &options = cl::getRegisteredOptions();
  options.at("mlir-pass-pipeline-crash-reproducer")->addCategory(category);
}

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

/// Splits off `--section.key value` and `--section.key=value`; a dot in the
/// name marks them.
static void splitArguments(int argc, char **argv,
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

int main(int argc, char **argv) {
  CompilerTool tool(argc, argv, "fsdp-compile");
  llvm::setBugReportMsg(kCrashed);
  showReproducerOption();
  cl::HideUnrelatedOptions(category);
  std::string tail = kExamples + configHelp();
  cl::extrahelp extra(tail);
  std::vector<const char *> options;
  std::vector<std::string> overrides;
  splitArguments(argc, argv, options, overrides);
  CompilerTool::checkOptions(options, suggestOption);
  cl::ParseCommandLineOptions(static_cast<int>(options.size()), options.data(),
                              kOverview);
  std::string message;
  int status = 0;
  try {
    fsdp::rt::checkVariables();
    Request request = makeRequest(overrides, argv[0]);
    if (llvm::Error error = compile(request, llvm::outs())) {
      message = llvm::toString(std::move(error));
      status = 1;
    }
  } catch (const fsdp::Error &error) {
    message = error.what();
    status = 1;
  }
  if (!message.empty())
    CompilerTool::printError(message);
  return status;
}
