//===- PlanMemory.cpp - One static arena: an offset per interval ----------===//
#include "dialects/Exec/Exec.h"
#include "fsdp/Memory/Report.h"
#include "mlir/IR/Remarks.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

/// Gives every persistent range its place, by role, then in order of
/// appearance. Returns the bytes they take.
static int64_t placeRanges(ModuleOp module) {
  int64_t top = 0;
  for (exec::Role role : arenaOrder())
    for (auto range : module.getOps<exec::RangeOp>()) {
      if (range.getRole() != role)
        continue;
      range.setOffset(top);
      top +=
          llvm::alignTo(exec::bytesOf(range.getMemRefType()), exec::kAlignment);
    }
  return top;
}

/// An interval that no work uses holds nothing.
static void eraseUnused(exec::ProgramOp program) {
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(program.getBody().front())))
    if (isa<exec::AllocOp, exec::GetOp, exec::ViewOp>(op) && op.use_empty())
      op.erase();
}

/// What a user can do about memory of this kind.
static StringRef adviceFor(StringRef kind) {
  if (kind == stringifyBufferKind(BufferKind::Gathered))
    return "reshard after forward, prefetch less far, or gather smaller "
           "buckets";
  if (kind == stringifyBufferKind(BufferKind::Gradient))
    return "await reductions earlier or reduce smaller buckets";
  if (kind == stringifyBufferKind(BufferKind::Workspace))
    return "use fewer compute threads per rank";
  return "recompute activations in backward, or take a smaller batch or "
         "sequence";
}

static LogicalResult failBudget(exec::ProgramOp program,
                                const ProgramMemory &memory,
                                int64_t persistentBytes, int64_t budget) {
  InFlightDiagnostic diagnostic =
      program.emitOpError("needs ")
      << memory.peak << " bytes, but the memory budget is " << budget;
  for (const MemoryTenant &tenant : memory.tenants)
    diagnostic.attachNote()
        << tenant.bytes << " bytes at the peak: " << tenant.kind << " "
        << tenant.label;
  if (persistentBytes > budget)
    diagnostic.attachNote()
        << "parameters, optimizer state and other persistent ranges alone "
           "take "
        << persistentBytes << " bytes: shard them over more ranks";
  else if (!memory.kinds.empty())
    diagnostic.attachNote()
        << "most of the peak at " << memory.at << " is "
        << memory.kinds[0].first << " (" << memory.kinds[0].second
        << " bytes): " << adviceFor(memory.kinds[0].first);
  return diagnostic;
}

static void remarkPeak(exec::ProgramOp program, const ProgramMemory &memory,
                       StringRef solver) {
  remark::passed(program.getLoc(), remark::RemarkOpts::name("ArenaPlanned")
                                       .category("exec-plan-memory")
                                       .function(program.getSymName()))
      << remark::metric("peak", memory.peak)
      << remark::metric("lowerBound", memory.lowerBound)
      << remark::metric("solver", solver) << remark::metric("at", memory.at);
}

namespace {

class PlanMemoryPass : public fsdp::impl::PlanMemoryBase<PlanMemoryPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    persistentBytes = placeRanges(module);
    transientBytes = 0;
    std::vector<Planned> programs;
    for (auto program : module.getOps<exec::ProgramOp>()) {
      eraseUnused(program);
      programs.push_back({program, computeLifetimes(program)});
    }
    if (failed(planAll(programs)))
      return signalPassFailure();
    Builder builder(module);
    module->setAttr(exec::kPersistentBytesAttr,
                    builder.getI64IntegerAttr(persistentBytes));
    module->setAttr(
        exec::kArenaBytesAttr,
        builder.getI64IntegerAttr(persistentBytes + transientBytes));
    if (report)
      printMemoryReport(memoryReport(module), llvm::errs());
  }

private:
  struct Planned {
    exec::ProgramOp program;
    Lifetimes lifetimes;
  };

  /// The program that needs most goes first: the others share its bytes and
  /// only need to fit in.
  LogicalResult planAll(ArrayRef<Planned> programs) {
    SmallVector<std::pair<int64_t, const Planned *>> order;
    for (const Planned &planned : programs)
      order.push_back({-maxLive(planned.lifetimes.problem()).bytes, &planned});
    llvm::stable_sort(order, llvm::less_first());
    for (auto [bytes, planned] : order)
      if (failed(plan(planned->program, planned->lifetimes)))
        return failure();
    return success();
  }

  LogicalResult plan(exec::ProgramOp program, const Lifetimes &lifetimes) {
    PackingProblem problem = lifetimes.problem();
    PackingPlan plan = solvePacking(problem, transientBytes);
    if (auto error = verifyPacking(problem, plan))
      return program.emitOpError("memory plan is wrong: ") << *error;
    for (auto [buffer, offset] :
         llvm::zip_equal(lifetimes.buffers, plan.offsets))
      exec::AllocOp(buffer.alloc).setOffset(persistentBytes + offset);
    transientBytes = std::max(transientBytes, plan.peak);
    ProgramMemory memory =
        measureProgram(program, lifetimes, persistentBytes, plan.peak);
    if (memoryBudget > 0 && memory.peak > memoryBudget)
      return failBudget(program, memory, persistentBytes, memoryBudget);
    program.setArena(memory.peak);
    program->setAttr(kMemoryAttr, memoryAttr(&getContext(), memory));
    remarkPeak(program, memory, plan.solver);
    return success();
  }

  int64_t persistentBytes = 0;
  /// The largest peak so far.
  int64_t transientBytes = 0;
};

} // namespace
