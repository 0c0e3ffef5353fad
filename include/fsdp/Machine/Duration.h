//===- Duration.h - Time as a whole number of picoseconds -------*- C++ -*-===//
//
// Estimates are compared and added millions of times, and the same input must
// give the same plan on every machine. Whole numbers add exactly, in any order.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_MACHINE_DURATION_H
#define FSDP_MACHINE_DURATION_H

#include <cstdint>

namespace fsdp {

class Duration {
public:
  /// What is longer counts as this: 106 days.
  static constexpr int64_t kMost = INT64_MAX;

  constexpr Duration() = default;
  /// Of a negative number, or of none, no time at all.
  static constexpr Duration ofPicoseconds(int64_t picoseconds) {
    return Duration(picoseconds < 0 ? 0 : picoseconds);
  }
  /// The nearest; not a number and what is negative are no time at all.
  static Duration ofSeconds(double seconds);

  constexpr int64_t picoseconds() const { return value; }
  constexpr double seconds() const { return static_cast<double>(value) / 1e12; }

  Duration &operator+=(Duration other) {
    if (__builtin_add_overflow(value, other.value, &value))
      value = kMost;
    return *this;
  }
  friend Duration operator+(Duration a, Duration b) { return a += b; }
  friend Duration operator*(Duration a, int64_t times) {
    if (__builtin_mul_overflow(a.value, times < 0 ? 0 : times, &a.value))
      a.value = kMost;
    return a;
  }
  /// Rounded down; `parts` is 1 or more.
  friend constexpr Duration operator/(Duration a, int64_t parts) {
    return Duration(a.value / parts);
  }
  friend constexpr bool operator==(Duration a, Duration b) {
    return a.value == b.value;
  }
  friend constexpr bool operator!=(Duration a, Duration b) { return !(a == b); }
  friend constexpr bool operator<(Duration a, Duration b) {
    return a.value < b.value;
  }
  friend constexpr bool operator<=(Duration a, Duration b) { return !(b < a); }

private:
  explicit constexpr Duration(int64_t picoseconds) : value(picoseconds) {}

  int64_t value = 0;
};

} // namespace fsdp

#endif // FSDP_MACHINE_DURATION_H
