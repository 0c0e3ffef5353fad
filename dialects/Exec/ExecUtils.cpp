//===- ExecUtils.cpp - Bytes, ranges and accesses of exec ops -------------===//
#include "dialects/Exec/Exec.h"
#include "dialects/NN/ModulePath.h"

using namespace mlir;

namespace fsdp::exec {

bool isBuffer(Type type) {
  auto memRef = dyn_cast<MemRefType>(type);
  if (!memRef || !memRef.getLayout().isIdentity())
    return false;
  Type element = memRef.getElementType();
  bool isKnown = element.isF32() || element.isBF16() || element.isF64() ||
                 element.isSignlessInteger(8) ||
                 element.isSignlessInteger(32) || element.isSignlessInteger(64);
  return isKnown && nn::hasCheckedSize(memRef, element.isInteger(8));
}

int64_t bytesOf(MemRefType type) {
  return type.getNumElements() * (type.getElementTypeBitWidth() / 8);
}

ByteRange resolveRange(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  ByteRange range{buffer, 0, bytesOf(type)};
  int64_t elementBytes = type.getElementTypeBitWidth() / 8;
  while (auto view = range.root.getDefiningOp<ViewOp>()) {
    int64_t shift = static_cast<int64_t>(view.getOffset()) * elementBytes;
    range.begin += shift;
    range.end += shift;
    range.root = view.getSource();
  }
  return range;
}

bool isWork(Operation *op) { return isa<WorkOpInterface>(op); }

Stream streamOf(Operation *op) { return cast<WorkOpInterface>(op).getStream(); }

SmallVector<Value> readsOf(Operation *op) {
  return llvm::to_vector(cast<WorkOpInterface>(op).getInputs());
}

SmallVector<Value> writesOf(Operation *op) {
  auto work = cast<WorkOpInterface>(op);
  return llvm::to_vector(
      llvm::concat<Value>(work.getOutputs(), work.getWorkspaces()));
}

SmallVector<Value> workspacesOf(Operation *op) {
  return llvm::to_vector(cast<WorkOpInterface>(op).getWorkspaces());
}

Attribute producedBy(Operation *op) {
  if (Attribute produced = op->getAttr(kProducesAttr))
    return produced;
  auto launch = dyn_cast<LaunchOp>(op);
  StringRef work = launch ? launch.getKernel() : op->getName().stripDialect();
  StringRef module = nn::modulePathOf(op);
  return StringAttr::get(op->getContext(),
                         module.empty() ? work : module + " " + work);
}

void setProduced(Operation *op, ArrayRef<StringAttr> names) {
  if (names.empty() || llvm::is_contained(names, StringAttr()))
    return;
  if (llvm::all_equal(names))
    return op->setAttr(kProducesAttr, names.front());
  SmallVector<Attribute> all(names.begin(), names.end());
  op->setAttr(kProducesAttr, ArrayAttr::get(op->getContext(), all));
}

SmallVector<std::pair<StringAttr, SmallVector<StepAction>>>
stepsOf(ModuleOp module) {
  SmallVector<std::pair<StringAttr, SmallVector<StepAction>>> steps;
  if (auto stated = module->getAttrOfType<DictionaryAttr>(nn::kStepsAttr)) {
    for (NamedAttribute step : stated) {
      steps.push_back({step.getName(), {}});
      for (auto action :
           cast<ArrayAttr>(step.getValue()).getAsRange<nn::ActionAttr>())
        steps.back().second.push_back({action.getProgram(), action.getTimes()});
    }
    return steps;
  }
  auto train = StringAttr::get(module.getContext(), "train");
  if (module.lookupSymbol<ProgramOp>(train))
    steps.push_back({train, {{FlatSymbolRefAttr::get(train), 1}}});
  return steps;
}

} // namespace fsdp::exec
