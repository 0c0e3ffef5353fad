//===- ExecLowerCollectives.cpp - Collectives and futures -----------------===//
#include "passes/Exec/ExecLower.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::lower;

/// Ranks that take part in a collective.
template <typename OpT> static FailureOr<int64_t> ranksOf(OpT op) {
  dist::MeshOp mesh = dist::lookupMesh(op, op.getMeshAttr());
  auto axes =
      llvm::to_vector(op.getAxes().template getAsRange<dist::AxisRefAttr>());
  int64_t ranks = mesh ? mesh.sizeOf(axes) : 0;
  if (ranks == 0)
    return op.emitOpError("refers to a mesh or an axis that the module lacks");
  return ranks;
}

/// Creates the exec.collective; `token` is set where the caller wants one.
template <typename OpT>
LogicalResult
ProgramLowering::createCollective(OpT op, exec::CollectiveKind kind,
                                  exec::Stream stream, ValueRange inputs,
                                  ValueRange outputs, ValueRange results,
                                  exec::ReduceKind reduce, Value *token) {
  MLIRContext *context = b.getContext();
  // A maximum has one value in any order, but NCCL's loses a NaN.
  bool isFast = state.fastReductions &&
                kind != exec::CollectiveKind::AllGather &&
                reduce == exec::ReduceKind::Sum;
  auto collective = exec::CollectiveOp::create(
      b, op.getLoc(), token ? exec::TokenType::get(context) : Type(),
      exec::StreamAttr::get(context, stream), inputs, outputs,
      /*workspaces=*/ValueRange(), exec::CollectiveKindAttr::get(context, kind),
      op.getMeshAttr(), op.getAxesAttr(),
      exec::ReduceKindAttr::get(context, reduce), op.getServesAttr(),
      isFast ? b.getUnitAttr() : UnitAttr());
  setMakes(collective, results,
           SmallVector<Operation *>(results.size(), op.getOperation()));
  if (token)
    *token = collective.getToken();
  return giveWorkspaces(collective, results, op);
}

/// Only the first dimension is contiguous in memory, piece by piece.
template <typename OpT> static LogicalResult verifyDim(OpT op) {
  if (op.getDim() == 0)
    return success();
  return op.emitError("only dimension 0 can be lowered yet, not ")
         << op.getDim();
}

LogicalResult ProgramLowering::lowerAllGather(dist::AllGatherOp op,
                                              exec::Stream stream,
                                              ValueRange results,
                                              Value *token) {
  FailureOr<int64_t> ranks = ranksOf(op);
  if (failed(ranks) || failed(verifyDim(op)))
    return failure();
  SmallVector<Value> inputs = buffers(op.getInputs()), written;
  for (auto [input, result] : llvm::zip(inputs, results)) {
    // Shards are equal, so the buffer may have a padded tail; the tensor is
    // its prefix.
    auto shard = cast<MemRefType>(input.getType());
    SmallVector<int64_t> shape(shard.getShape());
    shape[0] = (CheckedSize(shape[0]) * *ranks).saturated();
    MemRefType padded = MemRefType::get(shape, shard.getElementType());
    if (!exec::isBuffer(padded))
      return op.emitError("gathers ")
             << shard << " from " << *ranks
             << " ranks, which is more than 2^56 bytes";
    if (padded == memRefOf(result.getType())) {
      written.push_back(output(result, op));
      continue;
    }
    written.push_back(alloc(padded, result, op));
    held[result] = view(written.back(),
                        cast<RankedTensorType>(result.getType()).getShape());
  }
  return createCollective(op, exec::CollectiveKind::AllGather, stream, inputs,
                          written, results, exec::ReduceKind::Sum, token);
}

template <typename OpT>
LogicalResult ProgramLowering::lowerReduction(OpT op, exec::CollectiveKind kind,
                                              exec::Stream stream,
                                              ValueRange results,
                                              Value *token) {
  FailureOr<int64_t> ranks = ranksOf(op);
  if (failed(ranks))
    return failure();
  SmallVector<Value> inputs = buffers(op.getInputs()), written;
  for (Value result : results)
    written.push_back(output(result, op));
  exec::ReduceKind reduce = op.getKind() == dist::CollectiveReduce::Sum
                                ? exec::ReduceKind::Sum
                                : exec::ReduceKind::Max;
  return createCollective(op, kind, stream, inputs, written, results, reduce,
                          token);
}

LogicalResult ProgramLowering::lowerCollective(Operation *op,
                                               exec::Stream stream,
                                               ValueRange results,
                                               Value *token) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](dist::AllGatherOp o) {
        return lowerAllGather(o, stream, results, token);
      })
      .Case([&](dist::ReduceScatterOp o) -> LogicalResult {
        if (failed(verifyDim(o)))
          return failure();
        return lowerReduction(o, exec::CollectiveKind::ReduceScatter, stream,
                              results, token);
      })
      .Case([&](dist::AllReduceOp o) {
        return lowerReduction(o, exec::CollectiveKind::AllReduce, stream,
                              results, token);
      })
      .Default([](Operation *o) {
        return o->emitOpError("cannot run asynchronously");
      });
}

LogicalResult ProgramLowering::lowerShardOf(dist::ShardOfOp op) {
  if (failed(verifyDim(op)))
    return failure();
  Value whole = buffer(op.getInput());
  exec::ShardOfOp::create(
      b, op.getLoc(),
      exec::StreamAttr::get(b.getContext(), exec::Stream::Compute), whole,
      output(op.getResult(), op), /*workspaces=*/ValueRange(), op.getMeshAttr(),
      op.getAxesAttr());
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
  bool isGather = inner.getStreamRole() == dist::StreamRole::Gather;
  return lowerCollective(inner,
                         isGather ? exec::Stream::Gather : exec::Stream::Reduce,
                         await.getResults(), &tokens[op.getFuture()]);
}

LogicalResult ProgramLowering::lowerAwait(dist::AwaitOp op) {
  exec::AwaitOp::create(b, op.getLoc(), tokens.lookup(op.getFuture()));
  return success();
}
