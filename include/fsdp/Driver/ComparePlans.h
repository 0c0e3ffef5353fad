//===- ComparePlans.h - Decided plans beside known rules --------*- C++ -*-===//
#ifndef FSDP_DRIVER_COMPAREPLANS_H
#define FSDP_DRIVER_COMPAREPLANS_H

#include "fsdp/Config/CompileOptions.h"
#include "fsdp/Simulation/Durations.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <string>

namespace fsdp {

struct ComparedPlan {
  std::string name; ///< "decided", or the rule's.
  Duration total;   ///< Of the simulated step.
  std::string json;
};

/// Plans on one or several machines, each for one or several budgets.
struct Comparison {
  std::string text;       ///< A table: a line for each machine and budget.
  int64_t cases = 0;      ///< That fit.
  int64_t notFitting = 0; ///< For which nothing fits.
  int64_t slower = 0;     ///< In which a known rule is faster.
  /// Of the last case that fits.
  std::vector<ComparedPlan> plans;
};

/// What decidePlan would decide about `module`, a model's graph, by the times
/// of each of `costs` in each of `budgets` bytes, beside what known rules take
/// in the same budget. No setting is decided about. Fails as decidePlan does,
/// but for a budget in which nothing fits; throws fsdp::Error where it does.
llvm::Expected<Comparison>
comparePlans(mlir::ModuleOp module, const CompileOptions &options,
             const std::vector<simulation::Costs> &costs,
             const std::vector<int64_t> &budgets);

} // namespace fsdp

#endif // FSDP_DRIVER_COMPAREPLANS_H
