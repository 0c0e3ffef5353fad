//===- ExecLowerShapes.cpp - Views, boxes, parts of tensors ---------------===//
#include "dialects/NN/Boxes.h"
#include "passes/Exec/ExecLower.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::lower;

LogicalResult ProgramLowering::lowerReshape(nn::ReshapeOp op) {
  held[op.getResult()] = view(buffer(op.getInput()), op.getType().getShape());
  return success();
}

LogicalResult ProgramLowering::lowerRecompute(nn::RecomputeFromOp op) {
  for (auto [value, result] : llvm::zip(op.getValues(), op.getResults()))
    held[result] = buffer(value);
  return success();
}

void ProgramLowering::copyBox(Location loc, Value from, Value to,
                              ArrayRef<int64_t> shape,
                              ArrayRef<int64_t> inOffsets,
                              ArrayRef<int64_t> outOffsets) {
  exec::CopyBoxOp::create(b, loc, exec::Stream::Compute, from, to,
                          /*workspaces=*/ValueRange(), shape, inOffsets,
                          outOffsets);
}

/// Whether a library reads `value`, or what may be a view of it, where it lies:
/// matmuls and attention are prepared for operands that are aligned as ranges
/// of the arena are.
static bool isReadByLibrary(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (nn::aliasesOperands(user))
      return isReadByLibrary(user->getResult(use.getOperandNumber()));
    return user->hasTrait<nn::ReadByLibrary>();
  });
}

LogicalResult ProgramLowering::lowerSlice(nn::SliceOp op) {
  auto input = cast<RankedTensorType>(op.getInput().getType());
  auto box = cast<RankedTensorType>(op.getType());
  Value from = buffer(op.getInput());
  auto offset = nn::contiguousOffset(op);
  int64_t elementBytes = input.getElementTypeBitWidth() / 8;
  int64_t begin = exec::resolveRange(from).begin;
  int64_t alignment = state.target.facts.alignment;
  bool isAligned = offset && (begin + *offset * elementBytes) % alignment == 0;
  if (offset && (isAligned || !isReadByLibrary(op.getResult()))) {
    held[op.getResult()] = view(from, box.getShape(), *offset);
    return success();
  }
  SmallVector<int64_t> zeros(box.getRank(), 0);
  copyBox(op.getLoc(), from, output(op.getResult(), op), box.getShape(),
          op.getOffsets(), zeros);
  return success();
}

LogicalResult ProgramLowering::lowerPad(nn::PadOp op) {
  auto box = cast<RankedTensorType>(op.getInput().getType());
  Value from = buffer(op.getInput()), to = output(op.getResult(), op);
  SmallVector<int64_t> zeros(box.getRank(), 0);
  exec::FillZeroOp::create(b, op.getLoc(), exec::Stream::Compute,
                           /*inputs=*/ValueRange(), to,
                           /*workspaces=*/ValueRange());
  copyBox(op.getLoc(), from, to, box.getShape(), zeros, op.getOffsets());
  return success();
}

/// Parts are produced where they end, so that nothing is copied: those that are
/// aligned as buffers of the arena are.
void ProgramLowering::chooseDestinations(nn::ConcatOp op) {
  if (!nn::hasContiguousParts(op) || op->use_empty())
    return;
  int64_t offset = 0, alignment = state.target.facts.alignment;
  for (Value part : op.getInputs()) {
    auto type = cast<RankedTensorType>(part.getType());
    int64_t bytes = offset * (type.getElementTypeBitWidth() / 8);
    if (bytes % alignment == 0 && ownsBuffer(part) &&
        !destinations.contains(part))
      destinations[part] =
          view(buffer(op.getResult(), op), type.getShape(), offset);
    offset += type.getNumElements();
  }
}

void ProgramLowering::findJoined() {
  for (auto join : func.front().getOps<nn::ConcatOp>()) {
    const nn::AdjacentGroup *group = state.getAdjacent().groupOf(join);
    if (group && llvm::none_of(group->names, [&](StringAttr name) {
          return isUsedAfterUpdate(join.getResult(), name);
        }))
      joined.insert(group);
  }
}

Value ProgramLowering::get(const nn::AdjacentGroup &group, Type elementType) {
  Value &value = gets[group.names.front()];
  if (!value)
    value = exec::GetOp::create(b, state.lookup(group.names.front()).getLoc(),
                                MemRefType::get(group.elements, elementType),
                                group.names);
  return value;
}

Value ProgramLowering::adjacentParts(nn::ConcatOp op) {
  const nn::AdjacentGroup *group = state.getAdjacent().groupOf(op);
  if (!group || !joined.contains(group))
    return {};
  auto type = cast<RankedTensorType>(op.getType());
  Value whole = get(*group, type.getElementType());
  for (auto [part, name, begin] :
       llvm::zip_equal(op.getInputs(), group->names, group->begins)) {
    // A part that changed since it was read was copied there.
    auto shape = cast<RankedTensorType>(part.getType()).getShape();
    if (buffer(part) != view(whole, shape, begin) ||
        isUsedAfterUpdate(op.getResult(), name))
      return {};
  }
  return view(whole, type.getShape());
}

LogicalResult ProgramLowering::lowerConcat(nn::ConcatOp op) {
  if (Value parts = adjacentParts(op)) {
    held[op.getResult()] = parts;
    return success();
  }
  Value to = buffer(op.getResult(), op);
  bool isContiguous = nn::hasContiguousParts(op);
  int64_t rank = cast<MemRefType>(to.getType()).getRank(), position = 0;
  SmallVector<int64_t> zeros(rank, 0), offsets(rank, 0);
  for (Value input : op.getInputs()) {
    auto type = cast<RankedTensorType>(input.getType());
    Value from = buffer(input);
    if (!isContiguous)
      copyBox(op.getLoc(), from, to, type.getShape(), zeros, offsets);
    else if (Value place = view(to, type.getShape(), position); place != from)
      copy(op.getLoc(), from, place);
    offsets[op.getDim()] += type.getDimSize(op.getDim());
    position += type.getNumElements();
  }
  return success();
}
