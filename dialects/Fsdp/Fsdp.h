//===- Fsdp.h - The fsdp dialect --------------------------------*- C++ -*-===//
//
// Where a tensor lives and moves: mesh, placements, collectives, futures.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DIALECTS_FSDP_FSDP_H
#define FSDP_DIALECTS_FSDP_FSDP_H

#include "dialects/Fsdp/Origin.h"
#include "dialects/NN/NN.h"
#include "fsdp/Config/MeshOption.h"

namespace fsdp::dist {

/// Discardable attribute of nn.parameter / nn.buffer, and of a program's
/// arguments and results: where it lives.
inline constexpr llvm::StringLiteral kPlacementAttr = "fsdp.placement";
/// Discardable unit attribute of a program: its types are those of a rank's
/// parts, where #fsdp.placement says of which.
inline constexpr llvm::StringLiteral kLocalAttr = "fsdp.local";
/// Module attribute: the schedule plan in force (an array of rules, see
/// include/fsdp/Schedule/Plan.h).
inline constexpr llvm::StringLiteral kPlanAttr = "fsdp.plan";
/// Discardable attribute of a collective: the symbols of the parameters
/// that it moves, one per operand, in order. Set by fsdp-expand, kept by
/// fsdp-bucket.
inline constexpr llvm::StringLiteral kParametersAttr = "fsdp.parameters";

/// Discardable attribute of an op that a plan can name: a #fsdp.origin, whose
/// words are the op's address, see include/fsdp/Schedule/Address.h. Set by
/// fsdp-address.
inline constexpr llvm::StringLiteral kOriginAttr = "fsdp.origin";
/// Discardable attribute of a collective that fsdp-bucket made: the origins of
/// those that it carries, one per operand, in order.
inline constexpr llvm::StringLiteral kMembersAttr = "fsdp.members";
/// Discardable attribute of an op that something can be decided about: a
/// #fsdp.decision, see dialects/Fsdp/Decision.h. Set by fsdp-plan.
inline constexpr llvm::StringLiteral kDecisionAttr = "fsdp.decision";
/// Discardable attribute of programs and of their module: digests of what they
/// compute and of what stands around them, see fsdp/Schedule/SemanticDigest.h.
/// Its name in IR is older than the term.
inline constexpr llvm::StringLiteral kSemanticDigestAttr = "fsdp.outcome";
/// Discardable attribute of a module whose plan has been applied: the settings
/// that lowering it to exec needs, by name, as texts. fsdp-compile writes it on
/// the schedules that it prints.
inline constexpr llvm::StringLiteral kLoweringAttr = "fsdp.lowering";

/// Elements of one of `parts` shards of `size`: ceil(size / parts).
inline int64_t shardSize(int64_t size, int64_t parts) {
  return ceilDiv(size, parts);
}

class AxisRefAttr;
struct Decision; // dialects/Fsdp/Decision.h

/// The stream that something in flight runs on, beside compute.
enum class StreamRole { Gather, Reduce };

} // namespace fsdp::dist

namespace fsdp {

/// `custom<Axes>`: `["dp_shard", "dp_replicate":(1)2]`. In the outer namespace
/// because the ops of both fsdp and exec are printed with it.
mlir::ParseResult parseAxes(mlir::OpAsmParser &parser, mlir::ArrayAttr &axes);
void printAxes(mlir::OpAsmPrinter &printer, mlir::Operation *op,
               mlir::ArrayAttr axes);

/// `custom<MeshAxes>`: `["dp_shard" = 4 : data, "x" = 2]`.
mlir::ParseResult parseMeshAxes(mlir::OpAsmParser &parser,
                                mlir::ArrayAttr &axes);
void printMeshAxes(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                   mlir::ArrayAttr axes);

} // namespace fsdp

#include "dialects/Fsdp/FsdpDialect.h.inc"
#include "dialects/Fsdp/FsdpEnums.h.inc"

namespace fsdp::dist {

/// What a kind of collective does to a tensor that every rank has, in this
/// order. Whoever lowers, computes, classifies or emits a collective asks this.
struct CollectiveLayout {
  bool combines; ///< adds up those of all ranks, or takes the maximum
  bool joins;    ///< concatenates those of all ranks
  bool splits;   ///< leaves each rank its part
};
CollectiveLayout layoutOf(CollectiveKind kind);

/// Every rank gets what all ranks have.
inline bool isGather(CollectiveKind kind) {
  CollectiveLayout layout = layoutOf(kind);
  return layout.joins && !layout.splits;
}
inline bool isReduction(CollectiveKind kind) { return layoutOf(kind).combines; }

/// Bytes that one of `ranks` ranks sends to others in a collective of `kind`;
/// INT64_MAX if there are more.
int64_t wireBytesOf(CollectiveKind kind, mlir::TypeRange operands,
                    mlir::TypeRange results, int64_t ranks);

} // namespace fsdp::dist

#define GET_ATTRDEF_CLASSES
#include "dialects/Fsdp/FsdpAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Fsdp/FsdpInterfaces.h.inc"
#include "dialects/Fsdp/FsdpTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/Fsdp/FsdpOps.h.inc"

namespace fsdp::dist {

/// The first parameter that a collective moves; empty if none.
llvm::StringRef firstParameterOf(mlir::Operation *op);

/// The shard of what `gather` gives from which the backward pass gathers it
/// again; null if it does so as the forward pass.
ShardOfOp regatheredShardOf(mlir::Operation *gather);

/// What fsdp.origin of `op` says; null if it has none.
OriginAttr originOf(mlir::Operation *op);

/// What is all of a path in each of `origins`, as one: with a star where the
/// paths differ. Null if the phases do.
OriginAttr commonOrigin(llvm::ArrayRef<OriginAttr> origins);

inline mlir::RankedTensorType tensorOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

/// The elements of an op's `axes` attribute.
llvm::SmallVector<AxisRefAttr> axisRefs(mlir::ArrayAttr axes);

/// Whether each of `axes` is one of `all`, or a part of a whole axis that is.
bool areWithin(mlir::ArrayAttr axes, mlir::ArrayAttr all);

/// Whether two references name ranks of one axis that are not independent: a
/// coordinate along one then fixes part of the other's.
///
///   "a"        "a":(1)2   true: the whole axis
///   "a":(1)2   "a":(1)4   true: both begin at the slowest ranks
///   "a":(1)4   "a":(2)4   true: both have the middle
///   "a":(1)2   "a":(2)4   false: the second is what the first leaves
///   "a":(1)2   "a":(3)2   true: no one split of the axis has both
///   "a"        "b"        false
bool overlap(AxisRefAttr a, AxisRefAttr b);

/// `axes` as the attribute of a collective.
mlir::ArrayAttr axesAttr(mlir::MLIRContext *context,
                         llvm::ArrayRef<AxisRefAttr> axes);

/// The mesh that `name` refers to, seen from `from`; null if there is none.
MeshOp lookupMesh(mlir::Operation *from, mlir::FlatSymbolRefAttr name);

/// Emits an error and fails unless `mesh` exists and has every one of `axes`,
/// no two of them overlap, and at most kMaxCollectiveAxes have more than one
/// rank. `symbols` may be null (uncached lookup). On success gives the mesh.
mlir::FailureOr<MeshOp>
verifyMeshAxes(mlir::Operation *op, mlir::FlatSymbolRefAttr mesh,
               mlir::ArrayAttr axes,
               mlir::SymbolTableCollection *symbols = nullptr);

} // namespace fsdp::dist

#endif // FSDP_DIALECTS_FSDP_FSDP_H
