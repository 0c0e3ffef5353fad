//===- PiecesTest.cpp - Groups of ranks and the order of their sums -------===//
#include "fsdp/Support/Error.h"
#include "fsdp/Target/CollectivePieces.h"
#include "runtime/collectives/Groups.h"
#include <gtest/gtest.h>

using namespace fsdp;
using namespace fsdp::rt;

namespace {

using Axes = std::vector<std::pair<int, int>>; // size, stride

Axes treeOf(const std::vector<AxisRef> &group,
            const std::vector<int64_t> &mesh) {
  RankTree tree = rankTree({int32_t(group.size()), group.data()}, mesh);
  Axes axes;
  for (int i = 0; i < tree.axes; ++i)
    axes.emplace_back(tree.axis[i].size, tree.axis[i].stride);
  return axes;
}

TEST(RankTree, HasOneLevelPerMeshAxis) {
  EXPECT_EQ(treeOf({{0, 1, 0}, {1, 1, 0}}, {2, 3}), (Axes{{2, 3}, {3, 1}}));
  EXPECT_EQ(treeOf({{1, 1, 0}}, {2, 3}), (Axes{{3, 1}}));
}

TEST(RankTree, FollowsTheMeshHoweverTheGroupListsItsAxes) {
  EXPECT_EQ(treeOf({{1, 1, 0}, {0, 1, 0}}, {2, 3}), (Axes{{2, 1}, {3, 2}}));
}

TEST(RankTree, LeavesOutAxesOfOneRank) {
  EXPECT_EQ(treeOf({{0, 1, 0}, {1, 1, 0}, {2, 1, 0}}, {1, 3, 1}),
            (Axes{{3, 1}}));
}

TEST(RankTree, TakesSubAxesAsAxes) {
  // 12 ranks as 2 x 3 x 2: the outer 2 and the 3 in the middle.
  EXPECT_EQ(treeOf({{0, 1, 2}, {0, 2, 3}}, {12}), (Axes{{2, 3}, {3, 1}}));
}

TEST(RankTree, RefusesMoreAxesThanItHolds) {
  std::vector<AxisRef> group;
  std::vector<int64_t> mesh(RankTree::kMaxAxes + 1, 2);
  for (int32_t i = 0; i <= RankTree::kMaxAxes; ++i)
    group.push_back({i, 1, 0});
  EXPECT_THROW(treeOf(group, mesh), Error);
}

} // namespace
