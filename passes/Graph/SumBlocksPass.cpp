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
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"

namespace fsdp {
#define GEN_PASS_DEF_SUMBLOCKS
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

/// Whether a gradient is what a collective gives, in another type, shape or
/// order, a part, or a sum of that.
static bool isReduced(Value gradient) {
  SmallVector<Value> pending = {gradient};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (isa<dist::CollectiveOpInterface>(op))
      return true;
    if (isa<nn::CastOp, nn::AddOp, dist::ShardOfOp>(op) ||
        nn::movesElements(op) || nn::aliasesOperands(op))
      llvm::append_range(pending, op->getOperands());
  }
  return false;
}

namespace {

struct SumBlocksPass : fsdp::impl::SumBlocksBase<SumBlocksPass> {
  using Base::Base;

  void runOnOperation() override {
    if (!getOperation().getBody().hasOneBlock())
      return;
    countUses();
    if (inProducts)
      for (auto sum :
           llvm::to_vector(getOperation().getOps<nn::AccumulateOp>()))
        if (canMove(sum))
          addInProduct(sum);
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

  /// Lets the product that is the gradient add to the sum itself.
  static void addInProduct(nn::AccumulateOp sum) {
    auto product = sum.getValue().getDefiningOp<nn::LinearWeightGradOp>();
    auto buffer = SymbolTable::lookupNearestSymbolFrom<nn::BufferOp>(
        sum, sum.getNameAttr());
    if (!product || product.getSum() || !product->hasOneUse() ||
        !buffer.getTensorType().getElementType().isF32())
      return;
    OpBuilder builder(product);
    auto added = nn::AccumulateProductOp::create(
        builder, product.getLoc(), sum.getNameAttr(), product.getCotangent(),
        product.getInput());
    nn::setModule(added, nn::moduleOf(product));
    sum.erase();
    product.erase();
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
