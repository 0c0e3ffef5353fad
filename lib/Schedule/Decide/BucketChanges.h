//===- BucketChanges.h - One change of a bucket -----------------*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_DECIDE_BUCKETCHANGES_H
#define FSDP_LIB_SCHEDULE_DECIDE_BUCKETCHANGES_H

#include "fsdp/Schedule/CommunicationPlan.h"

namespace fsdp::problem {

/// Single changes of bucket `i` of a pass; false where there is none.
using BucketChange = bool (*)(std::vector<TransferBucket> &all, size_t i);

bool mergeWithNext(std::vector<TransferBucket> &all, size_t i);
bool splitInHalves(std::vector<TransferBucket> &all, size_t i);
/// Moves the end by a transfer, or by half of a bucket.
bool takeFromNext(std::vector<TransferBucket> &all, size_t i);
bool giveToNext(std::vector<TransferBucket> &all, size_t i);
bool takeHalfFromNext(std::vector<TransferBucket> &all, size_t i);
bool giveHalfToNext(std::vector<TransferBucket> &all, size_t i);
bool moveFurther(std::vector<TransferBucket> &all, size_t i);
bool moveNearer(std::vector<TransferBucket> &all, size_t i);

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_DECIDE_BUCKETCHANGES_H
