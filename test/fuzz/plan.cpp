//===- plan.cpp - Any text as a plan --------------------------------------===//
//
// What is accepted can be asked, and means the same when it is written again.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Schedule/Plan.h"
#include "Fuzz.h"
#include "fsdp/Schedule/Decisions.h"

using namespace fsdp;
using namespace fsdp::test;

/// The origin that plans are asked about.
static dist::OriginAttr askedOrigin() {
  static mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<dist::FsdpDialect>();
  return dist::OriginAttr::get(
      &context, {dist::Phase::Forward, "layers.0.wq", "all_gather"});
}

static void ask(const schedule::Plan &plan) {
  auto rules = schedule::Rules::compile(plan);
  if (!rules)
    return llvm::consumeError(rules.takeError());
  schedule::DecisionPoint point;
  point.kind = dist::CollectiveKind::AllGather;
  schedule::Decision decision;
  rules->decide(askedOrigin(), point, decision);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto plan = schedule::parseJSON(textOf(data, size), "plan");
  if (!plan) {
    require(!llvm::toString(plan.takeError()).empty());
    return 0;
  }
  ask(*plan);
  std::string written = schedule::toJSON(*plan);
  auto again = schedule::parseJSON(written, "plan");
  require(static_cast<bool>(again));
  require(schedule::toJSON(*again) == written);
  return 0;
}
