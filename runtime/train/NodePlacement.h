//===- NodePlacement.h - Whether ranks share nodes as stated ----*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_NODEPLACEMENT_H
#define FSDP_RUNTIME_TRAIN_NODEPLACEMENT_H

#include "fsdp/Core/Context.h"
#include <string>
#include <vector>

namespace fsdp {

/// What is different if ranks are on these machines, by rank, and the artifact
/// states nodes of `nodeSize` consecutive ranks. Empty: nothing, or no nodes
/// are stated.
std::string placementWarning(const std::vector<std::string> &hosts,
                             int64_t nodeSize);

/// The first rank prints it. Collective, if nodes are stated.
void warnOfPlacement(const rt::World &world, int64_t nodeSize);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_NODEPLACEMENT_H
