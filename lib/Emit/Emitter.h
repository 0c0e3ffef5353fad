//===- Emitter.h - Parts of the C++ emitter ---------------------*- C++ -*-===//
//
// EmitSource.cpp      the file: order of its parts, tables, the artifact
// EmitTables.cpp      descriptors of matmuls, attention, collectives, groups
// EmitProgram.cpp     exec.program and exec.func: one call per op
// EmitRuntime.cpp     calls of the runtime, by the records of its operations
// EmitKernel.cpp      exec.kernel: what targets share, and loops
// EmitExpression.cpp  arith, math, exec.load: expressions
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_LIB_TARGET_EMITTER_H
#define FSDP_LIB_TARGET_EMITTER_H

#include "dialects/Exec/Exec.h"
#include "fsdp/Emit/Emit.h"
#include "fsdp/Memory/IssueOrder.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <string>
#include <vector>

namespace fsdp::emit {

//===----------------------------------------------------------------------===//
// Names and literals
//===----------------------------------------------------------------------===//

// Names of the input may be any text: "main", "errno", "a b". What is called
// after one ends in an underscore, which no keyword, no macro of the headers
// and no other name of the generated code does, or begins with a prefix of the
// emitter's (k_, run_, …).

/// `text` in letters, digits and single underscores: "layers.0.wq" gives
/// "layers_0_wq". For use after a prefix only.
std::string words(llvm::StringRef text);
/// A C++ identifier for what the input calls `text`: "layers_0_wq_".
std::string identifier(llvm::StringRef text);

/// Hands out names that are unique within a scope, and that hide none of the
/// scope around it.
class NameScope {
public:
  explicit NameScope(const NameScope *outer = nullptr) : outer(outer) {}

  /// `wanted` itself, or `wanted_2`, `wanted_3`, … if it is taken; of `name_`
  /// these are `name_2_`, `name_3_`.
  std::string unique(llvm::StringRef wanted);

private:
  bool isTaken(llvm::StringRef name) const;

  const NameScope *outer;
  llvm::StringMap<int> used;
};

/// A C++ string literal.
std::string quoted(llvm::StringRef text);
/// `text` so that it ends no `//` comment and continues none.
std::string inComment(llvm::StringRef text);
/// A literal that reads back as the same double / float.
std::string literal(double value);
std::string floatLiteral(float value);

/// "F32", "BF16", … : the enumerator of fsdp::rt::DType.
llvm::StringRef dtypeName(rt::DType type);
/// "2x256 f32" for comments.
std::string shapeText(mlir::MemRefType type);
/// "Stream::Compute", …
std::string streamName(exec::Stream stream);
/// Prints a statement in lines of at most 80 columns, broken after commas.
void wrap(llvm::raw_ostream &os, llvm::StringRef text, unsigned indent);
/// The innermost name of a location ("layers.0.attention.wq"), or nothing.
llvm::StringRef locationName(mlir::Location loc);

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// Distinct entries of one table of the artifact, each with a name.
class Table {
public:
  /// The name of the entry with this initialiser; `wanted` names a new one.
  std::string entry(std::string initializer, llvm::StringRef wanted);
  /// The position of the entry with this initialiser, made if it is new. A list
  /// has so many elements.
  size_t index(std::string initializer, size_t length = 1);
  size_t size() const { return entries.size(); }
  /// `enum` of the names and the array `type array[]`.
  void print(llvm::raw_ostream &os, llvm::StringRef title, llvm::StringRef type,
             llvm::StringRef array) const;
  /// One array per entry: `type prefixNAME[]`.
  void printLists(llvm::raw_ostream &os, llvm::StringRef title,
                  llvm::StringRef type, llvm::StringRef prefix) const;
  /// An array of (count, pointer) of the lists.
  void printReferences(llvm::raw_ostream &os, llvm::StringRef type,
                       llvm::StringRef array, llvm::StringRef prefix) const;

private:
  struct Entry {
    std::string initializer;
    size_t length;
    std::string name;
  };
  std::vector<Entry> entries;
  llvm::StringMap<size_t> position;
  NameScope names;
};

/// Every table of the artifact.
struct Tables {
  Table gemms, attentions, groups, collectives, collectiveItems;
  bool hasViews = false; // an attention with a window or a cap
  /// Lists of sizes and of types that calls point to, printed before the
  /// programs.
  Table sizes, types;

  /// Names of the entries for these.
  std::string gemm(const rt::GemmDesc &desc);
  std::string attention(const rt::AttentionDesc &desc);
  std::string collective(exec::CollectiveOp op);
  /// Index of the group of ranks along the axes of the mesh, seen from `op`.
  size_t group(mlir::Operation *op, mlir::FlatSymbolRefAttr mesh,
               mlir::ArrayAttr axes);
  /// The name of an array of int64_t with these values.
  std::string sizeList(llvm::ArrayRef<int64_t> values, llvm::StringRef wanted);
  /// Of an array of DType.
  std::string typeList(llvm::ArrayRef<std::string> values,
                       llvm::StringRef wanted);
  void print(llvm::raw_ostream &os) const;
};

//===----------------------------------------------------------------------===//
// Parts of the file
//===----------------------------------------------------------------------===//

/// Prints a kernel as loops in a function of this name. `user` is the module of
/// its first launch, for the comment; it may be empty.
mlir::LogicalResult emitKernel(exec::KernelOp kernel, llvm::StringRef name,
                               llvm::StringRef user, llvm::raw_ostream &os);

/// Names that the whole file shares.
struct FileNames {
  explicit FileNames(mlir::ModuleOp module) : arena(module) {}

  const ArenaOffsets arena;
  llvm::StringMap<std::string> ranges;    // symbol -> constant
  llvm::StringMap<std::string> functions; // kernel, func, program -> function
  llvm::StringMap<std::string> offsets;   // func -> struct of its buffers
  const KernelSource *kernels = nullptr;  // as the target spells them
  /// From the events' numbers in the text to 0, 1, …
  std::map<int64_t, int64_t> events;
  NameScope scope;
};

mlir::LogicalResult emitProgram(exec::ProgramOp program, const FileNames &names,
                                Tables &tables, llvm::raw_ostream &os);
/// `firstCall` (may be null) lends its operands' names to the arguments.
mlir::LogicalResult emitFunc(exec::FuncOp func, exec::CallOp firstCall,
                             const FileNames &names, Tables &tables,
                             llvm::raw_ostream &os);

/// The call of the runtime that an op is; `pointer` spells an operand.
std::string runtimeCall(exec::RuntimeOpInterface op, Tables &tables,
                        llvm::function_ref<std::string(mlir::Value)> pointer);

} // namespace fsdp::emit

#endif // FSDP_LIB_TARGET_EMITTER_H
