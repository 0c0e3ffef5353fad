//===- PlacementRules.cpp - Placements through sharding rules -------------===//
#include "dialects/Fsdp/PlacementRules.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::dist;

//===----------------------------------------------------------------------===//
// One op
//===----------------------------------------------------------------------===//

int64_t FactorSharding::partsOf(unsigned factor) const {
  MeshOp grid = mesh; // An op's methods are not const.
  return grid.sizeOf(axesByFactor[factor]);
}

int64_t FactorSharding::factorOf(ArrayRef<unsigned> dim) const {
  for (unsigned factor : dim)
    if (rule.factors[factor].size != partsOf(factor))
      return rule.factors[factor].needsReplication
                 ? -1
                 : static_cast<int64_t>(factor);
  return -1;
}

std::optional<FactorSharding::Shares>
FactorSharding::sharesOf(ArrayRef<unsigned> dim,
                         ArrayRef<AxisRefAttr> axes) const {
  MeshOp grid = mesh;
  Shares shares;
  for (unsigned factor : dim) {
    const nn::ShardingFactor &loop = rule.factors[factor];
    if (loop.size == 1)
      continue;
    AxisList own;
    int64_t parts = 1;
    for (; !axes.empty() && !loop.needsReplication; axes = axes.drop_front()) {
      int64_t size = grid.sizeOf(axes[0]);
      bool isLeft = size == 1 || parts < loop.size;
      if (!isLeft || loop.size % (parts * size) != 0)
        break;
      own.push_back(axes[0]);
      parts *= size;
    }
    shares.push_back({factor, std::move(own)});
    if (parts != loop.size)
      break; // What is inside is not sharded.
  }
  // A dimension of one element is split over axes of one rank.
  bool isOne = dim.size() == 1 && rule.factors[dim[0]].size == 1 &&
               !rule.factors[dim[0]].needsReplication &&
               llvm::all_of(axes, [&](AxisRefAttr axis) {
                 return grid.sizeOf(axis) == 1;
               });
  if (isOne && !axes.empty())
    shares.push_back({dim[0], AxisList(axes.begin(), axes.end())});
  return axes.empty() || isOne ? std::optional(std::move(shares))
                               : std::nullopt;
}

bool FactorSharding::canShard(unsigned factor, AxisRefAttr axis) const {
  const nn::ShardingFactor &loop = rule.factors[factor];
  MeshOp grid = mesh; // An op's methods are not const.
  int64_t parts = partsOf(factor) * grid.sizeOf(axis);
  if (loop.needsReplication || parts == 0 || loop.size % parts != 0)
    return false;
  auto has = [&](ArrayRef<unsigned> dim) {
    return llvm::is_contained(dim, factor);
  };
  // Of what is outside of it one part is left.
  auto isOutermost = [&](const nn::ShardingRule::Dims &dims) {
    return llvm::all_of(dims, [&](ArrayRef<unsigned> dim) {
      const unsigned *found = llvm::find(dim, factor);
      return found == dim.end() ||
             llvm::all_of(ArrayRef(dim.begin(), found), [&](unsigned outer) {
               return rule.factors[outer].size == partsOf(outer);
             });
    });
  };
  // What no operand says is not known forwards either.
  return llvm::all_of(rule.operands, isOutermost) &&
         llvm::all_of(rule.results, isOutermost) &&
         llvm::any_of(rule.operands, [&](const nn::ShardingRule::Dims &dims) {
           return llvm::any_of(dims, has);
         });
}

void FactorSharding::pass(AxisRefAttr axis, CollectiveReduce kind) {
  passed.push_back(axis);
  passedKind = kind;
}

Placement FactorSharding::dims(const nn::ShardingRule::Dims &dims) const {
  Placement placement(dims.size());
  for (auto [i, dim] : llvm::enumerate(dims))
    for (unsigned factor : dim)
      llvm::append_range(placement.dims[i].compute, axesByFactor[factor]);
  placement.partial = passed;
  placement.kind = passedKind;
  return placement;
}

Placement FactorSharding::operand(unsigned i) const {
  return dims(rule.operands[i]);
}

Placement FactorSharding::result(unsigned i) const {
  Placement placement = dims(rule.results[i]);
  for (unsigned factor = 0; factor < axesByFactor.size(); ++factor) {
    bool has = llvm::any_of(rule.results[i], [&](ArrayRef<unsigned> dim) {
      return llvm::is_contained(dim, factor);
    });
    if (has || axesByFactor[factor].empty())
      continue;
    llvm::append_range(placement.partial, axesByFactor[factor]);
    placement.kind = rule.partial == nn::PartialKind::Max
                         ? CollectiveReduce::Max
                         : CollectiveReduce::Sum;
  }
  return placement;
}

LogicalResult FactorSharding::shardAs(ArrayRef<unsigned> dim,
                                      const AxisList &axes,
                                      SmallVectorImpl<bool> &seen,
                                      EmitError emitError) {
  std::optional<Shares> shares = sharesOf(dim, axes);
  if (!shares) {
    bool isReplicated = llvm::any_of(dim, [&](unsigned factor) {
      return rule.factors[factor].size != 1 &&
             rule.factors[factor].needsReplication;
    });
    if (isReplicated && dim.size() == 1)
      return emitError()
             << "needs an unsharded dimension, but it is sharded over "
             << axes[0];
    return emitError() << "cannot be split over " << axes.back() << " along "
                       << "a dimension of " << rule.str();
  }
  for (const auto &[factor, own] : *shares) {
    if (seen[factor]) {
      if (axesByFactor[factor] == own)
        continue;
      return emitError() << "has operands that are sharded differently along "
                            "factor "
                         << rule.factors[factor].name << " of " << rule.str();
    }
    seen[factor] = true;
    for (AxisRefAttr axis : own) {
      if (!canShard(factor, axis))
        return emitError() << "cannot be split over " << axis
                           << " along factor " << rule.factors[factor].name
                           << " of " << rule.str();
      shard(factor, axis);
    }
  }
  return success();
}

LogicalResult FactorSharding::shardAs(ArrayRef<Placement> operands,
                                      EmitError emitError) {
  SmallVector<bool> seen(rule.factors.size());
  for (auto [i, placement] : llvm::enumerate(operands)) {
    for (auto [dim, place] :
         llvm::zip_equal(rule.operands[i], placement.dims)) {
      if (!place.storage.empty())
        return emitError()
               << "takes a tensor in its storage placement; move it to its "
                  "compute placement with fsdp.redistribute";
      if (failed(shardAs(dim, place.compute, seen, emitError)))
        return failure();
    }
    bool same = placement.partial.size() == operands[0].partial.size() &&
                llvm::all_of(placement.partial, [&](AxisRefAttr axis) {
                  return operands[0].isPartial(axis);
                });
    // The maximum of sums is not the sum of maxima.
    bool passes = rule.passesPartial && placement.kind == CollectiveReduce::Sum;
    if (!same || (!placement.partial.empty() && !passes))
      return emitError() << "takes a partial, which must be reduced first";
  }
  if (!operands.empty() && !operands[0].partial.empty()) {
    passed = operands[0].partial;
    passedKind = operands[0].kind;
  }
  // An axis may shard one factor and leave another operand partial only if
  // they are different ones.
  for (const AxisList &axes : axesByFactor)
    for (AxisRefAttr axis : axes)
      if (llvm::count_if(axesByFactor,
                         [&](const AxisList &other) {
                           return llvm::is_contained(other, axis);
                         }) != 1 ||
          llvm::is_contained(passed, axis))
        return emitError() << "is split over " << axis
                           << " along two factors of " << rule.str();
  return success();
}

bool fsdp::dist::addsInStorage(nn::ShardingOpInterface op,
                               ArrayRef<Placement> operands) {
  return isa<nn::AddOp>(op) && operands[0] == operands[1] &&
         operands[0] != operands[0].withoutStorage();
}

/// The axes that shard `placement`.
static AxisList cutsOf(const Placement &placement) {
  AxisList axes;
  for (const Placement::Dim &dim : placement.dims) {
    llvm::append_range(axes, dim.compute);
    llvm::append_range(axes, dim.storage);
  }
  return axes;
}

/// Where the result of an op lies that combines all elements of its operands.
static FailureOr<Placement> combined(nn::ShardingOpInterface op,
                                     const nn::ShardingRule &rule,
                                     ArrayRef<Placement> operands,
                                     MeshOp mesh) {
  Placement result(rule.results[0].size());
  bool isMax = rule.partial == nn::PartialKind::Max;
  result.kind = isMax ? CollectiveReduce::Max : CollectiveReduce::Sum;
  AxisList first;
  bool seen = false;
  for (auto [dims, placement] : llvm::zip_equal(rule.operands, operands)) {
    if (!placement.partial.empty()) {
      op->emitOpError("takes a partial, which must be reduced first");
      return failure();
    }
    if (dims.empty() && !isMax)
      continue; // Not one of those that are combined.
    AxisList axes = cutsOf(placement);
    sortByMesh(axes, mesh);
    if (!seen)
      first = axes;
    else if (!isMax && axes != first) {
      op->emitOpError("sums tensors that are sharded over different axes");
      return failure();
    }
    seen = true;
    for (AxisRefAttr axis : axes)
      if (!result.isPartial(axis))
        result.partial.push_back(axis);
  }
  sortByMesh(result.partial, mesh);
  return result;
}

FailureOr<SmallVector<Placement>>
fsdp::dist::resultPlacements(nn::ShardingOpInterface op,
                             ArrayRef<Placement> operands, MeshOp mesh) {
  FactorSharding rule(op.getShardingRule(), mesh);
  if (rule.getRule().combines) {
    FailureOr<Placement> result = combined(op, rule.getRule(), operands, mesh);
    if (failed(result))
      return failure();
    return SmallVector<Placement>{*result};
  }
  if (addsInStorage(op, operands))
    return SmallVector<Placement>{operands[0]};
  if (failed(rule.shardAs(operands, [&] { return op->emitOpError(); })))
    return failure();
  SmallVector<Placement> results;
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    results.push_back(rule.result(i));
  return results;
}

//===----------------------------------------------------------------------===//
// A program
//===----------------------------------------------------------------------===//

static int64_t rankOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getRank();
}

FailureOr<Placement>
fsdp::dist::storagePlacementOf(Operation *op, FlatSymbolRefAttr name,
                               Value value, SymbolTableCollection &symbols) {
  Operation *declaration = symbols.lookupNearestSymbolFrom(op, name);
  auto type =
      declaration ? declaration->getAttrOfType<TypeAttr>("type") : TypeAttr();
  if (!type || type.getValue() != value.getType())
    return op->emitOpError("has ")
           << value.getType() << " of " << name
           << ", which is declared otherwise; types are logical here";
  auto placement = declaration->getAttrOfType<PlacementAttr>(kPlacementAttr);
  return placement ? Placement(placement) : Placement(rankOf(value));
}

FailureOr<Placement>
fsdp::dist::storagePlacementOf(nn::ReadOp read,
                               SymbolTableCollection &symbols) {
  return storagePlacementOf(read, read.getNameAttr(), read.getValue(), symbols);
}

bool fsdp::dist::changesState(Operation *op) {
  return isa<nn::StateOpInterface>(op) && !isa<nn::ReadOp>(op);
}

SmallVector<GradientUse>
fsdp::dist::gradientsOf(Operation *op, SymbolTableCollection &symbols) {
  SmallVector<GradientUse> uses;
  if (auto gradient = dyn_cast<nn::GradientOp>(op))
    uses.push_back({0, gradient.getNameAttr(), gradient.getNameAttr()});
  if (auto sum = dyn_cast<nn::AccumulateOp>(op)) {
    auto buffer =
        symbols.lookupNearestSymbolFrom<nn::BufferOp>(op, sum.getNameAttr());
    FlatSymbolRefAttr owner;
    if (buffer)
      owner = buffer->getAttrOfType<FlatSymbolRefAttr>(nn::kStateOfAttr);
    uses.push_back({0, owner, sum.getNameAttr()});
  }
  if (auto write = dyn_cast<nn::WriteOp>(op))
    uses.push_back({0, {}, write.getNameAttr()});
  if (auto adamw = dyn_cast<nn::AdamWOp>(op)) {
    unsigned first = adamw.getODSOperandIndexAndLength(0).first;
    for (auto [i, name] :
         llvm::enumerate(adamw.getParameters().getAsRange<FlatSymbolRefAttr>()))
      uses.push_back({static_cast<unsigned>(first + i), name, name});
  }
  return uses;
}

FailureOr<SmallVector<Placement>>
fsdp::dist::operandsInStorage(Operation *op, SymbolTableCollection &symbols) {
  SmallVector<Placement> placements;
  for (Value operand : op->getOperands())
    placements.push_back(Placement(rankOf(operand)));
  for (const GradientUse &use : gradientsOf(op, symbols)) {
    FailureOr<Placement> placement = storagePlacementOf(
        op, use.storedAs, op->getOperand(use.operand), symbols);
    if (failed(placement))
      return failure();
    placements[use.operand] = *placement;
  }
  return placements;
}

LogicalResult fsdp::dist::verifyMove(Operation *op, const Placement &from,
                                     const Placement &to) {
  if (canMove(from, to))
    return success();
  return op->emitOpError(
      "cannot turn a value that is not partial into a partial one");
}

Placement fsdp::dist::placementOf(FunctionOpInterface program,
                                  BlockArgument argument) {
  auto attribute = program.getArgAttrOfType<PlacementAttr>(
      argument.getArgNumber(), kPlacementAttr);
  return attribute ? Placement(attribute) : Placement(rankOf(argument));
}

std::optional<Placement>
fsdp::dist::resultPlacement(FunctionOpInterface program, unsigned i) {
  auto attribute =
      program.getResultAttrOfType<PlacementAttr>(i, kPlacementAttr);
  return attribute ? std::optional(Placement(attribute)) : std::nullopt;
}

RankedTensorType fsdp::dist::logicalType(Type type, const Placement &placement,
                                         FunctionOpInterface program,
                                         MeshOp mesh) {
  auto tensor = cast<RankedTensorType>(type);
  // Without a mesh there is one rank, whose shards are whole.
  if (!program->hasAttr(kLocalAttr) || !mesh)
    return tensor;
  SmallVector<int64_t> shape(tensor.getShape());
  for (auto [size, dim] : llvm::zip_equal(shape, placement.dims))
    size = (CheckedSize(size) * mesh.sizeOf(dim.compute)).saturated();
  return RankedTensorType::get(shape, tensor.getElementType());
}

FailureOr<AxisList> fsdp::dist::axesOf(FunctionOpInterface program, MeshOp mesh,
                                       SymbolTableCollection &symbols) {
  AxisList axes;
  auto add = [&](const Placement &placement) {
    AxisList all = placement.partial;
    for (const Placement::Dim &dim : placement.dims) {
      llvm::append_range(all, dim.compute);
      llvm::append_range(all, dim.storage);
    }
    for (AxisRefAttr axis : all)
      if (!llvm::is_contained(axes, axis))
        axes.push_back(axis);
  };
  Block &body = program.getFunctionBody().front();
  for (BlockArgument argument : body.getArguments())
    add(placementOf(program, argument));
  for (unsigned i = 0; i < program.getNumResults(); ++i)
    if (std::optional<Placement> placement = resultPlacement(program, i))
      add(*placement);
  for (auto redistribute : body.getOps<RedistributeOp>())
    add(Placement(redistribute.getPlacement()));
  for (auto read : body.getOps<nn::ReadOp>()) {
    FailureOr<Placement> placement = storagePlacementOf(read, symbols);
    if (failed(placement))
      return failure();
    add(*placement);
  }
  for (Operation &op : body) {
    if (!changesState(&op))
      continue;
    FailureOr<SmallVector<Placement>> placements =
        operandsInStorage(&op, symbols);
    if (failed(placements))
      return failure();
    llvm::for_each(*placements, add);
  }
  for (auto [i, axis] : llvm::enumerate(axes))
    for (AxisRefAttr other : ArrayRef(axes).take_front(i))
      if (overlap(axis, other))
        return program.emitError("places values over mesh axis \"")
               << axis.getName() << "\" and over another part of it";
  sortByMesh(axes, mesh);
  return axes;
}

static LogicalResult checkLogical(FunctionOpInterface program) {
  if (!program.getFunctionBody().hasOneBlock())
    return program.emitError("a program is one block without branches");
  auto isTensor = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape();
  };
  if (llvm::all_of(program.getArgumentTypes(), isTensor) &&
      llvm::all_of(program.getResultTypes(), isTensor))
    return success();
  return program.emitError(
      "has arguments or results that are no tensors of static shape");
}

LogicalResult fsdp::dist::forEachLogicalProgram(
    ModuleOp module, function_ref<LogicalResult(FunctionOpInterface, MeshOp,
                                                SymbolTableCollection &)>
                         visit) {
  SymbolTableCollection symbols;
  auto meshes = module.getOps<MeshOp>();
  if (meshes.empty())
    return success();
  if (std::next(meshes.begin()) != meshes.end())
    return module.emitError("needs one fsdp.mesh to place values on");
  for (auto program : module.getOps<FunctionOpInterface>())
    if (!program.isExternal() && !program->hasAttr(kLocalAttr) &&
        (failed(checkLogical(program)) ||
         failed(visit(program, *meshes.begin(), symbols))))
      return failure();
  return success();
}

namespace {

/// Walks a program forwards.
class Walk {
public:
  Walk(FunctionOpInterface program, MeshOp mesh, SymbolTableCollection &symbols)
      : program(program), mesh(mesh), symbols(symbols) {}

  FailureOr<Placements> run() {
    if (failed(axesOf(program, mesh, symbols)))
      return failure();
    Block &body = program.getFunctionBody().front();
    for (BlockArgument argument : body.getArguments())
      placements[argument] = placementOf(program, argument);
    for (Operation &op : body)
      if (failed(visit(&op)))
        return failure();
    return std::move(placements);
  }

private:
  LogicalResult visit(Operation *op) {
    if (auto read = dyn_cast<nn::ReadOp>(op)) {
      FailureOr<Placement> placement = storagePlacementOf(read, symbols);
      if (failed(placement))
        return failure();
      placements[read.getValue()] = *placement;
      return success();
    }
    if (auto redistribute = dyn_cast<RedistributeOp>(op)) {
      Placement to(redistribute.getPlacement());
      placements[redistribute.getResult()] = to;
      return verifyMove(op, placements.lookup(redistribute.getInput()), to);
    }
    if (auto rule = dyn_cast<nn::ShardingOpInterface>(op))
      return visitRule(rule);
    if (changesState(op))
      return visitGradients(op);
    if (op->hasTrait<OpTrait::IsTerminator>())
      return visitReturn(op);
    return op->emitOpError(kNoRule);
  }

  LogicalResult visitRule(nn::ShardingOpInterface op) {
    SmallVector<Placement> operands;
    for (Value operand : op->getOperands())
      operands.push_back(placements.lookup(operand));
    FailureOr<SmallVector<Placement>> results =
        resultPlacements(op, operands, mesh);
    if (failed(results))
      return failure();
    for (auto [value, placement] : llvm::zip_equal(op->getResults(), *results))
      placements[value] = placement;
    return success();
  }

  LogicalResult visitGradients(Operation *op) {
    FailureOr<SmallVector<Placement>> expected = operandsInStorage(op, symbols);
    if (failed(expected))
      return failure();
    for (auto [operand, placement] :
         llvm::zip_equal(op->getOperands(), *expected))
      if (failed(require(op, operand, placement)))
        return failure();
    return success();
  }

  LogicalResult visitReturn(Operation *op) {
    for (auto [i, value] : llvm::enumerate(op->getOperands())) {
      std::optional<Placement> expected = resultPlacement(program, i);
      if (failed(
              require(op, value, expected.value_or(Placement(rankOf(value))))))
        return failure();
    }
    return success();
  }

  LogicalResult require(Operation *op, Value value, const Placement &expected) {
    Placement actual = placements.lookup(value);
    if (actual == expected)
      return success();
    MLIRContext *context = op->getContext();
    return op->emitOpError("takes a value in the placement ")
           << actual.attribute(context) << ", which must have the placement "
           << expected.attribute(context);
  }

  FunctionOpInterface program;
  MeshOp mesh;
  SymbolTableCollection &symbols;
  Placements placements;
};

} // namespace

FailureOr<Placements> fsdp::dist::placementsOf(FunctionOpInterface program,
                                               MeshOp mesh,
                                               SymbolTableCollection &symbols) {
  return Walk(program, mesh, symbols).run();
}
