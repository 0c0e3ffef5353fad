//===- Collectives.cpp - Communicators and transfers ----------------------===//
#include "Collectives.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <tuple>

using namespace fsdp::fake;

namespace fsdp::fake {
struct Communicator {
  struct Split {
    struct Part {
      Member *member;
      CommSplit call;
    };
    std::vector<Part> parts;
  };
  int number; // among all, for messages
  std::vector<Member> members;
  std::vector<Split> splits;

  std::string name() const { return "communicator " + std::to_string(number); }
};
} // namespace fsdp::fake

Collectives::Collectives(const Memory &memory) : memory(memory) {}
Collectives::~Collectives() = default;

int32_t fsdp::fake::sizeOf(const Member &member) {
  return int32_t(member.communicator->members.size());
}

static std::string nameOf(const GroupCall &call) {
  return call.member->communicator->name() + ", call " +
         std::to_string(call.number);
}

//===----------------------------------------------------------------------===//
// Making communicators
//===----------------------------------------------------------------------===//

Communicator &Collectives::make(std::vector<Member> members) {
  auto made = std::make_unique<Communicator>();
  made->number = int(communicators.size());
  made->members = std::move(members);
  for (size_t i = 0; i < made->members.size(); ++i) {
    made->members[i].communicator = made.get();
    made->members[i].rank = int(i);
  }
  communicators.push_back(std::move(made));
  return *communicators.back();
}

void Collectives::init(Process &process, const CommInit &call) {
  Rendezvous &pending = rendezvous[call.id];
  if (pending.size == 0) {
    pending.size = call.size;
    pending.members.resize(size_t(call.size));
    pending.numbers.resize(size_t(call.size));
  }
  if (call.size != pending.size || call.rank < 0 || call.rank >= call.size)
    throw std::runtime_error("ncclCommInitRank: ranks disagree on the size, or "
                             "a rank is outside of it");
  Member &mine = pending.members[size_t(call.rank)];
  if (mine.process)
    throw std::runtime_error("ncclCommInitRank: two processes are rank " +
                             std::to_string(call.rank));
  mine.process = &process;
  pending.numbers[size_t(call.rank)] = call.comm;
  for (const Member &member : pending.members)
    if (!member.process)
      return;
  std::vector<uint32_t> numbers = std::move(pending.numbers);
  Communicator &made = make(std::move(pending.members));
  rendezvous.erase(call.id);
  for (size_t i = 0; i < numbers.size(); ++i)
    made.members[i].process->comms[numbers[i]] = &made.members[i];
}

bool Collectives::waitsForNewcomer(size_t processes) const {
  for (auto &[id, pending] : rendezvous)
    if (size_t(pending.size) > processes)
      return true;
  return false;
}

void Collectives::split(Process &process, const CommSplit &call) {
  Member &mine = memberOf(process, call.parent);
  Communicator &parent = *mine.communicator;
  if (mine.splits == parent.splits.size())
    parent.splits.emplace_back();
  auto &parts = parent.splits[mine.splits++].parts;
  parts.push_back({&mine, call});
  if (parts.size() < parent.members.size())
    return;
  // By colour, and within one by key and then by the old rank.
  std::sort(parts.begin(), parts.end(), [](const auto &a, const auto &b) {
    return std::make_tuple(a.call.color, a.call.key, a.member->rank) <
           std::make_tuple(b.call.color, b.call.key, b.member->rank);
  });
  for (size_t begin = 0, end; begin < parts.size(); begin = end) {
    std::vector<Member> members;
    for (end = begin;
         end < parts.size() && parts[end].call.color == parts[begin].call.color;
         ++end) {
      members.push_back({});
      members.back().process = parts[end].member->process;
    }
    bool isNobody = parts[begin].call.color < 0;
    Communicator *made = isNobody ? nullptr : &make(std::move(members));
    for (size_t i = begin; i < end; ++i)
      parts[i].member->process->comms[parts[i].call.comm] =
          made ? &made->members[i - begin] : nullptr;
  }
}

Member &Collectives::memberOf(Process &process, uint32_t comm) const {
  auto found = process.comms.find(comm);
  if (found == process.comms.end() || !found->second)
    throw std::runtime_error("a call with a communicator that is none");
  return *found->second;
}

void Collectives::destroy(Process &process, const CommDestroy &call) {
  Member &member = memberOf(process, call.comm);
  if (!member.calls.empty())
    throw std::runtime_error("ncclCommDestroy with work that has not run: " +
                             nameOf(*member.calls.front()));
  process.comms.erase(call.comm);
}

void Collectives::abort(Process &process, const CommDestroy &call) {
  Member &member = memberOf(process, call.comm);
  for (auto &group : member.calls)
    group->isDone = true;
  member.calls.clear();
  process.comms.erase(call.comm);
}

void Collectives::addRegistration(Process &process, const Registration &r) {
  memory.require(process, r.address, r.bytes, "ncclCommRegister");
  memberOf(process, r.comm).registered.push_back(r);
}

void Collectives::removeRegistration(Process &process, const Registration &r) {
  auto &all = memberOf(process, r.comm).registered;
  auto found = std::find_if(all.begin(), all.end(), [&](const Registration &o) {
    return o.address == r.address && o.bytes == r.bytes;
  });
  if (found == all.end())
    throw std::runtime_error("ncclCommDeregister of what is not registered");
  all.erase(found);
}

//===----------------------------------------------------------------------===//
// Group calls
//===----------------------------------------------------------------------===//

/// Bytes that a transfer writes.
static uint64_t received(const Member &member, const Transfer &t) {
  switch (t.kind) {
  case TransferKind::AllGather:
    return t.bytes * member.communicator->members.size();
  case TransferKind::Send:
    return 0;
  case TransferKind::Reduce:
    return t.peer == member.rank ? t.bytes : 0;
  case TransferKind::Receive:
  case TransferKind::ReduceScatter:
  case TransferKind::AllReduce:
    return t.bytes;
  }
  throw std::runtime_error("a transfer of no kind");
}
/// Bytes that it reads.
static uint64_t sent(const Member &member, const Transfer &t) {
  if (t.kind == TransferKind::ReduceScatter)
    return t.bytes * member.communicator->members.size();
  return t.kind == TransferKind::Receive ? 0 : t.bytes;
}

/// Whether a transfer of all ranks writes where NCCL lets it: a rank's part may
/// lie in what the others' are beside.
static bool isInPlace(const Member &member, const Transfer &t) {
  uint64_t part = uint64_t(member.rank) * t.bytes;
  switch (t.kind) {
  case TransferKind::AllGather:
    return t.from == t.to + part;
  case TransferKind::ReduceScatter:
    return t.to == t.from + part;
  case TransferKind::Reduce:
  case TransferKind::AllReduce:
    return t.from == t.to;
  case TransferKind::Send:
  case TransferKind::Receive:
    return false;
  }
  throw std::runtime_error("a transfer of no kind");
}

static bool overlap(uint64_t a, uint64_t aBytes, uint64_t b, uint64_t bBytes) {
  return a < b + bBytes && b < a + aBytes;
}

/// Null if the memory is not registered.
static const Registration *registrationOf(const Member &member,
                                          uint64_t address, uint64_t bytes) {
  for (const Registration &r : member.registered)
    if (address >= r.address && address + bytes <= r.address + r.bytes)
      return &r;
  return nullptr;
}

/// Transfers use registered memory in place; from elsewhere they are slow, and
/// no program of this project does that.
void Collectives::check(const Member &member, const Transfer &t) const {
  auto require = [&](uint64_t address, uint64_t bytes, const char *what) {
    memory.require(*member.process, address, bytes, what);
    if (std::getenv("FSDP_FAKECUDA_UNREGISTERED"))
      return;
    if (registrationOf(member, address, bytes))
      return;
    throw std::runtime_error(std::string(what) +
                             ": memory that is not registered");
  };
  if (sent(member, t) > 0)
    require(t.from, sent(member, t), "NCCL, what is sent");
  if (received(member, t) > 0)
    require(t.to, received(member, t), "NCCL, where it goes");
}

/// Nothing that a call sends may be written by it, but for what is in place.
void Collectives::checkOverlaps(const GroupCall &call) const {
  const Member &member = *call.member;
  for (const Transfer &in : call.transfers)
    for (const Transfer &out : call.transfers) {
      bool mayOverlap = &in == &out && isInPlace(member, in);
      if (!mayOverlap &&
          overlap(in.from, sent(member, in), out.to, received(member, out)))
        throw std::runtime_error(nameOf(call) +
                                 ": a transfer writes what another sends");
    }
}

std::shared_ptr<GroupCall> Collectives::issue(Process &process,
                                              const Group &call,
                                              std::vector<Transfer> transfers) {
  Member &member = memberOf(process, call.comm);
  auto group = std::make_shared<GroupCall>();
  group->member = &member;
  group->number = member.issued++;
  group->transfers = std::move(transfers);
  for (const Transfer &t : group->transfers)
    check(member, t);
  checkOverlaps(*group);
  member.calls.push_back(group);
  return group;
}

static bool has(const GroupCall &call, TransferKind kind, int peer) {
  for (const Transfer &t : call.transfers)
    if (t.kind == kind && t.peer == peer)
      return true;
  return false;
}

static bool isOfAllRanks(const Transfer &t) {
  return t.kind != TransferKind::Send && t.kind != TransferKind::Receive;
}
static bool isOfAllRanks(const GroupCall &call) {
  return std::any_of(call.transfers.begin(), call.transfers.end(),
                     [](const Transfer &t) { return isOfAllRanks(t); });
}

/// True if `call` has to do with the rank.
static bool names(const GroupCall &call, int rank) {
  return isOfAllRanks(call) || has(call, TransferKind::Send, rank) ||
         has(call, TransferKind::Receive, rank);
}

/// True if `other` has the other end of some transfer of every kind that `call`
/// has with it. Whether they agree in number and size is for later.
static bool answers(const GroupCall &other, const GroupCall &call) {
  int me = call.member->rank, peer = other.member->rank;
  auto both = [&](TransferKind mine, int toPeer, TransferKind its, int toMe) {
    return !has(call, mine, toPeer) || has(other, its, toMe);
  };
  return (!isOfAllRanks(call) || isOfAllRanks(other)) &&
         both(TransferKind::Send, peer, TransferKind::Receive, me) &&
         both(TransferKind::Receive, peer, TransferKind::Send, me);
}

/// The calls that run together with `call`: those at the head of the ranks that
/// it names, of the ranks that they name, and so on. Returns why one of them is
/// not there yet.
std::string Collectives::collect(const GroupCall &call, Calls &calls) const {
  auto &members = call.member->communicator->members;
  std::vector<bool> isIn(members.size(), false);
  std::vector<int> toVisit = {call.member->rank};
  isIn[size_t(call.member->rank)] = true;
  while (!toVisit.empty()) {
    Member &member = members[size_t(toVisit.back())];
    toVisit.pop_back();
    std::string who = "rank " + std::to_string(member.rank) + " of " +
                      call.member->communicator->name();
    if (member.process->socket < 0)
      return "waits for " + who + ", whose process has ended";
    if (member.calls.empty())
      return "waits for " + who + ", which has issued no call " +
             std::to_string(member.issued);
    GroupCall &first = *member.calls.front();
    if (!first.isAtHead)
      return "waits for " + who + ", whose call " +
             std::to_string(first.number) + " has not come to its turn";
    calls.push_back(&first);
    for (const Member &other : members) {
      if (!names(first, other.rank))
        continue;
      if (!other.calls.empty() && !answers(*other.calls.front(), first))
        return "waits for rank " + std::to_string(other.rank) +
               ", whose call " + std::to_string(other.calls.front()->number) +
               " does not answer it";
      if (isIn[size_t(other.rank)])
        continue;
      isIn[size_t(other.rank)] = true;
      toVisit.push_back(other.rank);
    }
  }
  return {};
}

std::string Collectives::waitsFor(const GroupCall &call) const {
  if (call.isDone)
    return {};
  if (call.member->calls.front().get() != &call)
    return nameOf(call) + " waits for call " +
           std::to_string(call.member->calls.front()->number);
  Calls calls;
  std::string reason = collect(call, calls);
  return reason.empty() ? reason : nameOf(call) + " " + reason;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

static std::vector<const Transfer *> transfersOf(const GroupCall &call,
                                                 TransferKind kind, int peer) {
  std::vector<const Transfer *> result;
  for (const Transfer &t : call.transfers)
    if (t.kind == kind && t.peer == peer)
      result.push_back(&t);
  return result;
}

static void copyBytes(uint64_t from, uint64_t to, uint64_t bytes) {
  std::memmove(pointerTo(to), pointerTo(from), bytes);
}

static std::runtime_error disagreement(const GroupCall &a, const GroupCall &b,
                                       const std::string &what) {
  return std::runtime_error(
      nameOf(a) + " of rank " + std::to_string(a.member->rank) + " and call " +
      std::to_string(b.number) + " of rank " + std::to_string(b.member->rank) +
      " disagree: " + what);
}

/// Where in a window that all ranks have; empty for other memory.
static std::optional<uint64_t> placeInWindow(const Member &member,
                                             uint64_t address, uint64_t bytes) {
  const Registration *of = registrationOf(member, address, bytes);
  if (!of || !of->isSymmetric)
    return std::nullopt;
  return address - of->address;
}

/// A transfer of all ranks takes and gives at the same place of their windows,
/// if these are symmetric: NCCL knows the others' addresses by its own.
void Collectives::checkWindows(const Calls &calls) const {
  auto places = [](const GroupCall &call) {
    std::vector<std::optional<uint64_t>> all;
    const Member &member = *call.member;
    for (const Transfer &t : call.transfers) {
      if (!isOfAllRanks(t) || t.kind == TransferKind::Reduce)
        continue;
      // In place, what a rank sends is its own part of what it receives.
      if (!isInPlace(member, t) || t.kind == TransferKind::ReduceScatter)
        all.push_back(placeInWindow(member, t.from, sent(member, t)));
      if (!isInPlace(member, t) || t.kind != TransferKind::ReduceScatter)
        all.push_back(placeInWindow(member, t.to, received(member, t)));
    }
    return all;
  };
  for (const GroupCall *call : calls)
    if (places(*call) != places(*calls[0]))
      throw disagreement(*calls[0], *call, "places in a symmetric window");
}

/// Gathers of the calls, matched by their position.
void Collectives::gather(const Calls &calls) const {
  auto of = [](const GroupCall &call) {
    return transfersOf(call, TransferKind::AllGather, -1);
  };
  for (const GroupCall *to : calls)
    for (const GroupCall *from : calls) {
      auto mine = of(*to), theirs = of(*from);
      if (mine.size() != theirs.size())
        throw disagreement(*to, *from, "one gathers more tensors");
      for (size_t i = 0; i < mine.size(); ++i) {
        if (mine[i]->bytes != theirs[i]->bytes)
          throw disagreement(*to, *from,
                             "tensor " + std::to_string(i) + " has " +
                                 std::to_string(mine[i]->bytes) + " and " +
                                 std::to_string(theirs[i]->bytes) + " bytes");
        copyBytes(theirs[i]->from,
                  mine[i]->to + uint64_t(from->member->rank) * mine[i]->bytes,
                  mine[i]->bytes);
      }
    }
}

/// Sends and receives of every pair of the calls, matched by their position.
void Collectives::exchange(const Calls &calls) const {
  for (const GroupCall *to : calls)
    for (const GroupCall *from : calls) {
      auto receives =
          transfersOf(*to, TransferKind::Receive, from->member->rank);
      auto sends = transfersOf(*from, TransferKind::Send, to->member->rank);
      if (receives.size() != sends.size())
        throw disagreement(*to, *from,
                           std::to_string(receives.size()) + " receives for " +
                               std::to_string(sends.size()) + " sends");
      for (size_t i = 0; i < sends.size(); ++i) {
        if (receives[i]->bytes != sends[i]->bytes)
          throw disagreement(*to, *from,
                             "receive " + std::to_string(i) + " of " +
                                 std::to_string(receives[i]->bytes) +
                                 " bytes for a send of " +
                                 std::to_string(sends[i]->bytes));
        copyBytes(sends[i]->from, receives[i]->to, sends[i]->bytes);
      }
    }
}

/// Adds as a ring does that ends at rank `last`: from the rank after it on,
/// one after the other. That is another order than the product's for three
/// ranks and more.
template <typename T>
static void addInRing(const std::vector<std::vector<char>> &parts, size_t last,
                      size_t begin, size_t end, std::vector<char> &sums) {
  for (size_t i = begin; i < end; ++i) {
    T sum{};
    for (size_t step = 1; step <= parts.size(); ++step) {
      T value;
      const auto &part = parts[(last + step) % parts.size()];
      std::memcpy(&value, part.data() + i * sizeof(T), sizeof value);
      sum = step == 1 ? value : sum + value;
    }
    std::memcpy(sums.data() + i * sizeof(T), &sum, sizeof sum);
  }
}

/// The sums of what all ranks give, in pieces that end at one rank each, or
/// all at `root` if that is none below 0.
template <typename T>
static std::vector<char> addPieces(const std::vector<std::vector<char>> &parts,
                                   int root) {
  size_t count = parts[0].size() / sizeof(T), ranks = parts.size();
  size_t piece = root < 0 ? (count + ranks - 1) / ranks : count;
  std::vector<char> sums(parts[0].size());
  for (size_t p = 0; p * piece < count; ++p)
    addInRing<T>(parts, root < 0 ? p : size_t(root), p * piece,
                 std::min(count, (p + 1) * piece), sums);
  return sums;
}

/// What the ranks of the calls give to a reduction each, by rank, before any
/// gets the result in the same place.
static std::vector<char> sumOf(const std::vector<GroupCall *> &calls,
                               const std::vector<const Transfer *> &one) {
  std::vector<std::vector<char>> parts(calls.size());
  for (size_t c = 0; c < calls.size(); ++c) {
    const Member &member = *calls[c]->member;
    std::vector<char> &part = parts[size_t(member.rank)];
    part.resize(sent(member, *one[c]));
    if (!part.empty())
      std::memcpy(part.data(), pointerTo(one[c]->from), part.size());
  }
  return one[0]->sum == SumType::F32 ? addPieces<float>(parts, one[0]->peer)
                                     : addPieces<int64_t>(parts, one[0]->peer);
}

static bool agree(const Transfer *a, const Transfer *b) {
  return a->kind == b->kind && a->peer == b->peer && a->sum == b->sum &&
         a->bytes == b->bytes;
}

/// Reductions of the calls, matched by their position.
void Collectives::reduce(const Calls &calls) const {
  std::vector<std::vector<const Transfer *>> all;
  for (const GroupCall *call : calls) {
    all.emplace_back();
    for (const Transfer &t : call->transfers)
      if (t.sum != SumType::None)
        all.back().push_back(&t);
    if (!std::equal(all[0].begin(), all[0].end(), all.back().begin(),
                    all.back().end(), agree))
      throw disagreement(*calls[0], *call,
                         "reductions in number, kind, type, root or size");
  }
  for (size_t i = 0; i < all[0].size(); ++i) {
    std::vector<const Transfer *> one;
    for (const auto &own : all)
      one.push_back(own[i]);
    std::vector<char> sums = sumOf(calls, one);
    for (size_t c = 0; c < calls.size(); ++c) {
      const Member &member = *calls[c]->member;
      uint64_t skipped = one[c]->kind == TransferKind::ReduceScatter
                             ? uint64_t(member.rank) * one[c]->bytes
                             : 0;
      if (uint64_t bytes = received(member, *one[c]))
        std::memcpy(pointerTo(one[c]->to), sums.data() + skipped, bytes);
    }
  }
}

void Collectives::run(GroupCall &call) {
  if (call.isDone)
    return;
  Calls calls;
  collect(call, calls);
  for (GroupCall *c : calls)
    c->isDone = true;
  try {
    checkWindows(calls);
    gather(calls);
    exchange(calls);
    reduce(calls);
  } catch (const std::runtime_error &e) {
    for (GroupCall *c : calls)
      c->member->process->fail(e.what());
    return;
  }
  for (GroupCall *c : calls)
    c->member->calls.pop_front();
}
