//===- Grid.h - What programs compute on the ranks of a mesh ----*- C++ -*-===//
//
// Runs one text on all ranks of its fsdp.mesh in one process, op by op in
// program order. It takes a program at every level from the graph of a model to
// its schedule, so that each pass can be asked whether it kept the meaning.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_INTERPRETER_GRID_H
#define FSDP_INTERPRETER_GRID_H

#include "dialects/Fsdp/Fsdp.h"
#include "fsdp/Interpreter/Interpreter.h"

namespace fsdp::interpret {

/// What a program reads.
struct GridInputs {
  /// Parameters and buffers by symbol, each whole: they are split into shards
  /// by their fsdp.placement. One that is missing starts as its initialiser
  /// says, if that is not random.
  TensorMap state;
  /// Arguments by name, one map per rank; a single map serves all ranks. One
  /// of which a local program takes a part is given whole.
  std::vector<TensorMap> arguments;
};

/// What a program produces.
struct GridOutputs {
  /// What was written, each whole again: `<parameter>.grad` for an nn.gradient,
  /// and every tensor that nn.adamw, nn.accumulate, nn.write or nn.clear
  /// changes.
  TensorMap state;
  /// Results by name, one map per rank; whole again where ranks give parts.
  std::vector<TensorMap> results;
};

/// Ranks of the mesh of `module`; 1 if it has none.
int64_t worldSize(mlir::ModuleOp module);

/// `nn.name` of an argument or result, or "arg<i>", "result<i>".
std::string argumentName(mlir::func::FuncOp program, unsigned i);
std::string resultName(mlir::func::FuncOp program, unsigned i);

/// An argument as it is given.
struct GivenArgument {
  /// Of the whole, where ranks take parts of it.
  mlir::RankedTensorType type;
  /// Whether all ranks take their parts of one tensor.
  bool isShared;
};
GivenArgument givenArgument(mlir::func::FuncOp program, unsigned i);

/// Bytes that run() takes at the least: 8 for every element of the parameters
/// and buffers, whole and on every rank, and of the values that live at once on
/// every rank. INT64_MAX if there are more.
int64_t leastBytes(mlir::func::FuncOp program);

/// Runs `program` on all ranks of its module's mesh.
///
/// Reductions add in the runtime's tree; an integer sum is exact. With
/// Rounding::Declared every op, every step of a reduction and what goes in is
/// rounded to its declared type; without, all is in double precision.
///
/// Throws std::runtime_error that names the op, tensor and rank: for an op it
/// does not know, a missing or misshapen input, a future that is not awaited
/// exactly once, replicas that differ, and padding that is not zero.
GridOutputs run(mlir::func::FuncOp program, const GridInputs &inputs,
                Rounding rounding = Rounding::None);

} // namespace fsdp::interpret

#endif // FSDP_INTERPRETER_GRID_H
