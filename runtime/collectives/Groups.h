//===- Groups.h - The ranks of a group, in order ----------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_COLLECTIVES_GROUPS_H
#define FSDP_RUNTIME_COLLECTIVES_GROUPS_H

#include "fsdp/Runtime/Artifact.h"
#include "runtime/kernels/RankTree.h"
#include <vector>

namespace fsdp::rt {

/// The ranks that differ from `rank` only along the group's axes, in order,
/// the first axis slowest.
std::vector<int> groupRanks(const GroupDesc &group,
                            const std::vector<int64_t> &meshAxes, int rank);

/// The order in which a group's contributions are combined. It is that of the
/// mesh, in whatever order the group lists its axes. Throws fsdp::Error if the
/// group has more than RankTree::kMaxAxes axes.
RankTree rankTree(const GroupDesc &group, const std::vector<int64_t> &meshAxes);

/// A group whose sums are made in two levels. Ranks have a place in their node,
/// and nodes are numbered, both in the order of the mesh.
struct NodeLevels {
  RankTree inside;  ///< Over the places of a node.
  RankTree between; ///< Over nodes: together they are the group's tree.
  /// Positions in the group, by node and then by place.
  std::vector<int> positions;
  int node = 0, place = 0; ///< Of this rank.

  int nodes() const { return between.ranks(); }
  int places() const { return inside.ranks(); }
  int position(int ofNode, int atPlace) const {
    return positions[size_t(ofNode * places() + atPlace)];
  }
};

/// By group of an artifact, the ranks in each node for its sums in two levels;
/// 0: it has none.
std::vector<int> nodeRanksOfGroups(const fsdp_artifact &artifact);

/// Those of a group of this tree with `nodeRanks` ranks in each node, seen from
/// position `me`. Throws fsdp::Error if a node's ranks are no subtree.
NodeLevels nodeLevels(const RankTree &tree, int nodeRanks, int me);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COLLECTIVES_GROUPS_H
