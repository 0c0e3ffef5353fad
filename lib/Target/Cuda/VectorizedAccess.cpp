//===- VectorizedAccess.cpp - Which CUDA kernels take neighbours together -===//
//
// A thread that takes 16 bytes of an operand at a time has to issue fewer
// instructions, and more bytes are on their way, than one that takes an
// element. Sizes are constants of a kernel and offsets of the arena, so whether
// that works is known here.
//
//===----------------------------------------------------------------------===//
#include "lib/Emit/EmitKernel.h"
#include "lib/Target/Cuda/EmitCudaKernel.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::emit;

static constexpr int64_t kVectorBytes = 16;
/// Half of the threads that a block has.
static constexpr int64_t kBusyThreads = 128;

static exec::Access accessOf(exec::KernelOp kernel, BlockArgument arg) {
  return emit::accessOf(kernel, arg.getArgNumber());
}

static bool isOutput(exec::KernelOp kernel, BlockArgument arg) {
  return arg.getArgNumber() + kernel.getOutputs() >=
         kernel.getBody().getNumArguments();
}

/// As many elements of the narrowest operand as an access has bytes for; four
/// at least, eight at most. Always eight where blocks of rows are combined: the
/// fewer parts a row has, the more of its sums stay in registers.
static int neighboursOf(exec::KernelOp kernel) {
  if (combinesBlocks(kernel))
    return 8;
  int64_t narrowest = kVectorBytes;
  for (BlockArgument arg : kernel.getBody().getArguments()) {
    exec::Access access = accessOf(kernel, arg);
    if (access != exec::Access::Element && access != exec::Access::Column)
      continue;
    Type type = cast<MemRefType>(arg.getType()).getElementType();
    narrowest = std::min<int64_t>(narrowest, type.getIntOrFloatBitWidth() / 8);
  }
  return int(std::clamp<int64_t>(kVectorBytes / narrowest, 4, 8));
}

/// True if neither rows nor columns have a meaning: a kernel of elements.
static bool isFlat(exec::KernelOp kernel) {
  bool flat =
      llvm::all_of(kernel.getBody().getArguments(), [&](BlockArgument arg) {
        exec::Access access = accessOf(kernel, arg);
        return access == exec::Access::Element ||
               access == exec::Access::Scalar;
      });
  kernel.walk([&](Operation *op) {
    auto load = dyn_cast<exec::LoadOp>(op);
    flat &= !isa<exec::ColumnOp>(op) && !(load && load.getColumn());
  });
  return flat;
}

/// What a map writes must be there as a whole vector, and nobody but the thread
/// that wrote an element reads it, which another one may own elsewhere.
static bool writesOnlyOwnElements(exec::KernelOp kernel) {
  for (BlockArgument arg : kernel.getBody().getArguments()) {
    if (!isOutput(kernel, arg))
      continue;
    for (Operation *user : arg.getUsers())
      if (isa<exec::LoadOp>(user) ||
          (user->getParentOfType<exec::MapOp>() &&
           accessOf(kernel, arg) != exec::Access::Element))
        return false;
  }
  return true;
}

/// One element at a time.
static VectorizedAccess singleAccessOf(exec::KernelOp kernel) {
  VectorizedAccess single;
  single.hasBlockPerRow = combinesBlocks(kernel);
  return single;
}

VectorizedAccess emit::vectorizedAccessOf(exec::KernelOp kernel) {
  VectorizedAccess vectorized = singleAccessOf(kernel);
  int neighbours = neighboursOf(kernel);
  if (!writesOnlyOwnElements(kernel) || isInOrder(kernel))
    return vectorized;
  vectorized.isFlat = isPointwise(kernel) && isFlat(kernel) &&
                      kernel.getRows() * kernel.getCols() % neighbours == 0;
  if (vectorized.isFlat || kernel.getCols() % neighbours == 0)
    vectorized.neighbours = neighbours;
  // A row stays near the block that reads it twice.
  vectorized.hasBlockPerRow |=
      vectorized.neighbours > 1 && !isPointwise(kernel) &&
      !kernel.getColumnReduction() &&
      int64_t(kernel.getCols()) >= kBusyThreads * neighbours;
  return vectorized;
}

//===----------------------------------------------------------------------===//
// Where operands lie
//===----------------------------------------------------------------------===//

namespace {

/// Ranges and buffers begin at multiples of 256 bytes, parts of them where
/// they like.
class Alignment {
public:
  explicit Alignment(ModuleOp module) {
    module.walk(
        [&](exec::CallOp call) { calls[call.getCallee()].push_back(call); });
  }

  bool isAligned(Value buffer) {
    exec::ByteRange range = exec::resolveRange(buffer);
    if (range.begin % kVectorBytes != 0)
      return false;
    auto arg = dyn_cast<BlockArgument>(range.root);
    if (!arg)
      return true;
    auto [at, isNew] = arguments.try_emplace(arg, true);
    if (!isNew)
      return at->second;
    auto func = cast<exec::FuncOp>(arg.getOwner()->getParentOp());
    bool aligned =
        llvm::all_of(calls.lookup(func.getSymName()), [&](exec::CallOp call) {
          return isAligned(call.getOperand(arg.getArgNumber()));
        });
    return arguments[arg] = aligned;
  }

private:
  llvm::StringMap<SmallVector<exec::CallOp>> calls;
  llvm::DenseMap<BlockArgument, bool> arguments;
};

} // namespace

llvm::StringMap<VectorizedAccess> emit::vectorizedAccessOf(ModuleOp module) {
  static_assert(exec::kAlignment % kVectorBytes == 0);
  llvm::StringMap<VectorizedAccess> vectorized;
  for (auto kernel : module.getOps<exec::KernelOp>())
    vectorized[kernel.getSymName()] = vectorizedAccessOf(kernel);
  Alignment alignment(module);
  module.walk([&](exec::LaunchOp launch) {
    if (!llvm::all_of(launch.getOperands(), [&](Value buffer) {
          return alignment.isAligned(buffer);
        }))
      vectorized[launch.getKernel()] = singleAccessOf(
          module.lookupSymbol<exec::KernelOp>(launch.getKernel()));
  });
  return vectorized;
}
