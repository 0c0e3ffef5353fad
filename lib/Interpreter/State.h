//===- State.h - Parameters, buffers and gradients of ranks -----*- C++ -*-===//
//
// Private to the interpreter.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_LIB_INTERPRETER_STATE_H
#define FSDP_LIB_INTERPRETER_STATE_H

#include "RankGrid.h"
#include "mlir/IR/BuiltinOps.h"

namespace fsdp::interpret {

/// Named tensors: whole outside, one shard per rank inside.
class State {
public:
  /// `isLocal`: the program speaks of parts at each #fsdp.placement.
  State(mlir::ModuleOp module, const RankGrid &grid, const TensorMap &whole,
        Rounding rounding, bool isLocal)
      : module(module), grid(grid), whole(whole), rounding(rounding),
        isLocal(isLocal) {}

  /// The tensors of a parameter or buffer, one per rank: its parts, or in
  /// logical text the whole.
  const Tensors &read(llvm::StringRef name);

  /// Keeps `local` as the new value of `name`, which lives where the parameter
  /// or buffer `placedAs` does.
  void write(llvm::StringRef name, llvm::StringRef placedAs, Tensors local);

  /// Everything that was written, whole again. Fails if replicas differ or if
  /// padding is not zero.
  TensorMap written() const;

private:
  /// What the module says about a tensor.
  struct Declaration {
    mlir::RankedTensorType type;
    mlir::Attribute init;
    /// What the program's text speaks of lies here.
    dist::Placement placement;
    /// The parameter that this is a compute copy of, or empty.
    llvm::StringRef copyOf;
  };
  /// The local tensors of one name, and whether the program made them.
  struct Entry {
    Declaration declaration;
    Tensors local;
    bool written = false;
  };

  Declaration declarationOf(llvm::StringRef name) const;
  DenseTensor initial(llvm::StringRef name,
                      const Declaration &declaration) const;
  DenseTensor joined(llvm::StringRef name, const Entry &entry) const;

  mlir::ModuleOp module;
  const RankGrid &grid;
  const TensorMap &whole;
  Rounding rounding;
  bool isLocal;
  std::map<std::string, Entry> entries;
};

} // namespace fsdp::interpret

#endif // FSDP_LIB_INTERPRETER_STATE_H
