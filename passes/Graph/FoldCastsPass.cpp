//===- FoldCastsPass.cpp - Casts that their readers need not have ---------===//
//
// See GraphPasses.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/ModulePath.h"
#include "dialects/NN/NN.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_FOLDCASTS
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

/// Whether the op widens what it reads by itself.
static bool widensByItself(Operation *op) {
  return isa<nn::AbsMaxOp, nn::SumSquaresOp, nn::AdamWOp, nn::AccumulateOp>(op);
}

static bool canFold(nn::CastOp cast) {
  return cast.getInput().getType().getElementType().isBF16() &&
         cast.getType().getElementType().isF32() && !cast->use_empty() &&
         llvm::all_of(cast->getUsers(), widensByItself);
}

/// Whether only lookups read what `cast` rounds, and no more rows than half of
/// the table has: a row that is looked up is read and written once more than
/// one of the table.
static bool roundsTable(nn::CastOp cast) {
  RankedTensorType table = cast.getInput().getType();
  if (!table.getElementType().isF32() ||
      !cast.getType().getElementType().isBF16())
    return false;
  int64_t rows = 0;
  for (Operation *user : cast->getUsers()) {
    auto lookup = dyn_cast<nn::EmbeddingOp>(user);
    if (!lookup)
      return false;
    rows += lookup.getIndices().getType().getNumElements();
  }
  return rows > 0 && rows <= table.getDimSize(0) / 2;
}

/// Looks rows up in f32 and rounds these.
static void roundRows(nn::CastOp table) {
  for (Operation *user : llvm::make_early_inc_range(table->getUsers())) {
    auto lookup = cast<nn::EmbeddingOp>(user);
    OpBuilder b(lookup->getContext());
    b.setInsertionPointAfter(lookup);
    auto rounded = nn::CastOp::create(b, lookup.getLoc(), lookup.getType(),
                                      lookup.getResult());
    nn::setModule(rounded, nn::moduleOf(lookup));
    lookup.getResult().replaceAllUsesExcept(rounded, rounded);
    lookup.getTableMutable().assign(table.getInput());
    lookup.getResult().setType(
        cast<RankedTensorType>(lookup.getType().clone(b.getF32Type())));
  }
}

namespace {

struct FoldCastsPass : fsdp::impl::FoldCastsBase<FoldCastsPass> {
  void runOnOperation() override {
    SmallVector<nn::CastOp> casts;
    getOperation().walk([&](nn::CastOp cast) {
      if (canFold(cast) || roundsTable(cast))
        casts.push_back(cast);
    });
    for (nn::CastOp cast : casts) {
      if (roundsTable(cast))
        roundRows(cast);
      else
        cast.getResult().replaceAllUsesWith(cast.getInput());
      cast.erase();
    }
  }
};

} // namespace
