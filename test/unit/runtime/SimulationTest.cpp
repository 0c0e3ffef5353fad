//===- SimulationTest.cpp - Steps of problems on machines -----------------===//
//
// How long ops, kernels and collectives of a problem take, by hand, and what a
// step adds up.
//
//===----------------------------------------------------------------------===//
#include "TemporaryFolder.h"
#include "fsdp/Schedule/ProblemText.h"
#include "fsdp/Simulation/StepReport.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"

using namespace fsdp;
using namespace fsdp::problem;
using namespace fsdp::simulation;
using namespace fsdp::test;

namespace {

/// 1 TFLOP/s in f32, 2 in bf16, 100 GB/s, 1 us a launch; a fast gather of 2
/// ranks takes 10 us and its bytes at 1 GB/s.
const char *const kMachine = R"(name = "plain"
[device]
memory_bytes = 1e9
ranks_per_node = 4
[compute]
f32 = 1e12
bf16 = 2e12
[matmul]
share = 1
[attention]
forward = 0.5
backward = 0.25
[memory]
bytes_per_second = 100e9
share = 1
[launch]
kernel_seconds = 1e-6
host_seconds = 5e-6
[slowdown]
gather = 0.25
[exact]
latency_seconds = 20e-6
bus_bytes_per_second = 1e9
kernel_bytes = 2.5
kernel_bytes_per_second = 100e9
[[curve]]
collective = "all_gather"
ranks_per_node = 2
protocols = [{ name = "line", latency_seconds = 10e-6, bytes_per_second = 1e9 }]
)";

/// Each op has 100,000 bytes, which is 1 us, unless its kernel knows better.
const char *const kProblem = R"(fsdp.problem 1
target "test"
persistent 1000
ranks 2
tokens 512
runs "train" "train" 3
runs "train" "update" 1
runs "evaluate" "update" 1
kernel 100 250 fuses results element read 0 element for 1
kernel 100 250 fuses results element read 0 element for 1 read 1 element for 1
math product bf16 1 100 200 50
math attention bf16 1000000
math attention_grad bf16 1000000
group 2 1
program "train"
argument "x" 100000
result "loss"
op read fwd name "read" gives 50000 states "w"
op collective fwd path "w" name "all_gather" takes 1 gives 100000 addressed recomputable all_gather sum f32 f32 ranks 2 group 0 parameter "w" items 12500 25000
op work fwd path "a" name "linear" takes 0 2 gives 100000 addressed pure aligned flops 2000000 bytes 100000 math 0
op kernel fwd path "a" name "silu" takes 3 gives 100000 addressed pure bytes 250000
op kernel fwd path "a" name "mul" takes 4 3 gives 100000 addressed pure detail 1 bytes 300000
op work fwd path "a" name "attention" takes 5 gives 100000 addressed pure aligned flops 2000000 bytes 200000 math 1
op work bwd path "a" name "attention_grad" takes 6 gives 100000 addressed pure aligned flops 5000000 bytes 200000 math 2
op work bwd path "a" name "loss" takes 7 gives 4 addressed pure bytes 100000
op return fwd name "return" takes 8
program "update"
op update update name "adamw" states "w" bytes 700000
op return fwd name "return"
)";

class Simulations : public ::testing::Test {
protected:
  Simulations()
      : problem(parse(kProblem, "problem")), candidate(problem),
        model(readMachine(kMachine, "plain.toml")) {}

  Id opCalled(const std::string &name) {
    const Program &program = problem.programs[0];
    for (Id i = 0; i < program.ops.size(); ++i)
      if (problem.text(program.ops[i].name) == name)
        return i;
    ADD_FAILURE() << name;
    return 0;
  }
  double microseconds(const std::string &op) {
    return durationOf(problem, problem.programs[0], opCalled(op), costs)
               .seconds() *
           1e6;
  }
  StepResult step(const std::string &name = "train") {
    return simulate(problem, candidate, name, costs);
  }
  /// Of the group with these axes and nodes of 8 ranks: nodes, ranks in each.
  std::pair<int64_t, int64_t> shape(const RankGroup &axes) {
    Collective collective;
    collective.group = problem.internGroup(axes);
    collective.ranks = 1;
    for (GroupAxis axis : axes)
      collective.ranks *= axis.size;
    GroupShape shape = shapeOf(problem, collective, 8);
    return {shape.nodes, shape.ranksPerNode};
  }
  void profile(const std::string &text) {
    model = CostModel(model.machine(), readProfile(text, "profile.toml"));
  }

  Problem problem;
  Candidate candidate;
  CostModel model;
  Costs costs{model};
};

} // namespace

TEST_F(Simulations, ProductsTakeTheirOperations) {
  // 2 MFLOP at 2 TFLOP/s, and the launch.
  EXPECT_NEAR(microseconds("linear"), 2, 1e-6);
}

TEST_F(Simulations, AttentionTakesItsShareOfThePeak) {
  EXPECT_NEAR(microseconds("attention"), 1 + 1, 1e-6);
  EXPECT_NEAR(microseconds("attention_grad"), 2 + 1, 1e-6);
}

TEST_F(Simulations, OthersTakeTheirBytes) {
  EXPECT_NEAR(microseconds("silu"), 2.5 + 1, 1e-6);
  EXPECT_NEAR(microseconds("loss"), 1 + 1, 1e-6);
}

TEST_F(Simulations, MeasuredShapesAndKernelsCount) {
  problem.kernels[1].isExpensive = true;
  problem.maths[0].transposeRhs = true;
  problem.maths[1].m = problem.maths[1].n = 64;
  problem.maths[1].k = 32;
  model = CostModel(readMachine(std::string(kMachine) + R"(
[[product]]
type = "bf16"
layout = "nt"
rates = [[100, 200, 50, 0.5e12], [100, 200, 51, 1e15]]
[[attention_pass]]
type = "bf16"
pass = "forward"
rates = [[64, 64, 32, 0.25e12]]
[[kernel]]
name = "pointwise"
points = [[250000, 5e-6]]
[[kernel]]
name = "expensive"
points = [[300000, 7e-6]]
[[kernel]]
name = "update"
points = [[700000, 9e-6]]
[[kernel]]
name = "loss"
points = [[100000, 11e-6]]
)",
                                "plain.toml"));
  EXPECT_NEAR(microseconds("linear"), 4 + 1, 1e-6);
  EXPECT_NEAR(microseconds("attention"), 4 + 1, 1e-6);
  EXPECT_NEAR(microseconds("silu"), 5 + 1, 1e-6);
  EXPECT_NEAR(microseconds("mul"), 7 + 1, 1e-6);
  EXPECT_NEAR(microseconds("loss"), 11 + 1, 1e-6);
  // The other direction has no rates, and this layout none.
  EXPECT_NEAR(microseconds("attention_grad"), 2 + 1, 1e-6);
  problem.maths[0].transposeLhs = true;
  EXPECT_NEAR(microseconds("linear"), 2, 1e-6);
  EXPECT_NEAR(step("evaluate").total.seconds() * 1e6, 9 + 1, 1e-6);
}

TEST_F(Simulations, WhatIsNoWorkTakesNoTime) {
  EXPECT_EQ(microseconds("read"), 0);
  EXPECT_EQ(microseconds("return"), 0);
}

TEST_F(Simulations, CollectivesTakeTheirWholeMessage) {
  EXPECT_NEAR(microseconds("all_gather"), 10 + 100, 1e-6);
}

TEST_F(Simulations, ExactSumsAreAnExchangeAndAKernel) {
  Collective &collective = problem.programs[0].collectives[0];
  collective.kind = rt::CollectiveKind::ReduceScatter;
  // 100,000 bytes: half of them at 1 GB/s, 250,000 at 100 GB/s.
  EXPECT_NEAR(microseconds("all_gather"), 20 + 50 + 2.5, 1e-6);
  // In bf16 half of them travel.
  collective.in = rt::DType::BF16;
  EXPECT_NEAR(microseconds("all_gather"), 20 + 25 + 1.25, 1e-6);
}

TEST_F(Simulations, MachineWithoutTheGroupSaysSo) {
  Collective &collective = problem.programs[0].collectives[0];
  collective.kind = rt::CollectiveKind::ReduceScatter;
  collective.isFast = true;
  std::string message = messageOf([&] { step(); });
  EXPECT_NE(message.find("plain"), std::string::npos) << message;
  EXPECT_NE(message.find("reduce_scatter"), std::string::npos) << message;
}

TEST_F(Simulations, GroupsLieInNodes) {
  using Shape = std::pair<int64_t, int64_t>;
  EXPECT_EQ(shape({{8, 1}}), Shape(1, 8));
  EXPECT_EQ(shape({{64, 1}}), Shape(8, 8));
  EXPECT_EQ(shape({{4, 1}}), Shape(1, 4));
  // dp outside of 8 ranks of tp: one rank in each node.
  EXPECT_EQ(shape({{32, 8}}), Shape(32, 1));
  // Outside of 2: four of them in a node.
  EXPECT_EQ(shape({{32, 2}}), Shape(8, 4));
  EXPECT_EQ(shape({{4, 16}, {2, 1}}), Shape(4, 2));
  // 12 ranks do not fill two nodes of 8.
  EXPECT_EQ(shape({{12, 1}}), Shape(2, 6));
  EXPECT_EQ(shape({{9, 1}}), Shape(3, 3));
  EXPECT_EQ(shape({}), Shape(1, 1));
}

TEST_F(Simulations, FusedKernelTouchesEachTensorOnce) {
  StepResult result = step();
  const Sequence &sequence = result.programs[0].sequence;
  // silu and mul are one kernel: it reads the product once, and nobody reads
  // what silu gives.
  bool isFound = false;
  for (const Step &one : sequence.steps)
    if (one.members.count == 2) {
      isFound = true;
      EXPECT_EQ(one.bytes, 200000);
    }
  EXPECT_TRUE(isFound);
}

TEST_F(Simulations, StepAddsItsRunsUp) {
  StepResult result = step();
  ASSERT_EQ(result.programs.size(), 2u);
  // Gather, linear, the kernel, attention, its gradient, loss.
  double train = 110 + 2 + 3 + 2 + 3 + 2, update = 7 + 1;
  EXPECT_NEAR(result.programs[0].timeline.total.seconds() * 1e6, train, 1e-6);
  EXPECT_NEAR(result.programs[1].timeline.total.seconds() * 1e6, update, 1e-6);
  EXPECT_NEAR(result.total.seconds() * 1e6, 3 * train + update, 1e-6);
  EXPECT_NEAR(result.exposed.seconds() * 1e6, 330, 1e-6);
  EXPECT_NEAR(result.compute.seconds() * 1e6, 36 + 8, 1e-6);
  EXPECT_NEAR(result.link.seconds() * 1e6, 330, 1e-6);
  EXPECT_TRUE(result.bound <= result.total);
}

TEST_F(Simulations, RatesAreOfTheStep) {
  StepResult result = step();
  EXPECT_NEAR(result.tokensPerSecond(), 512 / result.total.seconds(), 1e-3);
  // Attention's gradient computes the scores again: 4 of 5 count.
  EXPECT_EQ(result.modelFlops, 3 * (2e6 + 2e6 + 4e6));
  EXPECT_EQ(peakFlopsOf(problem, model.machine()), 2e12);
}

TEST_F(Simulations, StepsAreFoundByName) {
  EXPECT_NEAR(step("evaluate").total.seconds() * 1e6, 8, 1e-6);
  EXPECT_EQ(messageOf([&] { step("tain"); }),
            "the problem has no step 'tain'; its steps: train, evaluate");
}

TEST_F(Simulations, EagerKernelsAreOneForEachOp) {
  profile("name = \"eager\"\n[kernels]\npointwise = \"eager\"\n");
  // silu 2.5 and 1, mul 3 and 1, instead of 2 and 1.
  EXPECT_NEAR(step().programs[0].timeline.total.seconds() * 1e6, 122 + 4.5,
              1e-6);
}

TEST_F(Simulations, HostIssuesWhereNoGraphDoes) {
  profile(
      "name = \"host\"\n[launch]\nfrom = \"host\"\nmodule_seconds = 40e-6\n");
  // The first gather is issued after 45 us, the rest while it runs.
  EXPECT_NEAR(step().programs[0].timeline.total.seconds() * 1e6, 122 + 45,
              1e-6);
}

TEST_F(Simulations, PeakIsOfTheCategories) {
  PeakMemory peak = step().peak;
  EXPECT_EQ(peak.parameters, 1000);
  EXPECT_GE(peak.gathered, 100000);
  EXPECT_GE(peak.activations, 100000);
  Live alive = live(problem, order(problem, candidate, 0));
  EXPECT_EQ(peak.total(), 1000 + alive.peak);
}

TEST_F(Simulations, PlansThatCannotBeAppliedAreRefused) {
  Decision decision;
  decision.overlap = true;
  decision.startAfter = "fwd nowhere linear";
  candidate.programs[0].of[opCalled("all_gather")] = candidate.add(decision);
  EXPECT_NE(messageOf([&] { step(); }).find("fwd nowhere linear"),
            std::string::npos);
}

TEST_F(Simulations, ReportsSayTheSame) {
  StepResult result = step();
  Report report{problem, result, costs};
  nlohmann::json json = parseJson(jsonOf(report), "report");
  EXPECT_NEAR(json["step_seconds"], result.total.seconds(), 1e-15);
  EXPECT_EQ(json["peak_memory_bytes"]["total"], result.peak.total());
  ASSERT_EQ(json["collectives"].size(), 1u);
  EXPECT_EQ(json["collectives"][0]["address"], "fwd w all_gather");
  EXPECT_EQ(json["collectives"][0]["times"], 3);
  std::string text = textOf(report, 10);
  EXPECT_NE(text.find("fwd w all_gather"), std::string::npos) << text;
  EXPECT_EQ(textOf(report, 0).find("fwd w all_gather"), std::string::npos);
}

TEST_F(Simulations, TraceHasEveryIntervalOfTheStep) {
  StepResult result = step();
  nlohmann::json json =
      parseJson(chromeTraceOf({problem, result, costs}), "trace");
  double end = 0;
  int events = 0;
  for (const nlohmann::json &event : json["traceEvents"]) {
    if (event["ph"] != "X")
      continue;
    ++events;
    end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_EQ(events, 3 * 6 + 1);
  EXPECT_NEAR(end, result.total.seconds() * 1e6, 1e-6);
}
