//===- EmitCudaKernel.cpp - exec.kernel to __global__ functions -----------===//
//
// Four shapes, by what the kernel does:
//
//   pointwise          one thread per vector of neighbours, or per element (or
//                      per row, without columns)
//   rows               16 threads per row, the lanes of exec.reduce, so that a
//                      reduction adds in the CPU's order; 16 rows per block.
//                      Maps have no order: a thread takes a vector at a time.
//                      A long row has a block, of which 16 threads add what all
//                      of them compute
//   rows in blocks     a kernel of rows that also combines blocks of 32 of them
//                      has a block of threads for each, which takes two rows at
//                      a time, or up to sixteen short ones
//   column reduction   blocks of two vectors of columns, or of 32 columns; many
//                      blocks of 32 rows at a time. One over such blocks has a
//                      block of threads for 32 columns
//
// The helpers in CudaKernels.h and CudaRows.h of include/fsdp/Runtime know
// grids and blocks; the scalar code in between is the CPU's.
//
//===----------------------------------------------------------------------===//
#include "lib/Target/Cuda/EmitCudaKernel.h"
#include "lib/Emit/EmitKernel.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::emit;

namespace {

class CudaKernelEmitter : public KernelEmitter {
public:
  CudaKernelEmitter(exec::KernelOp kernel, const VectorizedAccess &vectorized,
                    StringRef user, llvm::raw_ostream &os)
      : KernelEmitter(kernel, user, os), vectorized(vectorized) {}

  LogicalResult emit(StringRef name) override;

private:
  void beginMap(exec::MapOp op) override;
  void endMap(exec::MapOp op) override;
  void storeOfRow(exec::StoreOp op) override;
  LogicalResult columnReduction(exec::ReduceRowsOp op) override;
  LogicalResult combineRow(exec::ReduceRowsOp op) override;
  LogicalResult reduce(exec::ReduceOp op) override;
  LogicalResult vectorTerms(Operation *op);
  void signature(StringRef name);
  LogicalResult checkReads();
  void pointwiseHead();
  LogicalResult pointwise();
  LogicalResult rows();
  LogicalResult rowBlocks();
  LogicalResult eachRowOp();
  auto sums() { return kernel.getBody().getOps<exec::ReduceRowsOp>(); }
  std::string rowBlock();
  std::string blocksAtOnce();
  StringRef threadsOfRow();
  LogicalResult terms(Operation *op);

  // Maps that take a vector of neighbours at a time.
  void loadVectors(Operation *op);
  void storeVectors();
  void beginVectorLoop(Region &body);
  void beginNeighbours(exec::MapOp op);
  void endNeighbours(exec::MapOp op);
  std::string vectorAt(const KernelArgument &arg);
  bool isVectorized() const { return vectorized.neighbours > 1; }

  VectorizedAccess vectorized;

  /// Columns have threads of their own, so a map needs no loop.
  bool isPointwise = false;
  /// The block has several rows, of a block of rows.
  bool hasRowBlocks = false;
  /// The names of what a thread combines.
  llvm::DenseMap<Operation *, std::string> columns;
};

} // namespace

bool emit::isPointwise(exec::KernelOp kernel) {
  if (kernel.getColumnReduction() || combinesBlocks(kernel))
    return false;
  bool hasMap = false, hasReduce = false, hasRowStore = false;
  for (Operation &op : kernel.getBody().front()) {
    hasMap |= isa<exec::MapOp>(op);
    hasReduce |= isa<exec::ReduceOp>(op);
    hasRowStore |= isa<exec::StoreOp>(op);
  }
  // With both, each value of a row would be stored once per column.
  return !hasReduce && hasMap && !hasRowStore;
}

/// A thread may read an output only where it wrote it.
LogicalResult CudaKernelEmitter::checkReads() {
  WalkResult result = kernel.walk([&](exec::LoadOp load) {
    if (!load.getColumn() || !code.arguments.lookup(load.getSource()).isOutput)
      return WalkResult::advance();
    load.emitOpError("reads another column of an output, which another thread "
                     "may not have written yet");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

void CudaKernelEmitter::signature(StringRef name) {
  if (hasRowBlocks)
    os << "__launch_bounds__(gpu::kRowBlockThreads, " << blocksAtOnce()
       << ")\n";
  os << "__global__ void " << name << '(';
  for (BlockArgument arg : kernel.getBody().getArguments()) {
    const KernelArgument &entry = code.arguments[arg];
    // A kernel's outputs never overlap its other arguments (exec-verify).
    os << (arg.getArgNumber() == 0 ? "" : ",\n    ")
       << (entry.isOutput ? "" : "const ")
       << storageType(entry.type.getElementType()) << " *__restrict__ "
       << entry.name;
  }
  os << ") {\n";
}

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

/// Where the vector of an argument begins: an element's, or a column's.
std::string CudaKernelEmitter::vectorAt(const KernelArgument &arg) {
  if (vectorized.isFlat)
    return arg.name + " + first";
  return arg.name + (arg.index == "col" ? " + left" : " + first + left");
}

/// Reads the vectors of what a map or a reduction reads, and declares those
/// that a map writes.
void CudaKernelEmitter::loadVectors(Operation *op) {
  for (BlockArgument value : kernel.getBody().getArguments()) {
    KernelArgument &arg = code.arguments[value];
    exec::Access access = accessOf(kernel, value.getArgNumber());
    bool isUsed = llvm::any_of(value.getUsers(), [&](Operation *user) {
      auto load = dyn_cast<exec::LoadOp>(user);
      return user->getParentOp() == op && !(load && load.getColumn());
    });
    bool isWide =
        access == exec::Access::Element || access == exec::Access::Column;
    if (!isUsed || !isWide)
      continue;
    std::string count = std::to_string(vectorized.neighbours);
    StringRef name = StringRef(arg.name).rtrim('_');
    arg.vector = code.names.unique((name + "_" + count).str());
    if (arg.isOutput)
      code.indent() << "gpu::Packet<" << storageType(arg.type.getElementType())
                    << ", " << count << "> " << arg.vector << ";\n";
    else
      code.indent() << "const auto " << arg.vector << " = gpu::load<" << count
                    << ">(" << vectorAt(arg) << ");\n";
  }
}

void CudaKernelEmitter::storeVectors() {
  for (BlockArgument value : kernel.getBody().getArguments()) {
    KernelArgument &arg = code.arguments[value];
    if (arg.isOutput && !arg.vector.empty())
      code.indent() << "gpu::store(" << vectorAt(arg) << ", " << arg.vector
                    << ");\n";
    arg.vector.clear();
  }
}

/// The head of a loop over the elements of vectors.
void CudaKernelEmitter::beginVectorLoop(Region &body) {
  code.indent() << "FSDP_UNROLL\n";
  code.indent() << "for (int i = 0; i < " << vectorized.neighbours
                << "; ++i) {\n";
  ++code.depth;
  if (!body.getOps<exec::ColumnOp>().empty())
    code.indent() << "const int64_t col = left + i;\n";
}

void CudaKernelEmitter::beginNeighbours(exec::MapOp op) {
  if (!isPointwise) {
    code.indent() << "for (int64_t left = "
                  << (vectorized.hasBlockPerRow ? "int64_t(threadIdx.x)"
                                                : "gpu::lane()")
                  << " * " << vectorized.neighbours
                  << "; left < cols; left += " << threadsOfRow() << " * "
                  << vectorized.neighbours << ") {\n";
    ++code.depth;
  }
  loadVectors(op);
  beginVectorLoop(op.getBody());
}

void CudaKernelEmitter::endNeighbours(exec::MapOp op) {
  --code.depth;
  code.indent() << "}\n";
  storeVectors();
  if (isPointwise)
    return;
  --code.depth;
  code.indent() << "}\n";
}

void CudaKernelEmitter::beginMap(exec::MapOp op) {
  if (isVectorized())
    return beginNeighbours(op);
  if (isPointwise)
    return;
  code.indent() << "for (int64_t col = "
                << (vectorized.hasBlockPerRow ? "threadIdx.x" : "gpu::lane()")
                << "; col < cols; col += " << threadsOfRow() << ") {\n";
  ++code.depth;
}

void CudaKernelEmitter::endMap(exec::MapOp op) {
  if (isVectorized())
    return endNeighbours(op);
  if (isPointwise)
    return;
  --code.depth;
  code.indent() << "}\n";
}

//===----------------------------------------------------------------------===//
// Shapes of kernels
//===----------------------------------------------------------------------===//

void CudaKernelEmitter::storeOfRow(exec::StoreOp op) {
  code.indent() << (vectorized.hasBlockPerRow ? "if (threadIdx.x == 0)\n"
                                              : "if (gpu::lane() == 0)\n");
  ++code.depth;
  code.store(op);
  --code.depth;
}

void CudaKernelEmitter::pointwiseHead() {
  if (vectorized.isFlat)
    code.indent() << "gpu::packets<" << vectorized.neighbours
                  << ">(rows * cols, [&](int64_t first) {\n";
  else if (isVectorized())
    code.indent() << "gpu::packets<" << vectorized.neighbours
                  << ">(rows, cols, [&](int64_t row, int64_t left) {\n";
  else
    code.indent() << "gpu::elements(rows, cols, [&](int64_t row, int64_t col) "
                     "{\n";
  ++code.depth;
  if (!vectorized.isFlat)
    declareFirst();
}

LogicalResult CudaKernelEmitter::pointwise() {
  isPointwise = true;
  pointwiseHead();
  for (Operation &op : kernel.getBody().front())
    if (failed(rowOp(op)))
      return failure();
  --code.depth;
  code.indent() << "});\n";
  return success();
}

LogicalResult CudaKernelEmitter::rows() {
  if (vectorized.hasBlockPerRow) {
    code.indent() << "const int64_t row = blockIdx.x;\n";
  } else {
    code.indent() << "const int64_t row = gpu::row();\n";
    code.indent() << "if (row >= rows)\n";
    code.indent() << "  return;\n";
  }
  return eachRowOp();
}

LogicalResult CudaKernelEmitter::eachRowOp() {
  declareFirst();
  for (Operation &op : kernel.getBody().front())
    if (failed(rowOp(op)))
      return failure();
  return success();
}

/// The threads of a block of rows, as CudaRows.h has them.
std::string CudaKernelEmitter::rowBlock() {
  return llvm::formatv("math::RowBlock<{0}, {1}>", vectorized.neighbours,
                       kernel.getCols());
}

/// The blocks of threads that a multiprocessor has at once: fewer have more
/// registers, which vectors of f32 need.
std::string CudaKernelEmitter::blocksAtOnce() {
  bool isWide =
      llvm::any_of(kernel.getBody().getArguments(), [&](BlockArgument arg) {
        return accessOf(kernel, arg.getArgNumber()) == exec::Access::Element &&
               cast<MemRefType>(arg.getType()).getElementTypeBitWidth() > 16;
      });
  if (isWide)
    return "1";
  return llvm::formatv("{0}::atOnce({1})", rowBlock(),
                       std::distance(sums().begin(), sums().end()));
}

StringRef CudaKernelEmitter::threadsOfRow() {
  return hasRowBlocks                ? "Block::kThreads"
         : vectorized.hasBlockPerRow ? "gpu::kThreads"
                                     : "math::kLanes";
}

LogicalResult CudaKernelEmitter::rowBlocks() {
  code.indent() << "using Block = " << rowBlock() << ";\n";
  for (exec::ReduceRowsOp op : sums()) {
    std::string target = code.arguments.lookup(op.getTarget()).name;
    columns[op] =
        code.names.unique(StringRef(target).rtrim('_').str() + "_columns");
    code.indent() << "Block::Columns<" << combineType(op.getKind()) << "> "
                  << columns[op] << ";\n";
  }
  code.indent() << "const int64_t top = int64_t(blockIdx.x) * "
                   "math::kRowBlock;\n";
  code.indent() << "FSDP_UNROLL_BY(1)\n";
  code.indent() << "for (int64_t row = top + threadIdx.y; row < top + "
                   "math::kRowBlock;\n";
  code.indent() << "     row += Block::kRows) {\n";
  ++code.depth;
  if (failed(eachRowOp()))
    return failure();
  --code.depth;
  code.indent() << "}\n";
  for (exec::ReduceRowsOp op : sums())
    code.indent() << columns[op] << ".store("
                  << code.arguments.lookup(op.getTarget()).name
                  << " + blockIdx.x * cols);\n";
  return success();
}

LogicalResult CudaKernelEmitter::combineRow(exec::ReduceRowsOp op) {
  code.indent() << columns[op] << ".combine(";
  if (failed(terms(op)))
    return failure();
  os << ");\n";
  return success();
}

/// `[&](int64_t COLUMN) { … }` for the terms of a thread of a row's block.
LogicalResult CudaKernelEmitter::terms(Operation *op) {
  os << "[&](int64_t " << (isVectorized() ? "left" : "col") << ") {\n";
  ++code.depth;
  if (failed(isVectorized() ? vectorTerms(op)
                            : yielding(op->getRegion(0).front())))
    return failure();
  --code.depth;
  code.indent() << "}";
  return success();
}

/// What a reduction combines, for the vector of columns from `left` on.
LogicalResult CudaKernelEmitter::vectorTerms(Operation *op) {
  loadVectors(op);
  std::string term = code.names.unique("term");
  code.indent() << "gpu::Packet<float, " << vectorized.neighbours << "> "
                << term << ";\n";
  beginVectorLoop(op->getRegion(0));
  if (failed(yielding(op->getRegion(0).front(), term + "[i] = ")))
    return failure();
  --code.depth;
  code.indent() << "}\n";
  code.indent() << "return " << term << ";\n";
  storeVectors();
  return success();
}

LogicalResult CudaKernelEmitter::reduce(exec::ReduceOp op) {
  if (!vectorized.hasBlockPerRow)
    return KernelEmitter::reduce(op);
  StringRef kind = combineName(op.getKind());
  std::string name = code.names.unique(kind);
  code.indent() << "const float " << name << " = ";
  if (hasRowBlocks)
    os << "Block::" << kind << "OfRow(";
  else
    os << "math::" << kind << "OfRow<" << vectorized.neighbours << ">(cols, ";
  if (failed(terms(op)))
    return failure();
  os << ");\n";
  code.bind(op.getResult(), name);
  return success();
}

LogicalResult CudaKernelEmitter::columnReduction(exec::ReduceRowsOp op) {
  const KernelArgument &target = code.arguments.lookup(op.getTarget());
  code.indent() << reduceRowsName(op);
  if (isVectorized())
    os << '<' << vectorized.neighbours << '>';
  os << "(rows, cols, " << target.name << ", [&](int64_t row, int64_t "
     << (isVectorized() ? "left" : "col") << ") {\n";
  ++code.depth;
  declareFirst();
  if (failed(isVectorized() ? vectorTerms(op) : yielding(op.getBody().front())))
    return failure();
  --code.depth;
  code.indent() << "});\n";
  return success();
}

LogicalResult CudaKernelEmitter::emit(StringRef name) {
  hasRowBlocks = combinesBlocks(kernel);
  nameArguments();
  if (failed(checkReads()))
    return failure();
  describe();
  signature(name);
  if (!vectorized.hasBlockPerRow)
    constant("rows", kernel.getRows());
  constant("cols", kernel.getCols());
  LogicalResult result = kernel.getColumnReduction() ? columnReductions()
                         : hasRowBlocks              ? rowBlocks()
                         : emit::isPointwise(kernel) ? pointwise()
                                                     : rows();
  os << "}\n";
  return result;
}

LogicalResult emit::emitCudaKernel(exec::KernelOp kernel,
                                   const VectorizedAccess &vectorized,
                                   StringRef name, StringRef user,
                                   llvm::raw_ostream &os) {
  return CudaKernelEmitter(kernel, vectorized, user, os).emit(name);
}
