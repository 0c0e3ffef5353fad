//===- ExecLowerEffects.cpp - What a program reads and writes -------------===//
//
// Stated from the function, before anything of it is lowered, so that
// exec-verify can compare what became of it.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Support/RangeNames.h"
#include "passes/Exec/ExecLower.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/StringSaver.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::lower;

/// Whether work reads `value`: another name of it does not, and a seed asks for
/// its type alone.
static bool isRead(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<nn::SeedOp>(user))
      return false;
    if (isa<nn::ReshapeOp, nn::SliceOp, nn::RecomputeFromOp>(user))
      return isRead(user->getResult(use.getOperandNumber()));
    return true;
  });
}

namespace {

/// The effects of ops, in order.
class Effects {
public:
  void read(StringRef name) {
    if (!writes.contains(name))
      reads.insert(name);
  }
  void write(StringRef name) { writes.insert(name); }
  void add(StringRef name) {
    update(name);
    adds.insert(name);
  }
  void update(StringRef name) {
    read(name);
    write(name);
  }
  void visit(Operation *op);

  llvm::SetVector<StringRef> reads, writes, adds;

private:
  /// Names of gradients, which no op has.
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver names{allocator};
};

} // namespace

void Effects::visit(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](nn::ReadOp o) {
        if (isRead(o.getValue()))
          read(o.getName());
      })
      .Case([&](nn::GradientOp o) {
        write(names.save(o.getName() + range_name::kGradientSuffix));
      })
      .Case([&](nn::AccumulateOp o) { add(o.getName()); })
      .Case([&](nn::WriteOp o) { write(o.getName()); })
      .Case([&](nn::ClearOp o) {
        for (auto name : o.getNames().getAsRange<FlatSymbolRefAttr>())
          write(name.getValue());
      })
      .Case([&](nn::AdamWOp o) {
        for (ArrayAttr names :
             {o.getParameters(), o.getFirstMoments(), o.getSecondMoments()})
          for (auto name : names.getAsRange<FlatSymbolRefAttr>())
            update(name.getValue());
      });
}

void ProgramLowering::stateEffects() {
  Effects effects;
  auto nameOf = [&](StringRef list, unsigned number) {
    auto names = program->getAttrOfType<ArrayAttr>(list);
    return cast<StringAttr>(names[number]).getValue();
  };
  for (BlockArgument argument : func.getArguments())
    if (isRead(argument))
      effects.read(nameOf(exec::kInputsAttr, argument.getArgNumber()));
  for (Operation &op : func.front())
    effects.visit(&op);
  for (unsigned number = 0; number < func.getNumResults(); ++number)
    effects.write(nameOf(exec::kOutputsAttr, number));
  auto set = [&](StringRef attribute, ArrayRef<StringRef> names) {
    program->setAttr(attribute, b.getStrArrayAttr(names));
  };
  set(exec::kReadsAttr, effects.reads.getArrayRef());
  set(exec::kWritesAttr, effects.writes.getArrayRef());
  if (!effects.adds.empty())
    set(exec::kAddsAttr, effects.adds.getArrayRef());
}
