//===- NodePlacement.h - Whether ranks share nodes as stated ----*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_NODEPLACEMENT_H
#define FSDP_RUNTIME_TRAIN_NODEPLACEMENT_H

#include "fsdp/Artifact/Manifest.h"
#include "fsdp/Core/Context.h"
#include <string>
#include <vector>

namespace fsdp {

/// What is different if ranks are on these machines, by rank, and the artifact
/// states nodes of `nodeSize` consecutive ranks. Empty: nothing, or no nodes
/// are stated.
std::string placementWarning(const std::vector<std::string> &hosts,
                             int64_t nodeSize);

/// What is slower than it need be if neighbours along an axis of the mesh are
/// on different machines, though every machine has ranks enough for all of
/// them. The outermost axis may leave a machine. Empty: nothing.
std::string innerAxisWarning(const std::vector<std::string> &hosts,
                             const std::vector<rt::MeshAxis> &mesh);

/// The first rank prints what of both there is first. Collective, if nodes are
/// stated or the mesh has axes inside the outermost.
void warnOfPlacement(const rt::World &world, const rt::Manifest &manifest);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_NODEPLACEMENT_H
