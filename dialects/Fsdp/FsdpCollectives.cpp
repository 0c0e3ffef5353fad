//===- FsdpCollectives.cpp - What collectives say of themselves -----------===//
#include "dialects/Fsdp/Fsdp.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::dist;

#include "dialects/Fsdp/FsdpInterfaces.cpp.inc"

StringRef fsdp::dist::firstParameterOf(Operation *op) {
  auto parameters = op->getAttrOfType<ArrayAttr>(kParametersAttr);
  if (!parameters || parameters.empty())
    return {};
  auto first = dyn_cast<FlatSymbolRefAttr>(parameters[0]);
  return first ? first.getValue() : StringRef();
}

ShardOfOp fsdp::dist::regatheredShardOf(Operation *gather) {
  if (isa<AllGatherOp>(gather) && gather->getNumResults() == 1)
    for (Operation *user : gather->getUsers())
      if (auto shard = dyn_cast<ShardOfOp>(user);
          shard && shard.getRegathered())
        return shard;
  return {};
}

/// What a rank sends if every one of the others gets one of `ranks` equal parts
/// of `tensors`.
static int64_t bytesToOthers(TypeRange tensors, int64_t ranks) {
  CheckedSize bytes = 0;
  for (Type type : tensors)
    bytes += CheckedSize(ceilDiv(nn::bytesOf(type), ranks)) * (ranks - 1);
  return bytes.saturated();
}

CollectiveLayout fsdp::dist::layoutOf(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllGather:
    return {/*combines=*/false, /*joins=*/true, /*splits=*/false};
  case CollectiveKind::ReduceScatter:
    return {/*combines=*/true, /*joins=*/false, /*splits=*/true};
  case CollectiveKind::AllReduce:
    return {/*combines=*/true, /*joins=*/false, /*splits=*/false};
  case CollectiveKind::AllToAll:
    return {/*combines=*/false, /*joins=*/true, /*splits=*/true};
  }
  llvm_unreachable("a collective");
}

// Pieces are combined or split where they arrive; what everybody then has whole
// travels as it is, of a sum in its wider type.
int64_t fsdp::dist::wireBytesOf(CollectiveKind kind, TypeRange operands,
                                TypeRange results, int64_t ranks) {
  CollectiveLayout layout = layoutOf(kind);
  CheckedSize bytes = 0;
  if (layout.combines || layout.splits)
    bytes += bytesToOthers(operands, ranks);
  if (!layout.splits)
    bytes += bytesToOthers(results, ranks);
  return bytes.saturated();
}
