//===- PublishedRows.h - Training runs that others measured -----*- C++ -*-===//
//
// A table (CSV with a first line of column names) of training runs: what was
// trained, on what, and how many tokens a second it took. There are two sets of
// columns: those of llm-foundry's published tables, and those that say a run's
// framework, model and layout in full. docs/simulation.md lists both.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SIMULATION_PUBLISHEDROWS_H
#define FSDP_SIMULATION_PUBLISHEDROWS_H

#include "fsdp/Config/Spelling.h"
#include <cstdint>
#include <string>
#include <vector>

namespace fsdp {

/// What of the parameters is in one place only.
enum class RowSharding { Full, GradAndOptimizer, None };
template <> struct Spellings<RowSharding> {
  static constexpr Spelling<RowSharding> all[] = {
      {RowSharding::Full, "FULL_SHARD"},
      {RowSharding::GradAndOptimizer, "SHARD_GRAD_OP"},
      {RowSharding::None, "NO_SHARD"}};
};

/// In what reductions of gradients travel: f32, or bf16 as all else.
enum class RowMixedPrecision { Default, Pure };
template <> struct Spellings<RowMixedPrecision> {
  static constexpr Spelling<RowMixedPrecision> all[] = {
      {RowMixedPrecision::Default, "DEFAULT"},
      {RowMixedPrecision::Pure, "PURE"}};
};

/// Of llm-foundry's tables.
enum class RowPrecision { Bf16, AmpBf16, AmpFp8 };
template <> struct Spellings<RowPrecision> {
  static constexpr Spelling<RowPrecision> all[] = {
      {RowPrecision::Bf16, "bf16"},
      {RowPrecision::AmpBf16, "amp_bf16"},
      {RowPrecision::AmpFp8, "amp_fp8"}};
};

namespace simulation {

/// The sizes of a transformer. Those of llm-foundry (MPT) have as many heads
/// for keys, four times the width inside the MLP, and tied embeddings.
struct RowModel {
  std::string name;
  int64_t width = 0, layers = 0, hidden = 0;
  int64_t heads = 1, keyHeads = 1, vocabulary = 0;
  /// Two products into the MLP and a gate, in place of one and GELU.
  bool isGated = false;

  /// Of a block, which matmuls read.
  int64_t weights() const {
    return 2 * width * width + 2 * width * width / heads * keyHeads +
           (isGated ? 3 : 2) * width * hidden;
  }
  /// Of `weights`, what selective recomputation multiplies again: every second
  /// product of a block (keys, the attention's output, one into the MLP).
  int64_t weightsAgain() const {
    return width * width / heads * keyHeads + width * width + width * hidden;
  }
};

/// A kind of GPU: its machine file, and rates in flop/s that the scalars are
/// shares of.
struct RowGpu {
  const char *name, *machine;
  double bestBf16, bestFp8;
  /// Of FlashAttention-2, both passes, with causal operations counted.
  double flashAttention;
  /// Whose clock is a scalar of its own.
  enum Clock { Own, Ampere, Capped } clock = Own;
  /// Where it is not that of the machine file.
  double memoryBytesPerSecond = 0;
};

enum class RowRecompute { None, Selective, Full };

struct PublishedRow {
  /// In the file, from 1.
  int64_t line = 0;
  /// What the table calls the run; empty where it has no names.
  std::string label;
  RowModel model;
  const RowGpu *gpu = nullptr;
  /// The software profile; empty: eager blocks and FlashAttention-2.
  std::string profile;
  int64_t sequence = 0, gpus = 0;
  /// Ranks that share a block's tensors, that have the blocks one after
  /// another, and that share a sequence.
  int64_t tensorRanks = 1, stages = 1, contextRanks = 1;
  /// Parts of the model that each stage has.
  int64_t partsOfStage = 1;
  /// Sequences of a rank at once, and how often before the optimizer.
  int64_t microbatch = 1, accumulation = 1;
  int64_t parameters = 0;
  /// Of all ranks.
  double tokensPerSecond = 0;
  bool isFp8 = false;
  /// Of an element that a reduction of gradients moves.
  int64_t gradientBytes = 2;
  RowSharding sharding = RowSharding::Full;
  /// Parameters and gradients travel once a step, not with each microbatch.
  bool communicatesOnce = false;
  RowRecompute recompute = RowRecompute::None;
  bool offloads = false;
  /// Of a node, in bytes per second; 0: the machine file's.
  double networkBytesPerSecond = 0;

  /// Ranks that train on rows of their own.
  int64_t dataRanks() const {
    return gpus / (tensorRanks * stages * contextRanks);
  }
  /// Ranks that the state of a parameter is distributed over.
  int64_t shards() const {
    return sharding == RowSharding::None ? 1 : dataRanks() * contextRanks;
  }
  int64_t globalTokens() const {
    return microbatch * accumulation * dataRanks() * sequence;
  }
  double seconds() const {
    return static_cast<double>(globalTokens()) / tokensPerSecond;
  }
  /// "7b, 2048 tokens, 8 h100_80gb"
  std::string name() const;
};

struct RowTable {
  std::vector<PublishedRow> rows;
  /// Lines that are no rows of dense models with a rate, and why.
  std::vector<std::string> leftOut;
};

/// Throws fsdp::Error that names line, column and what is expected. At most
/// 10,000 rows and 64 columns; unknown columns are ignored.
RowTable readRows(const std::string &text, const std::string &path);
RowTable loadRows(const std::string &path);

} // namespace simulation
} // namespace fsdp

#endif // FSDP_SIMULATION_PUBLISHEDROWS_H
