//===- RuntimeOps.h - What a runtime operation's record says ----*- C++ -*-===//
//
// Every operation of the runtime is one record of ExecRuntimeOps.td. What the
// record says of its function is a RuntimeSignature; who needs the arguments
// of a call is a RuntimeCall; who knows how much scratch a library wants is a
// WorkspaceSizes.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DIALECTS_EXEC_RUNTIMEOPS_H
#define FSDP_DIALECTS_EXEC_RUNTIMEOPS_H

#include "fsdp/Runtime/Types.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include <vector>

namespace fsdp::exec {

class CollectiveOp;
class RuntimeOpInterface;

/// The box inside a tensor that an operation writes.
struct WrittenBox {
  llvm::ArrayRef<int64_t> shape;
  llvm::ArrayRef<int64_t> offsets;
};

/// A buffer of a runtime operation, or a list of one per tensor.
struct BufferSpec {
  enum class Kind { One, Optional, List };

  /// That of the function's parameter.
  llvm::StringRef name;
  /// "f32", "bf16", "i32", "i64"; "float": f32 or bf16; "T": f32 or bf16, and
  /// "E": any type, the same wherever the operation says so; "": checked
  /// elsewhere.
  llvm::StringRef element;
  /// Dimensions, apart by spaces: a name (equal wherever it occurs),
  /// `>=name` (at least that), `name/2` (half of it), a number, or `name...`
  /// (any number of dimensions). "*": checked elsewhere. Names of a list are
  /// those of one tensor.
  llvm::StringRef shape;
  Kind kind = Kind::One;
  /// Of an output: the input that it is again. The function gets the buffer
  /// once, reads it and writes it.
  llvm::StringRef updates = "";
};

/// Buffers of a call: inputs, outputs and, where the function takes one, the
/// workspace.
struct RuntimeSignature {
  llvm::StringRef function; ///< in namespace fsdp::rt
  /// The op that lowers to this one as it is: operands to inputs, results to
  /// outputs, attributes by name. Empty: exec-lower has code of its own.
  llvm::StringRef lowersFrom;
  std::vector<BufferSpec> inputs, outputs;
  /// One that may be left out where the target needs none, or one per output.
  std::optional<BufferSpec::Kind> workspace;
};

/// Takes the arguments of a call of the runtime, one by one.
class RuntimeCall {
public:
  virtual ~RuntimeCall() = default;

  /// The index of a descriptor in the artifact's table of such.
  virtual void index(const rt::GemmDesc &desc) = 0;
  virtual void index(const rt::AttentionDesc &desc) = 0;
  virtual void index(CollectiveOp op) = 0;
  /// The index of the group of ranks along the axes of the mesh.
  virtual void group(mlir::Operation *op, mlir::FlatSymbolRefAttr mesh,
                     mlir::ArrayAttr axes) = 0;
  virtual void dtype(mlir::Type element) = 0;
  virtual void number(int64_t value) = 0;
  virtual void boolean(bool value) = 0;
  virtual void real(const llvm::APFloat &value) = 0;
  /// A struct of numbers.
  virtual void reals(llvm::ArrayRef<llvm::APFloat> values) = 0;
  /// A list in memory; `name` says what it holds.
  virtual void sizes(llvm::ArrayRef<int64_t> values, llvm::StringRef name) = 0;
  /// The same for types; null where all are f32.
  virtual void dtypes(llvm::ArrayRef<mlir::Type> elements,
                      llvm::StringRef name) = 0;
  /// Null where the operand is left out.
  virtual void pointer(mlir::Value buffer) = 0;
  virtual void pointers(mlir::ValueRange buffers) = 0;
};

/// How much scratch the libraries of a target want. All results are bytes; 0
/// means none, and what is negative or above kMaxTensorBytes that the operation
/// is too large.
class WorkspaceSizes {
public:
  virtual ~WorkspaceSizes();

  virtual int64_t gemmWorkspaceBytes(const rt::GemmDesc &desc) const = 0;
  virtual int64_t
  attentionWorkspaceBytes(const rt::AttentionDesc &desc) const = 0;
  virtual int64_t
  attentionGradWorkspaceBytes(const rt::AttentionDesc &desc) const = 0;
  /// Of one tensor of a reduction over `ranks` ranks.
  virtual int64_t collectiveWorkspaceBytes(const rt::CollectiveDesc &desc,
                                           int item, int64_t ranks) const = 0;
  /// Sums are kept in f32: a narrower result needs a table of them, unless a
  /// target adds each class by itself.
  virtual int64_t embeddingGradWorkspaceBytes(rt::DType type, int64_t rows,
                                              int64_t classes,
                                              int64_t cols) const;
  /// Whether a library of the target has attention of this type.
  virtual bool hasAttention(rt::DType) const { return true; }
  /// What that attention lacks for `desc`, in words that a warning says
  /// ("cuDNN has no cap on scores"); empty: nothing.
  virtual llvm::StringRef whyNoLibrary(const rt::AttentionDesc &) const {
    return {};
  }
};

/// The runtime's name of an element type that a buffer may have.
rt::DType dtypeOf(mlir::Type element);

/// The buffers that the signature calls `name`: one, none or, of a list,
/// several.
mlir::ValueRange buffersOf(RuntimeOpInterface op, llvm::StringRef name);
/// The only one, or null if it is left out. The workspace is one of them.
mlir::Value bufferOf(RuntimeOpInterface op, llvm::StringRef name);
/// The element type of the first of them.
mlir::Type elementOf(RuntimeOpInterface op, llvm::StringRef name);
/// Their shape, for one that must be there.
llvm::ArrayRef<int64_t> shapeOf(RuntimeOpInterface op, llvm::StringRef name);
/// The size that the signature's shapes call `dimension`.
int64_t sizeOf(RuntimeOpInterface op, llvm::StringRef dimension);
/// Elements of each of the buffers called `name`.
llvm::SmallVector<int64_t> countsOf(RuntimeOpInterface op,
                                    llvm::StringRef name);
/// Their element types.
llvm::SmallVector<mlir::Type> elementsOf(RuntimeOpInterface op,
                                         llvm::StringRef name);
/// What BufferSpec::updates says of an output.
std::optional<unsigned> updatedInput(RuntimeOpInterface op, unsigned output);

/// The descriptor of exec.attention or exec.attention_grad; nothing of others.
std::optional<rt::AttentionDesc> attentionOf(mlir::Operation *op);
/// What is asked of attention; at most one.
struct AttentionOptions {
  bool reference = false, fast = false;
};
/// Makes attention `plain` if that is asked for or if the target has no library
/// for it, and the library's gradient `fast` if that is asked for; leaves other
/// operations as they are. Gives the library's reason if that alone is why it
/// is plain, and neither the option nor the type.
llvm::StringRef chooseAttention(RuntimeOpInterface op,
                                const WorkspaceSizes &target,
                                const AttentionOptions &options);

/// Checks the operands against the signature.
mlir::LogicalResult verifySignature(RuntimeOpInterface op);

} // namespace fsdp::exec

#endif // FSDP_DIALECTS_EXEC_RUNTIMEOPS_H
