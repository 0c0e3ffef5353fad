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
  test.whoseWorkspaces = "fixed ones for tests";
  test.alignment = 64;
  return test;
}

const Target fsdp::rt::kTestTarget = facts();
