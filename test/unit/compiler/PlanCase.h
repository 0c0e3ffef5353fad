//===- PlanCase.h - A random program under a plan ---------------*- C++ -*-===//
//
// After every pass that applies a plan, the program of one rank, run on all
// ranks, computes what the logical program does, and fsdp-verify-schedule
// accepts it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_UNIT_COMPILER_PLANCASE_H
#define FSDP_TEST_UNIT_COMPILER_PLANCASE_H

#include "RandomProgram.h"
#include "fsdp/Schedule/Plan.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/Passes.h"

namespace fsdp {

/// How a plan fared.
enum class PlanOutcome { Kept, Refused, Failed };

/// One random program with its inputs and what it should give.
struct PlanCase {
  PlanCase(MLIRContext &context, unsigned seed, int64_t limit = 1000,
           ProgramShape shape = ProgramShape::Ops)
      : random(context, seed, limit, shape), inputs(random.inputs()) {
    bool update = shape == ProgramShape::Blocks || seed % 2 == 1;
    whole = random.get().clone();
    bool good = succeeded(makeStep(*whole, update));
    random.place();
    good = good && succeeded(makeStep(random.get(), update));
    random.pinSome();
    good = good && succeeded(runPasses(random.get(), createCSEPass(),
                                       createPropagate(), createExpand()));
    PassManager manager(&context);
    manager.addNestedPass<func::FuncOp>(createAddress());
    isGood = good && succeeded(manager.run(random.get()));
    if (isGood)
      expected = run(trainOf(*whole), inputs);
  }

  /// Applies `plan` to a copy of the program.
  PlanOutcome apply(const schedule::Plan &plan, std::string &why) {
    OwningOpRef<ModuleOp> copy = random.get().clone();
    return applyTo(*copy, plan, why);
  }

  /// Applies `plan` to `module`, which is a copy, pass by pass; `why` says what
  /// went wrong.
  PlanOutcome applyTo(ModuleOp module, const schedule::Plan &plan,
                      std::string &why) {
    MLIRContext *context = module.getContext();
    module->setAttr(dist::kPlanAttr, schedule::toAttribute(context, plan));
    ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
      why += diagnostic.str() + "\n";
      return success();
    });
    if (failed(runPasses(module, createPlan())))
      return PlanOutcome::Refused;
    std::unique_ptr<Pass> passes[] = {createRemat(), createBucket(),
                                      createOverlap()};
    for (std::unique_ptr<Pass> &pass : passes) {
      std::string name = pass->getArgument().str();
      // Broken IR is a failure of the pass, and no plan refused.
      PassManager manager(context);
      manager.enableVerifier(false);
      manager.addPass(std::move(pass));
      if (failed(manager.run(module)))
        return PlanOutcome::Refused;
      if (failed(verify(module)))
        return PlanOutcome::Failed;
      why = check(module, name);
      if (!why.empty())
        return PlanOutcome::Failed;
    }
    PassManager manager(context);
    manager.addNestedPass<func::FuncOp>(createFuse());
    manager.addPass(createVerifySchedule());
    if (failed(manager.run(module)))
      return PlanOutcome::Failed;
    why = check(module, "nn-fuse");
    return why.empty() ? PlanOutcome::Kept : PlanOutcome::Failed;
  }

  std::string check(ModuleOp module, const std::string &pass) {
    try {
      GridOutputs actual = run(trainOf(module), inputs);
      std::string found = difference(actual.state, expected.state);
      for (const TensorMap &results : actual.results)
        found += difference(results, expected.results[0]);
      return found.empty() ? "" : "after " + pass + ": " + found;
    } catch (const std::runtime_error &error) {
      return "after " + pass + ": " + error.what();
    }
  }

  RandomProgram random;
  GridInputs inputs;
  OwningOpRef<ModuleOp> whole;
  GridOutputs expected;
  bool isGood = false;
};

} // namespace fsdp

#endif // FSDP_TEST_UNIT_COMPILER_PLANCASE_H
