//===- StreamTimeline.cpp - Streams that run beside each other ------------===//
#include "fsdp/Simulation/StreamTimeline.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::simulation;

static constexpr int64_t kSecond = 1'000'000'000'000;

Slowdowns::Slowdowns(const CostModel &model) {
  Duration second = Duration::ofPicoseconds(kSecond);
  for (int i = 0; i < rt::kStreams; ++i) {
    Duration beside = model.beside(static_cast<rt::Stream>(i), second);
    perSecond[i] = Duration::ofPicoseconds(beside.picoseconds() - kSecond);
  }
}

/// a * b / c, rounded up or down; what is too long is Duration::kMost.
static int64_t scaled(int64_t a, int64_t b, int64_t c, bool up) {
  __int128 product = static_cast<__int128>(a) * b + (up ? c - 1 : 0);
  return static_cast<int64_t>(std::min<__int128>(product / c, Duration::kMost));
}

static Duration later(Duration a, Duration b) { return a < b ? b : a; }
static Duration between(Duration from, Duration to) {
  return Duration::ofPicoseconds(to.picoseconds() - from.picoseconds());
}

namespace {

/// What serves one collective or copy at a time, in order of issue.
class Link {
public:
  Interval serve(Duration ready, Duration duration, rt::Stream stream) {
    Duration begin = later(ready, isFreeAt);
    isFreeAt = begin + duration;
    if (stream != rt::Stream::Compute && begin < isFreeAt)
      busy.push_back({isFreeAt, stream});
    return {begin, isFreeAt};
  }

  /// The stream that runs at `now`, which only grows; none: compute. Lowers
  /// `until` to where it is over. Nothing begins later: it was free before.
  rt::Stream runningAt(Duration now, Duration &until) {
    while (next < busy.size() && busy[next].end <= now)
      ++next;
    if (next == busy.size())
      return rt::Stream::Compute;
    until = std::min(until, busy[next].end);
    return busy[next].stream;
  }

  Duration freeAt() const { return isFreeAt; }

private:
  struct Busy {
    Duration end;
    rt::Stream stream;
  };
  std::vector<Busy> busy; // beside compute
  size_t next = 0;
  Duration isFreeAt;
};

class Run {
public:
  Run(const std::vector<Activity> &activities, const Slowdowns &slowdowns)
      : activities(activities), slowdowns(slowdowns) {
    result.intervals.resize(activities.size());
    result.exposed.resize(activities.size());
  }

  Timeline run() {
    for (uint32_t number = 0; number < activities.size(); ++number)
      issue(number);
    result.total = later(later(now, network.freeAt()), host.freeAt());
    result.bound =
        later(later(computeStream + slowed, result.link), result.copies);
    return std::move(result);
  }

private:
  void issue(uint32_t number) {
    const Activity &activity = activities[number];
    issued += activity.issue;
    switch (activity.kind) {
    case Activity::Work:
      return activity.isCollective ? hold(number) : work(number);
    case Activity::Start:
      return start(number);
    case Activity::Await:
      return await(number);
    }
  }

  void work(uint32_t number) {
    now = later(now, issued);
    Interval &interval = result.intervals[number];
    interval.begin = now;
    Duration alone = activities[number].duration;
    result.compute += alone;
    computeStream += alone;
    compute(alone.picoseconds());
    interval.end = now;
  }

  /// Moves on by work that takes `left` alone.
  void compute(int64_t left) {
    while (left > 0) {
      Duration until = Duration::ofPicoseconds(Duration::kMost);
      Duration more;
      for (Link *link : {&network, &host})
        more += slowdowns.perSecond[int(link->runningAt(now, until))];
      int64_t pace = (Duration::ofPicoseconds(kSecond) + more).picoseconds();
      Duration end =
          now + Duration::ofPicoseconds(
                    pace == kSecond ? left : scaled(left, pace, kSecond, true));
      if (end <= until) {
        now = end;
        return;
      }
      left -= scaled(between(now, until).picoseconds(), kSecond, pace, false);
      now = until;
    }
  }

  /// A collective on the compute stream.
  void hold(uint32_t number) {
    Duration before = now;
    Duration duration = activities[number].duration;
    Interval interval =
        network.serve(later(now, issued), duration, rt::Stream::Compute);
    result.intervals[number] = interval;
    now = interval.end;
    result.exposed[number] = between(before, now);
    result.link += duration;
    computeStream += duration;
  }

  void start(uint32_t number) {
    const Activity &activity = activities[number];
    bool isCopy = activity.stream == rt::Stream::Copy;
    result.intervals[number] =
        (isCopy ? host : network)
            .serve(later(now, issued), activity.duration, activity.stream);
    (isCopy ? result.copies : result.link) += activity.duration;
    if (!isCopy)
      slowed += leastDelay(activity);
  }

  /// Of compute by a collective: what it loses while it runs beside it, which
  /// is less than what it loses while it waits.
  Duration leastDelay(const Activity &activity) const {
    int64_t more = slowdowns.perSecond[int(activity.stream)].picoseconds();
    return Duration::ofPicoseconds(scaled(activity.duration.picoseconds(), more,
                                          kSecond + more, /*up=*/false));
  }

  void await(uint32_t number) {
    uint32_t start = activities[number].start;
    Duration end = later(now, result.intervals[start].end);
    result.intervals[number] = {now, end};
    result.exposed[start] += between(now, end);
    now = end;
  }

  const std::vector<Activity> &activities;
  const Slowdowns &slowdowns;
  Timeline result;
  Link network, host;
  Duration now;    // of the compute stream
  Duration issued; // by the host
  Duration computeStream;
  Duration slowed; // what compute loses at least beside collectives
};

} // namespace

Timeline fsdp::simulation::run(const std::vector<Activity> &activities,
                               const Slowdowns &slowdowns) {
  return Run(activities, slowdowns).run();
}
