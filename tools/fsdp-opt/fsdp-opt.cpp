//===- fsdp-opt.cpp - Runs passes over textual IR -------------------------===//
//
// mlir-opt's conventions with our dialects, passes and pipelines. The release
// build of MLIR has no -debug-only, so --fsdp-debug-only stands in for it.
//
//===----------------------------------------------------------------------===//
#include "CompilerTool.h"
#include "EscapedDiagnostics.h"
#include "dialects/Exec/Exec.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Input/Nesting.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

static llvm::cl::list<std::string> debugOnly(
    "fsdp-debug-only", llvm::cl::CommaSeparated,
    llvm::cl::desc("Print the decisions of these passes (e.g. fsdp-bucket)"),
    llvm::cl::callback([](const std::string &types) {
      llvm::DebugFlag = true;
      static std::vector<std::string> wanted;
      llvm::SmallVector<llvm::StringRef> parts;
      llvm::StringRef(types).split(parts, ',');
      for (llvm::StringRef part : parts)
        wanted.push_back(part.str());
      std::vector<const char *> names;
      for (const std::string &name : wanted)
        names.push_back(name.c_str());
      llvm::setCurrentDebugTypes(names.data(), names.size());
    }));

/// As mlir::MlirOptMain, except that the output is written by our own writer,
/// which replaces files as a whole and devices not at all.
static llvm::LogicalResult run(int argc, char **argv,
                               mlir::DialectRegistry &registry) {
  std::string head = mlir::registerCLIOptions(
      "fsdp-opt: passes of the sharded-training compiler\n", registry);
  fsdp::CompilerTool::checkOptions(argc, argv);
  auto [input, output] = mlir::parseCLIOptions(argc, argv, head);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::MlirOptMain(argc, argv, input, output, registry);
  if (input == "-" && llvm::sys::Process::StandardInIsUserInput())
    llvm::errs() << "(processing input from stdin now, hit ctrl-c/ctrl-d to "
                    "interrupt)\n";
  std::string problem;
  auto file = mlir::openInputFile(input, &problem);
  if (!file) {
    fsdp::CompilerTool::printError(problem);
    return llvm::failure();
  }
  if (llvm::Error error = fsdp::checkText(*file)) {
    fsdp::CompilerTool::printError(llvm::toString(std::move(error)));
    return llvm::failure();
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::LogicalResult result =
      mlir::MlirOptMain(os, std::move(file), registry, config);
  // Of a split input the good parts are shown, but only a whole one is kept.
  if (failed(result) && output != "-")
    return result;
  try {
    fsdp::writeFileAtomically(output, text);
  } catch (const fsdp::Error &error) {
    fsdp::CompilerTool::printError(error.what());
    return llvm::failure();
  }
  return result;
}

int main(int argc, char **argv) {
  fsdp::CompilerTool tool(argc, argv, "fsdp-opt");
  try {
    fsdp::rt::checkVariables();
  } catch (const fsdp::Error &error) {
    fsdp::CompilerTool::printError(error.what());
    return 1;
  }
  fsdp::registerFsdpPasses();
  fsdp::registerFsdpPipelines();
  mlir::registerTransformsPasses();

  mlir::DialectRegistry registry;
  fsdp::registerFsdpDialects(registry);
  fsdp::escapeDiagnostics(registry);
  return mlir::asMainReturnCode(run(argc, argv, registry));
}
