//===- DecisionNumbers.h - Decisions without texts --------------*- C++ -*-===//
//
// Buckets and addresses of decisions as numbers. A search changes few decisions
// from candidate to candidate: the numbers of the others stay.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_LIB_SCHEDULE_PROBLEM_DECISIONNUMBERS_H
#define FSDP_LIB_SCHEDULE_PROBLEM_DECISIONNUMBERS_H

#include "fsdp/Schedule/ProblemOrder.h"
#include <optional>

namespace fsdp::problem {

/// A Decision whose texts are numbers.
struct DecisionNumber {
  Id bucket = kNone;
  /// Of addresses.
  Id startAfter = kNone, awaitBefore = kNone;
  int64_t prefetch = 0, defer = 0;
  bool merge = true, overlap = false, recompute = false;
};

/// An address in parts: of an op, or of a bucket, whose name is the path then.
/// Without a phase it is the mnemonic of an op that has no address.
struct Address {
  std::optional<Phase> phase;
  Id path = kNone, name = kNone;
  uint32_t index = 1;
  bool operator==(const Address &other) const {
    return phase == other.phase && path == other.path && name == other.name &&
           index == other.index;
  }
};

struct AddressHash {
  size_t operator()(const Address &address) const {
    size_t hash = address.phase ? size_t(*address.phase) : kPhaseless;
    for (Id part : {address.path, address.name, Id(address.index)})
      hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
  }
  static constexpr size_t kPhaseless = 7;
};

/// The address of an op, as addressOf() has it.
Address addressPartsOf(const Op &op, bool again);

class DecisionNumbers {
public:
  explicit DecisionNumbers(const Problem &problem) : problem(problem) {}

  /// Those of `candidate` from now on.
  void set(const Candidate &candidate);

  /// kNone: that nothing is decided.
  const DecisionNumber &operator[](Id decision) const {
    return decision == kNone ? none : numbers[decision];
  }
  bool recomputes(Id decision) const {
    return decision != kNone && numbers[decision].recompute;
  }
  /// The decisions themselves.
  const std::vector<Decision> &all() const { return known; }
  bool nameAddresses() const { return countAddresses != 0; }

  size_t numAddresses() const { return addresses.size(); }
  const Address &address(Id number) const { return addresses[number]; }
  /// kNone if no decision has named it.
  Id find(const Address &address) const;

private:
  DecisionNumber numberOf(const Decision &decision);
  Id textNumber(const std::string &text);
  Id addressNumber(const std::string &text);

  const Problem &problem;
  const DecisionNumber none;
  std::vector<Decision> known;
  std::vector<DecisionNumber> numbers; // of each
  size_t countAddresses = 0;           // of these decisions
  /// Texts that the problem does not have, with numbers after its own.
  std::unordered_map<std::string, Id> texts;
  std::vector<Address> addresses;
  std::unordered_map<Address, Id, AddressHash> addressNumbers;
};

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_PROBLEM_DECISIONNUMBERS_H
