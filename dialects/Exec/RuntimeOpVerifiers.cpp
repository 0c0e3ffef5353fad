//===- RuntimeOpVerifiers.cpp - What shapes by names do not say -----------===//
//
// Descriptors of runtime operations, and the constraints that the records of
// ExecRuntimeOps.td leave to code.
//
//===----------------------------------------------------------------------===//
#include "dialects/Exec/Exec.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::exec;

static MemRefType typeOf(Value buffer) {
  return cast<MemRefType>(buffer.getType());
}

//===----------------------------------------------------------------------===//
// exec.gemm and exec.gemm_add
//===----------------------------------------------------------------------===//

/// Rows and columns of a matmul operand after its transposition.
static std::pair<int64_t, int64_t> matrixShape(MemRefType type,
                                               bool transposed) {
  ArrayRef<int64_t> shape = type.getShape();
  int64_t rows = shape[shape.size() - 2], cols = shape.back();
  return transposed ? std::make_pair(cols, rows) : std::make_pair(rows, cols);
}

/// Of a product, without what else it adds.
template <typename OpT> static rt::GemmDesc describeProduct(OpT op) {
  MemRefType lhs = typeOf(op.getInputs()[0]), out = typeOf(op.getOutputs()[0]);
  rt::GemmDesc desc{};
  std::tie(desc.m, desc.n) = matrixShape(out, false);
  desc.k = matrixShape(lhs, op.getTransposeLhs()).second;
  desc.batch = out.getNumElements() / (desc.m * desc.n);
  desc.transposeLhs = op.getTransposeLhs();
  desc.transposeRhs = op.getTransposeRhs();
  desc.in = dtypeOf(lhs.getElementType());
  desc.out = dtypeOf(out.getElementType());
  for (Value workspace : op.getWorkspaces())
    desc.workspace = bytesOf(typeOf(workspace));
  return desc;
}

template <typename OpT> static LogicalResult verifyProduct(OpT op) {
  MemRefType lhs = typeOf(op.getInputs()[0]), rhs = typeOf(op.getInputs()[1]);
  MemRefType out = typeOf(op.getOutputs()[0]);
  if (lhs.getRank() < 2 || lhs.getRank() != rhs.getRank() ||
      lhs.getRank() != out.getRank()) // 6
    return op.emitOpError("needs operands of equal rank, at least 2");
  auto [m, k] = matrixShape(lhs, op.getTransposeLhs());
  auto [rhsK, n] = matrixShape(rhs, op.getTransposeRhs());
  auto [outM, outN] = matrixShape(out, false);
  auto batch = [](MemRefType type) { return type.getShape().drop_back(2); };
  if (k != rhsK || m != outM || n != outN || batch(lhs) != batch(rhs) ||
      batch(lhs) != batch(out)) // 6
    return op.emitOpError("has shapes that do not agree: ")
           << lhs << " times " << rhs << " gives " << out;
  return success();
}

rt::GemmDesc GemmOp::getDescriptor() {
  rt::GemmDesc desc = describeProduct(*this);
  desc.bias = getInputs().size() == 3;
  return desc;
}

LogicalResult GemmOp::verify() {
  if (failed(verifyProduct(*this)))
    return failure();
  if (getInputs().size() < 3)
    return success();
  MemRefType bias = typeOf(getInputs()[2]);
  int64_t columns = typeOf(getOutputs()[0]).getShape().back();
  if (bias.getRank() != 1 || bias.getDimSize(0) != columns) // 7
    return emitOpError("needs a bias of shape [")
           << columns << "], got " << bias;
  return success();
}

rt::GemmDesc GemmAddOp::getDescriptor() {
  rt::GemmDesc desc = describeProduct(*this);
  desc.accumulate = true;
  return desc;
}

LogicalResult GemmAddOp::verify() { return verifyProduct(*this); } // 6

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Of attention and of its gradient, whose buffers have the same names.
template <typename OpT> static rt::AttentionDesc describeAttention(OpT op) {
  rt::AttentionDesc desc;
  desc.batch = sizeOf(op, "batch");
  desc.qLen = sizeOf(op, "qLen");
  desc.kvLen = sizeOf(op, "kvLen");
  desc.heads = sizeOf(op, "heads");
  desc.kvHeads = sizeOf(op, "kvHeads");
  desc.headDim = sizeOf(op, "headDim");
  desc.scale = op.getScale().convertToDouble();
  desc.causal = op.getCausal();
  desc.type = dtypeOf(elementOf(op, "q"));
  desc.plain = op.getPlain();
  int64_t window = op.getWindow().value_or(0);
  desc.window = window < desc.kvLen ? window : 0;
  desc.cap = op.getCap() ? op.getCap()->convertToDouble() : 0;
  desc.starts = bool(bufferOf(op, "starts"));
  return desc;
}

rt::AttentionDesc AttentionOp::getDescriptor() {
  return describeAttention(*this);
}

rt::AttentionDesc AttentionGradOp::getDescriptor() {
  rt::AttentionDesc desc = describeAttention(*this);
  desc.fast = getFast();
  return desc;
}

std::optional<rt::AttentionDesc> fsdp::exec::attentionOf(Operation *op) {
  using Result = std::optional<rt::AttentionDesc>;
  return TypeSwitch<Operation *, Result>(op)
      .Case<AttentionOp, AttentionGradOp>(
          [](auto attention) { return attention.getDescriptor(); })
      .Default(std::nullopt);
}

template <typename OpT> static LogicalResult verifyAttention(OpT op) {
  // 6.
  int64_t heads = sizeOf(op, "heads"), kvHeads = sizeOf(op, "kvHeads");
  if (heads % kvHeads != 0)
    return op.emitOpError("has ") << heads << " heads, which " << kvHeads
                                  << " key heads do not divide";
  // 7.
  std::optional<int64_t> window = op.getWindow();
  if (window && !op.getCausal())
    return op.emitOpError("has a window, which needs 'causal'");
  if (int64_t queries = sizeOf(op, "qLen"), keys = sizeOf(op, "kvLen");
      window && queries != keys)
    return op.emitOpError("has a window over ")
           << queries << " queries and " << keys << " keys, which differ";
  if (window && *window < 1)
    return op.emitOpError("has a window of ")
           << *window << " keys; it needs 1 or more";
  // 8.
  if (std::optional<APFloat> cap = op.getCap();
      cap && (!cap->isFinite() || cap->isNegative() || cap->isZero()))
    return op.emitOpError("has a cap that is not positive and finite");
  // 9.
  if (bufferOf(op, "starts") && !op.getCausal())
    return op.emitOpError("has starts of documents, which need 'causal'");
  return success();
}

LogicalResult AttentionOp::verify() { return verifyAttention(*this); }
LogicalResult AttentionGradOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  if (getFast() && getPlain()) // 10
    return emitOpError("is 'fast' and 'plain'; the reference attention adds in "
                       "one order");
  return success();
}

LogicalResult CountLabelsOp::verify() {
  MemRefType targets = typeOf(getInputs()[0]), counts = typeOf(getOutputs()[0]);
  int64_t parts = counts.getNumElements();
  if (parts == 0 || targets.getNumElements() % parts != 0) // 6
    return emitOpError("cannot split ")
           << targets << " into " << parts << " equal parts";
  return success();
}

/// Of exec.split_heads and exec.join_heads.
static LogicalResult verifyHeads(Operation *op, int64_t all, int64_t heads,
                                 int64_t kvHeads) {
  if (all != heads + 2 * kvHeads) // 6
    return op->emitOpError("has ")
           << all << " heads, but its parts have " << heads + 2 * kvHeads;
  return success();
}

LogicalResult SplitHeadsOp::verify() {
  return verifyHeads(*this, sizeOf(*this, "allHeads"), sizeOf(*this, "heads"),
                     sizeOf(*this, "kvHeads"));
}

LogicalResult JoinHeadsOp::verify() {
  return verifyHeads(*this, sizeOf(*this, "allHeads"), sizeOf(*this, "heads"),
                     sizeOf(*this, "kvHeads"));
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

LogicalResult TransposeOp::verify() {
  ArrayRef<int64_t> order = getPermutation();
  MemRefType in = typeOf(getInputs()[0]), out = typeOf(getOutputs()[0]);
  if (int64_t(order.size()) != in.getRank() || !isPermutationVector(order)) // 6
    return emitOpError("needs a permutation of the ")
           << in.getRank() << " dimensions of " << in << ", got ["
           << llvm::interleaved(order) << "]";
  auto shape = llvm::map_to_vector(
      order, [&](int64_t dimension) { return in.getDimSize(dimension); });
  if (out.getShape() != ArrayRef(shape)) // 7
    return emitOpError("must produce ")
           << in.clone(shape) << " from " << in << ", not " << out;
  return success();
}

LogicalResult CopyBoxOp::verify() {
  ArrayRef<int64_t> box = getShape();
  auto fits = [&](MemRefType type, ArrayRef<int64_t> offsets) {
    ArrayRef<int64_t> shape = type.getShape();
    if (shape.size() != box.size() || shape.size() != offsets.size())
      return false;
    for (auto [size, part, offset] : llvm::zip(shape, box, offsets))
      if (part < 0 || offset < 0 || part > size || offset > size - part)
        return false;
    return true;
  };
  MemRefType in = typeOf(getInputs()[0]), out = typeOf(getOutputs()[0]);
  if (!fits(in, getInOffsets()) || !fits(out, getOutOffsets())) // 6
    return emitOpError("the box is not inside ") << in << " and " << out;
  return success();
}

/// `type` split into `parts` parts along dimension 0; null if it has none.
static MemRefType partOf(MemRefType type, int64_t parts) {
  if (type.getRank() == 0)
    return {};
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = fsdp::dist::shardSize(shape[0], parts);
  return type.clone(shape);
}

LogicalResult ShardOfOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<dist::MeshOp> mesh =
      dist::verifyMeshAxes(*this, getMeshAttr(), getAxes(), &symbols); // 6
  if (failed(mesh))
    return failure();
  MemRefType whole = typeOf(getInputs()[0]), part = typeOf(getOutputs()[0]);
  int64_t parts = mesh->sizeOf(dist::axisRefs(getAxes()));
  if (part != partOf(whole, parts)) // 7
    return emitOpError("cannot produce ")
           << part << " as one of " << parts << " shards of " << whole;
  return success();
}

LogicalResult RowsOfShardOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<dist::MeshOp> mesh =
      dist::verifyMeshAxes(*this, getMeshAttr(), getAxes(), &symbols); // 6
  if (failed(mesh))
    return failure();
  if (getClasses() < 1) // 7
    return emitOpError("needs a table of rows, got ") << getClasses();
  int64_t ranks = mesh->sizeOf(dist::axisRefs(getAxes()));
  if (getByRank() && sizeOf(*this, "count") % ranks != 0) // 8
    return emitOpError("cannot split ")
           << sizeOf(*this, "count") << " numbers over " << ranks << " ranks";
  return success();
}

//===----------------------------------------------------------------------===//
// exec.clip_coefficient
//===----------------------------------------------------------------------===//

LogicalResult ClipCoefficientOp::verify() {
  if (sizeOf(*this, "digits") % 2 != 0) // 6
    return emitOpError("needs pairs of digits in sum, got ")
           << typeOf(getInputs()[1]);
  return success();
}

//===----------------------------------------------------------------------===//
// exec.collective
//===----------------------------------------------------------------------===//

bool exec::isRuntimeCollective(dist::CollectiveKind kind) {
  return static_cast<size_t>(kind) < std::size(rt::kCollectiveNames);
}

SmallVector<rt::CollectiveItem> CollectiveOp::getItems() {
  SmallVector<rt::CollectiveItem> items;
  for (auto [input, output] : llvm::zip(getInputs(), getOutputs())) {
    int64_t in = typeOf(input).getNumElements();
    int64_t out = typeOf(output).getNumElements();
    bool gathers = dist::isGather(getKind());
    items.push_back({gathers ? in : out, gathers ? out : in});
  }
  return items;
}

rt::CollectiveDesc
CollectiveOp::getDescriptor(ArrayRef<rt::CollectiveItem> items) {
  rt::CollectiveDesc desc = {};
  // The runtime, which knows no MLIR, numbers its kinds alike.
  assert(isRuntimeCollective(getKind()) && "is verified");
  desc.kind = static_cast<rt::CollectiveKind>(getKind());
  desc.reduce = getReduce() == ReduceKind::Sum ? rt::ReduceKind::Sum
                                               : rt::ReduceKind::Max;
  desc.in = dtypeOf(typeOf(getInputs()[0]).getElementType());
  desc.out = dtypeOf(typeOf(getOutputs()[0]).getElementType());
  desc.items = items.size();
  desc.item = items.data();
  desc.fast = getFast();
  desc.nodeRanks = static_cast<int32_t>(getNodeRanks().value_or(0));
  return desc;
}

SmallVector<int64_t>
CollectiveOp::getWorkspaceBytes(const WorkspaceSizes &sizes, Operation *scope) {
  if (!dist::isReduction(getKind()))
    return {};
  dist::MeshOp mesh = dist::lookupMesh(scope, getMeshAttr());
  int64_t ranks = mesh.sizeOf(dist::axisRefs(getAxes()));
  SmallVector<rt::CollectiveItem> items = getItems();
  rt::CollectiveDesc desc = getDescriptor(items);
  SmallVector<int64_t> bytes;
  for (size_t item = 0; item < items.size(); ++item)
    bytes.push_back(sizes.collectiveWorkspaceBytes(desc, item, ranks));
  return bytes;
}

/// What a reduction can do: see the runtime's README.
static bool canReduce(CollectiveOp op, Type in, Type out) {
  bool sums = op.getReduce() == ReduceKind::Sum;
  if (in.isInteger(64))
    return out == in && sums;
  return out.isF32() && (in.isF32() || (in.isBF16() && sums));
}

LogicalResult CollectiveOp::verify() {
  if (!isRuntimeCollective(getKind())) // 9
    return emitOpError("of kind ") << stringifyCollectiveKind(getKind())
                                   << " has no function in the runtime";
  bool reduces = dist::isReduction(getKind());
  size_t expected = reduces ? getInputs().size() : 0;
  if (getWorkspaces().size() != expected) // 3
    return emitOpError("of kind ")
           << stringifyCollectiveKind(getKind()) << " takes " << expected
           << " workspaces, but has " << getWorkspaces().size();
  Type in = typeOf(getInputs()[0]).getElementType();
  Type out = typeOf(getOutputs()[0]).getElementType();
  if (reduces ? !canReduce(*this, in, out) : in != out) { // 5
    InFlightDiagnostic diagnostic = emitOpError()
                                    << stringifyCollectiveKind(getKind());
    if (reduces)
      diagnostic << " by " << stringifyReduceKind(getReduce());
    return diagnostic << " cannot produce " << out << " from " << in;
  }
  for (auto [index, input, output] : llvm::enumerate(getInputs(), getOutputs()))
    if (typeOf(input).getElementType() != in ||
        typeOf(output).getElementType() != out) // 6
      return emitOpError("moves ")
             << in << " and produces " << out << ", but tensor " << index
             << " is " << typeOf(input) << " and " << typeOf(output);
  if (getFast() &&
      (!reduces || getReduce() != ReduceKind::Sum || in != out)) // 7
    return emitOpError(
        "cannot be fast: the library only adds values of the result's type");
  if (getNodeRanks() && (!reduces || getReduce() != ReduceKind::Sum ||
                         !out.isF32() || getFast())) // 10
    return emitOpError("has node_ranks, which only sums to f32 that are not "
                       "fast have");
  // MLIR would take it for an attribute without a meaning.
  if ((*this)->hasAttr("scale")) // 8
    return emitOpError("does not scale; multiply its result");
  return success();
}

/// Do the shapes add up? A gather fills its output with whole pieces, a scatter
/// loses nothing.
static bool shapesAgree(dist::CollectiveKind kind, int64_t ranks,
                        MemRefType input, MemRefType output) {
  dist::CollectiveLayout layout = dist::layoutOf(kind);
  if (layout.splits) {
    MemRefType part = partOf(input, ranks);
    return part && part.getShape() == output.getShape();
  }
  if (layout.joins && input.getRank() == 0)
    return false;
  SmallVector<int64_t> shape(input.getShape());
  if (layout.joins)
    shape[0] = (fsdp::CheckedSize(ranks) * shape[0]).saturated();
  return output.getShape() == ArrayRef(shape);
}

LogicalResult CollectiveOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<dist::MeshOp> mesh =
      dist::verifyMeshAxes(*this, getMeshAttr(), getAxes(), &symbols); // 1
  if (failed(mesh))
    return failure();
  int64_t ranks = mesh->sizeOf(dist::axisRefs(getAxes()));
  for (auto [index, input, output] : llvm::enumerate(getInputs(), getOutputs()))
    if (!shapesAgree(getKind(), ranks, typeOf(input), typeOf(output))) // 4
      return emitOpError() << stringifyCollectiveKind(getKind()) << " over "
                           << ranks << " ranks cannot produce output " << index
                           << " (" << output.getType() << ") from "
                           << input.getType();
  if (std::optional<uint64_t> stated = getNodeRanks()) { // 10
    std::optional<int64_t> inNode =
        mesh->ranksInNode(dist::axisRefs(getAxes()));
    if (!inNode || *inNode <= 1 || *inNode == ranks)
      return emitOpError("has node_ranks, but nodes of ")
             << mesh->getNodeSize() << " ranks (node_size of the mesh) make no "
             << "two levels of a sum over these axes";
    if (static_cast<int64_t>(*stated) != *inNode)
      return emitOpError("has ")
             << *stated << " node_ranks, but of these axes nodes of "
             << mesh->getNodeSize() << " ranks have " << *inNode;
  }
  return success();
}
