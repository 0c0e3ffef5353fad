//===- NodePlacement.cpp - Whether ranks share nodes as stated ------------===//
#include "NodePlacement.h"
#include "fsdp/Rendezvous/Environment.h"
#include "fsdp/Support/Message.h"
#include <algorithm>
#include <map>

using namespace fsdp;
using namespace fsdp::rt;

std::string fsdp::placementWarning(const std::vector<std::string> &hosts,
                                   int64_t nodeSize) {
  if (nodeSize <= 1)
    return {};
  std::string stated = "the artifact states nodes of " +
                       std::to_string(nodeSize) +
                       " ranks (parallelism.node_size), but ranks ";
  std::map<std::string, size_t> firstOn; // of the node that is on a machine
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    size_t first = rank - rank % size_t(nodeSize);
    std::string both = std::to_string(first) + " and " + std::to_string(rank);
    if (hosts[rank] != hosts[first])
      return stated + both + " are on different machines, " + hosts[first] +
             " and " + hosts[rank] + ": sums inside nodes go over the network";
    auto [at, isNew] = firstOn.emplace(hosts[rank], first);
    if (!isNew && at->second != first)
      return stated + std::to_string(at->second) + " and " +
             std::to_string(first) + " are on one machine, " + hosts[rank] +
             ": larger nodes would send less between machines";
  }
  return {};
}

/// Whether every machine has a multiple of so many ranks.
static bool areWhole(const std::vector<std::string> &hosts, int64_t together) {
  std::map<std::string, int64_t> ranks;
  for (const std::string &host : hosts)
    ++ranks[host];
  return std::all_of(ranks.begin(), ranks.end(), [&](const auto &host) {
    return host.second % together == 0;
  });
}

std::string fsdp::innerAxisWarning(const std::vector<std::string> &hosts,
                                   const std::vector<MeshAxis> &mesh) {
  int64_t together = 1; // consecutive ranks that an axis and those in it join
  for (size_t axis = mesh.size(); axis-- > 1;) {
    together *= mesh[axis].size;
    // No numbering keeps them together where a machine's ranks are no whole
    // number of them.
    if (!areWhole(hosts, together))
      return {};
    for (size_t rank = 0; rank < hosts.size(); ++rank) {
      size_t first = rank - rank % size_t(together);
      if (hosts[rank] != hosts[first])
        return "ranks " + std::to_string(first) + " and " +
               std::to_string(rank) + " are neighbours along the mesh's " +
               mesh[axis].name + " axis but on different machines, " +
               hosts[first] + " and " + hosts[rank] +
               ": its transfers go over the network. Every machine has room "
               "for whole groups of " +
               std::to_string(together) +
               "; number consecutive ranks on one machine (mpirun --map-by "
               "slot, srun --distribution=block)";
    }
  }
  return {};
}

static bool hasInnerAxes(const std::vector<MeshAxis> &mesh) {
  return std::any_of(mesh.begin() + !mesh.empty(), mesh.end(),
                     [](const MeshAxis &axis) { return axis.size > 1; });
}

void fsdp::warnOfPlacement(const World &world, const Manifest &manifest) {
  if (manifest.nodeSize <= 1 && !hasInnerAxes(manifest.mesh))
    return;
  constexpr size_t most = 256;
  std::string mine = hostName();
  mine.resize(most);
  std::string all(world.rank == 0 ? most * size_t(world.size) : 0, '\0');
  gather(mine.data(), most, all.data());
  if (world.rank != 0)
    return;
  std::vector<std::string> hosts;
  for (int rank = 0; rank < world.size; ++rank)
    hosts.emplace_back(all.c_str() + size_t(rank) * most);
  std::string warning = placementWarning(hosts, manifest.nodeSize);
  if (warning.empty())
    warning = innerAxisWarning(hosts, manifest.mesh);
  if (!warning.empty())
    printMessage(kRunWarning, warning);
}
