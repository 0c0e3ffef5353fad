//===- AccumulateMeaningTest.cpp - A step of several microbatches ---------===//
//
// Runs the programs of a step one after the other on simulated ranks in f64.
// After every pass loss, norm, moments and parameters are those of one larger
// batch on one rank, of which every row ignores another number of labels.
//
//===----------------------------------------------------------------------===//
#include "AfterEachPass.h"
#include "TinyLlama.h"
#include "fsdp/Families/TraceModel.h"
#include "fsdp/Interpreter/Grid.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::interpret;

namespace {

constexpr int64_t kSequence = 4, kMicrobatches = 3;
constexpr double kTolerance = 1e-9;
constexpr ParamDtype kF32 = ParamDtype::Float32;

struct Setting {
  const char *mesh;
  int64_t ranks;
  ShardMode mode;
  ParamDtype type = ParamDtype::Float32;
  bool keepGathers = false;
  bool reduceOnce = false;
  int64_t lossChunks = 1;
  bool productsAdd = false;
};

void PrintTo(const Setting &setting, std::ostream *os) {
  *os << setting.mesh << (setting.keepGathers ? " keep" : "")
      << (setting.reduceOnce ? " once" : "")
      << (setting.lossChunks > 1 ? " in chunks" : "")
      << (setting.productsAdd ? " in products" : "");
}

/// "" if all of `expected` is in `actual`, up to rounding.
std::string difference(const TensorMap &actual, const TensorMap &expected) {
  for (const auto &[name, tensor] : expected) {
    auto it = actual.find(name);
    if (it == actual.end() || it->second.shape != tensor.shape)
      return name + " is missing or has another shape";
    double largest = 1e-300;
    for (double value : tensor.values)
      largest = std::max(largest, std::fabs(value));
    for (int64_t i = 0; i < tensor.size(); ++i)
      if (!(std::fabs(it->second.values[i] - tensor.values[i]) <=
            kTolerance * largest))
        return name + " is " + std::to_string(it->second.values[i]) + ", not " +
               std::to_string(tensor.values[i]);
  }
  return "";
}

/// A step on microbatches of one row per rank, and on one batch of all rows.
class Step {
public:
  explicit Step(const Setting &setting)
      : setting(setting), rows(setting.ranks * kMicrobatches),
        module(trace(setting.ranks)), whole(trace(rows)) {
    CompileOptions options;
    options.training.mixedPrecisionParam = setting.type;
    PassManager manager(&context);
    buildTrainPipeline(manager, options, PipelineLevel::Graph);
    manager.addPass(createDifferentiate());
    manager.addPass(createOptimizer());
    EXPECT_TRUE(succeeded(manager.run(*whole)));
    makeInputs();
    GridOutputs outputs = run(programOf(*whole, "train"), {state, {arguments}});
    expected = outputs.state;
    expected.merge(outputs.results[0]);
  }

  void runPipeline(const std::function<void(StringRef)> &visit) {
    CompileOptions options;
    options.training.mixedPrecisionParam = setting.type;
    options.pipeline.mesh = setting.mesh;
    options.compile.mode = setting.mode;
    options.pipeline.microbatches = kMicrobatches;
    options.compile.accumulateGathers = setting.keepGathers
                                            ? AccumulateGathers::Keep
                                            : AccumulateGathers::Repeat;
    options.compile.accumulateReduce =
        setting.reduceOnce ? AccumulateReduce::Once : AccumulateReduce::Every;
    options.compile.lossChunks = setting.lossChunks;
    options.compile.accumulateProducts = setting.productsAdd
                                             ? AccumulateProducts::Add
                                             : AccumulateProducts::Round;
    PassManager manager(&context);
    buildTrainPipeline(manager, options, PipelineLevel::Schedule);
    manager.addInstrumentation(std::make_unique<AfterEachPass>(visit));
    EXPECT_TRUE(succeeded(manager.run(*module)));
  }

  /// "" if the step of several programs computes what one does.
  std::string check() {
    TensorMap now = state, known = arguments;
    auto steps = (*module)->getAttrOfType<DictionaryAttr>(nn::kStepsAttr);
    for (auto action :
         steps.getAs<ArrayAttr>("train").getAsRange<nn::ActionAttr>())
      for (int64_t i = 0; i < action.getTimes(); ++i) {
        if (action.getTimes() > 1)
          for (const char *name : {"tokens", "targets"})
            known[name] = slice(arguments.at(name), i);
        GridOutputs outputs = run(
            programOf(*module, action.getProgram().getValue()), {now, {known}});
        for (auto &[name, tensor] : outputs.state)
          now[name] = tensor;
        for (auto &[name, tensor] : outputs.results[0])
          known[name] = tensor;
      }
    for (const char *sum : {"loss_sum", "output.weight.grad_sum"})
      for (double value : now.at(sum).values)
        if (value != 0)
          return std::string(sum) + " is not zero for the next step";
    now.merge(known);
    return difference(now, expected);
  }

private:
  OwningOpRef<ModuleOp> trace(int64_t batch) {
    return llvm::cantFail(traceModel(
        context, ModelSpec{"tiny", tinyLlama(/*tied=*/false), batch, kSequence},
        {batch, kSequence}));
  }

  static func::FuncOp programOf(ModuleOp module, StringRef name) {
    return module.lookupSymbol<func::FuncOp>(name);
  }

  DenseTensor random(ArrayRef<int64_t> shape, double low, double high) {
    return randomTensor(generator, shape, low, high);
  }

  void makeInputs() {
    for (auto parameter : whole->getOps<nn::ParameterOp>()) {
      std::string name = parameter.getSymName().str();
      std::vector<int64_t> shape = parameter.getTensorType().getShape().vec();
      state[name] = random(shape, -0.5, 0.5);
      state[name + ".exp_avg"] = random(shape, -0.1, 0.1);
      state[name + ".exp_avg_sq"] = random(shape, 0.1, 0.2);
    }
    arguments = {{"lr", DenseTensor::scalar(0.01)},
                 {"step", DenseTensor::scalar(3)}};
    for (const char *name : {"tokens", "targets"}) {
      DenseTensor &tensor = arguments[name] =
          random({rows, kSequence}, 0, kTinyVocab);
      for (double &value : tensor.values)
        value = std::floor(value);
    }
    // The first row has no label, the second all.
    DenseTensor &targets = arguments["targets"];
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < kSequence; ++i)
        if (row != 1 && i >= row % (kSequence + 1))
          targets.values[row * kSequence + i] = -100;
    arguments["targets.of_step"] = targets;
  }

  /// The rows of microbatch `i`: of each rank's rows the one with that number.
  DenseTensor slice(const DenseTensor &all, int64_t i) const {
    DenseTensor part = DenseTensor::full({setting.ranks, kSequence});
    for (int64_t rank = 0; rank < setting.ranks; ++rank)
      std::copy_n(all.values.begin() + (rank * kMicrobatches + i) * kSequence,
                  kSequence, part.values.begin() + rank * kSequence);
    return part;
  }

  Setting setting;
  int64_t rows;
  std::mt19937_64 generator{7};
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module, whole;
  TensorMap state, arguments, expected;
};

class AccumulateMeaning : public testing::TestWithParam<Setting> {};

TEST_P(AccumulateMeaning, IsThatOfOneBatchAfterEveryPass) {
  Step step(GetParam());
  bool isStep = false;
  int checked = 0;
  step.runPipeline([&](StringRef name) {
    isStep |= name == "fsdp-optimizer";
    if (!isStep)
      return;
    EXPECT_EQ(step.check(), "") << "after " << name.str();
    ++checked;
  });
  EXPECT_GT(checked, 6);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, AccumulateMeaning,
    testing::Values(
        Setting{"a=1:data", 1, ShardMode::FullyShard},
        Setting{"a=3:data", 3, ShardMode::FullyShard},
        Setting{"a=2:data,b=2:data", 4, ShardMode::HybridShard},
        Setting{"a=2:data", 2, ShardMode::Replicate},
        Setting{"a=2:data,tp=2:tensor", 2, ShardMode::FullyShard},
        Setting{"a=2:data", 2, ShardMode::FullyShard, ParamDtype::BFloat16},
        Setting{"a=3:data", 3, ShardMode::FullyShard, kF32,
                /*keepGathers=*/true},
        Setting{"a=2:data,b=2:data", 4, ShardMode::HybridShard,
                ParamDtype::BFloat16, /*keepGathers=*/true},
        Setting{"a=2:data,b=2:data", 4, ShardMode::HybridShard, kF32,
                /*keepGathers=*/false, /*reduceOnce=*/true},
        Setting{"a=2:data", 2, ShardMode::Replicate, kF32,
                /*keepGathers=*/false, /*reduceOnce=*/true},
        Setting{"a=3:data", 3, ShardMode::FullyShard, ParamDtype::BFloat16,
                /*keepGathers=*/true,
                /*reduceOnce=*/true},
        Setting{"a=2:data,tp=2:tensor", 2, ShardMode::FullyShard, kF32,
                /*keepGathers=*/true, /*reduceOnce=*/true},
        Setting{"a=1:data", 1, ShardMode::FullyShard, kF32,
                /*keepGathers=*/true, /*reduceOnce=*/true},
        Setting{"a=2:data,tp=2:tensor", 2, ShardMode::FullyShard, kF32,
                /*keepGathers=*/true, /*reduceOnce=*/true,
                /*lossChunks=*/2},
        Setting{"a=1:data", 1, ShardMode::FullyShard, ParamDtype::BFloat16,
                /*keepGathers=*/false, /*reduceOnce=*/false,
                /*lossChunks=*/1, /*productsAdd=*/true},
        Setting{"a=2:data,tp=2:tensor", 2, ShardMode::FullyShard, kF32,
                /*keepGathers=*/true, /*reduceOnce=*/true,
                /*lossChunks=*/2, /*productsAdd=*/true}));

} // namespace
