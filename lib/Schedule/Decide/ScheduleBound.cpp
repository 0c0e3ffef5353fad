//===- ScheduleBound.cpp - What no communication is faster than -----------===//
#include "ScheduleBound.h"
#include "fsdp/Simulation/StreamTimeline.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

/// What is left of `time` beside `hidden`.
static Duration beyond(Duration time, Duration hidden) {
  return Duration::ofPicoseconds(
      std::max<int64_t>(time.picoseconds() - hidden.picoseconds(), 0));
}

/// What compute loses at least beside a collective that takes `time`.
static Duration leastDelay(Duration time, Duration perSecond) {
  static constexpr __int128 kSecond = 1'000'000'000'000;
  __int128 more = perSecond.picoseconds();
  return Duration::ofPicoseconds(
      static_cast<int64_t>(time.picoseconds() * more / (kSecond + more)));
}

/// Of all transfers of a pass at the rate of its fastest bucket: the first ones
/// in any number.
static Duration leastTravel(const TransferTimes &times, TransferKind kind) {
  Id count = times.transfers()[kind].size();
  int64_t all = times.bytes(kind, 0, count);
  Duration least = Duration::ofPicoseconds(Duration::kMost);
  for (Id end = 1; end < count; end *= 2) {
    auto share = static_cast<double>(all) /
                 static_cast<double>(times.bytes(kind, 0, end));
    least = std::min(least, Duration::ofSeconds(
                                times.travel(kind, 0, end).seconds() * share));
  }
  return count == 0 ? Duration()
                    : std::min(least, times.travel(kind, 0, count));
}

Duration fsdp::problem::boundOf(const TransferTimes &times, Duration compute,
                                Duration held, const CostModel &model) {
  const Transfers &transfers = times.transfers();
  Id gathers = transfers[TransferKind::Forward].size(),
     reductions = transfers[TransferKind::Reduce].size();
  Duration allGathers, allReductions, first, last;
  if (gathers != 0) {
    allGathers = leastTravel(times, TransferKind::Forward);
    first = beyond(times.travel(TransferKind::Forward, 0, 1),
                   times.beforeGathers());
  }
  if (reductions != 0) {
    allReductions = leastTravel(times, TransferKind::Reduce);
    last = times.travel(TransferKind::Reduce, reductions - 1, reductions);
  }
  simulation::Slowdowns slowdowns(model);
  Duration slowed = leastDelay(beyond(allGathers, first),
                               slowdowns.perSecond[int(rt::Stream::Gather)]) +
                    leastDelay(beyond(allReductions, last),
                               slowdowns.perSecond[int(rt::Stream::Reduce)]);
  return std::max(compute + held + first + last + slowed,
                  allGathers + times.betweenPasses() + allReductions +
                      times.afterReductions());
}
