//===- PrecisionTest.cpp - nn-precision on every op -----------------------===//
//
// The golden cases hold every differentiable op. Each becomes an f32 program
// in which any of its arguments are parameters, hence bf16: the pass must give
// a valid program of every such mixture, which computes the golden outputs if
// nothing is rounded.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Interpreter/Interpreter.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <gtest/gtest.h>
#include <regex>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::interpret;
namespace json = llvm::json;

namespace {

std::vector<double> numbersOf(const json::Value &values) {
  std::vector<double> numbers;
  for (const json::Value &value : *values.getAsArray())
    numbers.push_back(*value.getAsNumber());
  return numbers;
}

std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

/// One golden case in f32.
class Case {
public:
  Case(MLIRContext &context, const json::Object &test)
      : context(context), test(test),
        text(std::regex_replace(test.getString("mlir")->str(),
                                std::regex("([x<])f64"), "$1f32")) {}

  unsigned numArguments() const { return test.getArray("inputs")->size(); }

  /// The arguments in `mask` become parameters.
  void check(unsigned mask) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    auto program = *module->getOps<func::FuncOp>().begin();
    TensorMap inputs = setArguments(*module, program, mask);
    ASSERT_TRUE(narrow(*module));
    std::string once = print(*module);
    ASSERT_TRUE(narrow(*module));
    EXPECT_EQ(print(*module), once);
    TensorMap results = evaluate(program, inputs);
    for (auto [index, values] : llvm::enumerate(*test.getArray("outputs")))
      expectClose(results.at("result" + std::to_string(index)),
                  numbersOf(values));
  }

private:
  TensorMap setArguments(ModuleOp module, func::FuncOp program, unsigned mask) {
    TensorMap inputs;
    for (auto [index, values] : llvm::enumerate(*test.getArray("inputs"))) {
      BlockArgument argument = program.getArgument(index);
      auto type = cast<RankedTensorType>(argument.getType());
      DenseTensor tensor{type.getShape().vec(), numbersOf(values)};
      inputs["arg" + std::to_string(index)] = tensor;
      if (!(mask >> index & 1) || !type.getElementType().isF32())
        continue;
      std::string name = "p" + std::to_string(index);
      inputs[name] = tensor;
      auto builder = OpBuilder::atBlockBegin(module.getBody());
      nn::ParameterOp::create(builder, module.getLoc(), name, type,
                              nn::ZerosAttr::get(&context));
      builder.setInsertionPointToStart(&program.getBody().front());
      argument.replaceAllUsesWith(
          nn::ReadOp::create(builder, module.getLoc(), type, name));
    }
    return inputs;
  }

  bool narrow(ModuleOp module) {
    PassManager manager(&context);
    manager.addPass(createPrecision());
    return succeeded(manager.run(module));
  }

  /// The golden case of nn.cast is rounded to f32, hence the tolerance.
  static void expectClose(const DenseTensor &actual,
                          const std::vector<double> &expected) {
    ASSERT_EQ(actual.values.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(actual.values[i], expected[i],
                  1e-6 * std::max(1.0, std::fabs(expected[i])));
  }

  MLIRContext &context;
  const json::Object &test;
  std::string text;
};

} // namespace

TEST(Precision, EveryDifferentiableOpHasAPlaceInTheTable) {
  auto buffer = llvm::MemoryBuffer::getFile(FSDP_GOLDEN_DIR "/nn_ops.json");
  json::Value golden = llvm::cantFail(json::parse((*buffer)->getBuffer()));
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<func::FuncDialect, nn::NNDialect>();
  for (const json::Value &value : *golden.getAsObject()->getArray("cases")) {
    const json::Object &test = *value.getAsObject();
    Case golden(context, test);
    for (unsigned mask = 0; mask < 1u << golden.numArguments(); ++mask) {
      SCOPED_TRACE(test.getString("name")->str() + ", parameters " +
                   std::to_string(mask));
      golden.check(mask);
    }
  }
}
