//===- Arena.h - The one allocation of a rank -------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CORE_ARENA_H
#define FSDP_RUNTIME_CORE_ARENA_H

#include "fsdp/Core/Context.h"

namespace fsdp::rt {

/// The bytes in which a rank's tensors live. On one node the arenas of all
/// ranks are mapped into each other, so that a collective reads its peers'
/// tensors where they are.
class Arena {
public:
  Arena() = default;
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;
  ~Arena();

  /// Collective over the job. Returns a message on failure, or nothing.
  std::string create(uint64_t bytes, const World &world);

  std::byte *base() const { return own; }
  uint64_t size() const { return bytes; }
  /// Where rank `rank`'s arena is mapped here, or null.
  std::byte *peer(int rank) const {
    return peers.empty() ? nullptr : peers[size_t(rank)];
  }
  /// The control pages of `rank` after its arena, or null: zeroed words for
  /// synchronisation between processes.
  std::byte *control(int rank) const {
    std::byte *p = peer(rank);
    return p ? p + mapped - kControlBytes : nullptr;
  }
  static constexpr uint64_t kControlBytes = 1 << 16;
  /// What lies there: a cache line per channel (SharedTransport), a progress
  /// counter per channel (HostProgress), and the rank's row (SharedHeartbeats).
  static constexpr uint64_t kMaxChannels = 896;
  static constexpr uint64_t kProgressAt = kMaxChannels * 64;
  static constexpr uint64_t kHeartbeatAt = kProgressAt + kMaxChannels * 8;
  static_assert(kHeartbeatAt < kControlBytes);

private:
  /// Fails with the reason in `why`.
  bool createShared(const World &world, std::string &why);
  std::byte *makeSegment();
  bool mapPeers(const World &world);

  std::byte *own = nullptr;
  uint64_t bytes = 0, mapped = 0;
  /// The file behind a shared arena, or the segment; -1: there is none.
  int fd = -1, segment = -1;
  std::vector<std::byte *> peers;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CORE_ARENA_H
