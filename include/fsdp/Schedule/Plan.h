//===- Plan.h - The schedule as data ----------------------------*- C++ -*-===//
//
// A plan is a list of rules over addresses (Address.h). A rule says of all that
// it matches which collectives travel together, when they start and are
// awaited, and which values of the forward pass are computed again in the
// backward pass. Rules apply in order, later ones over earlier ones. Planners
// make plans; fsdp-plan writes on every op what they decide about it
// (dialects/Fsdp/Decision.h has the fields); fsdp-remat, fsdp-bucket and
// fsdp-overlap apply that; a plan never changes a bit of the result. It lives
// in the module attribute `fsdp.plan` and in JSON files:
//
//   {"version": 2, "rules": [
//     {"match": "fwd layers.3 all_gather", "start_after": "fwd layers.1.wo
//     linear"},
//     {"match": "fwd layers.{1,2}.* all_gather", "bucket": "layers.1 and 2"},
//     {"match": "fwd layers.*.feed_forward silu", "recompute": true}]}
//
// Files of version 1 list units of parameters; tools/convert-plan.py makes
// rules of them.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_PLAN_H
#define FSDP_SCHEDULE_PLAN_H

#include "dialects/Fsdp/Decision.h"
#include "fsdp/Config/CompileOptions.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace fsdp::schedule {

/// What a rule overrides in the decisions about the ops that it matches. What
/// is unset stays as it is.
using DecisionOverrides = dist::DecisionFields<std::optional>;

/// Whether anything is set.
bool saysSomething(const DecisionOverrides &overrides);

struct Rule {
  /// Globs over addresses (*, ?, [abc], {a,b}) or addresses; those of a bucket
  /// stand for its members.
  std::vector<std::string> match;
  DecisionOverrides overrides;
};

struct Plan {
  std::vector<Rule> rules;
};

/// How parameters are split into buckets.
enum class UnitPolicy {
  Block, ///< One per numbered block, one per module before, one for the rest.
  Whole, ///< One for the model.
};

/// The options of the planner by rule.
struct PlannerOptions {
  UnitPolicy units = UnitPolicy::Block;
  ReshardPolicy reshard = ReshardPolicy::Default;
  std::string recompute = "none"; ///< A policy: see parseRecomputePolicy.
  bool bucket = true;
  bool overlap = true;
  int64_t prefetch = 1;
  int64_t reduceDefer = 1;
};

/// A plan as JSON.
std::string toJSON(const Plan &plan);
/// Refuses unknown keys, wrong types, a rule that says nothing and negative
/// distances; errors begin with `place` and go on with that in the plan:
/// "plan 'x.json': rules[2]: merge: …".
llvm::Expected<Plan> parseJSON(llvm::StringRef text, const std::string &place);

mlir::Attribute toAttribute(mlir::MLIRContext *context, const Plan &plan);
/// The plan in force on `module`; emits an error if there is none, or if it is
/// not well formed.
mlir::FailureOr<Plan> planOf(mlir::ModuleOp module);

} // namespace fsdp::schedule

#endif // FSDP_SCHEDULE_PLAN_H
