//===- ModulePath.h - Which module an op belongs to -------------*- C++ -*-===//
//
// A model is a tree of modules; a path leads from its root to one of them:
// "layers.3.attention.wq", and "tok_embeddings#2" for what its second call
// computes. An op carries the path in the text, as `nn.module`. Only the
// functions here take a path, or a name that begins with one, apart.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DIALECTS_NN_MODULEPATH_H
#define FSDP_DIALECTS_NN_MODULEPATH_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace fsdp::nn {

/// String attribute of an op of a program: the path of its module.
inline constexpr llvm::StringLiteral kModuleAttr = "nn.module";

/// Module of the optimizer's ops.
inline constexpr llvm::StringLiteral kOptimizerModule = "optimizer";

//===----------------------------------------------------------------------===//
// Paths
//===----------------------------------------------------------------------===//

/// The module that owns a parameter or buffer: "layers.3.wq" for
/// "layers.3.wq.weight"; empty for one of the root.
llvm::StringRef moduleOfParameter(llvm::StringRef parameter);

/// What people call a parameter: a weight after its module, anything else by
/// its own name. "layers.3.wq" for "layers.3.wq.weight".
llvm::StringRef shortParameterName(llvm::StringRef parameter);

/// Everything but the last component, and no call; empty at the root.
llvm::StringRef parentOf(llvm::StringRef path);

/// The first component: "layers" for "layers.3.wq".
llvm::StringRef firstComponent(llvm::StringRef path);

/// The numbered block that a module or parameter lies in: "layers.3" for
/// "layers.3.attention.wq.weight"; empty if no component is a number.
llvm::StringRef blockOf(llvm::StringRef path);

/// The number of that block: "3"; empty outside of a numbered block.
llvm::StringRef blockNumberOf(llvm::StringRef path);

/// What the blocks of a list are called: "layers" for anything in "layers.3".
/// Empty outside of a numbered block, and where the list has no name.
llvm::StringRef blockListOf(llvm::StringRef path);

/// The path of the modules around all of `paths`; empty if that is the root.
/// The same call of one module gives that call, several calls the module.
std::string commonPath(llvm::ArrayRef<llvm::StringRef> paths);

/// The n-th call of a module, from 1: "output" and "output#2".
std::string callPath(llvm::StringRef path, unsigned call);
llvm::StringRef withoutCall(llvm::StringRef path);
unsigned callOf(llvm::StringRef path);

//===----------------------------------------------------------------------===//
// Names that begin with a path
//===----------------------------------------------------------------------===//

/// "layers.17.wq.weight" gives "layers.*.wq.weight".
std::string withoutNumbers(llvm::StringRef name);

/// What people call a buffer or work of `place`, a path or a name that begins
/// with one: "layers.3.wq: linear".
std::string labelOf(llvm::StringRef place, llvm::StringRef what);
/// The same in any block: "layers.*.wq: linear".
std::string labelWithoutNumbers(llvm::StringRef label);

/// The text that all of `names` share, with a star where they differ:
/// "layers.9.wq", "layers.10.wq" gives "layers.*.wq".
std::string commonName(llvm::ArrayRef<llvm::StringRef> names);

/// A name without the number of the block: "layers.*.attention.q" and
/// "layers.3.attention.q" give "attention.q".
llvm::StringRef withoutBlock(llvm::StringRef name);

/// True if a star of commonName() stands for a part of a word: the names had
/// nothing in common but their first or last letters.
bool isFragment(llvm::StringRef name);

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// The path of the module that `op` belongs to; null where nothing is said.
mlir::StringAttr moduleOf(mlir::Operation *op);
/// The same for the op that gives `value`; null for an argument.
mlir::StringAttr moduleOfValue(mlir::Value value);
/// The same as text, empty where nothing is said.
llvm::StringRef modulePathOf(mlir::Operation *op);

/// Makes `op` one of `module`; null says nothing.
void setModule(mlir::Operation *op, mlir::StringAttr module);

/// The common path of `ops`; null if one says nothing or it is the root.
mlir::StringAttr commonModule(llvm::ArrayRef<mlir::Operation *> ops);

/// Gives every op of `root` that belongs to a module a location of its path:
/// what diagnostics say and what values are called in text.
void nameLocations(mlir::Operation *root);

/// While it lives, ops that `builder` creates belong to `module`, but those
/// that say otherwise, terminators, and constants: those belong to nobody, so
/// that equal ones stay one.
class ModuleScope : public mlir::OpBuilder::Listener {
public:
  ModuleScope(mlir::OpBuilder &builder, mlir::StringAttr module);
  ~ModuleScope() override;
  ModuleScope(const ModuleScope &) = delete;
  ModuleScope &operator=(const ModuleScope &) = delete;

  void notifyOperationInserted(mlir::Operation *op,
                               mlir::OpBuilder::InsertPoint previous) override;

private:
  mlir::OpBuilder &builder;
  mlir::OpBuilder::Listener *outer;
  mlir::StringAttr module;
};

} // namespace fsdp::nn

#endif // FSDP_DIALECTS_NN_MODULEPATH_H
