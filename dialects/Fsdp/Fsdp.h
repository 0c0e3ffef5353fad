//===- Fsdp.h - The fsdp dialect --------------------------------*- C++ -*-===//
//
// Where a tensor lives and moves: mesh, placements, collectives, futures.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DIALECTS_FSDP_FSDP_H
#define FSDP_DIALECTS_FSDP_FSDP_H

#include "dialects/NN/NN.h"

namespace fsdp::dist {

/// Discardable attribute of nn.parameter / nn.buffer: where it lives.
inline constexpr llvm::StringLiteral kPlacementAttr = "fsdp.placement";
/// Module attribute: the schedule plan in force (a #builtin dictionary).
inline constexpr llvm::StringLiteral kPlanAttr = "fsdp.plan";

/// Elements of one of `parts` shards of `size`: ceil(size / parts).
inline int64_t shardSize(int64_t size, int64_t parts) {
  return (size + parts - 1) / parts;
}

} // namespace fsdp::dist

#include "dialects/Fsdp/FsdpDialect.h.inc"
#include "dialects/Fsdp/FsdpEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Fsdp/FsdpAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Fsdp/FsdpTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/Fsdp/FsdpOps.h.inc"

namespace fsdp::dist {

/// The mesh that `name` refers to, seen from `from`; null if there is none.
MeshOp lookupMesh(mlir::Operation *from, mlir::FlatSymbolRefAttr name);

/// The local type of a tensor of type `full` under `placement` on `mesh`.
/// Null if the placement does not fit (caller emits the diagnostic).
mlir::RankedTensorType localType(mlir::RankedTensorType full,
                                 mlir::Attribute placement, MeshOp mesh);

} // namespace fsdp::dist

#endif // FSDP_DIALECTS_FSDP_FSDP_H
