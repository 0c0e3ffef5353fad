//===- EmitCudaKernel.cpp - exec.kernel to __global__ functions -----------===//
//
// Three shapes, by what the kernel does:
//
//   pointwise          one thread per element (or per row, without columns)
//   rows               16 threads per row, the lanes of exec.reduce, so that a
//                      reduction adds in the CPU's order; 16 rows per block
//   column reduction   blocks of 32 columns; 16 blocks of 32 rows at a time
//
// The helpers in include/fsdp/Runtime/CudaKernels.h know grids and blocks; the
// scalar code in between is the CPU's.
//
//===----------------------------------------------------------------------===//
#include "EmitKernel.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::emit;

namespace {

class CudaKernelEmitter : public KernelEmitter {
public:
  using KernelEmitter::KernelEmitter;

  LogicalResult emit(StringRef name) override;

private:
  void beginMap() override;
  void endMap() override;
  void storeOfRow(exec::StoreOp op) override;
  LogicalResult columnReduction(exec::ReduceRowsOp op) override;
  void signature(StringRef name);
  LogicalResult checkReads();
  LogicalResult pointwise();
  LogicalResult rows();

  /// Columns have threads of their own, so a map needs no loop.
  bool isPointwise = false;
};

} // namespace

bool emit::isPointwise(exec::KernelOp kernel) {
  if (kernel.getColumnReduction())
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

void CudaKernelEmitter::beginMap() {
  if (isPointwise)
    return;
  code.indent() << "for (int64_t col = gpu::lane(); col < cols; "
                   "col += math::kLanes) {\n";
  ++code.depth;
}

void CudaKernelEmitter::endMap() {
  if (isPointwise)
    return;
  --code.depth;
  code.indent() << "}\n";
}

void CudaKernelEmitter::storeOfRow(exec::StoreOp op) {
  code.indent() << "if (gpu::lane() == 0)\n";
  ++code.depth;
  code.store(op);
  --code.depth;
}

LogicalResult CudaKernelEmitter::pointwise() {
  isPointwise = true;
  code.indent() << "gpu::elements(rows, cols, [&](int64_t row, int64_t col) "
                   "{\n";
  ++code.depth;
  declareFirst();
  for (Operation &op : kernel.getBody().front())
    if (failed(rowOp(op)))
      return failure();
  --code.depth;
  code.indent() << "});\n";
  return success();
}

LogicalResult CudaKernelEmitter::rows() {
  code.indent() << "const int64_t row = gpu::row();\n";
  code.indent() << "if (row >= rows)\n";
  code.indent() << "  return;\n";
  declareFirst();
  for (Operation &op : kernel.getBody().front())
    if (failed(rowOp(op)))
      return failure();
  return success();
}

LogicalResult CudaKernelEmitter::columnReduction(exec::ReduceRowsOp op) {
  const KernelArgument &target = code.arguments.lookup(op.getTarget());
  code.indent() << "math::" << combineName(op.getKind()) << "Rows(rows, cols, "
                << target.name << ", [&](int64_t row, int64_t col) {\n";
  ++code.depth;
  declareFirst();
  if (failed(yielding(op.getBody().front())))
    return failure();
  --code.depth;
  code.indent() << "});\n";
  return success();
}

LogicalResult CudaKernelEmitter::emit(StringRef name) {
  nameArguments();
  if (failed(checkReads()))
    return failure();
  describe();
  signature(name);
  constant("rows", kernel.getRows());
  constant("cols", kernel.getCols());
  LogicalResult result = kernel.getColumnReduction() ? columnReductions()
                         : emit::isPointwise(kernel) ? pointwise()
                                                     : rows();
  os << "}\n";
  return result;
}

LogicalResult emit::emitCudaKernel(exec::KernelOp kernel, StringRef name,
                                   StringRef user, llvm::raw_ostream &os) {
  return CudaKernelEmitter(kernel, user, os).emit(name);
}
