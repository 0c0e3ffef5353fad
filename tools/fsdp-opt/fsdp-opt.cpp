//===- fsdp-opt.cpp - Runs passes over textual IR -------------------------===//
//
// mlir-opt's conventions with our dialects, passes and pipelines. The release
// build of MLIR has no -debug-only, so --fsdp-debug-only stands in for it.
//
//===----------------------------------------------------------------------===//
#include "dialects/Exec/Exec.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Debug.h"

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

int main(int argc, char **argv) {
  fsdp::registerFsdpPasses();
  fsdp::registerFsdpPipelines();
  mlir::registerTransformsPasses();

  mlir::DialectRegistry registry;
  fsdp::registerFsdpDialects(registry);
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "fsdp-opt: passes of the sharded-training compiler\n",
      registry));
}
