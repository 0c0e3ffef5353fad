//===- PlacementRules.h - Placements through sharding rules -----*- C++ -*-===//
#ifndef FSDP_DIALECTS_FSDP_PLACEMENTRULES_H
#define FSDP_DIALECTS_FSDP_PLACEMENTRULES_H

#include "dialects/Fsdp/Placement.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace fsdp::dist {

/// What is said of an op that placements cannot be followed through.
inline constexpr llvm::StringLiteral kNoRule =
    "has no sharding rule; a program of one rank is marked fsdp.local";

/// A sharding rule with the mesh axes over which its factors are sharded.
class FactorSharding {
public:
  FactorSharding(nn::ShardingRule rule, MeshOp mesh)
      : rule(std::move(rule)), mesh(mesh),
        axesByFactor(this->rule.factors.size()) {}

  /// The factor that is sharded when a dimension is sharded further: the
  /// outermost of which more than one part is left; -1 if there is none or it
  /// needs replication.
  int64_t factorOf(llvm::ArrayRef<unsigned> dim) const;

  /// The factors that `axes` shard along a dimension, the outermost first, and
  /// the axes of each. Nothing if they do not fit.
  using Shares = llvm::SmallVector<std::pair<unsigned, AxisList>, 2>;
  std::optional<Shares> sharesOf(llvm::ArrayRef<unsigned> dim,
                                 llvm::ArrayRef<AxisRefAttr> axes) const;

  /// True if `factor` can be sharded over `axis` after what is sharded so far:
  /// the parts are equal, and it is the outermost wherever it occurs.
  bool canShard(unsigned factor, AxisRefAttr axis) const;
  void shard(unsigned factor, AxisRefAttr axis) {
    axesByFactor[factor].push_back(axis);
  }
  /// Operands that are partial over `axis` stay so.
  void pass(AxisRefAttr axis, CollectiveReduce kind);

  /// Where an operand must lie, and where a result then lies.
  Placement operand(unsigned i) const;
  Placement result(unsigned i) const;

  /// Takes the axes from where operands lie. Fails, with an error that begins
  /// with the op, if they do not fit the rule.
  mlir::LogicalResult shardAs(llvm::ArrayRef<Placement> operands,
                              EmitError emitError);

  const nn::ShardingRule &getRule() const { return rule; }

private:
  int64_t partsOf(unsigned factor) const;
  Placement dims(const nn::ShardingRule::Dims &dims) const;
  mlir::LogicalResult shardAs(llvm::ArrayRef<unsigned> dim,
                              const AxisList &axes,
                              llvm::SmallVectorImpl<bool> &seen,
                              EmitError emitError);

  nn::ShardingRule rule;
  MeshOp mesh;
  llvm::SmallVector<AxisList, 6> axesByFactor;
  AxisList passed;
  CollectiveReduce passedKind = CollectiveReduce::Sum;
};

/// True if `op` takes its operands in their storage placement, all alike: a sum
/// of gradients.
bool addsInStorage(nn::ShardingOpInterface op,
                   llvm::ArrayRef<Placement> operands);

/// Where the results of `op` lie when its operands lie where `operands` say;
/// fails with an error if the op cannot be computed so.
mlir::FailureOr<llvm::SmallVector<Placement>>
resultPlacements(nn::ShardingOpInterface op, llvm::ArrayRef<Placement> operands,
                 MeshOp mesh);

/// Where everything of a program lies, from its declarations, arguments and
/// fsdp.redistribute on. Fails, with an error, where an op cannot be computed
/// so.
using Placements = llvm::DenseMap<mlir::Value, Placement>;
mlir::FailureOr<Placements> placementsOf(mlir::FunctionOpInterface program,
                                         MeshOp mesh,
                                         mlir::SymbolTableCollection &symbols);

/// The storage placement of the parameter or buffer `name`, and of its
/// gradient: replicated if nothing is said. Fails, with an error, if `value`
/// has not the declared type.
mlir::FailureOr<Placement>
storagePlacementOf(mlir::Operation *op, mlir::FlatSymbolRefAttr name,
                   mlir::Value value, mlir::SymbolTableCollection &symbols);
mlir::FailureOr<Placement>
storagePlacementOf(nn::ReadOp read, mlir::SymbolTableCollection &symbols);

/// True for ops that change what persists, without a sharding rule: they take
/// their operands where those are stored.
bool changesState(mlir::Operation *op);

/// An operand that is a gradient, or is added to what persists.
struct GradientUse {
  unsigned operand;
  /// Null for what belongs to no parameter.
  mlir::FlatSymbolRefAttr parameter;
  /// Where the operand has to lie: the parameter, or the buffer it is added to.
  mlir::FlatSymbolRefAttr storedAs;
};
/// The gradients that `op`, of which changesState() holds, takes.
llvm::SmallVector<GradientUse>
gradientsOf(mlir::Operation *op, mlir::SymbolTableCollection &symbols);
/// Where its operands have to lie: gradients in their storage placement,
/// numbers on every rank. Fails, with an error, if a gradient has not its
/// parameter's type.
mlir::FailureOr<llvm::SmallVector<Placement>>
operandsInStorage(mlir::Operation *op, mlir::SymbolTableCollection &symbols);

/// Where an argument lies.
Placement placementOf(mlir::FunctionOpInterface program,
                      mlir::BlockArgument argument);
/// Where a result of a program has to lie; nothing if that is left open.
std::optional<Placement> resultPlacement(mlir::FunctionOpInterface program,
                                         unsigned i);

/// Fails, with an error of `op`, unless a value can be brought from one
/// placement to another.
mlir::LogicalResult verifyMove(mlir::Operation *op, const Placement &from,
                               const Placement &to);

/// The axes that anything in `program` is placed over, in the order of the
/// mesh. Fails, with an error, if it names an axis and another part of it.
mlir::FailureOr<AxisList> axesOf(mlir::FunctionOpInterface program, MeshOp mesh,
                                 mlir::SymbolTableCollection &symbols);

/// Calls `visit` with every logical program of `module` that has a body, the
/// mesh, and the tables of symbols, which make looking up declarations cheap;
/// without a mesh there are none. Fails, with an error, if the module has
/// several meshes, or a program other than one block or other arguments and
/// results than tensors.
mlir::LogicalResult forEachLogicalProgram(
    mlir::ModuleOp module,
    llvm::function_ref<mlir::LogicalResult(mlir::FunctionOpInterface, MeshOp,
                                           mlir::SymbolTableCollection &)>
        visit);

/// The type of the whole of which `type` is a rank's part in a local program.
/// Compute axes divide evenly, so nothing is lost.
mlir::RankedTensorType logicalType(mlir::Type type, const Placement &placement,
                                   mlir::FunctionOpInterface program,
                                   MeshOp mesh);

} // namespace fsdp::dist

#endif // FSDP_DIALECTS_FSDP_PLACEMENTRULES_H
