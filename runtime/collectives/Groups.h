//===- Groups.h - The ranks of a group, in order ----------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_COLLECTIVES_GROUPS_H
#define FSDP_RUNTIME_COLLECTIVES_GROUPS_H

#include "fsdp/Runtime/Types.h"
#include "runtime/kernels/RankTree.h"
#include <vector>

namespace fsdp::rt {

/// The ranks that differ from `rank` only along the group's axes, in order,
/// the first axis slowest.
std::vector<int> groupRanks(const GroupDesc &group,
                            const std::vector<int64_t> &meshAxes, int rank);

/// The order in which a group's contributions are combined. It is that of the
/// mesh, in whatever order the group lists its axes. Throws fsdp::Error if the
/// group has more than RankTree::kMaxAxes axes.
RankTree rankTree(const GroupDesc &group, const std::vector<int64_t> &meshAxes);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COLLECTIVES_GROUPS_H
