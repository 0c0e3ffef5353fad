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

} // namespace
