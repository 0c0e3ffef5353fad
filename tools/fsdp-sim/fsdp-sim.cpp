//===- fsdp-sim.cpp - How long a step takes on a machine ------------------===//
#include "CalibrateCommand.h"
#include "CompilerTool.h"
#include "fsdp/Driver/CompileCommand.h"
#include "fsdp/Memory/Report.h"
#include "fsdp/Schedule/ProblemText.h"
#include "fsdp/Simulation/RowFit.h"
#include "fsdp/Simulation/StepReport.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;
using namespace fsdp;
using llvm::StringRef;

static const char *const kOverview =
    R"(fsdp-sim: simulates a training step on a machine, without the machine

It schedules the model as fsdp-compile does, takes times from a machine file
and a software profile, and prints what the step takes: its time with a bound
below which no order of the same work comes, communication that is exposed (compute
waits for it), tokens/s, MFU, and memory at the peak. Nothing is measured.
--section.key value sets any key of a run, as of fsdp-compile.)";

static const char *const kExamples = R"(
EXAMPLES:

  Llama 3 8B on 8 H100, one sequence of 8192 tokens for each:
    fsdp-sim --model.name llama3 --model.flavor 8B --training.seq_len 8192 --training.mixed_precision_param bfloat16 --ranks 8

  A run on 64 ranks of nodes that share one 200 Gb/s NIC:
    fsdp-sim --config run.toml --ranks 64 --machine h100-1x200g

  Is another plan faster? Edit it, and simulate both:
    fsdp-compile --config run.toml --ranks 8 --emit=plan -o plan.json
    fsdp-sim --config run.toml --ranks 8 --plan plan.json

  All collectives, and the timeline to open in ui.perfetto.dev:
    fsdp-sim --config run.toml --ranks 8 --all --trace step.json

  8B must fit into 40 GB: what does that cost?
    fsdp-sim --model.name llama3 --model.flavor 8B --training.seq_len 8192 --training.mixed_precision_param bfloat16 --ranks 8 --explain --memory-budget 40GB

  How well are published runs predicted? Fit five scalars, and try them on others:
    fsdp-sim --fit rows.csv -o scalars.toml
    fsdp-sim --fit others.csv --scalars scalars.toml

  How long do steps take here? Measure this machine with 2 ranks, and simulate:
    fsdp-sim --calibrate -n 2 --for run.toml -o here.toml
    fsdp-sim --config run.toml -n 2 --machine ./here.toml --workspaces cpu

  As JSON; and what the machines and profiles are:
    fsdp-sim --config run.toml --ranks 8 --json
    fsdp-sim --list

READING IT:

  exposed communication  that compute waits for; the rest of it is hidden
  bound                  the longer of all compute and all communication
  MFU                    operations of the model (6 per parameter and token, and
                         attention's) per second, of the peak of the matmuls'
                         type; what is computed a second time does not count

SETTINGS (--section.key value, or in the file of --config):

)";

static cl::OptionCategory category("Options");

static cl::opt<std::string> input(cl::Positional, cl::desc("[INPUT.mlir]"),
                                  cl::cat(category));
static cl::opt<std::string>
    configPath("config", cl::value_desc("FILE.toml"),
               cl::desc("Description of the run (see SETTINGS)"),
               cl::cat(category));
static cl::opt<std::string> problemPath(
    "problem", cl::value_desc("FILE"),
    cl::desc("Instead of a model: what --emit=problem of fsdp-compile prints, "
             "with every collective where it stands, without overlap"),
    cl::cat(category));
static cl::opt<int64_t>
    ranks("ranks", cl::value_desc("N"),
          cl::desc("Ranks of the job (default: from the settings, else 1)"),
          cl::cat(category));
static cl::alias ranksShort("n", cl::aliasopt(ranks), cl::desc("--ranks"),
                            cl::cat(category));
static cl::opt<std::string>
    mesh("mesh", cl::value_desc("AXES"),
         cl::desc("Mesh for an INPUT, as of fsdp-compile"), cl::cat(category));
static cl::opt<std::string> planFile(
    "plan", cl::value_desc("FILE.json"),
    cl::desc("Plan of the schedule (default: what fsdp-compile plans)"),
    cl::cat(category));
static cl::opt<bool> wantExplain(
    "explain",
    cl::desc("Print what --memory-budget costs: the plan that compile.plan = "
             "auto decides, the price of each GiB, and other policies"),
    cl::cat(category));
static cl::opt<bool> wantCompare(
    "compare",
    cl::desc("Print the plan that is decided with the settings as given beside "
             "what others do, for each of several --machine A,B and "
             "--memory-budget C,D; fails where another one is faster"),
    cl::cat(category));
static cl::opt<std::string> plansPath(
    "plans", cl::value_desc("DIR"),
    cl::desc("With --compare: also write the plans of one machine and budget, "
             "each as DIR/<name>.json for --plan; a rule's that is slower than "
             "the decided one may exceed the budget"),
    cl::cat(category));
static cl::opt<std::string> memoryBudget(
    "memory-budget", cl::value_desc("SIZE"),
    cl::desc("Bytes of the arena for --explain and compile.plan = auto, as "
             "40GB or 60GiB (with --explain the machine's memory by default)"),
    cl::cat(category));
static cl::opt<std::string> machineName(
    "machine", cl::value_desc("NAME|FILE.toml"),
    cl::desc("The machine, by name (--list) or path (default "
             "compile.machine, and that is h100; of --problem h100); also that "
             "of compile.plan = auto, unless --compile.machine names another"),
    cl::init("h100"), cl::cat(category));
static cl::opt<std::string> profileName(
    "profile", cl::value_desc("NAME|FILE.toml"),
    cl::desc("The software, by name (--list) or path (default fsdp)"),
    cl::init("fsdp"), cl::cat(category));
static cl::opt<Sums>
    sums("sums",
         cl::desc("How exact sums over ranks are made (default: as the problem "
                  "says, in two levels with parallelism.node_size):"),
         cl::values(clEnumValN(Sums::Exact, "exact", "in one exchange"),
                    clEnumValN(Sums::ExactTwoLevels, "exact_two_levels",
                               "inside the machine's nodes, then between them"),
                    clEnumValN(Sums::Fast, "fast", "by the library, NCCL")),
         cl::init(Sums::Exact), cl::cat(category));
static cl::opt<std::string>
    stepName("step", cl::value_desc("NAME"),
             cl::desc("The step of the problem (default train)"),
             cl::init("train"), cl::cat(category));
static cl::opt<std::string>
    workspaces("workspaces", cl::value_desc("TARGET"),
               cl::desc("Sizes of workspaces, as of fsdp-compile (default "
                        "cuda)"),
               cl::init("cuda"), cl::cat(category));
static cl::opt<bool> wantAll("all", cl::desc("Print all collectives"),
                             cl::cat(category));
static cl::opt<bool> wantJson("json", cl::desc("Print one JSON object"),
                              cl::cat(category));
static cl::opt<bool> wantList("list",
                              cl::desc("Print the machines and profiles"),
                              cl::cat(category));
static cl::opt<std::string> tracePath(
    "trace", cl::value_desc("FILE.json"),
    cl::desc("Write the timeline as a Chrome trace (ui.perfetto.dev)"),
    cl::cat(category));
static cl::opt<std::string>
    fitPath("fit", cl::value_desc("ROWS.csv"),
            cl::desc("Instead of a model: predict the steps of a table of "
                     "published runs, with scalars fitted to it; -o writes the "
                     "scalars"),
            cl::cat(category));
static cl::opt<std::string>
    scalarsPath("scalars", cl::value_desc("FILE.toml"),
                cl::desc("With --fit: these scalars, of another table, and "
                         "nothing is fitted"),
                cl::cat(category));
static cl::opt<bool> wantCalibrate(
    "calibrate",
    cl::desc("Instead of a model: measure this machine, with --ranks ranks at "
             "once, and write its machine file to the file of -o"),
    cl::cat(category));
static cl::list<std::string>
    calibratedRuns("for", cl::value_desc("FILE.toml"),
                   cl::desc("With --calibrate: measure the shapes of this run "
                            "too, beside a table of common ones; may be "
                            "repeated"),
                   cl::cat(category));
static cl::opt<std::string> launcher(
    "launcher", cl::value_desc("COMMAND"),
    cl::desc("With --calibrate: what starts the ranks, as 'mpirun -np 2', in "
             "place of --ranks; FSDP_SHARED_MEMORY=0 measures messages"),
    cl::cat(category));
static cl::opt<double>
    calibrateSeconds("seconds", cl::value_desc("S"),
                     cl::desc("With --calibrate: what measuring takes, about "
                              "(default 120)"),
                     cl::init(120), cl::cat(category));
static cl::opt<std::string>
    outputPath("o", cl::value_desc("FILE"),
               cl::desc("Write to this file instead of stdout"), cl::init("-"),
               cl::cat(category));

/// Rows of collectives without --all.
static constexpr size_t kRows = 10;

static std::string listOfFiles() {
  std::string text = "machines:\n";
  for (const std::string &name : builtInMachines())
    text +=
        llvm::formatv("  {0,-18} {1}\n", name, loadMachine(name).description);
  text += "profiles:\n";
  for (const std::string &name : builtInProfiles())
    text +=
        llvm::formatv("  {0,-18} {1}\n", name, loadProfile(name).description);
  return text;
}

/// Throws where nothing would be decided for a budget that is stated.
static void checkBudget(bool decidesPlan) {
  if (memoryBudget.getNumOccurrences() && !decidesPlan)
    throw Error("--memory-budget is for what is decided: add --compile.plan "
                "auto, which goes without --plan, compile.recompute, "
                "compile.bucket and compile.overlap; or --explain");
}

static PlannedProblem readProblem(const std::vector<std::string> &settings) {
  checkBudget(/*decidesPlan=*/false);
  if (!input.empty() || !configPath.empty() || !planFile.empty() ||
      !settings.empty())
    throw Error("--problem goes without INPUT, --config, --plan and settings: "
                "it has a schedule's ops, and no addresses of a plan are "
                "applied to it");
  std::string problem;
  auto buffer = mlir::openInputFile(problemPath, &problem);
  if (!buffer)
    throw Error("--problem: " + problem);
  PlannedProblem planned;
  planned.problem = problem::parse(buffer->getBuffer().str(), problemPath);
  planned.candidate = problem::Candidate(planned.problem);
  return planned;
}

static Request requestOf(const char *argv0, std::vector<std::string> settings) {
  CompileCommand options;
  options.input = input;
  options.configPath = configPath;
  options.overrides = std::move(settings);
  options.emit = Stage::Problem;
  if (ranks.getNumOccurrences())
    options.ranks = ranks;
  if (mesh.getNumOccurrences())
    options.mesh = mesh;
  if (planFile.getNumOccurrences())
    options.plan = planFile;
  if (memoryBudget.getNumOccurrences())
    options.memoryBudget = memoryBudget;
  options.workspaces = workspaces;
  options.tool = "fsdp-sim";
  options.argv0 = argv0;
  return makeRequest(options, llvm::nulls());
}

/// Unset: as the problem says.
static std::optional<Sums> statedSums() {
  return sums.getNumOccurrences() ? std::optional<Sums>(sums) : std::nullopt;
}

/// The machine that is simulated, by name or path.
static std::string machineOf(const Request &request) {
  return machineName.getNumOccurrences() ? machineName.getValue()
                                         : request.config.compile.machine;
}

static llvm::Error explainBudget(const char *argv0,
                                 std::vector<std::string> settings) {
  if (!problemPath.empty() || wantJson || wantAll || !tracePath.empty())
    throw Error("--explain goes without --problem, --json, --all and --trace: "
                "it is a page about a model");
  SoftwareProfile profile = loadProfile(profileName);
  bool hasBudget = memoryBudget.getNumOccurrences() != 0;
  if (!hasBudget) // The machine's memory, when that is known.
    memoryBudget.addOccurrence(0, "memory-budget", "1GiB");
  settings.push_back("--compile.plan=auto");
  Request request = requestOf(argv0, std::move(settings));
  // The page is about one machine, which its plan is decided for.
  request.config.compile.machine = machineOf(request);
  Machine machine = loadMachine(request.config.compile.machine);
  if (!hasBudget)
    request.config.pipeline.memoryBudget = machine.device.memoryBytes;
  CostModel model(std::move(machine), std::move(profile));
  llvm::Expected<std::string> page =
      explain(std::move(request), {model, statedSums()});
  if (!page)
    return page.takeError();
  writeFileAtomically(outputPath, *page);
  return llvm::Error::success();
}

static std::vector<std::string> splitAtCommas(StringRef text) {
  llvm::SmallVector<StringRef> parts;
  text.split(parts, ',', -1, /*KeepEmpty=*/false);
  return {parts.begin(), parts.end()};
}

/// "block, 1 ahead" is block-1-ahead.json.
static void writePlans(const std::vector<ComparedPlan> &plans) {
  for (const ComparedPlan &plan : plans) {
    std::string name;
    for (char c : plan.name)
      if (llvm::isAlnum(c))
        name += c;
      else if (!name.empty() && name.back() != '-' && c != '\'')
        name += '-';
    writeFileAtomically(plansPath + "/" + name + ".json", plan.json);
  }
}

static llvm::Error compareWithRules(const char *argv0,
                                    std::vector<std::string> settings) {
  if (!problemPath.empty() || wantJson || wantAll || !tracePath.empty() ||
      wantExplain)
    throw Error("--compare goes without --problem, --json, --all, --trace and "
                "--explain: it is a table about a model");
  std::vector<CostModel> models;
  std::vector<int64_t> budgets;
  for (const std::string &size : splitAtCommas(memoryBudget)) {
    llvm::Expected<int64_t> bytes = parseBytes(size);
    if (!bytes)
      throw Error("--memory-budget: " + llvm::toString(bytes.takeError()));
    budgets.push_back(*bytes);
  }
  if (budgets.empty())
    throw Error("--compare needs --memory-budget");
  memoryBudget = std::to_string(budgets.front());
  settings.push_back("--compile.plan=auto");
  Request request = requestOf(argv0, std::move(settings));
  for (const std::string &name : splitAtCommas(machineOf(request)))
    models.emplace_back(loadMachine(name), loadProfile(profileName));
  if (models.empty())
    throw Error("--machine: name one, or several with commas between them");
  bool writesPlans = plansPath.getNumOccurrences() != 0;
  if (writesPlans && models.size() * budgets.size() != 1)
    throw Error("--plans goes with one --machine and one --memory-budget: "
                "plans of another have the same names");
  if (writesPlans)
    makeDirectories(plansPath);
  std::vector<simulation::Costs> costs;
  for (const CostModel &model : models)
    costs.push_back({model, statedSums()});
  llvm::Expected<Comparison> compared =
      compare(std::move(request), costs, budgets);
  if (!compared)
    return compared.takeError();
  writeFileAtomically(outputPath, compared->text);
  if (writesPlans)
    writePlans(compared->plans);
  if (compared->slower != 0)
    return llvm::createStringError(
        llvm::formatv("in {0} of {1} cases a known rule is faster",
                      compared->slower, compared->cases));
  return llvm::Error::success();
}

/// A plan that is decided is one for the machine that is simulated, whatever
/// the file of --config says, unless the command line names another. A program
/// that is read takes no settings.
static void decideForMachine(std::vector<std::string> &settings) {
  auto namesOne = [](StringRef setting) {
    return setting.split('=').first == "--compile.machine";
  };
  if (input.empty() && machineName.getNumOccurrences() &&
      llvm::none_of(settings, namesOne))
    settings.push_back("--compile.machine=" + machineName.getValue());
}

/// Sets `machine` to the one that is simulated.
static llvm::Expected<PlannedProblem>
planModel(const char *argv0, std::vector<std::string> settings,
          std::string &machine) {
  decideForMachine(settings);
  Request request = requestOf(argv0, std::move(settings));
  checkBudget(request.decidesPlan);
  machine = machineOf(request);
  (void)loadMachine(machine); // It is named wrongly before anything is planned.
  return planProblem(std::move(request));
}

static llvm::Error simulateStep(const char *argv0,
                                std::vector<std::string> settings) {
  std::string machine = machineName;
  SoftwareProfile profile = loadProfile(profileName);
  llvm::Expected<PlannedProblem> what =
      problemPath.empty()
          ? planModel(argv0, std::move(settings), machine)
          : llvm::Expected<PlannedProblem>(readProblem(settings));
  if (!what)
    return what.takeError();
  CostModel model(loadMachine(machine), std::move(profile));
  simulation::Costs costs{model, statedSums()};
  simulation::StepResult step = simulation::simulate(
      what->problem, what->candidate, stepName.getValue(), costs);
  simulation::Report report{what->problem, step, costs};
  if (!tracePath.empty())
    writeFileAtomically(tracePath, simulation::chromeTraceOf(report));
  writeFileAtomically(
      outputPath, wantJson
                      ? simulation::jsonOf(report)
                      : simulation::textOf(report, wantAll ? SIZE_MAX : kRows));
  return llvm::Error::success();
}

/// The report goes to stdout; -o is the file of scalars.
static void fitRows(const std::vector<std::string> &settings) {
  if (!input.empty() || !configPath.empty() || !problemPath.empty() ||
      !planFile.empty() || !tracePath.empty() || wantJson || !settings.empty())
    throw Error("--fit goes with --scalars and -o only: its rows say what runs "
                "and on what");
  bool writes = outputPath.getNumOccurrences() != 0;
  bool isFitted = scalarsPath.empty();
  if (writes && !isFitted)
    throw Error("-o goes without --scalars: nothing is fitted then");
  simulation::FitProblem problem;
  if (!isFitted)
    problem.first = simulation::loadScalars(scalarsPath);
  simulation::RowTable table = simulation::loadRows(fitPath);
  for (const simulation::PublishedRow &row : table.rows) {
    problem.terms.push_back(simulation::termsOf(row, fitPath));
    problem.seconds.push_back(row.seconds());
  }
  simulation::Scalars scalars =
      isFitted ? simulation::fitScalars(problem) : problem.first;
  if (writes)
    writeFileAtomically(outputPath, simulation::toToml(scalars));
  if (outputPath != "-" || !writes)
    writeFileAtomically(
        "-", simulation::fitReport(table, problem.terms, scalars, isFitted));
}

static llvm::Error calibrate(const char *argv0,
                             std::vector<std::string> settings) {
  if (!input.empty() || !configPath.empty() || !problemPath.empty() ||
      !planFile.empty() || !tracePath.empty() || wantJson || wantExplain)
    throw Error("--calibrate goes with --ranks, --launcher, --for, --seconds "
                "and -o only: it measures a machine");
  CalibrateCommand command;
  command.output = outputPath;
  command.ranks = ranks.getNumOccurrences() ? int64_t(ranks) : 1;
  command.launcher = launcher;
  command.seconds = calibrateSeconds;
  command.runs = {calibratedRuns.begin(), calibratedRuns.end()};
  command.settings = std::move(settings);
  command.argv0 = argv0;
  return calibrateMachine(command);
}

int main(int argc, char **argv) {
  CompilerTool tool(argc, argv, "fsdp-sim");
  // The driver applies them.
  mlir::registerPassManagerCLOptions();
  cl::HideUnrelatedOptions(category);
  std::string tail = kExamples + configHelp();
  cl::extrahelp extra(tail);
  std::vector<const char *> options;
  std::vector<std::string> settings;
  splitSettings(argc, argv, options, settings);
  CompilerTool::checkOptions(options, suggestOption);
  cl::ParseCommandLineOptions(static_cast<int>(options.size()), options.data(),
                              kOverview);
  std::string message;
  int status = 0;
  try {
    if (wantList)
      writeFileAtomically(outputPath, listOfFiles());
    else if (!fitPath.empty())
      fitRows(settings);
    else if (!scalarsPath.empty())
      throw Error("--scalars goes with --fit");
    else if (plansPath.getNumOccurrences() && !wantCompare)
      throw Error("--plans goes with --compare, whose plans it writes");
    else if (!wantCalibrate && (!calibratedRuns.empty() || !launcher.empty() ||
                                calibrateSeconds.getNumOccurrences()))
      throw Error("--for, --launcher and --seconds go with --calibrate");
    else if (llvm::Error error =
                 wantCalibrate ? calibrate(argv[0], std::move(settings))
                 : wantCompare ? compareWithRules(argv[0], std::move(settings))
                 : wantExplain ? explainBudget(argv[0], std::move(settings))
                               : simulateStep(argv[0], std::move(settings))) {
      message = llvm::toString(std::move(error));
      status = 1;
    }
  } catch (const Error &error) {
    message = error.what();
    status = 1;
  }
  if (!message.empty())
    CompilerTool::printError(message);
  return status;
}
