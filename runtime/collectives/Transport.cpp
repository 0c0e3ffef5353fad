//===- Transport.cpp - What all transports share --------------------------===//
#include "Transport.h"
#include "../api/Trace.h"

using namespace fsdp::rt;

void Transport::checkTime(int64_t begin) const {
  if (double(now() - begin) * 1e-9 < timeout)
    return;
  abortWorld("collective \"" + std::string(current.serves) + "\" (number " +
                 std::to_string(current.sequence) + " on stream " +
                 streamName(current.stream) + ") did not finish within " +
                 std::to_string(int(timeout)) +
                 " s: another rank is dead, stuck or runs another program",
             3);
}
