//===- StreamTimelineTest.cpp - Streams beside each other -----------------===//
//
// Timelines computed by hand, one for each rule, and what holds for all of
// them. Times are microseconds.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Simulation/StreamTimeline.h"
#include <gtest/gtest.h>
#include <random>

using namespace fsdp;
using namespace fsdp::simulation;
using rt::Stream;

namespace {

constexpr int64_t kMicrosecond = 1'000'000;
Duration us(double count) {
  return Duration::ofPicoseconds(int64_t(count * kMicrosecond));
}

class Timelines : public ::testing::Test {
protected:
  uint32_t work(double time, double issue = 0) {
    return add(
        {Activity::Work, false, Stream::Compute, 0, us(time), us(issue)});
  }
  uint32_t hold(double time, double issue = 0) {
    return add({Activity::Work, true, Stream::Compute, 0, us(time), us(issue)});
  }
  uint32_t start(Stream stream, double time, double issue = 0) {
    return add({Activity::Start, stream != Stream::Copy, stream, 0, us(time),
                us(issue)});
  }
  uint32_t gather(double time) { return start(Stream::Gather, time); }
  uint32_t reduce(double time) { return start(Stream::Reduce, time); }
  uint32_t copy(double time) { return start(Stream::Copy, time); }
  void await(uint32_t start) {
    add({Activity::Await, false, Stream::Compute, start, {}, {}});
  }
  void slow(Stream stream, double by) {
    slowdowns.perSecond[int(stream)] = Duration::ofSeconds(by);
  }

  /// Begin and end of an activity.
  std::pair<double, double> at(uint32_t number) {
    Interval interval = line().intervals[number];
    return {inMicroseconds(interval.begin), inMicroseconds(interval.end)};
  }
  double total() { return inMicroseconds(line().total); }
  double exposed(uint32_t number) {
    return inMicroseconds(line().exposed[number]);
  }
  Timeline line() { return run(activities, slowdowns); }
  static double inMicroseconds(Duration duration) {
    return double(duration.picoseconds()) / kMicrosecond;
  }

  std::vector<Activity> activities;
  Slowdowns slowdowns;

private:
  uint32_t add(const Activity &activity) {
    activities.push_back(activity);
    return uint32_t(activities.size() - 1);
  }
};

using Times = std::pair<double, double>;

} // namespace

TEST_F(Timelines, NothingTakesNoTime) {
  EXPECT_EQ(total(), 0);
  EXPECT_EQ(line().bound, Duration());
}

TEST_F(Timelines, ComputeRunsInOrder) {
  uint32_t a = work(3), b = work(4);
  EXPECT_EQ(at(a), Times(0, 3));
  EXPECT_EQ(at(b), Times(3, 7));
}

TEST_F(Timelines, CollectiveRunsBesideCompute) {
  work(2);
  uint32_t g = gather(5), b = work(4);
  EXPECT_EQ(at(g), Times(2, 7));
  EXPECT_EQ(at(b), Times(2, 6));
  // Nobody awaits it: the program ends after it.
  EXPECT_EQ(total(), 7);
}

TEST_F(Timelines, AwaitWaits) {
  uint32_t g = gather(5);
  work(2);
  await(g);
  uint32_t b = work(1);
  EXPECT_EQ(at(b), Times(5, 6));
  EXPECT_EQ(at(2), Times(2, 5));
  EXPECT_EQ(exposed(g), 3);
}

TEST_F(Timelines, AwaitOfWhatIsOverTakesNoTime) {
  uint32_t g = gather(1);
  work(2);
  await(g);
  EXPECT_EQ(at(work(1)), Times(2, 3));
  EXPECT_EQ(exposed(g), 0);
}

TEST_F(Timelines, StreamsRunInOrder) {
  uint32_t a = gather(3), b = gather(2);
  EXPECT_EQ(at(a), Times(0, 3));
  EXPECT_EQ(at(b), Times(3, 5));
}

TEST_F(Timelines, GatherAndReduceShareALink) {
  uint32_t r = reduce(4);
  work(1);
  uint32_t g = gather(2);
  EXPECT_EQ(at(r), Times(0, 4));
  EXPECT_EQ(at(g), Times(4, 6));
  // The wait for the link is exposed too.
  await(g);
  EXPECT_EQ(exposed(g), 5);
  EXPECT_EQ(exposed(r), 0);
}

TEST_F(Timelines, LinkServesInOrderOfIssue) {
  gather(10);
  uint32_t r = reduce(1), g = gather(1);
  EXPECT_EQ(at(r), Times(10, 11));
  EXPECT_EQ(at(g), Times(11, 12));
}

TEST_F(Timelines, CopiesHaveALinkOfTheirOwn) {
  gather(4);
  uint32_t a = copy(3), b = copy(2);
  EXPECT_EQ(at(a), Times(0, 3));
  EXPECT_EQ(at(b), Times(3, 5));
  EXPECT_EQ(total(), 5);
}

TEST_F(Timelines, ComputeIsSlowBesideACollective) {
  slow(Stream::Gather, 0.25);
  gather(10);
  EXPECT_EQ(at(work(4)), Times(0, 5));
}

TEST_F(Timelines, PartsOfAPicosecondCount) {
  slow(Stream::Gather, 0.25);
  gather(1);
  activities.push_back({Activity::Work, false, Stream::Compute, 0,
                        Duration::ofPicoseconds(1), Duration()});
  EXPECT_EQ(line().intervals[1].end, Duration::ofPicoseconds(2));
}

TEST_F(Timelines, OnlyWhileItRuns) {
  slow(Stream::Gather, 0.25);
  // 5 beside the gather do 4 of 10; the other 6 are alone.
  gather(5);
  EXPECT_EQ(at(work(10)), Times(0, 11));
}

TEST_F(Timelines, AndFromWhereItBegins) {
  slow(Stream::Gather, 0.25);
  // The reduction holds the link up to 4 and slows nothing.
  reduce(4);
  gather(5);
  // 4 alone, 5 that do 4, 2 alone.
  EXPECT_EQ(at(work(10)), Times(0, 11));
}

TEST_F(Timelines, EachStreamHasItsSlowdown) {
  slow(Stream::Gather, 0.5);
  slow(Stream::Reduce, 0.25);
  gather(3);  // 3 that do 2
  reduce(10); // the rest
  EXPECT_EQ(at(work(6)), Times(0, 8));
}

TEST_F(Timelines, SlowdownsOfLinkAndCopiesAddUp) {
  slow(Stream::Gather, 0.25);
  slow(Stream::Copy, 0.75);
  gather(6);
  copy(6);
  EXPECT_EQ(at(work(3)), Times(0, 6));
}

TEST_F(Timelines, CollectiveOnComputeHoldsBoth) {
  uint32_t h = hold(3), g = gather(2), b = work(1);
  EXPECT_EQ(at(h), Times(0, 3));
  EXPECT_EQ(at(g), Times(3, 5));
  EXPECT_EQ(at(b), Times(3, 4));
  EXPECT_EQ(exposed(h), 3);
}

TEST_F(Timelines, AndWaitsForTheLink) {
  gather(5);
  work(2);
  uint32_t h = hold(3);
  EXPECT_EQ(at(h), Times(5, 8));
  EXPECT_EQ(exposed(h), 6);
}

TEST_F(Timelines, ItsTimeIsNotSlowed) {
  slow(Stream::Gather, 0.5);
  slow(Stream::Reduce, 0.5);
  EXPECT_EQ(at(hold(3)), Times(0, 3));
}

TEST_F(Timelines, ComputeSlowsACollective) {
  slowdowns.ofCollective = us(1000000);
  uint32_t g = gather(3);
  work(10);
  EXPECT_EQ(at(g), Times(0, 6));
  EXPECT_EQ(total(), 10);
}

TEST_F(Timelines, BothSlowEachOther) {
  slow(Stream::Gather, 1);
  slowdowns.ofCollective = us(1000000);
  // A core's time is shared in halves: 8 that do 4 of each, then 3 of compute.
  uint32_t g = gather(4);
  EXPECT_EQ(at(work(7)), Times(0, 11));
  EXPECT_EQ(at(g), Times(0, 8));
  // Whoever waits leaves the core to the other: the bound is what both need.
  EXPECT_EQ(line().bound, us(11));
}

TEST_F(Timelines, ACollectiveIsFastWhereComputeWaits) {
  slowdowns.ofCollective = us(1000000);
  uint32_t g = gather(5);
  work(4); // 2 of 5
  await(g);
  EXPECT_EQ(at(g), Times(0, 7));
  EXPECT_EQ(exposed(g), 3);
}

TEST_F(Timelines, TheNextBeginsWhereASlowOneEnds) {
  slowdowns.ofCollective = us(500000);
  uint32_t a = gather(2), b = reduce(4);
  work(6); // 3 do 2, 3 do 2
  uint32_t h = hold(1);
  EXPECT_EQ(at(a), Times(0, 3));
  EXPECT_EQ(at(b), Times(3, 8));
  EXPECT_EQ(at(h), Times(8, 9));
}

TEST_F(Timelines, CopiesAreNotSlowed) {
  slowdowns.ofCollective = us(1000000);
  uint32_t c = copy(3);
  work(4);
  EXPECT_EQ(at(c), Times(0, 3));
}

TEST_F(Timelines, HostIssuesEverythingInOrder) {
  uint32_t a = work(1, 3), b = work(1, 3), r = start(Stream::Reduce, 1, 2);
  EXPECT_EQ(at(a), Times(3, 4));
  EXPECT_EQ(at(b), Times(6, 7));
  EXPECT_EQ(at(r), Times(8, 9));
}

TEST_F(Timelines, HostRunsAhead) {
  work(10, 1);
  // Issued at 2 and 3, long before compute comes to them.
  EXPECT_EQ(at(work(1, 1)), Times(11, 12));
  EXPECT_EQ(at(hold(1, 1)), Times(12, 13));
}

TEST_F(Timelines, EndsWhenAllStreamsAreIdle) {
  work(1);
  copy(9);
  EXPECT_EQ(total(), 10);
}

TEST_F(Timelines, SumsAreOfWorkAlone) {
  slow(Stream::Gather, 1);
  gather(2);
  work(3);
  hold(4);
  copy(5);
  Timeline made = line();
  EXPECT_EQ(made.compute, us(3));
  EXPECT_EQ(made.link, us(6));
  EXPECT_EQ(made.copies, us(5));
  // 3 of work, 4 that hold compute, and 1 by which the gather slows it.
  EXPECT_EQ(made.bound, us(8));
}

TEST_F(Timelines, BoundIsTheLongestOfComputeLinkAndCopies) {
  gather(2);
  EXPECT_EQ(line().bound, us(2));
  work(3);
  EXPECT_EQ(line().bound, us(3));
  copy(5);
  EXPECT_EQ(line().bound, us(5));
}

TEST_F(Timelines, TooLongTimesAreTheLongest) {
  Duration most = Duration::ofPicoseconds(Duration::kMost);
  slow(Stream::Gather, 0.5);
  activities.push_back(
      {Activity::Start, true, Stream::Gather, 0, most, Duration()});
  activities.push_back(
      {Activity::Work, false, Stream::Compute, 0, most, Duration()});
  activities.push_back(
      {Activity::Work, false, Stream::Compute, 0, most, Duration()});
  EXPECT_EQ(line().total, most);
}

//===----------------------------------------------------------------------===//
// What holds for all
//===----------------------------------------------------------------------===//

namespace {

class RandomTimelines {
public:
  explicit RandomTimelines(unsigned seed) : random(seed) {}

  std::vector<Activity> activities() {
    std::vector<Activity> all;
    std::vector<uint32_t> open;
    int count = pick(1, 60);
    for (int i = 0; i < count; ++i) {
      Activity activity;
      activity.duration = Duration::ofPicoseconds(pick(0, 3) * pick(0, 99999));
      activity.issue = Duration::ofPicoseconds(pick(0, 3) ? 0 : pick(0, 9999));
      int kind = pick(0, 9);
      if (kind < 3) {
        activity.kind = Activity::Start;
        activity.stream = static_cast<Stream>(pick(1, 3));
        activity.isCollective = activity.stream != Stream::Copy;
        open.push_back(uint32_t(all.size()));
      } else if (kind < 5 && !open.empty()) {
        activity = Activity();
        activity.kind = Activity::Await;
        size_t which = pick(0, int(open.size()) - 1);
        activity.start = open[which];
        open.erase(open.begin() + which);
      } else {
        activity.isCollective = kind == 5;
      }
      all.push_back(activity);
    }
    return all;
  }

  Slowdowns slowdowns() {
    Slowdowns slowdowns;
    for (int i = 1; i < rt::kStreams; ++i)
      slowdowns.perSecond[i] = Duration::ofSeconds(pick(0, 9) * 0.1);
    if (pick(0, 1))
      slowdowns.ofCollective = Duration::ofSeconds(pick(0, 9) * 0.2);
    return slowdowns;
  }

  int pick(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  }

private:
  std::mt19937 random;
};

/// What runs one at a time: streams, and what holds the link.
void expectApart(const std::vector<Activity> &activities, const Timeline &line,
                 bool (*isOf)(const Activity &)) {
  Duration end;
  for (size_t i = 0; i < activities.size(); ++i) {
    if (!isOf(activities[i]))
      continue;
    EXPECT_TRUE(end <= line.intervals[i].begin) << i;
    EXPECT_TRUE(line.intervals[i].begin <= line.intervals[i].end) << i;
    end = line.intervals[i].end;
  }
  EXPECT_TRUE(end <= line.total);
}

} // namespace

TEST(RandomTimelines, HoldWhatRulesSay) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    RandomTimelines random(seed);
    std::vector<Activity> activities = random.activities();
    Slowdowns slowdowns = random.slowdowns();
    Timeline line = run(activities, slowdowns);
    EXPECT_TRUE(line.bound <= line.total) << seed;
    expectApart(activities, line,
                [](const Activity &a) { return a.stream == Stream::Compute; });
    expectApart(activities, line,
                [](const Activity &a) { return a.isCollective; });
    expectApart(activities, line,
                [](const Activity &a) { return a.stream == Stream::Copy; });
    // Compute does nothing else while it is exposed.
    Duration busy = line.compute;
    for (Duration exposed : line.exposed)
      busy += exposed;
    EXPECT_TRUE(busy <= line.total) << seed;
    Timeline again = run(activities, slowdowns);
    EXPECT_EQ(again.total, line.total);
    // A slow-down never shortens.
    Timeline alone = run(activities, Slowdowns());
    for (size_t i = 0; i < activities.size(); ++i)
      EXPECT_TRUE(alone.intervals[i].end <= line.intervals[i].end) << seed;
    EXPECT_TRUE(alone.total <= line.total) << seed;
    // Nor does longer work, where nothing is slowed.
    size_t which = size_t(random.pick(0, int(activities.size()) - 1));
    if (activities[which].kind != Activity::Await)
      activities[which].duration += Duration::ofPicoseconds(12345);
    EXPECT_TRUE(alone.total <= run(activities, Slowdowns()).total) << seed;
  }
}
