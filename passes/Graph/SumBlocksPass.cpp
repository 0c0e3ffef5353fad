//===- SumBlocksPass.cpp - Gradients are added up block by block ----------===//
//
// See GraphPasses.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/NN/ModulePath.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace fsdp {
#define GEN_PASS_DEF_SUMBLOCKS
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

/// Whether a gradient is what a collective gives, in another type or shape, or
/// a sum of that.
static bool isReduced(Value gradient) {
  Operation *op = gradient.getDefiningOp();
  if (isa_and_present<dist::CollectiveOpInterface>(op))
    return true;
  return op && (isa<nn::CastOp, nn::AddOp>(op) || nn::aliasesOperands(op)) &&
         llvm::any_of(op->getOperands(), isReduced);
}

namespace {

struct SumBlocksPass : fsdp::impl::SumBlocksBase<SumBlocksPass> {
  void runOnOperation() override {
    countUses();
    // By block; what lies in none is a group by itself.
    llvm::MapVector<std::pair<StringRef, Operation *>,
                    SmallVector<nn::AccumulateOp>>
        groups;
    for (auto sum : getOperation().getOps<nn::AccumulateOp>())
      if (canMove(sum)) {
        StringAttr module = nn::moduleOf(sum);
        StringRef block = module ? nn::blockOf(module) : StringRef();
        groups[{block, block.empty() ? sum.getOperation() : nullptr}].push_back(
            sum);
      }
    for (auto &[key, group] : groups)
      moveToLast(group);
  }

private:
  void countUses() {
    uses.clear();
    getOperation().walk([&](nn::StateOpInterface op) {
      op.forEachStateEffect(
          [&](StringRef name, nn::StateEffect) { ++uses[name]; });
    });
  }

  bool canMove(nn::AccumulateOp sum) {
    Operation *gradient = sum.getValue().getDefiningOp();
    return gradient && gradient->getBlock() == sum->getBlock() &&
           sum.getValue().getType().getRank() > 0 &&
           uses.lookup(sum.getName()) == 1 && !isReduced(sum.getValue());
  }

  /// Puts the additions after the last gradient of them.
  static void moveToLast(ArrayRef<nn::AccumulateOp> group) {
    Operation *last = nullptr;
    for (nn::AccumulateOp sum : group) {
      Operation *gradient = sum.getValue().getDefiningOp();
      if (!last || last->isBeforeInBlock(gradient))
        last = gradient;
    }
    for (nn::AccumulateOp sum : group) {
      sum->moveAfter(last);
      last = sum;
    }
  }

  /// Name of a buffer or parameter -> ops of the program that name it.
  llvm::StringMap<unsigned> uses;
};

} // namespace
