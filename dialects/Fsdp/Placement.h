//===- Placement.h - Placements and the moves between two -------*- C++ -*-===//
//
// The one table of what a change of placement costs; expansion, the cost of a
// choice and the documentation use it. Per mesh axis:
//
//   sharded -> replicated   all_gather          (n-1)/n of the result
//   replicated -> sharded   shard_of            nothing
//   partial -> replicated   all_reduce          2 (n-1)/n of the operand
//   partial -> sharded      reduce_scatter      (n-1)/n of the operand
//   sharded -> sharded      all_gather and      n-1 times the operand
//   on another dimension    shard_of
//
// in bytes that a rank receives, n the ranks along the axes.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DIALECTS_FSDP_PLACEMENT_H
#define FSDP_DIALECTS_FSDP_PLACEMENT_H

#include "dialects/Fsdp/Fsdp.h"

namespace fsdp::dist {

using AxisList = llvm::SmallVector<AxisRefAttr, 2>;

/// #fsdp.placement, open to changes.
struct Placement {
  struct Dim {
    AxisList compute, storage;
    bool operator==(const Dim &other) const {
      return compute == other.compute && storage == other.storage;
    }
  };
  std::vector<Dim> dims;
  AxisList partial;
  CollectiveReduce kind = CollectiveReduce::Sum;

  Placement() = default;
  /// Replicated.
  explicit Placement(int64_t rank) : dims(rank) {}
  explicit Placement(PlacementAttr attribute);

  PlacementAttr attribute(mlir::MLIRContext *context) const;
  bool operator==(const Placement &other) const;
  bool operator!=(const Placement &other) const { return !(*this == other); }

  /// Where a tensor that is stored here is computed with.
  Placement withoutStorage() const;

  /// The dimension that `axis` shards; -1 if none.
  int64_t dimOf(AxisRefAttr axis) const;
  bool isPartial(AxisRefAttr axis) const {
    return llvm::is_contained(partial, axis);
  }
};

/// What one collective (or shard_of) changes.
struct Move {
  /// Unset: shard_of.
  std::optional<CollectiveKind> kind;
  AxisList axes;
  /// The dimension that is sharded before (of what joins) and after (of what
  /// splits, shard_of too); -1 otherwise.
  int64_t from = -1, to = -1;
  /// Where the tensor lies afterwards.
  Placement after;
};

/// True if `to` leaves in parts only what is in parts at `from`, of the same
/// kind: nothing makes partial values of a complete one.
bool canMove(const Placement &from, const Placement &to);

/// The moves that bring a tensor from one placement to another. Sums are
/// carried in mesh order, from the last axis outward, whatever mixture of
/// scatters and all_reduces does it, so that bits do not depend on `to`.
/// canMove(from, to) holds.
/// Moves name no axes of one rank.
llvm::SmallVector<Move> movesBetween(const Placement &from, const Placement &to,
                                     MeshOp mesh);

/// Bytes that a rank receives when a tensor of type `logical` makes `moves`
/// from `from`; INT64_MAX if there are more.
int64_t bytesOf(llvm::ArrayRef<Move> moves, const Placement &from,
                mlir::RankedTensorType logical, MeshOp mesh);

/// The type of this rank's part of `logical`, which `placement` fits.
mlir::RankedTensorType localType(mlir::RankedTensorType logical,
                                 const Placement &placement, MeshOp mesh);

using EmitError = llvm::function_ref<mlir::InFlightDiagnostic()>;

/// Fails, with an error, unless `placement` is one of a tensor of this rank on
/// `mesh`.
mlir::LogicalResult verifyPlacementAxes(EmitError emitError, int64_t rank,
                                        PlacementAttr placement, MeshOp mesh,
                                        bool mayBeStored);

/// The same for a logical type, whose dimensions the compute axes divide.
mlir::LogicalResult verifyPlacement(EmitError emitError,
                                    mlir::RankedTensorType logical,
                                    PlacementAttr placement, MeshOp mesh,
                                    bool mayBeStored);

/// Builds the reverse rule of `op`: a redistribution of `cotangent`, that of
/// its result, to where that of its operand lies, which is returned. `declared`
/// is the placement that the operand's parameter or buffer declares, null if it
/// is neither: for a caller that knows it. RedistributeOp::buildVjp looks
/// through all that the module declares to find it.
mlir::Value buildRedistributeVjp(mlir::OpBuilder &builder, RedistributeOp op,
                                 mlir::Value cotangent, PlacementAttr declared);

/// The axes in the order of the mesh.
void sortByMesh(AxisList &axes, MeshOp mesh);

} // namespace fsdp::dist

#endif // FSDP_DIALECTS_FSDP_PLACEMENT_H
