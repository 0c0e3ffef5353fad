//===- Pipelines.cpp - The order of the passes, and why -------------------===//
//
// Four phases: what is computed (nn), where it lives (fsdp), when it moves
// (the schedule), in which bytes it runs (exec). Between phases a pass
// proves what the next one relies on, so that a broken invariant fails where
// it breaks.
//
//===----------------------------------------------------------------------===//
#include "passes/Pipelines.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace fsdp;

//===----------------------------------------------------------------------===//
// What: the graph itself
//===----------------------------------------------------------------------===//

static void addGraph(OpPassManager &pm, const TrainPipelineOptions &options) {
  // First of all: a parameter is sharded in the type that it is used in, and
  // gradients get the types of what they belong to.
  if (options.computeDtype == ComputeType::F32)
    return;
  PrecisionOptions precision;
  precision.computeDtype = options.computeDtype;
  pm.addPass(createPrecision(precision));
}

//===----------------------------------------------------------------------===//
// Where: layout of parameters and everything that follows from it
//===----------------------------------------------------------------------===//

static void addSharding(OpPassManager &pm,
                        const TrainPipelineOptions &options) {
  // Before differentiation: sharding is an op like any other, so the gradient
  // collectives are derived and nobody writes them.
  if (!options.mesh.empty()) {
    ShardOptions shard;
    shard.mesh = options.mesh;
    shard.mode = options.mode;
    shard.policyFile = options.policy;
    shard.sequence = options.sequence;
    shard.loss = options.loss;
    pm.addPass(createShard(shard));
  }
  if (options.train) {
    DifferentiateOptions differentiate;
    differentiate.parts = options.lossParts;
    pm.addPass(createDifferentiate(differentiate));
    // Rules of reverse mode repeat what forward has (a transpose, a cast);
    // merging equal values costs no bit, and later passes see less.
    pm.addPass(createCanonicalizerPass());
    pm.addPass(createCSEPass());
  }
  // A step of one microbatch is the training program itself.
  bool accumulates = options.train && options.microbatches != 1;
  if (accumulates) {
    AccumulateOptions accumulate;
    accumulate.microbatches = options.microbatches;
    accumulate.keepGathers = options.keepGathers;
    accumulate.reduceOnce = options.reduceOnce;
    pm.addPass(createAccumulate(accumulate));
  }
  if (options.train && options.optimizer) {
    OptimizerOptions optimizer;
    if (accumulates)
      optimizer.function = "update";
    optimizer.beta1 = options.beta1;
    optimizer.beta2 = options.beta2;
    optimizer.eps = options.eps;
    optimizer.weightDecay = options.weightDecay;
    optimizer.maxNorm = options.maxNorm;
    pm.addPass(createOptimizer(optimizer));
  }

  // The whole step is there, and every value of it gets its place.
  pm.addPass(createPropagate());
  pm.addPass(createVerifyPlacements());
  // Only now do redistributes become collectives: until here the reverse pass
  // needed them whole (a cast and a gather apart would round too early).
  ExpandOptions expand;
  // Libraries add in the type that they are given.
  expand.widenSums = options.fastReductions;
  pm.addPass(createExpand(expand));
  // A rank's rows are its own now, however they are cut over ranks, and the
  // gradients of the loss are there.
  if (options.lossChunks != 1) {
    ChunkLossOptions chunk;
    chunk.chunks = options.lossChunks;
    pm.addPass(createChunkLoss(chunk));
  }
}

//===----------------------------------------------------------------------===//
// When: the plan and the passes that apply it
//===----------------------------------------------------------------------===//

void fsdp::addPlan(OpPassManager &pm, const TrainPipelineOptions &options) {
  // Nothing merges ops from here on, so what a plan calls them holds.
  pm.addNestedPass<func::FuncOp>(createAddress());
  PlanOptions plan;
  plan.file = options.plan;
  plan.reshard = options.reshard;
  plan.recompute = options.recompute;
  plan.bucket = options.bucket;
  plan.overlap = options.overlap;
  pm.addPass(createPlan(plan));
}

static void addPlannedSchedule(OpPassManager &pm,
                               const TrainPipelineOptions &options) {
  // Recomputation clones gathers, so it comes before they are merged.
  pm.addPass(createRemat());
  // Before fusion: a kernel must not join what starts on both sides of a
  // collective, and buckets are formed from the collectives' own casts.
  pm.addPass(createBucket());
  // Start and wait last: nothing may move across them afterwards.
  pm.addPass(createOverlap());
  // Kernels form between the waits, so that they hide what they hid before.
  if (options.fuse)
    pm.addNestedPass<func::FuncOp>(createFuse());
  pm.addPass(createVerifySchedule());
}

//===----------------------------------------------------------------------===//
// In which bytes: exec
//===----------------------------------------------------------------------===//

static void addArena(OpPassManager &pm, const TrainPipelineOptions &options) {
  ExecLowerOptions lower;
  lower.target = options.target;
  lower.threads = options.threads;
  lower.plainAttention = options.plainAttention;
  lower.fastReductions = options.fastReductions;
  pm.addPass(createExecLower(lower));
  pm.addPass(createBatchCasts());

  PlanMemoryOptions memory;
  memory.memoryBudget = options.memoryBudget;
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

void fsdp::buildTrainPipeline(OpPassManager &pm,
                              const TrainPipelineOptions &options,
                              PipelineLevel last) {
  addGraph(pm, options);
  if (last == PipelineLevel::Graph)
    return;
  addSharding(pm, options);
  addPlan(pm, options);
  addPlannedSchedule(pm, options);
  if (last == PipelineLevel::Schedule)
    return;
  addArena(pm, options);
  addOrder(pm);
}

void fsdp::addPlannedArena(OpPassManager &pm,
                           const TrainPipelineOptions &options) {
  addPlannedSchedule(pm, options);
  addArena(pm, options);
}

void fsdp::registerFsdpPipelines() {
  PassPipelineRegistration<TrainPipelineOptions>(
      "fsdp-train",
      "From the graph of a model (@forward) to a planned exec module: shard, "
      "differentiate, schedule, plan memory, synchronize",
      [](OpPassManager &pm, const TrainPipelineOptions &options) {
        buildTrainPipeline(pm, options);
      });
}
