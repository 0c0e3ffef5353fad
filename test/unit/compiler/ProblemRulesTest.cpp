//===- ProblemRulesTest.cpp - Each rule on a small problem ----------------===//
//
// Problems written by hand: what recomputation, buckets, starts and waits,
// kernels, lowering and batched casts do to a few ops.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Schedule/ProblemLive.h"
#include "fsdp/Schedule/ProblemText.h"
#include "fsdp/Support/Error.h"
#include <gtest/gtest.h>

using namespace fsdp;
using namespace fsdp::problem;

namespace {

/// Two parameters, gathered, multiplied by and reduced, in both directions.
const char *const kTwoLayers = R"(fsdp.problem 1
target "test"
kernel 8 8 fuses results element read 0 element for 1
kernel 4 8 fuses results element read 0 element for 1
program "train"
argument "x" 256
op read fwd name "read" gives 128 states "a"
op kernel fwd name "cast" takes 1 gives 64 pure moves cloned movable narrows detail 1
op collective fwd path "a" name "all_gather" takes 2 gives 128 addressed recomputable all_gather sum bf16 bf16 ranks 2 parameter "a" items 32 64
op read fwd name "read" gives 128 states "b"
op kernel fwd name "cast" takes 4 gives 64 pure moves cloned movable narrows detail 1
op collective fwd path "b" name "all_gather" takes 5 gives 128 addressed recomputable all_gather sum bf16 bf16 ranks 2 parameter "b" order 1 items 32 64
op work fwd path "a" name "linear" takes 0 3 gives 256 addressed pure aligned recomputable workspace 64
op kernel fwd path "a" name "silu" takes 7 gives 256 addressed pure recomputable
op kernel fwd path "a" name "exp" takes 8 gives 256 addressed pure recomputable
op work fwd path "b" name "linear" takes 9 6 gives 4 addressed pure aligned workspace 64
op seed fwd name "seed" takes 10 gives 4 pure
op work bwd path "b" name "dx" takes 11 6 gives 256 addressed pure aligned workspace 64
op work bwd path "b" name "dw" takes 9 11 gives 128 addressed pure aligned workspace 64
op collective bwd path "b" name "reduce_scatter" takes 13 gives 128 addressed reduce_scatter sum bf16 f32 ranks 2 parameter "b" order 1 key 1 items 32 64
op gradient bwd name "gradient" takes 14 states "b"
op work bwd path "a" name "dw" takes 8 12 3 gives 128 addressed pure aligned workspace 64
op collective bwd path "a" name "reduce_scatter" takes 15 gives 128 addressed reduce_scatter sum bf16 f32 ranks 2 parameter "a" key 1 items 32 64
op gradient bwd name "gradient" takes 16 states "a"
op return fwd name "return"
)";

Id opAt(const Problem &problem, const std::string &address) {
  const Program &program = problem.programs[0];
  for (Id number = 0; number < program.ops.size(); ++number)
    if (addressOf(problem, program.ops[number]) == address)
      return number;
  ADD_FAILURE() << address;
  return 0;
}

class ProblemRules : public ::testing::Test {
protected:
  ProblemRules() : problem(parse(kTwoLayers, "two")), candidate(problem) {}

  Decision &decide(const std::string &address) {
    Id number = opAt(problem, address);
    candidate.decisions.emplace_back();
    candidate.programs[0].of[number] = candidate.decisions.size() - 1;
    return candidate.decisions.back();
  }

  /// The steps as one text, "start", "await" and "narrow" before them.
  std::string steps() {
    sequence = order(problem, candidate, 0);
    if (!sequence.refusal.empty())
      return sequence.refusal;
    std::string text;
    for (const Step &step : sequence.steps) {
      static const char *const kWords[] = {"", "start ", "await ", "copy ",
                                           "narrow "};
      text += text.empty() ? "" : "\n";
      text += kWords[unsigned(step.kind)];
      for (Id i = step.members.begin; i < step.members.end(); ++i)
        text +=
            (i == step.members.begin ? "" : " + ") +
            addressOf(problem, problem.programs[0].ops[sequence.members[i].op],
                      sequence.members[i].isAgain);
    }
    return text;
  }

  Problem problem;
  Candidate candidate;
  Sequence sequence;
};

TEST_F(ProblemRules, WithoutDecisionsOpsStayWhereTheyAre) {
  EXPECT_EQ(steps(), "cast\nfwd a all_gather\ncast\nfwd b all_gather\n"
                     "fwd a linear\nfwd a silu + fwd a exp\nfwd b linear\n"
                     "copy \nbwd b dx\nbwd b dw\nbwd b reduce_scatter\n"
                     "bwd a dw\nbwd a reduce_scatter");
  // The seed is a buffer for the products that take it, each gradient is
  // produced in its range, and workspaces of the target count: 2 pieces of 32
  // f32.
  Live found = live(problem, sequence);
  EXPECT_EQ(found.ranges.size(), sequence.buffers.size());
  EXPECT_EQ(found.peak,
            *std::max_element(found.bytes.begin(), found.bytes.end()));
  EXPECT_EQ(found.bytes[0], 128);
}

TEST_F(ProblemRules, RecomputedValuesAreClonedBeforeTheirFirstUse) {
  decide("fwd a silu").recompute = true;
  EXPECT_EQ(steps(), "cast\nfwd a all_gather\ncast\nfwd b all_gather\n"
                     "fwd a linear\nfwd a silu + fwd a exp\nfwd b linear\n"
                     "copy \nbwd b dx\nbwd b dw\nbwd b reduce_scatter\n"
                     "again a silu\nbwd a dw\nbwd a reduce_scatter");
}

TEST_F(ProblemRules, AGatherIsClonedWithItsCast) {
  decide("fwd a all_gather").recompute = true;
  EXPECT_EQ(steps(), "cast\nfwd a all_gather\ncast\nfwd b all_gather\n"
                     "fwd a linear\nfwd a silu + fwd a exp\nfwd b linear\n"
                     "copy \nbwd b dx\nbwd b dw\nbwd b reduce_scatter\ncast\n"
                     "again a all_gather\nbwd a dw\nbwd a reduce_scatter");
}

TEST_F(ProblemRules, BucketsMergeAndTheirCastsAreOne) {
  for (const char *gather : {"fwd a all_gather", "fwd b all_gather"})
    decide(gather).bucket = "all";
  for (const char *reduction : {"bwd a reduce_scatter", "bwd b reduce_scatter"})
    decide(reduction).bucket = "all";
  EXPECT_EQ(steps(),
            "narrow cast + cast\nfwd a all_gather + fwd b all_gather\n"
            "fwd a linear\nfwd a silu + fwd a exp\nfwd b linear\ncopy \n"
            "bwd b dx\nbwd b dw\nbwd a dw\n"
            "bwd a reduce_scatter + bwd b reduce_scatter");
}

TEST_F(ProblemRules, GathersStartAheadAndReductionsAreAwaitedLate) {
  for (const char *gather : {"fwd a all_gather", "fwd b all_gather"}) {
    Decision &decision = decide(gather);
    decision.bucket = gather;
    decision.overlap = true;
    decision.prefetch = 1;
  }
  for (const char *reduction :
       {"bwd b reduce_scatter", "bwd a reduce_scatter"}) {
    Decision &decision = decide(reduction);
    decision.bucket = reduction;
    decision.overlap = true;
    decision.defer = 1;
  }
  EXPECT_EQ(steps(),
            "cast\nstart fwd a all_gather\ncast\nstart fwd b all_gather\n"
            "await fwd a all_gather\nfwd a linear\nfwd a silu + fwd a exp\n"
            "await fwd b all_gather\nfwd b linear\ncopy \nbwd b dx\nbwd b dw\n"
            "start bwd b reduce_scatter\nawait bwd b reduce_scatter\nbwd a dw\n"
            "start bwd a reduce_scatter\nawait bwd a reduce_scatter");
}

TEST_F(ProblemRules, AddressesStandOverDistances) {
  Decision &decision = decide("fwd b all_gather");
  decision.overlap = true;
  decision.startAfter = "fwd a linear";
  EXPECT_EQ(steps(),
            "cast\nfwd a all_gather\ncast\nfwd a linear\n"
            "start fwd b all_gather\nfwd a silu + fwd a exp\n"
            "await fwd b all_gather\nfwd b linear\ncopy \nbwd b dx\nbwd b dw\n"
            "bwd b reduce_scatter\nbwd a dw\nbwd a reduce_scatter");
}

TEST_F(ProblemRules, WhatCannotBeAppliedIsRefused) {
  Decision &late = decide("fwd b all_gather");
  late.overlap = true;
  late.startAfter = "bwd b dx";
  EXPECT_EQ(steps(), "'fwd b all_gather' has its result used before it starts");
  candidate = Candidate(problem);
  Decision &unknown = decide("fwd b all_gather");
  unknown.overlap = true;
  unknown.awaitBefore = "fwd c linear";
  EXPECT_EQ(refusalOf({order(problem, candidate, 0)}),
            "no op has the address 'fwd c linear'");
}

TEST_F(ProblemRules, WhatIsInFlightHoldsItsBuffers) {
  Decision &decision = decide("bwd b reduce_scatter");
  decision.overlap = true;
  decision.awaitBefore = "bwd a reduce_scatter";
  steps();
  Live found = live(problem, sequence);
  for (Id number = 0; number < sequence.steps.size(); ++number) {
    const Step &step = sequence.steps[number];
    if (step.kind != StepKind::Await)
      continue;
    const Step &start = sequence.steps[step.start];
    ASSERT_GT(start.uses.count, 0u);
    for (Id i = start.uses.begin; i < start.uses.end(); ++i)
      EXPECT_GE(found.ranges[sequence.uses[i]].end, number + 1);
    EXPECT_GT(number, step.start + 1);
  }
}

TEST(ProblemText, NamesTheLineOfAnError) {
  auto why = [](std::string text) {
    try {
      parse(text, "p");
    } catch (const Error &error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  std::string head = "fsdp.problem 1\ntarget \"test\"\nprogram \"t\"\n";
  EXPECT_EQ(why("fsdp.problem 2\n"),
            "p:1: only version 1 of this text can be read");
  EXPECT_EQ(why("fsdp.problem 1\ntarget \"tpu\"\n"),
            "p:2: there is no target 'tpu'; there are cpu, cuda and test");
  EXPECT_EQ(why(head + "op view fwd name \"v\" takes 0 gives 4\n"),
            "p:4: a value before is 0, and may be 0 to -1");
  EXPECT_EQ(why(head + "op kernel fwd name \"k\" detail 3\n"),
            "p:4: there is no kernel 3");
  EXPECT_EQ(why(head + "op read fwd name \"r\" gives 4\n"),
            "p:4: 'op read' has one result and one state");
  EXPECT_EQ(why(head + "op read fwd name \"r"), "p:4: a name does not end");
  EXPECT_EQ(why(head + "op work fwd name \"w\" math 1\n"),
            "p:4: a math before is 1, and may be 0 to -1");
  EXPECT_EQ(why("fsdp.problem 1\nmath product bf16 1 2 3\n"),
            "p:2: the line ends where a size should be");
  EXPECT_EQ(why("fsdp.problem 1\nmath product bf16 1 2 3 -4\n"),
            "p:2: a size is -4, and may be 0 to 72057594037927936");
  EXPECT_EQ(why("fsdp.problem 1\nmath product bf16 1 2 3 4 rhs lhs\n"),
            "p:2: 'lhs' has no meaning here");
  EXPECT_EQ(why("fsdp.problem 1\nmath attention f32 1 heads 1 2 0 4\n"),
            "p:2: a size is 0, and may be 1 to 72057594037927936");
  EXPECT_EQ(why("fsdp.problem 1\nmath sum bf16 1\n"),
            "p:2: what is computed is not called 'sum'");
  EXPECT_EQ(why("fsdp.problem 1\nmath attention f32 1\nmath attention f32 1\n"),
            "p:3: this math is listed twice");
  EXPECT_EQ(why("fsdp.problem 1\ngroup 1024 1 1024 1024 2 1\n"),
            "p:2: a group has more than 2^20 ranks");
  EXPECT_EQ(why("fsdp.problem 1\ngroup 2\n"),
            "p:2: the line ends where the stride should be");
  EXPECT_EQ(why("fsdp.problem 1\nranks 0\n"),
            "p:2: ranks is 0, and may be 1 to 1048576");
  EXPECT_EQ(why("fsdp.problem 1\ntarget \"test\"\ngroup 4 1\nprogram \"t\"\n"
                "argument \"x\" 8\nop collective fwd name \"g\" takes 0 gives "
                "16 all_gather sum f32 f32 ranks 2 group 0 items 2 4\n"),
            "p:6: group 0 has 4 ranks, the collective 2");
  EXPECT_EQ(why(head), "p:3: the program before does not end with 'op return'");
  EXPECT_EQ(why(head + "op return fwd name \"return\"\n"), "accepted");
}

TEST(ProblemText, SurvivesItself) {
  Problem problem = parse(kTwoLayers, "two");
  std::string text = print(problem);
  EXPECT_EQ(print(parse(text, "two")), text);
  const char *const timed = "fsdp.problem 1\ntarget \"test\"\npersistent 0\n"
                            "ranks 8\ntokens 64\n"
                            "math product bf16 1 2 3 4\n"
                            "math product f32 1 2 3 4 lhs\n"
                            "math product f32 1 2 3 4 lhs rhs\n"
                            "math product f32 1 2 3 4 rhs\n"
                            "math attention_grad f32 5\n"
                            "math attention_grad f32 5 heads 6 7 8 9\n"
                            "group 4 2\ngroup\ngroup 2 1 4 2\n"
                            "program \"t\"\nargument \"x\" 8\n"
                            "op collective fwd name \"g\" takes 0 gives 32 "
                            "all_gather sum f32 f32 ranks 4 group 0 items 2 8\n"
                            "op work fwd name \"w\" gives 4 math 1\n"
                            "op return fwd name \"return\"\n";
  EXPECT_EQ(print(parse(timed, "timed")), timed);
}

} // namespace
