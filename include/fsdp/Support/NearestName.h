//===- NearestName.h - What a misspelt name was meant to be -----*- C++ -*-===//
#ifndef FSDP_SUPPORT_NEARESTNAME_H
#define FSDP_SUPPORT_NEARESTNAME_H

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace fsdp {

/// Levenshtein distance: insertions, deletions and substitutions cost 1.
inline size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

/// Whether `text` holds `part`, in capitals or not.
inline bool holds(const std::string &text, const std::string &part) {
  auto equal = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     equal) != text.end();
}

/// The name among `candidates` nearest to `name` in edit distance; if none is
/// near, the first that holds `name`, of two letters or more; or nothing.
inline std::string nearestName(const std::string &name,
                               const std::vector<std::string> &candidates) {
  std::string nearest;
  size_t limit = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string &candidate : candidates) {
    size_t shorter = std::min(name.size(), candidate.size());
    // The difference in length bounds the distance, and is cheap for long text.
    if (std::max(name.size(), candidate.size()) - shorter >= limit)
      continue;
    size_t distance = editDistance(name, candidate);
    if (distance < limit) {
      limit = distance;
      nearest = candidate;
    }
  }
  if (!nearest.empty() || name.size() < 2)
    return nearest;
  auto longer =
      std::find_if(candidates.begin(), candidates.end(),
                   [&](const std::string &text) { return holds(text, name); });
  return longer == candidates.end() ? "" : *longer;
}

/// "--seed" without its dashes.
inline std::string withoutDashes(const std::string &option) {
  return option.substr(std::min(option.find_first_not_of('-'), option.size()));
}

/// nearestName of an option's: to one of two letters every short one is near.
inline std::string nearestOption(const std::string &name,
                                 std::vector<std::string> candidates) {
  auto isShort = [](const std::string &text) { return text.size() < 3; };
  if (isShort(name))
    return "";
  candidates.erase(
      std::remove_if(candidates.begin(), candidates.end(), isShort),
      candidates.end());
  return nearestName(name, candidates);
}

/// "; did you mean 'x'?", or nothing if there is no `nearest`.
inline std::string didYouMean(const std::string &nearest) {
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

/// The same for the nearest of `candidates`.
inline std::string didYouMean(const std::string &name,
                              const std::vector<std::string> &candidates) {
  return didYouMean(nearestName(name, candidates));
}

} // namespace fsdp

#endif // FSDP_SUPPORT_NEARESTNAME_H
