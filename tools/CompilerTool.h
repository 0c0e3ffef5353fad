//===- CompilerTool.h - What the compiler's tools have in common *- C++ -*-===//
#ifndef FSDP_TOOLS_COMPILERTOOL_H
#define FSDP_TOOLS_COMPILERTOOL_H

#include "llvm/Support/InitLLVM.h"
#include <csignal>

namespace fsdp {

/// Made first in main. LLVM prints a stack where the tool itself is wrong.
/// What comes from outside ends it as it ends any filter: quietly if the reader
/// of its output has gone or on Ctrl-C, with one message and status 1 if
/// standard output cannot be written.
class CompilerTool {
public:
  CompilerTool(int &argc, char **&argv, const char *name);

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
