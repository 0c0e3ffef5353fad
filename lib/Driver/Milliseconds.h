//===- Milliseconds.h - Durations as pages print them -----------*- C++ -*-===//
#ifndef FSDP_LIB_DRIVER_MILLISECONDS_H
#define FSDP_LIB_DRIVER_MILLISECONDS_H

#include "fsdp/Machine/Duration.h"

namespace fsdp {

inline double milliseconds(Duration duration) {
  return duration.seconds() * 1e3;
}

} // namespace fsdp

#endif // FSDP_LIB_DRIVER_MILLISECONDS_H
