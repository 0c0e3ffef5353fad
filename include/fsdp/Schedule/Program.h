//===- Program.h - A schedule as steps with costs ---------------*- C++ -*-===//
//
// What a solver or a simulator needs of a scheduled program: its steps in order
// of issue, where each runs, what it costs on an ideal machine, and which steps
// must come before it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_PROGRAM_H
#define FSDP_SCHEDULE_PROGRAM_H

#include "dialects/Fsdp/Fsdp.h"
#include "dialects/NN/AdjacentReads.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>
#include <vector>

namespace fsdp::schedule {

/// Where a step runs.
enum class Where { Compute, Gather, Reduce };

/// One op of a program, a kernel of several, the start of a collective, or the
/// wait for one.
struct Step {
  /// Its address, of a kernel those of its ops, "await" and the address of what
  /// is awaited, or the mnemonic of an op that has none.
  std::string name;
  /// Of the op, of what is started, or the first of a kernel's ops; null for an
  /// op without, and for a wait.
  dist::OriginAttr origin;
  /// "matmul", "kernel" (pointwise and row ops), or the mnemonic of an op and
  /// of its gradient: "attention", "all_gather". Empty for a wait.
  std::string kind;
  Where where = Where::Compute;
  int64_t flops = 0;     ///< of one rank
  int64_t bytes = 0;     ///< read and written, each operand and result once
  int64_t wireBytes = 0; ///< that one rank sends to others
  /// Steps that must come before: those whose values it takes, and earlier
  /// accesses to what it writes, or writes of what it reads. In order.
  std::vector<unsigned> needs;
};

/// The steps of a program of one rank in order of issue. `mesh` may be null if
/// it has no collectives. `adjacent` are the groups of its module.
std::vector<Step> stepsOf(mlir::func::FuncOp program, dist::MeshOp mesh,
                          const nn::AdjacentReads &adjacent);

/// For each program sums by kind, phase and block, in at most twenty lines, and
/// then a table of the steps that cost something. `target` is the name of a
/// target.
void printCosts(mlir::ModuleOp module, llvm::StringRef target,
                llvm::raw_ostream &os);

} // namespace fsdp::schedule

#endif // FSDP_SCHEDULE_PROGRAM_H
