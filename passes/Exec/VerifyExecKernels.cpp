//===- VerifyExecKernels.cpp - Kernels write all, and without races -------===//
//
// The rows of a kernel run at once, and so do the columns of an exec.map: on a
// GPU columns have threads of their own. So one thread alone may store an
// element, and no other may read it: maps and reductions give a column to the
// same thread.
//
//===----------------------------------------------------------------------===//
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "passes/Exec/VerifyExec.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::proof;

//===----------------------------------------------------------------------===//
// Columns that a load names
//===----------------------------------------------------------------------===//

namespace {

/// Shows that an integer of a kernel is a column, whatever the numbers are that
/// it is computed from: by intervals, which are halved where they say too
/// little.
class ColumnBound {
public:
  ColumnBound(exec::KernelOp kernel, Value index);

  /// False where it is no column, or where halving does not show that it is.
  bool holds() const;

private:
  /// Intervals of the leaves.
  using Box = SmallVector<ConstantIntRanges, 2>;

  ConstantIntRanges evaluate(const Box &box) const;
  static std::optional<std::pair<Box, Box>> halve(const Box &box);

  int64_t cols;
  Value index;
  /// What the index is computed by, in order, and its leaves: the column, which
  /// is one wherever it is asked for, and what is loaded or no integer.
  SmallVector<Operation *> operations;
  DenseMap<Operation *, size_t> leaves;
  Box whole;
};

} // namespace

/// How many boxes are looked at before an index counts as unbounded.
static constexpr int kMaxBoxes = 4096;

ColumnBound::ColumnBound(exec::KernelOp kernel, Value index)
    : cols(kernel.getCols()), index(index) {
  llvm::SmallPtrSet<Operation *, 8> slice;
  SmallVector<Value> pending = {index};
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (op && slice.insert(op).second && isa<InferIntRangeInterface>(op))
      llvm::copy_if(op->getOperands(), std::back_inserter(pending),
                    [](Value v) { return v.getType().isIntOrIndex(); });
  }
  std::optional<size_t> column;
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!slice.contains(op))
      return;
    operations.push_back(op);
    if (isa<InferIntRangeInterface>(op))
      return;
    bool isColumn = isa<exec::ColumnOp>(op);
    if (isColumn && column) {
      leaves[op] = *column;
      return;
    }
    leaves[op] = whole.size();
    if (isColumn) {
      column = whole.size();
      whole.push_back(
          ConstantIntRanges::fromSigned(APInt(32, 0), APInt(32, cols - 1)));
    } else {
      whole.push_back(ConstantIntRanges::maxRange(
          ConstantIntRanges::getStorageBitwidth(op->getResult(0).getType())));
    }
  });
}

ConstantIntRanges ColumnBound::evaluate(const Box &box) const {
  DenseMap<Value, IntegerValueRange> known;
  auto set = [&](Value value, const IntegerValueRange &range) {
    known.insert_or_assign(value, range);
  };
  for (Operation *op : operations) {
    auto inferred = dyn_cast<InferIntRangeInterface>(op);
    if (!inferred) {
      set(op->getResult(0), box[leaves.lookup(op)]);
      continue;
    }
    SmallVector<IntegerValueRange> operands;
    for (Value operand : op->getOperands())
      operands.push_back(known.lookup(operand));
    inferred.inferResultRangesFromOptional(operands, set);
  }
  IntegerValueRange range = known.lookup(index);
  return range.isUninitialized() ? ConstantIntRanges::maxRange(32)
                                 : range.getValue();
}

/// Halves the widest interval; none if every one is a number.
std::optional<std::pair<ColumnBound::Box, ColumnBound::Box>>
ColumnBound::halve(const Box &box) {
  size_t widest = 0;
  uint64_t width = 0;
  for (auto [leaf, range] : llvm::enumerate(box)) {
    uint64_t span = (range.smax() - range.smin()).getZExtValue();
    if (span > width)
      std::tie(widest, width) = std::pair(leaf, span);
  }
  if (width == 0)
    return std::nullopt;
  Box low = box, high = box;
  const ConstantIntRanges &range = box[widest];
  APInt middle = range.smin() + APInt(range.smin().getBitWidth(), width / 2);
  low[widest] = ConstantIntRanges::fromSigned(range.smin(), middle);
  high[widest] = ConstantIntRanges::fromSigned(middle + 1, range.smax());
  return std::pair(low, high);
}

bool ColumnBound::holds() const {
  std::vector<Box> boxes = {whole};
  for (int looked = 0; !boxes.empty(); ++looked) {
    Box box = std::move(boxes.back());
    boxes.pop_back();
    ConstantIntRanges range = evaluate(box);
    int64_t least = range.smin().getSExtValue();
    int64_t most = range.smax().getSExtValue();
    if (least >= 0 && most < cols)
      continue;
    auto halves = halve(box);
    if (most < 0 || least >= cols || !halves || looked == kMaxBoxes)
      return false;
    boxes.push_back(std::move(halves->second));
    boxes.push_back(std::move(halves->first));
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

namespace {

class KernelVerifier {
public:
  explicit KernelVerifier(exec::KernelOp kernel)
      : kernel(kernel), body(kernel.getBody().front()) {}

  LogicalResult run();

private:
  LogicalResult check(Operation *op);
  LogicalResult checkStore(exec::StoreOp store);
  LogicalResult checkLoad(exec::LoadOp load);
  LogicalResult checkColumn(Operation *op, Value buffer);

  bool isOutput(Value value) {
    return cast<BlockArgument>(value).getArgNumber() + kernel.getOutputs() >=
           body.getNumArguments();
  }
  exec::Access accessOf(Value value) {
    unsigned number = cast<BlockArgument>(value).getArgNumber();
    return cast<exec::AccessAttr>(kernel.getAccess()[number]).getValue();
  }

  exec::KernelOp kernel;
  Block &body;
  llvm::SmallPtrSet<Value, 4> written;
  /// Those of them that the column's own thread has stored.
  llvm::SmallPtrSet<Value, 4> writtenByColumn;
};

} // namespace

/// Only inside of exec.map and of reductions is there a column.
LogicalResult KernelVerifier::checkColumn(Operation *op, Value buffer) {
  exec::Access access = accessOf(buffer);
  bool hasColumn =
      access == exec::Access::Element || access == exec::Access::Column;
  if (!hasColumn || op->getParentOp() != kernel)
    return success();
  return op->emitOpError("needs a column, which exists only inside exec.map "
                         "and reductions: its argument is addressed by ")
         << exec::stringifyAccess(access);
}

LogicalResult KernelVerifier::checkStore(exec::StoreOp store) {
  bool inMap = isa<exec::MapOp>(store->getParentOp());
  if (!inMap && store->getParentOp() != kernel)
    return store.emitOpError("stands inside a reduction, whose body has no "
                             "effects");
  if (failed(checkColumn(store, store.getTarget())))
    return failure();
  exec::Access access = accessOf(store.getTarget());
  bool namesRow =
      access == exec::Access::Element || access == exec::Access::Row;
  bool namesColumn =
      access == exec::Access::Element || access == exec::Access::Column;
  bool byColumns = inMap && !namesColumn && kernel.getCols() > 1;
  if (byColumns || (!namesRow && kernel.getRows() > 1))
    return store.emitOpError("is a race: every ")
           << (byColumns ? "column" : "row")
           << " writes the same element of an output that is addressed by "
           << exec::stringifyAccess(access);
  written.insert(store.getTarget());
  if (inMap)
    writtenByColumn.insert(store.getTarget());
  return success();
}

LogicalResult KernelVerifier::checkLoad(exec::LoadOp load) {
  Value source = load.getSource();
  if (!load.getColumn() && failed(checkColumn(load, source)))
    return failure();
  if (isOutput(source)) {
    if (!written.contains(source))
      return load.emitOpError(
          "reads an output that the kernel has not written yet");
    if (load.getColumn())
      return load.emitOpError("reads another column of an output, which "
                              "another thread may not have written yet");
    if (!writtenByColumn.contains(source) || load->getParentOp() == kernel)
      return load.emitOpError("reads an output that this column has not stored "
                              "itself: another thread may not have written it "
                              "yet");
  }
  if (load.getColumn() && !ColumnBound(kernel, load.getColumn()).holds())
    return load.emitOpError("may read outside of the ")
           << kernel.getCols()
           << " columns: bound the column, with arith.cmpi and arith.select";
  return success();
}

LogicalResult KernelVerifier::check(Operation *op) {
  if (auto reduction = dyn_cast<exec::ReduceRowsOp>(op))
    if (!written.insert(reduction.getTarget()).second)
      return op->emitOpError("writes an output that the kernel has written");
  if (auto store = dyn_cast<exec::StoreOp>(op))
    return checkStore(store);
  if (auto load = dyn_cast<exec::LoadOp>(op))
    return checkLoad(load);
  if (isa<exec::ColumnOp>(op) && op->getParentOp() == kernel)
    return op->emitOpError(
        "stands outside exec.map and reductions, where there is no column");
  return success();
}

LogicalResult KernelVerifier::run() {
  WalkResult result = body.walk<WalkOrder::PreOrder>(
      [&](Operation *op) { return WalkResult(check(op)); });
  if (result.wasInterrupted())
    return failure();
  for (BlockArgument output :
       body.getArguments().take_back(kernel.getOutputs()))
    if (!written.contains(output))
      return kernel.emitOpError("does not write all of its output ")
             << output.getArgNumber();
  return success();
}

LogicalResult proof::verifyKernel(exec::KernelOp kernel) {
  return KernelVerifier(kernel).run();
}
