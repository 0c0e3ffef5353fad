//===- Duration.cpp - Time as a whole number of picoseconds ---------------===//
#include "fsdp/Machine/Duration.h"

using namespace fsdp;

// Here and not in the header, which others may compile with contraction.
Duration Duration::ofSeconds(double seconds) {
  double picoseconds = seconds * 1e12 + 0.5;
  if (!(picoseconds >= 1))
    return Duration();
  return Duration(picoseconds < 9.2e18 ? static_cast<int64_t>(picoseconds)
                                       : kMost);
}
