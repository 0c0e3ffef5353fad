//===- Packing.cpp - Offsets for live ranges in one arena -----------------===//
#include "fsdp/Memory/Packing.h"
#include "fsdp/Support/CheckedSize.h"
#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

using namespace fsdp;

static int64_t roundUp(int64_t bytes, int64_t alignment) {
  return ceilDiv(bytes, alignment) * alignment;
}

namespace {

/// Bytes that are taken, [offset, top).
struct Taken {
  int64_t offset;
  int64_t top;
};

/// Looks for the offset of `bytes` among what is taken, which it is told by
/// offset.
class GapFinder {
public:
  GapFinder(int64_t bytes, PackingFit fit) : bytes(bytes), fit(fit) {}

  /// Whether no gap further up could be taken instead.
  bool isFoundBelow(const Taken &other) {
    int64_t gap = other.offset - top;
    if (gap >= bytes && (best < 0 || gap < bestGap)) {
      best = top;
      bestGap = gap;
      if (fit == PackingFit::Lowest || gap == bytes)
        return true;
    }
    top = std::max(top, other.top);
    return false;
  }

  /// Above everything if there is no gap.
  int64_t get() const { return best < 0 ? top : best; }

private:
  int64_t bytes;
  PackingFit fit;
  int64_t top = 0, best = -1, bestGap = 0;
};

/// Bytes that are taken somewhere in a window of time: ranges that neither
/// overlap nor touch, by offset. A stack of live ranges is one range.
class TakenRanges {
public:
  void add(Taken item) {
    auto begin = std::lower_bound(
        ranges.begin(), ranges.end(), item.offset,
        [](const Taken &range, int64_t offset) { return range.top < offset; });
    auto end = begin;
    for (; end != ranges.end() && end->offset <= item.top; ++end) {
      item.offset = std::min(item.offset, end->offset);
      item.top = std::max(item.top, end->top);
    }
    if (begin == end) {
      ranges.insert(begin, item);
      return;
    }
    *begin = item;
    ranges.erase(begin + 1, end);
  }

  const std::vector<Taken> &all() const { return ranges; }

private:
  std::vector<Taken> ranges;
};

/// What is placed, by offset. For so few live ranges looking at all of them
/// takes a sixth to a tenth of the tree's time, and no more work than workFor
/// allows.
class PlacedList {
public:
  static constexpr size_t kMost = 1024;

  explicit PlacedList(const std::vector<LiveRange> &liveRanges) {
    placed.reserve(liveRanges.size());
  }

  void insert(const LiveRange &live, Taken bytes) {
    auto at = std::upper_bound(placed.begin(), placed.end(), bytes.offset,
                               [](int64_t offset, const Placed &other) {
                                 return offset < other.bytes.offset;
                               });
    placed.insert(at, {bytes, live.begin, live.end});
  }

  int64_t findGap(const LiveRange &live, int64_t bytes, PackingFit fit) const {
    GapFinder finder(bytes, fit);
    for (const Placed &other : placed)
      if (other.begin < live.end && live.begin < other.end &&
          finder.isFoundBelow(other.bytes))
        break;
    return finder.get();
  }

  /// Not counted: it is never more than a solver may do.
  int64_t getWork() const { return 0; }

private:
  struct Placed {
    Taken bytes;
    int64_t begin, end;
  };
  std::vector<Placed> placed;
};

/// What is placed, by time: a segment tree, so that neither placing a live
/// range nor a question costs more because the program is long.
class PlacedIndex {
public:
  explicit PlacedIndex(const std::vector<LiveRange> &liveRanges) {
    for (const LiveRange &live : liveRanges) {
      times.push_back(live.begin);
      times.push_back(live.end);
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    size_t leaves = 1;
    while (leaves < times.size())
      leaves *= 2;
    nodes.resize(2 * leaves);
  }

  void insert(const LiveRange &live, Taken bytes) {
    insertInto(1, {0, nodes.size() / 2}, spanOf(live), bytes);
  }

  /// The offset of `bytes` among what is placed and lives with `live`.
  int64_t findGap(const LiveRange &live, int64_t bytes, PackingFit fit);

  /// How many taken ranges all questions have looked at.
  int64_t getWork() const { return work; }

private:
  /// A window of time: an index of `times`, and the one after it.
  struct Window {
    size_t begin, end;
    bool isInside(Window other) const {
      return other.begin <= begin && end <= other.end;
    }
    bool meets(Window other) const {
      return begin < other.end && other.begin < end;
    }
  };
  /// Each node halves its parent's window.
  struct Node {
    /// By live ranges that fill the window, and not the parent's.
    TakenRanges always;
    /// By live ranges that fill it or lie in it in part, and not by those that
    /// fill the parent's.
    TakenRanges sometimes;
  };

  Window spanOf(const LiveRange &live) const {
    auto indexOf = [&](int64_t time) {
      return size_t(std::lower_bound(times.begin(), times.end(), time) -
                    times.begin());
    };
    return {indexOf(live.begin), indexOf(live.end)};
  }

  void insertInto(size_t number, Window window, Window span, Taken bytes) {
    if (!window.meets(span))
      return;
    Node &node = nodes[number];
    node.sometimes.add(bytes);
    if (window.isInside(span))
      return node.always.add(bytes);
    size_t middle = (window.begin + window.end) / 2;
    insertInto(2 * number, {window.begin, middle}, span, bytes);
    insertInto(2 * number + 1, {middle, window.end}, span, bytes);
  }

  /// Adds to `found` what is sorted itself, and keeps that sorted up to a few
  /// runs of falling length.
  void addSorted(const std::vector<Taken> &taken) {
    if (taken.empty())
      return;
    runs.push_back(found.size());
    found.insert(found.end(), taken.begin(), taken.end());
    while (runs.size() > 1 &&
           found.size() - runs.back() >= runs.back() - runs[runs.size() - 2])
      mergeRuns();
  }

  /// Makes one of the last two runs of `found`.
  void mergeRuns() {
    auto middle = found.begin() + runs.back();
    runs.pop_back();
    std::inplace_merge(
        found.begin() + runs.back(), middle, found.end(),
        [](const Taken &a, const Taken &b) { return a.offset < b.offset; });
  }

  /// Adds to `found` what is taken in `span`.
  void collect(size_t number, Window window, Window span) {
    if (!window.meets(span))
      return;
    bool whole = window.isInside(span);
    const Node &node = nodes[number];
    addSorted((whole ? node.sometimes : node.always).all());
    if (whole)
      return;
    size_t middle = (window.begin + window.end) / 2;
    collect(2 * number, {window.begin, middle}, span);
    collect(2 * number + 1, {middle, window.end}, span);
  }

  /// When live ranges begin and end.
  std::vector<int64_t> times;
  /// The root is 1, the children of i are 2 i and 2 i + 1.
  std::vector<Node> nodes;
  /// What the last question has found, and where sorted runs of it begin.
  std::vector<Taken> found;
  std::vector<size_t> runs;
  int64_t work = 0;
};

} // namespace

int64_t PlacedIndex::findGap(const LiveRange &live, int64_t bytes,
                             PackingFit fit) {
  found.clear();
  runs.clear();
  collect(1, {0, nodes.size() / 2}, spanOf(live));
  while (runs.size() > 1)
    mergeRuns();
  work += found.size();
  GapFinder finder(bytes, fit);
  for (const Taken &other : found)
    if (finder.isFoundBelow(other))
      break;
  return finder.get();
}

/// Of each live range, the most bytes alive at any of its positions.
static std::vector<int64_t> contention(const PackingProblem &problem) {
  // Bytes alive from each position at which that changes, and of every power
  // of two of such stretches the maximum.
  std::map<int64_t, int64_t> changes;
  for (const LiveRange &live : problem.liveRanges) {
    changes[live.begin] += live.bytes;
    changes[live.end] -= live.bytes;
  }
  std::vector<int64_t> positions;
  std::vector<std::vector<int64_t>> most(1);
  int64_t live = 0;
  for (auto [position, change] : changes) {
    live += change;
    positions.push_back(position);
    most[0].push_back(live);
  }
  for (size_t width = 1; 2 * width <= positions.size(); width *= 2) {
    const std::vector<int64_t> &half = most.back();
    std::vector<int64_t> whole;
    for (size_t i = 0; i + width < half.size(); ++i)
      whole.push_back(std::max(half[i], half[i + width]));
    most.push_back(std::move(whole));
  }
  auto indexOf = [&](int64_t position) {
    return size_t(
        std::lower_bound(positions.begin(), positions.end(), position) -
        positions.begin());
  };
  std::vector<int64_t> result;
  for (const LiveRange &live : problem.liveRanges) {
    size_t begin = indexOf(live.begin), end = indexOf(live.end);
    size_t level = 0;
    while ((size_t(2) << level) <= end - begin)
      ++level;
    result.push_back(
        std::max(most[level][begin], most[level][end - (size_t(1) << level)]));
  }
  return result;
}

/// The indices of the live ranges in the order in which they are placed.
static std::vector<uint32_t> orderOf(const PackingProblem &problem,
                                     PackingOrder order) {
  struct Entry {
    /// The larger goes first.
    double key;
    /// Breaks ties: the smaller goes first.
    int64_t next;
    uint32_t index;
  };
  std::vector<int64_t> most;
  if (order == PackingOrder::Contention)
    most = contention(problem);
  std::vector<Entry> entries;
  for (uint32_t i = 0; i < problem.liveRanges.size(); ++i) {
    const LiveRange &live = problem.liveRanges[i];
    double bytes = double(live.bytes);
    double duration = double(live.end - live.begin);
    switch (order) {
    case PackingOrder::Bytes:
      entries.push_back({bytes, live.begin, i});
      break;
    case PackingOrder::Duration:
      entries.push_back({duration, -live.bytes, i});
      break;
    case PackingOrder::Area:
      entries.push_back({bytes * duration, live.begin, i});
      break;
    case PackingOrder::Time:
      entries.push_back({-double(live.begin), -live.bytes, i});
      break;
    case PackingOrder::Contention:
      entries.push_back({double(most[i]), live.begin, i});
      break;
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
    if (a.key != b.key)
      return a.key > b.key;
    return std::tie(a.next, a.index) < std::tie(b.next, b.index);
  });
  std::vector<uint32_t> result;
  for (const Entry &entry : entries)
    result.push_back(entry.index);
  return result;
}

static const char *nameOf(PackingOrder order) {
  switch (order) {
  case PackingOrder::Bytes:
    return "bytes";
  case PackingOrder::Duration:
    return "duration";
  case PackingOrder::Area:
    return "area";
  case PackingOrder::Time:
    return "time";
  case PackingOrder::Contention:
    return "contention";
  }
  return "";
}

static const char *nameOf(PackingFit fit) {
  return fit == PackingFit::Smallest ? "smallest gap" : "lowest gap";
}

std::optional<std::string> fsdp::checkPacking(const PackingProblem &problem) {
  if (problem.alignment < 1 ||
      (problem.alignment & (problem.alignment - 1)) != 0)
    return "the alignment is not a power of two";
  CheckedSize total = 0;
  for (size_t i = 0; i < problem.liveRanges.size(); ++i) {
    const LiveRange &live = problem.liveRanges[i];
    if (live.begin >= live.end)
      return "live range " + std::to_string(i) + " has no position";
    if (live.bytes < 0)
      return "live range " + std::to_string(i) + " has a negative size";
    total += roundedUp(live.bytes, problem.alignment);
  }
  if (!total.fits(kMaxArenaBytes))
    return "its buffers have more than 2^62 bytes together";
  return std::nullopt;
}

MaxLive fsdp::maxLive(const PackingProblem &problem) {
  std::map<int64_t, int64_t> changes;
  for (const LiveRange &live : problem.liveRanges) {
    int64_t bytes = roundUp(live.bytes, problem.alignment);
    changes[live.begin] += bytes;
    changes[live.end] -= bytes;
  }
  MaxLive result;
  int64_t live = 0;
  for (auto [position, change] : changes) {
    live += change;
    if (live > result.bytes)
      result = {live, position};
  }
  return result;
}

/// How many taken ranges a solver may look at. Some orders leave the arena in
/// pieces, the more of them the deeper the model is; such a plan is hardly ever
/// the smallest. Up to 500 layers the best is what it is without this limit.
static int64_t workFor(const PackingProblem &problem) {
  return 512 * int64_t(problem.liveRanges.size());
}

/// As packInOrder, but gives up with the first live range that ends above
/// `limit`, or once it has done more than `work`: a peak above the limit says
/// so.
template <typename Placed>
static PackingPlan packBelowIn(const PackingProblem &problem,
                               const std::vector<uint32_t> &order,
                               PackingFit fit, int64_t limit, int64_t work) {
  assert(order.size() == problem.liveRanges.size());
  Placed index(problem.liveRanges);
  PackingPlan plan;
  plan.offsets.resize(problem.liveRanges.size());
  for (uint32_t i : order) {
    const LiveRange &live = problem.liveRanges[i];
    int64_t bytes = roundUp(live.bytes, problem.alignment);
    if (bytes == 0)
      continue;
    int64_t offset = index.findGap(live, bytes, fit);
    plan.offsets[i] = offset;
    plan.peak = std::max(plan.peak, offset + bytes);
    if (index.getWork() > work)
      plan.peak = INT64_MAX;
    if (plan.peak > limit || plan.peak == INT64_MAX)
      break;
    index.insert(live, {offset, offset + bytes});
  }
  return plan;
}

static PackingPlan packBelow(const PackingProblem &problem,
                             const std::vector<uint32_t> &order, PackingFit fit,
                             int64_t limit, int64_t work = INT64_MAX) {
  return problem.liveRanges.size() <= PlacedList::kMost
             ? packBelowIn<PlacedList>(problem, order, fit, limit, work)
             : packBelowIn<PlacedIndex>(problem, order, fit, limit, work);
}

PackingPlan fsdp::packInOrder(const PackingProblem &problem,
                              const std::vector<uint32_t> &order,
                              PackingFit fit) {
  return packBelow(problem, order, fit, INT64_MAX);
}

PackingPlan fsdp::packInOrder(const PackingProblem &problem, PackingOrder order,
                              PackingFit fit) {
  PackingPlan plan = packInOrder(problem, orderOf(problem, order), fit);
  plan.solver = std::string(nameOf(order)) + ", " + nameOf(fit);
  return plan;
}

/// Takes a live range that reaches the peak and one of those placed before it
/// that it lives with, and exchanges who goes first: the one moves before the
/// other, or the other after the one. False if none can be moved.
static bool relievePeak(const PackingProblem &problem, const PackingPlan &plan,
                        std::vector<uint32_t> &order, std::mt19937 &random) {
  std::vector<size_t> atPeak;
  for (size_t place = 1; place < order.size(); ++place) {
    uint32_t i = order[place];
    int64_t bytes = roundUp(problem.liveRanges[i].bytes, problem.alignment);
    if (plan.offsets[i] + bytes == plan.peak)
      atPeak.push_back(place);
  }
  if (atPeak.empty())
    return false;
  size_t high = atPeak[random() % atPeak.size()];
  const LiveRange &live = problem.liveRanges[order[high]];
  std::vector<size_t> before;
  for (size_t place = 0; place < high; ++place) {
    const LiveRange &other = problem.liveRanges[order[place]];
    if (other.begin < live.end && live.begin < other.end)
      before.push_back(place);
  }
  if (before.empty())
    return false;
  auto low = order.begin() + before[random() % before.size()];
  auto middle = random() % 2 == 0 ? low + 1 : order.begin() + high;
  std::rotate(low, middle, order.begin() + high + 1);
  return true;
}

PackingPlan fsdp::packByLocalSearch(const PackingProblem &problem,
                                    PackingOrder start, PackingFit fit,
                                    int iterations) {
  std::vector<uint32_t> order = orderOf(problem, start);
  PackingPlan best = packInOrder(problem, order, fit);
  best.solver =
      std::string("local search from ") + nameOf(start) + ", " + nameOf(fit);
  if (order.size() < 2)
    return best;
  int64_t bound = maxLive(problem).bytes;
  // A fixed seed: the same program always gets the same plan.
  std::mt19937 random(1);
  for (int i = 0; i < iterations && best.peak > bound; ++i) {
    std::vector<uint32_t> candidate = order;
    if (!relievePeak(problem, best, candidate, random))
      break;
    PackingPlan plan =
        packBelow(problem, candidate, fit, best.peak, workFor(problem));
    if (plan.peak > best.peak)
      continue;
    order = std::move(candidate);
    plan.solver = std::move(best.solver);
    best = std::move(plan);
  }
  return best;
}

PackingPlan fsdp::solvePacking(const PackingProblem &problem, int64_t enough,
                               bool onlyEnough) {
  enough = std::max(enough, maxLive(problem).bytes);
  std::optional<PackingPlan> best;
  PackingOrder bestOrder = PackingOrder::Contention;
  PackingFit bestFit = PackingFit::Smallest;
  for (PackingOrder order :
       {PackingOrder::Contention, PackingOrder::Duration, PackingOrder::Bytes,
        PackingOrder::Area, PackingOrder::Time})
    for (PackingFit fit : {PackingFit::Smallest, PackingFit::Lowest}) {
      // The first one is a plan, whatever it costs.
      PackingPlan plan =
          best ? packBelow(problem, orderOf(problem, order), fit,
                           best->peak - 1, workFor(problem))
               : packInOrder(problem, orderOf(problem, order), fit);
      if (best && plan.peak >= best->peak)
        continue;
      plan.solver = std::string(nameOf(order)) + ", " + nameOf(fit);
      best = std::move(plan);
      bestOrder = order;
      bestFit = fit;
      if (best->peak <= enough)
        return *best;
    }
  // The search's time is bounded by its work: many tries for small problems,
  // a few for the largest.
  int64_t size = std::max<int64_t>(problem.liveRanges.size(), 1);
  int tries = int(std::clamp<int64_t>(200000 / size, 4, 2000));
  // A try wins far less than a thousandth as a rule.
  if (onlyEnough &&
      double(best->peak - enough) * 1000 > double(best->peak) * tries)
    return *best;
  PackingPlan searched = packByLocalSearch(problem, bestOrder, bestFit, tries);
  return searched.peak < best->peak ? searched : *best;
}

std::optional<std::string> fsdp::verifyPacking(const PackingProblem &problem,
                                               const PackingPlan &plan) {
  const std::vector<LiveRange> &liveRanges = problem.liveRanges;
  if (plan.offsets.size() != liveRanges.size())
    return "the plan has " + std::to_string(plan.offsets.size()) +
           " offsets for " + std::to_string(liveRanges.size()) + " live ranges";
  // Births and deaths in time order, deaths first at equal positions.
  struct Event {
    int64_t position;
    bool birth;
    size_t index;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < liveRanges.size(); ++i) {
    int64_t offset = plan.offsets[i];
    if (offset < 0 || offset % problem.alignment != 0)
      return "live range " + std::to_string(i) + " is not aligned";
    if (offset + liveRanges[i].bytes > plan.peak)
      return "live range " + std::to_string(i) + " ends above the peak";
    if (liveRanges[i].bytes == 0)
      continue;
    events.push_back({liveRanges[i].begin, true, i});
    events.push_back({liveRanges[i].end, false, i});
  }
  std::sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
    return a.position != b.position ? a.position < b.position
                                    : a.birth < b.birth;
  });
  // The living, by offset. They are disjoint, so neighbours tell everything.
  std::map<int64_t, size_t> living;
  for (const Event &event : events) {
    int64_t offset = plan.offsets[event.index];
    if (!event.birth) {
      living.erase(offset);
      continue;
    }
    auto [at, inserted] = living.insert({offset, event.index});
    std::optional<size_t> other;
    if (!inserted)
      other = at->second;
    else if (auto next = std::next(at);
             next != living.end() &&
             next->first < offset + liveRanges[event.index].bytes)
      other = next->second;
    else if (at != living.begin() &&
             std::prev(at)->first + liveRanges[std::prev(at)->second].bytes >
                 offset)
      other = std::prev(at)->second;
    if (other)
      return "live ranges " + std::to_string(*other) + " and " +
             std::to_string(event.index) + " share bytes at position " +
             std::to_string(event.position);
  }
  return std::nullopt;
}
