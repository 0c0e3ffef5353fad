//===- NodePlacementTest.cpp - Machines that are not as stated ------------===//
#include "runtime/train/NodePlacement.h"
#include <gtest/gtest.h>

using namespace fsdp;

namespace {

TEST(NodePlacement, SaysNothingWhereRanksAreAsStated) {
  EXPECT_EQ(placementWarning({"a", "a", "b", "b"}, 2), "");
  EXPECT_EQ(placementWarning({"a", "a", "a", "a"}, 4), "");
  EXPECT_EQ(placementWarning({"a", "b", "a", "b"}, 0), "");
  EXPECT_EQ(placementWarning({"a", "a"}, 1), "");
}

TEST(NodePlacement, NamesARankThatIsElsewhere) {
  EXPECT_EQ(placementWarning({"a", "b", "a", "b"}, 2),
            "the artifact states nodes of 2 ranks (parallelism.node_size), but "
            "ranks 0 and 1 are on different machines, a and b: sums inside "
            "nodes go over the network");
  EXPECT_NE(
      placementWarning({"a", "a", "b", "c"}, 2).find("ranks 2 and 3 are on"),
      std::string::npos);
}

TEST(NodePlacement, NamesNodesThatShareAMachine) {
  EXPECT_EQ(placementWarning({"a", "a", "b", "b", "b", "b"}, 2),
            "the artifact states nodes of 2 ranks (parallelism.node_size), but "
            "ranks 2 and 4 are on one machine, b: larger nodes would send less "
            "between machines");
}

TEST(NodePlacement, SaysNothingWhereInnerAxesStayOnMachines) {
  const std::vector<std::string> four = {"a", "a", "b", "b"};
  EXPECT_EQ(innerAxisWarning(four, {{"dp_shard", 2}, {"tp", 2}}), "");
  EXPECT_EQ(innerAxisWarning(four, {{"dp_shard", 4}}), "");
  EXPECT_EQ(innerAxisWarning(four, {}), "");
  // No machine holds four ranks.
  EXPECT_EQ(innerAxisWarning(four, {{"dp_shard", 1}, {"tp", 4}}), "");
  EXPECT_EQ(innerAxisWarning({"a", "b", "b"}, {{"dp_shard", 1}, {"tp", 3}}),
            "");
  // Three ranks on each: no numbering keeps all pairs together.
  EXPECT_EQ(innerAxisWarning({"a", "a", "a", "b", "b", "b"},
                             {{"dp_shard", 3}, {"tp", 2}}),
            "");
}

TEST(NodePlacement, NamesAnInnerAxisThatLeavesAMachine) {
  EXPECT_EQ(
      innerAxisWarning({"a", "b", "a", "b"}, {{"dp_shard", 2}, {"tp", 2}}),
      "ranks 0 and 1 are neighbours along the mesh's tp axis but on different "
      "machines, a and b: its transfers go over the network. Every machine has "
      "room for whole groups of 2; number consecutive ranks on one machine "
      "(mpirun --map-by slot, srun --distribution=block)");
  // The axis in the middle, where the innermost stays.
  EXPECT_NE(
      innerAxisWarning({"a", "a", "b", "b", "a", "a", "b", "b"},
                       {{"dp_replicate", 2}, {"dp_shard", 2}, {"tp", 2}})
          .find("ranks 0 and 2 are neighbours along the mesh's dp_shard axis"),
      std::string::npos);
}

} // namespace
