//===- EmitKernel.cpp - exec.kernel to loops ------------------------------===//
//
// A kernel is a loop over its rows; exec.reduce and exec.map are loops over
// the columns, vectorised by the host compiler. The order in which a
// reduction combines is fixed by the helpers of KernelMath.h (16 lanes and a
// tree over columns, blocks of 32 over rows), never by the vector width.
//
//===----------------------------------------------------------------------===//
#include "EmitExpression.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::emit;

namespace {

class KernelEmitter {
public:
  KernelEmitter(exec::KernelOp kernel, llvm::raw_ostream &os)
      : kernel(kernel), os(os), code(os) {}

  LogicalResult emit(StringRef name);

private:
  void declareArguments();
  void declareArgument(unsigned position, BlockArgument arg);
  LogicalResult rowLoop();
  LogicalResult rowBody(Operation &op);
  LogicalResult columnReduction(exec::ReduceRowsOp op);
  LogicalResult reduce(exec::ReduceOp op);
  LogicalResult map(exec::MapOp op);
  /// The ops of a lambda's body and its `return`.
  LogicalResult yielding(Block &body);
  /// `first` is the index of the row's first element.
  void declareFirst();

  exec::KernelOp kernel;
  llvm::raw_ostream &os;
  ExpressionEmitter code;
  bool hasElements = false;
};

} // namespace

static exec::Access accessOf(exec::KernelOp kernel, unsigned position) {
  return cast<exec::AccessAttr>(kernel.getAccess()[position]).getValue();
}

static StringRef storageType(Type type) {
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
  }
  llvm_unreachable("an access");
}

void KernelEmitter::declareArgument(unsigned position, BlockArgument arg) {
  auto type = cast<MemRefType>(arg.getType());
  unsigned count = kernel.getBody().getNumArguments();
  bool isOutput = position >= count - kernel.getOutputs();
  StringRef label = locationName(arg.getLoc());
  exec::Access access = accessOf(kernel, position);
  hasElements |= access == exec::Access::Element;

  KernelArgument &entry = code.arguments[arg];
  entry.type = type;
  entry.isOutput = isOutput;
  entry.index = indexText(access).str();
  std::string fallback =
      isOutput
          ? llvm::formatv("out{0}", position - (count - kernel.getOutputs()))
                .str()
          : llvm::formatv("in{0}", position).str();
  entry.name = code.names.unique(label.empty() ? fallback : identifier(label));

  StringRef element = storageType(type.getElementType());
  StringRef constness = isOutput ? "" : "const ";
  // A kernel's outputs never overlap its other arguments (exec-verify).
  code.indent() << constness << element << " *__restrict " << entry.name
                << " = reinterpret_cast<" << constness << element << " *>(args["
                << position << "]);\n";
}

void KernelEmitter::declareArguments() {
  for (const char *name :
       {"row", "col", "rows", "cols", "begin", "end", "first", "args"})
    code.names.unique(name);
  for (BlockArgument arg : kernel.getBody().getArguments())
    declareArgument(arg.getArgNumber(), arg);
}

void KernelEmitter::declareFirst() {
  if (hasElements)
    code.indent() << "const int64_t first = row * cols;\n";
}

LogicalResult KernelEmitter::yielding(Block &body) {
  for (Operation &op : body) {
    if (auto yield = dyn_cast<exec::YieldOp>(op)) {
      code.indent() << "return "
                    << code.text(yield.getValue(), Precedence::Select) << ";\n";
      continue;
    }
    if (failed(code.scalar(&op)))
      return failure();
  }
  return success();
}

static StringRef combineName(exec::ReduceKind kind) {
  return kind == exec::ReduceKind::Sum ? "sum" : "max";
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

LogicalResult KernelEmitter::map(exec::MapOp op) {
  os << "#pragma omp simd\n";
  code.indent() << "for (int64_t col = 0; col < cols; ++col) {\n";
  ++code.depth;
  for (Operation &inner : op.getBody().front()) {
    if (auto store = dyn_cast<exec::StoreOp>(inner))
      code.store(store);
    else if (failed(code.scalar(&inner)))
      return failure();
  }
  --code.depth;
  code.indent() << "}\n";
  return success();
}

LogicalResult KernelEmitter::rowBody(Operation &op) {
  if (auto inner = dyn_cast<exec::ReduceOp>(op))
    return reduce(inner);
  if (auto inner = dyn_cast<exec::MapOp>(op))
    return map(inner);
  if (auto store = dyn_cast<exec::StoreOp>(op)) {
    code.store(store);
    return success();
  }
  return code.scalar(&op);
}

LogicalResult KernelEmitter::rowLoop() {
  code.indent() << "for (int64_t row = begin; row < end; ++row) {\n";
  ++code.depth;
  declareFirst();
  for (Operation &op : kernel.getBody().front())
    if (failed(rowBody(op)))
      return failure();
  --code.depth;
  code.indent() << "}\n";
  return success();
}

LogicalResult KernelEmitter::columnReduction(exec::ReduceRowsOp op) {
  const KernelArgument &target = code.arguments.lookup(op.getTarget());
  code.indent() << "math::" << combineName(op.getKind())
                << "Rows(rows, begin, end, " << target.name
                << ", [&](int64_t row, int64_t col) {\n";
  ++code.depth;
  declareFirst();
  if (failed(yielding(op.getBody().front())))
    return failure();
  --code.depth;
  code.indent() << "});\n";
  return success();
}

LogicalResult KernelEmitter::emit(StringRef name) {
  os << llvm::formatv("\n/// {0} rows of {1}", kernel.getRows(),
                      kernel.getCols());
  StringRef layer = locationName(kernel.getLoc());
  if (!layer.empty())
    os << ", first for " << layer;
  os << ".\nstatic void " << name
     << "(int64_t begin, int64_t end, const Ptr *args) {\n";
  if (kernel.getColumnReduction())
    code.indent() << llvm::formatv("constexpr int64_t rows = {0};\n",
                                   kernel.getRows());
  code.indent() << llvm::formatv("constexpr int64_t cols = {0};\n",
                                 kernel.getCols());
  declareArguments();
  if (!kernel.getColumnReduction()) {
    if (failed(rowLoop()))
      return failure();
  } else {
    for (Operation &op : kernel.getBody().front()) {
      auto reduction = dyn_cast<exec::ReduceRowsOp>(op);
      if (!reduction && isa<arith::ConstantOp>(op)) {
        if (failed(code.scalar(&op)))
          return failure();
        continue;
      }
      if (!reduction)
        return op.emitOpError("may not stand in a column reduction");
      if (failed(columnReduction(reduction)))
        return failure();
    }
  }
  os << "}\n";
  return success();
}

LogicalResult emit::emitKernel(exec::KernelOp kernel, StringRef name,
                               llvm::raw_ostream &os) {
  return KernelEmitter(kernel, os).emit(name);
}
