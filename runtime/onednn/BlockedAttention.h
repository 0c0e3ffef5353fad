//===- BlockedAttention.h - Attention over prepared matmuls -----*- C++ -*-===//
//
// Forward (Dao et al., 2022): for each block of queries, chunks of keys with a
// running maximum and sum; the scores of one block exist at a time. Backward:
// for each block of keys, chunks of queries, with the scores transposed, so
// that only the product for dq reads a transposed operand. Blocks above the
// diagonal are skipped, and so are those that a window has passed and those of
// other documents: of a block, chunks begin and end where the first and the
// last block that it meets do. A head is one unit of work for a thread, and its
// blocks come in a fixed order: the bits do not depend on the thread count.
//
// In bf16 the scores, the softmax and all sums are f32; probabilities and
// score gradients are rounded to bf16 where they enter the next product.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_ONEDNN_BLOCKEDATTENTION_H
#define FSDP_RUNTIME_ONEDNN_BLOCKEDATTENTION_H

#include "Matmul.h"
#include "runtime/kernels/Kernels.h"
#include <vector>

namespace fsdp::rt {

/// Matmuls of one family (scores, values, …) by their two varying sizes.
class MatmulTable {
public:
  void add(int64_t rows, int64_t cols, const MatmulShape &shape);
  /// Makes the code of all shapes.
  void prepare(int executors);
  const Matmul &get(int64_t rows, int64_t cols) const;
  /// The largest scratchpad; asks the library, prepares nothing.
  int64_t scratchpadBytes() const;

private:
  struct Entry {
    int64_t rows, cols;
    MatmulShape shape;
    std::unique_ptr<Matmul> matmul;
  };
  std::vector<Entry> entries;
};

/// Operands of attention in the layout of AttentionDesc.
struct AttentionArguments {
  std::byte *q, *k, *v, *out, *lse, *workspace;
  std::byte *dout = nullptr, *dq = nullptr, *dk = nullptr, *dv = nullptr;
  std::byte *starts = nullptr;
};

class BlockedAttention {
public:
  BlockedAttention(const AttentionDesc &desc, int threads);

  /// Prepares the matmuls; needed before forward() and backward(). Throws
  /// std::runtime_error.
  void prepare();
  int64_t forwardWorkspaceBytes() const;
  int64_t backwardWorkspaceBytes() const;

  void forward(const AttentionArguments &a) const;
  void backward(const AttentionArguments &a) const;

  const AttentionDesc desc;

private:
  struct Head;
  struct ForwardSpace;
  struct BackwardSpace;

  ForwardSpace forwardSpace(std::byte *base) const;
  BackwardSpace backwardSpace(std::byte *base) const;

  Head head(const AttentionArguments &a, int64_t batch, int64_t h) const;
  const std::byte *pack(const std::byte *from, std::byte *to, int64_t rows,
                        int64_t stride) const;
  ScoreBlock scoreBlock(const Head &h, int64_t rows, int64_t cols,
                        int64_t query, int64_t key) const;
  void addForward(int64_t rows, int64_t cols);
  void addBackward(int64_t rows, int64_t cols);
  void addShapes();
  void addShapesOfDocuments();
  void forwardBlock(const Head &h, const ForwardSpace &s, int64_t query,
                    int thread) const;
  void backwardBlock(const Head &h, const BackwardSpace &s, int64_t key,
                     bool first, int thread) const;
  void backwardGroup(const AttentionArguments &a, int64_t unit,
                     const BackwardSpace &s, int thread) const;
  void storeGradient(const float *from, std::byte *to, int64_t rows,
                     int64_t stride) const;

  int threads;
  bool widened; // bf16 data computed by f32 matmuls
  DType type;   // of the matmuls' operands
  MatmulTable scores, values;
  MatmulTable scoresT, keyGrads, queryGrads;
  int64_t forwardScratchpad = 0, backwardScratchpad = 0;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_ONEDNN_BLOCKEDATTENTION_H
