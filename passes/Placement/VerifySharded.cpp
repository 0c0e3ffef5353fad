//===- VerifySharded.cpp - No sharded parameter is used ungathered --------===//
#include "dialects/Fsdp/Fsdp.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"
#include "llvm/ADT/DenseMap.h"

namespace fsdp {
#define GEN_PASS_DEF_VERIFYSHARDED
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

struct VerifyShardedPass : fsdp::impl::VerifyShardedBase<VerifyShardedPass> {
  using Base::Base;

  void runOnOperation() override {
    auto meshes = getOperation().getOps<dist::MeshOp>();
    if (meshes.empty())
      return;
    mesh = *meshes.begin();
    parameters.clear();
    for (auto parameter : getOperation().getOps<nn::ParameterOp>()) {
      if (!parameter->hasAttr(dist::kPlacementAttr)) {
        parameter.emitError("parameter @")
            << parameter.getSymName()
            << " has no fsdp.placement although there is a mesh";
        return signalPassFailure();
      }
      parameters[parameter.getSymNameAttr()] = parameter;
    }
    for (auto program : getOperation().getOps<func::FuncOp>())
      if (failed(verifyProgram(program)))
        return signalPassFailure();
  }

  LogicalResult verifyProgram(func::FuncOp program) {
    // Where each parameter is redistributed in this program.
    DenseMap<StringAttr, Operation *> redistributes;
    WalkResult result = program.walk([&](nn::ReadOp read) {
      nn::ParameterOp parameter =
          parameters.lookup(read.getNameAttr().getAttr());
      if (parameter && failed(verifyRead(read, parameter, redistributes)))
        return WalkResult::interrupt();
      return WalkResult::advance();
    });
    return success(!result.wasInterrupted());
  }

  LogicalResult verifyRead(nn::ReadOp read, nn::ParameterOp parameter,
                           DenseMap<StringAttr, Operation *> &redistributes) {
    Attribute placement = parameter->getAttr(dist::kPlacementAttr);
    RankedTensorType local =
        dist::localType(parameter.getTensorType(), placement, mesh);
    if (local && read.getValue().getType() != local)
      return read.emitOpError("reads ")
             << read.getValue().getType() << " of a parameter whose local type "
             << "under " << placement << " is " << local;
    for (Operation *user : read->getUsers()) {
      if (!isa<dist::RedistributeOp>(user))
        continue;
      Operation *&first = redistributes[read.getNameAttr().getAttr()];
      if (first) {
        InFlightDiagnostic diagnostic =
            user->emitOpError("is a second redistribute of ")
            << read.getNameAttr() << ": its gradient would be reduced twice";
        diagnostic.attachNote(first->getLoc()) << "the first is here";
        return diagnostic;
      }
      first = user;
    }
    if (dist::partsOf(placement, mesh) == 1)
      return success();
    return verifyGathered(read, read.getValue());
  }

  /// Every use of the shard `value` of `read` gathers it, possibly behind ops
  /// that act on shards as on full tensors.
  LogicalResult verifyGathered(nn::ReadOp read, Value value) {
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (isa<dist::RedistributeOp, dist::AllGatherOp>(user))
        continue;
      if (isa<nn::CastOp, nn::RecomputeFromOp>(user)) {
        if (failed(
                verifyGathered(read, user->getResult(use.getOperandNumber()))))
          return failure();
        continue;
      }
      InFlightDiagnostic diagnostic = user->emitOpError("uses a shard of ")
                                      << read.getNameAttr()
                                      << " that was never gathered";
      diagnostic.attachNote(read.getLoc()) << "the shard is read here";
      return diagnostic;
    }
    return success();
  }

  dist::MeshOp mesh;
  DenseMap<StringAttr, nn::ParameterOp> parameters;
};

} // namespace
