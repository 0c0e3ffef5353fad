//===- FailureReport.h - The one message that ends a job --------*- C++ -*-===//
//
// A failure, the table and the names of an artifact become text, the same on
// both targets.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_LIVENESS_FAILUREREPORT_H
#define FSDP_RUNTIME_LIVENESS_FAILUREREPORT_H

#include "FailureDetector.h"
#include <string>
#include <vector>

namespace fsdp::rt {

/// What a message is made of beside the failure.
struct ReportSource {
  const ProgressTable &table;
  const LivenessLimits &limits;
  /// Of the channels, by which collectives have names; null: there are none.
  const fsdp_artifact *artifact;
  /// Whether the rows are as they are now, or as at the last heartbeats.
  bool isLive;
};

/// What is wrong. Of Problem and StageStuck it does not name the rank, which is
/// failure.ranks[0].
std::string describeProblem(const Failure &failure, const ReportSource &source);

/// The same, where ranks wait, and the last collectives of all ranks.
std::string describeFailure(const Failure &failure, const ReportSource &source);

/// all_gather "layers.0" (number 3 of 'train')
std::string nameOfCollective(uint64_t counter, const fsdp_artifact &artifact);

/// "rank 2 has not arrived"
std::string describeMissing(const MissingRanks &missing);

/// "in A, B": the collectives that a rank is in. If it is in none, the last of
/// every channel: "ended A, B". "none so far" without any; "not known" of a
/// rank that has not been heard.
std::string describeRank(const RankRow &row, const fsdp_artifact &artifact);

/// "rank 1", "ranks 0-6, 9": at most eight ranges, and how many ranks more.
std::string namesOf(const std::vector<int> &ranks);

/// "rank 7: A; ranks 0-6: B": the text of every rank, equal ones together, that
/// of rank `first` (-1: none) first. At most eight texts, and how many ranks
/// more.
std::string foldRanks(const std::vector<std::string> &texts, int first);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LIVENESS_FAILUREREPORT_H
