//===- StepsTest.cpp - Training steps of a context ------------------------===//
//
// Linked once with each runtime; that of CUDA is run by fsdp-fake-device. What
// the host gets of a step is the same, whether it ends before the next begins
// or is a graph that runs meanwhile.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Core/Context.h"
#include <gtest/gtest.h>

using namespace fsdp;
using namespace fsdp::rt;

namespace {

// Places in the arena.
constexpr uint64_t kToken = 0, kValue = 64, kResult = 128, kTable = 192,
                   kRow = 256, kBytes = 320;

void copyValue(Context &c) {
  rt::copy(c, Stream::Compute, at(c, kValue), at(c, kResult), sizeof(float));
}
void lookUp(Context &c) {
  embedding(c, Stream::Compute, DType::F32, /*rows=*/1, /*classes=*/4,
            /*cols=*/4, /*absent=*/false, at(c, kToken), at(c, kTable),
            at(c, kRow));
}

/// A step that copies a value and looks up a token.
class Steps : public testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    artifact.abi = FSDP_ARTIFACT_ABI;
    artifact.manifest = "{}";
    artifact.arena_bytes = kBytes;
    artifact.programs = 2;
    artifact.program = programs;
    ContextOptions options;
    options.meshAxes = {1};
    options.exchanges = {{{{kValue, 4}}, {{kResult, 4}}}, {{{kToken, 4}}, {}}};
    options.step = {0, 1};
    options.graphs = GetParam();
    std::string error;
    context = createContext(artifact, options, error);
    ASSERT_TRUE(context) << error;
  }

  float &value() { return place<float>(kValue); }
  float result() { return place<float>(kResult); }

  void begin(float newValue, int32_t token) {
    beginStep(*context, ++steps, [&](size_t run) {
      if (run == 0)
        value() = newValue;
      else
        place<int32_t>(kToken) = token;
    });
  }
  /// The error of the step that ends.
  std::string end() {
    std::string error;
    bool isGood = endStep(*context, error);
    EXPECT_EQ(isGood, error.empty());
    return error;
  }

  ContextPtr context;
  int64_t steps = 0;

private:
  template <typename T> T &place(uint64_t offset) {
    return *reinterpret_cast<T *>(hostAddress(*context, offset));
  }

  fsdp_program programs[2] = {{"copy", copyValue}, {"look up", lookUp}};
  fsdp_artifact artifact{};
};

} // namespace

TEST_P(Steps, OnlyGraphsOverlap) {
  bool areGraphs = runtimeTarget() == kCudaTarget && GetParam();
  for (int step = 0; step < 4; ++step) {
    begin(1, 0);
    EXPECT_EQ(stepsOverlap(*context), areGraphs && step > 0);
    end();
  }
}

TEST_P(Steps, EachHasItsOwnInputsAndOutputs) {
  constexpr int kSteps = 7;
  int ended = 0;
  auto endTo = [&](int count) {
    for (; ended < count; ++ended) {
      EXPECT_EQ(end(), "");
      EXPECT_EQ(result(), 10.f + float(ended));
    }
  };
  for (int step = 0; step < kSteps; ++step) {
    if (!stepsOverlap(*context))
      endTo(step);
    begin(10.f + float(step), /*token=*/1);
    // Belongs to the next step.
    value() = -1;
    endTo(step);
  }
  endTo(kSteps);
}

TEST_P(Steps, WrongDataIsThatOfItsStepAndProgram) {
  const std::string wrong =
      "program 'look up': a token is outside the vocabulary";
  for (bool isWrong : {false, false, true, false, false, true, true, false}) {
    begin(1, isWrong ? 4 : 3);
    EXPECT_EQ(end(), isWrong ? wrong : "");
  }
}

TEST_P(Steps, WrongDataOfTheStepBeforeIsNotThatOfTheNext) {
  begin(1, 0);
  EXPECT_EQ(end(), "");
  begin(2, -1);
  bool overlap = stepsOverlap(*context);
  if (overlap)
    begin(3, 0);
  EXPECT_NE(end(), "");
  EXPECT_EQ(result(), 2);
  if (!overlap)
    begin(3, 0);
  EXPECT_EQ(end(), "");
  EXPECT_EQ(result(), 3);
}

TEST_P(Steps, SingleProgramsRunAfterThem) {
  for (int step = 0; step < 3; ++step) {
    begin(1, 0);
    end();
  }
  value() = 5;
  std::string error;
  EXPECT_TRUE(runProgram(*context, 0, error)) << error;
  EXPECT_EQ(result(), 5);
  begin(6, 0);
  EXPECT_EQ(end(), "");
  EXPECT_EQ(result(), 6);
}

TEST_P(Steps, AContextEndsWithStepsOnTheirWay) {
  begin(1, 0);
  EXPECT_EQ(end(), "");
  begin(2, 0);
  if (stepsOverlap(*context))
    begin(3, 0);
}

INSTANTIATE_TEST_SUITE_P(WithGraphs, Steps, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(WithoutGraphs, Steps, testing::Values(false));
