//===- VerifyExec.h - Parts of exec-verify ----------------------*- C++ -*-===//
//
// VerifyExec.cpp         the pass: everything is inside the arena, workspaces
// VerifyExecOrder.cpp    which operation is over when another starts
// VerifyExecBytes.cpp    who touches which bytes, and what lies there
// VerifyExecKernels.cpp  an output holds what its kernel has written
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_PASSES_EXEC_VERIFYEXEC_H
#define FSDP_PASSES_EXEC_VERIFYEXEC_H

#include "fsdp/Memory/Addresses.h"
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

/// Which ranges hold something when a program starts: what the runtime fills
/// (parameters, state, buffers, inputs), and gradients that another program of
/// the module leaves there. An output, or a gradient that nobody else writes,
/// would be what the last run of this program made.
class RangesAtStart {
public:
  void addWrites(exec::ProgramOp program, const std::vector<IssuedOp> &issued) {
    for (const IssuedOp &issue : issued)
      for (const IssuedAccess &write : issue.writes)
        if (write.range)
          writers[write.range].insert(program);
  }

  bool isDefined(exec::RangeOp range, exec::ProgramOp program) const {
    if (range.getRole() == exec::Role::Output)
      return false;
    if (range.getRole() != exec::Role::Gradient)
      return true;
    auto at = writers.find(range);
    return at != writers.end() &&
           at->second.size() > (at->second.contains(program) ? 1 : 0);
  }

private:
  llvm::DenseMap<mlir::Operation *, llvm::SmallPtrSet<mlir::Operation *, 2>>
      writers;
};

/// Proves of every byte of the arena that what touches it does so in order,
/// and that what is read there is what was written into that buffer.
mlir::LogicalResult verifyBytes(exec::ProgramOp program,
                                const std::vector<IssuedOp> &issued,
                                const HappensBefore &order,
                                const RangesAtStart &atStart);

/// Proves that a kernel writes all of its outputs, and reads of them only what
/// it has written.
mlir::LogicalResult verifyKernel(exec::KernelOp kernel);

} // namespace fsdp::proof

#endif // FSDP_PASSES_EXEC_VERIFYEXEC_H
