//===- NNSharding.cpp - Sharding rules that depend on sizes ---------------===//
//
// The others are a notation in the op's record; see ShardingRule.h for it. A
// dimension needs replication where sharding it would need another rank's
// elements (a norm's last dimension), or where the op would have to know which
// part it has (a causal mask, the rows of an embedding's table).
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/NNSupport.h"
#include <numeric>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::nn;

static ShardingRule additive(ShardingRule rule) {
  rule.passesPartial = true;
  return rule;
}

//===----------------------------------------------------------------------===//
// Moves of elements
//===----------------------------------------------------------------------===//

namespace {

/// Collects the factors of ops whose rule depends on sizes.
class RuleBuilder {
public:
  explicit RuleBuilder(Operation *op) {
    rule.operands.resize(op->getNumOperands());
    rule.results.resize(op->getNumResults());
    for (auto [dims, value] : llvm::zip(rule.operands, op->getOperands()))
      dims.resize(shapeOf(value).size());
    for (auto [dims, value] : llvm::zip(rule.results, op->getResults()))
      dims.resize(shapeOf(value).size());
  }

  unsigned add(int64_t size, bool needsReplication = false) {
    unsigned factor = rule.factors.size();
    rule.factors.push_back({std::to_string(factor), size, needsReplication});
    return factor;
  }

  /// Gives the dimensions of operand 0 and result 0 their own factors, shared
  /// where the sizes are equal: an op that touches only some dimensions.
  void addTouched(ArrayRef<int64_t> input, ArrayRef<int64_t> result) {
    for (size_t i = 0; i < input.size(); ++i) {
      bool touched = input[i] != result[i];
      unsigned factor = add(input[i], touched);
      rule.operands[0][i].push_back(factor);
      rule.results[0][i].push_back(touched ? add(result[i], true) : factor);
    }
  }

  ShardingRule rule;
};

} // namespace

namespace {

/// Finds the factors that the dimensions of a reshape share, from the outside:
/// 6 to 2x3 is (2 3) to 2 3. Where two sizes have no divisor in common, parts
/// of one do not lie in parts of the other, up to the place where dimensions of
/// both end.
class ReshapeFactors {
public:
  explicit ReshapeFactors(ReshapeOp op)
      : builder(op), input{shapeOf(op.getInput()), builder.rule.operands[0]},
        result{shapeOf(op.getResult()), builder.rule.results[0]} {}

  ShardingRule rule() {
    while (input.open() && result.open()) {
      int64_t common = std::gcd(input.left, result.left);
      if (common == 1) {
        addReplicated();
        continue;
      }
      unsigned factor = builder.add(common);
      input.take(factor, common);
      result.take(factor, common);
    }
    return additive(std::move(builder.rule));
  }

private:
  /// One side, and what of its present dimension has no factor yet.
  struct Side {
    ArrayRef<int64_t> shape;
    ShardingRule::Dims &dims;
    size_t next = 0;
    int64_t left = 1;

    /// Goes on to a dimension that is not 1; false after the last.
    bool open() {
      while (left == 1 && next < shape.size())
        left = shape[next++];
      return left != 1;
    }
    void take(unsigned factor, int64_t size) {
      dims[next - 1].push_back(factor);
      left /= size;
    }
  };

  void addReplicated() {
    int64_t taken = takeReplicated(input), given = takeReplicated(result);
    while (taken != given) {
      bool inputIsShorter = taken < given;
      Side &side = inputIsShorter ? input : result;
      side.open();
      (inputIsShorter ? taken : given) *= takeReplicated(side);
    }
  }

  int64_t takeReplicated(Side &side) {
    int64_t size = side.left;
    side.take(builder.add(size, /*needsReplication=*/true), size);
    return size;
  }

  RuleBuilder builder;
  Side input, result;
};

} // namespace

ShardingRule ReshapeOp::getShardingRule() {
  return ReshapeFactors(*this).rule();
}

ShardingRule TransposeOp::getShardingRule() {
  RuleBuilder builder(*this);
  for (int64_t size : shapeOf(getInput()))
    builder.add(size);
  for (auto [i, from] : llvm::enumerate(getPermutation())) {
    builder.rule.operands[0][i].push_back(i);
    builder.rule.results[0][i].push_back(from);
  }
  return additive(std::move(builder.rule));
}

static ShardingRule boxRule(Operation *op) {
  RuleBuilder builder(op);
  builder.addTouched(shapeOf(op->getOperand(0)), shapeOf(op->getResult(0)));
  return additive(std::move(builder.rule));
}

ShardingRule SliceOp::getShardingRule() { return boxRule(*this); }
ShardingRule PadOp::getShardingRule() { return boxRule(*this); }

ShardingRule ConcatOp::getShardingRule() {
  RuleBuilder builder(*this);
  ShardingRule &rule = builder.rule;
  for (auto [i, size] : llvm::enumerate(shapeOf(getResult()))) {
    bool joined = i == static_cast<uint64_t>(getDim());
    unsigned factor = builder.add(size, joined);
    rule.results[0][i].push_back(factor);
    for (auto [dims, input] : llvm::zip(rule.operands, getInputs()))
      dims[i].push_back(joined ? builder.add(shapeOf(input)[i], true) : factor);
  }
  return additive(std::move(rule));
}

// Parts of sums are added before they are repeated.
ShardingRule BroadcastOp::getShardingRule() {
  RuleBuilder builder(*this);
  ShardingRule &rule = builder.rule;
  for (auto [i, size] : llvm::enumerate(shapeOf(getResult())))
    rule.results[0][i].push_back(builder.add(size));
  for (auto [i, to] : llvm::enumerate(getDims()))
    if (shapeOf(getInput())[i] == shapeOf(getResult())[to])
      rule.operands[0][i].push_back(to);
  return std::move(rule);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// A factor per dimension of operand 0, `dims` missing in the result.
static RuleBuilder reductionRule(Operation *op, ArrayRef<int64_t> dims) {
  RuleBuilder builder(op);
  ArrayRef<int64_t> shape = shapeOf(op->getOperand(0));
  for (auto [i, size] : llvm::enumerate(shape))
    builder.rule.operands[0][i].push_back(builder.add(size));
  for (auto [i, kept] : llvm::enumerate(otherDims(shape.size(), dims)))
    builder.rule.results[0][i].push_back(kept);
  return builder;
}

ShardingRule SumOp::getShardingRule() {
  return reductionRule(*this, getDims()).rule;
}

ShardingRule MeanOp::getShardingRule() {
  return reductionRule(*this, getDims()).rule;
}

ShardingRule MaxOp::getShardingRule() {
  ShardingRule rule = reductionRule(*this, getDims()).rule;
  rule.partial = PartialKind::Max;
  return rule;
}

// How many share a maximum must be known.
ShardingRule MaxGradOp::getShardingRule() {
  RuleBuilder builder(*this);
  ShardingRule &rule = builder.rule;
  ArrayRef<int64_t> shape = shapeOf(getInput());
  for (auto [i, size] : llvm::enumerate(shape)) {
    unsigned factor = builder.add(size, llvm::is_contained(getDims(), i));
    rule.operands[0][i].push_back(factor);
    rule.results[0][i].push_back(factor);
  }
  for (auto [i, kept] : llvm::enumerate(otherDims(shape.size(), getDims())))
    for (unsigned statistic : {1, 2})
      rule.operands[statistic][i].push_back(kept);
  return std::move(rule);
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

ShardingRule MatmulOp::getShardingRule() {
  std::string lhs = getTransposeLhs() ? "... k m, " : "... m k, ";
  std::string rhs = getTransposeRhs() ? "... n k" : "... k n";
  return shardingRule(*this, lhs + rhs + " -> ... m n");
}

// Every count is of a part of the first dimension.
ShardingRule CountLabelsOp::getShardingRule() {
  if (shapeOf(getResult()).empty())
    return shardingRule(*this, "... -> ");
  RuleBuilder builder(*this);
  ArrayRef<int64_t> targets = shapeOf(getTargets());
  int64_t parts = shapeOf(getResult())[0];
  unsigned part = builder.add(parts);
  builder.rule.operands[0][0] = {part, builder.add(targets[0] / parts)};
  builder.rule.results[0][0] = {part};
  for (auto [i, size] : llvm::enumerate(targets.drop_front()))
    builder.rule.operands[0][i + 1].push_back(builder.add(size));
  return std::move(builder.rule);
}

//===----------------------------------------------------------------------===//
// The gradient norm: parts of many tensors combine to one number
//===----------------------------------------------------------------------===//

/// All dimensions of all operands from `first` on are combined.
static RuleBuilder combinedRule(Operation *op, unsigned first) {
  RuleBuilder builder(op);
  builder.rule.combines = true;
  for (unsigned i = first; i < op->getNumOperands(); ++i)
    for (auto [dim, size] : llvm::enumerate(shapeOf(op->getOperand(i))))
      builder.rule.operands[i][dim].push_back(builder.add(size));
  return builder;
}

ShardingRule AbsMaxOp::getShardingRule() {
  ShardingRule rule = combinedRule(*this, 0).rule;
  rule.partial = PartialKind::Max;
  return rule;
}

ShardingRule SumSquaresOp::getShardingRule() {
  RuleBuilder builder = combinedRule(*this, 1);
  builder.rule.results[0][0].push_back(
      builder.add(2, /*needsReplication=*/true));
  return std::move(builder.rule);
}
