//===- CollectiveWorkspaces.h - Workspaces of buckets -----------*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_PROBLEM_COLLECTIVEWORKSPACES_H
#define FSDP_LIB_SCHEDULE_PROBLEM_COLLECTIVEWORKSPACES_H

#include "fsdp/Schedule/Problem.h"
#include <algorithm>

namespace fsdp::problem {

/// Bytes of the workspaces of collectives: buckets of one class move the same
/// items.
class CollectiveWorkspaces {
public:
  explicit CollectiveWorkspaces(const std::string &target) : target(target) {}

  const std::vector<int64_t> &of(const Collective &collective,
                                 const std::vector<rt::CollectiveItem> &items) {
    for (const Known &one : known)
      if (isSame(one, collective, items))
        return one.bytes;
    if (known.size() == kMost)
      known.clear();
    Known &one = known.emplace_back();
    one.collective = collective;
    one.items = items;
    for (size_t i = 0; i < items.size(); ++i)
      one.bytes.push_back(workspaceOf(target, collective, items, i));
    return one.bytes;
  }

private:
  static constexpr size_t kMost = 64;

  struct Known {
    Collective collective;
    std::vector<rt::CollectiveItem> items;
    std::vector<int64_t> bytes;
  };

  static bool isSame(const Known &one, const Collective &collective,
                     const std::vector<rt::CollectiveItem> &items) {
    const Collective &other = one.collective;
    auto areEqual = [](const rt::CollectiveItem &a,
                       const rt::CollectiveItem &b) {
      return a.shard == b.shard && a.full == b.full;
    };
    return other.kind == collective.kind && other.reduce == collective.reduce &&
           other.in == collective.in && other.out == collective.out &&
           other.isFast == collective.isFast &&
           other.ranks == collective.ranks &&
           other.nodeRanks == collective.nodeRanks &&
           std::equal(one.items.begin(), one.items.end(), items.begin(),
                      items.end(), areEqual);
  }

  const std::string &target;
  std::vector<Known> known;
};

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_PROBLEM_COLLECTIVEWORKSPACES_H
