//===- problem_bench.cpp - Time of evaluating a candidate -----------------===//
//
//   problem-bench PROBLEM...    (texts of fsdp-compile --emit=problem)
//
// The CPU time of order() and live() for the programs of a step, in which every
// block's parameters are a bucket, are gathered one ahead and again for the
// backward pass, and random values are recomputed: the median over candidates,
// by one Evaluator and by the functions that keep nothing.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Schedule/ProblemEvaluator.h"
#include "fsdp/Schedule/ProblemText.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <random>
#include <sstream>

using namespace fsdp;
using namespace fsdp::problem;

static constexpr int kCandidates = 8, kRounds = 25;

static double cpuSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

static Candidate makeCandidate(const Problem &problem, unsigned seed) {
  std::mt19937 generator(seed);
  Candidate candidate(problem);
  Decision recomputed;
  recomputed.recompute = true;
  for (size_t number = 0; number < problem.programs.size(); ++number) {
    const Program &program = problem.programs[number];
    for (Id i = 0; i < program.ops.size(); ++i) {
      const Op &op = program.ops[i];
      Id &decided = candidate.programs[number].of[i];
      if (op.kind != OpKind::Collective) {
        if (op.is(kCanRecompute) && generator() % 4 < seed % 4)
          decided = candidate.add(recomputed);
        continue;
      }
      const Collective &collective = program.collective(op);
      if (collective.parameter == kNone)
        continue;
      Decision decision;
      decision.bucket =
          op.block == kNone ? "rest" : std::string(problem.text(op.block));
      decision.overlap = true;
      (collective.isGather() ? decision.prefetch : decision.defer) = 1;
      candidate.programs[number].again[i] = candidate.add(decision);
      decision.recompute = op.is(kCanRecompute) && op.block != kNone;
      decided = candidate.add(decision);
    }
  }
  return candidate;
}

/// The programs that a step runs; all, if the text does not say.
static std::vector<size_t> programsOfStep(const Problem &problem) {
  std::vector<size_t> numbers;
  for (size_t i = 0; i < problem.programs.size(); ++i)
    if (problem.steps.empty() ||
        std::any_of(problem.steps.begin(), problem.steps.end(),
                    [&](const StepRun &run) {
                      return run.program == problem.programs[i].name;
                    }))
      numbers.push_back(i);
  return numbers;
}

template <typename Evaluate>
static double median(const std::vector<Candidate> &candidates,
                     Evaluate evaluate) {
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round)
    for (const Candidate &candidate : candidates) {
      double begin = cpuSeconds();
      evaluate(candidate);
      times.push_back(cpuSeconds() - begin);
    }
  std::nth_element(times.begin(), times.begin() + times.size() / 2,
                   times.end());
  return times[times.size() / 2];
}

static void measure(const char *path) {
  std::ifstream file(path);
  if (!file)
    throw Error(std::string("cannot read '") + path + "'");
  std::stringstream text;
  text << file.rdbuf();
  Problem problem = parse(text.str(), path);
  std::vector<Candidate> candidates;
  for (int seed = 0; seed < kCandidates; ++seed)
    candidates.push_back(makeCandidate(problem, seed));
  std::vector<size_t> programs = programsOfStep(problem);
  size_t ops = 0;
  for (size_t program : programs)
    ops += problem.programs[program].ops.size();
  Evaluator evaluator(problem);
  double kept = median(candidates, [&](const Candidate &candidate) {
    for (size_t program : programs) {
      const Sequence &sequence = evaluator.order(candidate, program);
      if (!sequence.refusal.empty())
        throw Error(sequence.refusal);
      evaluator.live(program);
    }
  });
  double alone = median(candidates, [&](const Candidate &candidate) {
    for (size_t program : programs)
      live(problem, order(problem, candidate, program));
  });
  std::printf("%s: %zu ops; an Evaluator %.3f ms, order() and live() %.3f ms\n",
              path, ops, 1e3 * kept, 1e3 * alone);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: problem-bench PROBLEM...\n");
    return 2;
  }
  try {
    for (int i = 1; i < argc; ++i)
      measure(argv[i]);
  } catch (const Error &error) {
    std::fprintf(stderr, "problem-bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
