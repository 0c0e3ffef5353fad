//===- TestTarget.cpp - Plans that no machine changes: facts --------------===//
//
// Sizes by formulas, for tests of the compiler's text. Nothing runs on it.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Runtime/Types.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Target/Target.h"

using namespace fsdp;
using namespace fsdp::rt;

/// Every rank's padded piece.
static int64_t workspaceBytes(const CollectiveDesc &desc, int item,
                              int64_t ranks) {
  if (desc.fast)
    return 0;
  int64_t piece = desc.kind == CollectiveKind::ReduceScatter
                      ? desc.item[item].shard
                      : ceilDiv(desc.item[item].full, ranks);
  return (CheckedSize(ranks * sizeOf(desc.in)) * piece).saturated();
}

static constexpr Target facts() {
  Target test;
  test.name = "test";
  test.whoseWorkspaces = "fixed sizes for tests";
  // Unlike that of others, so that nobody takes theirs for everybody's.
  test.alignment = 128;
  test.collectiveWorkspaceBytes = workspaceBytes;
  return test;
}

const Target fsdp::rt::kTestTarget = facts();
