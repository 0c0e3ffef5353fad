//===- Order.cpp - The order that decisions give --------------------------===//
#include "fsdp/Schedule/ProblemEvaluator.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

bool Decision::operator==(const Decision &other) const {
  return bucket == other.bucket && merge == other.merge &&
         overlap == other.overlap && prefetch == other.prefetch &&
         defer == other.defer && startAfter == other.startAfter &&
         awaitBefore == other.awaitBefore && recompute == other.recompute;
}

Candidate::Candidate(const Problem &problem) {
  for (const Program &program : problem.programs)
    programs.push_back({std::vector<Id>(program.ops.size(), kNone),
                        std::vector<Id>(program.ops.size(), kNone)});
}

Id Candidate::add(const Decision &decision) {
  auto at = std::find(decisions.rbegin(), decisions.rend(), decision);
  if (at != decisions.rend())
    return decisions.rend() - at - 1;
  decisions.push_back(decision);
  return decisions.size() - 1;
}

Sequence fsdp::problem::order(const Problem &problem,
                              const Candidate &candidate, size_t program) {
  return std::move(Evaluator(problem).order(candidate, program));
}

std::string fsdp::problem::refusalOf(const std::vector<Sequence> &sequences) {
  for (const Sequence &sequence : sequences)
    if (!sequence.refusal.empty())
      return sequence.refusal;
  if (sequences.empty())
    return {};
  for (const std::string &place : sequences.front().unknown)
    if (std::all_of(
            sequences.begin(), sequences.end(), [&](const Sequence &other) {
              return std::find(other.unknown.begin(), other.unknown.end(),
                               place) != other.unknown.end();
            }))
      return "no op has the address '" + place + "'";
  return {};
}
