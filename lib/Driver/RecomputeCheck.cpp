//===- RecomputeCheck.cpp - Whether recomputation saves memory ------------===//
#include "fsdp/Driver/RecomputeCheck.h"
#include "dialects/Exec/Exec.h"
#include "fsdp/Schedule/Plan.h"
#include "mlir/Pass/PassInstrumentation.h"

using namespace fsdp;
using namespace mlir;

class RecomputeCheck::Keeper : public PassInstrumentation {
public:
  explicit Keeper(Kept &kept) : kept(kept) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    if (isPlan(pass))
      kept.program = cast<ModuleOp>(op).clone();
  }
  void runAfterPass(Pass *pass, Operation *op) override {
    if (isPlan(pass))
      kept.plan = op->getAttr(dist::kPlanAttr);
  }

private:
  static bool isPlan(Pass *pass) { return pass->getArgument() == "fsdp-plan"; }

  Kept &kept;
};

RecomputeCheck::RecomputeCheck(PassManager &passes,
                               const CompileOptions &options)
    : options(options) {
  passes.addInstrumentation(std::make_unique<Keeper>(kept));
}

/// The plan on `module`, which is in full, without what it computes again: that
/// is again as it is by rule.
static LogicalResult leaveOutRecomputation(ModuleOp module) {
  FailureOr<schedule::Plan> plan = schedule::planOf(module);
  if (failed(plan))
    return failure();
  for (schedule::Rule &rule : plan->rules)
    if (rule.overrides.recompute == true)
      rule.overrides.recompute.reset();
  // A rule that says nothing is an error.
  llvm::erase_if(plan->rules, [](const schedule::Rule &rule) {
    return !schedule::saysSomething(rule.overrides);
  });
  module->setAttr(dist::kPlanAttr,
                  schedule::toAttribute(module.getContext(), *plan));
  return success();
}

std::optional<int64_t> RecomputeCheck::arenaWithoutRules() {
  ModuleOp module = *kept.program;
  MLIRContext *context = module.getContext();
  // What is wrong here is nothing that was asked for.
  ScopedDiagnosticHandler quiet(context, [](Diagnostic &) {});
  CompileOptions byRule = options;
  byRule.pipeline.plan.clear();
  byRule.pipeline.memoryBudget = 0;
  byRule.compile.recompute = "none";
  module->setAttr(dist::kPlanAttr, kept.plan);
  PassManager planning(context, ModuleOp::getOperationName());
  addPlan(planning, byRule);
  if (failed(leaveOutRecomputation(module)) || failed(planning.run(module)) ||
      module->getAttr(dist::kPlanAttr) == kept.plan)
    return std::nullopt;
  PassManager rest(context, ModuleOp::getOperationName());
  addPlannedArena(rest, byRule);
  auto bytes = succeeded(rest.run(module))
                   ? module->getAttrOfType<IntegerAttr>(exec::kArenaBytesAttr)
                   : IntegerAttr();
  return bytes ? std::optional(bytes.getInt()) : std::nullopt;
}
