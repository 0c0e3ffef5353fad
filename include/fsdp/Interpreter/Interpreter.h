//===- Interpreter.h - What programs compute on one rank --------*- C++ -*-===//
//
// Interprets a program of nn ops in double precision, each op by its formula,
// with no thought of speed. Grid.h does the same on the ranks of a mesh.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_INTERPRETER_INTERPRETER_H
#define FSDP_INTERPRETER_INTERPRETER_H

#include "dialects/NN/NN.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <map>
#include <string>
#include <vector>

namespace fsdp::interpret {

/// A tensor in row-major order. Integers are held as doubles too: those of a
/// program (indices, digit sums) are below 2^53.
struct DenseTensor {
  std::vector<int64_t> shape;
  std::vector<double> values;

  /// A tensor of `shape` whose elements are all `value`.
  static DenseTensor full(std::vector<int64_t> shape, double value = 0);
  static DenseTensor scalar(double value) { return full({}, value); }
  int64_t size() const { return values.size(); }
  int64_t rank() const { return shape.size(); }
};

/// Elements before each dimension's next index.
std::vector<int64_t> stridesOf(llvm::ArrayRef<int64_t> shape);

using TensorMap = std::map<std::string, DenseTensor>;

/// Whether every op's result is rounded to its declared element type, or kept
/// as a double whatever the type says.
enum class Rounding { None, Declared };

/// Runs `program` on one rank and gives what it produces by name: its results
/// (`nn.name`, or "result<i>"), `<parameter>.grad` for each nn.gradient, and
/// the new value of every tensor that nn.adamw updates.
///
/// `inputs` holds the arguments (`nn.name`, or "arg<i>") and what nn.read
/// reads, by symbol. A parameter or buffer that is missing starts as its
/// initialiser says, if that is not random. Throws std::runtime_error that
/// names the input or op that it cannot serve.
TensorMap evaluate(mlir::func::FuncOp program, const TensorMap &inputs,
                   Rounding rounding = Rounding::None);

/// The results of one op without state (not nn.read, nn.gradient, nn.adamw).
std::vector<DenseTensor> evaluate(mlir::Operation *op,
                                  const std::vector<DenseTensor> &operands,
                                  Rounding rounding = Rounding::None);

/// What a deterministic initialiser fills a tensor with; throws for the random
/// ones.
DenseTensor initialValue(mlir::RankedTensorType type, mlir::Attribute init);

} // namespace fsdp::interpret

#endif // FSDP_INTERPRETER_INTERPRETER_H
