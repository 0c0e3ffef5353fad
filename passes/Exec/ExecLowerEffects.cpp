//===- ExecLowerEffects.cpp - What a program reads and writes -------------===//
//
// Stated from the function, before anything of it is lowered, so that
// exec-verify can compare what became of it. It goes by StateOpInterface: what
// an op without it does to the model is not stated, and exec-verify refuses it.
// The digests of lib/Schedule/SemanticDigest.cpp go by the memory effects that
// ops declare instead, which their records say apart from it: the two proofs
// share nothing in which both could be wrong.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/Boxes.h"
#include "fsdp/Support/RangeNames.h"
#include "passes/Exec/ExecLower.h"
#include "llvm/Support/StringSaver.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::lower;

/// Whether work reads `value`: another name of it does not, and a seed asks for
/// its type alone. A slice that is no view is copied, whoever reads the copy.
static bool isRead(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<nn::SeedOp>(user))
      return false;
    auto slice = dyn_cast<nn::SliceOp>(user);
    if (slice && !nn::contiguousOffset(slice))
      return true;
    if (nn::aliasesOperands(user))
      return isRead(user->getResult(use.getOperandNumber()));
    return true;
  });
}

/// What a name of a value, or a value inside of a kernel, stands for.
static Value underlyingValue(Value value) {
  while (true) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto fusion = dyn_cast<nn::FusionOp>(argument.getOwner()->getParentOp());
      if (!fusion)
        return value;
      value = fusion->getOperand(argument.getArgNumber());
      continue;
    }
    Operation *op = value.getDefiningOp();
    unsigned number = cast<OpResult>(value).getResultNumber();
    if (auto fusion = dyn_cast<nn::FusionOp>(op))
      value = fusion.getBody().front().getTerminator()->getOperand(number);
    else if (nn::aliasesOperands(op) && !isa<nn::SliceOp>(op))
      value = op->getOperand(number);
    else
      return value;
  }
}

/// Whether `value` is what buffer `name` held and something more.
static bool addsTo(Value value, StringRef name) {
  llvm::SetVector<Value> sums;
  sums.insert(underlyingValue(value));
  for (size_t i = 0; i < sums.size(); ++i) {
    auto add = sums[i].getDefiningOp<nn::AddOp>();
    if (!add)
      continue;
    for (Value operand : add->getOperands()) {
      Value addend = underlyingValue(operand);
      auto read = addend.getDefiningOp<nn::ReadOp>();
      if (read && read.getName() == name)
        return true;
      sums.insert(addend);
    }
  }
  return false;
}

namespace {

/// The effects of ops, in order.
class Effects {
public:
  Effects(const ModuleState &state, StringRef program)
      : state(state), program(program) {}

  void visit(Operation &op);
  void read(StringRef name) {
    if (!writes.contains(name))
      reads.insert(name);
  }
  void write(StringRef name) {
    writes.insert(name);
    adds.remove(name);
    clears.remove(name);
  }

  llvm::SetVector<StringRef> reads, writes, adds, clears;

private:
  void visit(Operation &op, StringRef name, nn::StateEffect effect);
  /// What the program has set or cleared before, it sets anew.
  void add(StringRef name) {
    bool isSum = !writes.contains(name) || adds.contains(name);
    read(name);
    writes.insert(name);
    clears.remove(name);
    if (isSum)
      adds.insert(name);
  }

  const ModuleState &state;
  StringRef program;
  /// Names of gradients, which no op has.
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver names{allocator};
};

} // namespace

void Effects::visit(Operation &op, StringRef name, nn::StateEffect effect) {
  switch (effect) {
  case nn::StateEffect::Read:
    return isRead(op.getResult(0)) ? read(name) : void();
  case nn::StateEffect::Write:
    // A buffer that its step does not clear may count from step to step.
    return state.isCleared(name, program) && addsTo(op.getOperand(0), name)
               ? add(name)
               : write(name);
  case nn::StateEffect::Update:
    read(name);
    return write(name);
  case nn::StateEffect::Add:
    return add(name);
  case nn::StateEffect::Clear:
    write(name);
    clears.insert(name);
    return;
  case nn::StateEffect::Gradient:
    return write(names.save(name + range_name::kGradientSuffix));
  }
}

void Effects::visit(Operation &op) {
  if (auto state = dyn_cast<nn::StateOpInterface>(op))
    state.forEachStateEffect([&](StringRef name, nn::StateEffect effect) {
      visit(op, name, effect);
    });
}

void ProgramLowering::stateEffects() {
  Effects effects(state, func.getSymName());
  auto nameOf = [&](StringRef list, unsigned number) {
    auto names = program->getAttrOfType<ArrayAttr>(list);
    return cast<StringAttr>(names[number]).getValue();
  };
  for (BlockArgument argument : func.getArguments())
    if (isRead(argument))
      effects.read(nameOf(exec::kInputsAttr, argument.getArgNumber()));
  for (Operation &op : func.front())
    effects.visit(op);
  for (unsigned number = 0; number < func.getNumResults(); ++number)
    effects.write(nameOf(exec::kOutputsAttr, number));
  auto set = [&](StringRef attribute, ArrayRef<StringRef> names) {
    program->setAttr(attribute, b.getStrArrayAttr(names));
  };
  set(exec::kReadsAttr, effects.reads.getArrayRef());
  set(exec::kWritesAttr, effects.writes.getArrayRef());
  if (!effects.adds.empty())
    set(exec::kAddsAttr, effects.adds.getArrayRef());
  if (!effects.clears.empty())
    set(exec::kClearsAttr, effects.clears.getArrayRef());
}
