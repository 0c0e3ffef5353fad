//===- Matmul.h - One prepared oneDNN matmul --------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_ONEDNN_MATMUL_H
#define FSDP_RUNTIME_ONEDNN_MATMUL_H

#include "fsdp/Runtime/Types.h"
#include <memory>
#include <string>

namespace fsdp::rt {

/// Sizes and strides (in elements) of C = A B (+ bias) (+ C). A is m x k, B
/// k x n; a stride pair is (row, column). The bits of the result depend on
/// nothing else than this and the thread count.
struct MatmulShape {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  int64_t a[2] = {0, 0}, b[2] = {0, 0}, c[2] = {0, 0};
  int64_t aBatch = 0, bBatch = 0, cBatch = 0;
  DType in = DType::F32, out = DType::F32;
  bool bias = false;
  bool accumulate = false;
};

/// A oneDNN primitive with everything that its execution needs, made ahead.
/// One Matmul is used by one thread at a time; `executors` sets of arguments
/// let several threads share its code.
class Matmul {
public:
  /// The primitive is for `threads` threads: 1 if it runs inside a parallel
  /// region. Throws std::runtime_error.
  Matmul(const MatmulShape &shape, int threads, int executors = 1);
  ~Matmul();
  Matmul(Matmul &&) noexcept;

  int64_t scratchpadBytes() const;
  void run(const void *a, const void *b, const void *bias, void *c,
           void *scratchpad, int executor = 0) const;

  /// The scratchpad of such a matmul, without preparing its code.
  static int64_t scratchpadBytes(const MatmulShape &shape, int threads);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_ONEDNN_MATMUL_H
