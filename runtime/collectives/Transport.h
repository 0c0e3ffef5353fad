//===- Transport.h - How bytes travel between ranks -------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_COLLECTIVES_TRANSPORT_H
#define FSDP_RUNTIME_COLLECTIVES_TRANSPORT_H

#include "runtime/core/Arena.h"
#include <functional>
#include <memory>
#include <vector>

namespace fsdp::rt {

/// Moves bytes between the ranks of a group. A round is
///   open(); swap() with every peer; close(); …use what was received…
/// and after the last round done(). Peers are positions in the group.
class Transport {
public:
  explicit Transport(double timeoutSeconds) : timeout(timeoutSeconds) {}
  virtual ~Transport() = default;

  /// What this rank sends in the round is ready.
  virtual void open() = 0;
  /// Sends `sendBytes` at `send` to `peer` and receives `bytes`. `source` is
  /// where they lie in the peer's arena, as an address of the own arena;
  /// `space` may receive them. Gives the place where they are after close().
  virtual const std::byte *swap(int peer, const std::byte *send,
                                int64_t sendBytes, const std::byte *source,
                                std::byte *space, int64_t bytes) = 0;
  /// Everything of the round has been received (or can be read in place).
  virtual void close() = 0;
  /// Peers have read what this rank sent: its buffers may be reused.
  virtual void done() = 0;

  /// Ends the job, where a round takes too long.
  std::function<void()> onTimeout;

protected:
  /// `begin` (in now()'s nanoseconds) is not to be too long ago.
  void checkTime(int64_t begin) const;

private:
  double timeout;
};

/// Through memory: all ranks of the group have mapped each other's arenas.
/// Null if they have not, or if there are too many channels.
std::unique_ptr<Transport> createSharedTransport(const Arena &arena,
                                                 const std::vector<int> &ranks,
                                                 int me, int channel,
                                                 double timeoutSeconds);

/// Through MPI. Collective over the whole job; `transfers` is the largest
/// number of tensors in a round.
std::unique_ptr<Transport> createMPITransport(const std::vector<int> &ranks,
                                              int me, int transfers,
                                              double timeoutSeconds);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COLLECTIVES_TRANSPORT_H
