//===- PlanPass.cpp - Chooses the schedule plan ---------------------------===//

#include "fsdp/Config/RecomputePolicy.h"
#include "fsdp/Schedule/Decisions.h"
#include "fsdp/Schedule/SemanticDigest.h"
#include "fsdp/Support/Error.h"
#include "mlir/Support/FileUtilities.h"
#include "passes/Passes.h"
#include "llvm/Support/FileSystem.h"
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
    schedule::DecisionPoints points(module);
    FailureOr<std::optional<schedule::Plan>> plan = given(module);
    if (failed(plan))
      return signalPassFailure();
    FailureOr<schedule::Decisions> decisions =
        decide(module, points, std::move(*plan));
    if (failed(decisions))
      return signalPassFailure();
    for (auto program : module.getOps<func::FuncOp>())
      if (!program.isExternal())
        keep(program, schedule::semanticDigestsOf(program));
    keep(module, schedule::declarationDigestsOf(module));
    module->setAttr(
        dist::kPlanAttr,
        schedule::toAttribute(&getContext(), decisions->plan(points)));
    Stamped before = decisionsOn(module);
    decisions->stamp(module, points);
    warnOfReplaced(module, before);
  }

  using Stamped = SmallVector<std::pair<Operation *, Attribute>>;

  /// The decisions that ops have.
  static Stamped decisionsOn(ModuleOp module) {
    Stamped found;
    module.walk([&](Operation *op) {
      if (Attribute decision = op->getAttr(dist::kDecisionAttr))
        found.push_back({op, decision});
    });
    return found;
  }

  /// A decision that was changed in the text is lost, for it is in no rule.
  static void warnOfReplaced(ModuleOp module, Stamped before) {
    size_t all = before.size();
    llvm::erase_if(before, [](const auto &entry) {
      return entry.first->getAttr(dist::kDecisionAttr) == entry.second;
    });
    if (before.empty())
      return;
    InFlightDiagnostic warning = module.emitWarning("fsdp-plan replaced ")
                                 << before.size() << " of the " << all
                                 << " decisions of ops; write them as rules of "
                                    "the plan, or do not run fsdp-plan again";
    warning.attachNote(before.front().first->getLoc())
        << "the first one was " << before.front().second;
  }

  /// Writes down what a program computes, or the module declares, for
  /// fsdp-verify-schedule.
  static void keep(Operation *op, ArrayRef<schedule::SemanticDigest> found) {
    SmallVector<int64_t> digests;
    for (const schedule::SemanticDigest &one : found)
      digests.push_back(one.digest);
    op->setAttr(dist::kSemanticDigestAttr,
                DenseI64ArrayAttr::get(op->getContext(), digests));
  }

  FailureOr<schedule::Decisions> decide(ModuleOp module,
                                        const schedule::DecisionPoints &points,
                                        std::optional<schedule::Plan> plan) {
    try {
      bool saysOfValues = plan && schedule::saysOfValues(*plan, points);
      llvm::Expected<schedule::Decisions> decisions =
          schedule::Decisions::byRule(points, options(saysOfValues),
                                      std::move(plan));
      if (decisions)
        return std::move(*decisions);
      return module.emitError("the plan ")
             << (file.empty() ? "" : "'" + file + "' ")
             << "does not fit the model: "
             << llvm::toString(decisions.takeError());
    } catch (const Error &error) {
      return module.emitError(error.what());
    }
  }

  schedule::PlannerOptions options(bool saysOfValues) const {
    schedule::PlannerOptions options;
    options.units = units;
    options.reshard = reshard;
    options.recompute = recomputePolicyFor(recompute, saysOfValues);
    options.bucket = bucket;
    options.overlap = overlap;
    options.prefetch = prefetch;
    options.reduceDefer = reduceDefer;
    return options;
  }

  /// The plan of the file, else the one on the module, if there is one.
  FailureOr<std::optional<schedule::Plan>> given(ModuleOp module) {
    std::optional<schedule::Plan> given;
    if (file.empty() && !module->hasAttr(dist::kPlanAttr))
      return given;
    FailureOr<schedule::Plan> plan =
        file.empty() ? schedule::planOf(module) : fromFile(module);
    if (failed(plan))
      return failure();
    given = std::move(*plan);
    return given;
  }

  FailureOr<schedule::Plan> fromFile(ModuleOp module) {
    // A device or a pipe may never end.
    if (file != "-" && llvm::sys::fs::exists(file) &&
        !llvm::sys::fs::is_regular_file(file))
      return module.emitError("plan '")
             << file << "' is not a regular file; copy it into one";
    std::string problem;
    auto buffer = openInputFile(file, &problem);
    if (!buffer)
      return module.emitError("cannot read the plan: ") << problem;
    llvm::Expected<schedule::Plan> plan =
        schedule::parseJSON(buffer->getBuffer(), "plan '" + file + "'");
    if (!plan)
      return module.emitError(llvm::toString(plan.takeError()));
    return *plan;
  }
};

} // namespace
