//===- Formulas.h - Formulas of the layer ops -------------------*- C++ -*-===//
//
// Private to the interpreter: the layer ops, each as its paper writes it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_LIB_INTERPRETER_FORMULAS_H
#define FSDP_LIB_INTERPRETER_FORMULAS_H

#include "dialects/NN/AttentionView.h"
#include "fsdp/Interpreter/Interpreter.h"

namespace fsdp::interpret {

using Tensors = std::vector<DenseTensor>;

/// Throws std::runtime_error.
[[noreturn]] void fail(const std::string &message);

std::vector<int64_t> shapeOf(mlir::Value value);

/// "2x3", "a scalar".
std::string textOf(llvm::ArrayRef<int64_t> shape);

/// Rounds to the nearest value of `element`, f32 or bf16; others stay.
void roundTo(mlir::Type element, DenseTensor &tensor);

DenseTensor linear(const Tensors &in);
DenseTensor linearInputGrad(const Tensors &in);
DenseTensor linearWeightGrad(const Tensors &in);
DenseTensor matmul(const DenseTensor &lhs, const DenseTensor &rhs,
                   bool transposeLhs, bool transposeRhs);

Tensors rmsNorm(const Tensors &in, double eps, bool plusOne);
DenseTensor rmsNormInputGrad(const Tensors &in, bool plusOne);
DenseTensor rmsNormWeightGrad(const Tensors &in);
Tensors layerNorm(const Tensors &in, double eps);
DenseTensor layerNormInputGrad(const Tensors &in);
DenseTensor layerNormWeightGrad(const Tensors &in);
DenseTensor softmax(const DenseTensor &x);
DenseTensor softmaxGrad(const Tensors &in);

DenseTensor rotary(const Tensors &in, bool adjacent, bool inverse);
/// `heads` are queries; of the others half are keys and half values.
Tensors splitHeads(const Tensors &in, int64_t heads, bool adjacent);
DenseTensor joinHeads(const Tensors &in, bool adjacent);
Tensors attention(const Tensors &in, double scale,
                  const nn::AttentionView &view);
Tensors attentionGrad(const Tensors &in, double scale,
                      const nn::AttentionView &view);

DenseTensor embedding(const Tensors &in, bool absent);
DenseTensor embeddingGrad(const Tensors &in, int64_t rows, bool absent);
Tensors crossEntropy(const Tensors &in, int64_t ignoreIndex);
DenseTensor crossEntropyGrad(const Tensors &in, int64_t ignoreIndex);
/// One count for each equal part of the targets, in the shape of the result.
DenseTensor countLabels(const DenseTensor &targets, int64_t ignoreIndex,
                        llvm::ArrayRef<int64_t> shape);
DenseTensor divideByCount(const Tensors &in);
DenseTensor mseLoss(const Tensors &in, int64_t count);
DenseTensor mseLossGrad(const Tensors &in, int64_t count);

DenseTensor absMax(const Tensors &in);
DenseTensor sumSquares(const Tensors &in);
Tensors clipCoefficient(const Tensors &in, double maxNorm);

} // namespace fsdp::interpret

#endif // FSDP_LIB_INTERPRETER_FORMULAS_H
