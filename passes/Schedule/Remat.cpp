//===- Remat.cpp - Recomputes values in the backward pass -----------------===//

#include "dialects/NN/ModulePath.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/Schedule/Units.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fsdp-remat"

namespace fsdp {
#define GEN_PASS_DEF_REMAT
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

/// Clones a gather and the chain that feeds it (casts of the shard) before
/// `target`. The chain's source goes through nn.recompute_from, so that CSE
/// never merges the clone with the original.
class GatherCloner {
public:
  GatherCloner(OpBuilder &builder, Operation *target) : builder(builder) {
    builder.setInsertionPoint(target);
  }

  Operation *clone(dist::AllGatherOp gather) {
    nn::ModuleScope scope(builder, nn::moduleOf(gather));
    IRMapping mapping;
    for (Value operand : gather->getOperands())
      mapping.map(operand, cloneOperand(operand, mapping));
    Operation *copy = builder.clone(*gather, mapping);
    if (auto serves = gather.getServesAttr())
      copy->setAttr("serves", builder.getStringAttr(nn::inPass(
                                  true, nn::withoutPass(serves.getValue()))));
    return copy;
  }

private:
  Value cloneOperand(Value value, IRMapping &mapping) {
    Operation *producer = value.getDefiningOp();
    if (!isa_and_nonnull<nn::CastOp, nn::ReshapeOp>(producer))
      return nn::RecomputeFromOp::create(builder, value.getLoc(),
                                         ValueRange{value})
          .getResult(0);
    Value source = producer->getOperand(0);
    mapping.map(source, cloneOperand(source, mapping));
    return builder.clone(*producer, mapping)->getResult(0);
  }

  OpBuilder &builder;
};

struct RematPass : fsdp::impl::RematBase<RematPass> {
  using Base::Base;

  void runOnOperation() override {
    auto apply = [&](Block &block, const Units &units) {
      return reshardAfterForward(block, units);
    };
    if (failed(applyPlan(getOperation(), apply)))
      signalPassFailure();
  }

  LogicalResult reshardAfterForward(Block &block, const Units &units) {
    auto seeds = block.getOps<nn::SeedOp>();
    if (seeds.empty())
      return success();
    FailureOr<SmallVector<UnitCollective>> collectives = units.collect(block);
    if (failed(collectives))
      return failure();
    llvm::DenseMap<Operation *, unsigned> number = numberOps(block);
    unsigned seed = number[*seeds.begin()];
    OpBuilder builder(&getContext());
    for (const UnitCollective &collective : *collectives) {
      auto gather = dyn_cast<dist::AllGatherOp>(collective.op);
      if (!gather || collective.backward ||
          !units[collective.unit].reshardAfterForward)
        continue;
      regather(gather, seed, number, builder);
    }
    return success();
  }

  /// Gives the uses of `gather` behind the seed a gather of their own.
  void regather(dist::AllGatherOp gather, unsigned seed,
                llvm::DenseMap<Operation *, unsigned> &number,
                OpBuilder &builder) {
    auto inBackward = [&](OpOperand &use) {
      return number.lookup(use.getOwner()) > seed;
    };
    Operation *first = nullptr;
    for (OpOperand &use : gather->getUses())
      if (inBackward(use) &&
          (!first || number.lookup(use.getOwner()) < number.lookup(first)))
        first = use.getOwner();
    if (!first)
      return;
    LDBG() << "gathers again before op " << number.lookup(first) << ": "
           << gather;
    Operation *copy = GatherCloner(builder, first).clone(gather);
    number[copy] = number.lookup(first);
    gather->replaceUsesWithIf(copy->getResults(), inBackward);
  }
};

} // namespace
