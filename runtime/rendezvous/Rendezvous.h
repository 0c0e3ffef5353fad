//===- Rendezvous.h - How ranks find each other without MPI -----*- C++ -*-===//
//
// Rank 0 listens, the others connect and say which job and rank they are. A
// client that is not of the job is turned away, and the job goes on without it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_RENDEZVOUS_RENDEZVOUS_H
#define FSDP_RUNTIME_RENDEZVOUS_RENDEZVOUS_H

#include "fsdp/Rendezvous/Environment.h"
#include <cstdint>
#include <vector>

namespace fsdp::rt {

/// The port where rank 0 listens.
constexpr const char *kPortVariable = "FSDP_PORT";
/// The name of the job, the same for all its ranks and another for other jobs.
constexpr const char *kJobVariable = "FSDP_JOB";
/// For rank 0 of a local job: the number of a socket that listens already.
constexpr const char *kListenerVariable = "FSDP_LISTENER";

/// A socket that listens. Closes itself.
struct Listener {
  int socket = -1;
  int port = 0;

  Listener() = default;
  Listener(int socket, int port) : socket(socket), port(port) {}
  Listener(Listener &&other) noexcept;
  Listener &operator=(Listener &&other) noexcept;
  ~Listener() { close(); }
  void close();
};

/// Listens at `port`, or at a free one if that is 0; an empty host is any
/// address of this machine. A port that somebody has may become free within
/// `seconds`. Throws fsdp::Error.
Listener listenAt(const std::string &host, int port, double seconds = 0);

/// When a connection that is silent is asked whether it lives, how often and
/// how many times, in seconds: a machine that is gone is noticed in a minute
/// and a half. The system's own times are hours.
constexpr int kKeepAliveIdle = 30, kKeepAliveInterval = 10, kKeepAliveCount = 6;

/// Where the ranks of a job meet.
struct RendezvousEndpoint {
  std::string host;
  int port;
  /// What tells the job from others.
  uint64_t job;
};

/// Follows from the environment of a rank:
///   host  MASTER_ADDR, the first host of a Slurm step, or this machine
///   port  FSDP_PORT, the one after MASTER_PORT (where torchrun itself
///         listens), or one that the name of the job gives
///   job   FSDP_JOB, or what torchrun, Slurm or mpirun call it
/// Throws fsdp::Error if ranks on several machines have no address, or a job
/// has neither a name nor a port.
RendezvousEndpoint rendezvousEndpoint(const LaunchEnvironment &place);

/// Two connections between rank 0 and each other rank: one for data, and one
/// for heartbeats (TcpHeartbeats), which no data holds up. On rank 0 both lists
/// have a socket for every rank, and -1 for itself; elsewhere one.
struct Lines {
  std::vector<int> data, heartbeats;
};

/// Connects the ranks of a job. Throws fsdp::Error that names the ranks that
/// did not connect within `seconds`, or did so twice, or if this process may
/// not have so many connections.
Lines rendezvous(const RendezvousEndpoint &place, int rank, int size,
                 double seconds);

/// Rank 0's side at a socket that listens already.
Lines acceptRanks(const Listener &listener, uint64_t job, int size,
                  double seconds);

/// Where rank 0 listens, for ranks that can already send each other bytes
/// (MPI) and need connections for heartbeats.
struct Invitation {
  uint64_t job; // random
  int32_t port, count;
  char address[16][48]; // of all networks of rank 0's machine
};
Invitation inviteRanks(const Listener &listener);

/// Those connections, as Lines::heartbeats. `listener` is rank 0's alone.
/// Throws fsdp::Error as rendezvous().
std::vector<int> connectInvited(const Invitation &invitation,
                                const Listener &listener, int rank, int size,
                                double seconds);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_RENDEZVOUS_RENDEZVOUS_H
