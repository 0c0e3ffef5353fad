//===- CompilerTool.cpp - What the compiler's tools have in common --------===//
#include "CompilerTool.h"
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
  std::fprintf(stderr, "%s: error: cannot write standard output: %s\n",
               toolName, out.error().message().c_str());
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
