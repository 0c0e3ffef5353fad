//===- Units.cpp - Which unit a collective serves -------------------------===//

#include "passes/Schedule/Units.h"

using namespace mlir;
using namespace fsdp;

Units::Units(const schedule::Plan &plan) : plan(plan) {
  unsigned order = 0;
  for (auto [index, unit] : llvm::enumerate(plan.units))
    for (const std::string &parameter : unit.parameters)
      places[parameter] = {static_cast<unsigned>(index), order++};
}

FailureOr<SmallVector<UnitCollective>> Units::collect(Block &block) const {
  SmallVector<UnitCollective> found;
  bool backward = false;
  for (auto [position, op] : llvm::enumerate(block)) {
    backward |= isa<nn::SeedOp>(op);
    if (!isa<dist::AllGatherOp, dist::ReduceScatterOp, dist::AllReduceOp>(op))
      continue;
    auto parameters = op.getAttrOfType<ArrayAttr>(dist::kParametersAttr);
    if (!parameters || parameters.empty())
      continue;
    StringRef first = cast<StringAttr>(parameters[0]).getValue();
    auto place = places.find(first);
    if (place == places.end())
      return op.emitOpError("moves the parameter '")
             << first << "', which is in no unit of the plan";
    found.push_back({&op, place->second.unit, place->second.order, backward,
                     static_cast<unsigned>(position)});
  }
  return found;
}

llvm::DenseMap<Operation *, unsigned> fsdp::numberOps(Block &block) {
  llvm::DenseMap<Operation *, unsigned> number;
  for (auto [index, op] : llvm::enumerate(block))
    number[&op] = index;
  return number;
}

Operation *
fsdp::firstUser(Operation *op,
                const llvm::DenseMap<Operation *, unsigned> &number) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *inBlock = op->getBlock()->findAncestorOpInBlock(*user);
    if (!first || number.lookup(inBlock) < number.lookup(first))
      first = inBlock;
  }
  return first;
}

void fsdp::hoistBefore(Operation *op, Operation *target,
                       llvm::DenseMap<Operation *, unsigned> &number) {
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (producer && producer->getBlock() == target->getBlock() &&
        number.lookup(producer) >= number.lookup(target))
      hoistBefore(producer, target, number);
  }
  op->moveBefore(target);
  // Ordered like the target from now on: before whatever follows it.
  number[op] = number.lookup(target);
}

LogicalResult fsdp::applyPlan(
    ModuleOp module,
    llvm::function_ref<LogicalResult(Block &, const Units &)> apply) {
  FailureOr<schedule::Plan> plan = schedule::planOf(module);
  if (failed(plan))
    return failure();
  Units units(*plan);
  for (auto program : module.getOps<func::FuncOp>())
    if (!program.isExternal() &&
        failed(apply(program.getBody().front(), units)))
      return failure();
  return success();
}
