//===- OverlapRules.h - Rules that look at overlap --------------*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_DECIDE_OVERLAPRULES_H
#define FSDP_LIB_SCHEDULE_DECIDE_OVERLAPRULES_H

#include "TransferTimes.h"

namespace fsdp::problem {

/// Parameters, one bucket ahead, merged one after another wherever no more of a
/// pass is exposed then, and up to 2 GB.
CommunicationChoice mergedWhileHidden(const TransferTimes &times);

/// As Inductor's overlap scheduler: each gather starts as early as 5 GB in
/// flight and 200 kernels allow; then transfers merge, those that are exposed
/// longest first, where no more is exposed and up to 2 GB. A reduction is
/// awaited when it is over.
CommunicationChoice pytorchOverlap(const TransferTimes &times);

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_DECIDE_OVERLAPRULES_H
