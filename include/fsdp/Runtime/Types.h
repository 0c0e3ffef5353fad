//===- Types.h - Vocabulary shared by runtime and generated code -*- C++
//-*-===//
//
// Part of the runtime's API: plain types, no dependency on MLIR, MPI or
// oneDNN. Sizes are in elements unless a name says bytes.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_TYPES_H
#define FSDP_RUNTIME_TYPES_H

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// F16 is a type of files alone: nothing computes in it.
enum class DType : uint8_t { F32, BF16, F64, I8, I32, I64, F16 };

inline constexpr int64_t sizeOf(DType type) {
  switch (type) {
  case DType::I8:
    return 1;
  case DType::BF16:
  case DType::F16:
    return 2;
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::F64:
  case DType::I64:
    return 8;
  }
  return 0;
}

/// Streams by role. Work on one stream runs in order of issue.
enum class Stream : uint8_t { Compute, Gather, Reduce, Copy };
inline constexpr int kStreams = 4;

enum class CollectiveKind : uint8_t { AllGather, ReduceScatter, AllReduce };
/// By kind. The compiler's kinds begin with these, alike named.
inline constexpr const char *kCollectiveNames[] = {
    "all_gather", "reduce_scatter", "all_reduce"};
enum class ReduceKind : uint8_t { Sum, Max };

/// out[b] = op(lhs[b]) op(rhs[b]) (+ bias) (+ out[b]), row-major and dense:
/// op(lhs) is m x k, op(rhs) k x n. Accumulated in f32, rounded once.
struct GemmDesc {
  int64_t batch, m, n, k;
  bool transposeLhs, transposeRhs, bias;
  DType in, out;
  /// Bytes that the compiler gave it; a context is refused where the library
  /// needs more. 0: on the CPU not checked, on a GPU none.
  int64_t workspace = 0;
  /// Adds to what `out` holds, which is not bf16.
  bool accumulate = false;
};

/// q: [batch, qLen, heads, headDim]; k, v: [batch, kvLen, kvHeads, headDim];
/// lse: f32 [batch, heads, qLen].
struct AttentionDesc {
  int64_t batch, qLen, kvLen, heads, kvHeads, headDim;
  double scale;
  bool causal;
  DType type;
  /// The reference kernel and not the library: the attribute `plain` of
  /// exec.attention; see Target/ReferenceAttentionWorkspaces.h.
  bool plain = false;
  /// Of `causal`: a query sees the last `window` keys, its own included. 0:
  /// all; else below kvLen.
  int64_t window = 0;
  /// A score s becomes cap * tanh(s / cap) before any is hidden. 0: it stays.
  double cap = 0;
  /// Of `causal`: i32 [batch, qLen] says where the document of each query
  /// begins, which sees no key before that.
  bool starts = false;
  /// The gradient need not add in a fixed order: the attribute `fast` of
  /// exec.attention_grad. No runtime of a CPU knows it.
  bool fast = false;
};

/// One tensor of a bucket. A gather takes `shard` elements from each rank and
/// gives `full` (the padded tensor has ranks*shard elements). A
/// reduce-scatter takes `full` elements and gives `shard`; an all-reduce has
/// full = shard = elements of the tensor.
struct CollectiveItem {
  int64_t shard, full;
};

/// One bucket. `group` indexes the artifact's table of rank groups.
struct CollectiveDesc {
  CollectiveKind kind;
  ReduceKind reduce;
  DType in, out; // wire type and result type (equal for gathers)
  int32_t group;
  int32_t items;
  const CollectiveItem *item;
  const char *serves;
  /// Added by the library, in an order of its own and without a workspace.
  bool fast = false;
  /// Ranks of the group in each node: a sum is made inside each of them first,
  /// then over nodes. 0: in one level.
  int32_t nodeRanks = 0;
};

/// A group of ranks: those that differ only along `axes` of the mesh. Each
/// axis is (index of the mesh axis, pre, size) as in #fsdp.axis_ref.
struct AxisRef {
  int32_t axis;
  int64_t pre, size;
};
struct GroupDesc {
  int32_t axes;
  const AxisRef *axis;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TYPES_H
