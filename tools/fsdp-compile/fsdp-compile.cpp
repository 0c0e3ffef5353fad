//===- fsdp-compile.cpp - A model to a training program -------------------===//
//
// The command line of the compiler: what to compile (a run description, or
// text of nn, of a schedule or of exec), how, and which stage to write. What
// follows from it is lib/Driver's.
//
//===----------------------------------------------------------------------===//
#include "CompilerTool.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Driver/CompileCommand.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/PrettyStackTrace.h"

namespace cl = llvm::cl;
using namespace fsdp;
using llvm::StringRef;

static const char *const kOverview =
    R"(fsdp-compile: compiles a model to a sharded training program

Without INPUT, it traces the model that the settings of the run name. With INPUT
(nn text as fsdp-trace prints it, a schedule, or planned exec text), it compiles
that text.
The artifact is a directory with step.so, its checksum, manifest.json and
values.json; fsdp-run runs it.
--section.key value sets any key of a run; --mode, --threads and --cpu are short
for --compile.*, --optimizer for --optimizer.name.)";

static const char *const kExamples = R"(
EXAMPLES:

  The artifact of a run on two ranks:
    fsdp-compile --config run.toml --ranks 2 -o artifact

  A published model, from its downloaded directory:
    fsdp-compile --config run.toml --model.hf_assets_path Llama-3.2-1B --ranks 2 -o artifact

  The first run, another model size and no overlap of communication:
    fsdp-compile --config run.toml --ranks 2 --model.n_layers 2 --compile.overlap none -o artifact

  The schedule, and the live buffers at the peak of memory:
    fsdp-compile --config run.toml --ranks 2 --emit=schedule
    fsdp-compile --config run.toml --ranks 2 --emit=memory

  The plan of the schedule as JSON, to edit and compile with:
    fsdp-compile --config run.toml --ranks 2 --emit=plan -o plan.json
    fsdp-compile --config run.toml --ranks 2 --plan plan.json -o artifact

  The schedule as text, edited by hand and compiled as it stands:
    fsdp-compile --config run.toml --ranks 2 --emit=schedule -o step.mlir
    fsdp-compile step.mlir -o artifact

  The generated C++ of a model traced by hand:
    fsdp-trace llama3_debug --seq 128 | fsdp-compile - --mesh dp_shard=2 --emit=cpp

  The same, in bf16 mixed precision:
    fsdp-trace llama3_debug --seq 128 | fsdp-compile - --training.mixed_precision_param bfloat16 --emit=cpp

  The same run for GPUs: the generated CUDA C++, and the artifact:
    fsdp-compile --config run.toml --ranks 8 --emit=cuda
    fsdp-compile --config run.toml --ranks 8 --target=cuda -o artifact

  Every public function of a file as a program of its own, without a training step:
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
           cl::desc("Directory of the artifact, or the object file; for other "
                    "stages a file (default: stdout)"),
           cl::cat(category));

/// A value of --emit.
struct Emitted {
  std::string name, help;
  Stage stage;
  const rt::Target *sourceOf = nullptr; // of Stage::Source
};

/// In the order of --help; the artifact is the last.
static const std::vector<Emitted> &allEmitted() {
  static const std::vector<Emitted> all = [] {
    std::vector<Emitted> all = {
        {"graph", "the model's graph (nn)", Stage::Graph},
        {"problem",
         "what is to be scheduled: ops, values and what they cost (text)",
         Stage::Problem},
        {"plan", "the plan of the schedule (JSON)", Stage::Plan},
        {"schedule", "the scheduled program (nn and fsdp)", Stage::Schedule},
        {"costs",
         "what each step of the schedule computes, touches and sends (table)",
         Stage::Costs},
        {"mlir", "the planned program after all passes (exec)", Stage::Exec},
        {"memory", "the live buffers at the peak of the arena (table)",
         Stage::Memory}};
    for (const rt::Target *target : rt::allTargets()) {
      if (!target->sourceStage)
        continue;
      std::string implies =
          target == rt::allTargets().front()
              ? ""
              : std::string("; implies --target=") + target->name;
      all.push_back({target->sourceStage,
                     std::string("the generated ") + target->language + implies,
                     Stage::Source, target});
    }
    all.push_back({"object", "an object file", Stage::Object});
    all.push_back({"library",
                   "the artifact: step.so, its checksum, manifest.json and "
                   "values.json (default)",
                   Stage::Library});
    return all;
  }();
  return all;
}

namespace {
/// The values of --emit and of --target, as modifiers of their options.
struct EmittedValues {
  template <class Opt> void apply(Opt &option) const {
    for (const Emitted &emitted : allEmitted())
      option.getParser().addLiteralOption(emitted.name, &emitted, emitted.help);
  }
};
struct TargetValues {
  template <class Opt> void apply(Opt &option) const {
    for (const rt::Target *target : rt::allTargets())
      if (target->summary)
        option.getParser().addLiteralOption(target->name, target,
                                            target->summary);
  }
};
} // namespace

static cl::opt<const Emitted *> emitted("emit", cl::desc("What to write:"),
                                        EmittedValues(),
                                        cl::init(&allEmitted().back()),
                                        cl::cat(category));
static cl::opt<int64_t>
    ranks("ranks", cl::value_desc("N"),
          cl::desc("Ranks of the job (default: from the settings, else 1)"),
          cl::cat(category));
static cl::alias ranksShort("n", cl::aliasopt(ranks), cl::desc("--ranks"),
                            cl::cat(category));
static cl::opt<std::string> mesh(
    "mesh", cl::value_desc("AXES"),
    cl::desc(
        "Mesh for an INPUT, as NAME=SIZE or NAME=SIZE:KIND with the kinds data "
        "and tensor: dp_replicate=2,dp_shard=4 or x=4:data,y=2:tensor "
        "(default: one rank, or with --programs-only the mesh of INPUT)"),
    cl::cat(category));
static cl::opt<bool>
    programsOnly("programs-only",
                 cl::desc("Compile every public function of INPUT unchanged: "
                          "no gradients, no optimizer"),
                 cl::cat(category));
static cl::opt<std::string>
    planFile("plan", cl::value_desc("FILE.json"),
             cl::desc("Plan of the schedule, as --emit=plan prints it"),
             cl::cat(category));
static cl::opt<std::string>
    memoryBudget("memory-budget", cl::value_desc("SIZE"),
                 cl::desc("Fail if the arena is larger (60GiB, 500MB, or "
                          "bytes), with a list of its largest buffers; with "
                          "compile.plan = auto, decide what fits"),
                 cl::cat(category));
static cl::opt<const rt::Target *>
    target("target", cl::desc("Where the program runs:"), TargetValues(),
           cl::init(rt::allTargets().front()), cl::cat(category));
static cl::opt<std::string>
    gpu("gpu", cl::value_desc("ARCHITECTURE"),
        cl::desc("GPU architecture for --target=cuda (default sm_90)"),
        cl::init("sm_90"), cl::cat(category));

/// "cpu|cuda|test", and whose sizes those are.
static std::string workspaceValues() {
  std::string text;
  for (const rt::Target *target : rt::allTargets())
    text += (text.empty() ? "" : "|") + std::string(target->name);
  return text;
}
static std::string workspaceHelp() {
  std::string text = "Sizes of workspaces: ";
  for (const rt::Target *target : rt::allTargets()) {
    bool isFirst = target == rt::allTargets().front();
    bool isLast = target == rt::allTargets().back();
    text += isFirst ? "" : isLast ? ", or " : ", ";
    text += target->whoseWorkspaces;
  }
  return text + " (default: the target's)";
}
static const std::string kWorkspaceValues = workspaceValues();
static const std::string kWorkspaceHelp = workspaceHelp();
static cl::opt<std::string> workspaces("workspaces",
                                       cl::value_desc(kWorkspaceValues),
                                       cl::desc(kWorkspaceHelp),
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
                   cl::desc("Also emit exec text that exec-verify refuses (for "
                            "tests of the emitter)"));
static cl::opt<bool> timing("timing", cl::desc("Print the time of each pass"),
                            cl::cat(category));

/// What was given, or nothing.
template <typename T>
static std::optional<T> ifGiven(const cl::opt<T> &option) {
  return option.getNumOccurrences() ? std::optional<T>(option.getValue())
                                    : std::nullopt;
}

static CompileCommand compileCommand(const char *argv0,
                                     std::vector<std::string> overrides) {
  CompileCommand options;
  options.input = input;
  options.configPath = configPath;
  options.overrides = std::move(overrides);
  const Emitted &wanted = *emitted.getValue();
  options.emit = wanted.stage;
  if (wanted.sourceOf)
    options.sourceOf = wanted.sourceOf;
  options.output = output;
  options.ranks = ifGiven(ranks);
  options.mesh = ifGiven(mesh);
  options.programsOnly = ifGiven(programsOnly);
  options.plan = ifGiven(planFile);
  options.memoryBudget = ifGiven(memoryBudget);
  if (target.getNumOccurrences())
    options.target = target;
  options.gpu = gpu;
  options.workspaces = workspaces;
  options.cxx = cxx;
  options.runtimeInclude = runtimeInclude;
  options.runtimeLibrary = runtimeLibrary;
  options.argv0 = argv0;
  options.verbose = verbose;
  options.timing = timing;
  options.verifyExec = !skipExecVerify;
  return options;
}

static const char *const kCrashed =
    "fsdp-compile crashed, which is a bug of the compiler. With\n"
    "--mlir-pass-pipeline-crash-reproducer=FILE.mlir the same command writes a "
    "reproducer;\n"
    "fsdp-opt --run-reproducer FILE.mlir repeats it. Please report both.\n";

/// The options of MLIR's pass manager work here as in mlir-opt; that for
/// reproducers is the one of them that --help names.
static void showReproducerOption() {
  mlir::registerPassManagerCLOptions();
  auto &options = cl::getRegisteredOptions();
  options.at("mlir-pass-pipeline-crash-reproducer")->addCategory(category);
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
  splitSettings(argc, argv, options, overrides);
  CompilerTool::checkOptions(options, suggestOption);
  cl::ParseCommandLineOptions(static_cast<int>(options.size()), options.data(),
                              kOverview);
  std::string message;
  int status = 0;
  try {
    fsdp::rt::checkVariables();
    Request request = makeRequest(compileCommand(argv[0], std::move(overrides)),
                                  llvm::outs());
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
