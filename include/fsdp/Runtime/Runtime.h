//===- Runtime.h - What generated code calls --------------------*- C++ -*-===//
//
// The boundary between generated programs and the runtime. A generated
// program is a function `void name(Context &c)` that issues work in order;
// pointers are `c.at(offset)`, ranges of the one arena. Nothing here
// allocates after the context is made.
//
// Both targets implement this header: runtime/cpu and runtime/cuda.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_RUNTIME_H
#define FSDP_RUNTIME_RUNTIME_H

#include "fsdp/Runtime/Types.h"
#include <initializer_list>

namespace fsdp::rt {

/// State of one rank: arena, streams, communicators, prepared matmuls.
class Context;

using Ptr = std::byte *;
using Ptrs = std::initializer_list<Ptr>;

/// Byte `offset` of the arena.
Ptr at(Context &c, uint64_t offset);

//===----------------------------------------------------------------------===//
// Order between streams
//===----------------------------------------------------------------------===//

/// Marks the present end of `stream` as `event`.
void record(Context &c, int event, Stream stream);
/// Work issued on `stream` from now on starts after `event`.
void wait(Context &c, int event, Stream stream);

//===----------------------------------------------------------------------===//
// Library work. `gemm` and `collective` index tables of the artifact, so
// that everything is prepared when the artifact is loaded.
//===----------------------------------------------------------------------===//

/// `bias` may be null; `workspace` has the bytes of
/// its GemmDesc.
void gemm(Context &c, Stream stream, int index, Ptr lhs, Ptr rhs, Ptr bias,
          Ptr out, Ptr workspace);
/// A matmul that accumulates: adds to `sum`, which is f32.
void gemmAdd(Context &c, Stream stream, int index, Ptr lhs, Ptr rhs, Ptr sum,
             Ptr workspace);

void collective(Context &c, Stream stream, int index, Ptrs in, Ptrs out,
                Ptrs workspace);

void copy(Context &c, Stream stream, Ptr from, Ptr to, int64_t bytes);

//===----------------------------------------------------------------------===//
// Typed operations: each is a record of dialects/Exec/ExecRuntimeOps.td with
// these names in this order
//===----------------------------------------------------------------------===//

/// `index` is into the artifact's table of attentions: their matmuls are
/// prepared when the artifact is loaded.
/// `starts` is null, or what AttentionDesc says of it.
void attention(Context &c, Stream s, int index, Ptr q, Ptr k, Ptr v, Ptr starts,
               Ptr out, Ptr lse, Ptr workspace);
void attentionGrad(Context &c, Stream s, int index, Ptr q, Ptr k, Ptr v,
                   Ptr out, Ptr lse, Ptr dout, Ptr starts, Ptr dq, Ptr dk,
                   Ptr dv, Ptr workspace);

/// x, y: [batch, sequence, heads, headDim]; table: f32 [sequence, headDim/2,
/// 2].
void rotary(Context &c, Stream s, DType type, int64_t batch, int64_t sequence,
            int64_t heads, int64_t headDim, bool halves, bool inverse, Ptr x,
            Ptr table, Ptr y);

/// x: [batch, sequence, heads + 2 kvHeads, headDim], the heads of q, k and v
/// one after another; q and k are rotated.
void splitHeads(Context &c, Stream s, DType type, int64_t batch,
                int64_t sequence, int64_t heads, int64_t kvHeads,
                int64_t headDim, bool halves, Ptr x, Ptr table, Ptr q, Ptr k,
                Ptr v);
/// The same back: q and k are rotated the other way.
void joinHeads(Context &c, Stream s, DType type, int64_t batch,
               int64_t sequence, int64_t heads, int64_t kvHeads,
               int64_t headDim, bool halves, Ptr q, Ptr k, Ptr v, Ptr table,
               Ptr x);

/// ids: i32 [rows]; table: [classes, cols]; out: [rows, cols]. With `absent`,
/// the id -1 stands for a row that another rank has, and gives -0.0.
void embedding(Context &c, Stream s, DType type, int64_t rows, int64_t classes,
               int64_t cols, bool absent, Ptr ids, Ptr table, Ptr out);
/// Adds rows of dy in token order in f32, rounds once. With `absent`, the id -1
/// adds nothing. workspace, on the CPU: f32 [classes, cols] if the type is not
/// f32 (0 bytes otherwise).
void embeddingGrad(Context &c, Stream s, DType type, int64_t rows,
                   int64_t classes, int64_t cols, bool absent, Ptr ids, Ptr dy,
                   Ptr out, Ptr workspace);
/// ids: i32 [count], rows of a table that the ranks of the group have shards
/// of, n = ceil(classes / ranks) rows each. out: i32 [count], the rows of this
/// rank's shard, -1 for those of others; `byRank`: row + i n for the ids of
/// rank i, count / ranks of them after those of rank i - 1.
void rowsOfShard(Context &c, Stream s, int group, int64_t count,
                 int64_t classes, bool byRank, Ptr ids, Ptr out);

/// losses, lse: f32 [rows]; the loss of an ignored row is 0.
void crossEntropy(Context &c, Stream s, DType type, int64_t rows,
                  int64_t classes, int64_t ignoreIndex, Ptr logits, Ptr targets,
                  Ptr losses, Ptr lse);
/// dlosses: f32 [rows].
void crossEntropyGrad(Context &c, Stream s, DType type, int64_t rows,
                      int64_t classes, int64_t ignoreIndex, Ptr logits,
                      Ptr targets, Ptr lse, Ptr dlosses, Ptr out);
/// targets: i32 [rows]; counts: i64 [parts], of as many equal parts of the
/// rows.
void countLabels(Context &c, Stream s, int64_t rows, int64_t parts,
                 int64_t ignoreIndex, Ptr targets, Ptr counts);

/// out[i...] = in[permuted], row-major; `shape` is the operand's.
void transpose(Context &c, Stream s, DType type, int rank, const int64_t *shape,
               const int64_t *permutation, Ptr in, Ptr out);
/// Copies a box of `shape` elements from `in` at `inOffsets` to `out` at
/// `outOffsets`; the tensors have shapes inShape and outShape. Covers slice,
/// pad (after fill) and concat.
void copyBox(Context &c, Stream s, DType type, int rank, const int64_t *shape,
             const int64_t *inShape, const int64_t *inOffsets,
             const int64_t *outShape, const int64_t *outOffsets, Ptr in,
             Ptr out);
void fillZero(Context &c, Stream s, Ptr out, int64_t bytes);
/// Copies this rank's part of `bytes` that every rank of the artifact's group
/// `group` has: `partBytes` from place * partBytes on. What lies beyond the end
/// is zero.
void shardOf(Context &c, Stream s, int group, int64_t bytes, int64_t partBytes,
             Ptr in, Ptr out);

//===----------------------------------------------------------------------===//
// Several tensors at once: counts[i] elements of tensor i, of types[i], which
// is f32 or bf16; null: all are f32
//===----------------------------------------------------------------------===//

/// f32 to bf16, rounded to nearest, ties to even.
void narrow(Context &c, Stream s, const int64_t *counts, Ptrs in, Ptrs out);
/// sums[i] += values[i] in f32; the types are those of values.
void accumulate(Context &c, Stream s, const int64_t *counts, const DType *types,
                Ptrs sums, Ptrs values);

void absMax(Context &c, Stream s, const int64_t *counts, const DType *types,
            Ptrs in, Ptr out);
void sumSquares(Context &c, Stream s, const int64_t *counts, const DType *types,
                Ptr max, Ptrs in, Ptr out);
/// `sum` holds `sums` pairs of digits.
void clipCoefficient(Context &c, Stream s, double maxNorm, int64_t sums,
                     Ptr max, Ptr sum, Ptr norm, Ptr coefficient);

struct AdamWDesc {
  double beta1, beta2, eps, weightDecay;
};
/// The types are those of gradients.
void adamw(Context &c, Stream s, const AdamWDesc &d, const int64_t *counts,
           const DType *types, Ptrs parameters, Ptrs firstMoments,
           Ptrs secondMoments, Ptrs gradients, Ptr lr, Ptr step,
           Ptr coefficient);
/// The same; `copies` become the parameters in bf16.
void adamwCopy(Context &c, Stream s, const AdamWDesc &d, const int64_t *counts,
               const DType *types, Ptrs parameters, Ptrs firstMoments,
               Ptrs secondMoments, Ptrs copies, Ptrs gradients, Ptr lr,
               Ptr step, Ptr coefficient);

//===----------------------------------------------------------------------===//
// Emitted kernels
//===----------------------------------------------------------------------===//

/// A kernel over rows [begin, end); `args` are the buffers in order.
using RowKernel = void (*)(int64_t begin, int64_t end, const Ptr *args);

/// Runs `kernel` over `rows`, split into pieces for the compute threads. The
/// split never changes a bit: rows are independent. `name` shows in profiles.
void launch(Context &c, Stream s, const char *name, RowKernel kernel,
            int64_t rows, int64_t cols, Ptrs args);

/// A column reduction: the kernel gets column ranges [begin, end).
void launchColumns(Context &c, Stream s, const char *name, RowKernel kernel,
                   int64_t rows, int64_t cols, Ptrs args);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_RUNTIME_H
