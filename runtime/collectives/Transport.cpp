//===- Transport.cpp - What all transports share --------------------------===//
#include "Transport.h"
#include "runtime/core/Timeline.h"

using namespace fsdp::rt;

void Transport::checkTime(int64_t begin) const {
  if (double(now() - begin) * 1e-9 >= timeout)
    onTimeout();
}
