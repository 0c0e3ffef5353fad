//===- PublishedRows.h - Training runs that others measured -----*- C++ -*-===//
//
// A table (CSV with a first line of column names) of runs of FSDP with the
// columns of llm-foundry's published tables: what was trained, on what, and how
// many tokens a second it took. docs/simulation.md lists the columns.
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

enum class RowPrecision { Bf16, AmpBf16, AmpFp8 };
template <> struct Spellings<RowPrecision> {
  static constexpr Spelling<RowPrecision> all[] = {
      {RowPrecision::Bf16, "bf16"},
      {RowPrecision::AmpBf16, "amp_bf16"},
      {RowPrecision::AmpFp8, "amp_fp8"}};
};

namespace simulation {

/// The sizes of a model of llm-foundry (MPT): attention with as many heads for
/// keys, four times the width inside the MLP, embeddings tied.
struct RowModel {
  const char *name;
  int64_t width, layers, headSize;
};
inline constexpr int64_t kRowVocabulary = 50368;

/// A kind of GPU: its machine file, and rates in flop/s that the scalars are
/// shares of.
struct RowGpu {
  const char *name, *machine;
  double bestBf16, bestFp8;
  /// Of FlashAttention-2, both passes, with causal operations counted.
  double flashAttention;
  /// Of the generation whose clock is a scalar.
  bool isAmpere;
};

struct PublishedRow {
  /// In the file, from 1.
  int64_t line = 0;
  const RowModel *model = nullptr;
  const RowGpu *gpu = nullptr;
  int64_t sequence = 0, gpus = 0;
  /// Sequences of a rank at once, and how often before the optimizer.
  int64_t microbatch = 0, accumulation = 0;
  int64_t parameters = 0;
  /// Of all ranks.
  double tokensPerSecond = 0;
  RowPrecision precision = RowPrecision::Bf16;
  RowMixedPrecision mixedPrecision = RowMixedPrecision::Pure;
  RowSharding sharding = RowSharding::Full;
  bool recomputes = false, offloads = false;
  /// Of a node, in bytes per second; 0: the machine file's.
  double networkBytesPerSecond = 0;

  int64_t globalTokens() const {
    return microbatch * accumulation * gpus * sequence;
  }
  double seconds() const {
    return static_cast<double>(globalTokens()) / tokensPerSecond;
  }
  /// "7b, 2048 tokens, 8 h100_80gb"
  std::string name() const;
};

/// Throws fsdp::Error that names line, column and what is expected. At most
/// 10,000 rows and 64 columns; unknown columns are ignored.
std::vector<PublishedRow> readRows(const std::string &text,
                                   const std::string &path);
std::vector<PublishedRow> loadRows(const std::string &path);

} // namespace simulation
} // namespace fsdp

#endif // FSDP_SIMULATION_PUBLISHEDROWS_H
