//===- TestTarget.cpp - Plans that no machine changes: facts --------------===//
//
// Sizes by formulas, for tests of the compiler's text. Nothing runs on it.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Target/Target.h"

using namespace fsdp::rt;

static constexpr Target facts() {
  Target test;
  test.name = "test";
  test.whoseWorkspaces = "fixed sizes for tests";
  // Unlike that of others, so that nobody takes theirs for everybody's.
  test.alignment = 128;
  return test;
}

const Target fsdp::rt::kTestTarget = facts();
