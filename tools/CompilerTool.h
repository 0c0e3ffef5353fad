//===- CompilerTool.h - What the compiler's tools have in common *- C++ -*-===//
#ifndef FSDP_TOOLS_COMPILERTOOL_H
#define FSDP_TOOLS_COMPILERTOOL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/InitLLVM.h"
#include <csignal>
#include <string>
#include <vector>

namespace fsdp {

/// Made first in main. LLVM prints a stack where the tool itself is wrong.
/// What comes from outside ends it as it ends any filter: quietly if the reader
/// of its output has gone or on Ctrl-C, with one message and status 1 if
/// standard output cannot be written.
class CompilerTool {
public:
  CompilerTool(int &argc, char **&argv, const char *name);

  /// Prints "TOOL: error: TEXT", escaped for a terminal.
  static void printError(const std::string &text);

  /// "; did you mean '--x'?" for an argument of the command line, with the
  /// names of the tool's options, which have no dashes; may be nothing.
  using Suggest = llvm::function_ref<std::string(
      const std::string &argument, const std::vector<std::string> &options)>;
  /// Ends the tool with one message at the first of the arguments (after its
  /// name) that is no option. To be called when all are registered and before
  /// LLVM parses them: it takes whatever begins with "h" for --help.
  static void checkOptions(llvm::ArrayRef<const char *> arguments,
                           Suggest suggest);
  /// The same with the nearest option as the suggestion.
  static void checkOptions(int argc, char **argv);

private:
  /// LLVM takes these signals; they get back the actions from before.
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
  struct Actions {
    struct sigaction saved[3];
    Actions();
    void restore() const;
  };

  Actions actions;
  llvm::InitLLVM init;
};

} // namespace fsdp

#endif // FSDP_TOOLS_COMPILERTOOL_H
