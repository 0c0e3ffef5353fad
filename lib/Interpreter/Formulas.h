//===- Formulas.h - Formulas of the layer ops -------------------*- C++ -*-===//
//
// Private to the interpreter: the layer ops, each as its paper writes it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_LIB_INTERPRETER_FORMULAS_H
#define FSDP_LIB_INTERPRETER_FORMULAS_H

#include "fsdp/Interpreter/Evaluate.h"

namespace fsdp::interpret {

using Tensors = std::vector<Tensor>;

/// Throws std::runtime_error.
[[noreturn]] void fail(const std::string &message);

std::vector<int64_t> shapeOf(mlir::Value value);

/// "2x3", "a scalar".
std::string textOf(llvm::ArrayRef<int64_t> shape);

/// Rounds to the nearest value of `element`, f32 or bf16; others stay.
void roundTo(mlir::Type element, Tensor &tensor);

Tensor linear(const Tensors &in);
Tensor linearInputGrad(const Tensors &in);
Tensor linearWeightGrad(const Tensors &in);
Tensor matmul(const Tensor &lhs, const Tensor &rhs, bool transposeLhs,
              bool transposeRhs);

Tensors rmsNorm(const Tensors &in, double eps);
Tensor rmsNormInputGrad(const Tensors &in);
Tensor rmsNormWeightGrad(const Tensors &in);
Tensors layerNorm(const Tensors &in, double eps);
Tensor layerNormInputGrad(const Tensors &in);
Tensor layerNormWeightGrad(const Tensors &in);
Tensor softmax(const Tensor &x);
Tensor softmaxGrad(const Tensors &in);

Tensor rotary(const Tensors &in, bool adjacent, bool inverse);
Tensors attention(const Tensors &in, double scale, bool causal);
Tensors attentionGrad(const Tensors &in, double scale, bool causal);

Tensor embedding(const Tensors &in);
Tensor embeddingGrad(const Tensors &in, int64_t rows);
Tensors crossEntropy(const Tensors &in, int64_t ignoreIndex);
Tensor crossEntropyGrad(const Tensors &in, int64_t ignoreIndex);
/// One count for each equal part of the targets, in the shape of the result.
Tensor countLabels(const Tensor &targets, int64_t ignoreIndex,
                   llvm::ArrayRef<int64_t> shape);
Tensor divideByCount(const Tensors &in);
Tensor mseLoss(const Tensors &in, int64_t count);
Tensor mseLossGrad(const Tensors &in, int64_t count);

Tensor absMax(const Tensors &in);
Tensor sumSquares(const Tensors &in);
Tensors clipCoefficient(const Tensors &in, double maxNorm);

} // namespace fsdp::interpret

#endif // FSDP_LIB_INTERPRETER_FORMULAS_H
