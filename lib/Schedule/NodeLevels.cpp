//===- NodeLevels.cpp - Which sums are made in two levels -----------------===//
#include "fsdp/Schedule/NodeLevels.h"
#include "dialects/Exec/RuntimeOps.h"
#include "fsdp/Target/CollectivePieces.h"

using namespace mlir;
using namespace fsdp;

/// Whether the runtime sends all of its tensors whole.
static bool isSmall(dist::CollectiveOpInterface op) {
  rt::CollectiveDesc desc = {};
  desc.kind = static_cast<rt::CollectiveKind>(op.getCollectiveKind());
  desc.in = exec::dtypeOf(getElementTypeOrSelf(op->getOperand(0)));
  return desc.kind == rt::CollectiveKind::AllReduce &&
         llvm::all_of(op->getOperandTypes(), [&](Type type) {
           return rt::isSmall(desc, cast<ShapedType>(type).getNumElements());
         });
}

FailureOr<int64_t> fsdp::nodeRanksOf(dist::CollectiveOpInterface op,
                                     dist::MeshOp mesh, bool isFast) {
  if (isFast || op.getReduction() != dist::CollectiveReduce::Sum ||
      !getElementTypeOrSelf(op->getResult(0)).isF32())
    return 0;
  SmallVector<dist::AxisRefAttr> axes = dist::axisRefs(op.getAxes());
  int64_t ranks = mesh.sizeOf(axes);
  if (std::optional<int64_t> inNode = mesh.ranksInNode(axes))
    return *inNode > 1 && *inNode < ranks ? *inNode : 0;
  if (isSmall(op))
    return 0;
  return op->emitOpError("adds over ")
         << ranks << " ranks in a fixed order, which nodes of "
         << mesh.getNodeSize()
         << " ranks (parallelism.node_size) have no part of: along an axis of "
            "the mesh, nodes have a power of two of consecutive ranks, or all; "
            "state another size, or none for sums in one level";
}
