//===- CommandLine.cpp - What fsdp-run and its ranks are told -------------===//
#include "CommandLine.h"
#include "fsdp/Config/RunConfig.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Explain.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/Text.h"
#include "runtime/report/Console.h"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;

static const char *const kDescription =
    "Trains with an artifact of fsdp-compile.\n\n"
    "  fsdp-run out/bible --config examples/bible.toml -n 2\n"
    "  fsdp-run out/bible -n 2 --training.dataset_path text.txt "
    "--training.steps=100\n"
    "  mpirun -n 2 fsdp-run out/bible --config examples/bible.toml\n"
    "  fsdp-run out/bible -n 2 --config examples/bible.toml "
    "--checkpoint.enable=true\n"
    "  fsdp-run out/bible evaluate -n 2 --checkpoint outputs/checkpoint\n"
    "  fsdp-run out/bible sample -n 2 --checkpoint outputs/checkpoint/step-500 "
    "--sample.length=500\n\n"
    "Without --config, the settings are those of the artifact, and defaults "
    "for the others.";

/// Options that go together.
static void checkCommand(const RunOptions &options) {
  if (options.command.empty() && !options.checkpoint.empty())
    throw Error(
        "--checkpoint is for the commands evaluate and sample; a run resumes "
        "from its own folder (--checkpoint.enable=true), or starts from the "
        "parameters of another run (--checkpoint.initial_load_path)");
  if (options.checkValues && !options.trains())
    throw Error("--check-values checks training steps; it does not go with '" +
                (options.command.empty() ? "--program" : options.command) +
                "'");
  if (options.command.empty())
    return;
  if (options.checkpoint.empty())
    throw Error("'" + options.command +
                "' needs --checkpoint: a checkpoint (step-N), a folder of "
                "them, or a Hugging Face directory");
  for (const auto &[name, value] :
       {std::pair("--program", &options.program),
        std::pair("--load", &options.load), std::pair("--dump", &options.dump)})
    if (!value->empty())
      throw Error(std::string(name) + " does not go with '" + options.command +
                  "'");
}

static std::vector<std::string> longNames(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back(name);
  return names;
}

/// Refuses what is no option of the program. CLI11 would say only that it did
/// not expect it, or take its value for a command.
static void checkOptions(const CLI::App &app,
                         const std::vector<std::string> &arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string &argument = arguments[i];
    if (argument == "--")
      return;
    if (argument.size() < 2 || argument[0] != '-')
      continue;
    std::string name = argument.substr(0, argument.find('='));
    bool isShort = argument[1] != '-';
    const CLI::Option *option =
        app.get_option_no_throw(isShort ? name.substr(0, 2) : name);
    bool takesValue = option && option->get_items_expected_max() > 0;
    bool isLonger = isShort && name.size() > 2; // -n2, not -help
    if (!option || (isLonger && !takesValue))
      throw Error("unknown option '" + name + "'" +
                  suggestOption(name, longNames(app)) +
                  " (see fsdp-run --help)");
    if (takesValue && !isLonger && name.size() == argument.size())
      ++i;
  }
}

/// Takes the configuration's keys out: their values must not be read as the
/// artifact's directory. Returns the other arguments.
static std::vector<std::string>
takeOverrides(const std::vector<std::string> &args, RunOptions &options) {
  // What is wrong with them is said with what is wrong in the file.
  RunConfig scratch;
  ConfigErrors saidLater;
  std::vector<std::string> others =
      applyConfigOverrides(scratch, args, saidLater);
  size_t next = 0;
  for (const std::string &argument : args) {
    if (next < others.size() && others[next] == argument)
      ++next;
    else
      options.overrides.push_back(argument);
  }
  return others;
}

static void declareOptions(CLI::App &app, RunOptions &options) {
  app.footer("Configuration, as in the TOML file:\n" + configHelp());
  app.add_option("artifact", options.artifact,
                 "folder that fsdp-compile has written: step.so, step.so.xxh3, "
                 "manifest.json and values.json")
      ->required();
  app.add_option("command", options.command,
                 "instead of training: evaluate the held-out text, or sample "
                 "text, with the parameters of --checkpoint; writes no files")
      ->check(CLI::IsMember({"evaluate", "sample"}));
  app.add_option("--checkpoint", options.checkpoint,
                 "for evaluate and sample: a checkpoint (step-N), a folder of "
                 "them (the newest is taken), or a Hugging Face directory");
  app.add_option("--config", options.config, "description of the run (TOML)");
  app.add_option("-n,--ranks", options.ranks,
                 "ranks to start on this machine; without it, fsdp-run joins "
                 "the job of a launcher or runs as a single rank")
      ->check(CLI::Range(1, kMaxLocalRanks));
  app.add_option(
      "--load", options.load,
      "safetensors file with the values of ranges, of all ranks or one file "
      "per rank (FILE.rankN); its tokens and targets replace the text");
  app.add_option("--dump", options.dump,
                 "safetensors file to which rank N writes its ranges after the "
                 "last step, with .rankN before the extension");
  app.add_option(
      "--program", options.program,
      "run this program once instead of training, and print its outputs");
  app.add_flag(
      "--no-graph", options.noGraph,
      "on GPUs, issue the calls of every step one by one, instead of replaying "
      "the second step as a CUDA graph: the same bits, slower, and an error "
      "names its call. FSDP_TRACE implies it; CPUs have no graphs");
  app.add_flag_callback(
      "--config-reference",
      [] { throw CLI::CallForVersion(configReference(), 0); },
      "print all keys of a configuration, fsdp's and torchtitan's, as Markdown "
      "(docs/reference/config.md), and exit");
  app.add_flag("--check-values", options.checkValues,
               "check every value of every training step as it is produced, "
               "and end the run at the first that is not finite, with its "
               "operation and index: the same bits, slow");
}

/// What the ranks that are started get as arguments.
static void listForRanks(RunOptions &options) {
  options.forRanks = {options.artifact};
  if (!options.command.empty())
    options.forRanks.push_back(options.command);
  auto pass = [&](const char *name, const std::string &value) {
    if (!value.empty())
      options.forRanks.insert(options.forRanks.end(), {name, value});
  };
  pass("--config", options.config);
  pass("--checkpoint", options.checkpoint);
  pass("--load", options.load);
  pass("--dump", options.dump);
  pass("--program", options.program);
  if (options.noGraph)
    options.forRanks.emplace_back("--no-graph");
  if (options.checkValues)
    options.forRanks.emplace_back("--check-values");
  options.forRanks.insert(options.forRanks.end(), options.overrides.begin(),
                          options.overrides.end());
}

/// Reads the command line; returns the exit status if the program is to end
/// here, after --help.
static std::optional<int> parseOptions(const std::vector<std::string> &args,
                                       RunOptions &options) {
  std::vector<std::string> others = takeOverrides(args, options);
  CLI::App app(kDescription, "fsdp-run");
  declareOptions(app, options);
  checkOptions(app, others);
  std::reverse(others.begin(), others.end()); // as CLI11 wants it
  try {
    app.parse(others);
  } catch (const CLI::Success &asked) { // for help or the reference
    std::ostringstream text;
    int status = app.exit(asked, text);
    print(text.str());
    return status;
  } catch (const CLI::ParseError &error) {
    throw Error(std::string(error.what()) + " (see fsdp-run --help)");
  }
  checkCommand(options);
  listForRanks(options);
  return std::nullopt;
}

/// A full disk behind standard output must not look like success.
static void checkStandardOutput() {
  int error = outputError();
  if (error == 0)
    return;
  std::fprintf(stderr, "fsdp-run: cannot write standard output: %s\n",
               std::strerror(error));
  _exit(1);
}

int fsdp::runMain(int argc, char **argv, RunFunction *run) {
  std::atexit(checkStandardOutput);
  std::optional<LaunchEnvironment> place;
  // A limit of the size of files is an error like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    RunOptions options;
    if (auto status = parseOptions(
            std::vector<std::string>(argv + 1, argv + argc), options))
      return *status;
    checkVariables();
    place = detectLaunch();
    if (place && options.ranks != 0)
      throw Error("-n starts ranks, but a launcher has already started this "
                  "process as rank " +
                  std::to_string(place->rank) + "; leave -n out");
    return run(options, place);
  } catch (const std::exception &error) {
    // What is wrong on all ranks is said by the first, whose end makes the
    // launcher stop the others while they wait.
    if (place && place->rank != 0)
      std::this_thread::sleep_for(std::chrono::seconds(1));
    printMessage(place ? "fsdp" : "fsdp-run", explain(error));
    return 1;
  }
}
