//===- NodeLevels.h - Which sums are made in two levels ---------*- C++ -*-===//
#ifndef FSDP_SCHEDULE_NODELEVELS_H
#define FSDP_SCHEDULE_NODELEVELS_H

#include "dialects/Fsdp/Fsdp.h"

namespace fsdp {

/// Ranks of `op`'s group in each node of `mesh`, if its sum is made inside
/// nodes first and then between them; 0: in one level, as where the mesh states
/// no nodes, no two ranks of the group share one or all of them do. `isFast`:
/// the library adds. Emits an error and fails where nodes have no part of the
/// sum's fixed order, unless every tensor is so small that the runtime sends it
/// whole.
mlir::FailureOr<int64_t> nodeRanksOf(dist::CollectiveOpInterface op,
                                     dist::MeshOp mesh, bool isFast);

} // namespace fsdp

#endif // FSDP_SCHEDULE_NODELEVELS_H
