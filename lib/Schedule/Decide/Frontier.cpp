//===- Frontier.cpp - The least time for every budget of memory -----------===//
#include "fsdp/Schedule/Frontier.h"
#include "fsdp/Support/ParallelFor.h"
#include <algorithm>
#include <cassert>
#include <numeric>

using namespace fsdp;
using namespace fsdp::problem;

//===----------------------------------------------------------------------===//
// Choices and options
//===----------------------------------------------------------------------===//

int64_t fsdp::problem::peakOf(const BlockChain &chain,
                              const std::vector<uint32_t> &choice) {
  int64_t peak = chain.fixed, kept = 0;
  for (size_t i = 0; i < choice.size(); ++i) {
    const BlockOption &option = chain.classes[chain.classOf[i]][choice[i]];
    peak = std::max(peak, kept + option.work + chain.beside[i]);
    kept += option.keep;
  }
  return std::max(peak, kept + chain.loss);
}

Duration fsdp::problem::timeOf(const BlockChain &chain,
                               const std::vector<uint32_t> &choice) {
  Duration time;
  for (size_t i = 0; i < choice.size(); ++i)
    time += chain.classes[chain.classOf[i]][choice[i]].time;
  return time;
}

std::vector<uint32_t>
fsdp::problem::undominated(const std::vector<BlockOption> &options) {
  auto beats = [&](uint32_t a, uint32_t b) {
    const BlockOption &one = options[a], &other = options[b];
    if (one.keep > other.keep || one.work > other.work || other.time < one.time)
      return false;
    bool isEqual = one.keep == other.keep && one.work == other.work &&
                   one.time == other.time;
    return !isEqual || a < b;
  };
  // Whatever beats an option comes before it.
  std::vector<uint32_t> order(options.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const BlockOption &one = options[a], &other = options[b];
    if (one.time != other.time)
      return one.time < other.time;
    if (one.keep != other.keep)
      return one.keep < other.keep;
    return one.work != other.work ? one.work < other.work : a < b;
  });
  std::vector<uint32_t> kept;
  for (uint32_t option : order)
    if (std::none_of(kept.begin(), kept.end(),
                     [&](uint32_t other) { return beats(other, option); }))
      kept.push_back(option);
  std::sort(kept.begin(), kept.end());
  return kept;
}

//===----------------------------------------------------------------------===//
// Labels
//===----------------------------------------------------------------------===//

using Labels = std::vector<Frontier::Point>;

/// The least of two step functions; both have bytes ascending and time
/// descending.
static Labels leastOf(const Labels &a, const Labels &b) {
  Labels merged;
  merged.reserve(a.size() + b.size());
  auto add = [&](const Frontier::Point &label) {
    if (!merged.empty() && merged.back().time <= label.time)
      return;
    if (!merged.empty() && merged.back().bytes == label.bytes)
      merged.back() = label;
    else
      merged.push_back(label);
  };
  auto one = a.begin(), other = b.begin();
  while (one != a.end() || other != b.end()) {
    bool takesOne =
        other == b.end() || (one != a.end() && one->bytes <= other->bytes);
    add(takesOne ? *one++ : *other++);
  }
  return merged;
}

/// The labels behind a block, where it takes `option`.
static Labels with(const BlockOption &option, int64_t beside,
                   const Labels &behind) {
  Labels shifted;
  shifted.reserve(behind.size());
  for (const Frontier::Point &label : behind) {
    int64_t bytes = std::max(label.bytes + option.keep, option.work + beside);
    if (!shifted.empty() && shifted.back().bytes == bytes)
      shifted.pop_back();
    shifted.push_back({bytes, label.time + option.time});
  }
  return shifted;
}

/// The least of each[first], each[first + by] and so on, in each[first].
static void mergeInto(std::vector<Labels> &each, size_t first, size_t by) {
  for (size_t step = by; step < each.size(); step *= 2)
    for (size_t i = first; i + step < each.size(); i += 2 * step)
      each[i] = leastOf(each[i], each[i + step]);
}

Labels Frontier::labelsBefore(size_t block, const Labels &behind,
                              int threads) const {
  const auto &options = chain.classes[chain.classOf[block]];
  std::vector<Labels> each(options.size());
  size_t parts = std::min<size_t>(threads, options.size());
  parallelFor(parts, threads, [&](size_t part) {
    for (size_t i = part; i < options.size(); i += parts)
      each[i] = with(options[i], chain.beside[block], behind);
    mergeInto(each, part, parts);
  });
  each.resize(parts);
  mergeInto(each, 0, 1);
  return std::move(each.front());
}

Frontier::Frontier(BlockChain given, int threads) : chain(std::move(given)) {
  size_t blocks = chain.classOf.size();
  assert(chain.beside.size() == blocks && "one number for each block");
  labels.resize(blocks + 1);
  labels[blocks] = {{chain.loss, Duration()}};
  for (size_t block = blocks; block-- > 0;)
    labels[block] = labelsBefore(block, labels[block + 1], threads);
  // What is fixed is needed by all: of those below it the fastest is left.
  for (const Point &label : labels[0]) {
    if (!ends.empty() && ends.back().bytes >= label.bytes)
      ends.pop_back();
    ends.push_back({std::max(label.bytes, chain.fixed), label.time});
  }
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

std::optional<Duration> Frontier::least(size_t block, int64_t room) const {
  const Labels &all = labels[block];
  auto above = std::upper_bound(
      all.begin(), all.end(), room,
      [](int64_t bytes, const Point &label) { return bytes < label.bytes; });
  if (above == all.begin())
    return std::nullopt;
  return std::prev(above)->time;
}

bool Frontier::isOptimal(size_t block, uint32_t number, int64_t room) const {
  const BlockOption &option = chain.classes[chain.classOf[block]][number];
  if (option.work + chain.beside[block] > room)
    return false;
  std::optional<Duration> behind = least(block + 1, room - option.keep);
  return behind && option.time + *behind == *least(block, room);
}

size_t Frontier::runLength(size_t block, uint32_t option, int64_t room) const {
  size_t end = block, blocks = chain.classOf.size();
  while (end < blocks && chain.classOf[end] == chain.classOf[block] &&
         isOptimal(end, option, room)) {
    room -= chain.classes[chain.classOf[end]][option].keep;
    ++end;
  }
  return end - block;
}

std::optional<std::vector<uint32_t>> Frontier::choose(int64_t budget) const {
  if (budget < chain.fixed || !least(0, budget))
    return std::nullopt;
  std::vector<uint32_t> choice;
  int64_t room = budget;
  while (choice.size() < chain.classOf.size()) {
    const auto &options = chain.classes[chain.classOf[choice.size()]];
    uint32_t best = 0;
    size_t longest = 0;
    for (uint32_t option = 0; option < options.size(); ++option) {
      size_t length = runLength(choice.size(), option, room);
      if (length > longest) {
        best = option;
        longest = length;
      }
    }
    assert(longest > 0 && "a label has an option that it comes from");
    choice.insert(choice.end(), longest, best);
    room -= options[best].keep * static_cast<int64_t>(longest);
  }
  return choice;
}
