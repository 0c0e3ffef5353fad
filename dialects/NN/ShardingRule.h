//===- ShardingRule.h - How the loops of an op may be cut -------*- C++ -*-===//
//
// An op is loops over its *factors*; a dimension of an operand or result is one
// factor or a product of several. A rule says which factors each dimension
// has. Cut a factor over a mesh axis, and every dimension that has it is
// sharded over that axis, every operand without it is needed whole, and every
// result without it is a part of the sum (or maximum) over the axis.
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
  /// The op needs all of it on one rank.
  bool whole = false;
};

/// How parts of a result over ranks make the result.
enum class PartialKind { Sum, Max };

struct ShardingRule {
  /// For each dimension its factors (indices), the outermost first.
  using Dims = llvm::SmallVector<llvm::SmallVector<unsigned, 1>, 4>;

  llvm::SmallVector<ShardingFactor, 6> factors;
  llvm::SmallVector<Dims, 3> operands, results;
  PartialKind partial = PartialKind::Sum;
  /// Operands that are all the same parts of sums may stay parts: the op is
  /// an addition or moves elements.
  bool passesPartial = false;
  /// All elements of the operands are combined, so these may lie anywhere, even
  /// cut further at rest: the results are parts over all axes that cut any. A
  /// sum needs its operands cut over the same axes.
  bool combines = false;

  /// "b s i, o i -> b s o"; a factor that must be whole is followed by '!', a
  /// dimension of several factors is in parentheses.
  std::string str() const;
};

/// The rule of `op` from its notation, as `str` writes it. "..." stands for
/// any number of leading dimensions ("...!": whole ones), the same wherever it
/// occurs. Absent optional operands are left out by the caller. Sizes are those
/// of the op's shapes; in a product at most one factor may occur nowhere else.
ShardingRule shardingRule(mlir::Operation *op, llvm::StringRef notation);

/// The rule of an op whose operands and results all have one shape and no
/// element of which depends on another.
ShardingRule elementwiseRule(mlir::Operation *op);

} // namespace fsdp::nn

#endif // FSDP_DIALECTS_NN_SHARDINGRULE_H
