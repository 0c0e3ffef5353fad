//===- Plan.cpp - Chooses the schedule plan -------------------------------===//

#include "fsdp/Schedule/Plan.h"
#include "dialects/Fsdp/Fsdp.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/FileUtilities.h"
#include "passes/Passes.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MemoryBuffer.h"

namespace fsdp {
#define GEN_PASS_DEF_PLAN
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

struct PlanPass : fsdp::impl::PlanBase<PlanPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<StringRef> parameters;
    for (auto parameter : module.getOps<nn::ParameterOp>())
      parameters.push_back(parameter.getSymName());
    FailureOr<schedule::Plan> plan = choose(module, parameters);
    if (failed(plan))
      return signalPassFailure();
    if (std::string problem = schedule::check(*plan, parameters);
        !problem.empty()) {
      module.emitError("the plan ") << (file.empty() ? "" : "'" + file + "' ")
                                    << "does not fit the model: " << problem;
      return signalPassFailure();
    }
    module->setAttr(dist::kPlanAttr,
                    schedule::toAttribute(&getContext(), *plan));
  }

  FailureOr<schedule::Plan> choose(ModuleOp module,
                                   ArrayRef<StringRef> parameters) {
    // A plan written by hand into the module stays, unless a file replaces it.
    if (!file.empty())
      return fromFile(module);
    if (module->hasAttr(dist::kPlanAttr))
      return schedule::planOf(module);
    schedule::PlanOptions options;
    options.units = units;
    options.reshard = reshard;
    options.bucket = bucket;
    options.overlap = overlap;
    options.prefetch = prefetch;
    options.reduceDefer = reduceDefer;
    return schedule::planByRule(parameters, options);
  }

  FailureOr<schedule::Plan> fromFile(ModuleOp module) {
    std::string problem;
    auto buffer = openInputFile(file, &problem);
    if (!buffer)
      return module.emitError("cannot read the plan: ") << problem;
    llvm::Expected<schedule::Plan> plan =
        schedule::parseJSON(buffer->getBuffer());
    if (!plan)
      return module.emitError("plan '")
             << file << "': " << llvm::toString(plan.takeError());
    return *plan;
  }
};

} // namespace
