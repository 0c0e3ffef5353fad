//===- SharedTransport.cpp - Through mapped arenas of one machine ---------===//
//
// Every rank runs the same program, so a tensor has the same offset in every
// arena and a peer's copy can be read where it is. What is left is order: a
// counter per rank and channel, raised when the rank arrives at a barrier.
//
//===----------------------------------------------------------------------===//
#include "Transport.h"
#include "runtime/core/Timeline.h"
#include "runtime/rendezvous/Gate.h"

using namespace fsdp::rt;

namespace {

class SharedTransport final : public Transport {
public:
  SharedTransport(const Arena &arena, const std::vector<int> &ranks, int me,
                  int channel, double timeoutSeconds)
      : Transport(timeoutSeconds), base(arena.base()), me(me) {
    for (int r : ranks) {
      peers.push_back(arena.peer(r));
      gates.push_back(reinterpret_cast<Gate *>(arena.control(r)) + channel);
    }
  }

  void open() override { synchronize(); }
  const std::byte *swap(int peer, const std::byte *, int64_t,
                        const std::byte *source, std::byte *,
                        int64_t) override {
    return peers[size_t(peer)] + (source - base);
  }
  void close() override {}
  void done() override { synchronize(); }

private:
  void synchronize();

  const std::byte *base;
  int me;
  uint32_t round = 0;
  std::vector<const std::byte *> peers;
  /// Of the channel, in the control pages.
  std::vector<Gate *> gates;
};

} // namespace

void SharedTransport::synchronize() {
  gates[size_t(me)]->arrive(++round);
  int64_t begin = now();
  for (size_t p = 0; p < gates.size(); ++p)
    if (int(p) != me)
      gates[p]->await(round, [&] { checkTime(begin); });
}

std::unique_ptr<Transport>
fsdp::rt::createSharedTransport(const Arena &arena,
                                const std::vector<int> &ranks, int me,
                                int channel, double timeoutSeconds) {
  if (uint64_t(channel) >= Arena::kMaxChannels)
    return nullptr;
  for (int r : ranks)
    if (!arena.peer(r))
      return nullptr;
  return std::make_unique<SharedTransport>(arena, ranks, me, channel,
                                           timeoutSeconds);
}
