//===- Size.cpp - What a run holds in memory ------------------------------===//
#include "dialects/Fsdp/Fsdp.h"
#include "fsdp/Interpreter/Grid.h"

using namespace mlir;

namespace fsdp::interpret {

namespace {

/// Values of a program, each until its last use, in elements of one rank.
class LiveValues {
public:
  int64_t most(func::FuncOp program) {
    for (BlockArgument argument : program.getArguments())
      define(argument);
    for (Operation &op : program.getBody().front()) {
      for (Value result : op.getResults())
        define(result);
      // What the ops inside compute is theirs, what they take is not.
      op.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          release(operand);
      });
    }
    return peak;
  }

private:
  static int64_t elementsOf(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type ? type.getNumElements() : 0; // futures
  }

  void define(Value value) {
    int64_t uses = std::distance(value.use_begin(), value.use_end());
    if (uses == 0)
      return;
    usesLeft[value] = uses;
    live = (CheckedSize(live) + elementsOf(value)).saturated();
    peak = std::max(peak, live);
  }

  void release(Value value) {
    auto it = usesLeft.find(value);
    if (it != usesLeft.end() && --it->second == 0)
      live -= elementsOf(value);
  }

  DenseMap<Value, int64_t> usesLeft;
  int64_t live = 0, peak = 0;
};

} // namespace

/// Elements of what the module declares, and of what ranks read of it.
static CheckedSize stateElements(func::FuncOp program, int64_t ranks) {
  auto module = program->getParentOfType<ModuleOp>();
  CheckedSize elements = 0;
  if (!module)
    return elements;
  for (auto parameter : module.getOps<nn::ParameterOp>())
    elements += parameter.getTensorType().getNumElements();
  for (auto buffer : module.getOps<nn::BufferOp>())
    elements += buffer.getTensorType().getNumElements();
  llvm::DenseSet<StringRef> read;
  for (auto op : program.getBody().getOps<nn::ReadOp>())
    if (read.insert(op.getName()).second)
      elements +=
          CheckedSize(ranks) *
          cast<RankedTensorType>(op.getValue().getType()).getNumElements();
  return elements;
}

int64_t leastBytes(func::FuncOp program) {
  int64_t ranks = worldSize(program->getParentOfType<ModuleOp>());
  CheckedSize elements = stateElements(program, ranks);
  elements += CheckedSize(ranks) * LiveValues().most(program);
  return (elements * int64_t(sizeof(double))).saturated();
}

} // namespace fsdp::interpret
