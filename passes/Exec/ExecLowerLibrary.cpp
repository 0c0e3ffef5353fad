//===- ExecLowerLibrary.cpp - Matmuls and typed operations ----------------===//
#include "passes/Exec/ExecLower.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::lower;

void ProgramLowering::invoke(Location loc, StringRef callee, ValueRange inputs,
                             ValueRange outputs, ValueRange workspaces,
                             Params params) {
  SmallVector<NamedAttribute> named;
  for (auto [name, value] : params)
    named.push_back(b.getNamedAttr(name, value));
  exec::InvokeOp::create(
      b, loc, b.getStringAttr(callee),
      exec::StreamAttr::get(b.getContext(), exec::Stream::Compute), inputs,
      outputs, workspaces,
      named.empty() ? DictionaryAttr() : b.getDictionaryAttr(named));
}

static MemRefType typeOf(Value buffer) {
  return cast<MemRefType>(buffer.getType());
}

/// Elements of all but the last dimension.
static int64_t rowsOf(MemRefType type) {
  return type.getNumElements() / type.getShape().back();
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

static rt::GemmDesc describeGemm(ValueRange inputs, Value out,
                                 bool transposeLhs, bool transposeRhs) {
  MemRefType lhs = typeOf(inputs[0]), result = typeOf(out);
  int64_t rank = lhs.getRank();
  rt::GemmDesc desc;
  desc.m = result.getDimSize(rank - 2);
  desc.n = result.getDimSize(rank - 1);
  desc.k = lhs.getDimSize(transposeLhs ? rank - 2 : rank - 1);
  desc.batch = result.getNumElements() / (desc.m * desc.n);
  desc.transposeLhs = transposeLhs;
  desc.transposeRhs = transposeRhs;
  desc.bias = inputs.size() == 3;
  desc.in = dtypeOf(lhs.getElementType());
  desc.out = dtypeOf(result.getElementType());
  return desc;
}

LogicalResult ProgramLowering::gemm(Operation *op, ValueRange inputs, Value out,
                                    bool transposeLhs, bool transposeRhs) {
  rt::GemmDesc desc = describeGemm(inputs, out, transposeLhs, transposeRhs);
  FailureOr<SmallVector<Value>> scratch =
      workspace(state.target.gemmWorkspaceBytes(desc), op);
  if (failed(scratch))
    return failure();
  exec::GemmOp::create(b, op->getLoc(), exec::Stream::Compute, inputs, out,
                       *scratch, transposeLhs, transposeRhs);
  return success();
}

/// All dimensions but the last as one: only here are batch and sequence
/// flattened.
Value ProgramLowering::asMatrix(Value buffer) {
  MemRefType type = typeOf(buffer);
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

LogicalResult
ProgramLowering::lowerLinearWeightGrad(nn::LinearWeightGradOp op) {
  Value dy = buffer(op.getCotangent()), x = buffer(op.getInput());
  Value dw = output(op.getResult(), op);
  return gemm(op, {asMatrix(dy), asMatrix(x)}, dw, /*transposeLhs=*/true,
              /*transposeRhs=*/false);
}

LogicalResult ProgramLowering::lowerMatmul(nn::MatmulOp op) {
  SmallVector<Value> inputs = {buffer(op.getLhs()), buffer(op.getRhs())};
  return gemm(op, inputs, output(op.getResult(), op), op.getTransposeLhs(),
              op.getTransposeRhs());
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

static rt::AttentionDesc describeAttention(Value q, Value k, double scale,
                                           bool causal) {
  MemRefType query = typeOf(q), key = typeOf(k);
  rt::AttentionDesc desc;
  desc.batch = query.getDimSize(0);
  desc.qLen = query.getDimSize(1);
  desc.kvLen = key.getDimSize(1);
  desc.heads = query.getDimSize(2);
  desc.kvHeads = key.getDimSize(2);
  desc.headDim = query.getDimSize(3);
  desc.scale = scale;
  desc.causal = causal;
  desc.type = dtypeOf(query.getElementType());
  return desc;
}

LogicalResult ProgramLowering::lowerAttention(nn::AttentionOp op) {
  SmallVector<Value> inputs = buffers(op->getOperands());
  double scale = op.getScale().convertToDouble();
  rt::AttentionDesc desc =
      describeAttention(inputs[0], inputs[1], scale, op.getCausal());
  SmallVector<Value> written = outputs(op);
  FailureOr<SmallVector<Value>> scratch =
      workspace(state.target.attentionWorkspaceBytes(desc), op);
  if (failed(scratch))
    return failure();
  invoke(op.getLoc(), "attention", inputs, written, *scratch,
         {{"scale", op.getScaleAttr()},
          {"causal", b.getBoolAttr(op.getCausal())}});
  return success();
}

LogicalResult ProgramLowering::lowerAttentionGrad(nn::AttentionGradOp op) {
  SmallVector<Value> inputs = buffers(op->getOperands());
  double scale = op.getScale().convertToDouble();
  rt::AttentionDesc desc =
      describeAttention(inputs[0], inputs[1], scale, op.getCausal());
  SmallVector<Value> written = outputs(op);
  FailureOr<SmallVector<Value>> scratch =
      workspace(state.target.attentionGradWorkspaceBytes(desc), op);
  if (failed(scratch))
    return failure();
  invoke(op.getLoc(), "attention_grad", inputs, written, *scratch,
         {{"scale", op.getScaleAttr()},
          {"causal", b.getBoolAttr(op.getCausal())}});
  return success();
}

LogicalResult ProgramLowering::lowerRotary(nn::RotaryOp op) {
  invoke(op.getLoc(), "rotary", buffers(op->getOperands()), outputs(op), {},
         {{"halves", b.getBoolAttr(op.getPairs() == nn::RotaryPairs::Halves)},
          {"inverse", b.getBoolAttr(op.getInverse())}});
  return success();
}

//===----------------------------------------------------------------------===//
// Embedding, loss, transpose
//===----------------------------------------------------------------------===//

LogicalResult ProgramLowering::lowerEmbedding(nn::EmbeddingOp op) {
  invoke(op.getLoc(), "embedding", buffers(op->getOperands()), outputs(op));
  return success();
}

LogicalResult ProgramLowering::lowerEmbeddingGrad(nn::EmbeddingGradOp op) {
  SmallVector<Value> inputs = buffers(op->getOperands());
  Value out = output(op.getResult(), op);
  MemRefType table = typeOf(out);
  int64_t bytes = state.target.embeddingGradWorkspaceBytes(
      dtypeOf(table.getElementType()), table.getDimSize(0),
      table.getDimSize(1));
  FailureOr<SmallVector<Value>> scratch = workspace(bytes, op);
  if (failed(scratch))
    return failure();
  invoke(op.getLoc(), "embedding_grad", inputs, out, *scratch);
  return success();
}

/// Operations whose only parameter is `ignore_index`.
template <typename OpTy>
LogicalResult ProgramLowering::lowerLabels(OpTy op, StringRef callee) {
  invoke(op.getLoc(), callee, buffers(op->getOperands()), outputs(op), {},
         {{"ignore_index", op.getIgnoreIndexAttr()}});
  return success();
}

LogicalResult ProgramLowering::lowerCrossEntropy(nn::CrossEntropyOp op) {
  return lowerLabels(op, "cross_entropy");
}

LogicalResult
ProgramLowering::lowerCrossEntropyGrad(nn::CrossEntropyGradOp op) {
  return lowerLabels(op, "cross_entropy_grad");
}

LogicalResult ProgramLowering::lowerCountLabels(nn::CountLabelsOp op) {
  return lowerLabels(op, "count_labels");
}

LogicalResult ProgramLowering::lowerTranspose(nn::TransposeOp op) {
  invoke(op.getLoc(), "transpose", buffer(op.getInput()),
         output(op.getResult(), op), {},
         {{"permutation", op.getPermutationAttr()}});
  return success();
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

LogicalResult ProgramLowering::lowerAbsMax(nn::AbsMaxOp op) {
  invoke(op.getLoc(), "abs_max", buffers(op->getOperands()), outputs(op));
  return success();
}

LogicalResult ProgramLowering::lowerSumSquares(nn::SumSquaresOp op) {
  invoke(op.getLoc(), "sum_squares", buffers(op->getOperands()), outputs(op));
  return success();
}

LogicalResult ProgramLowering::lowerClipCoefficient(nn::ClipCoefficientOp op) {
  invoke(op.getLoc(), "clip_coefficient", buffers(op->getOperands()),
         outputs(op), {}, {{"max_norm", op.getMaxNormAttr()}});
  return success();
}

LogicalResult ProgramLowering::lowerAdamW(nn::AdamWOp op) {
  SmallVector<Value> updated;
  for (ArrayAttr names :
       {op.getParameters(), op.getFirstMoments(), op.getSecondMoments()})
    for (auto name : names.getAsRange<FlatSymbolRefAttr>()) {
      exec::RangeOp range = state.lookup(name.getValue());
      if (!range)
        return op.emitError("no parameter or buffer is named ") << name;
      updated.push_back(get(range));
    }
  SmallVector<Value> inputs = updated;
  for (Value gradient : op.getGradients())
    inputs.push_back(buffer(gradient));
  for (Value scalar : {op.getLr(), op.getStep(), op.getCoefficient()})
    inputs.push_back(buffer(scalar));
  invoke(op.getLoc(), "adamw", inputs, updated, {},
         {{"beta1", op.getBeta1Attr()},
          {"beta2", op.getBeta2Attr()},
          {"eps", op.getEpsAttr()},
          {"weight_decay", op.getWeightDecayAttr()}});
  return success();
}
