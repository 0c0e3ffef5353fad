//===- DifferentiateTest.cpp - Gradients of whole models ------------------===//
//
// VjpTest proves each rule; this proves that nn-differentiate puts them
// together: the gradients of a small Llama and an MLP against central
// differences of the loss that @evaluate gives. Everything is evaluated in
// f64, whatever the declared types.
//
//===----------------------------------------------------------------------===//
#include "TinyLlama.h"
#include "fsdp/Families/TraceModel.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::interpret;

namespace {

constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-6;
/// Elements of each parameter that are perturbed.
constexpr int64_t kProbes = 6;

class Differentiated : public testing::Test {
protected:
  void trace(const ModelSpec &spec) {
    auto traced = traceModel(context, spec);
    ASSERT_TRUE(static_cast<bool>(traced));
    module = std::move(*traced);
    PassManager manager(&context);
    manager.addPass(createDifferentiate());
    ASSERT_TRUE(succeeded(manager.run(*module)));
  }

  DenseTensor random(RankedTensorType type) {
    std::uniform_real_distribution<double> uniform(-0.5, 0.5);
    std::uniform_int_distribution<int> token(0, 10);
    DenseTensor tensor = DenseTensor::full(type.getShape().vec());
    bool isFloat = isa<FloatType>(type.getElementType());
    for (double &value : tensor.values)
      value = isFloat ? uniform(generator) : token(generator);
    return tensor;
  }

  /// Random arguments and parameters, larger than a fresh model's so that
  /// every path matters.
  TensorMap randomInputs(func::FuncOp program) {
    TensorMap inputs;
    for (BlockArgument argument : program.getArguments()) {
      auto name = program.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                       nn::kNameAttr);
      inputs[name.str()] = random(cast<RankedTensorType>(argument.getType()));
    }
    for (auto parameter : module->getOps<nn::ParameterOp>())
      inputs[parameter.getSymName().str()] = random(parameter.getTensorType());
    return inputs;
  }

  void checkGradients() {
    SymbolTable symbols(*module);
    auto train = symbols.lookup<func::FuncOp>("train");
    auto evaluation = symbols.lookup<func::FuncOp>("evaluate");
    TensorMap inputs = randomInputs(evaluation);
    TensorMap trained = evaluate(train, inputs);
    auto loss = [&] {
      return evaluate(evaluation, inputs).at("loss").values[0];
    };
    EXPECT_EQ(trained.at("loss").values[0], loss());
    for (auto parameter : module->getOps<nn::ParameterOp>()) {
      std::string name = parameter.getSymName().str();
      ASSERT_TRUE(trained.count(name + ".grad")) << name;
      const DenseTensor &gradient = trained.at(name + ".grad");
      double largest = 0;
      for (double value : gradient.values)
        largest = std::max(largest, std::fabs(value));
      EXPECT_GT(largest, 0) << name;
      DenseTensor &tensor = inputs.at(name);
      for (int64_t probe = 0; probe < kProbes; ++probe) {
        int64_t element = generator() % tensor.size();
        double value = tensor.values[element];
        tensor.values[element] = value + kStep;
        double above = loss();
        tensor.values[element] = value - kStep;
        double slope = (above - loss()) / (2 * kStep);
        tensor.values[element] = value;
        EXPECT_NEAR(gradient.values[element], slope, kTolerance * largest)
            << name << " at " << element;
      }
    }
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::mt19937_64 generator{11};
};

TEST_F(Differentiated, Llama) {
  trace({"tiny", tinyLlama(/*tied=*/false), /*batch=*/2, /*seqLen=*/5});
  checkGradients();
}

// One table, read by the embedding and the output: its gradient is the sum.
TEST_F(Differentiated, LlamaWithTiedEmbedding) {
  trace({"tiny", tinyLlama(/*tied=*/true), /*batch=*/2, /*seqLen=*/5});
  checkGradients();
}

/// A family in a table of its own, of small sizes.
checkpoint::Family ownFamily() {
  checkpoint::Family table;
  table.name = table.modelType = table.title = "own";
  table.base = tinyLlama(/*tied=*/false);
  table.modelFields = {{"dim"}, {"n_layers"}};
  return table;
}

// Norms of 1 + w before and after the branches and of every head, heads that
// are wider than dim / n_heads and rotated in part, biases, a cap on logits.
TEST_F(Differentiated, FamilyOfItsOwn) {
  checkpoint::Family table = ownFamily();
  DecoderConfig &base = table.base;
  base.headDim = 6;
  base.rotaryDim = 4;
  base.ropeType = "linear";
  base.normPlusOne = base.normOnBranch = true;
  base.headNorm = HeadNorm::PerHead;
  base.attnBias = base.ffnBias = true;
  base.attnByLayer = true;
  base.activation = "gelu_tanh";
  base.scalesEmbedding = true;
  base.logitCap = 2;
  checkpoint::AddedFamily added(table);
  trace({"own", checkpoint::findFamily("own")->base, /*batch=*/2,
         /*seqLen=*/5});
  checkGradients();
}

// Learned positions, layer norms of the branches alone, and no gate.
TEST_F(Differentiated, FamilyWithLearnedPositions) {
  checkpoint::Family table = ownFamily();
  DecoderConfig &base = table.base;
  base.maxSeqLen = 7;
  base.learnedPositions = true;
  base.norm = NormKind::Layer;
  base.normBefore = false;
  base.normOnBranch = true;
  base.activation = "gelu";
  base.isGated = false;
  base.tied = true;
  checkpoint::AddedFamily added(table);
  trace({"own", checkpoint::findFamily("own")->base, /*batch=*/2,
         /*seqLen=*/5});
  checkGradients();
}

TEST_F(Differentiated, Mlp) {
  trace({"mlp", MlpConfig{/*dim=*/6, /*layers=*/3}, /*batch=*/4});
  checkGradients();
}

} // namespace
