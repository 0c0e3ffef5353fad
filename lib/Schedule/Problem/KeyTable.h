//===- KeyTable.h - A map that keeps its memory -----------------*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_PROBLEM_KEYTABLE_H
#define FSDP_LIB_SCHEDULE_PROBLEM_KEYTABLE_H

#include "fsdp/Schedule/Problem.h"
#include <algorithm>

namespace fsdp::problem {

/// A number for each key of three, by open addressing; clear() costs nothing.
class KeyTable {
public:
  void clear() {
    count = 0;
    if (++round == 0) {
      entries.clear();
      round = 1;
    }
  }

  /// kNone, to be set, for a key that is new.
  Id &operator()(Id a, Id b, uint32_t c) {
    if (2 * (count + 1) > entries.size())
      grow();
    Entry &entry = at({uint64_t(a) << 32 | b, c, round, kNone});
    if (entry.round != round) {
      entry = {uint64_t(a) << 32 | b, c, round, kNone};
      ++count;
    }
    return entry.number;
  }

private:
  struct Entry {
    uint64_t ab = 0;
    uint32_t c = 0;
    uint32_t round = 0; ///< Of another round it is free.
    Id number = kNone;
  };

  /// That of the key, or the free one where it goes.
  Entry &at(const Entry &key) {
    uint64_t hash =
        (key.ab ^ key.c * 0xc2b2ae3d27d4eb4fu) * uint64_t(0x9e3779b97f4a7c15u);
    for (size_t i = hash >> 32;; ++i) {
      Entry &entry = entries[i & (entries.size() - 1)];
      bool isFree = entry.round != round;
      if (isFree || (entry.ab == key.ab && entry.c == key.c))
        return entry;
    }
  }

  void grow() {
    std::vector<Entry> old = std::move(entries);
    entries.assign(std::max<size_t>(2 * old.size(), 64), Entry());
    for (const Entry &entry : old)
      if (entry.round == round)
        at(entry) = entry;
  }

  std::vector<Entry> entries; // a power of two of them
  size_t count = 0;
  uint32_t round = 1;
};

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_PROBLEM_KEYTABLE_H
