//===- PolicyApplier.h - Placement policies on a module ---------*- C++ -*-===//
#ifndef FSDP_PASSES_PLACEMENT_POLICYAPPLIER_H
#define FSDP_PASSES_PLACEMENT_POLICYAPPLIER_H

#include "dialects/Fsdp/Placement.h"
#include "fsdp/Config/PlacementPolicy.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace fsdp {

/// What a policy says of one parameter.
struct ParameterPlace {
  dist::Placement compute; // without storage
  bool replicate = false;  // also stored whole on every rank
  bool frozen = false;
  bool keyHeads = false; // sharded by heads of keys
  bool isStated = false; // a rule says what shards it
};

/// By the name of the parameter.
using ParameterPlaces = llvm::DenseMap<mlir::StringAttr, ParameterPlace>;

/// Applies a policy to a module on a mesh. Every member fails with an error
/// that names the rule.
class PolicyApplier {
public:
  /// Batches are sharded over `dataAxes`.
  PolicyApplier(const PlacementPolicy &policy, mlir::ModuleOp module,
                dist::MeshOp mesh, llvm::ArrayRef<dist::AxisRefAttr> dataAxes)
      : policy(policy), module(module), mesh(mesh), dataAxes(dataAxes) {}

  /// What the rules say of every parameter; each matches at least one.
  mlir::FailureOr<ParameterPlaces> parameters();

  /// The axes that shard the residual stream and what follows it up to the
  /// loss; none if they are not the same everywhere.
  mlir::FailureOr<dist::AxisList> streamAxes();

  /// Redistributes the residual stream, which additions marked nn.residual
  /// read and give, to where the policy keeps it.
  mlir::LogicalResult pinStream(mlir::func::FuncOp program);

private:
  /// The axis, or the two parts of it that heads of keys and the queries of one
  /// head are sharded over, if it has more ranks than there are heads of keys.
  mlir::FailureOr<dist::AxisList> axes(llvm::StringRef name,
                                       llvm::StringRef origin);
  int64_t keyHeads();
  mlir::LogicalResult shard(ParameterPlace &place, nn::ParameterOp parameter,
                            const PlacementPolicy::Parameters &rule);
  mlir::LogicalResult pin(mlir::Value stream, llvm::StringRef axis);

  const PlacementPolicy &policy;
  mlir::ModuleOp module;
  dist::MeshOp mesh;
  llvm::ArrayRef<dist::AxisRefAttr> dataAxes;
};

} // namespace fsdp

#endif // FSDP_PASSES_PLACEMENT_POLICYAPPLIER_H
