//===- Collectives.h - Communicators and transfers --------------*- C++ -*-===//
//
// A communicator carries one order: a member's group calls run in the order of
// issue, whatever their streams. A group call runs when it has come to the head
// of its stream on every rank that it names, and for all of them at once.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_FAKECUDA_COLLECTIVES_H
#define FSDP_TEST_FAKECUDA_COLLECTIVES_H

#include "Memory.h"

namespace fsdp::fake {

struct Communicator;

/// One rank of a communicator.
struct Member {
  Communicator *communicator = nullptr;
  Process *process = nullptr;
  int rank = -1;                                // in the communicator
  std::deque<std::shared_ptr<GroupCall>> calls; // not yet run
  uint64_t issued = 0;
  std::vector<Registration> registered;
  size_t splits = 0;
};

/// Ranks of the member's communicator.
int32_t sizeOf(const Member &member);

struct GroupCall {
  Member *member;
  uint64_t number; // among the member's
  std::vector<Transfer> transfers;
  bool isAtHead = false, isDone = false;
};

class Collectives {
public:
  explicit Collectives(const Memory &memory);
  ~Collectives();

  uint64_t uniqueId() { return ++ids; }
  /// A rank has come. The communicator is made when all have.
  void init(Process &process, const CommInit &call);
  void split(Process &process, const CommSplit &call);
  void destroy(Process &process, const CommDestroy &call);
  void abort(Process &process, const CommDestroy &call);
  /// True if a communicator waits for more ranks than there are `processes`:
  /// somebody may still come.
  bool waitsForNewcomer(size_t processes) const;

  void addRegistration(Process &process, const Registration &r);
  void removeRegistration(Process &process, const Registration &r);

  std::shared_ptr<GroupCall> issue(Process &process, const Group &call,
                                   std::vector<Transfer> transfers);
  /// Why the call cannot run yet; empty if it can, or if it has run with
  /// another rank's.
  std::string waitsFor(const GroupCall &call) const;
  void run(GroupCall &call);

private:
  /// The ranks that have come to make a communicator.
  struct Rendezvous {
    int size = 0;
    std::vector<Member> members;
    std::vector<uint32_t> numbers; // the processes' names for it
  };
  using Calls = std::vector<GroupCall *>;

  Communicator &make(std::vector<Member> members);
  Member &memberOf(Process &process, uint32_t comm) const;
  void check(const Member &member, const Transfer &t) const;
  void checkOverlaps(const GroupCall &call) const;
  void checkWindows(const Calls &calls) const;
  std::string collect(const GroupCall &call, Calls &calls) const;
  void gather(const Calls &calls) const;
  void exchange(const Calls &calls) const;
  void reduce(const Calls &calls) const;

  const Memory &memory;
  uint64_t ids = 0;
  std::map<uint64_t, Rendezvous> rendezvous; // by unique id
  std::vector<std::unique_ptr<Communicator>> communicators;
};

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_COLLECTIVES_H
