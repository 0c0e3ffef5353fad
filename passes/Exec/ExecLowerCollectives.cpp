//===- ExecLowerCollectives.cpp - Collectives and futures -----------------===//
#include "fsdp/Schedule/NodeLevels.h"
#include "fsdp/Target/CollectivePieces.h"
#include "passes/Exec/ExecLower.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::lower;

/// Ranks that take part in a collective.
static FailureOr<int64_t> ranksOf(dist::CollectiveOpInterface op) {
  dist::MeshOp mesh = dist::lookupMesh(op, op.getMeshAttr());
  int64_t ranks = mesh ? mesh.sizeOf(dist::axisRefs(op.getAxes())) : 0;
  if (ranks == 0)
    return op->emitOpError("refers to a mesh or an axis that the module lacks");
  return ranks;
}

/// Only the first dimension is contiguous in memory, piece by piece.
static LogicalResult verifyDim(Operation *op, std::optional<int64_t> dim) {
  if (dim.value_or(0) == 0)
    return success();
  return op->emitError("only dimension 0 can be lowered yet, not ") << *dim;
}

/// The buffer that pieces of `result` from all ranks are written to. They are
/// equal, so it may have a padded tail; the tensor is its prefix.
FailureOr<Value> ProgramLowering::joinedOutput(Value piece, Value result,
                                               int64_t ranks, Operation *op) {
  auto type = cast<MemRefType>(piece.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = (CheckedSize(shape[0]) * ranks).saturated();
  MemRefType padded = MemRefType::get(shape, type.getElementType());
  if (!exec::isBuffer(padded))
    return op->emitError("gathers ") << type << " from " << ranks
                                     << " ranks, which is more than 2^56 bytes";
  if (padded == memRefOf(result.getType()))
    return output(result, op);
  Value buffer = alloc(padded, result, op);
  held[result] =
      view(buffer, cast<RankedTensorType>(result.getType()).getShape());
  return buffer;
}

LogicalResult ProgramLowering::lowerCollective(dist::CollectiveOpInterface op,
                                               exec::Stream stream,
                                               ValueRange results,
                                               Value *token) {
  dist::CollectiveKind kind = op.getCollectiveKind();
  if (!exec::isRuntimeCollective(kind))
    return op->emitOpError(token ? "cannot run asynchronously"
                                 : "has no lowering to exec");
  FailureOr<int64_t> ranks = ranksOf(op);
  if (failed(ranks) || failed(verifyDim(op, op.getJoinedDim())) ||
      failed(verifyDim(op, op.getSplitDim())))
    return failure();
  SmallVector<Value> inputs = buffers(op->getOperands()), written;
  for (auto [input, result] : llvm::zip_equal(inputs, results)) {
    FailureOr<Value> buffer = op.getJoinedDim()
                                  ? joinedOutput(input, result, *ranks, op)
                                  : output(result, op);
    if (failed(buffer))
      return failure();
    written.push_back(*buffer);
  }
  MLIRContext *context = b.getContext();
  auto reduce = op.getReduction() == dist::CollectiveReduce::Max
                    ? exec::ReduceKind::Max
                    : exec::ReduceKind::Sum;
  // A maximum has one value in any order, but NCCL's loses a NaN.
  bool isFast = state.fastReductions && op.isReduction() &&
                reduce == exec::ReduceKind::Sum;
  FailureOr<int64_t> nodeRanks =
      nodeRanksOf(op, dist::lookupMesh(op, op.getMeshAttr()), isFast);
  if (failed(nodeRanks))
    return failure();
  auto work = exec::CollectiveOp::create(
      b, op->getLoc(), token ? exec::TokenType::get(context) : Type(),
      exec::StreamAttr::get(context, stream), inputs, written,
      /*workspaces=*/ValueRange(), dist::CollectiveKindAttr::get(context, kind),
      op.getMeshAttr(), op.getAxes(),
      exec::ReduceKindAttr::get(context, reduce), op.getServesAttr(),
      isFast ? b.getUnitAttr() : UnitAttr(),
      *nodeRanks > 1 ? b.getI64IntegerAttr(*nodeRanks) : IntegerAttr());
  SmallVector<rt::CollectiveItem> items = work.getItems();
  // Where all tensors are sent whole there is one level.
  if (!rt::hasTwoLevels(work.getDescriptor(items)))
    work.removeNodeRanksAttr();
  setProduced(work, results,
              SmallVector<Operation *>(results.size(), op.getOperation()));
  if (token)
    *token = work.getToken();
  return giveWorkspaces(work, results, op);
}

LogicalResult ProgramLowering::lowerShardOf(dist::ShardOfOp op) {
  if (failed(verifyDim(op, op.getDim())))
    return failure();
  Value whole = buffer(op.getInput());
  exec::ShardOfOp::create(
      b, op.getLoc(),
      exec::StreamAttr::get(b.getContext(), exec::Stream::Compute), whole,
      output(op.getResult(), op), /*workspaces=*/ValueRange(), op.getMeshAttr(),
      op.getAxesAttr());
  return success();
}

LogicalResult ProgramLowering::lowerRowsOfShard(dist::RowsOfShardOp op) {
  Value ids = buffer(op.getInput());
  exec::RowsOfShardOp::create(
      b, op.getLoc(),
      exec::StreamAttr::get(b.getContext(), exec::Stream::Compute), ids,
      output(op.getResult(), op), /*workspaces=*/ValueRange(), op.getMeshAttr(),
      op.getAxesAttr(), op.getClassesAttr(), op.getByRankAttr());
  return success();
}

/// An await in the body is kept by the order of the stream: nothing is lowered
/// for it, and the token of what it awaits stays without exec.await.
LogicalResult ProgramLowering::lowerAsync(dist::AsyncOp op) {
  dist::AwaitOp await;
  for (Operation *user : op.getFuture().getUsers())
    await = dyn_cast<dist::AwaitOp>(user);
  if (!await)
    return op.emitOpError("is never awaited");
  auto inner = cast<dist::InFlightOpInterface>(op.getInnerOp());
  auto collective = dyn_cast<dist::CollectiveOpInterface>(*inner);
  if (!collective)
    return inner->emitOpError("cannot run asynchronously");
  bool isGather = inner.getStreamRole() == dist::StreamRole::Gather;
  return lowerCollective(collective,
                         isGather ? exec::Stream::Gather : exec::Stream::Reduce,
                         await.getResults(), &tokens[op.getFuture()]);
}

LogicalResult ProgramLowering::lowerAwait(dist::AwaitOp op) {
  exec::AwaitOp::create(b, op.getLoc(), tokens.lookup(op.getFuture()));
  return success();
}
