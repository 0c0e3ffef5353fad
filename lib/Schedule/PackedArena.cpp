//===- PackedArena.cpp - The arena that a candidate would have ------------===//
#include "fsdp/Schedule/PackedArena.h"
#include "fsdp/Memory/Packing.h"
#include "fsdp/Target/Target.h"
#include <algorithm>
#include <numeric>

using namespace fsdp;
using namespace fsdp::schedule;

PackedArena::PackedArena(const problem::Problem &problem)
    : problem(problem), evaluator(problem),
      alignment(rt::findTarget(problem.target)->alignment) {}

/// The buffers in order of first use, as memory's Lifetimes has them.
static PackingProblem packingOf(const problem::Sequence &sequence,
                                const problem::Live &live, int64_t alignment) {
  PackingProblem packing;
  packing.alignment = alignment;
  std::vector<bool> isKnown(sequence.buffers.size());
  for (problem::Id buffer : sequence.uses) {
    if (isKnown[buffer])
      continue;
    isKnown[buffer] = true;
    const problem::LiveRange &range = live.ranges[buffer];
    packing.liveRanges.push_back(
        {range.begin, range.end, sequence.buffers[buffer].bytes});
  }
  return packing;
}

int64_t PackedArena::bytes(const problem::Candidate &candidate, int64_t enough,
                           bool onlyEnough) {
  struct Packed {
    size_t program;
    PackingProblem packing;
    int64_t peak;
  };
  std::vector<Packed> programs;
  for (size_t i = 0; i < problem.programs.size(); ++i) {
    const problem::Sequence &sequence = evaluator.order(candidate, i);
    const problem::Live &live = evaluator.live(i);
    programs.push_back({i, packingOf(sequence, live, alignment), live.peak});
  }
  std::stable_sort(
      programs.begin(), programs.end(),
      [](const Packed &a, const Packed &b) { return a.peak > b.peak; });
  int64_t top = problem.persistentBytes, arena = top;
  for (const Packed &packed : programs) {
    top += problem.programs[packed.program].ownOutputBytes;
    PackingPlan plan = solvePacking(
        packed.packing, std::max<int64_t>(std::max(arena, enough) - top, 0),
        onlyEnough && arena < enough);
    arena = std::max(arena, top + plan.peak);
  }
  return arena;
}
