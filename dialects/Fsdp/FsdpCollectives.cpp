//===- FsdpCollectives.cpp - What collectives say of themselves -----------===//
#include "dialects/Fsdp/Fsdp.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::dist;

#include "dialects/Fsdp/FsdpInterfaces.cpp.inc"

/// What a rank sends if every one of the others gets one of `ranks` equal parts
/// of `tensors`.
static int64_t bytesToOthers(TypeRange tensors, int64_t ranks) {
  CheckedSize bytes = 0;
  for (Type type : tensors)
    bytes += CheckedSize(ceilDiv(nn::bytesOf(type), ranks)) * (ranks - 1);
  return bytes.saturated();
}

CollectiveKind AllGatherOp::getCollectiveKind() {
  return CollectiveKind::Gather;
}
StreamRole AllGatherOp::getStreamRole() { return StreamRole::Gather; }
int64_t AllGatherOp::getWireBytes(int64_t ranks) {
  return bytesToOthers(getResultTypes(), ranks);
}

CollectiveKind ReduceScatterOp::getCollectiveKind() {
  return CollectiveKind::Reduction;
}
StreamRole ReduceScatterOp::getStreamRole() { return StreamRole::Reduce; }
int64_t ReduceScatterOp::getWireBytes(int64_t ranks) {
  return bytesToOthers(getOperandTypes(), ranks);
}

// A reduce_scatter, whose sums then travel wide.
CollectiveKind AllReduceOp::getCollectiveKind() {
  return CollectiveKind::Reduction;
}
StreamRole AllReduceOp::getStreamRole() { return StreamRole::Reduce; }
int64_t AllReduceOp::getWireBytes(int64_t ranks) {
  return (CheckedSize(bytesToOthers(getOperandTypes(), ranks)) +
          bytesToOthers(getResultTypes(), ranks))
      .saturated();
}

CollectiveKind AllToAllOp::getCollectiveKind() {
  return CollectiveKind::Exchange;
}
StreamRole AllToAllOp::getStreamRole() { return StreamRole::Gather; }
int64_t AllToAllOp::getWireBytes(int64_t ranks) {
  return bytesToOthers(getOperandTypes(), ranks);
}
