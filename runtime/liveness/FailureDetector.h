//===- FailureDetector.h - Whether a job can go on --------------*- C++ -*-===//
//
// A pure function of the table, its clock and the limits: it has no thread, no
// socket and no memory of its own, so that tests run it on a clock of theirs.
//
// Rank 0 is the coordinator: it decides for all ranks, and the others only
// whether it is still there. If it is lost, the backup coordinator speaks, a
// rank that it has named before.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_LIVENESS_FAILUREDETECTOR_H
#define FSDP_RUNTIME_LIVENESS_FAILUREDETECTOR_H

#include "ProgressTable.h"

namespace fsdp::rt {

/// A rank's problem does not end the job for so long: the end of another rank,
/// which may be its cause, is noticed within that, and who waits.
inline constexpr double kGraceSeconds = 0.5;
inline constexpr int kGraceHeartbeats = 2;
/// The last counters of a rank that has not been heard for so many heartbeats
/// are old, and a wait counts when it has lasted for so many.
inline constexpr int kOldHeartbeats = 2;
/// The launcher of ranks on CPUs has so long to end the job by itself when one
/// has ended, and whoever speaks for the job has so long to end it.
inline constexpr double kSpeechSeconds = 10;

/// All in seconds.
struct LivenessLimits {
  double silence = 0;    // of a rank; 0: for ever
  double collective = 0; // inside of one; 0: for ever
  double period = 1;     // between two heartbeats
  /// From the end of a rank until it ends the job.
  double lossGrace = 0;
  /// From the connection of a rank until its first heartbeat; 0: for ever.
  double begin = 0;

  double grace() const;
};
/// For a heartbeat of so many seconds or none (0), at a period that suits
/// collectives too that may take so many.
LivenessLimits livenessLimits(double heartbeat, double timeout);

/// A channel in which a rank waits.
struct RankWait {
  int rank = -1; // nobody waits
  size_t channel = 0;
  ChannelProgress progress;
};

/// The ranks that keep others waiting in a collective.
struct MissingRanks {
  enum Kind {
    None,   // all have arrived
    Silent, // they are lost or silent: what they said is older than the wait
    Late,   // they have not come to it
    Gone    // they have ended it alone, or left the job
  } kind = None;
  std::vector<int> ranks;
};

/// What is wrong, and who says so.
struct Failure {
  enum Kind {
    None,      // the job goes on
    Silent,    // nothing has come from ranks[0] for the limit
    NotBegun,  // ranks[0] has connected, and no heartbeat has come within the
               // limit
    Stuck,     // ranks[0] is in a collective for longer than the limit
    Lost,      // `ranks` have ended
    Problem,   // ranks[0] says what is wrong
    StageStuck // ranks[0] is in its stage for longer than the limit
  } kind = None;
  std::vector<int> ranks;
  /// When it became true, on the table's clock.
  double due = 0;

  enum Speaker {
    This,        // this rank says it and ends the job
    Coordinator, // which is to be told of this rank's problem
    Another      // who ends the job
  } speaker = This;

  /// A wait for a silent rank, or the longest; of Stuck the one that is too
  /// long.
  RankWait wait{};
  /// Where those that are late for `wait` wait themselves, and so on: the wait
  /// whose missing ranks wait for nobody. `wait` itself where ranks wait for
  /// each other.
  RankWait cause{};
  MissingRanks missing{}; // in `cause`
};

/// What `rank` decides at `now`. Where nothing is wrong it allocates nothing.
Failure detectFailure(const ProgressTable &table, double now,
                      const LivenessLimits &limits, int rank);

/// The rank that speaks if the coordinator is lost: the first one of another
/// machine, which need not be lost with it, or the first one; -1: none has
/// begun.
int chooseBackup(const ProgressTable &table, int coordinator);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LIVENESS_FAILUREDETECTOR_H
