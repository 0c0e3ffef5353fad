//===- BucketChanges.cpp - One change of a bucket -------------------------===//
#include "BucketChanges.h"

using namespace fsdp;
using namespace fsdp::problem;

bool fsdp::problem::mergeWithNext(std::vector<TransferBucket> &all, size_t i) {
  if (i + 1 >= all.size())
    return false;
  all[i].count += all[i + 1].count;
  all.erase(all.begin() + static_cast<ptrdiff_t>(i) + 1);
  return true;
}

bool fsdp::problem::splitInHalves(std::vector<TransferBucket> &all, size_t i) {
  if (all[i].count < 2)
    return false;
  TransferBucket second = all[i];
  all[i].count /= 2;
  second.count -= all[i].count;
  all.insert(all.begin() + static_cast<ptrdiff_t>(i) + 1, second);
  return true;
}

/// Moves the end of bucket `i` so far that both buckets keep something.
static bool moveEnd(std::vector<TransferBucket> &all, size_t i, bool takes,
                    bool half) {
  if (i + 1 >= all.size())
    return false;
  uint32_t &from = takes ? all[i + 1].count : all[i].count,
           &to = takes ? all[i].count : all[i + 1].count;
  uint32_t count = half ? from / 2 : 1;
  if (count == 0 || count >= from)
    return false;
  from -= count;
  to += count;
  return true;
}

bool fsdp::problem::takeFromNext(std::vector<TransferBucket> &all, size_t i) {
  return moveEnd(all, i, /*takes=*/true, /*half=*/false);
}

bool fsdp::problem::giveToNext(std::vector<TransferBucket> &all, size_t i) {
  return moveEnd(all, i, /*takes=*/false, /*half=*/false);
}

bool fsdp::problem::takeHalfFromNext(std::vector<TransferBucket> &all,
                                     size_t i) {
  return moveEnd(all, i, /*takes=*/true, /*half=*/true);
}

bool fsdp::problem::giveHalfToNext(std::vector<TransferBucket> &all, size_t i) {
  return moveEnd(all, i, /*takes=*/false, /*half=*/true);
}

static constexpr uint32_t kFarthest = 32;

bool fsdp::problem::moveFurther(std::vector<TransferBucket> &all, size_t i) {
  return ++all[i].distance <= kFarthest;
}

bool fsdp::problem::moveNearer(std::vector<TransferBucket> &all, size_t i) {
  return all[i].distance-- > 0;
}
