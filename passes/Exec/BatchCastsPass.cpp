//===- BatchCastsPass.cpp - Casts that follow each other are one ----------===//
#include "dialects/Exec/Exec.h"
#include "dialects/NN/ModulePath.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_BATCHCASTS
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

/// True if `kernel` stores every element of its f32 input in its bf16 output
/// and does nothing else.
static bool narrows(exec::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  if (body.getNumArguments() != 2 || !llvm::hasSingleElement(body))
    return false;
  auto typeOf = [&](unsigned i) {
    return cast<MemRefType>(body.getArgument(i).getType());
  };
  auto map = dyn_cast<exec::MapOp>(body.front());
  if (!map || !typeOf(0).getElementType().isF32() ||
      !typeOf(1).getElementType().isBF16() ||
      typeOf(0).getShape() != typeOf(1).getShape() ||
      llvm::range_size(map.getBody().front()) != 2)
    return false;
  auto load = dyn_cast<exec::LoadOp>(map.getBody().front().front());
  auto store = dyn_cast<exec::StoreOp>(map.getBody().front().back());
  return load && store && !load.getColumn() &&
         load.getSource() == body.getArgument(0) &&
         store.getValue() == load.getValue() &&
         llvm::all_of(kernel.getAccess(), [](Attribute access) {
           return cast<exec::AccessAttr>(access).getValue() ==
                  exec::Access::Element;
         });
}

/// One operation in place of `casts`, where the last of them is: by then all
/// their buffers exist. No bf16 buffer is an f32 one, so none reads what
/// another writes.
static void merge(ArrayRef<exec::LaunchOp> casts) {
  if (casts.size() < 2)
    return;
  SmallVector<Operation *> ops(casts.begin(), casts.end());
  exec::LaunchOp first = casts.front();
  SmallVector<Value> inputs, outputs;
  for (exec::LaunchOp cast : casts) {
    llvm::append_range(inputs, cast.getInputs());
    llvm::append_range(outputs, cast.getOutputs());
  }
  OpBuilder b(ops.back());
  auto narrow = exec::NarrowOp::create(b, first.getLoc(), first.getStreamAttr(),
                                       inputs, outputs,
                                       /*workspaces=*/ValueRange());
  nn::setModule(narrow, nn::commonModule(ops));
  if (llvm::any_of(
          ops, [](Operation *op) { return op->hasAttr(exec::kProducesAttr); }))
    exec::setProduced(narrow, llvm::map_to_vector(ops, [](Operation *op) {
                        Attribute produced = exec::producedBy(op);
                        // One name, or a list of one output's.
                        if (auto list = dyn_cast<ArrayAttr>(produced))
                          produced = list[0];
                        return cast<StringAttr>(produced);
                      }));
  for (Operation *op : ops)
    op->erase();
}

namespace {

struct BatchCastsPass : fsdp::impl::BatchCastsBase<BatchCastsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(requireUnplanned(module)))
      return signalPassFailure();
    DenseSet<StringAttr> casts;
    for (auto kernel : module.getOps<exec::KernelOp>())
      if (narrows(kernel))
        casts.insert(kernel.getSymNameAttr());
    for (auto program : module.getOps<exec::ProgramOp>())
      batch(program.getBody().front(), casts);
    eraseUnused(casts);
  }

private:
  /// Buffers that share bytes because one ends before another begins would
  /// be in use together.
  static LogicalResult requireUnplanned(ModuleOp module) {
    auto refuse = [](Operation *op, const char *what) {
      op->emitOpError("has its ")
          << what << " already; exec-batch-casts comes before exec-plan-memory";
      return WalkResult::interrupt();
    };
    WalkResult result = module.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto program = dyn_cast<exec::ProgramOp>(op);
          program && program.getArena())
        return refuse(op, "arena");
      if (auto alloc = dyn_cast<exec::AllocOp>(op); alloc && alloc.getOffset())
        return refuse(op, "offset");
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  static void batch(Block &block, const DenseSet<StringAttr> &casts) {
    SmallVector<exec::LaunchOp> run;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      // Names for bytes do nothing.
      if (isa<exec::AllocOp, exec::GetOp, exec::ViewOp>(op))
        continue;
      auto launch = dyn_cast<exec::LaunchOp>(op);
      if (launch && launch.getStream() == exec::Stream::Compute &&
          casts.contains(launch.getKernelAttr().getAttr())) {
        run.push_back(launch);
        continue;
      }
      merge(run);
      run.clear();
    }
    merge(run);
  }

  /// Kernels that nobody launches any more.
  void eraseUnused(DenseSet<StringAttr> &casts) {
    getOperation().walk([&](exec::LaunchOp launch) {
      casts.erase(launch.getKernelAttr().getAttr());
    });
    for (auto kernel :
         llvm::make_early_inc_range(getOperation().getOps<exec::KernelOp>()))
      if (casts.contains(kernel.getSymNameAttr()))
        kernel.erase();
  }
};

} // namespace
