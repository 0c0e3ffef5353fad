//===- Pipelines.cpp - The order of the passes, and why -------------------===//
//
// Four phases: what is computed (nn), where it lives (fsdp), when it moves
// (the schedule), in which bytes it runs (exec). Between phases a pass
// proves what the next one relies on, so that a broken invariant fails where
// it breaks.
//
//===----------------------------------------------------------------------===//
#include "passes/Pipelines.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Target/Target.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace fsdp;

//===----------------------------------------------------------------------===//
// What: the graph itself
//===----------------------------------------------------------------------===//

static void addGraph(OpPassManager &pm, const CompileOptions &options) {
  if (options.training.documentMask)
    pm.addPass(createMaskDocuments());
  // First of all: a parameter is sharded in the type that it is used in, and
  // gradients get the types of what they belong to.
  // ParamDtype::Auto leaves a text in the types that it states.
  if (options.training.mixedPrecisionParam != ParamDtype::BFloat16)
    return;
  PrecisionOptions precision;
  precision.computeDtype = ComputeType::BF16;
  precision.wide.assign(options.pipeline.wide.begin(),
                        options.pipeline.wide.end());
  pm.addPass(createPrecision(precision));
}

//===----------------------------------------------------------------------===//
// Where: layout of parameters and everything that follows from it
//===----------------------------------------------------------------------===//

static void addShard(OpPassManager &pm, const CompileOptions &options) {
  ShardOptions shard;
  shard.mesh = options.pipeline.mesh;
  shard.mode = options.compile.mode;
  shard.policyFile = options.parallelism.placementPolicy;
  shard.sequence = options.parallelism.sequenceParallel;
  shard.loss = !options.parallelism.disableLossParallel;
  shard.nodeSize = options.parallelism.nodeSize;
  pm.addPass(createShard(shard));
}

/// The programs of a training step, made of @forward.
static void addStep(OpPassManager &pm, const CompileOptions &options) {
  DifferentiateOptions differentiate;
  differentiate.parts = options.pipeline.lossParts;
  pm.addPass(createDifferentiate(differentiate));
  // Rules of reverse mode repeat what forward has (a transpose, a cast);
  // merging equal values costs no bit, and later passes see less.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  // A step of one microbatch is the training program itself.
  bool accumulates = options.pipeline.microbatches != 1;
  if (accumulates) {
    AccumulateOptions accumulate;
    accumulate.microbatches = options.pipeline.microbatches;
    accumulate.keepGathers =
        options.compile.accumulateGathers == AccumulateGathers::Keep;
    accumulate.reduceOnce =
        options.compile.accumulateReduce == AccumulateReduce::Once;
    pm.addPass(createAccumulate(accumulate));
  }
  if (options.optimizer.name != OptimizerKind::None) {
    OptimizerOptions optimizer;
    if (accumulates)
      optimizer.function = "update";
    optimizer.beta1 = options.optimizer.beta1;
    optimizer.beta2 = options.optimizer.beta2;
    optimizer.eps = options.optimizer.eps;
    optimizer.weightDecay = options.optimizer.weightDecay;
    optimizer.maxNorm = options.training.maxNorm;
    pm.addPass(createOptimizer(optimizer));
  }
}

static void addSharding(OpPassManager &pm, const CompileOptions &options) {
  // Before differentiation: sharding is an op like any other, so the gradient
  // collectives are derived and nobody writes them.
  if (!options.pipeline.mesh.empty())
    addShard(pm, options);
  if (options.pipeline.train)
    addStep(pm, options);

  // The whole step is there, and every value of it gets its place.
  pm.addPass(createPropagate());
  pm.addPass(createVerifyPlacements());
  // Only now do redistributes become collectives: until here the reverse pass
  // needed them whole (a cast and a gather apart would round too early).
  ExpandOptions expand;
  // Libraries add in the type that they are given.
  expand.widenSums = options.compile.reduce == ReduceOrder::Fast;
  pm.addPass(createExpand(expand));
  // Which gradients are summed over ranks, and so in f32, is known only now.
  pm.addPass(createFoldCasts());
  if (options.compile.computeCopy)
    pm.addPass(createComputeCopy());
  // What a rank has of a table is what it stores.
  if (options.compile.embeddingRows) {
    EmbeddingRowsOptions rows;
    rows.widenSums = expand.widenSums;
    pm.addPass(createEmbeddingRows(rows));
  }
  // The weights of one input lie side by side in a rank's memory, however their
  // logical tensors are sharded.
  if (options.compile.wideProducts)
    pm.addNestedPass<func::FuncOp>(createWideProducts());
  // A rank's rows are its own now, however they are sharded over ranks, and the
  // gradients of the loss are there.
  if (options.compile.lossChunks != 1) {
    ChunkLossOptions chunk;
    chunk.chunks = options.compile.lossChunks;
    pm.addPass(createChunkLoss(chunk));
  }
  // Where a rank's gradients come from is settled.
  if (options.pipeline.train && options.pipeline.microbatches != 1) {
    SumBlocksOptions sums;
    sums.inProducts =
        options.compile.accumulateProducts == AccumulateProducts::Add;
    pm.addNestedPass<func::FuncOp>(createSumBlocks(sums));
  }
  // What the backward pass may gather again is known: the programs of a step,
  // and what they read.
  if (options.pipeline.train && options.parallelism.fsdpReshardRanks > 1) {
    ReshardOptions reshard;
    reshard.ranks = options.parallelism.fsdpReshardRanks;
    pm.addPass(createReshard(reshard));
  }
}

//===----------------------------------------------------------------------===//
// When: the plan and the passes that apply it
//===----------------------------------------------------------------------===//

static void addAddresses(OpPassManager &pm) {
  // Nothing merges ops from here on, so what a plan calls them holds.
  pm.addNestedPass<func::FuncOp>(createAddress());
}

void fsdp::addPlan(OpPassManager &pm, const CompileOptions &options) {
  addAddresses(pm);
  PlanOptions plan;
  plan.file = options.pipeline.plan;
  plan.reshard = options.parallelism.fsdpReshardAfterForward;
  plan.recompute = options.compile.recompute;
  plan.bucket = options.compile.bucket != Bucketing::None;
  plan.overlap = options.compile.overlap != Overlap::None;
  pm.addPass(createPlan(plan));
}

static void addVerifySchedule(OpPassManager &pm,
                              const CompileOptions &options) {
  VerifyScheduleOptions limits;
  limits.maxInFlight = options.pipeline.maxInFlight;
  pm.addPass(createVerifySchedule(limits));
}

static void addPlannedSchedule(OpPassManager &pm,
                               const CompileOptions &options) {
  // Recomputation clones gathers, so it comes before they are merged.
  pm.addPass(createRemat());
  // Before fusion: a kernel must not join what starts on both sides of a
  // collective, and buckets are formed from the collectives' own casts.
  pm.addPass(createBucket());
  // Start and wait last: nothing may move across them afterwards.
  pm.addPass(createOverlap());
  // Kernels form between the waits, so that they hide what they hid before.
  if (options.compile.fuse != Fusion::None) {
    FuseOptions fuse;
    // exec-lower refuses a target that is none.
    if (const rt::Target *target = rt::findTarget(options.pipeline.target))
      fuse.leastRowBlocks = target->leastRowBlocks;
    pm.addNestedPass<func::FuncOp>(createFuse(fuse));
  }
  addVerifySchedule(pm, options);
}

//===----------------------------------------------------------------------===//
// In which bytes: exec
//===----------------------------------------------------------------------===//

static void addArena(OpPassManager &pm, const CompileOptions &options) {
  ExecLowerOptions lower;
  lower.target = options.pipeline.target;
  lower.threads = options.compile.threads;
  lower.referenceAttention =
      options.compile.attention == AttentionKernel::Reference;
  lower.fastAttention = options.compile.attention == AttentionKernel::Fast;
  lower.fastReductions = options.compile.reduce == ReduceOrder::Fast;
  pm.addPass(createExecLower(lower));
  pm.addPass(createBatchCasts());

  PlanMemoryOptions memory;
  memory.memoryBudget = options.pipeline.memoryBudget;
  pm.addPass(createPlanMemory(memory));
}

static void addOrder(OpPassManager &pm) {
  // Two buffers that share bytes are a conflict too, so events are placed
  // when every offset is known.
  pm.addPass(createSynchronize());
  // The proof, while every buffer is a value of its own and an error has the
  // place and the name of the one layer where it is.
  pm.addPass(createVerifyExec());
  // Last, when blocks differ in addresses and event numbers alone: text and
  // compile time of the step program stop growing with the depth.
  pm.addPass(createOutline());
  // Once more, following calls, so that it covers what is emitted.
  pm.addPass(createVerifyExec());
}

static void addBytes(OpPassManager &pm, const CompileOptions &options) {
  addArena(pm, options);
  addOrder(pm);
}

void fsdp::buildTrainPipeline(OpPassManager &pm, const CompileOptions &options,
                              PipelineLevel last) {
  addGraph(pm, options);
  if (last == PipelineLevel::Graph)
    return;
  addSharding(pm, options);
  if (last == PipelineLevel::Addresses)
    return addAddresses(pm);
  addPlan(pm, options);
  addPlannedSchedule(pm, options);
  if (last == PipelineLevel::Exec)
    addBytes(pm, options);
}

void fsdp::buildScheduledPipeline(OpPassManager &pm,
                                  const CompileOptions &options,
                                  PipelineLevel last) {
  addVerifySchedule(pm, options);
  if (last == PipelineLevel::Exec)
    addBytes(pm, options);
}

void fsdp::addPlannedArena(OpPassManager &pm, const CompileOptions &options) {
  addPlannedSchedule(pm, options);
  addArena(pm, options);
}

//===----------------------------------------------------------------------===//
// fsdp-train
//===----------------------------------------------------------------------===//

namespace {

/// The text of CompileOptions between the braces of `fsdp-train{...}`.
class TrainPipelineText : public PassPipelineOptions<TrainPipelineText> {
public:
  TrainPipelineText() {
    for (const ConfigOption &row : rows)
      texts.push_back(std::make_unique<Option<std::string>>(
          *this, row.name, llvm::cl::desc(row.doc),
          llvm::cl::init(row.text())));
  }

  /// Throws fsdp::Error for what an option may not hold.
  const CompileOptions &read() {
    for (auto [row, text] : llvm::zip_equal(rows, texts))
      if (text->hasValue())
        setOption(row, text->getValue(), "fsdp-train");
    return options;
  }

private:
  CompileOptions options;
  std::vector<ConfigOption> rows = pipelineOptions(options);
  std::vector<std::unique_ptr<Option<std::string>>> texts;
};

} // namespace

static LogicalResult
addTrainPipeline(OpPassManager &pm, StringRef text,
                 function_ref<LogicalResult(const Twine &)> refuse) {
  TrainPipelineText options;
  if (failed(options.parseFromString(text)))
    return failure();
  try {
    buildTrainPipeline(pm, options.read());
  } catch (const Error &error) {
    return refuse(error.what());
  }
  return success();
}

void fsdp::registerFsdpPipelines() {
  registerPassPipeline(
      "fsdp-train",
      "From the graph of a model (@forward) to a planned exec module: shard, "
      "differentiate, schedule, plan memory, synchronize",
      addTrainPipeline,
      [](function_ref<void(const mlir::detail::PassOptions &)> show) {
        show(TrainPipelineText());
      });
}
