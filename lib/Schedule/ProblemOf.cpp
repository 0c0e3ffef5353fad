//===- ProblemOf.cpp - Problems and candidates of modules -----------------===//
#include "fsdp/Schedule/ProblemOf.h"
#include "dialects/Exec/Exec.h"
#include "dialects/Fsdp/Placement.h"
#include "dialects/NN/AdjacentReads.h"
#include "dialects/NN/Boxes.h"
#include "dialects/NN/KernelFacts.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Schedule/Decisions.h"
#include "fsdp/Schedule/NodeLevels.h"
#include "fsdp/Support/RangeNames.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <map>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::schedule;
using problem::Id;
using problem::kNone;
using problem::OpKind;

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static OpKind kindOf(nn::StateEffect effect) {
  switch (effect) {
  case nn::StateEffect::Read:
    return OpKind::Read;
  case nn::StateEffect::Write:
    return OpKind::Write;
  case nn::StateEffect::Update:
    return OpKind::Update;
  case nn::StateEffect::Add:
    return OpKind::Accumulate;
  case nn::StateEffect::Clear:
    return OpKind::Clear;
  case nn::StateEffect::Gradient:
    return OpKind::Gradient;
  }
  llvm_unreachable("an effect");
}

/// What exec-lower turns `op` into; none if that refuses it.
static std::optional<OpKind> kindOf(Operation *op,
                                    const exec::RecordedLowerings &recorded) {
  if (op->hasTrait<OpTrait::IsTerminator>())
    return OpKind::Return;
  if (op->hasTrait<OpTrait::ConstantLike>())
    return OpKind::Constant;
  if (isa<nn::SeedOp>(op))
    return OpKind::Seed;
  if (recorded.of(op))
    return OpKind::Work;
  if (auto state = dyn_cast<nn::StateOpInterface>(op)) {
    std::optional<OpKind> kind;
    state.forEachStateEffect(
        [&](StringRef, nn::StateEffect effect) { kind = kindOf(effect); });
    return kind;
  }
  if (isa<dist::CollectiveOpInterface>(op))
    return OpKind::Collective;
  if (isa<nn::LinearWeightGradOp>(op))
    return OpKind::AddProduct;
  if (op->hasTrait<nn::MatrixProduct>() ||
      isa<dist::ShardOfOp, dist::RowsOfShardOp>(op))
    return OpKind::Work;
  if (isa<nn::SliceOp>(op))
    return OpKind::Box;
  if (nn::aliasesOperands(op))
    return OpKind::View;
  if (isa<nn::PadOp>(op))
    return OpKind::Pad;
  if (isa<nn::ConcatOp>(op))
    return OpKind::Join;
  if (isa<nn::KernelOpInterface>(op))
    return OpKind::Kernel;
  return std::nullopt;
}

static problem::Phase phaseOf(dist::Phase phase) {
  switch (phase) {
  case dist::Phase::Forward:
    return problem::Phase::Forward;
  case dist::Phase::Again:
    return problem::Phase::Again;
  case dist::Phase::Backward:
    return problem::Phase::Backward;
  case dist::Phase::Update:
    return problem::Phase::Update;
  }
  llvm_unreachable("a phase");
}

/// Whether exec-batch-casts may join the kernel of `op` with others.
static bool narrows(Operation *op) {
  return isa<nn::CastOp>(op) &&
         getElementTypeOrSelf(op->getOperand(0)).isF32() &&
         getElementTypeOrSelf(op->getResult(0)).isBF16();
}

static bool isRegathered(Operation *op) {
  auto shard = dyn_cast<dist::ShardOfOp>(op);
  return shard && shard.getRegathered();
}

static uint16_t flagsOf(Operation *op, const nn::AdjacentReads &adjacent) {
  bool moves = nn::movesElements(op);
  auto join = dyn_cast<nn::ConcatOp>(op);
  std::pair<problem::OpFlag, bool> flags[] = {
      {problem::kAddressed, dist::originOf(op) != nullptr},
      {problem::kPure,
       isMemoryEffectFree(op) && !op->hasTrait<OpTrait::IsTerminator>()},
      {problem::kMovesElements, moves},
      {problem::kClonedWithUser, isClonedWithUser(op)},
      {problem::kMovable, moves || isa<dist::ShardOfOp>(op)},
      {problem::kReadByLibrary, op->hasTrait<nn::ReadByLibrary>()},
      {problem::kNarrows, narrows(op)},
      {problem::kContiguous, join && nn::hasContiguousParts(join)},
      {problem::kRegathered, isRegathered(op)},
      {problem::kAdjacent, join && adjacent.groupOf(join)}};
  uint16_t all = 0;
  for (auto [flag, isSet] : flags)
    all |= isSet ? flag : 0;
  return all;
}

static problem::Kernel kernelOf(nn::KernelOpInterface op,
                                nn::KernelProbe &probe,
                                int64_t leastRowBlocks) {
  nn::KernelFacts facts = probe.run(op);
  problem::Kernel kernel;
  kernel.rows = facts.space.rows;
  kernel.columns = facts.space.cols;
  kernel.canFuse = facts.canFuse();
  kernel.sumsRows = facts.canJoinRows(leastRowBlocks);
  kernel.isExpensive = facts.expensive;
  for (auto &[value, read] : facts.reads) {
    auto operand = llvm::find(op->getOperands(), value);
    kernel.reads.push_back({uint16_t(operand - op->operand_begin()),
                            static_cast<problem::Access>(read.access),
                            read.inReduction, read.forResults});
  }
  for (Value result : op->getResults())
    kernel.results.push_back(
        static_cast<problem::Form>(facts.results.lookup(result)));
  return kernel;
}

namespace {

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// What the programs of a module share.
class ProblemBuilder {
public:
  ProblemBuilder(ModuleOp module, const TargetInfo &target,
                 const LoweringOptions &options)
      : module(module), target(target), options(options),
        recorded(module.getContext()), probe(module.getContext()),
        points(module), adjacent(module, target.facts.alignment) {
    for (auto found : module.getOps<dist::MeshOp>())
      mesh = found;
    for (auto [order, name] : llvm::enumerate(points.parameters()))
      orderOf[name] = order;
    for (const DecidableOp &decidable : points.ops())
      if (decidable.point.canRecompute)
        recomputable.insert(decidable.op);
    built.target = target.facts.name;
  }

  FailureOr<problem::Problem> run() {
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() && failed(addProgram(function)))
        return failure();
    addSteps();
    addTokens();
    addRanges();
    return std::move(built);
  }

private:
  LogicalResult addProgram(func::FuncOp function);
  LogicalResult addOp(Operation *op, problem::Program &program);
  LogicalResult describe(Operation *op, problem::Op &into,
                         problem::Program &program);
  LogicalResult describeCollective(dist::CollectiveOpInterface op,
                                   problem::Op &into,
                                   problem::Program &program);
  void describeRegathered(dist::ShardOfOp shard, problem::Op &into,
                          problem::Program &program);
  problem::RankGroup groupOf(ArrayAttr axes);
  void addSteps();
  void addTokens();
  void addRanges();
  void addRange(StringRef name, Type type);
  Id keyOf(Operation *op) {
    return keys.try_emplace(mergeKeyOf(op), keys.size()).first->second;
  }

  ModuleOp module;
  const TargetInfo &target;
  const LoweringOptions &options;
  exec::RecordedLowerings recorded;
  nn::KernelProbe probe;
  DecisionPoints points;
  const nn::AdjacentReads adjacent;
  dist::MeshOp mesh;
  llvm::StringMap<Id> orderOf; // of parameters
  llvm::DenseSet<Operation *> recomputable;
  std::map<MergeKey, Id, bool (*)(const MergeKey &, const MergeKey &)> keys{
      isLess};
  DenseMap<Value, Id> values;
  llvm::StringMap<int64_t> ranges; // bytes, aligned
  problem::Problem built;

  static bool isLess(const MergeKey &a, const MergeKey &b) {
    auto pointers = [](const MergeKey &key) {
      return std::tuple(std::get<0>(key).getAsOpaquePointer(),
                        std::get<1>(key).getAsOpaquePointer(),
                        std::get<2>(key).getAsOpaquePointer(),
                        std::get<3>(key).getAsOpaquePointer());
    };
    return pointers(a) < pointers(b);
  }
};

} // namespace

/// The range of an argument or result.
static StringRef rangeNameOf(DictionaryAttr attributes) {
  auto name =
      attributes ? attributes.getAs<StringAttr>(nn::kNameAttr) : StringAttr();
  return name ? name.getValue() : StringRef();
}

LogicalResult ProblemBuilder::addProgram(func::FuncOp function) {
  if (!llvm::hasSingleElement(function.getBody()))
    return function.emitError("a program is one block");
  problem::Program &program = built.programs.emplace_back();
  program.name = built.intern(function.getSymName());
  values.clear();
  auto nameOf = [&](DictionaryAttr attributes, Type type) -> FailureOr<Id> {
    StringRef name = rangeNameOf(attributes);
    if (name.empty())
      return function.emitError("an argument or a result has no ")
             << nn::kNameAttr;
    addRange(name, type);
    return built.intern(name);
  };
  for (BlockArgument argument : function.getArguments()) {
    FailureOr<Id> name = nameOf(
        function.getArgAttrDict(argument.getArgNumber()), argument.getType());
    if (failed(name))
      return failure();
    values[argument] = program.values.size();
    program.values.push_back({nn::bytesOf(argument.getType()), kNone});
    program.arguments.push_back(*name);
  }
  for (unsigned number = 0; number < function.getNumResults(); ++number) {
    FailureOr<Id> name = nameOf(function.getResultAttrDict(number),
                                function.getResultTypes()[number]);
    if (failed(name))
      return failure();
    program.results.push_back(*name);
  }
  for (Operation &op : function.front())
    if (failed(addOp(&op, program)))
      return failure();
  return success();
}

LogicalResult ProblemBuilder::addOp(Operation *op, problem::Program &program) {
  problem::Op into;
  Id number = program.ops.size();
  std::optional<OpKind> kind = kindOf(op, recorded);
  if (!kind || op->getNumRegions() != 0)
    return op->emitOpError("has no lowering to exec, or is scheduled already");
  into.kind = *kind;
  into.flags = flagsOf(op, adjacent) |
               (recomputable.contains(op) ? problem::kCanRecompute : 0);
  dist::OriginAttr origin = dist::originOf(op);
  into.name =
      built.intern(origin ? origin.getOp() : op->getName().stripDialect());
  if (origin) {
    into.phase = phaseOf(origin.getPhase());
    into.path = built.intern(origin.getPath());
    into.index = origin.getIndex();
  }
  StringRef block = nn::blockOf(nn::modulePathOf(op));
  into.block = block.empty() ? kNone : built.intern(block);
  into.operands = {Id(program.operands.size()), op->getNumOperands()};
  for (Value operand : op->getOperands())
    program.operands.push_back(values.lookup(operand));
  into.results = {Id(program.values.size()), op->getNumResults()};
  for (Value result : op->getResults()) {
    values[result] = program.values.size();
    program.values.push_back({nn::bytesOf(result.getType()), number});
  }
  into.states.begin = program.states.size();
  if (auto state = dyn_cast<nn::StateOpInterface>(op))
    state.forEachStateEffect([&](StringRef name, nn::StateEffect) {
      program.states.push_back(built.intern(name));
    });
  into.states.count = program.states.size() - into.states.begin;
  if (auto cost = dyn_cast<nn::CostOpInterface>(op)) {
    into.flops = cost.getFlops();
    into.bytes = cost.getBytes();
  }
  if (failed(describe(op, into, program)))
    return failure();
  program.ops.push_back(into);
  if (into.is(problem::kRegathered))
    program.linkRegathered(program.ops.back());
  return success();
}

LogicalResult ProblemBuilder::describe(Operation *op, problem::Op &into,
                                       problem::Program &program) {
  if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op))
    return describeCollective(collective, into, program);
  if (into.is(problem::kRegathered))
    describeRegathered(cast<dist::ShardOfOp>(op), into, program);
  if (auto slice = dyn_cast<nn::SliceOp>(op)) {
    std::optional<int64_t> offset = nn::contiguousOffset(slice);
    int64_t bytes =
        getElementTypeOrSelf(slice.getInput()).getIntOrFloatBitWidth() / 8;
    into.detail = offset ? *offset * bytes : -1;
  }
  if (auto product = dyn_cast<nn::LinearWeightGradOp>(op))
    into.detail = product.getSum() ? 1 : 0;
  if (into.kind == OpKind::Kernel) {
    problem::Kernel kernel = kernelOf(cast<nn::KernelOpInterface>(op), probe,
                                      target.facts.leastRowBlocks);
    kernel.canFuse &= options.fuses;
    kernel.sumsRows &= options.fuses;
    into.detail = built.internKernel(kernel);
  }
  FailureOr<LibraryWork> library = libraryWorkOf(op, recorded, target, options);
  if (failed(library))
    return failure();
  into.workspace = library->workspaceBytes;
  if (library->math)
    into.math = built.internMath(*library->math);
  return success();
}

/// Ranks are numbered with the last axis of the mesh innermost.
problem::RankGroup ProblemBuilder::groupOf(ArrayAttr axes) {
  problem::RankGroup group;
  for (dist::AxisRefAttr ref : dist::axisRefs(axes)) {
    int64_t size = mesh.sizeOf(ref);
    if (size > 1)
      group.push_back({size, mesh.strideOf(ref)});
  }
  return group;
}

LogicalResult ProblemBuilder::describeCollective(dist::CollectiveOpInterface op,
                                                 problem::Op &into,
                                                 problem::Program &program) {
  dist::CollectiveKind kind = op.getCollectiveKind();
  if (!exec::isRuntimeCollective(kind))
    return op->emitOpError("has no lowering to exec");
  problem::Collective collective;
  // The runtime, which knows no MLIR, numbers its kinds alike.
  collective.kind = static_cast<rt::CollectiveKind>(kind);
  bool isMaximum = op.getReduction() == dist::CollectiveReduce::Max;
  collective.reduce = isMaximum ? rt::ReduceKind::Max : rt::ReduceKind::Sum;
  collective.isFast = options.fastReductions && op.isReduction() && !isMaximum;
  FailureOr<int64_t> nodeRanks = nodeRanksOf(op, mesh, collective.isFast);
  if (failed(nodeRanks))
    return failure();
  collective.nodeRanks = *nodeRanks;
  collective.ranks = mesh.sizeOf(dist::axisRefs(op.getAxes()));
  collective.group = built.internGroup(groupOf(op.getAxes()));
  collective.wireBytes = op.getWireBytes(collective.ranks);
  collective.in = exec::dtypeOf(getElementTypeOrSelf(op->getOperand(0)));
  collective.out = exec::dtypeOf(getElementTypeOrSelf(op->getResult(0)));
  StringRef parameter = dist::firstParameterOf(op);
  collective.parameter = parameter.empty() ? kNone : built.intern(parameter);
  collective.order = orderOf.lookup(parameter);
  collective.key = keyOf(op);
  collective.items.begin = program.items.size();
  for (auto [operand, result] :
       llvm::zip_equal(op->getOperands(), op->getResults())) {
    int64_t in = cast<ShapedType>(operand.getType()).getNumElements();
    auto type = cast<ShapedType>(result.getType());
    int64_t out = type.getNumElements();
    // What pieces of all ranks are written to has room for their padding.
    if (op.isGather())
      program.items.push_back({in, in * collective.ranks});
    else
      program.items.push_back({out, in});
  }
  collective.items.count = program.items.size() - collective.items.begin;
  into.detail = program.collectives.size();
  into.bytes = nn::bytesOfOperandsAndResults(op);
  program.collectives.push_back(collective);
  return success();
}

/// The gather that fsdp-remat produces: that of the operand, over the axes of
/// the shard.
void ProblemBuilder::describeRegathered(dist::ShardOfOp shard,
                                        problem::Op &into,
                                        problem::Program &program) {
  auto gather = shard.getInput().getDefiningOp<dist::AllGatherOp>();
  const problem::Op &repeated =
      program.ops[program.values[values.lookup(shard.getInput())].def];
  problem::Collective collective = program.collective(repeated);
  collective.ranks = mesh.sizeOf(dist::axisRefs(shard.getAxes()));
  collective.group = built.internGroup(groupOf(shard.getAxes()));
  collective.wireBytes = dist::wireBytesOf(
      dist::CollectiveKind::AllGather, shard.getResult().getType(),
      shard.getInput().getType(), collective.ranks);
  MergeKey key = mergeKeyOf(gather);
  NamedAttrList attributes(cast<DictionaryAttr>(std::get<1>(key)));
  attributes.set(gather.getAxesAttrName(), shard.getAxesAttr());
  std::get<1>(key) = attributes.getDictionary(shard.getContext());
  collective.key = keys.try_emplace(key, keys.size()).first->second;
  int64_t elements = shard.getType().getNumElements();
  collective.items = {Id(program.items.size()), 1};
  program.items.push_back({elements, elements * collective.ranks});
  into.detail = program.collectives.size();
  program.collectives.push_back(collective);
}

//===----------------------------------------------------------------------===//
// Ranges and steps
//===----------------------------------------------------------------------===//

void ProblemBuilder::addRange(StringRef name, Type type) {
  ranges[name] = llvm::alignTo(nn::bytesOf(type), target.facts.alignment);
}

/// As exec-lower declares ranges and exec-plan-memory counts them.
void ProblemBuilder::addRanges() {
  auto declare = [&](auto op) {
    auto placement =
        op->template getAttrOfType<dist::PlacementAttr>(dist::kPlacementAttr);
    RankedTensorType type = op.getTensorType();
    if (placement)
      type = dist::localType(type, dist::Placement(placement), mesh);
    addRange(op.getSymName(), type);
  };
  for (auto parameter : module.getOps<nn::ParameterOp>())
    declare(parameter);
  for (auto buffer : module.getOps<nn::BufferOp>())
    declare(buffer);
  module.walk([&](nn::GradientOp op) {
    addRange((op.getName() + range_name::kGradientSuffix).str(),
             op.getValue().getType());
  });
  llvm::StringMap<unsigned> givenBy;
  llvm::StringSet<> taken;
  for (const problem::Program &program : built.programs) {
    for (Id name : program.arguments)
      taken.insert(built.text(name));
    for (Id name : program.results)
      ++givenBy[built.text(name)];
  }
  for (problem::Program &program : built.programs)
    for (Id name : program.results) {
      StringRef text = built.text(name);
      int64_t bytes = ranges.lookup(text);
      // Scalars stay where they are.
      bool isOwn = built.programs.size() > 1 && givenBy.lookup(text) == 1 &&
                   !taken.contains(text) && bytes > target.facts.alignment;
      if (!isOwn)
        continue;
      program.ownOutputBytes += bytes;
      ranges[text] = 0;
    }
  for (const auto &range : ranges)
    built.persistentBytes += range.second;
}

void ProblemBuilder::addSteps() {
  auto add = [&](StringRef step, StringRef program, int64_t times) {
    built.steps.push_back({built.intern(step), built.intern(program), times});
  };
  if (auto stated = module->getAttrOfType<DictionaryAttr>(nn::kStepsAttr)) {
    for (NamedAttribute step : stated)
      for (auto action :
           cast<ArrayAttr>(step.getValue()).getAsRange<nn::ActionAttr>())
        add(step.getName(), action.getProgram().getValue(), action.getTimes());
    return;
  }
  if (module.lookupSymbol("train"))
    add("train", "train", 1);
}

/// The labels that the programs of a step take, or the rows where labels are no
/// classes.
void ProblemBuilder::addTokens() {
  if (!mesh)
    return;
  built.ranks = mesh.getWorldSize();
  int64_t parts = mesh.sizeOf(mesh.axesOf(AxisKind::Data));
  for (const problem::StepRun &run : built.steps) {
    auto program = module.lookupSymbol<func::FuncOp>(built.text(run.program));
    for (BlockArgument argument : program.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type || type.getRank() == 0 ||
          rangeNameOf(program.getArgAttrDict(argument.getArgNumber())) !=
              range_name::kTargets)
        continue;
      int64_t rows = type.getElementType().isInteger() ? type.getNumElements()
                                                       : type.getDimSize(0);
      CheckedSize tokens = CheckedSize(rows) * parts;
      tokens = tokens * run.times;
      built.tokens = std::max(built.tokens, tokens.saturated());
    }
  }
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

FailureOr<problem::Problem>
fsdp::schedule::problemOf(ModuleOp module, const TargetInfo &target,
                          const LoweringOptions &options) {
  // Workspaces are asked of operations of the runtime.
  module.getContext()->loadDialect<exec::ExecDialect>();
  return ProblemBuilder(module, target, options).run();
}

static problem::Decision decisionOf(const dist::Decision &decision) {
  return {decision.bucket,      decision.merge,    decision.overlap,
          decision.prefetch,    decision.defer,    decision.startAfter,
          decision.awaitBefore, decision.recompute};
}

problem::Candidate fsdp::schedule::candidateOf(const problem::Problem &problem,
                                               ModuleOp module) {
  problem::Candidate candidate(problem);
  DenseMap<Attribute, Id> numbers;
  auto numberOf = [&](dist::DecisionAttr decision) {
    if (!decision)
      return kNone;
    auto withoutAgain = dist::DecisionAttr::get(module.getContext(),
                                                decision.getDecision(), {});
    auto [at, isNew] = numbers.try_emplace(withoutAgain, 0);
    if (isNew) {
      at->second = candidate.decisions.size();
      candidate.decisions.push_back(decisionOf(decision.getDecision()));
    }
    return at->second;
  };
  size_t number = 0;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    problem::ProgramDecisions &decided = candidate.programs[number++];
    for (auto [op, index] :
         llvm::zip(function.front(), llvm::seq(decided.of.size()))) {
      auto decision = op.getAttrOfType<dist::DecisionAttr>(dist::kDecisionAttr);
      decided.of[index] = numberOf(decision);
      decided.again[index] = decision ? numberOf(decision.getAgain()) : kNone;
    }
  }
  return candidate;
}
