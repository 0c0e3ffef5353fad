//===- ShardingRule.h - How the loops of an op may be split -----*- C++ -*-===//
//
// An op is loops over its *factors*; a dimension of an operand or result is one
// factor or a product of several. A rule says which factors each dimension
// has. Split a factor over a mesh axis, and every dimension that has it is
// sharded over that axis, every operand without it has to be replicated, and
// every result without it is partial (a sum or maximum) over the axis.
//
// The idea is that of Shardy's sharding rules and of einsum notation.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DIALECTS_NN_SHARDINGRULE_H
#define FSDP_DIALECTS_NN_SHARDINGRULE_H

#include "mlir/IR/Operation.h"

namespace fsdp::nn {

struct ShardingFactor {
  std::string name;
  int64_t size;
  /// The op needs all of it on one rank, so what has it is replicated.
  bool needsReplication = false;
};

/// How the partial results of ranks combine to the result.
enum class PartialKind { Sum, Max };

struct ShardingRule {
  /// For each dimension its factors (indices), the outermost first.
  using Dims = llvm::SmallVector<llvm::SmallVector<unsigned, 1>, 4>;

  llvm::SmallVector<ShardingFactor, 6> factors;
  llvm::SmallVector<Dims, 3> operands, results;
  PartialKind partial = PartialKind::Sum;
  /// Operands that are all partial alike may stay so: the op is
  /// an addition or moves elements.
  bool passesPartial = false;
  /// All elements of the operands are combined, so these may lie anywhere, even
  /// sharded further in storage: the results are partial over all axes that
  /// shard any. A sum needs its operands sharded over the same axes.
  bool combines = false;

  /// "b s i, o i -> b s o"; a factor that needs replication is followed by '!',
  /// a dimension of several factors is in parentheses.
  std::string str() const;
};

/// The rule of `op` from its notation, as `str` writes it. "..." stands for
/// any number of leading dimensions ("...!": ones that need replication), the
/// same wherever it occurs. Absent optional operands are left out by the
/// caller. Sizes are those of the op's shapes; in a product at most one factor
/// may occur nowhere else.
ShardingRule shardingRule(mlir::Operation *op, llvm::StringRef notation);

/// The rule of an op whose operands and results all have one shape and no
/// element of which depends on another.
ShardingRule elementwiseRule(mlir::Operation *op);

} // namespace fsdp::nn

#endif // FSDP_DIALECTS_NN_SHARDINGRULE_H
