//===- AdjacentReads.cpp - Parameters that lie side by side ---------------===//
#include "dialects/NN/AdjacentReads.h"
#include "dialects/NN/Boxes.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::nn;

/// The read whose whole value `value` is, or null.
static ReadOp wholeRead(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto read = dyn_cast<ReadOp>(op))
      return read;
    if (!isa<RecomputeFromOp>(op))
      break;
    value = op->getOperand(cast<OpResult>(value).getResultNumber());
  }
  return {};
}

static bool isReadByProductsAlone(Value value) {
  return llvm::all_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    return isa<RecomputeFromOp>(user)
               ? isReadByProductsAlone(user->getResult(use.getOperandNumber()))
               : user->hasTrait<MatrixProduct>();
  });
}

/// Whether a rank stores the two alike: as parameters, or as buffers of one
/// role.
static bool areAlike(Operation *a, Operation *b) {
  return a->getName() == b->getName() &&
         a->hasAttr(kStateOfAttr) == b->hasAttr(kStateOfAttr) &&
         a->hasAttr(kComputeCopyOfAttr) == b->hasAttr(kComputeCopyOfAttr);
}

/// What `op` would read as one; none if anything is in the way.
static std::optional<AdjacentGroup> groupFor(ConcatOp op, SymbolTable &symbols,
                                             int64_t alignment) {
  if (!hasContiguousParts(op) || op.getInputs().size() < 2 || op->use_empty() ||
      !isReadByProductsAlone(op.getResult()))
    return std::nullopt;
  AdjacentGroup group;
  Operation *first = nullptr;
  for (Value part : op.getInputs()) {
    ReadOp read = wholeRead(part);
    Operation *declared = read ? symbols.lookup(read.getName()) : nullptr;
    if (!declared || (first && !areAlike(first, declared)))
      return std::nullopt;
    StringAttr name = read.getNameAttr().getAttr();
    if (llvm::is_contained(group.names, name))
      return std::nullopt;
    first = first ? first : declared;
    auto type = cast<RankedTensorType>(part.getType());
    int64_t width = type.getElementTypeBitWidth() / 8;
    if (group.elements * width % alignment != 0)
      return std::nullopt;
    group.names.push_back(name);
    group.begins.push_back(group.elements);
    group.elements += type.getNumElements();
  }
  return group;
}

AdjacentReads::AdjacentReads(ModuleOp module, int64_t alignment) {
  SmallVector<ConcatOp> joins;
  module.walk([&](ConcatOp op) { joins.push_back(op); });
  if (joins.empty())
    return;
  SymbolTable symbols(module);
  for (ConcatOp op : joins)
    if (auto group = groupFor(op, symbols, alignment))
      add(op, std::move(*group));
}

void AdjacentReads::add(ConcatOp op, AdjacentGroup group) {
  auto known = ofName.find(group.names.front());
  bool isKnown = known != ofName.end();
  if (isKnown ? groups[known->second].names != group.names
              : llvm::any_of(group.names, [&](StringAttr name) {
                  return ofName.contains(name);
                }))
    return;
  size_t number = isKnown ? known->second : groups.size();
  ofConcat[op] = number;
  if (isKnown)
    return;
  for (StringAttr name : group.names)
    ofName[name] = number;
  groups.push_back(std::move(group));
}

const AdjacentGroup *AdjacentReads::groupOf(ConcatOp op) const {
  auto at = ofConcat.find(op);
  return at == ofConcat.end() ? nullptr : &groups[at->second];
}

const AdjacentGroup *AdjacentReads::groupOf(StringRef name) const {
  auto at = ofName.find(name);
  return at == ofName.end() ? nullptr : &groups[at->second];
}
