//===- PlannedCollectives.cpp - Collectives and their decisions -----------===//

#include "passes/Schedule/PlannedCollectives.h"

using namespace mlir;
using namespace fsdp;

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

PlannedProgram::PlannedProgram(Block &block, ArrayRef<StringRef> parameters)
    : block(block), addresses(block) {
  for (auto [index, parameter] : llvm::enumerate(parameters))
    orderOf[parameter] = index;
}

SmallVector<PlannedCollective> PlannedProgram::collectives() {
  SmallVector<PlannedCollective> found;
  bool afterSeed = false;
  for (Operation &op : block) {
    afterSeed |= isa<nn::SeedOp>(op);
    auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
    if (!collective)
      continue;
    auto members = op.getAttrOfType<ArrayAttr>(dist::kMembersAttr);
    PlannedCollective planned;
    planned.op = collective;
    planned.kind = collective.getCollectiveKind();
    planned.origin = members && !members.empty()
                         ? cast<dist::OriginAttr>(members[0])
                         : addresses.of(&op);
    planned.decision = dist::decisionOf(&op);
    planned.order = orderOf.lookup(dist::firstParameterOf(&op));
    planned.afterSeed = afterSeed;
    found.push_back(std::move(planned));
  }
  return found;
}

static void noteDecision(InFlightDiagnostic &error, const PlannedCollective &of,
                         StringRef begin) {
  error.attachNote(of.op->getLoc())
      << begin << of.op->getAttr(dist::kDecisionAttr);
}

LogicalResult fsdp::verifyBuckets(ArrayRef<PlannedCollective> collectives) {
  llvm::StringMap<PlannedCollective> first; // member of each bucket
  for (const PlannedCollective &collective : collectives) {
    const schedule::Decision &decision = collective.decision;
    if (decision.bucket.empty())
      continue;
    std::string bucket = schedule::bucketOf(collective.origin, decision).str();
    const PlannedCollective &other =
        first.try_emplace(bucket, collective).first->second;
    if (schedule::aboutCollective(decision) ==
        schedule::aboutCollective(other.decision))
      continue;
    InFlightDiagnostic error = collective.op->emitOpError("is in the bucket '");
    error << decision.bucket << "' with another decision than its first "
          << "member; make their '" << dist::kDecisionAttr
          << "' equal, or put one of them into another bucket";
    noteDecision(error, other, "the first member has ");
    noteDecision(error, collective, "this one has ");
    return failure();
  }
  return success();
}

LogicalResult
fsdp::applyPlan(ModuleOp module,
                llvm::function_ref<LogicalResult(PlannedProgram &)> apply) {
  if (failed(schedule::ensureDecisions(module)))
    return failure();
  SmallVector<StringRef> parameters;
  for (auto parameter : module.getOps<nn::ParameterOp>())
    parameters.push_back(parameter.getSymName());
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    PlannedProgram program(function.getBody().front(), parameters);
    if (Operation *op = program.addresses.duplicate())
      return op->emitOpError("has the address of another op of the program");
    if (failed(apply(program)))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Motion
//===----------------------------------------------------------------------===//

llvm::DenseMap<Operation *, unsigned> fsdp::numberOps(Block &block) {
  llvm::DenseMap<Operation *, unsigned> number;
  for (auto [index, op] : llvm::enumerate(block))
    number[&op] = index;
  return number;
}

Operation *fsdp::firstUser(Operation *op) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *inBlock = op->getBlock()->findAncestorOpInBlock(*user);
    if (!first || inBlock->isBeforeInBlock(first))
      first = inBlock;
  }
  return first;
}

/// Brings `op` to where `rest` of its block begins.
static void bringBefore(Operation *op, Block::iterator rest) {
  if (rest == Block::iterator(op))
    return;
  Block *block = op->getBlock();
  op->remove();
  block->getOperations().insert(rest, op);
}

void fsdp::placeBefore(Operation *op, Operation *place) {
  bringBefore(op, Block::iterator(place));
}

void fsdp::placeAfter(Operation *op, Operation *place) {
  bringBefore(op, std::next(Block::iterator(place)));
}

/// Whether `op` may write what `read` reads.
static bool writes(Operation *op, nn::ReadOp read) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects || !effects.hasEffect<MemoryEffects::Write>())
    return false;
  bool names = false;
  for (NamedAttribute attribute : op->getAttrs())
    attribute.getValue().walk([&](FlatSymbolRefAttr symbol) {
      names |= symbol.getValue() == read.getName();
    });
  return names;
}

/// Whether two ops name one tensor of the model's state.
static bool shareState(Operation *op, Operation *other) {
  llvm::SmallDenseSet<Attribute> symbols;
  auto visit = [&](Operation *of, auto found) {
    for (NamedAttribute attribute : of->getAttrs())
      attribute.getValue().walk(found);
  };
  bool shared = false;
  visit(op, [&](FlatSymbolRefAttr symbol) { symbols.insert(symbol); });
  visit(other,
        [&](FlatSymbolRefAttr symbol) { shared |= symbols.contains(symbol); });
  return shared;
}

/// The first op after `op` and up to `place` that `op`, which changes state,
/// must not cross; null if there is none. A gradient is in no other op's way.
static Operation *stateBetween(Operation *op, Operation *place) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (isa<nn::GradientOp>(op) || !effects ||
      !effects.hasEffect<MemoryEffects::Write>())
    return nullptr;
  for (Operation *next = op; next != place && (next = next->getNextNode());)
    if (isa<MemoryEffectOpInterface>(next) && !isMemoryEffectFree(next) &&
        !isa<dist::CollectiveOpInterface>(next) && shareState(op, next))
      return next;
  return nullptr;
}

/// Whether `op` is `target` or follows it.
static bool isFrom(Operation *op, Operation *target) {
  return op == target || target->isBeforeInBlock(op);
}

/// The producers of `op` from `target` on.
static SmallVector<Operation *> producersFrom(Operation *op,
                                              Operation *target) {
  SmallVector<Operation *> producers;
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (producer && producer->getBlock() == target->getBlock() &&
        isFrom(producer, target))
      producers.push_back(producer);
  }
  return producers;
}

Operation *fsdp::obstacle(Operation *op, Operation *target) {
  if (auto read = dyn_cast<nn::ReadOp>(op)) {
    if (!isFrom(op, target))
      return nullptr;
    // Not by asking each op for its place: those that were moved have none yet.
    for (Operation *between = op; between != target;) {
      between = between->getPrevNode();
      if (writes(between, read))
        return between;
    }
    return nullptr;
  }
  for (Operation *producer : producersFrom(op, target)) {
    if (!nn::movesElements(producer) &&
        !isa<nn::ReadOp, nn::ConstantOp, nn::RecomputeFromOp, dist::ShardOfOp>(
            producer))
      return producer;
    if (Operation *found = obstacle(producer, target))
      return found;
  }
  return nullptr;
}

/// Adds `op` and all that it needs from `target` on.
static void collectNeeds(Operation *op, Operation *target,
                         llvm::SmallDenseSet<Operation *> &needs) {
  if (needs.insert(op).second)
    for (Operation *producer : producersFrom(op, target))
      collectNeeds(producer, target, needs);
}

static void moveWithProducers(Operation *op, Operation *target) {
  for (Operation *producer : producersFrom(op, target))
    moveWithProducers(producer, target);
  placeBefore(op, target);
}

void fsdp::hoistBefore(Operation *op, Operation *target) {
  // What stands there already and is needed stays.
  llvm::SmallDenseSet<Operation *> needs;
  collectNeeds(op, target, needs);
  while (target != op && needs.contains(target))
    target = target->getNextNode();
  if (target != op)
    moveWithProducers(op, target);
}

Operation *fsdp::sinkUsers(Operation *op, Operation *place) {
  for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
    Operation *inBlock = place->getBlock()->findAncestorOpInBlock(*user);
    if (place->isBeforeInBlock(inBlock))
      continue;
    if (inBlock == place)
      return user;
    auto collective = dyn_cast<dist::CollectiveOpInterface>(user);
    if (!nn::movesElements(user) &&
        !isa<nn::GradientOp, nn::AccumulateOp, dist::ShardOfOp>(user) &&
        !(collective && collective.isReduction()))
      return user;
    if (user != inBlock)
      return user;
    if (Operation *found = stateBetween(user, place))
      return found;
    // Its own users first, so that each lands after its producer.
    if (Operation *found = sinkUsers(user, place))
      return found;
    placeAfter(user, place);
  }
  return nullptr;
}
