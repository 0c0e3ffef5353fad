//===- RematPass.cpp - Recomputes values in the backward pass -------------===//

#include "dialects/NN/ModulePath.h"
#include "mlir/IR/IRMapping.h"
#include "passes/Passes.h"
#include "passes/Schedule/PlannedCollectives.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fsdp-remat"

namespace fsdp {
#define GEN_PASS_DEF_REMAT
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

/// Creates the clones of one program.
class Recomputer {
public:
  explicit Recomputer(PlannedProgram &program)
      : program(program), number(numberOps(program.block)),
        builder(program.block.getParentOp()->getContext()) {}

  void run(nn::SeedOp seed) {
    seedNumber = number.lookup(seed);
    findRepeated(seed);
    findPlaces();
    for (Operation *op : repeated)
      if (place.contains(op))
        clone(op);
  }

private:
  bool isForward(Operation *op) const { return number.lookup(op) < seedNumber; }

  /// What is decided to be recomputed, and the moves of elements that carry it
  /// on.
  void findRepeated(nn::SeedOp seed) {
    for (Operation &op : program.block) {
      if (&op == seed)
        return;
      bool carries = nn::movesElements(&op) &&
                     llvm::any_of(op.getOperands(), [&](Value operand) {
                       return repeated.contains(operand.getDefiningOp());
                     });
      if (carries || dist::decisionOf(&op).recompute)
        repeated.insert(&op);
    }
  }

  /// Where the clone of each must stand: before the first op of the backward
  /// pass, and before the clones, that use it. Users come first.
  void findPlaces() {
    for (Operation *op : llvm::reverse(repeated)) {
      Operation *first = nullptr;
      for (Operation *user : op->getUsers()) {
        Operation *need = isForward(user) ? place.lookup(user)
                          : schedule::computesBackward(user) ? user
                                                             : nullptr;
        if (need && (!first || number.lookup(need) < number.lookup(first)))
          first = need;
      }
      if (first)
        place[op] = first;
    }
  }

  /// Clones `op` and what is cloned with it, casts and reshapes, for its uses
  /// in the backward pass; of a gather with a regathered shard a gather of
  /// that. What feeds those goes through nn.recompute_from, so that CSE never
  /// merges the clone with the original.
  void clone(Operation *op) {
    builder.setInsertionPoint(place.lookup(op));
    nn::ModuleScope scope(builder, nn::moduleOf(op));
    IRMapping mapping;
    dist::ShardOfOp shard = dist::regatheredShardOf(op);
    if (shard)
      mapping.map(op->getOperand(0), cloneOperand(shard.getResult(), mapping));
    else
      for (Value operand : op->getOperands())
        mapping.map(operand, cloneOperand(operand, mapping));
    Operation *copy = builder.clone(*op, mapping);
    if (shard)
      cast<dist::AllGatherOp>(copy).setAxesAttr(shard.getAxesAttr());
    rename(op, copy);
    LDBG() << "computes again before op " << number.lookup(place.lookup(op))
           << ": " << *op;
    for (auto [value, again] :
         llvm::zip(op->getResults(), copy->getResults())) {
      clones[value] = again;
      value.replaceUsesWithIf(again, [&](OpOperand &use) {
        Operation *user = use.getOwner();
        return number.contains(user) && !isForward(user) &&
               schedule::computesBackward(user);
      });
    }
  }

  Value cloneOperand(Value value, IRMapping &mapping) {
    if (Value again = clones.lookup(value))
      return again;
    Operation *producer = value.getDefiningOp();
    if (!producer || !schedule::isClonedWithUser(producer))
      return nn::RecomputeFromOp::create(builder, value.getLoc(),
                                         ValueRange{value})
          .getResult(0);
    Value source = producer->getOperand(0);
    mapping.map(source, cloneOperand(source, mapping));
    return builder.clone(*producer, mapping)->getResult(0);
  }

  /// The clone is what it is a clone of, "again", with the decision made about
  /// that.
  void rename(Operation *op, Operation *copy) {
    if (dist::OriginAttr origin = program.addresses.of(op))
      copy->setAttr(dist::kOriginAttr, origin.again());
    auto decision = op->getAttrOfType<dist::DecisionAttr>(dist::kDecisionAttr);
    if (decision && decision.getAgain())
      copy->setAttr(dist::kDecisionAttr, decision.getAgain());
    else
      copy->removeAttr(dist::kDecisionAttr);
    if (auto collective = dyn_cast<dist::CollectiveOpInterface>(copy))
      if (dist::OriginAttr serves = collective.getServesAttr())
        collective.setServesAttr(serves.again());
  }

  PlannedProgram &program;
  llvm::DenseMap<Operation *, unsigned> number;
  OpBuilder builder;
  unsigned seedNumber = 0;
  llvm::SetVector<Operation *> repeated; // in program order
  llvm::DenseMap<Operation *, Operation *> place;
  llvm::DenseMap<Value, Value> clones;
};

/// A plan decides to recompute nothing that no value of the backward pass
/// depends on; a decision that was written by hand may. What only kept values
/// use is not cloned either, without a warning: plans by rule decide that
/// often. Nor is it vain where an earlier run of the pass has applied it.
void warnOfVainDecisions(const PlannedProgram &program) {
  llvm::DenseSet<Operation *> needed = schedule::neededBackward(program.block);
  auto isApplied = [&](Operation &op) {
    dist::OriginAttr origin = program.addresses.of(&op);
    return origin && program.addresses.find(origin.again());
  };
  for (Operation &op : program.block)
    if (dist::decisionOf(&op).recompute && !needed.contains(&op) &&
        !isApplied(op))
      op.emitWarning("'")
          << op.getName() << "' op has 'recompute' in its '"
          << dist::kDecisionAttr
          << "', but is not computed again: nothing in the backward pass needs "
             "its result; remove 'recompute', or set it on an op of the "
             "forward pass that the backward pass uses";
}

struct RematPass : fsdp::impl::RematBase<RematPass> {
  using Base::Base;

  void runOnOperation() override {
    auto apply = [](PlannedProgram &program) -> LogicalResult {
      warnOfVainDecisions(program);
      auto seeds = program.block.getOps<nn::SeedOp>();
      for (auto shard : program.block.getOps<dist::ShardOfOp>())
        if (shard.getRegathered() && !seeds.empty() &&
            (*seeds.begin())->isBeforeInBlock(shard))
          return shard.emitOpError("is 'regathered' after nn.seed; put it into "
                                   "the forward pass");
      if (!seeds.empty())
        Recomputer(program).run(*seeds.begin());
      for (auto shard : program.block.getOps<dist::ShardOfOp>())
        shard.setRegathered(false);
      return success();
    };
    if (failed(applyPlan(getOperation(), apply)))
      signalPassFailure();
  }
};

} // namespace
