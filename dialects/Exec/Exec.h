//===- Exec.h - The exec dialect --------------------------------*- C++ -*-===//
//
// When each piece runs, in which bytes.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DIALECTS_EXEC_EXEC_H
#define FSDP_DIALECTS_EXEC_EXEC_H

#include "dialects/Exec/RuntimeOps.h"
#include "dialects/Fsdp/Fsdp.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace fsdp::exec {

/// Every offset in the arena is a multiple of this many bytes; a target may
/// want more (rt::Target).
inline constexpr int64_t kAlignment = 64;
/// The largest number of an event.
inline constexpr int64_t kMaxEvent = (int64_t(1) << 31) - 1;

/// Module attribute: bytes of the persistent part of the arena, set by
/// exec-plan-memory. Transient buffers of every program start there.
inline constexpr llvm::StringLiteral kPersistentBytesAttr =
    "exec.persistent_bytes";
/// Module attribute: bytes of the whole arena: the largest program's peak.
inline constexpr llvm::StringLiteral kArenaBytesAttr = "exec.arena_bytes";
/// Module attributes, set by exec-lower: whose workspaces the program has
/// (the name of a target) and for how many compute threads (i64).
inline constexpr llvm::StringLiteral kTargetAttr = "exec.target";
inline constexpr llvm::StringLiteral kThreadsAttr = "exec.threads";
/// The most compute threads that a rank may have.
inline constexpr int64_t kMaxThreads = 4096;

/// Attributes of exec.program, set by exec-lower: the ranges of the program's
/// arguments and results in order (arrays of strings), and the floating point
/// operations of one run (i64), all and, where that is less, those of the
/// model: without what is computed a second time.
inline constexpr llvm::StringLiteral kInputsAttr = "exec.inputs";
inline constexpr llvm::StringLiteral kOutputsAttr = "exec.outputs";
inline constexpr llvm::StringLiteral kFlopsAttr = "exec.flops";
inline constexpr llvm::StringLiteral kModelFlopsAttr = "exec.model_flops";

/// Attribute of exec.program, set by exec-plan-memory: a dictionary with
/// `lower_bound` (bytes), `at` (where most bytes live), `kinds` (bytes there by
/// kind) and `tenants` (the largest live buffers, those of all blocks as
/// one: label, kind, bytes, and their count where they are several).
inline constexpr llvm::StringLiteral kMemoryAttr = "exec.memory";

/// Attributes of exec.program that state what it does, set by exec-lower from
/// the level above (arrays of strings): the ranges of which it reads what was
/// there before it, those that it writes, whole, those among both that it adds
/// to, and those among the written ones that it leaves at zero. exec-verify
/// proves each.
inline constexpr llvm::StringLiteral kReadsAttr = "exec.reads";
inline constexpr llvm::StringLiteral kWritesAttr = "exec.writes";
inline constexpr llvm::StringLiteral kAddsAttr = "exec.adds";
inline constexpr llvm::StringLiteral kClearsAttr = "exec.clears";

/// Module attribute, set by exec-lower: how often each step runs each program,
/// {train = {count = 1 : i64, …}}. exec-verify compares the list with it.
inline constexpr llvm::StringLiteral kStepsAttr = "exec.steps";

/// Attribute of work: what its outputs are values of, a string for all of them
/// or an array of one per output: "fwd layers.3.attention.wq linear", the
/// address of the op that it is lowered from. Of an exec.call: an array of that
/// for each work of its function, in order, because calls share the function.
/// Nothing depends on it but what people are told.
inline constexpr llvm::StringLiteral kProducesAttr = "exec.makes";

} // namespace fsdp::exec

#include "dialects/Exec/ExecDialect.h.inc"
#include "dialects/Exec/ExecEnums.h.inc"
#include "dialects/Exec/ExecInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Exec/ExecAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Exec/ExecTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/Exec/ExecOps.h.inc"

namespace fsdp::exec {

/// True for what a value of this dialect may be: a memref of static shape and
/// identity layout, of an element type that the runtime knows and of a size
/// that nn::hasCheckedSize takes. Only a workspace (i8) may be empty.
bool isBuffer(mlir::Type type);

/// Bytes of a memref.
int64_t bytesOf(mlir::MemRefType type);

/// A range of bytes of the arena or of a symbolic buffer: `root` is the
/// exec.get or exec.alloc result (or block argument) behind the views, and
/// [begin, end) its bytes.
struct ByteRange {
  mlir::Value root;
  int64_t begin = 0;
  int64_t end = 0;
};

/// Follows exec.view to the root.
ByteRange resolveRange(mlir::Value buffer);

/// Whether the runtime has a function for this kind.
bool isRuntimeCollective(dist::CollectiveKind kind);

/// True for what runs on a stream: a launch or an operation of the runtime.
bool isWork(mlir::Operation *op);
/// The stream of a work op.
Stream streamOf(mlir::Operation *op);
/// Buffers a work op reads / writes. Workspaces count as written.
llvm::SmallVector<mlir::Value> readsOf(mlir::Operation *op);
llvm::SmallVector<mlir::Value> writesOf(mlir::Operation *op);
/// What the outputs of a work op are values of: its kProducesAttr, or a string
/// of its module and its own name.
mlir::Attribute producedBy(mlir::Operation *op);
/// Sets it; `names` has one entry per output, and null where nothing is known.
void setProduced(mlir::Operation *op, llvm::ArrayRef<mlir::StringAttr> names);
/// The last of `writesOf`: scratch, whose content is undefined afterwards.
llvm::SmallVector<mlir::Value> workspacesOf(mlir::Operation *op);

/// The steps of a module by name: what is run, in order. Without nn.steps a
/// program "train" is the step of that name.
struct StepAction {
  mlir::FlatSymbolRefAttr program;
  int64_t times;
};
llvm::SmallVector<std::pair<mlir::StringAttr, llvm::SmallVector<StepAction>>>
stepsOf(mlir::ModuleOp module);

} // namespace fsdp::exec

namespace fsdp {

/// Registers nn, fsdp, exec and the upstream dialects they use.
void registerFsdpDialects(mlir::DialectRegistry &registry);

} // namespace fsdp

#endif // FSDP_DIALECTS_EXEC_EXEC_H
