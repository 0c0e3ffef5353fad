//===- ExecLowerLibrary.cpp - Matmuls and typed operations ----------------===//
#include "fsdp/Target/ReferenceAttentionWorkspaces.h"
#include "passes/Exec/ExecLower.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::lower;

//===----------------------------------------------------------------------===//
// Operations of the runtime
//===----------------------------------------------------------------------===//

LogicalResult ProgramLowering::giveWorkspaces(exec::RuntimeOpInterface work,
                                              ValueRange tensors,
                                              Operation *op) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(work);
  bool isList = work.getSignature().workspace == exec::BufferSpec::Kind::List;
  SmallVector<Value> spaces;
  for (auto [index, bytes] :
       llvm::enumerate(work.getWorkspaceBytes(state.target, op))) {
    if (bytes < 0 || bytes > kMaxTensorBytes)
      return op->emitError("is too large for the library of this target");
    if (bytes > 0 || isList)
      spaces.push_back(alloc(MemRefType::get({bytes}, b.getI8Type()),
                             tensors[index], op, "workspace"));
  }
  work.getWorkspacesMutable().assign(spaces);
  return success();
}

/// True if nothing that `op` says is lost: what is an attribute of it, is one
/// of the operation called `name`.
[[maybe_unused]] static bool takesAttributes(OperationName name,
                                             Operation *op) {
  return llvm::all_of(op->getName().getAttributeNames(), [&](StringAttr own) {
    return llvm::is_contained(name.getAttributeNames(), own);
  });
}

LogicalResult ProgramLowering::lowerAsRecorded(Operation *op,
                                               OperationName name) {
  assert(takesAttributes(name, op) && "lowersFrom of a record is wrong");
  OperationState work(op->getLoc(), name);
  // Inputs first: a constant among them is a launch of its own.
  SmallVector<Value> inputs = buffers(op->getOperands());
  SmallVector<Value> written = outputs(op);
  work.addOperands(inputs);
  work.addOperands(written);
  work.addAttribute("operandSegmentSizes",
                    b.getDenseI32ArrayAttr(
                        {int32_t(inputs.size()), int32_t(written.size()), 0}));
  work.addAttribute(
      "stream", exec::StreamAttr::get(b.getContext(), exec::Stream::Compute));
  for (StringAttr attribute : name.getAttributeNames())
    if (Attribute value = op->getAttr(attribute))
      work.addAttribute(attribute, value);
  auto call = cast<exec::RuntimeOpInterface>(b.create(work));
  StringRef why = exec::chooseAttention(call, state.target, state.attention);
  if (!why.empty())
    state.notePlainAttention(op, why);
  if (std::optional<rt::AttentionDesc> attention = exec::attentionOf(call);
      attention && attention->plain &&
      attention->headDim > rt::kReferenceHeadDim)
    return op->emitOpError("has heads of ")
           << attention->headDim << " elements, but attention without a "
           << "library takes at most " << rt::kReferenceHeadDim;
  return giveWorkspaces(call, op->getResults(), op);
}

static MemRefType bufferType(Value buffer) {
  return cast<MemRefType>(buffer.getType());
}

/// Elements of all but the last dimension.
static int64_t rowsOf(MemRefType type) {
  return type.getNumElements() / type.getShape().back();
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

LogicalResult ProgramLowering::gemm(Operation *op, ValueRange inputs, Value out,
                                    bool transposeLhs, bool transposeRhs) {
  auto work = exec::GemmOp::create(b, op->getLoc(), exec::Stream::Compute,
                                   inputs, out, /*workspaces=*/ValueRange(),
                                   transposeLhs, transposeRhs);
  return giveWorkspaces(work, op->getResults(), op);
}

/// All dimensions but the last as one: only here are batch and sequence
/// flattened.
Value ProgramLowering::asMatrix(Value buffer) {
  MemRefType type = bufferType(buffer);
  return view(buffer, {rowsOf(type), type.getShape().back()});
}

LogicalResult ProgramLowering::lowerLinear(nn::LinearOp op) {
  Value x = buffer(op.getInput()), w = buffer(op.getWeight());
  Value y = output(op.getResult(), op);
  SmallVector<Value> inputs = {asMatrix(x), w};
  if (op.getBias())
    inputs.push_back(buffer(op.getBias()));
  return gemm(op, inputs, asMatrix(y), /*transposeLhs=*/false,
              /*transposeRhs=*/true);
}

LogicalResult ProgramLowering::lowerLinearInputGrad(nn::LinearInputGradOp op) {
  Value dy = buffer(op.getCotangent()), w = buffer(op.getWeight());
  Value dx = output(op.getResult(), op);
  return gemm(op, {asMatrix(dy), w}, asMatrix(dx), /*transposeLhs=*/false,
              /*transposeRhs=*/false);
}

Value fsdp::lower::sumUpdatedInPlace(Value value) {
  auto op = value.getDefiningOp<nn::LinearWeightGradOp>();
  Value sum = op ? op.getSum() : Value();
  bool isOwn =
      sum && sum.hasOneUse() && sum.getDefiningOp<nn::LinearWeightGradOp>();
  return isOwn ? sum : Value();
}

LogicalResult
ProgramLowering::lowerLinearWeightGrad(nn::LinearWeightGradOp op) {
  Value dy = buffer(op.getCotangent()), x = buffer(op.getInput());
  if (!op.getSum())
    return gemm(op, {asMatrix(dy), asMatrix(x)}, output(op.getResult(), op),
                /*transposeLhs=*/true, /*transposeRhs=*/false);
  Value sum = buffer(op.getSum());
  if (sumUpdatedInPlace(op.getResult())) {
    held[op.getResult()] = sum;
  } else {
    Value kept = std::exchange(sum, output(op.getResult(), op));
    copy(op.getLoc(), kept, sum);
  }
  return gemmAdd(op, dy, x, sum, op->getResults());
}

LogicalResult ProgramLowering::gemmAdd(Operation *op, Value dy, Value x,
                                       Value sum, ValueRange tensors) {
  auto work = exec::GemmAddOp::create(
      b, op->getLoc(), exec::Stream::Compute,
      ValueRange{asMatrix(dy), asMatrix(x), sum}, sum,
      /*workspaces=*/ValueRange(), /*transposeLhs=*/true,
      /*transposeRhs=*/false);
  return giveWorkspaces(work, tensors, op);
}

LogicalResult
ProgramLowering::lowerAccumulateProduct(nn::AccumulateProductOp op) {
  exec::RangeOp range = state.lookup(op.getName());
  if (!range)
    return op.emitError("no buffer is named ") << op.getNameAttr();
  if (range.getType() != memRefOf(op.getProductType()))
    return op.emitOpError("adds ")
           << op.getProductType() << ", but this rank holds "
           << range.getType();
  return gemmAdd(op, buffer(op.getCotangent()), buffer(op.getInput()),
                 get(range), op.getCotangent());
}

LogicalResult ProgramLowering::lowerMatmul(nn::MatmulOp op) {
  SmallVector<Value> inputs = {buffer(op.getLhs()), buffer(op.getRhs())};
  return gemm(op, inputs, output(op.getResult(), op), op.getTransposeLhs(),
              op.getTransposeRhs());
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

LogicalResult ProgramLowering::lowerAdamW(nn::AdamWOp op) {
  SmallVector<Value> updated;
  SmallVector<StringAttr> produced;
  dist::OriginAttr origin = dist::originOf(op);
  for (ArrayAttr names : {op.getParameters(), op.getFirstMoments(),
                          op.getSecondMoments(), op.getCopyNames()})
    for (auto name : names.getAsRange<FlatSymbolRefAttr>()) {
      exec::RangeOp range = state.lookup(name.getValue());
      if (!range)
        return op.emitError("no parameter or buffer is named ") << name;
      updated.push_back(get(range));
      produced.push_back(
          origin ? b.getStringAttr(origin.getText() + " of " + name.getValue())
                 : StringAttr());
    }
  SmallVector<Value> inputs = updated;
  for (Value gradient : op.getGradients())
    inputs.push_back(buffer(gradient));
  for (Value scalar : {op.getLr(), op.getStep(), op.getCoefficient()})
    inputs.push_back(buffer(scalar));
  auto create = [&](auto kind) -> Operation * {
    return decltype(kind)::create(b, op.getLoc(), exec::Stream::Compute, inputs,
                                  updated, /*workspaces=*/ValueRange(),
                                  op.getBeta1(), op.getBeta2(), op.getEps(),
                                  op.getWeightDecay());
  };
  exec::setProduced(op.getCopyNames().empty() ? create(exec::AdamWOp())
                                              : create(exec::AdamWCopyOp()),
                    produced);
  return success();
}
