//===- BucketSteps.h - Where buckets are in a sequence ----------*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_DECIDE_BUCKETSTEPS_H
#define FSDP_LIB_SCHEDULE_DECIDE_BUCKETSTEPS_H

#include "fsdp/Schedule/CommunicationPlan.h"

namespace fsdp::problem {

/// Steps of a sequence: the first and the last start of a bucket, and its first
/// wait.
struct StepsOfBucket {
  Id start = kNone, lastStart = 0, await = kNone;
  bool isStarted() const { return start != kNone && await != kNone; }
};

/// Those of all buckets of a choice.
class BucketSteps {
public:
  /// The transfers outlive it.
  BucketSteps(const Transfers &transfers, const CommunicationChoice &choice);

  /// In a sequence of Transfers::program.
  void find(const Sequence &sequence);

  /// By the number of the bucket.
  const std::vector<StepsOfBucket> &operator[](TransferKind kind) const {
    return steps[int(kind)];
  }

  /// The bucket that a step begins.
  struct Place {
    TransferKind kind = TransferKind::Forward;
    Id bucket = kNone; ///< None: the step moves none.
  };
  Place placeOf(const Sequence &sequence, const Step &step) const;

private:
  const Transfers &transfers;
  std::vector<Id> bucketOf[kTransferKinds]; // of each transfer
  std::vector<StepsOfBucket> steps[kTransferKinds];
};

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_DECIDE_BUCKETSTEPS_H
