//===- CommunicationPlan.h - Buckets, windows, what stays gathered -*- C++
//-*-=//
//
// What is decided about the collectives of parameters: which travel together,
// how far ahead a gather starts, how late a reduction is awaited, and which
// parameters stay gathered between the passes.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_COMMUNICATIONPLAN_H
#define FSDP_SCHEDULE_COMMUNICATIONPLAN_H

#include "fsdp/Schedule/ProblemOrder.h"

namespace fsdp::problem {

/// The collectives that move one parameter in one pass, or its gradient.
struct Transfer {
  std::vector<Id> ops; ///< Of Transfers::program, in order.
  uint32_t unit = 0;   ///< Transfers::units: its bucket by rule.
  uint32_t gather = 0; ///< Of one in `again`: the transfer in `forward`.
  int64_t bytes = 0;   ///< Of the whole messages, as they travel.
};

/// In the order in which the program comes to them.
using TransferList = std::vector<Transfer>;

enum class TransferKind : uint8_t { Forward, Again, Reduce };
inline constexpr int kTransferKinds = 3;

struct Transfers {
  size_t program = 0;
  std::vector<std::string> units;
  std::vector<bool> isBlock; ///< Of each unit: it is a block of the model.
  std::vector<bool> isKept;  ///< By rule.
  bool mayKeep = true;       ///< Others than those by rule.
  /// By TransferKind. `again` has every gather that may be repeated.
  TransferList lists[kTransferKinds];

  const TransferList &operator[](TransferKind kind) const {
    return lists[int(kind)];
  }
  /// Where an op of a program is in the lists.
  struct Place {
    Id forward = kNone, again = kNone, reduce = kNone;
  };
  std::vector<std::vector<Place>> places; ///< By program and op.
};

/// Those of `base`, by whose buckets units are named. Without any where `base`
/// does not merge and overlap them. `program` is trained. Without `mayKeep` it
/// is not decided what stays gathered.
Transfers transfersOf(const Problem &problem, const Candidate &base,
                      size_t program, bool mayKeep);

/// Transfers that travel together, after those of the bucket before.
struct TransferBucket {
  uint32_t count = 0;
  /// Of gathers Decision::prefetch, of reductions Decision::defer.
  uint32_t distance = 1;
  /// Of gathers Decision::startAfter, of reductions Decision::awaitBefore.
  std::string place = {};
  bool operator==(const TransferBucket &other) const {
    return count == other.count && distance == other.distance &&
           place == other.place;
  }
};

struct CommunicationChoice {
  /// By TransferKind; the counts of each add up to the transfers.
  std::vector<TransferBucket> buckets[kTransferKinds];
  /// Of each unit: its parameters stay gathered.
  std::vector<bool> isKept;

  std::vector<TransferBucket> &operator[](TransferKind kind) {
    return buckets[int(kind)];
  }
  const std::vector<TransferBucket> &operator[](TransferKind kind) const {
    return buckets[int(kind)];
  }
  bool operator==(const CommunicationChoice &other) const;
};

/// `choice` without any TransferBucket::place.
CommunicationChoice withoutPlaces(CommunicationChoice choice);
/// `choice` where each transfer starts with the block that needs it and each
/// reduction is awaited with the block that it is of.
CommunicationChoice withoutDistances(CommunicationChoice choice);

/// `base` with what `choice` says about transfers, in all programs.
Candidate withCommunication(const Candidate &base, const Transfers &transfers,
                            const CommunicationChoice &choice);

/// "layers.3", "layers.2 to layers.5", "layers.3 part 2": of each bucket.
std::vector<std::string> bucketNames(const Transfers &transfers,
                                     TransferKind kind,
                                     const std::vector<TransferBucket> &);

} // namespace fsdp::problem

#endif // FSDP_SCHEDULE_COMMUNICATIONPLAN_H
