//===- StreamTimeline.h - Streams that run beside each other ----*- C++ -*-===//
//
// What is issued runs on its stream, and each stream runs in order. Compute
// goes on while collectives and copies run, and waits only where it awaits
// one. The rules:
//
//   - A collective or copy starts when compute has come to its place.
//   - Gather and reduce stream share one link. It serves one collective at a
//     time, in order of issue. Copies have a link of their own.
//   - While a collective or copy runs, compute takes 1 + its slow-down as long.
//     Where both run, the slow-downs add up.
//   - While compute runs, a collective takes 1 + its own slow-down as long.
//   - A collective on the compute stream holds the link and compute.
//   - The host issues everything in order, and ahead of the streams.
//   - The program ends when all streams are idle.
//
// No rule chooses between streams by time. So longer work never makes other
// work start earlier where nothing slows compute, and a slow-down never
// shortens.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SIMULATION_STREAMTIMELINE_H
#define FSDP_SIMULATION_STREAMTIMELINE_H

#include "fsdp/Machine/CostModel.h"
#include <array>
#include <vector>

namespace fsdp::simulation {

/// One entry of the order of issue.
struct Activity {
  enum Kind : uint8_t {
    Work,  ///< On the compute stream, which is busy with it.
    Start, ///< On another stream.
    Await, ///< Compute waits for `start`.
  };
  Kind kind = Work;
  /// Of work: a collective, which needs the link.
  bool isCollective = false;
  rt::Stream stream = rt::Stream::Compute;
  uint32_t start = 0; ///< Of an Await: the number of its Start, before it.
  Duration duration;  ///< Without slow-down.
  Duration issue;     ///< Of the host.
};

/// By stream: what compute takes longer while one runs, per second; and what a
/// collective takes longer while compute runs.
struct Slowdowns {
  std::array<Duration, rt::kStreams> perSecond;
  Duration ofCollective;

  Slowdowns() = default;
  explicit Slowdowns(const CostModel &model);
};

struct Interval {
  Duration begin, end;
};

struct Timeline {
  /// Of each activity; of an Await the time that compute waits.
  std::vector<Interval> intervals;
  /// Of each Start and each collective on the compute stream: how long compute
  /// stands still for it, with its wait for the link. 0 for the others.
  std::vector<Duration> exposed;
  Duration total;
  Duration compute; ///< Work alone, without slow-down and collectives.
  Duration link;    ///< All collectives.
  Duration copies;
  /// What no order of the same work is faster than.
  Duration bound;
};

Timeline run(const std::vector<Activity> &activities,
             const Slowdowns &slowdowns);

} // namespace fsdp::simulation

#endif // FSDP_SIMULATION_STREAMTIMELINE_H
