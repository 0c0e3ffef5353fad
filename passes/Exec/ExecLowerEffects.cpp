//===- ExecLowerEffects.cpp - What a program reads and writes -------------===//
//
// Stated from the function, before anything of it is lowered, so that
// exec-verify can compare what became of it. It knows ops by name, and what a
// new op does here is not stated until it is listed; exec-verify then refuses
// it. The digests of lib/Schedule/Outcome.cpp go by the effects that ops
// declare instead, so that they follow an op that no list has: the two proofs
// share nothing in which both could be wrong.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Support/RangeNames.h"
#include "passes/Exec/ExecLower.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/StringSaver.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::lower;

void lower::forEachStateEffect(
    Operation &op, llvm::function_ref<void(StringRef, StateEffect)> visit) {
  auto visitAll = [&](ArrayAttr names, StateEffect effect) {
    for (auto name : names.getAsRange<FlatSymbolRefAttr>())
      visit(name.getValue(), effect);
  };
  llvm::TypeSwitch<Operation *>(&op)
      .Case([&](nn::ReadOp o) { visit(o.getName(), StateEffect::Read); })
      .Case(
          [&](nn::GradientOp o) { visit(o.getName(), StateEffect::Gradient); })
      .Case([&](nn::AccumulateOp o) { visit(o.getName(), StateEffect::Add); })
      .Case([&](nn::WriteOp o) { visit(o.getName(), StateEffect::Write); })
      .Case([&](nn::ClearOp o) { visitAll(o.getNames(), StateEffect::Clear); })
      .Case([&](nn::AdamWOp o) {
        for (ArrayAttr names :
             {o.getParameters(), o.getFirstMoments(), o.getSecondMoments()})
          visitAll(names, StateEffect::Update);
      });
}

/// Whether work reads `value`: another name of it does not, and a seed asks for
/// its type alone. A slice that is no view is copied, whoever reads the copy.
static bool isRead(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<nn::SeedOp>(user))
      return false;
    auto slice = dyn_cast<nn::SliceOp>(user);
    if (slice && !contiguousOffset(slice))
      return true;
    if (isa<nn::ReshapeOp, nn::SliceOp, nn::RecomputeFromOp>(user))
      return isRead(user->getResult(use.getOperandNumber()));
    return true;
  });
}

/// What a name of a value, or a value inside of a kernel, stands for.
static Value valueBehind(Value value) {
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
    else if (isa<nn::ReshapeOp, nn::RecomputeFromOp>(op))
      value = op->getOperand(number);
    else
      return value;
  }
}

/// Whether `value` is what buffer `name` held and something more.
static bool addsTo(Value value, StringRef name) {
  llvm::SetVector<Value> sums;
  sums.insert(valueBehind(value));
  for (size_t i = 0; i < sums.size(); ++i) {
    auto add = sums[i].getDefiningOp<nn::AddOp>();
    if (!add)
      continue;
    for (Value operand : add->getOperands()) {
      Value addend = valueBehind(operand);
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
  void visit(Operation &op, StringRef name, StateEffect effect);
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

void Effects::visit(Operation &op, StringRef name, StateEffect effect) {
  switch (effect) {
  case StateEffect::Read:
    return isRead(op.getResult(0)) ? read(name) : void();
  case StateEffect::Write:
    // A buffer that its step does not clear may count from step to step.
    return state.isCleared(name, program) && addsTo(op.getOperand(0), name)
               ? add(name)
               : write(name);
  case StateEffect::Update:
    read(name);
    return write(name);
  case StateEffect::Add:
    return add(name);
  case StateEffect::Clear:
    write(name);
    clears.insert(name);
    return;
  case StateEffect::Gradient:
    return write(names.save(name + range_name::kGradientSuffix));
  }
}

void Effects::visit(Operation &op) {
  forEachStateEffect(
      op, [&](StringRef name, StateEffect effect) { visit(op, name, effect); });
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
