//===- FailureReport.cpp - How far ranks have come, as text ----------------===//
#include "FailureReport.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <map>

using namespace fsdp;
using namespace fsdp::rt;

/// Texts and ranges in one message.
static constexpr size_t kMost = 8;

std::string rt::nameOf(const CollectiveDesc &desc, unsigned number,
                       const char *program) {
  const char *kind = kCollectiveNames[static_cast<int>(desc.kind)];
  return format("%s \"%s\" (number %u of '%s')", kind, desc.serves, number,
                program);
}

std::string rt::describeRank(const std::vector<LastCollective> &channels) {
  bool isInAny = std::any_of(channels.begin(), channels.end(),
                             [](auto &last) { return last.isInside; });
  std::string text;
  for (const LastCollective &last : channels)
    if (last.isInside == isInAny)
      text += (text.empty() ? "" : ", ") + last.name;
  if (text.empty())
    return "none so far";
  return (isInAny ? "in " : "ended ") + text;
}

std::string rt::namesOf(const std::vector<int> &ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  size_t ranges = 0;
  for (size_t i = 0; i < ranks.size(); ++ranges) {
    if (ranges == kMost)
      return text + " and " + std::to_string(ranks.size() - i) + " more";
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1)
      ++last;
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
    if (last > i)
      text += (last == i + 1 ? ", " : "-") + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

std::string rt::foldRanks(const std::vector<std::string> &texts, int first) {
  // By text, in the order in which they first come.
  std::vector<std::vector<int>> groups;
  std::map<std::string, size_t> groupOf;
  auto textOf = [&](int rank) -> const std::string & {
    return texts[static_cast<size_t>(rank)];
  };
  auto add = [&](int rank) {
    auto [at, isNew] = groupOf.try_emplace(textOf(rank), groups.size());
    if (isNew)
      groups.emplace_back();
    groups[at->second].push_back(rank);
  };
  if (first >= 0)
    add(first);
  for (int rank = 0; rank < static_cast<int>(texts.size()); ++rank)
    if (rank != first)
      add(rank);
  // Of more than there is room for, those are told that few ranks have: who is
  // late is among them.
  if (groups.size() > kMost)
    std::stable_sort(groups.begin() + (first >= 0 ? 1 : 0), groups.end(),
                     [](const auto &one, const auto &other) {
                       return one.size() < other.size();
                     });
  std::string folded;
  size_t others = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    std::sort(groups[g].begin(), groups[g].end());
    if (g < kMost)
      folded += (g == 0 ? "" : "; ") + namesOf(groups[g]) + ": " +
                textOf(groups[g][0]);
    else
      others += groups[g].size();
  }
  if (others > 0)
    folded += "; " + std::to_string(others) + " more ranks elsewhere";
  return folded;
}
