//===- BucketSteps.cpp - Where buckets are in a sequence ------------------===//
#include "BucketSteps.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

BucketSteps::BucketSteps(const Transfers &transfers,
                         const CommunicationChoice &choice)
    : transfers(transfers) {
  for (int kind = 0; kind < kTransferKinds; ++kind) {
    const std::vector<TransferBucket> &buckets = choice.buckets[kind];
    for (Id i = 0; i < buckets.size(); ++i)
      bucketOf[kind].insert(bucketOf[kind].end(), buckets[i].count, i);
    steps[kind].resize(buckets.size());
  }
}

BucketSteps::Place BucketSteps::placeOf(const Sequence &sequence,
                                        const Step &step) const {
  if (step.collective == CollectiveRole::None || step.members.count == 0)
    return {};
  const Member &member = sequence.members[step.members.begin];
  const Transfers::Place &place =
      transfers.places[transfers.program][member.op];
  TransferKind kind = place.reduce != kNone ? TransferKind::Reduce
                      : member.isAgain      ? TransferKind::Again
                                            : TransferKind::Forward;
  Id transfer = kind == TransferKind::Reduce  ? place.reduce
                : kind == TransferKind::Again ? place.again
                                              : place.forward;
  return {kind, transfer == kNone ? kNone : bucketOf[int(kind)][transfer]};
}

void BucketSteps::find(const Sequence &sequence) {
  for (std::vector<StepsOfBucket> &of : steps)
    std::fill(of.begin(), of.end(), StepsOfBucket());
  for (Id number = 0; number < sequence.steps.size(); ++number) {
    const Step &step = sequence.steps[number];
    bool isAwait = step.kind == StepKind::Await;
    if (!isAwait && step.kind != StepKind::Start)
      continue;
    Place place =
        placeOf(sequence, isAwait ? sequence.steps[step.start] : step);
    if (place.bucket == kNone)
      continue;
    StepsOfBucket &bucket = steps[int(place.kind)][place.bucket];
    if (isAwait) {
      bucket.await = std::min(bucket.await, number);
    } else {
      bucket.start = std::min(bucket.start, number);
      bucket.lastStart = number;
    }
  }
}
