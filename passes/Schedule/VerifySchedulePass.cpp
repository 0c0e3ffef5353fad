//===- VerifySchedulePass.cpp - Proves that a schedule cannot hang --------===//

#include "dialects/Fsdp/Fsdp.h"
#include "fsdp/Schedule/SemanticDigest.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_VERIFYSCHEDULE
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

/// The op itself, or the fsdp.async whose body it stands in.
Operation *holderOf(Operation *op) {
  return isa<dist::AsyncOp>(op->getParentOp()) ? op->getParentOp() : op;
}

/// Bytes that a start adds to those in flight: the collective's inputs and
/// outputs. What the body awaits is in flight already.
int64_t bytesStarted(dist::AsyncOp async) {
  int64_t bytes = nn::bytesOfOperandsAndResults(async.getInnerOp());
  for (auto await : async.getBody().getOps<dist::AwaitOp>())
    bytes -= nn::bytesOfOperandsAndResults(await);
  return bytes;
}

/// Bytes that are free when `async` has been awaited: its own and those of the
/// collectives that it awaits.
int64_t bytesFreed(dist::AsyncOp async) {
  int64_t bytes = bytesStarted(async);
  for (auto await : async.getBody().getOps<dist::AwaitOp>())
    bytes += bytesFreed(await.getFuture().getDefiningOp<dist::AsyncOp>());
  return bytes;
}

struct VerifySchedulePass : fsdp::impl::VerifyScheduleBase<VerifySchedulePass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto programs = llvm::to_vector(llvm::make_filter_range(
        module.getOps<func::FuncOp>(),
        [](func::FuncOp function) { return !function.isExternal(); }));
    for (func::FuncOp program : programs)
      if (failed(verifyProgram(program)))
        return signalPassFailure();
    if (failed(verifyDigests(module, programs)))
      signalPassFailure();
  }

  LogicalResult verifyProgram(func::FuncOp function) {
    if (!function.getBody().hasOneBlock())
      return function.emitError(
          "a program is one block: with branches, ranks could issue different "
          "collectives");
    if (failed(verifyStraightLine(function)))
      return failure();
    return verifyFutures(function.getBody().front());
  }

  /// What was computed before the schedule is computed now. A schedule that
  /// was written by hand need not say what that was.
  static LogicalResult verifyDigests(ModuleOp module,
                                     ArrayRef<func::FuncOp> programs) {
    auto hasNone = [](Operation *op) {
      return !op->hasAttr(dist::kSemanticDigestAttr);
    };
    if (hasNone(module) && llvm::all_of(programs, hasNone)) {
      if (!programs.empty())
        module.emitWarning("no program has '")
            << dist::kSemanticDigestAttr
            << "', which fsdp-plan writes: the schedule cannot hang, but its "
               "results were compared with nothing";
      return success();
    }
    if (failed(verifyDigestsOf(module, "the module does not declare", [&] {
          return schedule::declarationDigestsOf(module);
        })))
      return failure();
    for (func::FuncOp program : programs)
      if (failed(verifyDigestsOf(
              program,
              "program @" + program.getName().str() + " does not compute",
              [&] { return schedule::semanticDigestsOf(program); })))
        return failure();
    return success();
  }

  static LogicalResult verifyDigestsOf(
      Operation *op, const std::string &differs,
      llvm::function_ref<std::vector<schedule::SemanticDigest>()> compute) {
    auto kept = op->getAttrOfType<DenseI64ArrayAttr>(dist::kSemanticDigestAttr);
    if (!kept)
      return op->emitOpError("has no '")
             << dist::kSemanticDigestAttr
             << "', which other parts of the module have: keep all of them "
                "that fsdp-plan has written, or none";
    std::vector<schedule::SemanticDigest> found = compute();
    if (found.size() != static_cast<size_t>(kept.size()))
      return op->emitError(differs)
             << " what it did before scheduling: " << found.size()
             << " effects, not " << kept.size();
    for (auto [one, digest] : llvm::zip_equal(found, kept.asArrayRef()))
      if (one.digest != digest)
        return op->emitError(differs)
               << " what it did before scheduling: " << one.what << " differs";
    return success();
  }

  /// Every collective stands in the program's block or in an fsdp.async of it,
  /// so all ranks issue the same ones in the same order.
  LogicalResult verifyStraightLine(func::FuncOp function) {
    Block *top = &function.getBody().front();
    WalkResult result = function.walk([&](Operation *op) {
      if (isa<dist::RedistributeOp>(op)) {
        op->emitOpError("is still here after fsdp-expand");
        return WalkResult::interrupt();
      }
      if (!isa<dist::CollectiveOpInterface>(op))
        return WalkResult::advance();
      if (holderOf(op)->getBlock() == top)
        return WalkResult::advance();
      op->emitOpError(
          "is under control flow: ranks could differ in whether they "
          "issue it");
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  /// One wait per future, after its start; bytes in flight within the limit.
  LogicalResult verifyFutures(Block &block) {
    int64_t inFlight = 0;
    for (Operation &op : block) {
      if (auto async = dyn_cast<dist::AsyncOp>(op)) {
        if (failed(verifyOneWait(async)))
          return failure();
        int64_t bytes = bytesStarted(async);
        inFlight += bytes;
        // One collective may exceed the limit alone: it cannot be split here.
        if (maxInFlight > 0 && inFlight > maxInFlight && inFlight > bytes)
          return async.emitOpError("brings the bytes in flight to ")
                 << inFlight << ", over the limit of " << maxInFlight.getValue()
                 << "; await an earlier collective first";
      } else if (auto await = dyn_cast<dist::AwaitOp>(op)) {
        auto async = await.getFuture().getDefiningOp<dist::AsyncOp>();
        if (!async)
          return await.emitOpError("awaits a future that no fsdp.async of this "
                                   "program started");
        inFlight -= bytesFreed(async);
      }
    }
    return success();
  }

  LogicalResult verifyOneWait(dist::AsyncOp async) {
    auto users = async.getFuture().getUsers();
    if (users.empty())
      return async.emitOpError("is never awaited: its buffers would never be "
                               "free");
    Operation *first = nullptr;
    for (Operation *user : users) {
      if (!isa<dist::AwaitOp>(user))
        return user->emitOpError("uses a future; only fsdp.await may");
      if (holderOf(user)->getBlock() != async->getBlock())
        return user->emitOpError("awaits a future of another block");
      if (first) {
        InFlightDiagnostic error =
            async.emitOpError("is awaited more than once");
        error.attachNote(first->getLoc()) << "here";
        error.attachNote(user->getLoc()) << "and here";
        return error;
      }
      first = user;
    }
    return success();
  }
};

} // namespace
