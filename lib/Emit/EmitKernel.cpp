//===- EmitKernel.cpp - exec.kernel to loops ------------------------------===//
//
// On the CPU a kernel is a loop over its rows; exec.reduce and exec.map are
// loops over the columns, vectorised by the host compiler. The order in which
// a reduction combines is fixed by the helpers of KernelMath.h (16 lanes and a
// tree over columns, blocks of 32 over rows), never by the vector width.
//
//===----------------------------------------------------------------------===//
#include "EmitKernel.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::emit;

//===----------------------------------------------------------------------===//
// What both targets share
//===----------------------------------------------------------------------===//

exec::Access emit::accessOf(exec::KernelOp kernel, unsigned position) {
  return cast<exec::AccessAttr>(kernel.getAccess()[position]).getValue();
}

StringRef emit::storageType(Type type) {
  if (type.isF32())
    return "float";
  if (type.isBF16())
    return "BF16";
  if (type.isF64())
    return "double";
  if (type.isInteger(8))
    return "int8_t";
  if (type.isInteger(32))
    return "int32_t";
  return "int64_t";
}

StringRef emit::combineName(exec::ReduceKind kind) {
  return kind == exec::ReduceKind::Sum ? "sum" : "max";
}

StringRef emit::combineType(exec::ReduceKind kind) {
  return kind == exec::ReduceKind::Sum ? "math::AddRows" : "math::MaxRows";
}

std::string emit::reduceRowsName(exec::ReduceRowsOp op) {
  return ("math::" + combineName(op.getKind()) +
          (op.getInOrder() ? "Blocks" : "Rows"))
      .str();
}

bool emit::combinesBlocks(exec::KernelOp kernel) {
  return !kernel.getColumnReduction() &&
         !kernel.getBody().getOps<exec::ReduceRowsOp>().empty();
}

bool emit::isInOrder(exec::KernelOp kernel) {
  return llvm::any_of(kernel.getBody().getOps<exec::ReduceRowsOp>(),
                      [](exec::ReduceRowsOp op) { return op.getInOrder(); });
}

/// The index of an argument at the current position.
static StringRef indexText(exec::Access access) {
  switch (access) {
  case exec::Access::Element:
    return "first + col";
  case exec::Access::Row:
    return "row";
  case exec::Access::Column:
    return "col";
  case exec::Access::Scalar:
    return "0";
  case exec::Access::Block:
    return "block * cols + col";
  }
  llvm_unreachable("an access");
}

void KernelEmitter::nameArgument(unsigned position, BlockArgument arg) {
  unsigned inputs = kernel.getBody().getNumArguments() - kernel.getOutputs();
  StringRef label = locationName(arg.getLoc());
  exec::Access access = accessOf(kernel, position);
  hasElements |= access == exec::Access::Element;

  KernelArgument &entry = code.arguments[arg];
  entry.type = cast<MemRefType>(arg.getType());
  entry.isOutput = position >= inputs;
  entry.index = indexText(access).str();
  std::string fallback = entry.isOutput
                             ? llvm::formatv("out{0}", position - inputs).str()
                             : llvm::formatv("in{0}", position).str();
  entry.name = code.names.unique(label.empty() ? fallback : identifier(label));
}

void KernelEmitter::nameArguments() {
  for (BlockArgument arg : kernel.getBody().getArguments())
    nameArgument(arg.getArgNumber(), arg);
}

void KernelEmitter::describe() {
  os << llvm::formatv("\n/// {0} {1} of {2}", kernel.getRows(),
                      kernel.getRows() == 1 ? "row" : "rows", kernel.getCols());
  if (!user.empty())
    os << ", first for " << inComment(user);
  os << ".\n";
}

void KernelEmitter::constant(StringRef name, int64_t value) {
  code.indent() << "constexpr int64_t " << name << " = " << value << ";\n";
}

void KernelEmitter::declareFirst() {
  if (hasElements)
    code.indent() << "const int64_t first = row * cols;\n";
}

LogicalResult KernelEmitter::yielding(Block &body, StringRef taken,
                                      StringRef end) {
  for (Operation &op : body) {
    if (auto yield = dyn_cast<exec::YieldOp>(op)) {
      code.indent() << taken << code.text(yield.getValue(), Precedence::Select)
                    << end << '\n';
      continue;
    }
    if (failed(code.scalar(&op)))
      return failure();
  }
  return success();
}

LogicalResult KernelEmitter::reduce(exec::ReduceOp op) {
  StringRef kind = combineName(op.getKind());
  std::string name = code.names.unique(kind);
  code.indent() << "const float " << name << " = math::" << kind
                << "Lanes(cols, [&](int64_t col) {\n";
  ++code.depth;
  if (failed(yielding(op.getBody().front())))
    return failure();
  --code.depth;
  code.indent() << "});\n";
  code.bind(op.getResult(), name);
  return success();
}

LogicalResult KernelEmitter::mapBody(exec::MapOp op) {
  for (Operation &inner : op.getBody().front()) {
    if (auto store = dyn_cast<exec::StoreOp>(inner))
      code.store(store);
    else if (failed(code.scalar(&inner)))
      return failure();
  }
  return success();
}

LogicalResult KernelEmitter::rowOp(Operation &op) {
  if (auto inner = dyn_cast<exec::ReduceOp>(op))
    return reduce(inner);
  if (auto inner = dyn_cast<exec::MapOp>(op)) {
    beginMap(inner);
    if (failed(mapBody(inner)))
      return failure();
    endMap(inner);
    return success();
  }
  if (auto store = dyn_cast<exec::StoreOp>(op)) {
    storeOfRow(store);
    return success();
  }
  if (auto inner = dyn_cast<exec::ReduceRowsOp>(op))
    return combineRow(inner);
  return code.scalar(&op);
}

LogicalResult KernelEmitter::columnReductions() {
  for (Operation &op : kernel.getBody().front()) {
    if (auto reduction = dyn_cast<exec::ReduceRowsOp>(op)) {
      if (failed(columnReduction(reduction)))
        return failure();
      continue;
    }
    if (!isa<arith::ConstantOp>(op))
      return op.emitOpError("may not stand in a column reduction");
    if (failed(code.scalar(&op)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The CPU's kernels
//===----------------------------------------------------------------------===//

namespace {

class CpuKernelEmitter : public KernelEmitter {
public:
  using KernelEmitter::KernelEmitter;

  LogicalResult emit(StringRef name) override;

private:
  void beginMap(exec::MapOp op) override { beginLoop(op); }
  void endMap(exec::MapOp op) override { endLoop(op); }
  void beginLoop(Operation *op);
  void endLoop(Operation *op);
  void storeOfRow(exec::StoreOp op) override { code.store(op); }
  LogicalResult columnReduction(exec::ReduceRowsOp op) override;
  LogicalResult combineRow(exec::ReduceRowsOp op) override;
  std::string blockOf(exec::ReduceRowsOp op);
  void declareArguments();
  LogicalResult rowLoop(StringRef begin, StringRef end);
  LogicalResult blockLoop();
};

} // namespace

void CpuKernelEmitter::declareArguments() {
  nameArguments();
  for (BlockArgument arg : kernel.getBody().getArguments()) {
    const KernelArgument &entry = code.arguments[arg];
    StringRef element = storageType(entry.type.getElementType());
    StringRef constness = entry.isOutput ? "" : "const ";
    // A kernel's outputs never overlap its other arguments (exec-verify).
    code.indent() << constness << element << " *__restrict " << entry.name
                  << " = reinterpret_cast<" << constness << element
                  << " *>(args[" << arg.getArgNumber() << "]);\n";
  }
}

/// A map and the sums of rows that follow it are one loop, in which the
/// compiler finds what they both compute.
void CpuKernelEmitter::beginLoop(Operation *op) {
  Operation *before = op->getPrevNode();
  if (isa<exec::ReduceRowsOp>(op) &&
      isa_and_nonnull<exec::MapOp, exec::ReduceRowsOp>(before))
    return;
  os << "#pragma omp simd\n";
  code.indent() << "for (int64_t col = 0; col < cols; ++col) {\n";
  ++code.depth;
}

void CpuKernelEmitter::endLoop(Operation *op) {
  if (isa_and_nonnull<exec::ReduceRowsOp>(op->getNextNode()))
    return;
  --code.depth;
  code.indent() << "}\n";
}

LogicalResult CpuKernelEmitter::rowLoop(StringRef begin, StringRef end) {
  code.indent() << "for (int64_t row = " << begin << "; row < " << end
                << "; ++row) {\n";
  ++code.depth;
  declareFirst();
  for (Operation &op : kernel.getBody().front())
    if (failed(rowOp(op)))
      return failure();
  --code.depth;
  code.indent() << "}\n";
  return success();
}

/// What the rows of the current block combine to.
std::string CpuKernelEmitter::blockOf(exec::ReduceRowsOp op) {
  return code.arguments.lookup(op.getTarget()).name + " + block * cols";
}

LogicalResult CpuKernelEmitter::blockLoop() {
  code.indent() << "for (int64_t block = begin; block < end; ++block) {\n";
  ++code.depth;
  code.indent() << "const int64_t top = block * math::kRowBlock;\n";
  for (auto op : kernel.getBody().getOps<exec::ReduceRowsOp>())
    code.indent() << "math::startBlock<" << combineType(op.getKind())
                  << ">(cols, " << blockOf(op) << ");\n";
  if (failed(rowLoop("top", "top + math::kRowBlock")))
    return failure();
  --code.depth;
  code.indent() << "}\n";
  return success();
}

LogicalResult CpuKernelEmitter::combineRow(exec::ReduceRowsOp op) {
  const KernelArgument &target = code.arguments.lookup(op.getTarget());
  std::string sum = target.name + '[' + target.index + ']';
  std::string combined =
      (sum + " = " + combineType(op.getKind()) + "::combine(" + sum + ", ")
          .str();
  beginLoop(op);
  if (failed(yielding(op.getBody().front(), combined, ");")))
    return failure();
  endLoop(op);
  return success();
}

LogicalResult CpuKernelEmitter::columnReduction(exec::ReduceRowsOp op) {
  const KernelArgument &target = code.arguments.lookup(op.getTarget());
  code.indent() << reduceRowsName(op) << "(rows, begin, end, " << target.name
                << ", [&](int64_t row, int64_t col) {\n";
  ++code.depth;
  declareFirst();
  if (failed(yielding(op.getBody().front())))
    return failure();
  --code.depth;
  code.indent() << "});\n";
  return success();
}

LogicalResult CpuKernelEmitter::emit(StringRef name) {
  describe();
  os << "static void " << name
     << "(int64_t begin, int64_t end, const Ptr *args) {\n";
  if (kernel.getColumnReduction())
    constant("rows", kernel.getRows());
  constant("cols", kernel.getCols());
  declareArguments();
  LogicalResult result = kernel.getColumnReduction() ? columnReductions()
                         : combinesBlocks(kernel)    ? blockLoop()
                                                     : rowLoop("begin", "end");
  if (failed(result))
    return failure();
  os << "}\n";
  return success();
}

LogicalResult emit::emitKernel(exec::KernelOp kernel, StringRef name,
                               StringRef user, llvm::raw_ostream &os) {
  return CpuKernelEmitter(kernel, user, os).emit(name);
}
