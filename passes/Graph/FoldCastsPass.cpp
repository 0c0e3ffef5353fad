//===- FoldCastsPass.cpp - Casts that their readers need not have ---------===//
//
// See GraphPasses.td.
//
//===----------------------------------------------------------------------===//
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

namespace {

struct FoldCastsPass : fsdp::impl::FoldCastsBase<FoldCastsPass> {
  void runOnOperation() override {
    SmallVector<nn::CastOp> casts;
    getOperation().walk([&](nn::CastOp cast) {
      if (canFold(cast))
        casts.push_back(cast);
    });
    for (nn::CastOp cast : casts) {
      cast.getResult().replaceAllUsesWith(cast.getInput());
      cast.erase();
    }
  }
};

} // namespace
