//===- CommunicationRules.h - What others do about communication -*- C++ -*-==//
//
// The rules by which frameworks choose buckets and windows, without memory or
// time of the whole step. A search starts from them, so that it is never worse
// than one of them.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_COMMUNICATIONRULES_H
#define FSDP_SCHEDULE_COMMUNICATIONRULES_H

#include "fsdp/Schedule/CommunicationPlan.h"
#include "fsdp/Simulation/Durations.h"

namespace fsdp::problem {

/// How units become buckets.
struct BucketFamily {
  /// Blocks in a bucket; 0: each transfer alone. -2: half a block, and so on.
  int gather = 1, reduce = 1;
  /// The last buckets of a pass, or the first ones too, have 1, 2, 4, … blocks:
  /// compute begins early, and has little left when the last one arrives.
  enum Ramps { Never, AtEnd, AtBothEnds };
  Ramps gatherRamps = Never, reduceRamps = Never;
  uint32_t prefetch = 1, defer = 1;
  /// How many blocks stay gathered, and which: those used last, first, or
  /// evenly between. Other units are kept as by rule.
  uint32_t kept = 0;
  enum Kept { Last, First, Spread } keptAt = Last;
};
CommunicationChoice choiceOf(const Transfers &transfers,
                             const BucketFamily &family);

/// Buckets of which each has `ratio` times the bytes of the one before it.
struct BucketTaper {
  uint32_t count = 1;
  double ratio = 1;
  uint32_t distance = 1;
};
/// There may be fewer: each has a transfer at least.
std::vector<TransferBucket> taperedBuckets(const TransferList &list,
                                           const BucketTaper &taper);

/// A rule that others use, by name.
struct NamedChoice {
  std::string name;
  CommunicationChoice choice;
};

/// "block", "parameter", "25 MB" …; docs/simulation.md says what each one is.
std::vector<NamedChoice> knownRules(const Problem &problem,
                                    const Candidate &base,
                                    const Transfers &transfers,
                                    const simulation::Costs &costs);

} // namespace fsdp::problem

#endif // FSDP_SCHEDULE_COMMUNICATIONRULES_H
