//===- DecidePlan.h - A plan for a budget of memory -------------*- C++ -*-===//
#ifndef FSDP_DRIVER_DECIDEPLAN_H
#define FSDP_DRIVER_DECIDEPLAN_H

#include "fsdp/Config/CompileOptions.h"
#include "fsdp/Schedule/Problem.h"
#include "fsdp/Simulation/Durations.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace fsdp {

/// What is to be scheduled of `module`, which is one after fsdp-address. An
/// error without text has been printed.
llvm::Expected<problem::Problem> problemFor(mlir::ModuleOp module,
                                            const CompileOptions &options);

/// Puts on `module`, a model's graph, the plan that takes least time on
/// compile.machine of those whose arena fits into the memory budget: decides,
/// plans the arena, and decides again with fewer bytes where buffers do not
/// pack without gaps. Fails, with the largest buffers of the plan that needs
/// least, where no plan fits. An error without text has been printed.
///
/// Three settings that change no bit are decided with it and changed in
/// `options`: compile.compute_copy is taken out where the step is faster
/// without copies, or fits only then; compile.embedding_rows, unless it is
/// stated, is put in where it wins 1 % of the rule's step and the decided one
/// is faster with it; parallelism.fsdp_reshard_ranks, where it is 0 and the
/// step is 5 % over its bound, becomes the ranks of a node of the machine where
/// the step is faster with it.
llvm::Error decidePlan(mlir::ModuleOp module, CompileOptions &options);

} // namespace fsdp

#endif // FSDP_DRIVER_DECIDEPLAN_H
