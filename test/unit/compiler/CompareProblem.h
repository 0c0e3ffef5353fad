//===- CompareProblem.h - Problems beside what passes give ------*- C++ -*-===//
//
// A model up to fsdp-address, random plans for it, and the comparison of the
// order and the live bytes that order() and live() give with those of the
// program that the passes produce from the same decisions.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_UNIT_COMPILER_COMPAREPROBLEM_H
#define FSDP_TEST_UNIT_COMPILER_COMPAREPROBLEM_H

#include "AfterEachPass.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Families/TraceModel.h"
#include "fsdp/Memory/Report.h"
#include "fsdp/Schedule/Decisions.h"
#include "fsdp/Schedule/PackedArena.h"
#include "fsdp/Schedule/ProblemEvaluator.h"
#include "fsdp/Schedule/ProblemOf.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include "llvm/ADT/SetVector.h"
#include <ctime>
#include <map>
#include <random>

namespace fsdp {

using namespace mlir;

/// A model and how it is compiled.
struct ProblemSetting {
  std::string name;
  ModelSpec spec;
  std::string mesh;
  int64_t batch = 1, sequence = 64; // of a data-parallel rank
  ParamDtype type = ParamDtype::BFloat16;
  ShardMode mode = ShardMode::Auto;
  int64_t microbatches = 1;
  int64_t lossChunks = 1;
  std::string target = "cuda";
  CompileOptions::Compile compile = {}; // but for mode and loss chunks
  int64_t nodeSize = 0, reshardRanks = 0;
};

/// Plans of all kinds of decisions, most of which can be applied.
class PlansForProblems {
public:
  PlansForProblems(unsigned seed, const schedule::DecisionPoints &points)
      : generator(seed), points(points) {
    llvm::SetVector<Block *> programs;
    for (const schedule::DecidableOp &decidable : points.ops())
      programs.insert(decidable.op->getBlock());
    for (Block *program : programs)
      for (Operation &op : *program)
        if (dist::OriginAttr origin = dist::originOf(&op))
          if (positionOf.try_emplace(origin.getText().str(), anchors.size())
                  .second)
            anchors.push_back(origin.getText().str());
  }

  schedule::Plan next() {
    bucketOf.clear();
    forBucket.clear();
    options.assign(5, {});
    optionOf.clear();
    kept.clear();
    density = below(4);
    places = below(2) == 0 ? 1 + below(2) : 0;
    std::map<std::string, schedule::Rule> rules;
    for (const auto &[origin, point] : points.all()) {
      schedule::DecisionOverrides overrides = overridesOf(origin, point);
      if (!schedule::saysSomething(overrides))
        continue;
      schedule::Rule &rule = rules[keyOf(overrides)];
      rule.overrides = overrides;
      rule.match.push_back(origin.getText().str());
    }
    schedule::Plan plan;
    for (auto &entry : rules)
      plan.rules.push_back(std::move(entry.second));
    return plan;
  }

private:
  int below(int end) {
    return std::uniform_int_distribution<int>(0, end - 1)(generator);
  }

  schedule::DecisionOverrides
  overridesOf(dist::OriginAttr origin, const schedule::DecisionPoint &point) {
    std::string block = nn::blockOf(origin.getPath()).str();
    schedule::DecisionOverrides overrides;
    if (point.canRecompute && !point.kind)
      overrides.recompute = isRecomputed(origin, block);
    if (point.canRecompute && point.kind && !point.parameter.empty())
      overrides.recompute =
          !kept.try_emplace(block, below(3) == 0).first->second;
    if (!point.kind || point.parameter.empty())
      return overrides;
    std::string bucket = bucketFor(block, origin);
    overrides.bucket = bucket;
    std::string key = bucket + (point.isGather() ? " g" : " r") +
                      std::to_string(int(origin.getPhase()));
    schedule::DecisionOverrides &shared =
        forBucket.try_emplace(key, decide(origin, point)).first->second;
    shared.bucket = overrides.bucket;
    shared.recompute = overrides.recompute;
    return shared;
  }

  /// Another option in each block: the names of what it computes again.
  bool isRecomputed(dist::OriginAttr origin, const std::string &block) {
    if (block.empty())
      return density == 3 && below(8) == 0;
    auto &option = options[optionOf.try_emplace(block, below(options.size()))
                               .first->second];
    std::string name = nn::withoutNumbers(origin.getPath()) + " " +
                       origin.getOp().str() + std::to_string(origin.getIndex());
    return option.try_emplace(name, below(4) < density).first->second;
  }

  std::string bucketFor(const std::string &block, dist::OriginAttr origin) {
    if (block.empty())
      return bucketOf.try_emplace("", below(3) == 0 ? "all else" : "")
                         .first->second == "all else"
                 ? "all else"
                 : nn::firstComponent(origin.getPath()).str();
    auto [at, isNew] = bucketOf.try_emplace(block, block);
    if (isNew) {
      // A run of blocks, or parts of one.
      run = run > 0 ? run - 1 : below(3) == 0 ? below(3) : 0;
      if (run > 0 && !last.empty())
        at->second = last;
      else if (below(6) == 0)
        at->second = "parts of " + block;
      last = at->second;
    }
    if (at->second == "parts of " + block)
      return at->second +
             (origin.getPath().contains("attention") ? " a" : " f");
    return at->second;
  }

  schedule::DecisionOverrides decide(dist::OriginAttr origin,
                                     const schedule::DecisionPoint &point) {
    schedule::DecisionOverrides overrides;
    if (below(8) == 0)
      overrides.merge = false;
    if (below(10) == 0)
      overrides.overlap = false;
    if (point.isGather() && below(3) == 0)
      overrides.prefetch = below(4);
    if (point.isReduction() && below(3) == 0)
      overrides.defer = below(4);
    if (places > 0 && below(6) == 0) {
      --places;
      (below(2) == 0 ? overrides.startAfter : overrides.awaitBefore) =
          anchorNear(origin, point.isGather());
    }
    return overrides;
  }

  /// A place where the collective can mostly start or be awaited: of a gather
  /// before where it is, of a reduction after.
  std::string anchorNear(dist::OriginAttr origin, bool isGather) {
    auto at = positionOf.find(origin.getText().str());
    int64_t position =
        at == positionOf.end() ? below(anchors.size()) : int64_t(at->second);
    int64_t distance = 1 + below(50);
    position += isGather ? -distance : distance;
    position = std::clamp<int64_t>(position, 0, int64_t(anchors.size()) - 1);
    return anchors[position];
  }

  static std::string keyOf(const schedule::DecisionOverrides &overrides) {
    schedule::Plan plan;
    plan.rules.push_back({{"x"}, overrides});
    return schedule::toJSON(plan);
  }

  std::mt19937_64 generator;
  const schedule::DecisionPoints &points;
  std::vector<std::string> anchors; // in program order
  std::map<std::string, size_t> positionOf;
  std::map<std::string, std::string> bucketOf;
  std::map<std::string, schedule::DecisionOverrides> forBucket;
  std::vector<std::map<std::string, bool>> options;
  std::map<std::string, size_t> optionOf;
  std::map<std::string, bool> kept;
  std::string last;
  int run = 0, density = 0, places = 0;
};

/// Of this thread: the machine may be busy.
inline double cpuSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// How one candidate fared.
struct Compared {
  bool isRefused = false;
  bool namesPlaces = false; ///< It starts or awaits by addresses.
  std::string difference;
  double worst = 0; ///< Of a program: |peak - the compiler's| / that.
  double evaluated = 0, compiled = 0; ///< Seconds.
};

/// One model with its problem.
class ProblemCase {
public:
  ProblemCase(MLIRContext &context, const ProblemSetting &setting)
      : context(context), target(setting.target) {
    TraceOptions trace;
    int64_t ranks = 1;
    for (const MeshAxisOption &axis : parseMesh(setting.mesh))
      ranks *= axis.kind == AxisKind::Tensor ? 1 : axis.size;
    trace.batch = setting.batch * ranks;
    trace.seqLen = setting.sequence;
    module = llvm::cantFail(traceModel(context, setting.spec, trace));
    options.compile = setting.compile;
    options.training.mixedPrecisionParam = setting.type;
    options.compile.mode = setting.mode;
    options.compile.lossChunks = setting.lossChunks;
    options.parallelism.nodeSize = setting.nodeSize;
    options.parallelism.fsdpReshardRanks = setting.reshardRanks;
    options.pipeline.mesh = setting.mesh;
    options.pipeline.microbatches = setting.microbatches;
    options.pipeline.target = setting.target;
    PassManager manager(&context);
    buildTrainPipeline(manager, options, PipelineLevel::Addresses);
    if (succeeded(manager.run(*module)))
      makeProblem();
  }

  /// Of a module whose ops have addresses.
  ProblemCase(MLIRContext &context, ModuleOp addressed, StringRef target)
      : context(context), target(target), module(addressed.clone()) {
    makeProblem();
  }

  ModuleOp addressed() { return *module; }

  /// With `packs` the whole memory is planned, and its bounds and the arena are
  /// compared.
  Compared compare(std::optional<schedule::Plan> plan, bool packs) {
    OwningOpRef<ModuleOp> copy = module->clone();
    if (plan)
      (*copy)->setAttr(dist::kPlanAttr, schedule::toAttribute(&context, *plan));
    Compared result;
    std::string said;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        said += diagnostic.str() + "\n";
      return success();
    });
    PassManager planning(&context);
    planning.enableVerifier(false);
    addPlan(planning, options);
    if (failed(planning.run(*copy))) {
      result.isRefused = true;
      return result;
    }
    problem::Candidate candidate = schedule::candidateOf(problem, *copy);
    result.namesPlaces =
        llvm::any_of(candidate.decisions, [](const auto &decision) {
          return !decision.startAfter.empty() || !decision.awaitBefore.empty();
        });
    // One evaluator for all candidates: what it keeps shows in none of them.
    std::vector<problem::Sequence> sequences(problem.programs.size());
    std::vector<problem::Live> lives(problem.programs.size());
    auto begin = cpuSeconds();
    for (size_t i = 0; i < problem.programs.size(); ++i) {
      evaluator->order(candidate, i);
      evaluator->live(i);
    }
    auto middle = cpuSeconds();
    for (size_t i = 0; i < problem.programs.size(); ++i) {
      sequences[i] = evaluator->order(candidate, i);
      lives[i] = evaluator->live(i);
    }
    auto between = cpuSeconds();
    std::string refusal = problem::refusalOf(sequences);
    bool refuses = !refusal.empty();
    PassManager rest(&context);
    rest.enableVerifier(false);
    addLowering(rest);
    bool isCompiled = succeeded(rest.run(*copy));
    auto end = cpuSeconds();
    result.evaluated = middle - begin;
    result.compiled = end - between;
    if (!isCompiled || refuses) {
      result.isRefused = true;
      if (isCompiled)
        result.difference = "refused alone: " + refusal;
      // What a plan says of clones that do not exist is about no op.
      bool isOfPlan = said.find("fsdp.plan: no op has") != std::string::npos;
      if (!isCompiled && !refuses && !isOfPlan)
        result.difference = "the passes alone refuse: " + said;
      return result;
    }
    comparePrograms(*copy, sequences, lives, result);
    if (packs)
      compareMemory(*copy, candidate, lives, result);
    return result;
  }

  problem::Problem problem;
  bool isGood = false;

private:
  void makeProblem() {
    std::string why;
    targetInfo = makeTarget(target, 1, why);
    schedule::LoweringOptions lowering;
    lowering.attention.reference =
        options.compile.attention == AttentionKernel::Reference;
    lowering.fastReductions = options.compile.reduce == ReduceOrder::Fast;
    lowering.fuses = options.compile.fuse != Fusion::None;
    FailureOr<problem::Problem> made =
        schedule::problemOf(*module, *targetInfo, lowering);
    isGood = succeeded(made);
    if (!isGood)
      return;
    problem = std::move(*made);
    evaluator = std::make_unique<problem::Evaluator>(problem);
  }

  void addLowering(PassManager &manager) {
    manager.addPass(createRemat());
    manager.addPass(createBucket());
    manager.addPass(createOverlap());
    FuseOptions fuse;
    fuse.leastRowBlocks = targetInfo->facts.leastRowBlocks;
    if (options.compile.fuse != Fusion::None)
      manager.addNestedPass<func::FuncOp>(createFuse(fuse));
    ExecLowerOptions lower;
    lower.target = target;
    lower.threads = 1;
    lower.referenceAttention =
        options.compile.attention == AttentionKernel::Reference;
    lower.fastReductions = options.compile.reduce == ReduceOrder::Fast;
    manager.addPass(createExecLower(lower));
    manager.addPass(createBatchCasts());
  }

  /// What exec-plan-memory prints as the lower bound of each program.
  void compareMemory(ModuleOp compiled, const problem::Candidate &candidate,
                     const std::vector<problem::Live> &lives,
                     Compared &result) {
    std::vector<int64_t> peaks;
    for (const problem::Live &live : lives)
      peaks.push_back(live.peak);
    std::vector<int64_t> bounds = problem::lowerBounds(problem, peaks);
    PassManager manager(&context);
    manager.addPass(createPlanMemory());
    if (failed(manager.run(compiled)))
      result.difference += "exec-plan-memory fails\n";
    MemoryReport report = memoryReport(compiled);
    if (report.persistentBytes != problem.persistentBytes)
      result.difference += std::to_string(report.persistentBytes) +
                           " persistent bytes, not " +
                           std::to_string(problem.persistentBytes) + "\n";
    for (auto [memory, bound] : llvm::zip_equal(report.programs, bounds))
      if (memory.lowerBound != bound)
        result.difference += "@" + memory.name + " has the lower bound " +
                             std::to_string(memory.lowerBound) + ", not " +
                             std::to_string(bound) + "\n";
    int64_t arena = schedule::PackedArena(problem).bytes(candidate);
    if (arena != report.arenaBytes)
      result.difference += "an arena of " + std::to_string(report.arenaBytes) +
                           " bytes, not " + std::to_string(arena) + "\n";
  }

  void comparePrograms(ModuleOp compiled,
                       const std::vector<problem::Sequence> &sequences,
                       const std::vector<problem::Live> &lives,
                       Compared &result) {
    size_t number = 0;
    for (auto program : compiled.getOps<exec::ProgramOp>()) {
      Lifetimes lifetimes = computeLifetimes(program);
      int64_t peak = maxLive(lifetimes.problem()).bytes;
      const problem::Live &live = lives[number];
      if (peak != 0)
        result.worst = std::max(
            result.worst, std::abs(double(live.peak) - double(peak)) / peak);
      std::string found = difference(lifetimes, sequences[number], live,
                                     problem.programs[number]);
      if (!found.empty())
        result.difference +=
            "@" + program.getSymName().str() + ": " + found + "\n";
      ++number;
    }
  }

  static std::string producedBy(Operation *op) {
    if (auto await = dyn_cast<exec::AwaitOp>(op))
      return "await " + producedBy(await.getToken().getDefiningOp());
    Attribute produced = op->getAttr(exec::kProducesAttr);
    if (auto list = dyn_cast_or_null<ArrayAttr>(produced))
      produced = list[0];
    auto text = dyn_cast_or_null<StringAttr>(produced);
    return text ? text.str() : "";
  }

  /// A bucket of one tensor has the name that its plan gives it.
  static bool isSameCollective(Operation *op, const problem::Step &step) {
    if (auto await = dyn_cast<exec::AwaitOp>(op))
      op = await.getToken().getDefiningOp();
    auto collective = dyn_cast<exec::CollectiveOp>(op);
    return collective && step.members.count == 1 &&
           collective.getInputs().size() == 1;
  }

  static bool areAddressed(const problem::Program &program,
                           const problem::Sequence &sequence, size_t number) {
    const problem::Step &step = sequence.steps[number];
    for (problem::Id i = step.members.begin; i < step.members.end(); ++i)
      if (!program.ops[sequence.members[i].op].is(problem::kAddressed))
        return false;
    return step.members.count > 0;
  }

  std::string namesOf(const problem::Program &program,
                      const problem::Sequence &sequence,
                      const problem::Step &step) const {
    std::string names = step.kind == problem::StepKind::Await ? "await " : "";
    for (problem::Id i = step.members.begin; i < step.members.end(); ++i)
      names += problem::addressOf(problem, program.ops[sequence.members[i].op],
                                  sequence.members[i].isAgain) +
               "; ";
    return names;
  }

  std::string difference(const Lifetimes &lifetimes,
                         const problem::Sequence &sequence,
                         const problem::Live &live,
                         const problem::Program &program) const {
    std::vector<int64_t> alive(lifetimes.positions.size() + 1, 0);
    for (const BufferLifetime &buffer : lifetimes.buffers) {
      int64_t bytes = llvm::alignTo(buffer.live.bytes, lifetimes.alignment);
      alive[buffer.live.begin] += bytes;
      alive[buffer.live.end] -= bytes;
    }
    size_t count = std::min(lifetimes.positions.size(), sequence.steps.size());
    int64_t now = 0;
    for (size_t i = 0; i < count; ++i) {
      now += alive[i];
      std::string produced = producedBy(lifetimes.positions[i]);
      std::string names = namesOf(program, sequence, sequence.steps[i]);
      StringRef address = produced;
      address.consume_front("await ");
      // Ops without an address are called in another way.
      llvm::Expected<dist::Origin> origin = dist::parseOrigin(address);
      bool isAddress = bool(origin);
      llvm::consumeError(origin.takeError());
      bool isNamed =
          !isAddress || !areAddressed(program, sequence, i) ||
          sequence.steps[i].kind == problem::StepKind::Copy ||
          isSameCollective(lifetimes.positions[i], sequence.steps[i]) ||
          produced.find(" of ") != std::string::npos ||
          names.find(produced) != std::string::npos;
      if (!isNamed || now != live.bytes[i])
        return "position " + std::to_string(i) + " is '" + produced + "' (" +
               lifetimes.positions[i]->getName().getStringRef().str() +
               ") with " + std::to_string(now) + " bytes alive, not '" + names +
               "' with " + std::to_string(live.bytes[i]);
    }
    if (lifetimes.positions.size() != sequence.steps.size())
      return std::to_string(lifetimes.positions.size()) + " positions, not " +
             std::to_string(sequence.steps.size());
    return "";
  }

  MLIRContext &context;
  std::string target;
  CompileOptions options;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<TargetInfo> targetInfo;
  std::unique_ptr<problem::Evaluator> evaluator;
};

} // namespace fsdp

#endif // FSDP_TEST_UNIT_COMPILER_COMPAREPROBLEM_H
