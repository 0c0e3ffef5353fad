//===- NNEvaluatorOps.h - Formulas of the nn evaluator ----------*- C++ -*-===//
//
// Private to the evaluator: the layer ops, each as its paper writes it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_UNIT_COMPILER_NNEVALUATOROPS_H
#define FSDP_TEST_UNIT_COMPILER_NNEVALUATOROPS_H

#include "NNEvaluator.h"

namespace fsdp::test {

using Tensors = std::vector<Tensor>;

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
Tensor mseLoss(const Tensors &in, int64_t count);
Tensor mseLossGrad(const Tensors &in, int64_t count);

Tensor absMax(const Tensors &in);
Tensor sumSquares(const Tensors &in);
Tensors clipCoefficient(const Tensors &in, double maxNorm);

} // namespace fsdp::test

#endif // FSDP_TEST_UNIT_COMPILER_NNEVALUATOROPS_H
