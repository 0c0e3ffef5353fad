//===- AttentionReference.h - Causal attention in f64 -----------*- C++ -*-===//
#ifndef FSDP_TEST_GPU_ATTENTIONREFERENCE_H
#define FSDP_TEST_GPU_ATTENTIONREFERENCE_H

#include "fsdp/Runtime/Types.h"
#include <vector>

namespace fsdp::gpu {

/// Rows of attention over one sequence and of its gradients, each by itself.
class AttentionReference {
public:
  /// The elements of a row, and how far bf16 may be from each: probabilities
  /// and their gradients are rounded before they enter a product, sum(out *
  /// dout) is of a rounded result, the gradients of grouped heads are rounded
  /// before they are added, and each result is rounded. Every rounding is by
  /// 2^-8 of its number, and half as much again is for what f32 loses.
  struct Row {
    std::vector<double> value, allowed;
  };

  /// Operands as [token, head, element].
  AttentionReference(const rt::AttentionDesc &desc, std::vector<float> q,
                     std::vector<float> k, std::vector<float> v,
                     std::vector<float> dout);

  Row out(int64_t query, int64_t head) const;
  Row dq(int64_t query, int64_t head) const;
  /// Of key heads. As many queries are looked at as see the key.
  Row dk(int64_t key, int64_t head) const { return ofKey(key, head, true); }
  Row dv(int64_t key, int64_t head) const { return ofKey(key, head, false); }

private:
  struct Query;
  Query look(int64_t query, int64_t head) const;
  Row ofKey(int64_t key, int64_t head, bool isKeys) const;
  double dot(const float *a, const float *b) const;
  const float *ofQuery(const std::vector<float> &x, int64_t query,
                       int64_t head) const {
    return &x[size_t((query * desc.heads + head) * desc.headDim)];
  }
  const float *ofGroup(const std::vector<float> &x, int64_t key,
                       int64_t head) const {
    return &x[size_t((key * desc.kvHeads + head) * desc.headDim)];
  }

  const rt::AttentionDesc desc;
  const int64_t group; // query heads of a key head
  const std::vector<float> q, k, v, dout;
};

} // namespace fsdp::gpu

#endif // FSDP_TEST_GPU_ATTENTIONREFERENCE_H
