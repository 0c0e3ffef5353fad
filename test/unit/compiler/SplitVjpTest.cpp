//===- SplitVjpTest.cpp - The forward and the reverse pass apart ----------===//
//
// A forward program and its reverse pass, run one after another, compute
// what the joint training program does: to the bit on one rank, up to rounding
// on simulated ranks after every pass. And the cotangent of an argument is a
// derivative of any function.
//
//===----------------------------------------------------------------------===//
#include "AfterEachPass.h"
#include "TinyLlama.h"
#include "dialects/Exec/Exec.h"
#include "fsdp/Families/TraceModel.h"
#include "fsdp/Interpreter/Grid.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::interpret;

namespace {

constexpr int64_t kBatch = 6, kSequence = 4;

DifferentiateOptions splitOptions(std::string function = "forward") {
  DifferentiateOptions options;
  options.function = std::move(function);
  options.split = true;
  return options;
}

class SplitVjp : public testing::Test {
protected:
  SplitVjp() {
    DialectRegistry registry;
    registerFsdpDialects(registry);
    context.appendDialectRegistry(registry);
  }

  OwningOpRef<ModuleOp> trace(bool tied) {
    return llvm::cantFail(traceModel(
        context, ModelSpec{"tiny", tinyLlama(tied), kBatch, kSequence},
        {kBatch, kSequence}));
  }

  DenseTensor random(ArrayRef<int64_t> shape, double low, double high) {
    return randomTensor(generator, shape, low, high);
  }

  void makeInputs(ModuleOp module) {
    for (auto parameter : module.getOps<nn::ParameterOp>())
      state[parameter.getSymName().str()] =
          random(parameter.getTensorType().getShape(), -0.5, 0.5);
    for (const char *name : {"tokens", "targets"}) {
      DenseTensor &tensor = arguments[name] =
          random({kBatch, kSequence}, 0, kTinyVocab);
      for (double &value : tensor.values)
        value = std::floor(value);
    }
    arguments["loss.cotangent"] = DenseTensor::scalar(1);
    arguments["logits.cotangent"] =
        DenseTensor::full({kBatch, kSequence, kTinyVocab}, 0);
  }

  void transform(ModuleOp module, std::unique_ptr<Pass> pass) {
    PassManager manager(&context);
    manager.addPass(std::move(pass));
    ASSERT_TRUE(succeeded(manager.run(module)));
  }

  /// Everything that the programs give and write, one after another.
  TensorMap runAll(ModuleOp module, ArrayRef<StringRef> programs) {
    TensorMap known = arguments, written;
    for (StringRef program : programs) {
      GridOutputs outputs =
          run(module.lookupSymbol<func::FuncOp>(program), {state, {known}});
      for (auto &[name, tensor] : outputs.results[0])
        known[name] = tensor;
      written.merge(outputs.state);
    }
    written["loss"] = known.at("loss");
    return written;
  }

  static void expectNear(const TensorMap &actual, const TensorMap &expected,
                         double tolerance, StringRef what) {
    ASSERT_EQ(actual.size(), expected.size()) << what.str();
    for (const auto &[name, tensor] : expected) {
      const DenseTensor &own = actual.at(name);
      double largest = 0;
      for (double value : tensor.values)
        largest = std::max(largest, std::fabs(value));
      for (int64_t i = 0; i < tensor.size(); ++i)
        ASSERT_NEAR(own.values[i], tensor.values[i], tolerance * largest)
            << name << " at " << i << " " << what.str();
    }
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::mt19937_64 generator{5};
  TensorMap state, arguments;
};

TEST_F(SplitVjp, IsTheJointProgramToTheBit) {
  for (bool tied : {false, true}) {
    OwningOpRef<ModuleOp> joint = trace(tied), split = trace(tied);
    makeInputs(*joint);
    transform(*joint, createDifferentiate());
    transform(*split, createDifferentiate(splitOptions()));
    TensorMap expected = runAll(*joint, {"train"});
    EXPECT_GT(expected.size(), 10u);
    expectNear(runAll(*split, {"forward", "backward"}), expected, 0, "");
  }
}

// Residuals are batches, sharded as the activations are.
TEST_F(SplitVjp, IsKeptByEveryPass) {
  OwningOpRef<ModuleOp> joint = trace(false), split = trace(false);
  makeInputs(*joint);
  transform(*joint, createDifferentiate());
  TensorMap expected = runAll(*joint, {"train"});
  PassManager manager(&context);
  ShardOptions shard;
  shard.mesh = "batch=3:data";
  manager.addPass(createShard(shard));
  manager.addPass(createDifferentiate(splitOptions()));
  manager.addPass(createCSEPass());
  manager.addPass(createPropagate());
  manager.addPass(createVerifyPlacements());
  manager.addPass(createExpand());
  manager.addPass(createPlan());
  manager.addPass(createBucket());
  manager.addPass(createOverlap());
  manager.addNestedPass<func::FuncOp>(createFuse());
  int checked = 0;
  manager.addInstrumentation(
      std::make_unique<AfterEachPass>([&](StringRef name) {
        if (!split->lookupSymbol("backward"))
          return;
        expectNear(runAll(*split, {"forward", "backward"}), expected, 1e-9,
                   name);
        ++checked;
      }));
  EXPECT_TRUE(succeeded(manager.run(*split)));
  EXPECT_GT(checked, 7);
  auto forward = split->lookupSymbol<func::FuncOp>("forward");
  auto placement = forward.getResultAttrOfType<dist::PlacementAttr>(
      forward.getNumResults() - 1, dist::kPlacementAttr);
  ASSERT_TRUE(placement);
  EXPECT_FALSE(placement.getDims()[0].getCompute().empty());
}

// c . f(x + t d) has the slope c' f'(x) d at t = 0.
TEST_F(SplitVjp, GivesTheCotangentOfAnArgument) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      R"(
nn.parameter @w : tensor<3x4xf64> init #nn.zeros
func.func @f(%x: tensor<2x4xf64> {nn.name = "x"}) -> (tensor<2x3xf64> {nn.name = "y"}) {
  %w = nn.read @w : tensor<3x4xf64>
  %h = nn.linear %x, %w : tensor<2x4xf64>, tensor<3x4xf64> -> tensor<2x3xf64>
  %s = nn.silu %h : tensor<2x3xf64>
  %y = nn.mul %s, %h : tensor<2x3xf64>
  return %y : tensor<2x3xf64>
})",
      &context);
  ASSERT_TRUE(module);
  DifferentiateOptions options = splitOptions("f");
  options.wrt = {"x"};
  transform(*module, createDifferentiate(options));
  auto f = module->lookupSymbol<func::FuncOp>("f");
  TensorMap inputs = {{"w", random({3, 4}, -1, 1)},
                      {"x", random({2, 4}, -1, 1)}};
  DenseTensor c = random({2, 3}, -1, 1), d = random({2, 4}, -1, 1);
  auto value = [&](double t) {
    TensorMap moved = inputs;
    for (int64_t i = 0; i < d.size(); ++i)
      moved["x"].values[i] += t * d.values[i];
    DenseTensor y = evaluate(f, moved).at("y");
    double product = 0;
    for (int64_t i = 0; i < y.size(); ++i)
      product += y.values[i] * c.values[i];
    return product;
  };
  TensorMap given = inputs;
  for (auto &[name, tensor] : evaluate(f, inputs))
    given[name] = tensor;
  given["y.cotangent"] = c;
  TensorMap taken =
      evaluate(module->lookupSymbol<func::FuncOp>("backward"), given);
  const DenseTensor &dx = taken.at("x.cotangent");
  double slope = 0;
  for (int64_t i = 0; i < d.size(); ++i)
    slope += dx.values[i] * d.values[i];
  constexpr double step = 1e-5;
  EXPECT_NEAR(slope, (value(step) - value(-step)) / (2 * step), 1e-8);
  EXPECT_EQ(taken.count("w.grad"), 1u);
}

} // namespace
