//===- Repeats.cpp - Repeated runs in a sequence --------------------------===//
#include "passes/Exec/Repeats.h"
#include <algorithm>
#include <map>
#include <queue>
#include <set>

using namespace fsdp;

namespace {

/// Symbols [begin, end) of which each equals the one `period` further on, as
/// far as that is inside.
struct Run {
  size_t begin;
  size_t end;
  size_t period;

  size_t count() const { return (end - begin) / period; }
  int64_t saved() const { return savedBy(period, count()); }
  /// The best run is the largest; equal ones go by place.
  bool operator<(const Run &other) const {
    if (saved() != other.saved())
      return saved() < other.saved();
    if (period != other.period)
      return period > other.period;
    return begin > other.begin;
  }
};

} // namespace

/// How far back equal symbols are compared: a symbol that stands at most this
/// often in a block shows the block's length.
static constexpr size_t kLookBack = 4;

/// The distances between equal symbols.
static std::set<size_t> distances(const std::vector<uint32_t> &sequence) {
  std::map<uint32_t, std::vector<size_t>> places;
  std::set<size_t> result;
  for (size_t i = 0; i < sequence.size(); ++i) {
    std::vector<size_t> &before = places[sequence[i]];
    for (size_t back = 1; back <= std::min(kLookBack, before.size()); ++back)
      result.insert(i - before[before.size() - back]);
    before.push_back(i);
  }
  return result;
}

/// The longest runs with this period, at least two blocks each.
static void addRuns(const std::vector<uint32_t> &sequence, size_t period,
                    std::vector<Run> &runs) {
  size_t begin = 0;
  for (size_t i = 0; i + period <= sequence.size(); ++i) {
    if (i + period < sequence.size() && sequence[i] == sequence[i + period])
      continue;
    if (i - begin >= period)
      runs.push_back({begin, i + period, period});
    begin = i + 1;
  }
}

/// The parts of `run` that are not inside any of `taken`.
static std::vector<Run> freeParts(const Run &run,
                                  const std::map<size_t, size_t> &taken) {
  std::vector<Run> parts;
  size_t begin = run.begin;
  auto at = taken.upper_bound(begin);
  if (at != taken.begin())
    begin = std::max(begin, std::prev(at)->second);
  for (; begin < run.end; ++at) {
    bool blocked = at != taken.end() && at->first < run.end;
    size_t end = blocked ? at->first : run.end;
    if (begin < end)
      parts.push_back({begin, end, run.period});
    if (!blocked)
      break;
    begin = at->second;
  }
  return parts;
}

std::vector<Repeat> fsdp::findRepeats(const std::vector<uint32_t> &sequence,
                                      int64_t minSaved) {
  std::vector<Run> runs;
  for (size_t period : distances(sequence))
    addRuns(sequence, period, runs);
  std::priority_queue<Run> queue(std::less<Run>(), std::move(runs));
  /// Begin to end of what is chosen.
  std::map<size_t, size_t> taken;
  std::vector<Repeat> result;
  while (!queue.empty()) {
    Run run = queue.top();
    queue.pop();
    if (run.count() < 2 || run.saved() < minSaved)
      break;
    std::vector<Run> parts = freeParts(run, taken);
    bool whole = parts.size() == 1 && parts[0].begin == run.begin &&
                 parts[0].end == run.end;
    if (!whole) {
      // Shortened, it may no longer be the best.
      for (const Run &part : parts)
        if (part.count() >= 2)
          queue.push(part);
      continue;
    }
    size_t end = run.begin + run.count() * run.period;
    taken[run.begin] = end;
    result.push_back({run.begin, run.period, run.count()});
  }
  std::sort(result.begin(), result.end(),
            [](const Repeat &a, const Repeat &b) { return a.begin < b.begin; });
  return result;
}
