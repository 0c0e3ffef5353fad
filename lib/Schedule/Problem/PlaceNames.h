//===- PlaceNames.h - The nodes that addresses name -------------*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_PROBLEM_PLACENAMES_H
#define FSDP_LIB_SCHEDULE_PROBLEM_PLACENAMES_H

#include "Draft.h"

namespace fsdp::problem {

/// Where collectives start and are awaited by addresses: of ops, and of buckets
/// once they are merged.
class PlaceNames {
public:
  explicit PlaceNames(Draft &draft) : draft(draft) {}

  /// The nodes of all addresses that decisions name, and of those that have
  /// none the texts, in Sequence::unknown.
  void find();

  /// The node that has the address of this number, or stands for the op that
  /// has it; kNone for no address, or if there is none.
  Id operator[](Id address) const {
    return address == kNone ? kNone : nodes[address];
  }

private:
  void findOp(Id address);
  void consider(Id address, Id node);
  void findCollective(Id node);
  void findMerged();
  Address bucketOf(Id node) const;
  void standFor(const Address &address, Id node);

  Draft &draft;
  // Of each address.
  std::vector<Id> nodes;
  std::vector<Id> standIns; // what has the op in its bucket
  std::vector<Id> merged;
  std::unordered_map<Address, uint32_t, AddressHash> mergedOf;
};

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_PROBLEM_PLACENAMES_H
