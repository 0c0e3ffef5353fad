//===- PlannedCollectives.cpp - Collectives and what a plan says ----------===//

#include "passes/Schedule/PlannedCollectives.h"

using namespace mlir;
using namespace fsdp;

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

PlannedProgram::PlannedProgram(Block &block, const schedule::Rules &rules,
                               ArrayRef<StringRef> parameters)
    : block(block), addresses(block), rules(rules) {
  for (auto [index, parameter] : llvm::enumerate(parameters))
    orderOf[parameter] = index;
}

static ArrayRef<Attribute> listOf(Operation *op, StringRef name) {
  auto list = op->getAttrOfType<ArrayAttr>(name);
  return list ? list.getValue() : ArrayRef<Attribute>();
}

schedule::Point PlannedProgram::pointOf(Operation *op, StringRef address,
                                        bool behindSeed) const {
  schedule::Point point;
  if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op))
    point.kind = collective.getCollectiveKind();
  point.phase = nn::phaseOf(schedule::pathOf(address), behindSeed);
  ArrayRef<Attribute> parameters = listOf(op, dist::kParametersAttr);
  if (!parameters.empty())
    point.parameter = cast<StringAttr>(parameters[0]).str();
  point.order = orderOf.lookup(point.parameter);
  return point;
}

FailureOr<SmallVector<PlannedCollective>> PlannedProgram::collectives() {
  SmallVector<PlannedCollective> found;
  bool behindSeed = false;
  for (Operation &op : block) {
    behindSeed |= isa<nn::SeedOp>(op);
    auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
    if (!collective)
      continue;
    ArrayRef<Attribute> members = listOf(&op, dist::kMembersAttr);
    std::string address = members.empty() ? addresses.of(&op).str()
                                          : cast<StringAttr>(members[0]).str();
    schedule::Point point = pointOf(&op, address, behindSeed);
    if (!rules.knows(point))
      return op.emitOpError("moves the parameter '")
             << point.parameter << "', which is in no unit of the plan";
    schedule::Decision decision;
    rules.decide(address, point, decision);
    found.push_back({collective, address, point, decision, behindSeed});
  }
  return found;
}

bool PlannedProgram::isRecomputed(Operation *op) const {
  StringRef address = addresses.of(op);
  if (address.empty() ||
      !(isa<dist::CollectiveOpInterface>(op) || isMemoryEffectFree(op)))
    return false;
  schedule::Point point = pointOf(op, address, /*behindSeed=*/false);
  point.canRecompute = true;
  schedule::Decision decision;
  rules.decide(address, point, decision);
  return decision.recompute;
}

LogicalResult
fsdp::applyPlan(ModuleOp module,
                llvm::function_ref<LogicalResult(PlannedProgram &)> apply) {
  FailureOr<schedule::Plan> plan = schedule::planOf(module);
  if (failed(plan))
    return failure();
  llvm::Expected<schedule::Rules> rules =
      schedule::Rules::compile(std::move(*plan));
  if (!rules)
    return module.emitError("fsdp.plan: ") << llvm::toString(rules.takeError());
  SmallVector<StringRef> parameters;
  for (auto parameter : module.getOps<nn::ParameterOp>())
    parameters.push_back(parameter.getSymName());
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    PlannedProgram program(function.getBody().front(), *rules, parameters);
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

Operation *
fsdp::firstUser(Operation *op,
                const llvm::DenseMap<Operation *, unsigned> &number) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *inBlock = op->getBlock()->findAncestorOpInBlock(*user);
    if (!first || number.lookup(inBlock) < number.lookup(first))
      first = inBlock;
  }
  return first;
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

/// The producers of `op` that stand behind `target`, or are it. Those that were
/// moved there before have its number, and stay.
static SmallVector<Operation *>
producersBehind(Operation *op, Operation *target,
                const llvm::DenseMap<Operation *, unsigned> &number) {
  SmallVector<Operation *> producers;
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (producer && producer->getBlock() == target->getBlock() &&
        (producer == target || number.lookup(producer) > number.lookup(target)))
      producers.push_back(producer);
  }
  return producers;
}

Operation *fsdp::obstacle(Operation *op, Operation *target,
                          const llvm::DenseMap<Operation *, unsigned> &number) {
  if (auto read = dyn_cast<nn::ReadOp>(op)) {
    for (Operation *between = op->getPrevNode();
         between && number.lookup(between) >= number.lookup(target);
         between = between->getPrevNode())
      if (writes(between, read))
        return between;
    return nullptr;
  }
  for (Operation *producer : producersBehind(op, target, number)) {
    if (!nn::movesElements(producer) &&
        !isa<nn::ReadOp, nn::ConstantOp, nn::RecomputeFromOp, dist::ShardOfOp>(
            producer))
      return producer;
    if (Operation *found = obstacle(producer, target, number))
      return found;
  }
  return nullptr;
}

void fsdp::hoistBefore(Operation *op, Operation *target,
                       llvm::DenseMap<Operation *, unsigned> &number) {
  for (Operation *producer : producersBehind(op, target, number))
    hoistBefore(producer, target, number);
  op->moveBefore(target);
  // Ordered like the target from now on: before whatever follows it.
  number[op] = number.lookup(target);
}

Operation *fsdp::sinkUsers(Operation *op, Operation *place,
                           llvm::DenseMap<Operation *, unsigned> &number) {
  for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
    if (number.lookup(user) > number.lookup(place))
      continue;
    auto collective = dyn_cast<dist::CollectiveOpInterface>(user);
    if (!nn::movesElements(user) &&
        !isa<nn::GradientOp, nn::AccumulateOp, dist::ShardOfOp>(user) &&
        !(collective && collective.isReduction()))
      return user;
    // Its own users first, so that each lands behind its producer.
    if (Operation *found = sinkUsers(user, place, number))
      return found;
    user->moveAfter(place);
    number[user] = number.lookup(place) + 1;
  }
  return nullptr;
}
