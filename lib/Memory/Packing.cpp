//===- Packing.cpp - Offsets for intervals in one arena -------------------===//
#include "fsdp/Memory/Packing.h"
#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <random>

using namespace fsdp;

static int64_t roundUp(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

namespace {

/// An interval that has its place.
struct Placed {
  int64_t offset;
  int64_t top;
  int64_t begin;
  int64_t end;
};

/// The placed intervals, sorted by offset, for a tree of time windows: each
/// node of the tree halves its parent's window and lists everything that lives
/// in its own. A query reads the smallest window that contains it, so that a
/// short interval does not look at the whole program.
class PlacedIndex {
public:
  PlacedIndex(int64_t begin, int64_t end, size_t intervals)
      : begin(begin), end(end) {
    while (depth < 6 && (intervals >> (depth + 7)) > 0)
      ++depth;
    nodes.resize(size_t(2) << depth);
  }

  void insert(const Placed &item) { insertInto(1, 0, begin, end, item); }

  /// The intervals, sorted by offset, of a window that contains [from, to).
  const std::vector<Placed> &window(int64_t from, int64_t to) const {
    size_t node = 1;
    int64_t lo = begin, hi = end;
    for (int level = 0; level < depth; ++level) {
      int64_t middle = lo + (hi - lo) / 2;
      if (to <= middle) {
        node = 2 * node;
        hi = middle;
      } else if (from >= middle) {
        node = 2 * node + 1;
        lo = middle;
      } else {
        break;
      }
    }
    return nodes[node];
  }

private:
  void insertInto(size_t node, int level, int64_t lo, int64_t hi,
                  const Placed &item) {
    if (item.end <= lo || item.begin >= hi)
      return;
    std::vector<Placed> &list = nodes[node];
    auto at = std::upper_bound(
        list.begin(), list.end(), item,
        [](const Placed &a, const Placed &b) { return a.offset < b.offset; });
    list.insert(at, item);
    if (level == depth)
      return;
    int64_t middle = lo + (hi - lo) / 2;
    insertInto(2 * node, level + 1, lo, middle, item);
    insertInto(2 * node + 1, level + 1, middle, hi, item);
  }

  int64_t begin, end;
  int depth = 0;
  std::vector<std::vector<Placed>> nodes;
};

} // namespace

/// The offset of `bytes` among the placed intervals that live with `interval`.
static int64_t findGap(const std::vector<Placed> &placed,
                       const Interval &interval, int64_t bytes,
                       PackingFit fit) {
  int64_t top = 0, best = -1, bestGap = 0;
  for (const Placed &other : placed) {
    if (other.end <= interval.begin || other.begin >= interval.end)
      continue;
    int64_t gap = other.offset - top;
    if (gap >= bytes && (best < 0 || gap < bestGap)) {
      best = top;
      bestGap = gap;
      if (fit == PackingFit::Lowest || gap == bytes)
        return best;
    }
    top = std::max(top, other.top);
  }
  return best < 0 ? top : best;
}

/// The indices of the intervals in the order in which they are placed.
static std::vector<uint32_t> orderOf(const PackingProblem &problem,
                                     PackingOrder order) {
  const std::vector<Interval> &intervals = problem.intervals;
  // Larger keys first; products of bytes and positions need a double.
  auto key = [&](uint32_t i) -> double {
    const Interval &interval = intervals[i];
    double duration = double(interval.end - interval.begin);
    switch (order) {
    case PackingOrder::Bytes:
      return double(interval.bytes);
    case PackingOrder::Duration:
      return duration;
    case PackingOrder::Area:
      return double(interval.bytes) * duration;
    case PackingOrder::Time:
      return -double(interval.begin);
    }
    return 0;
  };
  std::vector<double> keys(intervals.size());
  std::vector<uint32_t> result(intervals.size());
  std::iota(result.begin(), result.end(), 0);
  for (uint32_t i : result)
    keys[i] = key(i);
  std::sort(result.begin(), result.end(), [&](uint32_t a, uint32_t b) {
    if (keys[a] != keys[b])
      return keys[a] > keys[b];
    if (intervals[a].bytes != intervals[b].bytes)
      return intervals[a].bytes > intervals[b].bytes;
    if (intervals[a].begin != intervals[b].begin)
      return intervals[a].begin < intervals[b].begin;
    return a < b;
  });
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
  for (size_t i = 0; i < problem.intervals.size(); ++i) {
    const Interval &interval = problem.intervals[i];
    if (interval.begin >= interval.end)
      return "interval " + std::to_string(i) + " lives at no position";
    if (interval.bytes < 0)
      return "interval " + std::to_string(i) + " has a negative size";
  }
  return std::nullopt;
}

MaxLive fsdp::maxLive(const PackingProblem &problem) {
  std::map<int64_t, int64_t> changes;
  for (const Interval &interval : problem.intervals) {
    int64_t bytes = roundUp(interval.bytes, problem.alignment);
    changes[interval.begin] += bytes;
    changes[interval.end] -= bytes;
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

PackingPlan fsdp::packInOrder(const PackingProblem &problem,
                              const std::vector<uint32_t> &order,
                              PackingFit fit) {
  assert(order.size() == problem.intervals.size());
  int64_t begin = 0, end = 1;
  for (const Interval &interval : problem.intervals) {
    begin = std::min(begin, interval.begin);
    end = std::max(end, interval.end);
  }
  PlacedIndex index(begin, end, problem.intervals.size());
  PackingPlan plan;
  plan.offsets.resize(problem.intervals.size());
  for (uint32_t i : order) {
    const Interval &interval = problem.intervals[i];
    int64_t bytes = roundUp(interval.bytes, problem.alignment);
    if (bytes == 0)
      continue;
    int64_t offset = findGap(index.window(interval.begin, interval.end),
                             interval, bytes, fit);
    plan.offsets[i] = offset;
    plan.peak = std::max(plan.peak, offset + bytes);
    index.insert({offset, offset + bytes, interval.begin, interval.end});
  }
  return plan;
}

PackingPlan fsdp::packInOrder(const PackingProblem &problem, PackingOrder order,
                              PackingFit fit) {
  PackingPlan plan = packInOrder(problem, orderOf(problem, order), fit);
  plan.solver = std::string(nameOf(order)) + ", " + nameOf(fit);
  return plan;
}

/// Moves one interval that reaches the peak to an earlier place of the order.
static void promoteFromPeak(const PackingProblem &problem,
                            const PackingPlan &plan,
                            std::vector<uint32_t> &order,
                            std::mt19937 &random) {
  std::vector<size_t> atPeak;
  for (size_t place = 1; place < order.size(); ++place) {
    uint32_t i = order[place];
    int64_t bytes = roundUp(problem.intervals[i].bytes, problem.alignment);
    if (plan.offsets[i] + bytes == plan.peak)
      atPeak.push_back(place);
  }
  // The first of the order may reach the peak alone; then any other may move.
  size_t from = atPeak.empty() ? 1 + random() % (order.size() - 1)
                               : atPeak[random() % atPeak.size()];
  size_t to = random() % from;
  std::rotate(order.begin() + to, order.begin() + from,
              order.begin() + from + 1);
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
    promoteFromPeak(problem, best, candidate, random);
    PackingPlan plan = packInOrder(problem, candidate, fit);
    if (plan.peak > best.peak)
      continue;
    order = std::move(candidate);
    plan.solver = std::move(best.solver);
    best = std::move(plan);
  }
  return best;
}

PackingPlan fsdp::solvePacking(const PackingProblem &problem) {
  struct Choice {
    PackingOrder order;
    PackingFit fit;
  };
  static const Choice choices[] = {
      {PackingOrder::Duration, PackingFit::Lowest},
      {PackingOrder::Duration, PackingFit::Smallest},
      {PackingOrder::Bytes, PackingFit::Smallest},
      {PackingOrder::Bytes, PackingFit::Lowest},
      {PackingOrder::Area, PackingFit::Smallest},
      {PackingOrder::Area, PackingFit::Lowest},
      {PackingOrder::Time, PackingFit::Smallest},
      {PackingOrder::Time, PackingFit::Lowest},
  };
  int64_t bound = maxLive(problem).bytes;
  std::optional<PackingPlan> best;
  Choice bestChoice = choices[0];
  for (Choice choice : choices) {
    PackingPlan plan = packInOrder(problem, choice.order, choice.fit);
    if (best && plan.peak >= best->peak)
      continue;
    best = std::move(plan);
    bestChoice = choice;
    if (best->peak == bound)
      return *best;
  }
  // The search's time is bounded by its work: many tries for small problems,
  // a few for the largest.
  int64_t size = std::max<int64_t>(problem.intervals.size(), 1);
  int iterations = int(std::clamp<int64_t>(50000 / size, 4, 400));
  PackingPlan searched =
      packByLocalSearch(problem, bestChoice.order, bestChoice.fit, iterations);
  return searched.peak < best->peak ? searched : *best;
}

std::optional<std::string> fsdp::verifyPacking(const PackingProblem &problem,
                                               const PackingPlan &plan) {
  const std::vector<Interval> &intervals = problem.intervals;
  if (plan.offsets.size() != intervals.size())
    return "the plan has " + std::to_string(plan.offsets.size()) +
           " offsets for " + std::to_string(intervals.size()) + " intervals";
  // Births and deaths in time order, deaths first at equal positions.
  struct Event {
    int64_t position;
    bool birth;
    size_t interval;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < intervals.size(); ++i) {
    int64_t offset = plan.offsets[i];
    if (offset < 0 || offset % problem.alignment != 0)
      return "interval " + std::to_string(i) + " is not aligned";
    if (offset + intervals[i].bytes > plan.peak)
      return "interval " + std::to_string(i) + " ends above the peak";
    if (intervals[i].bytes == 0)
      continue;
    events.push_back({intervals[i].begin, true, i});
    events.push_back({intervals[i].end, false, i});
  }
  std::sort(events.begin(), events.end(), [](const Event &a, const Event &b) {
    return a.position != b.position ? a.position < b.position
                                    : a.birth < b.birth;
  });
  // The living, by offset. They are disjoint, so neighbours tell everything.
  std::map<int64_t, size_t> living;
  for (const Event &event : events) {
    int64_t offset = plan.offsets[event.interval];
    if (!event.birth) {
      living.erase(offset);
      continue;
    }
    auto [at, inserted] = living.insert({offset, event.interval});
    std::optional<size_t> other;
    if (!inserted)
      other = at->second;
    else if (auto next = std::next(at);
             next != living.end() &&
             next->first < offset + intervals[event.interval].bytes)
      other = next->second;
    else if (at != living.begin() &&
             std::prev(at)->first + intervals[std::prev(at)->second].bytes >
                 offset)
      other = std::prev(at)->second;
    if (other)
      return "intervals " + std::to_string(*other) + " and " +
             std::to_string(event.interval) + " share bytes at position " +
             std::to_string(event.position);
  }
  return std::nullopt;
}
