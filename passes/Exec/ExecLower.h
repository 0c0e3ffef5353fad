//===- ExecLower.h - Parts of exec-lower ------------------------*- C++ -*-===//
//
// ExecLowerPass.cpp         the pass: ranges of the module, order, last check
// ExecLowerProgram.cpp      one program: values, state, kernels, results
// ExecLowerShapes.cpp       views, boxes, parts of tensors
// ExecLowerEffects.cpp      what a program reads and writes, for exec-verify
// ExecLowerNames.cpp        what a memory report calls a buffer
// ExecLowerLibrary.cpp      matmuls and the runtime's typed operations
// ExecLowerCollectives.cpp  collectives, futures
// KernelLowering.cpp        scalar code of kernels
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_PASSES_EXEC_EXECLOWER_H
#define FSDP_PASSES_EXEC_EXECLOWER_H

#include "dialects/Exec/RecordedLowerings.h"
#include "dialects/NN/AdjacentReads.h"
#include "fsdp/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Exec/KernelLowering.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace fsdp::lower {

/// What the programs of a module share.
class ModuleState {
public:
  /// With `fastReductions` the library's sums over ranks are used.
  ModuleState(mlir::ModuleOp module, const TargetInfo &target,
              const exec::AttentionOptions &attention, bool fastReductions);

  /// Turns nn.parameter and nn.buffer into ranges.
  void declarePersistent();

  /// The range of a program's argument or result. Programs that use the same
  /// name share it, so type and placement must agree, and role, except that
  /// one program's result may be another's argument: it is an input then.
  /// `full` is the logical type of what is placed, and null as `placement` is.
  mlir::FailureOr<exec::RangeOp>
  declareShared(mlir::Location loc, llvm::StringRef name, mlir::MemRefType type,
                exec::Role role, mlir::TypeAttr full,
                dist::PlacementAttr placement);

  /// The range `<parameter>.grad`, made at first use. Null without a range
  /// for the parameter.
  exec::RangeOp gradientOf(llvm::StringRef parameter);

  exec::RangeOp lookup(llvm::StringRef name) const {
    return ranges.lookup(name);
  }

  /// True if a step that runs `program` clears the buffer.
  bool isCleared(llvm::StringRef buffer, llvm::StringRef program) const {
    auto at = cleared.find(program);
    return at != cleared.end() && at->second.contains(buffer);
  }

  /// Null if the module has none.
  dist::MeshOp getMesh() const { return mesh; }

  /// Ranges that programs read as one.
  const nn::AdjacentReads &getAdjacent() const { return adjacent; }

  /// Remembers that attention became the reference attention, which nobody
  /// asked for, and why.
  void notePlainAttention(mlir::Operation *attention, llvm::StringRef why);
  /// One warning for all of it.
  void warnOfPlainAttention() const;

  const TargetInfo &target;
  const exec::AttentionOptions attention;
  const bool fastReductions;
  KernelCache kernels;
  const exec::RecordedLowerings recorded;

private:
  exec::RangeOp create(mlir::Location loc, llvm::StringRef name,
                       mlir::MemRefType type, exec::Role role);
  template <typename OpT> void declare(OpT op, exec::Role role);
  void findCleared();

  mlir::ModuleOp module;
  const nn::AdjacentReads adjacent;
  mlir::OpBuilder builder;
  dist::MeshOp mesh;
  llvm::StringMap<exec::RangeOp> ranges;
  /// What the steps of a program clear.
  llvm::StringMap<llvm::StringSet<>> cleared;
  /// Of the first attention that was noted; then the modules of all.
  std::optional<mlir::Location> plainAttention;
  llvm::StringRef whyPlain;
  llvm::SetVector<mlir::StringAttr> plainModules;
  /// After which the next range is declared.
  mlir::Operation *last = nullptr;
};

/// The sum whose buffer `value` will have, because the op that produces `value`
/// adds to it and nobody else reads it or writes there; null if there is none.
mlir::Value sumUpdatedInPlace(mlir::Value value);

/// True for values that their op writes into a buffer of its own, so that it
/// may as well be the range that the value ends in.
bool ownsBuffer(mlir::Value value);

/// Lowers one function. Values are followed op by op: a tensor becomes the
/// buffer that holds it, an alias becomes a view.
class ProgramLowering {
public:
  ProgramLowering(ModuleState &state, mlir::func::FuncOp func);

  /// The program, not in a block yet. Failure: a diagnostic was emitted.
  mlir::FailureOr<exec::ProgramOp> run();

private:
  // ExecLowerProgram.cpp: arguments, results, order.
  mlir::FailureOr<exec::RangeOp> declare(mlir::Location loc, mlir::Type type,
                                         llvm::StringRef what, unsigned number,
                                         mlir::DictionaryAttr attributes,
                                         exec::Role role);
  mlir::LogicalResult bindArguments();
  mlir::LogicalResult bindResults();
  mlir::LogicalResult lowerReturn();
  void chooseDestination(mlir::Value value, exec::RangeOp range);
  void findUpdates();
  /// Whether `value`, which is what range `name` holds where it is defined, is
  /// used after that changes.
  bool isUsedAfterUpdate(mlir::Value value, llvm::StringRef name);
  mlir::LogicalResult lower(mlir::Operation *op);
  void eraseSelfWrites();
  void eraseUnusedOps();
  void eraseUnusedViews();

  // ExecLowerEffects.cpp.
  /// States which ranges the program reads, writes, adds to and clears.
  void stateEffects();

  // ExecLowerNames.cpp: what people call a buffer.
  /// Finds the parameters whose values and gradients tensors hold.
  void findParameters();
  void nameMoved(mlir::Operation *collective, mlir::ValueRange results);
  /// The label of the buffer that `op` writes for `tensor`.
  std::string labelOf(mlir::Value tensor, mlir::Operation *op);
  /// Says whose values `work` writes for `tensors`, one per output: those of
  /// the ops that `definers` has, as plans know them. `ofBlocks` is as in
  /// KernelUse.
  void setProduced(mlir::Operation *work, mlir::ValueRange tensors,
                   llvm::ArrayRef<mlir::Operation *> definers,
                   llvm::ArrayRef<exec::KernelOp> ofBlocks = {});

  // Buffers.
  /// The buffer that holds `tensor`.
  mlir::Value buffer(mlir::Value tensor);
  /// The buffer that `result` is to be written to: its destination, or a new
  /// buffer. `op` gives it its label.
  mlir::Value output(mlir::Value result, mlir::Operation *op);
  /// The same, once: where parts of `result` were produced before `op`, they
  /// are there.
  mlir::Value buffer(mlir::Value result, mlir::Operation *op);
  /// A buffer for `tensor`, or for the scratch memory that `suffix` says.
  mlir::Value alloc(mlir::MemRefType type, mlir::Value tensor,
                    mlir::Operation *op, llvm::StringRef suffix = "");
  mlir::Value view(mlir::Value buffer, llvm::ArrayRef<int64_t> shape,
                   int64_t offset = 0);
  mlir::Value asMatrix(mlir::Value buffer);
  /// The range: a view of its group where the program reads that as one.
  mlir::Value get(exec::RangeOp range);
  /// Whether the bytes of `buffer` are those of `place`, which has as many.
  bool isAt(mlir::Value buffer, mlir::Value place) const;
  void copy(mlir::Location loc, mlir::Value from, mlir::Value to);
  void launch(const KernelUse &use, mlir::Operation *op);

  // State, kernels.
  mlir::LogicalResult lowerRead(nn::ReadOp op);
  mlir::LogicalResult lowerGradient(nn::GradientOp op);
  mlir::LogicalResult lowerAccumulate(nn::AccumulateOp op);
  mlir::LogicalResult lowerWrite(nn::WriteOp op);
  mlir::LogicalResult lowerClear(nn::ClearOp op);
  mlir::LogicalResult lowerKernel(mlir::Operation *op);

  // ExecLowerShapes.cpp.
  /// Finds the groups that the program reads as one.
  void findJoined();
  mlir::Value get(const nn::AdjacentGroup &group, mlir::Type elementType);
  void chooseDestinations(nn::ConcatOp op);
  /// The group whose ranges the parts of `op` are, as one; null if they are
  /// anything else.
  mlir::Value adjacentParts(nn::ConcatOp op);
  mlir::LogicalResult lowerReshape(nn::ReshapeOp op);
  mlir::LogicalResult lowerRecompute(nn::RecomputeFromOp op);
  mlir::LogicalResult lowerSlice(nn::SliceOp op);
  mlir::LogicalResult lowerPad(nn::PadOp op);
  mlir::LogicalResult lowerConcat(nn::ConcatOp op);
  void copyBox(mlir::Location loc, mlir::Value from, mlir::Value to,
               llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> inOffsets,
               llvm::ArrayRef<int64_t> outOffsets);

  // ExecLowerLibrary.cpp.
  /// Gives `work`, which `op` lowers to, the workspaces that it needs: an
  /// buffer before it for each, named after the one of `tensors` that
  /// it belongs to.
  mlir::LogicalResult giveWorkspaces(exec::RuntimeOpInterface work,
                                     mlir::ValueRange tensors,
                                     mlir::Operation *op);
  /// Lowers to the operation of the runtime that says so in its record.
  mlir::LogicalResult lowerAsRecorded(mlir::Operation *op,
                                      mlir::OperationName name);
  mlir::LogicalResult gemm(mlir::Operation *op, mlir::ValueRange inputs,
                           mlir::Value out, bool transposeLhs,
                           bool transposeRhs);
  mlir::LogicalResult lowerLinear(nn::LinearOp op);
  mlir::LogicalResult lowerLinearInputGrad(nn::LinearInputGradOp op);
  mlir::LogicalResult lowerLinearWeightGrad(nn::LinearWeightGradOp op);
  mlir::LogicalResult lowerAccumulateProduct(nn::AccumulateProductOp op);
  /// Adds dy^T x to `sum`; the workspace is named after the one of `tensors`.
  mlir::LogicalResult gemmAdd(mlir::Operation *op, mlir::Value dy,
                              mlir::Value x, mlir::Value sum,
                              mlir::ValueRange tensors);
  mlir::LogicalResult lowerMatmul(nn::MatmulOp op);
  mlir::LogicalResult lowerAdamW(nn::AdamWOp op);
  /// Buffers of several tensors.
  llvm::SmallVector<mlir::Value> buffers(mlir::ValueRange tensors);
  /// New buffers for all results.
  llvm::SmallVector<mlir::Value> outputs(mlir::Operation *op);

  // ExecLowerCollectives.cpp. `results` are the tensors that the collective
  // gives: its own, or those of the await of an fsdp.async.
  mlir::LogicalResult lowerCollective(dist::CollectiveOpInterface op,
                                      exec::Stream stream,
                                      mlir::ValueRange results,
                                      mlir::Value *token);
  mlir::FailureOr<mlir::Value> joinedOutput(mlir::Value piece,
                                            mlir::Value result, int64_t ranks,
                                            mlir::Operation *op);
  mlir::LogicalResult lowerShardOf(dist::ShardOfOp op);
  mlir::LogicalResult lowerRowsOfShard(dist::RowsOfShardOp op);
  mlir::LogicalResult lowerAsync(dist::AsyncOp op);
  mlir::LogicalResult lowerAwait(dist::AwaitOp op);

  ModuleState &state;
  mlir::func::FuncOp func;
  mlir::OpBuilder b;
  exec::ProgramOp program;
  llvm::DenseMap<mlir::Value, mlir::Value> held;         // tensor -> buffer
  llvm::DenseMap<mlir::Value, mlir::Value> destinations; // tensor -> buffer
  llvm::DenseMap<mlir::Value, mlir::Value> tokens;       // future -> token
  llvm::DenseMap<std::pair<std::pair<mlir::Value, int64_t>, mlir::Type>,
                 mlir::Value>
      views;                         // (source, offset), type -> exec.view
  llvm::StringMap<mlir::Value> gets; // range, or first of a group -> exec.get
  /// Those that the program reads as one.
  llvm::SmallPtrSet<const nn::AdjacentGroup *, 4> joined;
  /// range -> the ops that change it, in order
  llvm::StringMap<llvm::SmallVector<mlir::Operation *, 1>> updates;
  llvm::SmallVector<exec::RangeOp> resultRanges;
  /// Those that are lowered with one before them.
  llvm::SmallPtrSet<mlir::Operation *, 8> accumulated;
  /// tensor -> parameter of which it is the value or the gradient
  llvm::DenseMap<mlir::Value, llvm::StringRef> parameters;
};

} // namespace fsdp::lower

#endif // FSDP_PASSES_EXEC_EXECLOWER_H
