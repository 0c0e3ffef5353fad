//===- fsdp-opt.cpp - Runs passes over textual IR -------------------------===//
//
// mlir-opt's conventions with our dialects, passes and pipelines. The release
// build of MLIR has no -debug-only, so --fsdp-debug-only stands in for it.
//
//===----------------------------------------------------------------------===//
#include "dialects/Exec/Exec.h"
#include "fsdp/Runtime/Variables.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Nesting.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

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

/// MlirOptMain with a look at the text before it is parsed.
static mlir::LogicalResult run(llvm::StringRef input, llvm::StringRef output,
                               mlir::DialectRegistry &registry) {
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  std::string problem;
  auto text = mlir::openInputFile(input, &problem);
  if (!text) {
    llvm::errs() << problem << '\n';
    return mlir::failure();
  }
  if (llvm::Error error = fsdp::checkNesting(*text)) {
    llvm::errs() << "fsdp-opt: error: " << llvm::toString(std::move(error))
                 << '\n';
    return mlir::failure();
  }
  auto file = mlir::openOutputFile(output, &problem);
  if (!file) {
    llvm::errs() << problem << '\n';
    return mlir::failure();
  }
  if (mlir::failed(
          mlir::MlirOptMain(file->os(), std::move(text), registry, config)))
    return mlir::failure();
  file->keep();
  return mlir::success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  try {
    fsdp::rt::checkVariables();
  } catch (const fsdp::Error &error) {
    llvm::errs() << "fsdp-opt: error: " << error.what() << '\n';
    return 1;
  }
  fsdp::registerFsdpPasses();
  fsdp::registerFsdpPipelines();
  mlir::registerTransformsPasses();

  mlir::DialectRegistry registry;
  fsdp::registerFsdpDialects(registry);
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "fsdp-opt: passes of the sharded-training compiler\n",
      registry);
  return mlir::asMainReturnCode(run(input, output, registry));
}
