//===- GoldenTest.cpp - nn ops against values from PyTorch ----------------===//
//
// Every case of test/golden/nn_ops.json is a small f64 function with inputs,
// cotangents, and the outputs and gradients that PyTorch's autograd gave. The
// function is evaluated, then differentiated by the ops' own reverse rules and
// evaluated again. Finite differences prove that a rule fits its forward op;
// only this proves that the forward op is the right one.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Interpreter/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::interpret;
namespace json = llvm::json;

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

static json::Value readGolden(StringRef name) {
  auto buffer = llvm::MemoryBuffer::getFile((FSDP_GOLDEN_DIR "/" + name).str());
  return llvm::cantFail(json::parse((*buffer)->getBuffer()));
}

static std::vector<double> numbersOf(const json::Value &values) {
  std::vector<double> numbers;
  for (const json::Value &value : *values.getAsArray())
    numbers.push_back(*value.getAsNumber());
  return numbers;
}

static DenseTensor tensorOf(Type type, const json::Value &values) {
  return {cast<RankedTensorType>(type).getShape().vec(), numbersOf(values)};
}

static void expectClose(const DenseTensor &actual, const json::Value &expected,
                        StringRef what) {
  std::vector<double> wanted = numbersOf(expected);
  ASSERT_EQ(actual.values.size(), wanted.size()) << what.str();
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(actual.values[i], wanted[i],
                1e-10 * std::max(1.0, std::abs(wanted[i])))
        << what.str() << " at " << i;
}

//===----------------------------------------------------------------------===//
// Reverse mode over one function
//===----------------------------------------------------------------------===//

namespace {
/// The sum of what reaches each value, as ops are visited in reverse.
class Cotangents {
public:
  explicit Cotangents(OpBuilder &builder) : builder(builder) {}

  Value of(Value value) const { return sums.lookup(value); }
  void add(Value value, Value cotangent) {
    if (!cotangent)
      return;
    Value &sum = sums[value];
    sum = sum ? nn::AddOp::create(builder, value.getLoc(), sum, cotangent)
              : cotangent;
  }

private:
  OpBuilder &builder;
  llvm::DenseMap<Value, Value> sums;
};
} // namespace

static void differentiate(Operation *op, OpBuilder &builder,
                          Cotangents &cotangents) {
  SmallVector<Value> results, operands(op->getNumOperands());
  for (Value result : op->getResults())
    results.push_back(cotangents.of(result));
  auto rule = dyn_cast<nn::DifferentiableOpInterface>(op);
  if (!rule || llvm::none_of(results, [](Value value) { return !!value; }))
    return;
  rule.buildVjp(builder, results, operands);
  for (auto [operand, cotangent] : llvm::zip(op->getOperands(), operands))
    cotangents.add(operand, cotangent);
}

/// Replaces the results of `function` by the gradients of its arguments. It
/// gets an argument for the cotangent of each result that `seeded` names.
/// Gives the argument of which each result is the gradient.
static std::vector<unsigned> makeReverse(func::FuncOp function,
                                         ArrayRef<unsigned> seeded) {
  Block &body = function.getBody().front();
  Operation *end = body.getTerminator();
  SmallVector<Operation *> forward;
  for (Operation &op : body.without_terminator())
    forward.push_back(&op);
  SmallVector<Value> arguments(body.getArguments());

  OpBuilder builder(end);
  Cotangents cotangents(builder);
  for (unsigned result : seeded) {
    Value value = end->getOperand(result);
    cotangents.add(value, body.addArgument(value.getType(), value.getLoc()));
  }
  for (Operation *op : llvm::reverse(forward))
    differentiate(op, builder, cotangents);

  SmallVector<Value> gradients;
  std::vector<unsigned> gradientOf;
  for (auto [index, argument] : llvm::enumerate(arguments))
    if (Value gradient = cotangents.of(argument)) {
      gradients.push_back(gradient);
      gradientOf.push_back(index);
    }
  end->setOperands(gradients);
  function.setType(builder.getFunctionType(body.getArgumentTypes(),
                                           ValueRange(gradients).getTypes()));
  return gradientOf;
}

//===----------------------------------------------------------------------===//
// One case
//===----------------------------------------------------------------------===//

static void checkGradients(func::FuncOp function, TensorMap inputs,
                           const json::Object &test) {
  SmallVector<unsigned> seeded;
  unsigned arguments = function.getNumArguments();
  const json::Array &cotangents = *test.getArray("cotangents");
  for (auto [index, cotangent] : llvm::enumerate(cotangents)) {
    if (cotangent.getAsNull())
      continue;
    inputs["arg" + std::to_string(arguments + seeded.size())] =
        tensorOf(function.getResultTypes()[index], cotangent);
    seeded.push_back(index);
  }
  std::vector<unsigned> gradientOf = makeReverse(function, seeded);
  ASSERT_TRUE(succeeded(verify(function)));

  TensorMap results = evaluate(function, inputs, Rounding::Declared);
  const json::Array &expected = *test.getArray("gradients");
  size_t checked = 0;
  for (auto [index, argument] : llvm::enumerate(gradientOf)) {
    if (expected[argument].getAsNull())
      continue;
    expectClose(results.at("result" + std::to_string(index)),
                expected[argument],
                "gradient of input " + std::to_string(argument));
    ++checked;
  }
  EXPECT_EQ(checked, llvm::count_if(expected,
                                    [](const json::Value &value) {
                                      return !value.getAsNull();
                                    }))
      << "an input has no gradient";
}

static void checkCase(MLIRContext &context, const json::Object &test) {
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(*test.getString("mlir"), &context);
  ASSERT_TRUE(module);
  auto function = *module->getOps<func::FuncOp>().begin();

  TensorMap inputs;
  for (auto [index, values] : llvm::enumerate(*test.getArray("inputs")))
    inputs["arg" + std::to_string(index)] =
        tensorOf(function.getArgumentTypes()[index], values);
  TensorMap results = evaluate(function, inputs, Rounding::Declared);
  for (auto [index, values] : llvm::enumerate(*test.getArray("outputs")))
    expectClose(results.at("result" + std::to_string(index)), values,
                "output " + std::to_string(index));
  checkGradients(function, inputs, test);
}

TEST(Golden, EveryOpAgreesWithPyTorchForwardAndBackward) {
  MLIRContext context;
  context.loadDialect<func::FuncDialect, nn::NNDialect>();
  json::Value golden = readGolden("nn_ops.json");
  const json::Array &cases = *golden.getAsObject()->getArray("cases");
  EXPECT_GE(cases.size(), 60u);
  for (const json::Value &test : cases) {
    SCOPED_TRACE(test.getAsObject()->getString("name")->str());
    checkCase(context, *test.getAsObject());
  }
}

// A new differentiable op of a model must get a golden case.
TEST(Golden, EveryDifferentiableOpHasACase) {
  MLIRContext context;
  context.loadDialect<func::FuncDialect, nn::NNDialect>();
  json::Value golden = readGolden("nn_ops.json");
  std::string text;
  for (const json::Value &test : *golden.getAsObject()->getArray("cases"))
    text += test.getAsObject()->getString("mlir")->str();
  for (RegisteredOperationName op : context.getRegisteredOperations()) {
    if (op.getDialectNamespace() == nn::NNDialect::getDialectNamespace() &&
        op.hasInterface<nn::DifferentiableOpInterface>()) {
      EXPECT_NE(text.find(op.getStringRef().str() + " "), std::string::npos)
          << op.getStringRef().str();
    }
  }
}
