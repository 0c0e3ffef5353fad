//===- HeartbeatTransport.h - How heartbeats travel -------------*- C++ -*-===//
//
// Moves rows of the table between ranks, and decides nothing.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_LIVENESS_HEARTBEATTRANSPORT_H
#define FSDP_RUNTIME_LIVENESS_HEARTBEATTRANSPORT_H

#include "ProgressTable.h"
#include "runtime/rendezvous/Transfer.h"
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// Of one rank. One thread at a time calls it; nothing but wait() waits.
class HeartbeatTransport {
public:
  virtual ~HeartbeatTransport() = default;

  /// Sends a heartbeat with this rank's row. Allocates nothing unless another
  /// backup has been named.
  virtual void send(const ProgressTable &table) = 0;
  /// Puts into the table what has come, which counts for the heartbeat at
  /// `now`. Gives the status with which this process ends, if another rank has
  /// ended the job.
  virtual std::optional<int> receive(ProgressTable &table, double now) = 0;
  /// Waits until `end`, for a message or for something to read at the file
  /// `wake`.
  virtual void wait(int wake, Time end) = 0;

  /// Hands a problem of this rank to the coordinator.
  virtual void tellProblem(const std::string &problem) = 0;
  /// The others end too, with the same status, and print nothing.
  virtual void tellEnd(int status) = 0;
  /// This rank leaves the job: its silence and its end are no alarm from here
  /// on.
  virtual void leave() = 0;
  /// Whether the others know.
  virtual bool mayGo(const ProgressTable &table) const = 0;

  /// Whether ranks see the rows of all others as they are, and not as those of
  /// some ranks were at the last heartbeat.
  virtual bool isLive() const = 0;
};

// `channels` are those of the largest row that is to come, so that nothing is
// allocated later.

/// Through memory that the ranks of one machine have mapped: by rank, the
/// control pages that an arena ends with. The rows of a stopped or dead rank
/// stay readable.
std::unique_ptr<HeartbeatTransport>
makeSharedHeartbeats(std::vector<std::byte *> pages, int rank, size_t channels);

/// Through connections of all ranks to rank 0 (TcpHeartbeats.cpp). On rank 0
/// `sockets` has one for every rank, and -1 for itself; elsewhere one. It
/// closes them.
std::unique_ptr<HeartbeatTransport>
makeTcpHeartbeats(int rank, int size, const std::vector<int> &sockets,
                  size_t channels);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LIVENESS_HEARTBEATTRANSPORT_H
