//===- Gemm.h - A matmul of the artifact ------------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_ONEDNN_GEMM_H
#define FSDP_RUNTIME_ONEDNN_GEMM_H

#include "Matmul.h"

namespace fsdp::rt {

/// One entry of the artifact's table of matmuls. Without native bf16 its
/// operands are widened to f32 in the workspace and the result is rounded.
class Gemm {
public:
  /// Throws std::runtime_error if the library cannot do it.
  Gemm(const GemmDesc &desc, int threads);

  void run(std::byte *lhs, std::byte *rhs, std::byte *bias, std::byte *out,
           std::byte *workspace) const;

  static int64_t workspaceBytes(const GemmDesc &desc, int threads);

  const GemmDesc desc;

private:
  int threads;
  bool widened;
  Matmul matmul;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_ONEDNN_GEMM_H
