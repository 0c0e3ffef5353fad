//===- ExecVerifiers.cpp - The constraints listed in the op descriptions --===//
#include "dialects/Exec/Exec.h"

using namespace mlir;
using namespace fsdp::exec;

//===----------------------------------------------------------------------===//
// Shared checks
//===----------------------------------------------------------------------===//

/// Where `type`, whose size has been checked, lies in the arena.
static LogicalResult verifyOffset(Operation *op, std::optional<int64_t> offset,
                                  MemRefType type) {
  if (offset && (*offset < 0 || *offset % kAlignment != 0))
    return op->emitOpError("has offset ")
           << *offset << ", which is not a multiple of " << kAlignment
           << " bytes from the arena's start";
  if (offset && *offset > fsdp::kMaxArenaBytes - bytesOf(type))
    return op->emitOpError("offset ")
           << *offset << " and " << bytesOf(type)
           << " bytes lie beyond the 2^62 bytes of an arena";
  return success();
}

/// Compares the buffers given to a kernel or function with its arguments.
static LogicalResult verifyArguments(Operation *op, StringRef callee,
                                     ValueRange given, Block &body) {
  if (given.size() != body.getNumArguments())
    return op->emitOpError("gives ")
           << given.size() << " buffers, but @" << callee << " takes "
           << body.getNumArguments();
  for (auto [index, value, argument] :
       llvm::enumerate(given, body.getArguments()))
    if (value.getType() != argument.getType())
      return op->emitOpError("gives buffer ")
             << index << " of type " << value.getType() << ", but @" << callee
             << " takes " << argument.getType();
  return success();
}

/// The symbol `name` as an `OpT`, with the diagnostic if it is none.
template <typename OpT>
static OpT lookup(Operation *op, SymbolTableCollection &symbols,
                  FlatSymbolRefAttr name, StringRef what) {
  auto found = symbols.lookupNearestSymbolFrom<OpT>(op, name);
  if (!found)
    op->emitOpError("refers to ")
        << name << ", but no " << what << " is named so";
  return found;
}

//===----------------------------------------------------------------------===//
// Ranges and values
//===----------------------------------------------------------------------===//

LogicalResult RangeOp::verify() {
  auto type = dyn_cast<MemRefType>(getType());
  if (!type || !type.hasStaticShape() || !type.getLayout().isIdentity())
    return emitOpError("must have as type a memref of static shape and "
                       "identity layout, got ")
           << getType();
  if (!isBuffer(type)) // 3
    return emitOpError("@") << getSymName()
                            << " must hold f32, bf16, f64, i8, i32 or i64, "
                               "not be empty and have at most 2^56 bytes, but "
                               "is "
                            << type;
  if (std::optional<Type> full = getFull()) // 5
    if (!isa<RankedTensorType>(*full) || !nn::hasCheckedSize(*full))
      return emitOpError("full must be a tensor of static shape, not empty and "
                         "of at most 2^56 bytes, but is ")
             << *full;
  ShapedType whole = type;
  if (std::optional<Type> full = getFull())
    whole = cast<ShapedType>(*full);
  if (dist::PlacementAttr placement = getPlacementAttr()) // 6
    if (int64_t(placement.getDims().size()) != whole.getRank())
      return emitOpError("has a placement of ")
             << placement.getDims().size() << " dimensions, but is a part of "
             << whole;
  return verifyOffset(*this, getOffset(), type);
}

LogicalResult AllocOp::verify() {
  return verifyOffset(*this, getOffset(), cast<MemRefType>(getType()));
}

/// Of ranges that exist.
static LogicalResult verifyAdjacent(GetOp get, ArrayRef<RangeOp> ranges) {
  if (ranges.size() == 1)
    return get.emitOpError("lists no range beside @") << get.getRange();
  auto whole = cast<MemRefType>(get.getResult().getType());
  fsdp::CheckedSize elements = 0;
  llvm::SmallPtrSet<Operation *, 4> seen;
  RangeOp before;
  for (RangeOp range : ranges) {
    MemRefType type = range.getMemRefType();
    auto error = [&] { // 2, 3
      return get.emitOpError("reads @")
             << range.getSymName() << " beside others, but ";
    };
    if (!seen.insert(range).second)
      return error() << "lists it twice";
    if (range.getRole() == Role::Output)
      return error() << "it is an output, which may lie where buffers are";
    if (before && before.getRole() != range.getRole())
      return error() << "its role is " << stringifyRole(range.getRole())
                     << ", and that of @" << before.getSymName() << " "
                     << stringifyRole(before.getRole());
    if (type.getElementType() != whole.getElementType())
      return error() << "it has type " << type << ", the result " << whole;
    elements += type.getNumElements();
    if (before &&
        before.getOffset().has_value() != range.getOffset().has_value())
      return error() << "only one of it and @" << before.getSymName()
                     << " has an offset";
    if (before && range.getOffset()) {
      int64_t end = *before.getOffset() + bytesOf(before.getMemRefType());
      if (int64_t(*range.getOffset()) != end)
        return error() << "it begins at byte " << *range.getOffset()
                       << ", and @" << before.getSymName() << " ends at byte "
                       << end;
    }
    before = range;
  }
  if (whole.getRank() != 1 || elements.saturated() != whole.getNumElements())
    return get.emitOpError("gives ")
           << whole << ", but its " << ranges.size() << " ranges have "
           << elements.saturated() << " elements, in one dimension";
  return success();
}

LogicalResult GetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  SmallVector<RangeOp> ranges;
  for (StringAttr name : getRanges()) {
    auto range = lookup<RangeOp>(*this, symbols, FlatSymbolRefAttr::get(name),
                                 "exec.range");
    if (!range)
      return failure();
    ranges.push_back(range);
  }
  if (getAdjacent())
    return verifyAdjacent(*this, ranges);
  if (ranges.front().getType() != getResult().getType())
    return emitOpError("gives ")
           << getResult().getType() << ", but " << getRangeAttr()
           << " has type " << ranges.front().getType();
  return success();
}

LogicalResult ViewOp::verify() {
  auto source = cast<MemRefType>(getSource().getType());
  auto result = cast<MemRefType>(getResult().getType());
  if (source.getElementType() != result.getElementType())
    return emitOpError("changes the element type");
  int64_t offset = getOffset();
  int64_t elements = result.getNumElements();
  if (offset < 0 || offset > source.getNumElements() - elements)
    return emitOpError("takes elements [")
           << offset << ", "
           << (fsdp::CheckedSize(offset) + elements).saturated()
           << "), which are not inside the source's "
           << source.getNumElements();
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto callee = lookup<FuncOp>(*this, symbols, getCalleeAttr(), "exec.func");
  if (!callee)
    return failure();
  for (int64_t event : getEvents()) // 3
    if (event > kMaxEvent)
      return emitOpError("names event ")
             << event << "; they are numbered up to " << kMaxEvent;
  return verifyArguments(*this, getCallee(), getOperands(),
                         callee.getBody().front());
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel =
      lookup<KernelOp>(*this, symbols, getKernelAttr(), "exec.kernel");
  if (!kernel)
    return failure();
  if (getOutputs().size() != kernel.getOutputs())
    return emitOpError("has ")
           << getOutputs().size() << " outputs, but @" << getKernel()
           << " writes " << kernel.getOutputs();
  return verifyArguments(*this, getKernel(), getOperands(),
                         kernel.getBody().front());
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// `rows * cols` has been checked.
static int64_t elementsAt(Access access, int64_t rows, int64_t cols) {
  switch (access) {
  case Access::Element:
    return rows * cols;
  case Access::Row:
    return rows;
  case Access::Column:
    return cols;
  case Access::Scalar:
    return 1;
  case Access::Block:
    return rows / fsdp::nn::kRowBlock * cols;
  }
  return 0;
}

LogicalResult KernelOp::verify() {
  int64_t rows = getRows(), cols = getCols();
  if (rows < 1 || cols < 1)
    return emitOpError("must have at least one row and one column");
  if (!(fsdp::CheckedSize(rows) * cols).fits(fsdp::kMaxTensorBytes)) // 6
    return emitOpError("has ") << rows << " rows of " << cols
                               << " columns, which are more than 2^56 elements";
  Block &body = getBody().front();
  if (getAccess().size() != body.getNumArguments())
    return emitOpError("has ") << getAccess().size() << " accesses for "
                               << body.getNumArguments() << " arguments";
  int64_t outputs = getOutputs();
  if (outputs < 1 || outputs > body.getNumArguments())
    return emitOpError("must write at least one and at most all of its "
                       "arguments");
  for (auto [argument, access] :
       llvm::zip(body.getArguments(), getAccess().getAsRange<AccessAttr>())) {
    auto type = isBuffer(argument.getType())
                    ? cast<MemRefType>(argument.getType())
                    : MemRefType();
    if (access.getValue() == Access::Block &&
        rows % fsdp::nn::kRowBlock != 0) // 7
      return emitOpError("has ")
             << rows << " rows, which are no whole blocks of "
             << fsdp::nn::kRowBlock;
    int64_t expected = elementsAt(access.getValue(), rows, cols);
    if (!type || type.getNumElements() != expected)
      return emitOpError("needs ")
             << expected << " elements in argument " << argument.getArgNumber()
             << " (" << argument.getType() << "), which is addressed by "
             << stringifyAccess(access.getValue());
  }
  for (Operation &op : body)
    if (getColumnReduction() && !isa<ReduceRowsOp>(op))
      return emitOpError("must hold exec.reduce_rows alone as a "
                         "column_reduction");
  return success();
}

/// The access of `buffer` if it is an argument of the kernel around `op`.
static std::optional<Access> accessIn(Operation *op, Value buffer,
                                      bool &isOutput) {
  auto kernel = op->getParentOfType<KernelOp>();
  auto argument = dyn_cast<BlockArgument>(buffer);
  if (!kernel || !argument || argument.getOwner() != &kernel.getBody().front())
    return std::nullopt;
  unsigned number = argument.getArgNumber();
  isOutput =
      number + kernel.getOutputs() >= argument.getOwner()->getNumArguments();
  return cast<AccessAttr>(kernel.getAccess()[number]).getValue();
}

static bool scalarFits(Type scalar, Type buffer) {
  Type element = cast<MemRefType>(buffer).getElementType();
  if (isa<FloatType>(element))
    return scalar.isF32();
  return element.isInteger(64) ? scalar.isInteger(64) : scalar.isInteger(32);
}

LogicalResult LoadOp::verify() {
  bool isOutput = false;
  std::optional<Access> access = accessIn(*this, getSource(), isOutput);
  if (!access || access == Access::Block)
    return emitOpError("must read an argument of the kernel that is no block");
  if (!scalarFits(getValue().getType(), getSource().getType()))
    return emitOpError(
        "must load floats as f32, i64 as i64 and other integers as i32");
  if (getColumn() && *access != Access::Element)
    return emitOpError("names a column, which only an element argument has");
  return success();
}

LogicalResult ColumnOp::verify() {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (kernel && int64_t(kernel.getCols()) > int64_t(1) << 31)
    return emitOpError("is an i32, but the kernel has ")
           << kernel.getCols() << " columns";
  return success();
}

LogicalResult StoreOp::verify() {
  bool isOutput = false;
  std::optional<Access> access = accessIn(*this, getTarget(), isOutput);
  if (!access || !isOutput || access == Access::Block)
    return emitOpError("must write an output of the kernel that is no block");
  if (!scalarFits(getValue().getType(), getTarget().getType()))
    return emitOpError(
        "must store floats from f32, i64 from i64 and other integers from i32");
  return success();
}

/// True if `op` stands at the top level of a kernel.
static bool isTopLevel(Operation *op) {
  return isa_and_nonnull<KernelOp>(op->getParentOp());
}

// That the bodies end in exec.yield is MLIR's own check: it is the only
// terminator there is.
LogicalResult ReduceOp::verify() {
  if (!isTopLevel(*this))
    return emitOpError("must stand at the top level of a kernel");
  return success();
}

LogicalResult MapOp::verify() {
  if (!isTopLevel(*this))
    return emitOpError("must stand at the top level of a kernel");
  return success();
}

LogicalResult ReduceRowsOp::verify() {
  if (!isTopLevel(*this))
    return emitOpError("must stand at the top level of a kernel");
  bool isOutput = false;
  std::optional<Access> access = accessIn(*this, getTarget(), isOutput);
  bool isWhole = cast<KernelOp>((*this)->getParentOp()).getColumnReduction();
  if (access != (isWhole ? Access::Column : Access::Block) || !isOutput)
    return emitOpError("must write a ")
           << (isWhole ? "column" : "block") << " output of the kernel";
  Type element = cast<MemRefType>(getTarget().getType()).getElementType();
  if (!element.isF32() && !(isWhole && element.isBF16()))
    return emitOpError("must write ")
           << (isWhole ? "f32 or bf16" : "f32") << ", not " << element;
  auto kernel = cast<KernelOp>((*this)->getParentOp());
  if (getInOrder() && (!isWhole || kernel.getOutputs() != 1))
    return emitOpError("combines blocks in_order, which only a "
                       "column_reduction with one output does");
  return success();
}
