//===- InterpreterTest.cpp - Collectives on simulated ranks ---------------===//
//
// Every rank's values are a digit of their own in base 16, so that a result
// says which ranks and elements it was made of. Groups are written by hand.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Interpreter/Grid.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::interpret;

namespace {

struct Groups {
  const char *mesh, *axes;
  /// Ranks of each group by position.
  std::vector<std::vector<int>> groups;
};

void PrintTo(const Groups &groups, std::ostream *os) {
  *os << groups.axes << " of " << groups.mesh;
}

const Groups kGroups[] = {
    {R"("a" = 2)", R"("a")", {{0, 1}}},
    {R"("a" = 3)", R"("a")", {{0, 1, 2}}},
    {R"("a" = 2, "b" = 2)", R"("b")", {{0, 1}, {2, 3}}},
    {R"("a" = 2, "b" = 2)", R"("a")", {{0, 2}, {1, 3}}},
    {R"("a" = 2, "b" = 2)", R"("b", "a")", {{0, 2, 1, 3}}},
    {R"("a" = 2, "b" = 3)", R"("a")", {{0, 3}, {1, 4}, {2, 5}}},
    {R"("a" = 2, "b" = 3)", R"("a", "b")", {{0, 1, 2, 3, 4, 5}}},
    {R"("a" = 2, "b" = 3)", R"("b", "a")", {{0, 3, 1, 4, 2, 5}}},
    {R"("a" = 4)", R"("a":(1)2)", {{0, 2}, {1, 3}}},
    {R"("a" = 4)", R"("a":(2)2)", {{0, 1}, {2, 3}}},
};

class Interpreter : public testing::Test {
protected:
  Interpreter() {
    context.loadDialect<func::FuncDialect, nn::NNDialect, dist::FsdpDialect>();
  }

  func::FuncOp parse(const std::string &text) {
    module = parseSourceString<ModuleOp>(text, &context);
    return module ? module->lookupSymbol<func::FuncOp>("f") : func::FuncOp();
  }

  /// @f of `argument` whose body gives %y of type `result`.
  func::FuncOp program(const std::string &mesh, const std::string &argument,
                       const std::string &body, const std::string &result,
                       const std::string &declarations = "") {
    return parse(llvm::formatv("fsdp.mesh @mesh [{0}]\n{1}\n"
                               "func.func @f(%x: {2}) -> {3} "
                               "attributes {{fsdp.local} {{\n{4}\n"
                               "return %y : {3}\n}",
                               mesh, declarations, argument, result, body));
  }

  static GridInputs inputs(const std::vector<DenseTensor> &ranks) {
    GridInputs inputs;
    for (const DenseTensor &tensor : ranks)
      inputs.arguments.push_back({{"arg0", tensor}});
    return inputs;
  }

  /// The message of a run that must fail.
  static std::string errorOf(func::FuncOp program, const GridInputs &inputs) {
    try {
      run(program, inputs);
    } catch (const std::runtime_error &error) {
      return error.what();
    }
    return "no error";
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

/// Element e of rank r is (e + 1) 16^r.
double digit(int rank, int64_t element) {
  return (element + 1) * std::pow(16, rank);
}

std::vector<DenseTensor> digits(int64_t ranks, int64_t elements) {
  std::vector<DenseTensor> tensors;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    tensors.push_back(DenseTensor::full({elements}));
    for (int64_t e = 0; e < elements; ++e)
      tensors[rank].values[e] = digit(rank, e);
  }
  return tensors;
}

// Parameters come to a fixture by a second base class.
// NOLINTNEXTLINE(misc-multiple-inheritance)
class InterpreterGroups : public Interpreter,
                          public testing::WithParamInterface<Groups> {
protected:
  int64_t parts() const { return GetParam().groups[0].size(); }
  int64_t ranks() const { return parts() * GetParam().groups.size(); }
  /// A size of which the last rank's part is short.
  int64_t uneven() const { return 2 * parts() - 1; }

  /// %x of `from` elements becomes %y of `to` by `op`, of type `element`.
  std::vector<DenseTensor> collective(const std::string &op, int64_t from,
                                      int64_t to, const std::string &suffix,
                                      const std::string &element = "f64") {
    std::string in = llvm::formatv("tensor<{0}x{1}>", from, element);
    std::string out = llvm::formatv("tensor<{0}x{1}>", to, element);
    func::FuncOp function =
        program(GetParam().mesh, in,
                llvm::formatv("%y = fsdp.{0} %x on @mesh[{1}] {2} : {3} -> {4}",
                              op, GetParam().axes, suffix, in, out),
                out);
    std::vector<DenseTensor> results;
    if (!function) {
      ADD_FAILURE() << "the program does not parse";
      return std::vector<DenseTensor>(ranks(), DenseTensor::full({to}));
    }
    for (TensorMap &map : run(function, inputs(digits(ranks(), from))).results)
      results.push_back(map.at("result0"));
    return results;
  }

  /// Calls `check(rank, its position, the ranks of its group)`.
  template <typename Check> void forEachRank(Check check) {
    for (const std::vector<int> &group : GetParam().groups)
      for (size_t position = 0; position < group.size(); ++position)
        check(group[position], position, group);
  }

  static double sum(const std::vector<int> &group, int64_t element) {
    double sum = 0;
    for (int rank : group)
      sum += digit(rank, element);
    return sum;
  }
};

TEST_P(InterpreterGroups, AllGather) {
  auto results = collective("all_gather", 2, uneven(), "dim 0");
  forEachRank([&](int rank, size_t, const std::vector<int> &group) {
    for (int64_t e = 0; e < uneven(); ++e)
      EXPECT_EQ(results[rank].values[e], digit(group[e / 2], e % 2))
          << "rank " << rank << " element " << e;
  });
}

TEST_P(InterpreterGroups, ReduceScatter) {
  auto results = collective("reduce_scatter sum", uneven(), 2, "dim 0");
  forEachRank([&](int rank, size_t position, const std::vector<int> &group) {
    for (int64_t e = 0; e < 2; ++e) {
      int64_t whole = position * 2 + e;
      EXPECT_EQ(results[rank].values[e],
                whole < uneven() ? sum(group, whole) : 0)
          << "rank " << rank << " element " << e;
    }
  });
}

TEST_P(InterpreterGroups, AllReduce) {
  auto sums = collective("all_reduce sum", 3, 3, "");
  auto largest = collective("all_reduce max", 3, 3, "");
  auto integers = collective("all_reduce sum", 3, 3, "", "i64");
  forEachRank([&](int rank, size_t, const std::vector<int> &group) {
    int last = *std::max_element(group.begin(), group.end());
    for (int64_t e = 0; e < 3; ++e) {
      EXPECT_EQ(sums[rank].values[e], sum(group, e));
      EXPECT_EQ(largest[rank].values[e], digit(last, e));
      EXPECT_EQ(integers[rank].values[e], sum(group, e));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Meshes, InterpreterGroups, testing::ValuesIn(kGroups));

//===----------------------------------------------------------------------===//
// The tree
//===----------------------------------------------------------------------===//

class InterpreterTree : public Interpreter {
protected:
  /// The sum in f32 over `axes`, of what each rank gives.
  double sum(const std::string &mesh, const std::string &axes,
             const std::vector<double> &ranks) {
    func::FuncOp function = program(mesh, "tensor<f32>",
                                    "%y = fsdp.all_reduce sum %x on @mesh[" +
                                        axes + "] : tensor<f32> -> tensor<f32>",
                                    "tensor<f32>");
    std::vector<DenseTensor> tensors;
    for (double value : ranks)
      tensors.push_back(DenseTensor::scalar(value));
    return run(function, inputs(tensors), Rounding::Declared)
        .results[0]
        .at("result0")
        .values[0];
  }
};

// In f32 1e8 + 1 is 1e8: who is added first shows.
TEST_F(InterpreterTree, LeftSideIsTheLargestPowerOfTwo) {
  EXPECT_EQ(sum(R"("a" = 3)", R"("a")", {1e8, -1e8, 1}), 1);
  EXPECT_EQ(sum(R"("a" = 3)", R"("a")", {-1e8, 1, 1e8}), 0);
  EXPECT_EQ(sum(R"("a" = 6)", R"("a")", {-1e8, 0, 1e8, 1, 0, 0}), 0);
}

TEST_F(InterpreterTree, TreesNestByAxisInTheOrderOfTheMesh) {
  for (const char *axes : {R"("a", "b")", R"("b", "a")"})
    EXPECT_EQ(sum(R"("a" = 2, "b" = 3)", axes, {-1e8, 0, 1e8, 1, 0, 0}), 1)
        << axes;
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

// Given whole, held in parts, given back whole.
TEST_F(Interpreter, StateIsCutAndJoined) {
  func::FuncOp function =
      program(R"("a" = 2)", "tensor<2xf64>",
              "%w = nn.read @w : tensor<2xf64>\n"
              "%y = nn.mul %w, %x : tensor<2xf64>\n"
              "nn.gradient @w, %y : tensor<2xf64>",
              "tensor<2xf64>",
              R"(nn.parameter @w : tensor<3xf64> init #nn.zeros
           {fsdp.placement = #fsdp.placement<[{| "a"}]>})");
  ASSERT_TRUE(function);
  GridInputs given = inputs({{{2}, {1, 10}}, {{2}, {100, 1000}}});
  given.state["w"] = {{3}, {2, 3, 4}};
  GridOutputs outputs = run(function, given);
  EXPECT_EQ(outputs.state.at("w.grad").values,
            (std::vector<double>{2, 30, 400}));
  EXPECT_EQ(outputs.results[1].at("result0").values,
            (std::vector<double>{400, 0}));
}

TEST_F(Interpreter, ReplicasThatDifferAreNamed) {
  func::FuncOp function = program(
      R"("a" = 3)", "tensor<2xf64>",
      "nn.gradient @w, %x : tensor<2xf64>\n%y = nn.neg %x : tensor<2xf64>",
      "tensor<2xf64>", "nn.parameter @w : tensor<2xf64> init #nn.zeros");
  ASSERT_TRUE(function);
  std::string error =
      errorOf(function, inputs({{{2}, {1, 2}}, {{2}, {1, 2}}, {{2}, {1, 5}}}));
  EXPECT_NE(error.find("'w.grad' differs between rank 0 (2.000000) and rank 2 "
                       "(5.000000), element 1"),
            std::string::npos)
      << error;
}

TEST_F(Interpreter, PaddingThatIsNotZeroIsNamed) {
  func::FuncOp function = program(
      R"("a" = 2)", "tensor<2xf64>",
      "nn.gradient @w, %x : tensor<2xf64>\n%y = nn.neg %x : tensor<2xf64>",
      "tensor<2xf64>",
      R"(nn.parameter @w : tensor<3xf64> init #nn.zeros
           {fsdp.placement = #fsdp.placement<[{| "a"}]>})");
  ASSERT_TRUE(function);
  std::string error = errorOf(function, inputs(digits(2, 2)));
  EXPECT_EQ(error, "'w.grad' has padding that is not zero on rank 1");
}

TEST_F(Interpreter, InputsAreChecked) {
  func::FuncOp function =
      program(R"("a" = 2)", "tensor<2xf64>",
              "%w = nn.read @w : tensor<2xf64>\n"
              "%y = nn.mul %w, %x : tensor<2xf64>",
              "tensor<2xf64>",
              "nn.parameter @w : tensor<2xf64> init #nn.normal<std = 1.0>");
  ASSERT_TRUE(function);
  EXPECT_EQ(errorOf(function, inputs(digits(3, 2))),
            "arguments are given for 3 ranks, but the mesh has 2");
  EXPECT_EQ(errorOf(function, inputs(digits(2, 3))),
            "input 'arg0' is 3, but the argument is 2");
  EXPECT_EQ(errorOf(function, {{}, {{}}}), "no input is called 'arg0'");
  EXPECT_EQ(errorOf(function, inputs(digits(2, 2))),
            "'w' starts with random values; it must be among the inputs");
}

//===----------------------------------------------------------------------===//
// Futures
//===----------------------------------------------------------------------===//

class InterpreterFutures : public Interpreter {
protected:
  std::string errorOfBody(const std::string &body) {
    func::FuncOp function =
        program(R"("a" = 2)", "tensor<2xf64>",
                R"(%f = fsdp.async : !fsdp.future<tensor<2xf64>> {
             %g = fsdp.all_reduce sum %x on @mesh["a"]
                 : tensor<2xf64> -> tensor<2xf64>
             fsdp.yield %g : tensor<2xf64>
           })" + body,
                "tensor<2xf64>", "func.func private @g()");
    return function ? errorOf(function, inputs(digits(2, 2))) : "no program";
  }
};

const char *const kAwait = "\n%{0} = fsdp.await %f : "
                           "!fsdp.future<tensor<2xf64>> -> tensor<2xf64>";

TEST_F(InterpreterFutures, AreAwaitedOnce) {
  std::string once = llvm::formatv(kAwait, "y");
  std::string twice = once + llvm::formatv(kAwait, "z").str();
  EXPECT_EQ(errorOfBody(once), "no error");
  EXPECT_EQ(errorOfBody(twice),
            "'fsdp.await' waits for a future that was awaited before");
  EXPECT_EQ(errorOfBody("\n%y = nn.neg %x : tensor<2xf64>"),
            "a future of @f is never awaited");
}

TEST_F(InterpreterFutures, UnknownOpsAreNamed) {
  EXPECT_EQ(errorOfBody("\nfunc.call @g() : () -> ()" +
                        llvm::formatv(kAwait, "y").str()),
            "the interpreter knows no 'func.call'");
}

} // namespace
