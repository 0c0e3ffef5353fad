//===- NodePlacement.cpp - Whether ranks share nodes as stated ------------===//
#include "NodePlacement.h"
#include "fsdp/Rendezvous/Environment.h"
#include "fsdp/Support/Message.h"
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

void fsdp::warnOfPlacement(const World &world, int64_t nodeSize) {
  if (nodeSize <= 1)
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
  std::string warning = placementWarning(hosts, nodeSize);
  if (!warning.empty())
    printMessage(kRunWarning, warning);
}
