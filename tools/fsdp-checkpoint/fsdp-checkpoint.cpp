//===- fsdp-checkpoint.cpp - Looks at checkpoints and changes them --------===//
#include "Commands.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Explain.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/NearestName.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

using namespace fsdp;
using namespace fsdp::checkpoint;

static const Command kCommands[] = {
    {"inspect", "prints what a checkpoint holds: run, step, model, tensors",
     declareInspect},
    {"verify", "compares every byte with the checksums", declareVerify},
    {"diff", "compares two checkpoints: settings, tensors, values",
     declareDiff},
    {"prune", "removes all but the newest steps of a folder", declarePrune},
    {"export", "writes the weights as a Hugging Face directory", declareExport},
    {"convert", "writes a checkpoint in the format of other software",
     declareConvert},
};

static const char *const kExamples =
    "PATH is the directory of a step, a folder of steps (the newest committed "
    "one is taken), or a directory of Hugging Face or "
    "torch.distributed.checkpoint:\n\n"
    "  fsdp-checkpoint inspect outputs/checkpoint\n"
    "  fsdp-checkpoint inspect outputs/checkpoint/step-500 --json\n"
    "  fsdp-checkpoint verify outputs/checkpoint/step-500\n"
    "  fsdp-checkpoint diff a/checkpoint/step-500 b/checkpoint/step-500\n"
    "  fsdp-checkpoint prune outputs/checkpoint --keep 2\n"
    "  fsdp-checkpoint export outputs/checkpoint my-llama\n"
    "  fsdp-checkpoint convert outputs/checkpoint --to dcp step-500-torch\n\n"
    "fsdp-checkpoint COMMAND --help describes a command.";

/// CLI11 says what else is wrong with a command line; of a command that does
/// not exist it says only that there has to be one.
static void checkCommand(int argc, char **argv) {
  std::vector<std::string> names;
  for (const Command &command : kCommands)
    names.emplace_back(command.name);
  std::string first = argc > 1 ? argv[1] : "";
  if (!first.empty() && first[0] != '-' &&
      std::find(names.begin(), names.end(), first) == names.end())
    throw Error("there is no command '" + first + "'" +
                didYouMean(first, names) + " (see fsdp-checkpoint --help)");
}

static int runCommand(int argc, char **argv) {
  CLI::App app("Inspects and converts checkpoints of fsdp-run.",
               "fsdp-checkpoint");
  app.footer(kExamples);
  app.require_subcommand(1);
  std::function<int()> chosen;
  for (const Command &command : kCommands) {
    CLI::App *sub = app.add_subcommand(command.name, command.help);
    sub->callback([&chosen, run = command.declare(*sub)] { chosen = run; });
  }
  checkCommand(argc, argv);
  int status = 0;
  try {
    app.parse(argc, argv);
    status = chosen();
  } catch (const CLI::CallForHelp &help) {
    status = app.exit(help);
  } catch (const CLI::ParseError &error) {
    throw Error(std::string(error.what()) + " (see fsdp-checkpoint --help)");
  }
  // A full disk behind standard output must not look like success, nor if only
  // what came before the last lines met it.
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    throw Error(std::string("cannot write standard output") +
                (errno != 0 ? std::string(": ") + std::strerror(errno) : ""));
  return status;
}

int main(int argc, char **argv) {
  // A limit of the size of files is an error like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return runCommand(argc, argv);
  } catch (const std::exception &error) {
    printMessage("fsdp-checkpoint", explain(error));
    return 1;
  }
}
