//===- VerifyPlacementsPass.cpp - Ops are computed where rules allow ------===//
#include "dialects/Fsdp/PlacementRules.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_VERIFYPLACEMENTS
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

struct VerifyPlacementsPass
    : fsdp::impl::VerifyPlacementsBase<VerifyPlacementsPass> {
  using Base::Base;

  void runOnOperation() override {
    auto verify = [](FunctionOpInterface program, dist::MeshOp mesh,
                     SymbolTableCollection &symbols) {
      return success(succeeded(dist::placementsOf(program, mesh, symbols)));
    };
    if (failed(dist::forEachLogicalProgram(getOperation(), verify)))
      signalPassFailure();
  }
};

} // namespace
