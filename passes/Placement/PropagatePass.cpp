//===- PropagatePass.cpp - A placement for every value --------------------===//
//
// Walks a program once, forwards. What a person or policy has placed stays; an
// op whose operands do not fit its sharding rule gets fsdp.redistribute ops
// that make them fit, chosen per mesh axis by what moves the fewest bytes.
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/PlacementRules.h"
#include "dialects/NN/ModulePath.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_PROPAGATE
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;
using namespace fsdp::dist;

namespace {

/// Where a value has to lie in the end.
struct Demand {
  Placement placement;
  /// Over axes that do not shard it, it may be partial: what follows is
  /// the reduction of a gradient.
  bool mayBePartial;
};

/// Demands flow backwards from results, fsdp.redistribute and nn.gradient
/// through additions and moves of elements, which have the same shards on both
/// sides. What must not be partial is demanded through norms and pointwise ops
/// too, so that sums before these are scattered and not added up everywhere;
/// not through reverse rules, where it would change the order of sums.
class Demands {
public:
  Demands(func::FuncOp program, MeshOp mesh, SymbolTableCollection &symbols)
      : mesh(mesh), symbols(symbols) {
    Block &body = program.getBody().front();
    for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands()))
      if (std::optional<Placement> placement = resultPlacement(program, i))
        demands.try_emplace(value, Demand{*placement, false});
    for (Operation &op : llvm::reverse(body)) {
      if (auto redistribute = dyn_cast<RedistributeOp>(op))
        add(redistribute);
      else if (changesState(&op))
        addGradients(&op);
      else if (auto rule = dyn_cast<nn::ShardingOpInterface>(op))
        flow(rule);
    }
  }

  const Demand *of(Value value) const {
    auto it = demands.find(value);
    return it == demands.end() ? nullptr : &it->second;
  }

private:
  void addGradients(Operation *op) {
    FailureOr<SmallVector<Placement>> placements =
        operandsInStorage(op, symbols);
    if (failed(placements))
      return; // Found again, and said, by the walk.
    for (const GradientUse &use : gradientsOf(op, symbols))
      demands.try_emplace(
          op->getOperand(use.operand),
          Demand{(*placements)[use.operand].withoutStorage(), true});
  }

  void add(RedistributeOp op) {
    Placement placement = Placement(op.getPlacement()).withoutStorage();
    demands.try_emplace(
        op.getInput(), Demand{placement, llvm::any_of(op.getResult().getUsers(),
                                                      changesState)});
  }

  void flow(nn::ShardingOpInterface op) {
    const Demand *found =
        op->getNumResults() > 0 ? of(op->getResult(0)) : nullptr;
    if (!found)
      return;
    Demand demand = *found;
    FactorSharding rule(op.getShardingRule(), mesh);
    bool passes = rule.getRule().passesPartial;
    if (!passes &&
        (demand.mayBePartial || !isa<nn::DifferentiableOpInterface>(*op)))
      return;
    for (auto [dim, place] :
         llvm::zip_equal(rule.getRule().results[0], demand.placement.dims))
      for (AxisRefAttr axis : place.compute)
        if (int64_t factor = rule.factorOf(dim);
            factor >= 0 && rule.canShard(factor, axis))
          rule.shard(factor, axis);
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (passes || rule.getRule().operands[i] == rule.getRule().results[0])
        demands.try_emplace(operand,
                            Demand{rule.operand(i), demand.mayBePartial});
  }

  MeshOp mesh;
  SymbolTableCollection &symbols;
  DenseMap<Value, Demand> demands;
};

/// How one op is computed: along one mesh axis after the other, the factor that
/// is sharded.
class Choice {
public:
  /// True if a value has been brought to a placement before.
  using IsThere = function_ref<bool(Value, const Placement &)>;

  Choice(nn::ShardingOpInterface op, ArrayRef<Placement> operands,
         const Demands &demands, const DenseSet<Value> &weights,
         IsThere isThere, MeshOp mesh)
      : op(op), operands(operands), demands(demands), weights(weights),
        isThere(isThere), mesh(mesh), rule(op.getShardingRule(), mesh) {}

  /// Decides `axis`; the axes before it are decided.
  void decide(AxisRefAttr axis) {
    if (passes(axis))
      return rule.pass(axis, operands[0].kind);
    addsUp |= llvm::any_of(operands, [&](const Placement &placement) {
      return placement.isPartial(axis);
    });
    int64_t best = -1;
    Cost least = costOf(rule, axis);
    for (unsigned factor = 0; factor < rule.getRule().factors.size();
         ++factor) {
      if (!rule.canShard(factor, axis) || !isServed(factor, axis))
        continue;
      FactorSharding sharded = rule;
      sharded.shard(factor, axis);
      Cost cost = costOf(sharded, axis);
      if (cost < least) {
        least = cost;
        best = factor;
      }
    }
    if (best >= 0)
      rule.shard(best, axis);
  }

  const FactorSharding &get() const { return rule; }

private:
  /// Weights that move, all_to_alls, bytes; the first that differs decides.
  using Cost = std::tuple<int64_t, int64_t, int64_t>;

  /// Parts of sums over `axis`, all alike, that may stay so. Sums run from the
  /// last axis outward, so what is to be added over an earlier one is added
  /// over this one before.
  bool passes(AxisRefAttr axis) const {
    return !addsUp && rule.getRule().passesPartial && !operands.empty() &&
           llvm::all_of(operands, [&](const Placement &placement) {
             return placement.isPartial(axis) &&
                    placement.kind == CollectiveReduce::Sum;
           });
  }

  /// Sharding what every rank has only serves an operand that is sharded so
  /// already, or has been for an op before, or a result that is wanted so.
  bool isServed(unsigned factor, AxisRefAttr axis) const {
    auto has = [&](const nn::ShardingRule::Dims &dims,
                   const Placement &placement) {
      for (auto [dim, place] : llvm::zip_equal(dims, placement.dims))
        if (llvm::is_contained(place.compute, axis))
          return shares(dim, place.compute, factor, axis);
      return false;
    };
    for (auto [dims, placement] :
         llvm::zip_equal(rule.getRule().operands, operands))
      if (has(dims, placement))
        return true;
    FactorSharding sharded = rule;
    sharded.shard(factor, axis);
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      if (Placement to = along(operands[i], sharded.operand(i), axis);
          to != operands[i] && isThere(operand, to))
        return true;
    for (auto [dims, result] :
         llvm::zip_equal(rule.getRule().results, op->getResults()))
      if (const Demand *demand = demands.of(result))
        if (has(dims, demand->placement))
          return true;
    return false;
  }

  /// True if of `axes`, which shard a dimension, `axis` is one that shards
  /// `factor`.
  bool shares(ArrayRef<unsigned> dim, ArrayRef<AxisRefAttr> axes,
              unsigned factor, AxisRefAttr axis) const {
    std::optional<FactorSharding::Shares> all = rule.sharesOf(dim, axes);
    if (!all) // They do not fit together; this one may, alone.
      return rule.factorOf(dim) == factor;
    return llvm::any_of(*all, [&](const auto &share) {
      return share.first == factor && llvm::is_contained(share.second, axis);
    });
  }

  /// What moves if the op is sharded as `sharded` says along `axis`, and
  /// everything else stays where it is.
  Cost costOf(const FactorSharding &sharded, AxisRefAttr axis) const {
    int64_t moved = 0, exchanges = 0;
    CheckedSize bytes = 0;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      Placement to = along(operands[i], sharded.operand(i), axis);
      if (to == operands[i] || isThere(operand, to))
        continue;
      moved += weights.contains(operand);
      SmallVector<Move> moves = movesBetween(operands[i], to, mesh);
      exchanges += llvm::count_if(moves, [](const Move &move) {
        return move.kind == CollectiveKind::AllToAll;
      });
      bytes += bytesOf(moves, operands[i], tensorOf(operand), mesh);
    }
    for (auto [i, result] : llvm::enumerate(op->getResults()))
      if (const Demand *demand = demands.of(result))
        bytes += costOf(sharded.result(i), *demand, tensorOf(result), axis);
    return {moved, exchanges, bytes.saturated()};
  }

  int64_t costOf(const Placement &result, const Demand &demand,
                 RankedTensorType type, AxisRefAttr axis) const {
    Placement to = along(result, demand.placement, axis);
    if (demand.mayBePartial && result.isPartial(axis) &&
        demand.placement.dimOf(axis) < 0)
      return 0;
    if (!canMove(result, to))
      return INT64_MAX;
    return bytesOf(movesBetween(result, to, mesh), result, type, mesh);
  }

  /// `from`, but along `axis` as `to`.
  static Placement along(Placement from, const Placement &to,
                         AxisRefAttr axis) {
    int64_t before = from.dimOf(axis), after = to.dimOf(axis);
    if (before == after && from.isPartial(axis) == to.isPartial(axis))
      return from;
    if (before >= 0)
      llvm::erase(from.dims[before].compute, axis);
    llvm::erase(from.partial, axis);
    if (after >= 0)
      from.dims[after].compute.push_back(axis);
    if (to.isPartial(axis)) {
      from.partial.push_back(axis);
      from.kind = to.kind;
    }
    return from;
  }

  nn::ShardingOpInterface op;
  ArrayRef<Placement> operands;
  const Demands &demands;
  const DenseSet<Value> &weights;
  IsThere isThere;
  MeshOp mesh;
  FactorSharding rule;
  bool addsUp = false; // over an axis decided before
};

/// Places the values of one program.
class Propagator {
public:
  Propagator(func::FuncOp program, MeshOp mesh, SymbolTableCollection &symbols)
      : program(program), body(program.getBody().front()), mesh(mesh),
        symbols(symbols), demands(program, mesh, symbols) {}

  LogicalResult run() {
    FailureOr<AxisList> placed = axesOf(program, mesh, symbols);
    if (failed(placed))
      return failure();
    axes = *placed;
    for (BlockArgument argument : body.getArguments())
      placements[argument] = placementOf(program, argument);
    for (Operation &op : llvm::make_early_inc_range(body))
      if (failed(visit(&op)))
        return failure();
    return success();
  }

private:
  LogicalResult visit(Operation *op) {
    if (auto read = dyn_cast<nn::ReadOp>(op))
      return visitRead(read);
    if (auto redistribute = dyn_cast<RedistributeOp>(op)) {
      Placement to(redistribute.getPlacement());
      placements[redistribute.getResult()] = to;
      if (redistribute.getInput().getDefiningOp<nn::ReadOp>())
        weights.insert(redistribute.getResult());
      return verifyMove(op, placements.lookup(redistribute.getInput()), to);
    }
    if (changesState(op))
      return visitGradients(op);
    if (auto rule = dyn_cast<nn::ShardingOpInterface>(op))
      return visitRule(rule);
    if (op->hasTrait<OpTrait::IsTerminator>())
      return visitReturn(op);
    return op->emitOpError(kNoRule);
  }

  /// A result whose place is left open lies where it was computed, whole.
  LogicalResult visitReturn(Operation *op) {
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      Placement computed =
          placements.lookup(op->getOperand(i)).withoutStorage();
      computed.partial.clear();
      Placement to = resultPlacement(program, i).value_or(computed);
      if (failed(moveOperand(op, i, to)))
        return failure();
      program.setResultAttr(i, kPlacementAttr, to.attribute(op->getContext()));
    }
    return success();
  }

  /// Stored, a parameter may be sharded further than it is computed with.
  LogicalResult visitRead(nn::ReadOp read) {
    FailureOr<Placement> placement = storagePlacementOf(read, symbols);
    if (failed(placement))
      return failure();
    placements[read.getValue()] = *placement;
    weights.insert(read.getValue());
    return success();
  }

  LogicalResult visitGradients(Operation *op) {
    FailureOr<SmallVector<Placement>> wanted = operandsInStorage(op, symbols);
    if (failed(wanted))
      return failure();
    for (auto [i, placement] : llvm::enumerate(*wanted))
      if (failed(moveOperand(op, i, placement)))
        return failure();
    return success();
  }

  SmallVector<Placement> operandsOf(Operation *op) {
    return llvm::map_to_vector(op->getOperands(), [&](Value operand) {
      return placements.lookup(operand);
    });
  }

  /// Ops that take tensors where they are stored; sums are finished first.
  LogicalResult visitInStorage(nn::ShardingOpInterface op) {
    for (auto [i, placement] : llvm::enumerate(operandsOf(op))) {
      placement.partial.clear();
      if (failed(moveOperand(op, i, placement)))
        return failure();
    }
    FailureOr<SmallVector<Placement>> results =
        resultPlacements(op, operandsOf(op), mesh);
    if (failed(results))
      return failure();
    for (auto [value, placement] : llvm::zip_equal(op->getResults(), *results))
      placements[value] = placement;
    return success();
  }

  LogicalResult visitRule(nn::ShardingOpInterface op) {
    if (op.getShardingRule().combines || addsInStorage(op, operandsOf(op)))
      return visitInStorage(op);
    // What is stored over more axes is gathered first, whatever follows.
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      Placement at = placements.lookup(op->getOperand(i));
      if (failed(moveOperand(op, i, at.withoutStorage())))
        return failure();
    }
    SmallVector<Placement> operands = operandsOf(op);
    auto isThere = [&](Value value, const Placement &to) {
      return places.contains({value, to.attribute(op->getContext())});
    };
    Choice choice(op, operands, demands, weights, isThere, mesh);
    for (AxisRefAttr axis : axes)
      choice.decide(axis);
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      if (failed(moveOperand(op, i, choice.get().operand(i))))
        return failure();
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      placements[op->getResult(i)] = choice.get().result(i);
    return success();
  }

  /// Makes operand `i` of `op` lie at `to`.
  LogicalResult moveOperand(Operation *op, unsigned i, const Placement &to) {
    Value value = op->getOperand(i);
    Placement from = placements.lookup(value);
    if (from == to)
      return success();
    if (failed(verifyMove(op, from, to)))
      return failure();
    PlacementAttr attribute = to.attribute(op->getContext());
    Value &moved = places[{value, attribute}];
    if (!moved) {
      OpBuilder builder(op);
      // What produced the value sends it, whoever wants it; nothing produced an
      // argument.
      StringAttr maker = nn::moduleOfValue(value);
      nn::ModuleScope scope(builder, maker ? maker : nn::moduleOf(op));
      moved = RedistributeOp::create(
          builder, value.getLoc(), value,
          FlatSymbolRefAttr::get(mesh.getSymNameAttr()), attribute);
      remarkMove(op, value, to);
      placements[moved] = to;
      if (value.getDefiningOp<nn::ReadOp>())
        weights.insert(moved);
    }
    op->setOperand(i, moved);
    return success();
  }

  void remarkMove(Operation *op, Value value, const Placement &to) {
    const Placement from = placements.lookup(value);
    remark::passed(value.getLoc(), remark::RemarkOpts::name("ValueMoved")
                                       .category("fsdp-propagate")
                                       .function(program.getName()))
        << "for " << op->getName().getStringRef()
        << remark::metric("bytes", bytesOf(movesBetween(from, to, mesh), from,
                                           tensorOf(value), mesh));
  }

  func::FuncOp program;
  Block &body;
  MeshOp mesh;
  SymbolTableCollection &symbols;
  Demands demands;
  AxisList axes;
  Placements placements;
  /// Parameters and buffers, where they are computed with.
  DenseSet<Value> weights;
  DenseMap<std::pair<Value, Attribute>, Value> places;
};

struct PropagatePass : fsdp::impl::PropagateBase<PropagatePass> {
  using Base::Base;

  /// What a program before has given lies where that has left it.
  static void takeResults(FunctionOpInterface program,
                          const DenseMap<Attribute, Attribute> &given) {
    for (unsigned i = 0; i < program.getNumArguments(); ++i)
      if (Attribute name = program.getArgAttr(i, nn::kNameAttr);
          name && !program.getArgAttr(i, kPlacementAttr))
        if (Attribute placement = given.lookup(name))
          program.setArgAttr(i, kPlacementAttr, placement);
  }

  void runOnOperation() override {
    DenseMap<Attribute, Attribute> given; // name -> where it lies
    auto propagate = [&](FunctionOpInterface program, MeshOp mesh,
                         SymbolTableCollection &symbols) {
      takeResults(program, given);
      if (failed(Propagator(cast<func::FuncOp>(*program), mesh, symbols).run()))
        return failure();
      for (unsigned i = 0; i < program.getNumResults(); ++i)
        if (Attribute name = program.getResultAttr(i, nn::kNameAttr))
          given[name] = program.getResultAttr(i, kPlacementAttr);
      return success();
    };
    if (failed(forEachLogicalProgram(getOperation(), propagate)))
      signalPassFailure();
  }
};

} // namespace
