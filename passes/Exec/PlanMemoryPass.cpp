//===- PlanMemoryPass.cpp - One static arena: an offset per buffer --------===//
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

/// The outputs that one program alone gives, by program. They need not
/// outlive the next program, so others may have their bytes. Scalars stay
/// where they are: nothing would be gained.
using OwnOutputs = DenseMap<Operation *, SmallVector<exec::RangeOp>>;

static bool gives(exec::ProgramOp program, StringAttr name) {
  auto outputs = program->getAttrOfType<ArrayAttr>(exec::kOutputsAttr);
  return outputs && llvm::is_contained(outputs, name);
}

static bool uses(exec::ProgramOp program, StringAttr name) {
  return llvm::any_of(program.getOps<exec::GetOp>(), [&](exec::GetOp get) {
    return llvm::is_contained(get.getRanges(), name);
  });
}

static OwnOutputs findOwnOutputs(ModuleOp module, int64_t alignment) {
  OwnOutputs own;
  SmallVector<exec::ProgramOp> programs(module.getOps<exec::ProgramOp>());
  for (auto range : module.getOps<exec::RangeOp>()) {
    if (range.getRole() != exec::Role::Output || programs.size() < 2 ||
        exec::bytesOf(range.getMemRefType()) <= alignment)
      continue;
    StringAttr name = range.getSymNameAttr();
    SmallVector<exec::ProgramOp> users;
    llvm::copy_if(programs, std::back_inserter(users),
                  [&](exec::ProgramOp program) {
                    return gives(program, name) || uses(program, name);
                  });
    if (users.size() == 1 && gives(users.front(), name))
      own[users.front()].push_back(range);
  }
  return own;
}

/// Places `range` at byte `top`; returns where the next one may begin.
static int64_t place(exec::RangeOp range, int64_t top, int64_t alignment) {
  range.setOffset(top);
  return top + llvm::alignTo(exec::bytesOf(range.getMemRefType()), alignment);
}

/// Bytes of all ranges one after another. Fails where they exceed what an
/// arena may have, so that no sum of offsets can overflow.
static FailureOr<int64_t> rangeBytes(ModuleOp module, int64_t alignment) {
  int64_t top = 0;
  for (exec::Role role : arenaOrder())
    for (auto range : module.getOps<exec::RangeOp>()) {
      if (range.getRole() != role)
        continue;
      top += llvm::alignTo(exec::bytesOf(range.getMemRefType()), alignment);
      if (top > kMaxArenaBytes)
        return range.emitOpError("@")
               << range.getSymName() << " ends " << top
               << " bytes from the start of the arena, which may have 2^62";
    }
  return top;
}

namespace {

/// Ranges that programs read as one, so that no byte lies between them.
class Neighbours {
public:
  /// Fails where two exec.get ask for what no arena can have.
  LogicalResult find(ModuleOp module, int64_t alignment);

  bool follows(exec::RangeOp range) const { return previous.contains(range); }
  /// The range that follows this one, or null.
  exec::RangeOp next(exec::RangeOp range) const {
    return following.lookup(range);
  }

private:
  LogicalResult add(exec::GetOp get, exec::RangeOp first, exec::RangeOp second,
                    int64_t alignment);

  DenseMap<Operation *, exec::RangeOp> previous, following;
};

} // namespace

LogicalResult Neighbours::find(ModuleOp module, int64_t alignment) {
  SymbolTable symbols(module);
  WalkResult result = module.walk([&](exec::GetOp get) {
    SmallVector<StringAttr> names = get.getRanges();
    for (size_t i = 1; i < names.size(); ++i)
      if (failed(add(get, symbols.lookup<exec::RangeOp>(names[i - 1]),
                     symbols.lookup<exec::RangeOp>(names[i]), alignment)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult Neighbours::add(exec::GetOp get, exec::RangeOp first,
                              exec::RangeOp second, int64_t alignment) {
  auto refuse = [&]() -> InFlightDiagnostic {
    return get.emitOpError("reads @") << second.getSymName() << " after @"
                                      << first.getSymName() << ", but ";
  };
  if (int64_t bytes = exec::bytesOf(first.getMemRefType()); bytes % alignment)
    return refuse() << "that has " << bytes << " bytes, and ranges begin at "
                    << "multiples of " << alignment;
  if (exec::RangeOp other = next(first); other && other != second)
    return refuse() << "@" << other.getSymName() << " follows that already";
  if (exec::RangeOp other = previous.lookup(second); other && other != first)
    return refuse() << "it follows @" << other.getSymName() << " already";
  for (exec::RangeOp range = second; range; range = next(range))
    if (range == first)
      return refuse() << "that follows it already";
  following[first] = second;
  previous[second] = first;
  return success();
}

/// Gives every persistent range its place, by role, then in order of
/// appearance, neighbours together. Returns the bytes they take.
static int64_t placePersistent(ModuleOp module, const OwnOutputs &own,
                               const Neighbours &neighbours,
                               int64_t alignment) {
  DenseSet<Operation *> later;
  for (const auto &[program, outputs] : own)
    later.insert(outputs.begin(), outputs.end());
  int64_t top = 0;
  for (exec::Role role : arenaOrder())
    for (auto first : module.getOps<exec::RangeOp>())
      if (first.getRole() == role && !later.contains(first) &&
          !neighbours.follows(first))
        for (auto range = first; range; range = neighbours.next(range))
          top = place(range, top, alignment);
  return top;
}

/// A buffer that no work uses holds nothing.
static void eraseUnused(exec::ProgramOp program) {
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(program.getBody().front())))
    if (isa<exec::AllocOp, exec::GetOp, exec::ViewOp>(op) && op.use_empty())
      op.erase();
}

/// What a user can do about memory of this kind, with the setting that does.
static StringRef adviceFor(StringRef kind) {
  if (kind == stringifyBufferKind(BufferKind::Gathered))
    return "reshard after forward (parallelism.fsdp_reshard_after_forward), "
           "prefetch less far (prefetch in a plan) or "
           "gather smaller buckets (compile.bucket)";
  if (kind == stringifyBufferKind(BufferKind::Gradient))
    return "await reductions earlier (defer in a plan) or reduce "
           "smaller buckets (compile.bucket)";
  if (kind == stringifyBufferKind(BufferKind::Workspace))
    return "on CPUs, use fewer compute threads per rank (compile.threads)";
  if (kind == stringifyBufferKind(BufferKind::Activation))
    return "compute values again in the backward pass (compile.recompute), "
           "project to logits in chunks (compile.loss_chunks), take a smaller "
           "batch (training.local_batch_size) or shorter "
           "sequences (training.seq_len)";
  return "take a smaller batch (training.local_batch_size) or shorter "
         "sequences (training.seq_len)";
}

/// "1.5 GiB (1610612736 bytes)".
static std::string exactBytes(int64_t bytes) {
  return formatBytes(bytes) + " (" + std::to_string(bytes) + " bytes)";
}

static LogicalResult failBudget(exec::ProgramOp program,
                                const ProgramMemory &memory,
                                int64_t persistentBytes, int64_t budget) {
  InFlightDiagnostic diagnostic =
      program.emitError("program @")
      << program.getSymName() << " needs " << exactBytes(memory.peak)
      << ", but the memory budget is " << exactBytes(budget);
  constexpr size_t kMostNotes = 8;
  for (const LiveBuffer &buffer :
       ArrayRef(memory.liveBuffers).take_front(kMostNotes))
    diagnostic.attachNote()
        << formatBytes(buffer.bytes) << " at the peak: " << buffer.text()
        << " (" << buffer.kind << ")";
  if (persistentBytes > budget)
    diagnostic.attachNote()
        << "parameters, optimizer state and other persistent ranges alone "
           "take "
        << exactBytes(persistentBytes)
        << ": shard them over more ranks (compile.mode fully_shard)";
  else if (!memory.kinds.empty())
    diagnostic.attachNote()
        << "most of the peak, at " << memory.at << ", is "
        << memory.kinds[0].first << ", " << formatBytes(memory.kinds[0].second)
        << ": " << adviceFor(memory.kinds[0].first);
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

struct PlanMemoryPass : fsdp::impl::PlanMemoryBase<PlanMemoryPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    alignment = alignmentOf(module);
    FailureOr<int64_t> bytes = rangeBytes(module, alignment);
    if (failed(bytes))
      return signalPassFailure();
    std::vector<Planned> programs;
    for (auto program : module.getOps<exec::ProgramOp>()) {
      eraseUnused(program);
      programs.push_back({program, computeLifetimes(program), {}});
      PackingProblem problem = programs.back().lifetimes.problem();
      // The ranges are a buffer that lives as long as any.
      problem.liveRanges.push_back({0, 1, *bytes});
      if (auto error = checkPacking(problem)) {
        program.emitOpError("does not fit an arena: ") << *error;
        return signalPassFailure();
      }
    }
    OwnOutputs own = findOwnOutputs(module, alignment);
    for (Planned &planned : programs)
      planned.outputs = own.lookup(planned.program);
    Neighbours neighbours;
    if (failed(neighbours.find(module, alignment)))
      return signalPassFailure();
    persistentBytes = placePersistent(module, own, neighbours, alignment);
    top = arenaBytes = persistentBytes;
    if (failed(planAll(programs)))
      return signalPassFailure();
    Builder builder(module);
    module->setAttr(exec::kPersistentBytesAttr,
                    builder.getI64IntegerAttr(persistentBytes));
    module->setAttr(exec::kArenaBytesAttr,
                    builder.getI64IntegerAttr(arenaBytes));
    if (report)
      printMemoryReport(memoryReport(module), llvm::errs());
  }

private:
  struct Planned {
    exec::ProgramOp program;
    Lifetimes lifetimes;
    SmallVector<exec::RangeOp> outputs;
  };

  /// The program that needs most goes first: the others share its bytes and
  /// only need to fit in. Outputs of its own lie below its buffers, those of
  /// the programs that follow above, where its buffers may lie too.
  LogicalResult planAll(ArrayRef<Planned> programs) {
    SmallVector<std::pair<int64_t, const Planned *>> order;
    for (const Planned &planned : programs)
      order.push_back({-maxLive(planned.lifetimes.problem()).bytes, &planned});
    llvm::stable_sort(order, llvm::less_first());
    for (auto [bytes, planned] : order)
      if (failed(plan(*planned)))
        return failure();
    return success();
  }

  LogicalResult plan(const Planned &planned) {
    exec::ProgramOp program = planned.program;
    const Lifetimes &lifetimes = planned.lifetimes;
    for (exec::RangeOp output : planned.outputs)
      top = place(output, top, alignment);
    PackingProblem problem = lifetimes.problem();
    PackingPlan plan =
        solvePacking(problem, std::max<int64_t>(arenaBytes - top, 0));
    if (auto error = verifyPacking(problem, plan))
      return program.emitOpError("has a wrong memory plan: ") << *error;
    for (auto [buffer, offset] :
         llvm::zip_equal(lifetimes.buffers, plan.offsets))
      exec::AllocOp(buffer.alloc).setOffset(top + offset);
    arenaBytes = std::max(arenaBytes, top + plan.peak);
    ProgramMemory memory = measureProgram(program, lifetimes, planned.outputs,
                                          placedOutputs, top, plan.peak);
    llvm::append_range(placedOutputs, planned.outputs);
    if (memoryBudget > 0 && memory.peak > memoryBudget)
      return failBudget(program, memory, persistentBytes, memoryBudget);
    program.setArena(memory.peak);
    program->setAttr(exec::kMemoryAttr, memoryAttr(&getContext(), memory));
    remarkPeak(program, memory, plan.solver);
    return success();
  }

  int64_t alignment = 0, persistentBytes = 0;
  /// Where the outputs end that have a place, and the largest peak so far.
  int64_t top = 0, arenaBytes = 0;
  /// Those of programs that are planned already.
  SmallVector<exec::RangeOp> placedOutputs;
};

} // namespace
