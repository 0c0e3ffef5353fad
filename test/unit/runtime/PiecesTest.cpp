//===- PiecesTest.cpp - Groups of ranks and the order of their sums -------===//
#include "fsdp/Support/Error.h"
#include "fsdp/Target/CollectivePieces.h"
#include "fsdp/Target/CudaWorkspaces.h"
#include "runtime/collectives/Groups.h"
#include <functional>
#include <gtest/gtest.h>
#include <optional>

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

/// The two trees of nodes, and positions by node and place.
using Levels = std::tuple<Axes, Axes, std::vector<int>>;

Axes axesOf(const RankTree &tree) {
  Axes axes;
  for (int i = 0; i < tree.axes; ++i)
    axes.emplace_back(tree.axis[i].size, tree.axis[i].stride);
  return axes;
}

Levels levelsOf(const std::vector<AxisRef> &group,
                const std::vector<int64_t> &mesh, int nodeRanks) {
  NodeLevels levels = nodeLevels(
      rankTree({int32_t(group.size()), group.data()}, mesh), nodeRanks, 0);
  return {axesOf(levels.between), axesOf(levels.inside), levels.positions};
}

TEST(NodeLevels, SplitAnAxisAtPowersOfTwo) {
  EXPECT_EQ(levelsOf({{0, 1, 0}}, {6}, 2),
            Levels({{3, 1}}, {{2, 1}}, {0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(levelsOf({{0, 1, 0}}, {8}, 4),
            Levels({{2, 1}}, {{4, 1}}, {0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_THROW(levelsOf({{0, 1, 0}}, {6}, 3), Error);
  EXPECT_THROW(levelsOf({{0, 1, 0}}, {6}, 4), Error);
}

TEST(NodeLevels, TakeWholeAxesFromTheLastOutward) {
  std::vector<AxisRef> both = {{0, 1, 0}, {1, 1, 0}};
  EXPECT_EQ(levelsOf(both, {2, 3}, 3),
            Levels({{2, 1}}, {{3, 1}}, {0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(levelsOf(both, {4, 3}, 6),
            Levels({{2, 1}}, {{2, 3}, {3, 1}},
                   {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(levelsOf({{1, 1, 0}, {0, 1, 0}}, {2, 2}, 2),
            Levels({{2, 1}}, {{2, 1}}, {0, 2, 1, 3}));
  EXPECT_THROW(levelsOf(both, {2, 3}, 2), Error);
  EXPECT_THROW(levelsOf(both, {2, 3}, 4), Error);
}

/// The sum of `count` subtrees along an axis, of what `leaf` gives for a
/// position, in brackets.
std::string sumOf(const RankTree &tree, int axis, int first, int count,
                  const std::function<std::string(int)> &leaf) {
  if (axis == tree.axes)
    return leaf(first);
  auto [size, stride] = tree.axis[axis];
  if (count == 1) {
    int inner = axis + 1 < tree.axes ? tree.axis[axis + 1].size : 1;
    return sumOf(tree, axis + 1, first, inner, leaf);
  }
  int left = 1;
  while (2 * left < count)
    left *= 2;
  return "(" + sumOf(tree, axis, first, left, leaf) + "+" +
         sumOf(tree, axis, first + left * stride, count - left, leaf) + ")";
}

std::string sumOf(const RankTree &tree,
                  const std::function<std::string(int)> &leaf) {
  return sumOf(tree, 0, 0, tree.axes == 0 ? 1 : tree.axis[0].size, leaf);
}

// Two trees, one inside nodes and one over them, are the tree of one level: on
// all meshes of up to 9 x 6 ranks, for groups that list their axes in either
// order.
TEST(NodeLevels, KeepTheOrderOfOneLevel) {
  int fit = 0;
  std::vector<std::vector<AxisRef>> groups = {{{0, 1, 0}, {1, 1, 0}},
                                              {{1, 1, 0}, {0, 1, 0}}};
  for (int64_t outer = 1; outer <= 9; ++outer)
    for (int64_t inner = 1; inner <= 6; ++inner)
      for (const std::vector<AxisRef> &group : groups) {
        RankTree tree = rankTree({2, group.data()}, {outer, inner});
        auto position = [](int at) { return std::to_string(at); };
        for (int nodeRanks = 2; nodeRanks < outer * inner; ++nodeRanks) {
          std::optional<NodeLevels> levels;
          try {
            levels = nodeLevels(tree, nodeRanks, 0);
          } catch (const Error &) {
            continue;
          }
          ++fit;
          EXPECT_EQ(sumOf(tree, position),
                    sumOf(levels->between, [&](int node) {
                      return sumOf(levels->inside, [&](int place) {
                        return position(levels->position(node, place));
                      });
                    }));
        }
      }
  EXPECT_GT(fit, 150);
}

TEST(NodeLevels, KnowTheOwnPlace) {
  AxisRef axis{0, 1, 0};
  NodeLevels levels = nodeLevels(rankTree({1, &axis}, {8}), 2, 5);
  EXPECT_EQ(levels.node, 2);
  EXPECT_EQ(levels.place, 1);
  EXPECT_EQ(levels.position(2, 1), 5);
}

CollectiveDesc reductionOf(std::vector<CollectiveItem> &items, DType in,
                           int nodeRanks) {
  CollectiveDesc desc = {};
  desc.kind = CollectiveKind::ReduceScatter;
  desc.in = in;
  desc.out = DType::F32;
  desc.items = int32_t(items.size());
  desc.item = items.data();
  desc.nodeRanks = nodeRanks;
  return desc;
}

TEST(TwoLevelBytes, ArePartialSumsAndTheLargerExchange) {
  std::vector<CollectiveItem> items = {{100, 800}};
  // 4 sums of 100 in f32; 4 pieces of one other in bf16, or 3 sums.
  CollectiveDesc desc = reductionOf(items, DType::BF16, 2);
  EXPECT_EQ(collectiveWorkspaceBytes(desc, 0, 8), 4 * 400 + 3 * 400);
  desc.in = DType::F32;
  EXPECT_EQ(collectiveWorkspaceBytes(desc, 0, 8), 4 * 400 + 4 * 400);
  desc = reductionOf(items, DType::BF16, 4);
  EXPECT_EQ(collectiveWorkspaceBytes(desc, 0, 8), 2 * 400 + 2 * 3 * 200);
  desc.nodeRanks = 0;
  EXPECT_EQ(collectiveWorkspaceBytes(desc, 0, 8), 7 * 200);
}

// 512 ranks in nodes of 8: rounds are as large as messages of 1 MiB to 63 other
// nodes need; and those of 16 ranks stay at what they were.
TEST(TwoLevelBytes, RoundsKeepMessagesLong) {
  for (int64_t ranks : {16, 64, 128, 256, 512}) {
    SCOPED_TRACE(ranks);
    int64_t shard = int64_t(1) << 24;
    std::vector<CollectiveItem> items = {{shard, shard * ranks},
                                         {shard / 2, shard / 2 * ranks}};
    CollectiveDesc desc = reductionOf(items, DType::BF16, 8);
    int64_t message = 0, staging = 0;
    for (int i = 0; i < 2; ++i) {
      message += cuda::exchangeElements(desc, i, ranks) * 4;
      staging += cuda::collectiveWorkspaceBytes(desc, i, ranks);
    }
    EXPECT_GE(message, 1 << 20);
    EXPECT_LE(message, ranks <= 64 ? 16 << 20 : 2 << 20);
    EXPECT_LE(staging, std::max<int64_t>(ranks, 80) * (1200 << 10));
  }
}

} // namespace
