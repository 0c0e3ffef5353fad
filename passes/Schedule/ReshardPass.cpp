//===- ReshardPass.cpp - Shards that the backward pass gathers again ------===//

#include "dialects/NN/ModulePath.h"
#include "fsdp/Schedule/Decisions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"
#include "passes/Schedule/PlannedCollectives.h"

namespace fsdp {
#define GEN_PASS_DEF_RESHARD
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

/// Adds the shards of one program.
class Resharder {
public:
  Resharder(Block &block, dist::MeshOp mesh, int64_t ranks)
      : block(block), mesh(mesh), ranks(ranks),
        needed(schedule::neededBackward(block)) {}

  LogicalResult run(nn::SeedOp seed) {
    SmallVector<dist::AllGatherOp> gathers;
    for (Operation &op : block) {
      if (&op == seed)
        break;
      if (auto gather = dyn_cast<dist::AllGatherOp>(op))
        gathers.push_back(gather);
    }
    for (dist::AllGatherOp gather : gathers)
      if (failed(addShard(gather, seed)))
        return failure();
    return success();
  }

private:
  LogicalResult addShard(dist::AllGatherOp gather, nn::SeedOp seed) {
    // What is a bucket already was written so by hand.
    if (gather->getNumResults() != 1 ||
        dist::firstParameterOf(gather).empty() ||
        dist::regatheredShardOf(gather) || !needed.contains(gather))
      return success();
    FailureOr<SmallVector<Attribute>> axes = smallerAxes(gather);
    if (failed(axes))
      return failure();
    Operation *last = lastForwardUse(gather, seed);
    if (axes->empty() || !last)
      return success();
    OpBuilder builder(gather->getContext());
    builder.setInsertionPointAfter(last);
    nn::ModuleScope scope(builder, nn::moduleOf(gather));
    auto full = dist::tensorOf(gather.getResult(0));
    ArrayAttr list = builder.getArrayAttr(*axes);
    SmallVector<int64_t> shape(full.getShape());
    int64_t &size = shape[gather.getDim()];
    size = dist::shardSize(size, mesh.sizeOf(dist::axisRefs(list)));
    dist::ShardOfOp::create(builder, gather.getLoc(), full.clone(shape),
                            gather.getResult(0), gather.getMeshAttr(), list,
                            gather.getDimAttr(), builder.getUnitAttr());
    return success();
  }

  /// The axes of `gather`, but of the data axes only `ranks` consecutive ranks,
  /// from the innermost on; none if these have no more.
  FailureOr<SmallVector<Attribute>> smallerAxes(dist::AllGatherOp gather) {
    SmallVector<dist::AxisRefAttr> axes = dist::axisRefs(gather.getAxes());
    SmallVector<dist::AxisRefAttr> data;
    for (dist::AxisRefAttr axis : mesh.axesOf(AxisKind::Data))
      if (llvm::is_contained(axes, axis))
        data.push_back(axis);
    SmallVector<Attribute> smaller;
    int64_t all = mesh.sizeOf(data), left = ranks;
    if (data.empty() || all <= ranks)
      return smaller;
    llvm::SmallDenseMap<Attribute, Attribute> part;
    for (dist::AxisRefAttr axis : llvm::reverse(data)) {
      int64_t size = mesh.sizeOf(axis), taken = std::min(size, left);
      if (size % taken != 0 || left % taken != 0)
        return gather.emitError("parameters are gathered from ")
               << all << " ranks of the data axes, and " << ranks
               << " consecutive ones (parallelism.fsdp_reshard_ranks) are no "
                  "part of these: \""
               << axis.getName() << "\" has " << size
               << "; state that, or a divisor of it";
      left /= taken;
      part[axis] = taken == size ? axis
                                 : dist::AxisRefAttr::get(gather.getContext(),
                                                          axis.getName(),
                                                          size / taken, taken);
      if (taken == 1)
        part[axis] = {};
    }
    for (dist::AxisRefAttr axis : axes)
      if (Attribute taken = part.contains(axis) ? part[axis] : axis)
        smaller.push_back(taken);
    return smaller;
  }

  /// The last op of the forward pass that uses what `gather` gives, also
  /// through moves of its elements: kernels and products are not parted.
  static Operation *lastForwardUse(Operation *gather, nn::SeedOp seed) {
    Operation *last = nullptr;
    auto consider = [&](Operation *op) {
      if (op && op->isBeforeInBlock(seed) &&
          (!last || last->isBeforeInBlock(op)))
        last = op;
    };
    for (Operation *user : gather->getUsers()) {
      consider(user);
      if (nn::movesElements(user))
        consider(lastForwardUse(user, seed));
    }
    return last;
  }

  Block &block;
  dist::MeshOp mesh;
  int64_t ranks;
  llvm::DenseSet<Operation *> needed;
};

struct ReshardPass : fsdp::impl::ReshardBase<ReshardPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    dist::MeshOp mesh;
    for (auto found : module.getOps<dist::MeshOp>())
      mesh = found;
    if (ranks <= 1 || !mesh)
      return;
    for (auto program : module.getOps<func::FuncOp>()) {
      if (program.isExternal())
        continue;
      Block &block = program.getBody().front();
      auto seeds = block.getOps<nn::SeedOp>();
      if (!seeds.empty() &&
          failed(Resharder(block, mesh, ranks).run(*seeds.begin())))
        return signalPassFailure();
    }
  }
};

} // namespace
