//===- NearestName.h - What a misspelt name was meant to be -----*- C++ -*-===//
#ifndef FSDP_SUPPORT_NEARESTNAME_H
#define FSDP_SUPPORT_NEARESTNAME_H

#include <algorithm>
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

/// The name among `candidates` nearest to `name` in edit distance, or nothing
/// if none is near.
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
  return nearest;
}

/// "; did you mean 'x'?" for the nearest of `candidates`, or nothing.
inline std::string didYouMean(const std::string &name,
                              const std::vector<std::string> &candidates) {
  std::string nearest = nearestName(name, candidates);
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

} // namespace fsdp

#endif // FSDP_SUPPORT_NEARESTNAME_H
