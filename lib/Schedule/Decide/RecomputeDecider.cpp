//===- RecomputeDecider.cpp - What to compute again in a budget -----------===//
#include "fsdp/Schedule/RecomputeDecider.h"
#include "fsdp/Support/Error.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

static RecomputeOptions optionsOf(const Problem &problem, const Candidate &base,
                                  const CostModel &cost, int threads) {
  std::optional<size_t> program = trainedProgram(problem, base);
  if (!program)
    throw Error("no program has a backward pass, so that there is nothing to "
                "compute again; decide by rule (compile.plan = \"rule\")");
  return recomputeOptions(problem, base, blocksOf(problem, *program), cost,
                          threads);
}

RecomputeDecider::RecomputeDecider(const Problem &problem, Candidate given,
                                   const CostModel &cost, int threads)
    : problem(problem), base(std::move(given)),
      found(optionsOf(problem, base, cost, threads)),
      frontier(found.chain, threads),
      evaluators(std::make_unique<LeasePool<Evaluator>>(
          [&problem] { return std::make_unique<Evaluator>(problem); })) {}

Decided RecomputeDecider::decided(std::vector<uint32_t> choice) const {
  Candidate candidate = withRecomputation(base, found, choice);
  std::vector<int64_t> peaks;
  LeasePool<Evaluator>::Lease evaluator(*evaluators);
  for (size_t i = 0; i < problem.programs.size(); ++i) {
    evaluator->order(candidate, i);
    peaks.push_back(evaluator->live(i).peak);
  }
  std::vector<int64_t> bounds = lowerBounds(problem, peaks);
  return {std::move(choice), *std::max_element(bounds.begin(), bounds.end())};
}

int64_t RecomputeDecider::roomIn(int64_t budget) const {
  int64_t room = budget - problem.persistentBytes -
                 problem.programs[found.blocks.program].ownOutputBytes;
  return std::max(room, leastRoom());
}

std::optional<Decided> RecomputeDecider::decide(int64_t budget) const {
  int64_t room = roomIn(budget);
  // Other programs, and what their outputs leave, may need more.
  while (std::optional<std::vector<uint32_t>> choice = frontier.choose(room)) {
    Decided result = decided(std::move(*choice));
    if (result.bytes <= budget)
      return result;
    room = smallerRoom(room, result.bytes - budget);
  }
  return std::nullopt;
}

int64_t RecomputeDecider::smallerRoom(int64_t room, int64_t excess) const {
  return room > leastRoom() ? std::max(room - excess, leastRoom())
                            : room - excess;
}

Decided RecomputeDecider::least() const {
  return decided(*frontier.choose(leastRoom()));
}
