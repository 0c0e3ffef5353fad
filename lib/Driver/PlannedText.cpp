//===- PlannedText.cpp - Text that passes have planned --------------------===//
#include "PlannedText.h"
#include "dialects/Exec/Exec.h"
#include "dialects/Fsdp/Fsdp.h"
#include "llvm/ADT/StringExtras.h"

using namespace fsdp;
using namespace mlir;

bool fsdp::isPlannedExec(ModuleOp module) {
  return !module.getOps<exec::ProgramOp>().empty();
}

bool fsdp::isSchedule(ModuleOp module) {
  return module->hasAttr(dist::kSemanticDigestAttr);
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
        "the text is a schedule, to which its plan has been applied");
  // Lowering reads these.
  std::vector<std::string> late = request.forPasses;
  llvm::erase_if(late, [](StringRef name) {
    return name == "--compile.attention" || name == "--compile.reduce";
  });
  return haveNoEffect(late, "schedule");
}
