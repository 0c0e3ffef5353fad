//===- FusedMembers.h - What is in a kernel of several ops ------*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_PROBLEM_FUSEDMEMBERS_H
#define FSDP_LIB_SCHEDULE_PROBLEM_FUSEDMEMBERS_H

#include "Draft.h"

namespace fsdp::problem {

/// A sum over the rows of a kernel, which gives one for each block of them.
struct BlockSums {
  Id member;
  int64_t bytes;
  Id buffer = kNone;
};

/// Of one kernel after another.
class FusedMembers {
public:
  explicit FusedMembers(const Draft &draft) : draft(draft) {}

  /// The values that the kernel `node` reads, one for each read of a member.
  /// What the members give each other is computed where it is read, and what
  /// none of them needs is not read.
  const std::vector<Id> &reads(Id node) {
    const Span list = draft.nodes[node].list;
    const Id *members = &draft.lists[list.begin];
    values.clear();
    neededResults.assign(list.count, 0);
    for (size_t m = list.count; m-- > 0;)
      for (Id i = 0; i < draft.nodes[members[m]].results.count; ++i)
        if (Id value = draft.resultOf(members[m], i);
            draft.values[value].def == node &&
            draft.values[value].first != kNone)
          neededResults[m] |= uint32_t(1) << i;
    for (size_t m = list.count; m-- > 0;) {
      const Kernel &kernel =
          draft.problem.kernels[draft.nodes[members[m]].detail];
      for (const KernelRead &read : kernel.reads) {
        if (read.forResults != 0 && (read.forResults & neededResults[m]) == 0)
          continue;
        Id value = draft.operandOf(members[m], read.operand);
        if (!needMember(members, m, value))
          values.push_back(value);
      }
    }
    return values;
  }

  /// Those of the kernel `node` that are read.
  void findSums(Id node) {
    const Span list = draft.nodes[node].list;
    found.clear();
    for (Id i = list.begin; i < list.end(); ++i) {
      Id member = draft.lists[i];
      const Kernel &kernel = draft.problem.kernels[draft.nodes[member].detail];
      if (kernel.sumsRows &&
          draft.values[draft.resultOf(member, 0)].first != kNone)
        found.push_back({member, kernel.rows / kRowBlock * kernel.columns *
                                     int64_t(sizeof(float))});
    }
  }
  const std::vector<BlockSums> &sums() const { return found; }
  /// The one that gives `value`; null if none does.
  BlockSums *sumOf(Id value) {
    for (BlockSums &sum : found)
      if (draft.resultOf(sum.member, 0) == value)
        return &sum;
    return nullptr;
  }

private:
  /// Notes that a result of an earlier member is read; false if none gives it.
  bool needMember(const Id *members, size_t before, Id value) {
    for (size_t m = 0; m < before; ++m)
      for (Id i = 0; i < draft.nodes[members[m]].results.count; ++i)
        if (draft.resultOf(members[m], i) == value) {
          neededResults[m] |= uint32_t(1) << i;
          return true;
        }
    return false;
  }

  const Draft &draft;
  std::vector<uint32_t> neededResults; // of each member
  std::vector<Id> values;
  std::vector<BlockSums> found;
};

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_PROBLEM_FUSEDMEMBERS_H
