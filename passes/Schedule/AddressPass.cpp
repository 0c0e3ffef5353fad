//===- AddressPass.cpp - Writes down what plans call ops ------------------===//

#include "fsdp/Schedule/Address.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_ADDRESS
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

struct AddressPass : fsdp::impl::AddressBase<AddressPass> {
  using Base::Base;

  void runOnOperation() override {
    func::FuncOp program = getOperation();
    if (program.isExternal())
      return;
    schedule::Addresses addresses(program.getBody().front());
    if (Operation *op = addresses.duplicate()) {
      op->emitOpError("has the address of another op of the program");
      return signalPassFailure();
    }
    for (Operation *op : addresses.all())
      op->setAttr(dist::kOriginAttr, addresses.of(op));
  }
};

} // namespace
