//===- Place.h - Where a value is -------------------------------*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_PROBLEM_PLACE_H
#define FSDP_LIB_SCHEDULE_PROBLEM_PLACE_H

#include "fsdp/Schedule/Problem.h"

namespace fsdp::problem {

/// Bytes of a buffer or a range.
struct Place {
  Id root = kNone;
  int64_t begin = 0;
  bool isSet() const { return root != kNone; }
  bool operator==(Place other) const {
    return root == other.root && begin == other.begin;
  }
};

/// Roots above buffers: the ranges of names, and those of their gradients.
inline constexpr Id kRange = Id(1) << 31, kGradientRange = kRange | Id(1) << 30;
inline bool isBuffer(Id root) { return root < kRange; }

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_PROBLEM_PLACE_H
