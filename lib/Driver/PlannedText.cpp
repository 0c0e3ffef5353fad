//===- PlannedText.cpp - Text that passes have planned --------------------===//
#include "PlannedText.h"
#include "dialects/Exec/Exec.h"
#include "dialects/Fsdp/Fsdp.h"
#include "fsdp/Support/Error.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace fsdp;
using namespace mlir;

bool fsdp::isPlannedExec(ModuleOp module) {
  return !module.getOps<exec::ProgramOp>().empty();
}

bool fsdp::isSchedule(ModuleOp module) {
  return module->hasAttr(dist::kLoweringAttr);
}

static llvm::Error haveNoEffect(ArrayRef<std::string> names, StringRef text) {
  if (names.empty())
    return llvm::Error::success();
  return llvm::createStringError(llvm::join(names, ", ") + ": no effect on a " +
                                 text.str() +
                                 "; set these when the text is generated");
}

llvm::Error fsdp::checkOptionsOfExecText(const Request &request) {
  if (request.emit <= Stage::Costs && request.emit != Stage::Graph)
    return llvm::createStringError(
        "the text is a planned exec module, which has no schedule any more");
  return haveNoEffect(request.forPasses, "planned exec module");
}

llvm::Error fsdp::checkOptionsOfSchedule(const Request &request) {
  if (request.emit <= Stage::Plan && request.emit != Stage::Graph)
    return llvm::createStringError(
        "the text is a schedule, to which its plan has been applied; plans are "
        "made of the text of --emit=graph");
  return haveNoEffect(request.forPasses, "schedule");
}

llvm::Error fsdp::checkOptionsOfGraph(const Request &request) {
  std::vector<std::string> names = request.forPasses;
  llvm::erase_if(names, [](StringRef name) {
    return name != "--ranks" && !name.starts_with("--model.") &&
           !(name.starts_with("--parallelism.") && name.ends_with("_degree"));
  });
  if (request.input.empty() || names.empty())
    return llvm::Error::success();
  return llvm::createStringError(llvm::join(names, ", ") +
                                 ": no effect on an INPUT, which states its "
                                 "own sizes; its mesh is --mesh");
}

/// The settings that both passes before a schedule and lowering read, or
/// lowering alone.
static std::vector<ConfigOption> loweringOptions(CompileOptions &options) {
  std::vector<ConfigOption> rows = pipelineOptions(options);
  llvm::erase_if(rows, [](const ConfigOption &row) {
    return row.name != "compile.attention" && row.name != "compile.reduce";
  });
  return rows;
}

void fsdp::stateLowering(ModuleOp module, CompileOptions options) {
  Builder builder(module.getContext());
  SmallVector<NamedAttribute> settings;
  for (const ConfigOption &row : loweringOptions(options))
    settings.push_back(
        builder.getNamedAttr(row.name, builder.getStringAttr(row.text())));
  module->setAttr(dist::kLoweringAttr, builder.getDictionaryAttr(settings));
}

llvm::Error fsdp::takeLowering(ModuleOp module, CompileOptions &options) {
  auto stated = module->getAttrOfType<DictionaryAttr>(dist::kLoweringAttr);
  for (const ConfigOption &row : loweringOptions(options)) {
    auto text = stated.getAs<StringAttr>(row.name);
    if (!text)
      return llvm::createStringError(
          "the schedule does not state " + row.name + " in '" +
          dist::kLoweringAttr + "'; keep what --emit=schedule has written");
    try {
      setOption(row, text.str(), dist::kLoweringAttr.str());
    } catch (const Error &error) {
      return llvm::createStringError(error.what());
    }
  }
  module->removeAttr(dist::kLoweringAttr);
  return llvm::Error::success();
}
