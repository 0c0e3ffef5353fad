//===- RankTrees.h - Orders of reduction to test kernels with ---*- C++ -*-===//
#ifndef FSDP_TEST_UNIT_KERNELS_RANKTREES_H
#define FSDP_TEST_UNIT_KERNELS_RANKTREES_H

#include "runtime/kernels/RankTree.h"
#include <vector>

namespace fsdp::rt::test {

/// The tree of a group over all of a mesh, listed in the mesh's order.
inline RankTree rankTreeOf(const std::vector<int> &mesh) {
  RankTree tree;
  int stride = 1;
  for (size_t i = mesh.size(); i-- > 0; stride *= mesh[i])
    tree.axis[i] = {mesh[i], stride};
  tree.axes = int(mesh.size());
  return tree;
}

/// One axis of 1 to 9 ranks and of many, several axes of sizes that are and are
/// not powers of two, and a group that lists its axes in another order than the
/// mesh.
inline std::vector<RankTree> someRankTrees() {
  std::vector<RankTree> trees = {RankTree()};
  for (int ranks = 2; ranks <= 9; ++ranks)
    trees.push_back(rankTreeOf({ranks}));
  for (const std::vector<int> &mesh : std::vector<std::vector<int>>{
           {2, 2}, {2, 3}, {3, 2}, {5, 3}, {2, 3, 5}, {16, 3}, {300}})
    trees.push_back(rankTreeOf(mesh));
  RankTree turned;
  turned.axis[0] = {2, 1};
  turned.axis[1] = {3, 2};
  turned.axes = 2;
  trees.push_back(turned);
  return trees;
}

} // namespace fsdp::rt::test

#endif // FSDP_TEST_UNIT_KERNELS_RANKTREES_H
