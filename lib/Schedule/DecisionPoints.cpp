//===- DecisionPoints.cpp - What a plan can decide about ------------------===//
#include "dialects/NN/ModulePath.h"
#include "fsdp/Schedule/Decisions.h"
#include "fsdp/Support/CheckedSize.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::schedule;

MergeKey fsdp::schedule::mergeKeyOf(Operation *op) {
  NamedAttrList attributes(op->getAttrDictionary());
  for (StringRef label :
       {StringRef("serves"), StringRef(dist::kParametersAttr),
        StringRef(dist::kOriginAttr), StringRef(dist::kDecisionAttr),
        StringRef(nn::kModuleAttr)})
    attributes.erase(label);
  return {op->getName(), attributes.getDictionary(op->getContext()),
          getElementTypeOrSelf(op->getOperand(0)),
          getElementTypeOrSelf(op->getResult(0))};
}

bool fsdp::schedule::computesBackward(Operation *op) {
  return !isa<nn::SeedOp>(op) && !op->hasTrait<OpTrait::IsTerminator>();
}

bool fsdp::schedule::isClonedWithUser(Operation *op) {
  if (isa<nn::ReshapeOp>(op))
    return true;
  auto cast = dyn_cast<nn::CastOp>(op);
  return cast && !(cast.getInput().getDefiningOp<nn::EmbeddingOp>() &&
                   nn::bytesOf(cast.getType()) <
                       nn::bytesOf(cast.getInput().getType()));
}

/// What a second computation gives is the same, and nothing else changes.
static bool isRepeatable(Operation *op) {
  return isa<dist::CollectiveOpInterface>(op) || isMemoryEffectFree(op);
}

llvm::DenseSet<Operation *> fsdp::schedule::neededBackward(Block &program) {
  llvm::DenseSet<Operation *> needed, afterSeed;
  bool isForward = false;
  for (Operation &op : llvm::reverse(program)) {
    if (!isForward)
      afterSeed.insert(&op);
    else if (isRepeatable(&op) &&
             llvm::any_of(op.getUsers(), [&](Operation *user) {
               return afterSeed.contains(user) ? computesBackward(user)
                                               : needed.contains(user);
             }))
      needed.insert(&op);
    isForward |= isa<nn::SeedOp>(op);
  }
  return needed;
}

namespace {

/// Where the values of a program are used, seen through moves of elements.
class Uses {
public:
  explicit Uses(Block &program) : needed(neededBackward(program)) {
    for (auto [index, op] : llvm::enumerate(program)) {
      number[&op] = index;
      if (isa<nn::SeedOp>(op))
        seed = index;
    }
    for (Operation &op : program)
      if (isForward(&op) && canBeFree(&op) &&
          llvm::all_of(op.getOperands(),
                       [&](Value operand) { return isKept(operand); }))
        free.insert(&op);
  }

  bool isForward(Operation *op) const { return number.lookup(op) < seed; }
  bool hasSeed() const { return seed != ~0u; }

  /// Whether the backward pass uses what `op` computes, or something that can
  /// be computed again from it.
  bool isNeeded(Operation *op) const { return needed.contains(op); }

  /// Whether `op` is one pass over values that are there in the backward pass
  /// anyway.
  bool isFree(Operation *op) const { return free.contains(op); }

  /// Whether `op` lies in a block, and all that uses it in the forward pass.
  bool staysInBlock(Operation *op) const {
    StringRef block = blockOf(op);
    return !block.empty() && isUsedIn(block, op);
  }

  /// The place of the last use in the forward pass.
  unsigned lastForwardUse(Operation *op) const {
    unsigned last = 0;
    for (Operation *user : op->getUsers())
      if (isForward(user))
        last = std::max(last, nn::movesElements(user) ? lastForwardUse(user)
                                                      : number.lookup(user));
    return last;
  }

private:
  static StringRef blockOf(Operation *op) {
    return nn::blockOf(nn::modulePathOf(op));
  }

  bool isUsedIn(StringRef block, Operation *op) const {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      if (!isForward(user))
        return true;
      return nn::movesElements(user) ? isUsedIn(block, user)
                                     : blockOf(user) == block;
    });
  }

  /// Whether an op goes over its operands once, element by element or row by
  /// row, for its block alone; or is cloned for whoever needs it.
  bool canBeFree(Operation *op) const {
    if (isClonedWithUser(op))
      return true;
    auto kernel = dyn_cast<nn::KernelOpInterface>(op);
    return kernel && isMemoryEffectFree(op) &&
           kernel.getKernelSpace().isExpressible() && staysInBlock(op);
  }

  /// Whether a value is there in the backward pass, or comes from one that is
  /// by ops that are free.
  bool isKept(Value value) const {
    Operation *op = value.getDefiningOp();
    if (!op || isa<nn::ReadOp, nn::ConstantOp>(op) || free.contains(op))
      return true;
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return !isForward(user) && computesBackward(user);
    });
  }

  llvm::DenseMap<Operation *, unsigned> number;
  unsigned seed = ~0u;
  llvm::DenseSet<Operation *> needed, free;
};

} // namespace

/// Of one machine; the rule knows no other.
static constexpr int64_t kRanksOfMachine = 8;
/// What a GPU computes, with a margin, while a byte travels between those of
/// one machine: H100s compute 2,600 operations.
static constexpr int64_t kFlopsPerByte = 5000;

DecisionPoints::DecisionPoints(ModuleOp module) {
  for (auto found : module.getOps<dist::MeshOp>())
    mesh = found;
  for (auto parameter : module.getOps<nn::ParameterOp>()) {
    orderOf[parameter.getSymName()] = names.size();
    names.push_back(parameter.getSymName());
  }
  for (auto program : module.getOps<func::FuncOp>())
    if (!program.isExternal()) {
      add(program.getBody().front());
      findWhereReductionsAreOver(program.getBody().front());
    }
}

void DecisionPoints::findWhereReductionsAreOver(Block &program) {
  Addresses addresses(program);
  // Of what has an address: what is computed before it.
  std::vector<std::pair<int64_t, Operation *>> before;
  llvm::DenseMap<Operation *, unsigned> place;
  CheckedSize flops = 0;
  for (Operation &op : program) {
    place[&op] = place.size() + 1;
    if (addresses.of(&op))
      before.push_back({flops.saturated(), &op});
    if (auto cost = dyn_cast<nn::CostOpInterface>(op))
      flops += cost.getFlops();
  }
  for (const auto &entry : before) {
    auto *found = points.find(addresses.of(entry.second));
    if (found == points.end() || found->second.place != 0)
      continue;
    found->second.place = place.lookup(entry.second);
    auto collective = dyn_cast<dist::CollectiveOpInterface>(entry.second);
    if (!collective || !collective.isReduction() || !mesh)
      continue;
    int64_t ranks = mesh.sizeOf(dist::axisRefs(collective.getAxes()));
    if (ranks < 2 || ranks > kRanksOfMachine)
      continue;
    CheckedSize over =
        CheckedSize(kFlopsPerByte) * collective.getWireBytes(ranks) +
        entry.first;
    auto at = llvm::partition_point(before, [&](const auto &other) {
      return other.first < over.saturated();
    });
    if (at == before.end())
      continue;
    found->second.overPlace = place.lookup(at->second);
    found->second.overBefore = addresses.of(at->second).getText().str();
  }
}

void DecisionPoints::add(Block &program) {
  Addresses addresses(program);
  Uses uses(program);
  unsigned lastUse = 0;
  for (Operation *op : addresses.all()) {
    dist::OriginAttr origin = addresses.of(op);
    anchors.insert(origin.getText());
    if (op->getBlock() != &program)
      continue;
    auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
    bool isForward = uses.isForward(op) && uses.hasSeed();
    DecisionPoint point;
    if (collective)
      point.kind = collective.getCollectiveKind();
    point.parameter = dist::firstParameterOf(op).str();
    point.order = orderOf.lookup(point.parameter);
    point.canRecompute = isForward && uses.isNeeded(op);
    point.staysInBlock = point.canRecompute && uses.staysInBlock(op);
    point.isFree = point.canRecompute && uses.isFree(op);
    if (!collective && !point.canRecompute)
      continue;
    decidable.push_back({op, origin, point});
    points.insert({origin, point}).first->second.canRecompute |=
        point.canRecompute;
    if (point.canRecompute && collective && collective.isGather()) {
      point.canRecompute = point.staysInBlock = point.isFree = false;
      anchors.insert(origin.again().getText());
      points.insert({origin.again(), point});
    }
    auto order = orderOf.find(dist::firstParameterOf(op));
    if (collective && collective.isGather() && isForward &&
        order != orderOf.end() && uses.lastForwardUse(op) > lastUse) {
      lastUse = uses.lastForwardUse(op);
      last = names[order->second];
    }
  }
}
