//===- NNVerifiers.cpp - State, shape, optimizer and fusion ops -----------===//
//
// Numbers in comments are those of the constraints in the op descriptions.
// Layer ops are in NNLayerVerifiers.cpp.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/NNVerifiers.h"

using namespace mlir;
using namespace fsdp::nn;

//===----------------------------------------------------------------------===//
// Checks shared by the ops
//===----------------------------------------------------------------------===//

LogicalResult fsdp::nn::expectType(Operation *op, StringRef what, Type actual,
                                   RankedTensorType expected) {
  if (actual == expected)
    return success();
  return op->emitOpError("expects ")
         << what << " of type " << expected << ", got " << actual;
}

LogicalResult fsdp::nn::expectShape(Operation *op, StringRef what, Value value,
                                    ArrayRef<int64_t> shape) {
  return expectType(op, what, value.getType(), withShape(typeOf(value), shape));
}

LogicalResult fsdp::nn::expectElementType(Operation *op, StringRef what,
                                          Value value, Value like) {
  Type expected = typeOf(like).getElementType();
  if (typeOf(value).getElementType() == expected)
    return success();
  return op->emitOpError("expects ") << what << " with elements of type "
                                     << expected << ", got " << value.getType();
}

LogicalResult fsdp::nn::expectRank(Operation *op, StringRef what, Value value,
                                   int64_t rank) {
  if (typeOf(value).getRank() == rank)
    return success();
  return op->emitOpError("expects ")
         << what << " of rank " << rank << ", got " << value.getType();
}

LogicalResult fsdp::nn::expectRankAtLeast(Operation *op, StringRef what,
                                          Value value, int64_t rank) {
  if (typeOf(value).getRank() >= rank)
    return success();
  return op->emitOpError("expects ")
         << what << " of rank " << rank << " or more, got " << value.getType();
}

//===----------------------------------------------------------------------===//
// Parameters, buffers, reads, gradients
//===----------------------------------------------------------------------===//

static LogicalResult verifyPersistent(Operation *op, Type type) {
  if (failed(verifyLine(op, SymbolTable::getSymbolName(op).getValue())))
    return failure();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || tensor.getEncoding())
    return op->emitOpError("expects a ranked tensor of static shape, got ")
           << type;
  if (!hasCheckedSize(type))
    return op->emitOpError("@")
           << SymbolTable::getSymbolName(op).getValue()
           << " must not be empty and have at most 2^56 bytes, but is " << type;
  return success();
}

LogicalResult ParameterOp::verify() {
  // 1.
  if (failed(verifyPersistent(*this, getType())))
    return failure();
  if (!getTensorType().getElementType().isF32() &&
      !getTensorType().getElementType().isF64())
    return emitOpError("expects elements of type f32 or f64, got ")
           << getType();
  // 2.
  if (!isa<ZerosAttr, OnesAttr, NormalAttr, UniformAttr>(getInit()))
    return emitOpError("expects #nn.zeros, #nn.ones, #nn.normal or "
                       "#nn.uniform as initialiser, got ")
           << getInit();
  return success();
}

LogicalResult BufferOp::verify() {
  // 1.
  if (failed(verifyPersistent(*this, getType())))
    return failure();
  // 2.
  if (!isa<ZerosAttr, OnesAttr, NormalAttr, UniformAttr, RotaryTableAttr>(
          getInit()))
    return emitOpError("expects an initialiser of the nn dialect, got ")
           << getInit();
  // 3.
  RankedTensorType type = getTensorType();
  auto table = dyn_cast<RotaryTableAttr>(getInit());
  if (table && (type.getRank() != 3 || type.getDimSize(2) != 2 ||
                type.getDimSize(1) != int64_t(table.getFrequencies().size()) ||
                !type.getElementType().isF32()))
    return emitOpError("expects a #nn.rotary_table to initialise an f32 tensor "
                       "of shape [_, number of frequencies, 2], got ")
           << type << " and " << table.getFrequencies().size()
           << " frequencies";
  return success();
}

/// The declaration that `name` refers to: nn.parameter, or nn.buffer where
/// `buffers` allows it.
static FailureOr<Operation *> lookupPersistent(Operation *user,
                                               SymbolTableCollection &tables,
                                               FlatSymbolRefAttr name,
                                               bool parameters, bool buffers) {
  Operation *found = tables.lookupNearestSymbolFrom(user, name);
  if ((parameters && isa_and_nonnull<ParameterOp>(found)) ||
      (buffers && isa_and_nonnull<BufferOp>(found)))
    return found;
  StringRef kind = !buffers      ? "nn.parameter"
                   : !parameters ? "nn.buffer"
                                 : "nn.parameter or nn.buffer";
  return user->emitOpError("expects ") << name << " to name an " << kind;
}

LogicalResult BufferOp::verifySymbolUses(SymbolTableCollection &tables) {
  // 4.
  auto owner = (*this)->getAttrOfType<FlatSymbolRefAttr>(kStateOfAttr);
  if (owner && !tables.lookupNearestSymbolFrom<ParameterOp>(*this, owner))
    return emitOpError("is state of ") << owner << ", which is no nn.parameter";
  // 5.
  auto original = (*this)->getAttrOfType<FlatSymbolRefAttr>(kComputeCopyOfAttr);
  if (!original)
    return success();
  if (owner)
    return emitOpError("is state of ")
           << owner << " and a copy of " << original << " as well";
  auto parameter = tables.lookupNearestSymbolFrom<ParameterOp>(*this, original);
  if (!parameter)
    return emitOpError("is a copy of ")
           << original << ", which is no nn.parameter";
  ArrayRef<int64_t> shape = parameter.getTensorType().getShape();
  if (shape != getTensorType().getShape())
    return emitOpError("is ")
           << getTensorType() << ", but a copy of " << original << ", which is "
           << parameter.getTensorType();
  return success();
}

/// Checks `actual` against the declared type. Where the declaration carries a
/// placement the shape is this rank's shard, which the fsdp dialect knows.
static LogicalResult verifyPersistentUse(Operation *user, Operation *declared,
                                         Type declaredType, Type actual) {
  auto expected = cast<RankedTensorType>(declaredType);
  auto type = cast<RankedTensorType>(actual);
  if (type == expected)
    return success();
  if (declared->hasAttr("fsdp.placement") &&
      type.getElementType() == expected.getElementType() &&
      type.getRank() == expected.getRank())
    return success();
  return user->emitOpError("expects the declared type ")
         << expected << ", got " << type;
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &tables) {
  // 1.
  FailureOr<Operation *> declared = lookupPersistent(
      *this, tables, getNameAttr(), /*parameters=*/true, /*buffers=*/true);
  if (failed(declared))
    return failure();
  // 2.
  Type type = isa<ParameterOp>(*declared)
                  ? cast<ParameterOp>(*declared).getType()
                  : cast<BufferOp>(*declared).getType();
  return verifyPersistentUse(*this, *declared, type, getValue().getType());
}

LogicalResult GradientOp::verifySymbolUses(SymbolTableCollection &tables) {
  // 1.
  FailureOr<Operation *> declared = lookupPersistent(
      *this, tables, getNameAttr(), /*parameters=*/true, /*buffers=*/false);
  if (failed(declared))
    return failure();
  // 2.
  return verifyPersistentUse(*this, *declared,
                             cast<ParameterOp>(*declared).getType(),
                             getValue().getType());
}

/// Constraints 1 and 2 of ops that change a buffer by a value of this type.
template <typename OpT>
static LogicalResult verifyBufferUse(OpT op, SymbolTableCollection &tables,
                                     Type type) {
  FailureOr<Operation *> declared =
      lookupPersistent(op, tables, op.getNameAttr(), /*parameters=*/false,
                       /*buffers=*/true);
  if (failed(declared))
    return failure();
  return verifyPersistentUse(op, *declared, cast<BufferOp>(*declared).getType(),
                             type);
}

LogicalResult AccumulateOp::verifySymbolUses(SymbolTableCollection &tables) {
  RankedTensorType value = getValue().getType();
  auto buffer = tables.lookupNearestSymbolFrom<BufferOp>(*this, getNameAttr());
  Type sum = buffer ? buffer.getTensorType().getElementType() : Type();
  // 2.
  if (sum && !sum.isF32() && !sum.isF64())
    return emitOpError("adds up in f32 or f64, but ")
           << getNameAttr() << " is " << buffer.getTensorType();
  // 1, 3.
  bool isWidened = value.getElementType().isBF16() && sum && sum.isF32();
  return verifyBufferUse(*this, tables, isWidened ? value.clone(sum) : value);
}

RankedTensorType AccumulateProductOp::getProductType() {
  return RankedTensorType::get({getCotangent().getType().getShape().back(),
                                getInput().getType().getShape().back()},
                               Float32Type::get(getContext()));
}

LogicalResult AccumulateProductOp::verify() {
  // 2.
  RankedTensorType cotangent = getCotangent().getType(),
                   input = getInput().getType();
  if (cotangent.getRank() < 1 || input.getRank() < 1 ||
      cotangent.getShape().drop_back() != input.getShape().drop_back())
    return emitOpError("expects equal leading dimensions, got ")
           << cotangent << " and " << input;
  if (cotangent.getElementType() != input.getElementType())
    return emitOpError("expects equal element types, got ")
           << cotangent << " and " << input;
  if (!input.getElementType().isF32() && !input.getElementType().isBF16())
    return emitOpError("expects factors of f32 or bf16, got ")
           << cotangent << " and " << input;
  return success();
}

LogicalResult
AccumulateProductOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyBufferUse(*this, tables, getProductType()); // 1, 3
}

LogicalResult WriteOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyBufferUse(*this, tables, getValue().getType());
}

LogicalResult ClearOp::verify() {
  // 2.
  if (getNames().empty())
    return emitOpError("expects at least one buffer");
  return success();
}

LogicalResult ClearOp::verifySymbolUses(SymbolTableCollection &tables) {
  // 1.
  for (auto name : getNames().getAsRange<FlatSymbolRefAttr>())
    if (failed(lookupPersistent(*this, tables, name, /*parameters=*/false,
                                /*buffers=*/true)))
      return failure();
  return success();
}

LogicalResult SeedOp::verify() {
  return expectRank(*this, "the loss", getLoss(), 0);
}

LogicalResult RecomputeFromOp::verify() {
  if (getValues().getTypes() != getResults().getTypes())
    return emitOpError("expects results of the operands' types");
  return success();
}

//===----------------------------------------------------------------------===//
// Constants and shapes
//===----------------------------------------------------------------------===//

LogicalResult ConstantOp::verify() {
  if (!isa<SplatElementsAttr>(getValue()))
    return emitOpError("expects a tensor value whose elements are all equal");
  return success();
}

LogicalResult ReshapeOp::verify() {
  // 1.
  if (failed(expectElementType(*this, "the result", getResult(), getInput())))
    return failure();
  // 2.
  if (elementsOf(getInput()) != elementsOf(getResult()))
    return emitOpError("expects as many elements in the result (")
           << elementsOf(getResult()) << ") as in the operand ("
           << elementsOf(getInput()) << ")";
  return success();
}

LogicalResult TransposeOp::verify() {
  // 1.
  SmallVector<int64_t> sorted(getPermutation());
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, typeOf(getInput()).getRank())))
    return emitOpError("expects a permutation of the operand's dimensions");
  // 2.
  SmallVector<int64_t> shape;
  for (int64_t dim : getPermutation())
    shape.push_back(shapeOf(getInput())[dim]);
  return expectType(*this, "the result", getType(),
                    withShape(typeOf(getInput()), shape));
}

/// nn.slice and nn.pad: `box` lies at `offsets` in `whole`.
static LogicalResult verifyBox(Operation *op, Value whole, Value box,
                               ArrayRef<int64_t> offsets) {
  // 1.
  if (static_cast<int64_t>(offsets.size()) != typeOf(whole).getRank())
    return op->emitOpError("expects one offset per dimension");
  // 3. before 2, which needs equal ranks.
  if (failed(expectElementType(op, "the result", op->getResult(0),
                               op->getOperand(0))) ||
      failed(expectRank(op, "the result", op->getResult(0),
                        typeOf(op->getOperand(0)).getRank())))
    return failure();
  // 2.
  for (auto [dim, offset] : llvm::enumerate(offsets))
    if (offset < 0 || offset > shapeOf(whole)[dim] - shapeOf(box)[dim])
      return op->emitOpError("expects the box to lie inside dimension ")
             << dim << ": " << offset << " + " << shapeOf(box)[dim] << " > "
             << shapeOf(whole)[dim];
  return success();
}

LogicalResult SliceOp::verify() {
  return verifyBox(*this, getInput(), getResult(), getOffsets());
}

LogicalResult PadOp::verify() {
  return verifyBox(*this, getResult(), getInput(), getOffsets());
}

LogicalResult ConcatOp::verify() {
  // 1.
  if (getInputs().empty())
    return emitOpError("expects at least one operand");
  // 2.
  RankedTensorType first = typeOf(getInputs().front());
  int64_t dim = getDim();
  if (dim < 0 || dim >= first.getRank())
    return emitOpError("has no dimension ") << dim << " to join along";
  // 3.
  SmallVector<int64_t> shape(first.getShape());
  CheckedSize joined = 0;
  for (Value input : getInputs()) {
    SmallVector<int64_t> like(shapeOf(input));
    if (failed(expectRank(*this, "an operand", input, first.getRank())) ||
        failed(expectElementType(*this, "an operand", input, getResult())))
      return failure();
    joined += like[dim];
    like[dim] = first.getDimSize(dim);
    if (like != SmallVector<int64_t>(first.getShape()))
      return emitOpError("expects sizes to be equal except along dimension ")
             << dim << ", got " << first << " and " << input.getType();
  }
  shape[dim] = joined.saturated();
  return expectShape(*this, "the result", getResult(), shape);
}

/// Increasing and inside `rank`.
static LogicalResult verifyDims(Operation *op, ArrayRef<int64_t> dims,
                                int64_t rank) {
  int64_t previous = -1;
  for (int64_t dim : dims) {
    if (dim <= previous || dim >= rank)
      return op->emitOpError("expects dims to be increasing and below ")
             << rank;
    previous = dim;
  }
  return success();
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType input = typeOf(getInput()), result = typeOf(getResult());
  // 1.
  if (static_cast<int64_t>(getDims().size()) != input.getRank())
    return emitOpError("expects one entry of dims per operand dimension");
  if (failed(verifyDims(*this, getDims(), result.getRank())))
    return failure();
  // 2.
  for (auto [size, dim] : llvm::zip_equal(input.getShape(), getDims()))
    if (size != 1 && size != result.getDimSize(dim))
      return emitOpError("expects size 1 or ")
             << result.getDimSize(dim) << " for result dimension " << dim
             << ", got " << size;
  // 3.
  return expectElementType(*this, "the result", getResult(), getInput());
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static LogicalResult verifyReduction(Operation *op, Value input,
                                     ArrayRef<int64_t> dims, Value result) {
  // 1.
  if (dims.empty())
    return op->emitOpError("expects at least one dimension to reduce");
  if (failed(verifyDims(op, dims, typeOf(input).getRank())))
    return failure();
  // 2. and 3.
  return expectType(op, "the reduced tensor", result.getType(),
                    reducedType(typeOf(input), dims));
}

LogicalResult SumOp::verify() {
  return verifyReduction(*this, getInput(), getDims(), getResult());
}
LogicalResult MeanOp::verify() {
  if (failed(verifyReduction(*this, getInput(), getDims(), getResult())))
    return failure();
  // 4.
  return expectCount(*this, getCount());
}
LogicalResult MaxOp::verify() {
  return verifyReduction(*this, getInput(), getDims(), getResult());
}
LogicalResult MaxGradOp::verify() {
  return verifyReduction(*this, getInput(), getDims(), getMax());
}

LogicalResult fsdp::nn::expectCount(Operation *op, int64_t count) {
  if (count < 1)
    return op->emitOpError("expects a positive count, got ") << count;
  return success();
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

LogicalResult AbsMaxOp::verify() {
  return expectRank(*this, "the result", getResult(), 0);
}

/// Two integer digits, as nn.sum_squares gives them.
static LogicalResult verifySum(Operation *op, Value sum) {
  return expectShape(op, "the sum", sum, {2});
}

LogicalResult SumSquaresOp::verify() {
  if (failed(expectRank(*this, "max", getMax(), 0)))
    return failure();
  return verifySum(*this, getResult());
}

LogicalResult ClipCoefficientOp::verify() {
  if (failed(expectRank(*this, "max", getMax(), 0)))
    return failure();
  RankedTensorType sum = getSum().getType();
  if (sum.getRank() != 1 || sum.getDimSize(0) % 2 != 0)
    return emitOpError("expects sums of two digits each, got ") << sum;
  if (getMaxNorm().convertToDouble() < 0)
    return emitOpError("expects max_norm >= 0");
  return success();
}

LogicalResult AdamWOp::verify() {
  // 1.
  size_t count = getParameters().size();
  if (getFirstMoments().size() != count || getSecondMoments().size() != count ||
      getGradients().size() != count)
    return emitOpError("expects as many first moments, second moments and "
                       "gradients as parameters (")
           << count << ")";
  if (!getCopyNames().empty() && getCopyNames().size() != count)
    return emitOpError("expects as many copies as parameters (")
           << count << ")";
  // 3. is the op definition's.
  return success();
}

LogicalResult AdamWOp::verifySymbolUses(SymbolTableCollection &tables) {
  // 2.
  for (auto name : getParameters().getAsRange<FlatSymbolRefAttr>())
    if (failed(lookupPersistent(*this, tables, name, /*parameters=*/true,
                                /*buffers=*/false)))
      return failure();
  for (ArrayAttr buffers :
       {getFirstMoments(), getSecondMoments(), getCopyNames()})
    for (auto name : buffers.getAsRange<FlatSymbolRefAttr>())
      if (failed(lookupPersistent(*this, tables, name, /*parameters=*/false,
                                  /*buffers=*/true)))
        return failure();
  // 4.
  for (auto name : getCopyNames().getAsRange<FlatSymbolRefAttr>()) {
    auto copy = tables.lookupNearestSymbolFrom<BufferOp>(*this, name);
    if (!copy.getTensorType().getElementType().isBF16())
      return emitOpError("expects a copy in bf16, but ")
             << name << " is " << copy.getTensorType();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Fusion
//===----------------------------------------------------------------------===//

LogicalResult FusionOp::verifyRegions() {
  Block &block = getBody().front();
  // 1.
  if (block.getArgumentTypes() != getInputs().getTypes())
    return emitOpError("expects block arguments of the operands' types");
  auto yield = cast<YieldOp>(block.getTerminator());
  if (yield.getValues().getTypes() != getResults().getTypes())
    return emitOpError("expects nn.yield to give values of the results' types");
  for (Operation &op : block.without_terminator()) // 2.
    if (!isa<KernelOpInterface>(op))
      return op.emitOpError("has no kernel form and cannot be fused");
  // 5.
  if (block.without_terminator().empty())
    return emitOpError("expects an op that it computes");
  KernelSpace space = getKernelSpace();
  for (auto kernel : block.getOps<KernelOpInterface>()) {
    KernelSpace own = kernel.getKernelSpace();
    // 4.
    if (own.columnReduction && !space.columnReduction && own.hasBlocks()) {
      own.columnReduction = false;
      if (!llvm::all_of(kernel->getUsers(), llvm::IsaPred<YieldOp>))
        return kernel.emitOpError(
            "is a sum over rows, which no op of the fusion can read");
    }
    // 3.
    if (!own.isExpressible() || !(own == space))
      return kernel.emitOpError(
          "does not share the iteration space of the fusion");
  }
  return success();
}

KernelSpace FusionOp::getKernelSpace() {
  KernelSpace space = KernelSpace::notExpressible();
  for (auto kernel : getBody().getOps<KernelOpInterface>()) {
    space = kernel.getKernelSpace();
    if (!space.columnReduction)
      break;
  }
  return space;
}
