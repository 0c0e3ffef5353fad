//===- VerifyExecKernels.cpp - An output holds what its kernel wrote ------===//
#include "passes/Exec/VerifyExec.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::proof;

/// A launch counts as a write of all its outputs, and its kernel may read of
/// them what it has stored before.
LogicalResult proof::verifyKernel(exec::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  auto isOutput = [&](Value value) {
    return cast<BlockArgument>(value).getArgNumber() + kernel.getOutputs() >=
           body.getNumArguments();
  };
  auto accessOf = [&](Value value) {
    unsigned number = cast<BlockArgument>(value).getArgNumber();
    return cast<exec::AccessAttr>(kernel.getAccess()[number]).getValue();
  };
  llvm::SmallPtrSet<Value, 4> written;
  WalkResult result = kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto reduction = dyn_cast<exec::ReduceRowsOp>(op)) {
      written.insert(reduction.getTarget());
    } else if (auto store = dyn_cast<exec::StoreOp>(op)) {
      // Outside of exec.map a store reaches one column alone.
      if (isa<exec::MapOp>(op->getParentOp()) || kernel.getCols() == 1 ||
          accessOf(store.getTarget()) != exec::Access::Element)
        written.insert(store.getTarget());
    } else if (auto load = dyn_cast<exec::LoadOp>(op)) {
      if (isOutput(load.getSource()) && !written.contains(load.getSource())) {
        load.emitOpError("reads an output that the kernel has not written yet");
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  for (BlockArgument output :
       body.getArguments().take_back(kernel.getOutputs()))
    if (!written.contains(output))
      return kernel.emitOpError("does not write all of its output ")
             << output.getArgNumber();
  return success();
}
