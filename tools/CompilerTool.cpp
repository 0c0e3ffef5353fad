//===- CompilerTool.cpp - What the compiler's tools have in common --------===//
#include "CompilerTool.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/NearestName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace fsdp;

static const char *toolName;

/// Everything that is printed through llvm::outs() is checked once, at the
/// end: help and lists too, after which LLVM calls exit.
static void checkStandardOutput() {
  llvm::raw_fd_ostream &out = llvm::outs();
  out.flush();
  if (!out.has_error())
    return;
  CompilerTool::printError("cannot write standard output: " +
                           out.error().message());
  // Otherwise the stream's destructor aborts.
  out.clear_error();
  _exit(1);
}

CompilerTool::Actions::Actions() {
  for (int i = 0; i < 3; ++i)
    sigaction(kSignals[i], nullptr, &saved[i]);
}

void CompilerTool::Actions::restore() const {
  for (int i = 0; i < 3; ++i)
    sigaction(kSignals[i], &saved[i], nullptr);
}

CompilerTool::CompilerTool(int &argc, char **&argv, const char *name)
    : init(argc, argv, /*InstallPipeSignalExitHandler=*/false) {
  actions.restore();
  // A limit on the size of files gives an error like that of a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  toolName = name;
  // The stream is made before the function is registered, so that it is
  // destroyed after the function was called.
  llvm::outs();
  std::atexit(checkStandardOutput);
}

void CompilerTool::printError(const std::string &text) {
  printMessage(std::string(toolName) + ": error", text);
}

//===----------------------------------------------------------------------===//
// Unknown options
//===----------------------------------------------------------------------===//

namespace cl = llvm::cl;
using llvm::StringRef;

/// Null if there is none of that name. LLVM registers -h when it parses.
static cl::Option *findOption(StringRef name) {
  return cl::getRegisteredOptions().lookup(name == "h" ? "help" : name);
}

/// The first argument that is no option; empty: there is none.
static std::string findUnknown(llvm::ArrayRef<const char *> arguments) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    StringRef argument = arguments[i];
    if (argument == "--")
      return "";
    if (argument.size() < 2 || argument[0] != '-')
      continue;
    auto [name, value] = argument.split('=');
    name = name.ltrim('-');
    cl::Option *option = findOption(name);
    // What is not there yet: mlir-opt registers -o when it parses.
    bool isOutput = !option && name == "o";
    if (!option && !isOutput)
      return argument.split('=').first.str();
    bool takesValue =
        isOutput || option->getValueExpectedFlag() == cl::ValueRequired;
    if (takesValue && !argument.contains('='))
      ++i;
  }
  return "";
}

void CompilerTool::checkOptions(llvm::ArrayRef<const char *> arguments,
                                Suggest suggest) {
  std::string unknown = findUnknown(arguments);
  if (unknown.empty())
    return;
  std::vector<std::string> names;
  for (const auto &[name, option] : cl::getRegisteredOptions())
    if (option->getOptionHiddenFlag() == cl::NotHidden)
      names.push_back(name.str());
  llvm::sort(names);
  printError("unknown option '" + unknown + "'" + suggest(unknown, names) +
             " (see " + toolName + " --help)");
  std::exit(1);
}

void CompilerTool::checkOptions(int argc, char **argv) {
  std::vector<const char *> arguments(argv, argv + argc);
  checkOptions(arguments, [](const std::string &argument,
                             const std::vector<std::string> &options) {
    std::string nearest = nearestOption(withoutDashes(argument), options);
    return nearest.empty() ? nearest : didYouMean("--" + nearest);
  });
}
