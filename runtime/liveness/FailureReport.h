//===- FailureReport.h - How far ranks have come, as text -------*- C++ -*-===//
//
// What a message that ends a job says of its ranks. Shared by both targets.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_LIVENESS_FAILUREREPORT_H
#define FSDP_RUNTIME_LIVENESS_FAILUREREPORT_H

#include "fsdp/Runtime/Types.h"
#include <string>
#include <vector>

namespace fsdp::rt {

/// all_gather "layers.0" (number 3 of 'train')
std::string nameOf(const CollectiveDesc &desc, unsigned number,
                   const char *program);

/// The last collective of one channel of a rank.
struct LastCollective {
  std::string name;
  bool isInside; // it has begun and not ended
};
/// "in A, B": the collectives that a rank is in. If it is in none, the last of
/// every channel: "ended A, B". "none so far" without any.
std::string describeRank(const std::vector<LastCollective> &channels);

/// "rank 1", "ranks 0-6, 9": at most eight ranges, and how many ranks more.
std::string namesOf(const std::vector<int> &ranks);

/// "rank 7: A; ranks 0-6: B": the text of every rank, equal ones together, that
/// of rank `first` (-1: none) in front. At most eight texts, and how many ranks
/// more.
std::string foldRanks(const std::vector<std::string> &texts, int first);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LIVENESS_FAILUREREPORT_H
