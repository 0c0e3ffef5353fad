//===- VerifyExecPass.cpp - Proof that a program keeps its bytes ----------===//
//
// Independent of exec-plan-memory and exec-synchronize: those walk the program
// in time and remember bytes; this one replays the events first, then walks
// the arena.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Target/TargetInfo.h"
#include "passes/Exec/VerifyExec.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_VERIFYEXEC
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;
using namespace fsdp::proof;

//===----------------------------------------------------------------------===//
// Places: everything is inside the arena
//===----------------------------------------------------------------------===//

/// The value of a module attribute that exec-plan-memory sets.
static FailureOr<int64_t> moduleBytes(ModuleOp module, StringRef name) {
  auto attr = module->getAttrOfType<IntegerAttr>(name);
  if (!attr)
    return module.emitOpError("has no ")
           << name << "; run exec-plan-memory first";
  return attr.getInt();
}

/// Ranges are apart and inside the persistent part; outputs may lie after it.
static LogicalResult verifyRanges(ModuleOp module, int64_t persistentBytes,
                                  int64_t arenaBytes) {
  SmallVector<std::pair<int64_t, exec::RangeOp>> ranges;
  for (auto range : module.getOps<exec::RangeOp>()) {
    if (!range.getOffset())
      return range.emitOpError("has no offset; run exec-plan-memory first");
    ranges.push_back({*range.getOffset(), range});
  }
  llvm::stable_sort(ranges, llvm::less_first());
  int64_t top = 0;
  exec::RangeOp below;
  for (auto [offset, range] : ranges) {
    if (offset < top) {
      InFlightDiagnostic diagnostic =
          range.emitOpError("overlaps another range");
      diagnostic.attachNote(below.getLoc()) << "this one";
      return diagnostic;
    }
    top = offset + exec::bytesOf(range.getMemRefType());
    below = range;
    if (range.getRole() == exec::Role::Output && top > arenaBytes)
      return range.emitOpError("ends at byte ")
             << top << ", but the arena has " << arenaBytes;
    if (range.getRole() != exec::Role::Output && top > persistentBytes)
      return range.emitOpError("ends at byte ")
             << top << ", but the persistent part has " << persistentBytes;
  }
  return success();
}

/// Outputs after the persistent part share bytes with buffers of other
/// programs: the program must give what it uses of them, and its buffers
/// must not write there.
static LogicalResult verifyOutputs(exec::ProgramOp program,
                                   const std::vector<IssuedOp> &issued,
                                   int64_t persistentBytes) {
  auto given = program->getAttrOfType<ArrayAttr>(exec::kOutputsAttr);
  llvm::MapVector<Operation *, ByteSpan> used;
  for (const IssuedOp &issue : issued)
    for (ArrayRef<IssuedAccess> accesses :
         {ArrayRef<IssuedAccess>(issue.reads),
          ArrayRef<IssuedAccess>(issue.writes)})
      for (const IssuedAccess &access : accesses) {
        exec::RangeOp range = access.range;
        if (!range || access.bytes.end <= persistentBytes)
          continue;
        if (!given || !llvm::is_contained(given, range.getSymNameAttr()))
          return issue.op->emitOpError("uses the output @")
                 << range.getSymName()
                 << " of another program, whose bytes this program may have "
                    "written";
        int64_t begin = *range.getOffset();
        used[range] = {begin, begin + exec::bytesOf(range.getMemRefType())};
      }
  for (const IssuedOp &issue : issued)
    for (const IssuedAccess &write : issue.writes)
      for (const auto &[range, span] : used)
        if (!write.range && write.bytes.overlaps(span))
          return issue.op->emitOpError("writes a buffer over the output @")
                 << cast<exec::RangeOp>(range).getSymName()
                 << ", which the program returns";
  return success();
}

/// Buffers are aligned and inside the transient part.
static LogicalResult verifyBuffers(Operation *owner, int64_t persistentBytes,
                                   int64_t arenaBytes) {
  WalkResult result = owner->walk([&](exec::AllocOp alloc) {
    if (!alloc.getOffset()) {
      alloc.emitOpError("has no offset; run exec-plan-memory first");
      return WalkResult::interrupt();
    }
    int64_t begin = *alloc.getOffset();
    int64_t end =
        begin + exec::bytesOf(cast<MemRefType>(alloc.getResult().getType()));
    if (begin < persistentBytes || end > arenaBytes) {
      alloc.emitOpError("has bytes [")
          << begin << ", " << end << "), but buffers live in ["
          << persistentBytes << ", " << arenaBytes << ")";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Workspaces: what the libraries of the target need
//===----------------------------------------------------------------------===//

static LogicalResult verifyWorkspaces(exec::RuntimeOpInterface op,
                                      const TargetInfo &target,
                                      StringRef name) {
  auto collective = dyn_cast<exec::CollectiveOp>(*op);
  if (collective && collective.getFast() && target.facts.whyNoFastReductions)
    return op->emitOpError("is fast, but target ")
           << name << " has no library that adds over ranks";
  Operation::operand_range given = op.getWorkspaces();
  for (auto [index, needed] :
       llvm::enumerate(op.getWorkspaceBytes(target, op))) {
    int64_t bytes = 0;
    if (index < given.size())
      bytes = exec::bytesOf(cast<MemRefType>(given[index].getType()));
    if (needed < 0)
      return op->emitOpError("is too large for the library of target ") << name;
    if (bytes < needed)
      return op->emitOpError("has ")
             << bytes << " bytes of workspace, but target " << name << " needs "
             << needed;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Alignment: where the libraries of the target expect what they compute with
//===----------------------------------------------------------------------===//

/// Ranges and buffers begin where the target says.
static LogicalResult verifyOffsets(ModuleOp module, const rt::Target &target) {
  auto verify = [&](Operation *op, std::optional<int64_t> offset) {
    if (*offset % target.alignment == 0)
      return WalkResult::advance();
    op->emitOpError("has offset ")
        << *offset << ", but on target " << target.name
        << " all have multiples of " << target.alignment << " bytes";
    return WalkResult::interrupt();
  };
  WalkResult result = module.walk([&](Operation *op) {
    if (auto range = dyn_cast<exec::RangeOp>(op))
      return verify(op, range.getOffset());
    if (auto alloc = dyn_cast<exec::AllocOp>(op))
      return verify(op, alloc.getOffset());
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// So do the operands of products and attention, parts of buffers included.
static LogicalResult verifyOperands(const std::vector<IssuedOp> &issued,
                                    const rt::Target &target) {
  for (const IssuedOp &issue : issued) {
    if (!isa_and_present<exec::GemmOp, exec::GemmAddOp, exec::AttentionOp,
                         exec::AttentionGradOp>(issue.op))
      continue;
    for (ArrayRef<IssuedAccess> accesses :
         {ArrayRef<IssuedAccess>(issue.reads),
          ArrayRef<IssuedAccess>(issue.writes)})
      for (const IssuedAccess &access : accesses)
        if (access.bytes.begin % target.alignment != 0)
          return issue.op->emitOpError("has an operand at byte ")
                 << access.bytes.begin << " of the arena, but libraries of "
                 << "target " << target.name << " take multiples of "
                 << target.alignment;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The target
//===----------------------------------------------------------------------===//

using IssuedPrograms =
    std::vector<std::pair<exec::ProgramOp, std::vector<IssuedOp>>>;

/// Where the module says for which target it is, it is for that: workspaces
/// are large enough, and everything lies where libraries expect it.
static LogicalResult verifyTarget(ModuleOp module,
                                  const IssuedPrograms &programs) {
  auto name = module->getAttrOfType<StringAttr>(exec::kTargetAttr);
  if (!name)
    return success();
  auto threads = module->getAttrOfType<IntegerAttr>(exec::kThreadsAttr);
  std::string problem;
  std::unique_ptr<TargetInfo> target =
      makeTarget(name.getValue(), threads ? threads.getInt() : 1, problem);
  if (!problem.empty())
    return module.emitOpError(problem);
  if (!target)
    return module.emitOpError("has workspaces of target ")
           << name << ", which does not exist; there are " << rt::targetNames();
  WalkResult result = module.walk([&](exec::RuntimeOpInterface op) {
    return WalkResult(verifyWorkspaces(op, *target, name.getValue()));
  });
  if (result.wasInterrupted() || failed(verifyOffsets(module, target->facts)))
    return failure();
  for (const auto &[program, issued] : programs)
    if (failed(verifyOperands(issued, target->facts)))
      return failure();
  return success();
}

namespace {

struct VerifyExecPass : fsdp::impl::VerifyExecBase<VerifyExecPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(verify(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

  static LogicalResult verify(ModuleOp module) {
    for (auto inner : module.getOps<ModuleOp>())
      return inner.emitOpError("stands inside another module: put programs and "
                               "what they use into one");
    FailureOr<int64_t> persistentBytes =
        moduleBytes(module, exec::kPersistentBytesAttr);
    if (failed(persistentBytes))
      return failure();
    FailureOr<int64_t> arenaBytes = moduleBytes(module, exec::kArenaBytesAttr);
    if (failed(arenaBytes) ||
        failed(verifyRanges(module, *persistentBytes, *arenaBytes)))
      return failure();
    for (auto function : module.getOps<exec::FuncOp>())
      if (failed(verifyBuffers(function, *persistentBytes, *arenaBytes)))
        return failure();
    for (auto kernel : module.getOps<exec::KernelOp>())
      if (failed(verifyKernel(kernel)))
        return failure();
    return verifyPrograms(module, *persistentBytes, *arenaBytes);
  }

  static LogicalResult verifyPrograms(ModuleOp module, int64_t persistentBytes,
                                      int64_t arenaBytes) {
    ArenaOffsets offsets(module);
    RangesAtStart atStart(module);
    IssuedPrograms programs;
    for (auto program : module.getOps<exec::ProgramOp>()) {
      FailureOr<std::vector<IssuedOp>> issued =
          verifyPlaces(program, offsets, persistentBytes, arenaBytes);
      if (failed(issued))
        return failure();
      programs.emplace_back(program, std::move(*issued));
    }
    for (auto &[program, issued] : programs) {
      HappensBefore order(issued);
      if (failed(order.replay(program)) ||
          failed(verifyBytes(program, issued, order, atStart)))
        return failure();
    }
    if (failed(verifyTarget(module, programs)))
      return failure();
    std::vector<Statement> statements;
    for (auto &[program, issued] : programs) {
      FailureOr<Statement> statement = readStatement(program, offsets);
      if (failed(statement))
        return failure();
      statements.push_back(std::move(*statement));
    }
    KernelSums kernels(module);
    auto cleared = clearedBySteps(module, statements);
    for (auto [statement, program] : llvm::zip_equal(statements, programs))
      if (failed(verifyEffects(statement, program.second)) ||
          failed(verifySums(statement, program.second,
                            cleared[program.first.getSymNameAttr()], kernels)))
        return failure();
    return verifySteps(module);
  }

  /// Checks that a program is inside the arena and gives what it issues.
  static FailureOr<std::vector<IssuedOp>>
  verifyPlaces(exec::ProgramOp program, const ArenaOffsets &offsets,
               int64_t persistentBytes, int64_t arenaBytes) {
    if (!program.getArena())
      return program.emitOpError("has no arena; run exec-plan-memory first");
    int64_t peak = *program.getArena();
    if (peak > arenaBytes)
      return program.emitOpError("needs ")
             << peak << " bytes, but the arena has " << arenaBytes;
    if (failed(verifyBuffers(program, persistentBytes, peak)))
      return failure();
    FailureOr<std::vector<IssuedOp>> issued = issueOrder(program, offsets);
    if (failed(issued) ||
        failed(verifyOutputs(program, *issued, persistentBytes)))
      return failure();
    return issued;
  }
};

} // namespace
