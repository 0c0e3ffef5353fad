//===- ExplainPlan.h - What a budget of memory costs ------------*- C++ -*-===//
#ifndef FSDP_DRIVER_EXPLAINPLAN_H
#define FSDP_DRIVER_EXPLAINPLAN_H

#include "fsdp/Config/CompileOptions.h"
#include "fsdp/Simulation/Durations.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <string>

namespace fsdp {

/// A page about the plan that decidePlan would put on `module`, a model's
/// graph, by the times of `costs`: what its step takes, what each GiB more or
/// less costs, what the policies of compile.recompute take, and what is
/// computed again. Fails as decidePlan does; throws fsdp::Error where it does.
llvm::Expected<std::string> explainPlan(mlir::ModuleOp module,
                                        const CompileOptions &options,
                                        const simulation::Costs &costs);

} // namespace fsdp

#endif // FSDP_DRIVER_EXPLAINPLAN_H
