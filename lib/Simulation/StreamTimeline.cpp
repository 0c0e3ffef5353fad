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
  ofCollective = Duration::ofPicoseconds(
      model.besideCompute(second).picoseconds() - kSecond);
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
  /// What runs while compute does takes `slowdown` per second longer.
  Link(std::vector<Interval> &intervals, Duration slowdown)
      : intervals(intervals), pace(kSecond + slowdown.picoseconds()) {}

  /// For activity `number`. `ready` does not fall from call to call.
  void serve(uint32_t number, Duration ready, Duration duration,
             rt::Stream stream) {
    queue.push_back({number, ready, duration, stream});
    if (next + 1 == queue.size())
      begin();
  }

  /// The stream that runs at `now`, which only grows; none: compute. Lowers
  /// `until` to where it is over if compute runs on. Nothing begins later: it
  /// was free before.
  rt::Stream runningAt(Duration now, Duration &until) {
    while (next < queue.size() && ends <= now)
      end();
    if (next == queue.size())
      return rt::Stream::Compute;
    until = std::min(until, now + times(between(now, ends), /*up=*/true));
    return queue[next].stream;
  }

  /// Compute runs from `from`, of runningAt(), to `to`, of its `until` at most.
  void besideCompute(Duration from, Duration to) {
    if (pace == kSecond || next == queue.size())
      return;
    Duration left = between(from, ends);
    int64_t done = scaled(between(from, to).picoseconds(), kSecond, pace,
                          /*up=*/false);
    ends = to + Duration::ofPicoseconds(left.picoseconds() - done);
  }

  /// Compute waits until activity `number`, of this link, is over.
  void finish(uint32_t number) {
    while (next < queue.size() && queue[next].number <= number)
      end();
  }

  /// When it is idle, if compute runs no more.
  Duration freeAt() {
    while (next < queue.size())
      end();
    return isFreeAt;
  }

private:
  struct Job {
    uint32_t number;
    Duration ready, duration;
    rt::Stream stream;
  };

  void begin() {
    begins = later(queue[next].ready, isFreeAt);
    ends = begins + queue[next].duration;
  }
  void end() {
    intervals[queue[next].number] = {begins, ends};
    isFreeAt = ends;
    if (++next < queue.size())
      begin();
  }
  Duration times(Duration left, bool up) const {
    return pace == kSecond ? left
                           : Duration::ofPicoseconds(
                                 scaled(left.picoseconds(), pace, kSecond, up));
  }

  std::vector<Interval> &intervals;
  int64_t pace; // picoseconds beside compute for a second's work
  std::vector<Job> queue;
  size_t next = 0; // that runs, from `begins` to `ends` if compute rests
  Duration begins, ends;
  Duration isFreeAt; // by those before
};

class Run {
public:
  Run(const std::vector<Activity> &activities, const Slowdowns &slowdowns)
      : activities(activities), slowdowns(slowdowns),
        network(result.intervals, slowdowns.ofCollective),
        host(result.intervals, Duration()) {
    result.intervals.resize(activities.size());
    result.exposed.resize(activities.size());
  }

  Timeline run() {
    for (uint32_t number = 0; number < activities.size(); ++number)
      issue(number);
    result.total = later(now, later(network.freeAt(), host.freeAt()));
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
      bool isLast = end <= until;
      Duration to = isLast ? end : until;
      for (Link *link : {&network, &host})
        link->besideCompute(now, to);
      left = isLast ? 0
                    : left - scaled(between(now, to).picoseconds(), kSecond,
                                    pace, false);
      now = to;
    }
  }

  /// A collective on the compute stream.
  void hold(uint32_t number) {
    Duration before = now;
    Duration duration = activities[number].duration;
    network.serve(number, later(now, issued), duration, rt::Stream::Compute);
    network.finish(number);
    now = result.intervals[number].end;
    result.exposed[number] = between(before, now);
    result.link += duration;
    computeStream += duration;
  }

  void start(uint32_t number) {
    const Activity &activity = activities[number];
    bool isCopy = activity.stream == rt::Stream::Copy;
    (isCopy ? host : network)
        .serve(number, later(now, issued), activity.duration, activity.stream);
    (isCopy ? result.copies : result.link) += activity.duration;
    if (!isCopy)
      slowed += leastDelay(activity);
  }

  /// Of compute by a collective: what it loses while it runs beside it, or
  /// while it waits, if that is less.
  Duration leastDelay(const Activity &activity) const {
    int64_t more = slowdowns.perSecond[int(activity.stream)].picoseconds();
    int64_t alone = activity.duration.picoseconds();
    int64_t beside =
        scaled(alone, kSecond + slowdowns.ofCollective.picoseconds(), kSecond,
               /*up=*/false);
    return Duration::ofPicoseconds(
        std::min(alone, scaled(beside, more, kSecond + more, /*up=*/false)));
  }

  void await(uint32_t number) {
    uint32_t start = activities[number].start;
    bool isCopy = activities[start].stream == rt::Stream::Copy;
    (isCopy ? host : network).finish(start);
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
