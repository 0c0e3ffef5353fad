//===- BoxTest.cpp - Parts of tensors, and what ranges are for ------------===//
#include "fsdp/Artifact/Box.h"
#include "fsdp/Artifact/RangeRole.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <set>

using namespace fsdp::rt;

namespace {

using Shape = std::vector<int64_t>;

/// Calls `take` with every box of a tensor of this shape, empty ones too.
template <typename Take> void forEachBox(const Shape &shape, Take take) {
  Box box = wholeBox(shape);
  std::function<void(size_t)> cut = [&](size_t d) {
    if (d == shape.size())
      return take(box);
    for (int64_t begin = 0; begin <= shape[d]; ++begin)
      for (int64_t end = begin; end <= shape[d]; ++end) {
        box.offsets[d] = begin;
        box.sizes[d] = end - begin;
        cut(d + 1);
      }
  };
  cut(0);
}

/// The elements of a box by their places in the tensor, in order.
std::vector<int64_t> placesOf(const Box &box, const Shape &shape) {
  std::vector<int64_t> places;
  for (int64_t place = 0; place < elementCount(shape); ++place) {
    bool isIn = true;
    int64_t rest = place;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d])
      isIn &= box.offsets[d] <= rest % shape[d] && rest % shape[d] < box.end(d);
    if (isIn)
      places.push_back(place);
  }
  return places;
}

} // namespace

TEST(Box, CountsItsElements) {
  EXPECT_EQ(wholeBox({4, 3}).elements(), 12);
  EXPECT_EQ(wholeBox({}).elements(), 1);
  EXPECT_EQ((Box{{2, 3}, {2, 0}}.elements()), 0);
  EXPECT_EQ((Box{{2, 3}, {2, 0}}.end(0)), 4);
}

TEST(Box, ElementsHavePlaces) {
  EXPECT_EQ(indexText(0, {2, 3, 4}), "[0, 0, 0]");
  EXPECT_EQ(indexText(23, {2, 3, 4}), "[1, 2, 3]");
  EXPECT_EQ(indexText(9, {2, 3, 4}), "[0, 2, 1]");
  EXPECT_EQ(indexText(0, {}), "[]");
}

TEST(Box, IsInsideOfATensor) {
  EXPECT_TRUE(isInside({{1, 0}, {3, 3}}, {4, 3}));
  EXPECT_TRUE(isInside({{4, 3}, {0, 0}}, {4, 3}));
  EXPECT_TRUE(isInside({}, {}));
  EXPECT_FALSE(isInside({{2, 0}, {3, 3}}, {4, 3}));
  EXPECT_FALSE(isInside({{5, 0}, {0, 3}}, {4, 3}));
  EXPECT_FALSE(isInside({{0}, {4}}, {4, 3}));
  EXPECT_FALSE(isInside({{0, 0}, {4}}, {4, 3}));
  // A sum would be negative.
  EXPECT_FALSE(isInside({{1}, {INT64_MAX}}, {4}));
  EXPECT_FALSE(isInside({{INT64_MAX}, {INT64_MAX}}, {4}));
}

TEST(Box, OverlapsWhereAnElementIsInBoth) {
  Shape shape{3, 2};
  forEachBox(shape, [&](const Box &a) {
    std::vector<int64_t> inA = placesOf(a, shape);
    forEachBox(shape, [&](const Box &b) {
      bool isCommon = false;
      for (int64_t place : placesOf(b, shape))
        isCommon |= std::count(inA.begin(), inA.end(), place) != 0;
      EXPECT_EQ(overlap(a, b), isCommon);
    });
  });
  EXPECT_TRUE(overlap(wholeBox({}), wholeBox({})));
}

// Every box of a small tensor, stored without and with room for one more: the
// runs are its elements in order, each once and where it belongs, and none goes
// on where the one before has ended.
TEST(Box, IsItsRuns) {
  Shape shape{2, 3, 2};
  forEachBox(shape, [&](const Box &box) {
    for (int64_t room : {0, 1}) {
      ShardView view{box, box.sizes};
      for (int64_t &stored : view.stored)
        stored += room;
      std::vector<int64_t> places, storedPlaces;
      int64_t runs = 0, endStored = -1, endWhole = -1;
      forEachRun(view, shape, [&](int64_t stored, int64_t whole, int64_t n) {
        EXPECT_GT(n, 0);
        EXPECT_FALSE(stored == endStored && whole == endWhole);
        endStored = stored + n;
        endWhole = whole + n;
        ++runs;
        for (int64_t i = 0; i < n; ++i) {
          storedPlaces.push_back(stored + i);
          places.push_back(whole + i);
        }
      });
      EXPECT_EQ(places, placesOf(box, shape));
      EXPECT_EQ(storedPlaces, placesOf({Shape(3, 0), box.sizes}, view.stored));
      if (box.elements() > 0)
        EXPECT_EQ(countRuns(view, shape), runs);
    }
  });
}

TEST(Box, HasARunOfAScalar) {
  std::vector<int64_t> counts;
  forEachRun({}, {}, [&](int64_t stored, int64_t whole, int64_t count) {
    EXPECT_EQ(stored, 0);
    EXPECT_EQ(whole, 0);
    counts.push_back(count);
  });
  EXPECT_EQ(counts, Shape{1});
  EXPECT_EQ(countRuns({}, {}), 1);
}

TEST(Box, CountsMoreRunsThanCanBeWalked) {
  int64_t large = int64_t{1} << 40;
  Box box{{0, 0, 0}, {large, large, 1}};
  EXPECT_EQ(countRuns({box, box.sizes}, {large, large, 2}), INT64_MAX);
}

// A piece is what lies in it of the runs.
TEST(Box, IsCutIntoPieces) {
  Shape shape{3, 4};
  ShardView view{{{1, 1}, {2, 2}}, {2, 3}};
  for (int64_t first = 0; first < 6; ++first)
    for (int64_t count = 0; first + count <= 6; ++count) {
      std::vector<std::pair<int64_t, int64_t>> elements, expected;
      forEachRunWithin(first, count, view, shape,
                       [&](int64_t stored, int64_t whole, int64_t n) {
                         for (int64_t i = 0; i < n; ++i)
                           elements.emplace_back(stored + i, whole + i);
                       });
      for (auto [stored, whole] : {std::pair(0, 5), std::pair(1, 6),
                                   std::pair(3, 9), std::pair(4, 10)})
        if (stored >= first && stored < first + count)
          expected.emplace_back(stored, whole);
      EXPECT_EQ(elements, expected) << first << " + " << count;
    }
}

TEST(RangeRole, HasOneNameEach) {
  std::set<std::string> names;
  for (RangeRole role :
       {RangeRole::Parameter, RangeRole::State, RangeRole::Buffer,
        RangeRole::Gradient, RangeRole::Input, RangeRole::Output,
        RangeRole::ComputeCopy}) {
    EXPECT_TRUE(names.insert(roleName(role)).second) << roleName(role);
    EXPECT_EQ(roleNamed(roleName(role)), role);
  }
  EXPECT_EQ(roleName(RangeRole::Parameter), "parameter");
  EXPECT_EQ(roleNamed("Parameter"), std::nullopt);
  EXPECT_EQ(roleNamed(""), std::nullopt);
}
