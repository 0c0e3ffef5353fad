//===- PassMeaningTest.cpp - Passes keep what a program computes ----------===//
//
// The pipeline of fsdp-compile down to the schedule, on simulated ranks in f64.
// After every pass loss, logits, gradients and updated parameters are those of
// the unsharded program on the same batch. Then faults are planted that no
// verifier sees, and each must be found the same way.
//
//===----------------------------------------------------------------------===//
#include "AfterEachPass.h"
#include "TinyLlama.h"
#include "fsdp/Families/TraceModel.h"
#include "fsdp/Interpreter/Grid.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::interpret;

namespace {

constexpr int64_t kSequence = 4;
constexpr double kTolerance = 1e-9;

struct Setting {
  const char *mesh;
  ShardMode mode;
  ParamDtype type = ParamDtype::Float32;
  bool tied = false;
  ReshardPolicy reshard = ReshardPolicy::Default;
  bool bucket = true;
  bool overlap = true;
  int64_t lossChunks = 1;
  bool wideProducts = false;
  int64_t reshardRanks = 0;
  bool embeddingRows = false;
};

std::string toString(const Setting &setting) {
  return spelled(setting.mode) + " on " + setting.mesh +
         (setting.type == ParamDtype::BFloat16 ? " bf16" : "") +
         (setting.tied ? " tied" : "") +
         (setting.lossChunks > 1
              ? " in " + std::to_string(setting.lossChunks) + " chunks"
              : "") +
         (setting.wideProducts ? " wide" : "") +
         (setting.reshardRanks > 0
              ? " again from " + std::to_string(setting.reshardRanks)
              : "") +
         (setting.embeddingRows ? " rows" : "");
}

void PrintTo(const Setting &setting, std::ostream *os) {
  *os << toString(setting);
}

int64_t ranksOf(StringRef mesh) {
  int64_t ranks = 1;
  for (const MeshAxisOption &axis : parseMesh(mesh.str()))
    ranks *= axis.size;
  return ranks;
}

/// "" if `actual` is `expected` up to rounding.
std::string difference(const std::string &name, const DenseTensor &actual,
                       const DenseTensor &expected) {
  if (actual.shape != expected.shape)
    return name + " has another shape";
  double largest = 0;
  for (double value : expected.values)
    largest = std::max(largest, std::fabs(value));
  for (int64_t i = 0; i < expected.size(); ++i)
    if (!(std::fabs(actual.values[i] - expected.values[i]) <=
          kTolerance * largest))
      return name + " is " + std::to_string(actual.values[i]) + ", not " +
             std::to_string(expected.values[i]) + ", at " + std::to_string(i);
  return "";
}

/// The same model twice: sharded, and whole.
class Comparison {
public:
  explicit Comparison(const Setting &setting)
      : setting(setting), ranks(ranksOf(setting.mesh)), sharded(trace()),
        whole(trace()) {
    makeInputs();
    updateExpected();
  }

  /// Runs the pipeline, and `visit` after every pass.
  void runPipeline(AfterEachPass::Visit visit) {
    CompileOptions options;
    options.training.mixedPrecisionParam = setting.type;
    options.pipeline.mesh = setting.mesh;
    options.compile.mode = setting.mode;
    options.parallelism.fsdpReshardAfterForward = setting.reshard;
    options.compile.bucket =
        setting.bucket ? Bucketing::Block : Bucketing::None;
    options.compile.overlap = setting.overlap ? Overlap::Block : Overlap::None;
    options.compile.lossChunks = setting.lossChunks;
    options.compile.wideProducts = setting.wideProducts;
    options.parallelism.fsdpReshardRanks = setting.reshardRanks;
    options.compile.embeddingRows = setting.embeddingRows;
    PassManager manager(&context);
    buildTrainPipeline(manager, options, PipelineLevel::Schedule);
    manager.addInstrumentation(
        std::make_unique<AfterEachPass>([&](StringRef name) {
          follow(name);
          visit(name);
        }));
    EXPECT_TRUE(succeeded(manager.run(*sharded)));
  }

  /// "" if both compute the same; else the first difference, or the error.
  std::string check() { return check(*sharded); }

  /// The same for a program that takes the place of the sharded one.
  std::string check(ModuleOp module) {
    try {
      return compare(run(programOf(module), inputs));
    } catch (const std::runtime_error &error) {
      return error.what();
    }
  }

  ModuleOp module() { return *sharded; }

private:
  /// One sequence for every rank.
  OwningOpRef<ModuleOp> trace() {
    DecoderConfig config = tinyLlama(setting.tied);
    config.vocab = vocab();
    ModelSpec spec{"tiny", config, ranks, kSequence};
    return llvm::cantFail(traceModel(context, spec, {ranks, kSequence}));
  }

  /// Rows travel where they are fewer than those of a table.
  int64_t vocab() const { return setting.embeddingRows ? 61 : kTinyVocab; }

  static func::FuncOp programOf(ModuleOp module) {
    auto train = module.lookupSymbol<func::FuncOp>("train");
    return train ? train : module.lookupSymbol<func::FuncOp>("forward");
  }

  /// What changes the computation is done to the whole program too.
  void follow(StringRef name) {
    PassManager manager(&context);
    if (name == "nn-differentiate")
      manager.addPass(createDifferentiate());
    else if (name == "fsdp-optimizer")
      manager.addPass(createOptimizer());
    else
      return;
    EXPECT_TRUE(succeeded(manager.run(*whole)));
    updateExpected();
  }

  DenseTensor random(ArrayRef<int64_t> shape, double low, double high) {
    return randomTensor(generator, shape, low, high);
  }

  void makeInputs() {
    for (auto parameter : whole->getOps<nn::ParameterOp>()) {
      std::string name = parameter.getSymName().str();
      std::vector<int64_t> shape = parameter.getTensorType().getShape().vec();
      inputs.state[name] = random(shape, -0.5, 0.5);
      // Moments that are not zero: the first step of AdamW sees only signs.
      inputs.state[name + ".exp_avg"] = random(shape, -0.1, 0.1);
      inputs.state[name + ".exp_avg_sq"] = random(shape, 0.1, 0.2);
    }
    TensorMap all = {{"lr", DenseTensor::scalar(0.01)},
                     {"step", DenseTensor::scalar(3)}};
    for (const char *name : {"tokens", "targets"}) {
      DenseTensor &tensor = all[name] = random({ranks, kSequence}, 0, vocab());
      for (double &value : tensor.values)
        value = std::floor(value);
    }
    inputs.arguments = {all};
  }

  void updateExpected() { expected = run(programOf(*whole), inputs); }

  std::string compare(const GridOutputs &actual) {
    for (const char *name : {"loss", "logits", "grad_norm"}) {
      std::string found = compareResult(name, actual);
      if (!found.empty())
        return found;
    }
    if (actual.state.size() != expected.state.size())
      return "another number of tensors is written";
    for (const auto &[name, tensor] : expected.state) {
      auto it = actual.state.find(name);
      if (it == actual.state.end())
        return name + " is not written";
      std::string found = difference(name, it->second, tensor);
      if (!found.empty())
        return found;
    }
    return "";
  }

  /// Every rank knows the whole of a result.
  std::string compareResult(const std::string &name,
                            const GridOutputs &actual) {
    auto reference = expected.results[0].find(name);
    if (reference == expected.results[0].end())
      return "";
    for (const TensorMap &results : actual.results) {
      auto own = results.find(name);
      if (own == results.end())
        return name + " is no result";
      std::string found = difference(name, own->second, reference->second);
      if (!found.empty())
        return found;
    }
    return "";
  }

  Setting setting;
  int64_t ranks;
  std::mt19937_64 generator{7};
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> sharded, whole;
  GridInputs inputs;
  GridOutputs expected;
};

//===----------------------------------------------------------------------===//
// The passes as they are
//===----------------------------------------------------------------------===//

constexpr ShardMode kFull = ShardMode::FullyShard;
constexpr ShardMode kHybrid = ShardMode::HybridShard;
constexpr ShardMode kReplicate = ShardMode::Replicate;

/// The ops of one kind, in program order, also those in regions.
template <typename OpT> SmallVector<OpT> all(ModuleOp module) {
  SmallVector<OpT> ops;
  module.lookupSymbol<func::FuncOp>("train").walk(
      [&](OpT op) { ops.push_back(op); });
  return ops;
}

class PassMeaning : public testing::TestWithParam<Setting> {};

TEST_P(PassMeaning, IsKeptByEveryPass) {
  Comparison comparison(GetParam());
  std::set<std::string> seen;
  comparison.runPipeline([&](StringRef name) {
    EXPECT_EQ(comparison.check(), "") << "after " << name.str();
    seen.insert(name.str());
  });
  for (const char *name :
       {"fsdp-shard", "nn-differentiate", "fsdp-expand", "fsdp-optimizer",
        "fsdp-remat", "fsdp-bucket", "fsdp-overlap", "nn-fuse"})
    EXPECT_TRUE(seen.count(name)) << name;
  EXPECT_EQ(seen.count("nn-chunk-loss"), GetParam().lossChunks > 1);
  EXPECT_EQ(seen.count("nn-wide-products"), GetParam().wideProducts);
  EXPECT_EQ(seen.count("fsdp-reshard"), GetParam().reshardRanks > 1);
  EXPECT_EQ(seen.count("fsdp-embedding-rows"), GetParam().embeddingRows);
  bool moves = GetParam().embeddingRows && !GetParam().tied &&
               GetParam().mode != kReplicate;
  EXPECT_EQ(all<dist::RowsOfShardOp>(comparison.module()).size(),
            moves ? 2u : 0u);
  EXPECT_EQ(seen.count("nn-precision"),
            GetParam().type == ParamDtype::BFloat16);
}

constexpr ParamDtype kF32 = ParamDtype::Float32, kBF16 = ParamDtype::BFloat16;
constexpr auto kDefault = ReshardPolicy::Default;
constexpr auto kAlways = ReshardPolicy::Always;
constexpr auto kNever = ReshardPolicy::Never;

const Setting kSettings[] = {
    {"a=1:data", kFull},
    {"a=1:data", kReplicate},
    {"a=2:data", kFull},
    {"a=3:data", kFull},
    {"a=2:data,b=2:data", kFull},
    {"a=2:data,b=3:data", kFull},
    {"a=1:data", kHybrid},
    {"a=2:data", kHybrid},
    {"a=2:data,b=2:data", kHybrid},
    {"a=2:data,b=3:data", kHybrid},
    {"a=2:data", kReplicate},
    {"a=3:data", kReplicate},
    {"a=2:data,b=2:data", kReplicate},
    {"a=2:data,b=3:data", kReplicate},
    {"a=2:data,b=3:data", kFull, kBF16},
    {"a=2:data,b=2:data", kHybrid, kBF16, /*tied=*/true},
    {"a=3:data", kFull, kF32, /*tied=*/true},
    {"a=2:data,b=2:data", kFull, kF32, /*tied=*/true, kAlways},
    {"a=2:data,b=3:data", kHybrid, kF32, /*tied=*/false, kAlways},
    {"a=3:data", kFull, kF32, /*tied=*/false, kNever, /*bucket=*/false},
    {"a=2:data,b=2:data", kHybrid, kF32, /*tied=*/false, kAlways,
     /*bucket=*/false,
     /*overlap=*/false},
    {"a=1:data", kFull, kF32, /*tied=*/false, kDefault, /*bucket=*/true,
     /*overlap=*/true, /*lossChunks=*/4},
    {"a=2:data,tp=2:tensor", kFull, kF32, /*tied=*/false, kDefault,
     /*bucket=*/true,
     /*overlap=*/true, /*lossChunks=*/2},
    {"a=2:data,b=3:data", kHybrid, kBF16, /*tied=*/true, kAlways,
     /*bucket=*/true,
     /*overlap=*/true, /*lossChunks=*/2},
    {"a=1:data", kFull, kF32, /*tied=*/false, kDefault, /*bucket=*/true,
     /*overlap=*/true, /*lossChunks=*/1, /*wideProducts=*/true},
    {"a=2:data,b=3:data", kHybrid, kBF16, /*tied=*/true, kAlways,
     /*bucket=*/true,
     /*overlap=*/true, /*lossChunks=*/2, /*wideProducts=*/true},
    {"a=2:data,tp=2:tensor", kFull, kF32, /*tied=*/false, kNever,
     /*bucket=*/true,
     /*overlap=*/true, /*lossChunks=*/1, /*wideProducts=*/true},
    {"a=3:data", kReplicate, kF32, /*tied=*/false, kDefault, /*bucket=*/true,
     /*overlap=*/true, /*lossChunks=*/1, /*wideProducts=*/true},
    {"a=4:data", kFull, kF32, /*tied=*/false, kDefault, /*bucket=*/true,
     /*overlap=*/true, /*lossChunks=*/1, /*wideProducts=*/false,
     /*reshardRanks=*/2},
    {"a=2:data,b=3:data", kFull, kBF16, /*tied=*/true, kAlways,
     /*bucket=*/true,
     /*overlap=*/true, /*lossChunks=*/2, /*wideProducts=*/true,
     /*reshardRanks=*/3},
    {"a=4:data,tp=2:tensor", kFull, kBF16, /*tied=*/false, kAlways,
     /*bucket=*/false,
     /*overlap=*/false, /*lossChunks=*/1, /*wideProducts=*/false,
     /*reshardRanks=*/2},
    {"a=2:data,b=4:data", kHybrid, kF32, /*tied=*/false, kAlways,
     /*bucket=*/true,
     /*overlap=*/true, /*lossChunks=*/1, /*wideProducts=*/false,
     /*reshardRanks=*/2},
    {"a=3:data", kFull, kF32, /*tied=*/false, kDefault, /*bucket=*/true,
     /*overlap=*/true, /*lossChunks=*/1, /*wideProducts=*/false,
     /*reshardRanks=*/0, /*embeddingRows=*/true},
    {"a=2:data,b=3:data", kFull, kBF16, /*tied=*/false, kAlways,
     /*bucket=*/true,
     /*overlap=*/true, /*lossChunks=*/2, /*wideProducts=*/true,
     /*reshardRanks=*/3, /*embeddingRows=*/true},
    {"a=2:data,b=3:data", kHybrid, kF32, /*tied=*/false, kNever,
     /*bucket=*/false,
     /*overlap=*/false, /*lossChunks=*/1, /*wideProducts=*/false,
     /*reshardRanks=*/0, /*embeddingRows=*/true},
    {"a=2:data,tp=2:tensor", kFull, kBF16, /*tied=*/false, kDefault,
     /*bucket=*/true,
     /*overlap=*/true, /*lossChunks=*/1, /*wideProducts=*/false,
     /*reshardRanks=*/0, /*embeddingRows=*/true},
    {"a=2:data,b=2:data", kFull, kF32, /*tied=*/true, kDefault,
     /*bucket=*/true,
     /*overlap=*/true, /*lossChunks=*/1, /*wideProducts=*/false,
     /*reshardRanks=*/0, /*embeddingRows=*/true},
};

INSTANTIATE_TEST_SUITE_P(Settings, PassMeaning, testing::ValuesIn(kSettings));

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

struct Fault {
  const char *name;
  Setting setting;
  const char *after; // the pass after which it is planted
  std::function<void(ModuleOp)> plant;
  const char *finding; // what the message must contain
};

void twiceTheSum(ModuleOp module) {
  auto op = all<dist::ReduceScatterOp>(module).front();
  OpBuilder builder(module.getContext());
  builder.setInsertionPointAfter(op);
  Value sum = op.getResult(0);
  auto twice = nn::AddOp::create(builder, op.getLoc(), sum, sum);
  sum.replaceAllUsesExcept(twice.getResult(), twice);
}

void reduceAlongWrongAxis(ModuleOp module) {
  auto op = all<dist::ReduceScatterOp>(module).front();
  op.setAxesAttr(dist::axesAttr(op.getContext(),
                                dist::AxisRefAttr::get(op.getContext(), "a")));
}

void gatherInWrongOrder(ModuleOp module) {
  auto op = all<dist::AllGatherOp>(module).front();
  auto axes = dist::axisRefs(op.getAxes());
  std::reverse(axes.begin(), axes.end());
  op.setAxesAttr(dist::axesAttr(op.getContext(), axes));
}

void reverseAxes(dist::RowsOfShardOp op) {
  auto axes = dist::axisRefs(op.getAxes());
  std::reverse(axes.begin(), axes.end());
  op.setAxesAttr(dist::axesAttr(op.getContext(), axes));
}

void readWrongRows(ModuleOp module) {
  reverseAxes(all<dist::RowsOfShardOp>(module).front());
}

void addToWrongRows(ModuleOp module) {
  reverseAxes(all<dist::RowsOfShardOp>(module).back());
}

void dropReduction(ModuleOp module) {
  auto op = all<dist::AllReduceOp>(module).front();
  op.getResult(0).replaceAllUsesWith(op.getOperand(0));
  op.erase();
}

void dropNormReduction(ModuleOp module) {
  for (auto op : all<dist::AllReduceOp>(module)) {
    if (!op.getOperand(0).getDefiningOp<nn::SumSquaresOp>())
      continue;
    op.getResult(0).replaceAllUsesWith(op.getOperand(0));
    op.erase();
    return;
  }
  FAIL() << "the norm is not reduced";
}

/// Two parameters of one shape change places in their bucket.
void swapInBucket(ModuleOp module) {
  for (auto op : all<dist::AllGatherOp>(module))
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      for (unsigned j = 0; j < i; ++j)
        if (op->getResult(i).getType() == op->getResult(j).getType() &&
            cast<RankedTensorType>(op->getOperand(i).getType()).getRank() ==
                2) {
          Value first = op->getOperand(i);
          op->setOperand(i, op->getOperand(j));
          op->setOperand(j, first);
          return;
        }
  FAIL() << "no bucket with two parameters of one shape";
}

/// What is gathered again in the backward pass is another layer's.
void gatherAnotherLayer(ModuleOp module) {
  auto gathers = all<dist::AllGatherOp>(module);
  for (auto again : gathers)
    for (auto other : gathers)
      if (again.getServes()->getText().starts_with(
              "again layers.0.feed_forward.w1") &&
          other.getServes()->getText().starts_with(
              "fwd layers.1.feed_forward.w1"))
        return again->setOperands(other->getOperands());
  FAIL() << "nothing is gathered again";
}

void dropResidual(ModuleOp module) {
  nn::AddOp last = all<nn::AddOp>(module).back();
  last.getResult().replaceAllUsesWith(last->getOperand(0));
  last.erase();
}

void awaitTwice(ModuleOp module) {
  auto op = all<dist::AwaitOp>(module).front();
  OpBuilder(op).clone(*op);
}

Setting withRows(const char *mesh) {
  Setting setting{mesh, kFull};
  setting.embeddingRows = true;
  return setting;
}

const Fault kFaults[] = {
    {"twice a sum",
     {"a=2:data", kFull},
     "fsdp-expand",
     twiceTheSum,
     "grad_norm is "},
    {"a reduction goes along the wrong axis",
     {"a=2:data,b=2:data", kHybrid},
     "fsdp-expand",
     reduceAlongWrongAxis,
     "padding that is not zero"},
    {"shards are joined in the wrong order",
     {"a=2:data,b=2:data", kFull},
     "fsdp-expand",
     gatherInWrongOrder,
     "loss is "},
    {"rows are those of another rank's shard", withRows("a=2:data,b=3:data"),
     "fsdp-embedding-rows", readWrongRows, "loss is "},
    {"gradients are added to the wrong rows", withRows("a=2:data,b=3:data"),
     "fsdp-embedding-rows", addToWrongRows, "tok_embeddings.weight is "},
    {"a reduction is missing",
     {"a=2:data", kReplicate},
     "fsdp-expand",
     dropReduction,
     "differs between rank 0"},
    {"the norm is that of one rank's shards",
     {"a=2:data", kFull},
     "fsdp-expand",
     dropNormReduction,
     "grad_norm"},
    {"the other layer's weight is gathered again",
     {"a=2:data", kFull},
     "fsdp-remat",
     gatherAnotherLayer,
     "grad_norm is "},
    {"two tensors of a bucket change places",
     {"a=3:data", kFull},
     "fsdp-bucket",
     swapInBucket,
     "loss is "},
    {"a cotangent is lost",
     {"a=2:data", kFull},
     "cse",
     dropResidual,
     ".grad is "},
    {"a future is awaited twice",
     {"a=2:data", kFull},
     "fsdp-overlap",
     awaitTwice,
     "awaited before"},
};

/// Plants `fault` into a copy of what `comparison` has.
void checkIsFound(const Fault &fault, Comparison &comparison) {
  EXPECT_EQ(comparison.check(), "");
  OwningOpRef<ModuleOp> copy = comparison.module().clone();
  fault.plant(*copy);
  // Otherwise it would need no interpreter.
  ASSERT_TRUE(succeeded(verify(*copy)));
  std::string found = comparison.check(*copy);
  EXPECT_NE(found.find(fault.finding), std::string::npos) << found;
}

TEST(PassMeaningFaults, AreFound) {
  for (const Fault &fault : kFaults) {
    SCOPED_TRACE(fault.name);
    Comparison comparison(fault.setting);
    bool planted = false;
    comparison.runPipeline([&](StringRef name) {
      // A pass may run several times.
      if (planted || name != fault.after)
        return;
      planted = true;
      checkIsFound(fault, comparison);
    });
    EXPECT_TRUE(planted);
  }
}

} // namespace
