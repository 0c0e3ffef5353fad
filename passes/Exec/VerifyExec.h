//===- VerifyExec.h - Parts of exec-verify ----------------------*- C++ -*-===//
//
// VerifyExecPass.cpp     the pass: everything is inside the arena, workspaces
// VerifyExecOrder.cpp    which operation is over when another starts
// VerifyExecBytes.cpp    who touches which bytes, and what lies there
// VerifyExecKernels.cpp  kernels write all, and without races
// VerifyExecEffects.cpp  programs and steps do what they state
// VerifyExecSums.cpp     what is stated to be added to or cleared is
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_PASSES_EXEC_VERIFYEXEC_H
#define FSDP_PASSES_EXEC_VERIFYEXEC_H

#include "fsdp/Memory/IssueOrder.h"
#include <array>

namespace fsdp::proof {

constexpr size_t kStreams = exec::getMaxEnumValForStream() + 1;
constexpr size_t kCompute = size_t(exec::Stream::Compute);
using Stamp = std::array<int64_t, kStreams>;

/// Replays records and waits.
class HappensBefore {
public:
  explicit HappensBefore(const std::vector<IssuedOp> &issued)
      : issued(issued), known(issued.size()), rank(issued.size()) {}

  /// Fails on a wait without record, on a stream that starts before the
  /// program does and on one that the compute stream does not await at the
  /// end.
  mlir::LogicalResult replay(exec::ProgramOp program);

  /// Is operation `a` over when the later operation `b` starts?
  bool ordered(size_t a, size_t b) const {
    size_t stream = size_t(exec::streamOf(issued[a].op));
    return known[b][stream] >= rank[a];
  }

private:
  mlir::LogicalResult replayEvent(const IssuedOp &issue);
  mlir::LogicalResult checkStart(const IssuedOp &issue);
  mlir::LogicalResult checkEnd(exec::ProgramOp program);

  const std::vector<IssuedOp> &issued;
  /// What is over when an operation starts, its own stream's past included.
  std::vector<Stamp> known;
  /// Its number on its stream, from 1 (compute: from 2, after the start).
  std::vector<int64_t> rank;
  std::array<Stamp, kStreams> streams = {};
  std::array<const IssuedOp *, kStreams> last = {};
  llvm::DenseMap<int64_t, Stamp> events;
};

/// What a program states: exec.inputs, exec.outputs, exec.reads, exec.writes,
/// exec.adds, exec.clears.
struct Statement {
  using Ranges = llvm::SetVector<exec::RangeOp>;
  exec::ProgramOp program;
  Ranges inputs, outputs, reads, writes, adds, clears;
};

/// Which ranges hold something when a program starts: what the runtime fills
/// (parameters, state, buffers, inputs), and gradients that another program of
/// the module states to write. An output, or a gradient that nobody else
/// writes, would be what the last run of this program produced.
class RangesAtStart {
public:
  explicit RangesAtStart(mlir::ModuleOp module);

  bool isDefined(exec::RangeOp range, exec::ProgramOp program) const;

private:
  llvm::DenseMap<mlir::Attribute, llvm::SmallVector<exec::ProgramOp, 2>>
      writers;
};

/// Calls `write` with every run of bytes that work writes, as an access of its
/// own. Fails on a box of too many.
mlir::LogicalResult
forEachWrite(const IssuedOp &issue,
             llvm::function_ref<void(const IssuedAccess &)> write);

/// Proves of every byte of the arena that what touches it does so in order,
/// and that what is read there is what was written into that buffer.
mlir::LogicalResult verifyBytes(exec::ProgramOp program,
                                const std::vector<IssuedOp> &issued,
                                const HappensBefore &order,
                                const RangesAtStart &atStart);

/// Proves that a kernel writes all of its outputs, each element at one place,
/// that nobody else reads them there, and that no load leaves its row.
mlir::LogicalResult verifyKernel(exec::KernelOp kernel);

/// What a program states. Fails if it does not, on a name of no range, and on
/// lists that contradict each other.
mlir::FailureOr<Statement> readStatement(exec::ProgramOp program,
                                         const ArenaOffsets &offsets);

/// Proves that a program reads of ranges, before it writes them, what it states
/// to read, and writes, whole, what it states to write.
mlir::LogicalResult verifyEffects(const Statement &statement,
                                  const std::vector<IssuedOp> &issued);

/// Which arguments a kernel adds to, by output.
class KernelSums {
public:
  explicit KernelSums(mlir::ModuleOp module) : module(module) {}

  /// The inputs that output `output` of the kernel of `launch` is, element by
  /// element, a sum of: itself and something.
  llvm::ArrayRef<unsigned> addendsOf(exec::LaunchOp launch, unsigned output);

private:
  mlir::ModuleOp module;
  /// By the name of the kernel.
  llvm::DenseMap<mlir::Attribute, std::vector<llvm::SmallVector<unsigned, 2>>>
      known;
};

/// The ranges that programs of a step state to clear, by the name of each
/// program that the step runs.
llvm::DenseMap<mlir::Attribute, Statement::Ranges>
clearedBySteps(mlir::ModuleOp module, llvm::ArrayRef<Statement> statements);

/// Proves that a program leaves in the ranges that it states to add to what was
/// there and something more, and zeros in those that it states to clear; and
/// that it does not add to one of `cleared`, which its steps clear, without a
/// statement.
mlir::LogicalResult verifySums(const Statement &statement,
                               const std::vector<IssuedOp> &issued,
                               const Statement::Ranges &cleared,
                               KernelSums &kernels);

/// Proves of the steps what their programs state.
mlir::LogicalResult verifySteps(mlir::ModuleOp module);

} // namespace fsdp::proof

#endif // FSDP_PASSES_EXEC_VERIFYEXEC_H
