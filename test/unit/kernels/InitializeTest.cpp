//===- InitializeTest.cpp - First values ----------------------------------===//
#include "fsdp/Data/Initialize.h"
#include "fsdp/Data/Philox.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace fsdp::rt;

// Known answers of the Random123 distribution (kat_vectors, philox4x32 10).
TEST(Philox, AgreesWithThePublishedVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c,
                                     0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                   0xffffffffffffffff),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6,
                                     0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   0x299f31d0a4093822),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420,
                                     0x24126ea1}));
}

// FNV-1a of "a" is 0xaf63dc4c8601ec8c.
TEST(Philox, KeysCombineSeedAndName) {
  EXPECT_EQ(philoxKey(0, ""), 0xcbf29ce484222325);
  EXPECT_EQ(philoxKey(1, "a"), 0xaf63dc4c8601ec8d);
}

TEST(Initialize, NormalValuesHaveTheStatedMoments) {
  double sum = 0, squares = 0;
  constexpr int count = 100000;
  for (int i = 0; i < count; ++i) {
    double value = normalValue(42, "w", i, 0.5, 0);
    sum += value;
    squares += value * value;
  }
  // Five standard errors: 0.5 / sqrt(n), and 0.25 sqrt(2 / n).
  EXPECT_NEAR(sum / count, 0, 5 * 0.5 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 0.25, 5 * 0.25 * std::sqrt(2.0 / count));
}

TEST(Initialize, CutValuesAreDrawnAgain) {
  int changed = 0;
  for (int i = 0; i < 10000; ++i) {
    float cut = normalValue(42, "w", i, 2.0, 1.0);
    EXPECT_LE(std::abs(cut), 2.0f);
    float uncut = normalValue(42, "w", i, 2.0, 0);
    if (std::abs(uncut) <= 2.0f)
      EXPECT_EQ(cut, uncut);
    else
      ++changed;
  }
  // 31.7 % of a normal distribution lie beyond one standard deviation.
  EXPECT_NEAR(changed, 3173, 250);
}

TEST(Initialize, UniformValuesFillTheirInterval) {
  float low = 1, high = -1;
  for (int i = 0; i < 10000; ++i) {
    low = std::min(low, uniformValue(1, "w", i, 0.25));
    high = std::max(high, uniformValue(1, "w", i, 0.25));
  }
  EXPECT_GE(low, -0.25f);
  EXPECT_LT(high, 0.25f);
  EXPECT_LT(low, -0.249f);
  EXPECT_GT(high, 0.249f);
}

static Manifest meshOf(std::vector<MeshAxis> axes) {
  Manifest manifest;
  manifest.mesh = std::move(axes);
  return manifest;
}

static RangeInfo normalRange(std::vector<int64_t> full,
                             std::vector<int64_t> shape) {
  RangeInfo range;
  range.name = "w";
  range.role = RangeRole::Parameter;
  range.full = std::move(full);
  range.shape = std::move(shape);
  range.bytes = static_cast<uint64_t>(range.elements() * 4);
  range.init = Initializer();
  range.init->kind = Initializer::Kind::Normal;
  range.init->std = 1;
  return range;
}

/// The values of one rank; the memory begins as rubbish.
static std::vector<float> initialized(const Manifest &manifest,
                                      const RangeInfo &range, int rank) {
  std::vector<float> values(static_cast<size_t>(range.elements()), 9e9f);
  initializeRange(manifest, range, rank, 42,
                  reinterpret_cast<std::byte *>(values.data()));
  return values;
}

// 5 rows over 3 ranks: 2, 2 and 1 rows, the last padded with a row of zeros.
TEST(Initialize, ShardsOfAnyMeshAreOneTensor) {
  Manifest three = meshOf({{"dp", 3}});
  RangeInfo range = normalRange({5, 2}, {2, 2});
  range.placement = RangePlacement{{{{}, {{0, 1, 3}}}, {}}};
  std::vector<float> gathered;
  for (int rank = 0; rank < 3; ++rank)
    for (float value : initialized(three, range, rank))
      gathered.push_back(value);
  std::vector<float> whole =
      initialized(meshOf({{"dp", 1}}), normalRange({5, 2}, {5, 2}), 0);
  ASSERT_EQ(gathered.size(), 12u);
  for (size_t i = 0; i < 10; ++i)
    EXPECT_EQ(gathered[i], whole[i]) << i;
  EXPECT_EQ(gathered[10], 0.0f);
  EXPECT_EQ(gathered[11], 0.0f);
}

// Columns of a [2, 6] tensor over the inner axis of a 2 x 3 mesh: the outer
// coordinate does not matter, the inner one picks columns 2c and 2c + 1.
TEST(Initialize, InnerAxisAndInnerDimension) {
  Manifest mesh = meshOf({{"replicate", 2}, {"shard", 3}});
  RangeInfo range = normalRange({2, 6}, {2, 2});
  range.placement = RangePlacement{{{}, {{}, {{1, 1, 3}}}}};
  for (int rank = 0; rank < 6; ++rank) {
    std::vector<float> values = initialized(mesh, range, rank);
    for (int row = 0; row < 2; ++row)
      for (int col = 0; col < 2; ++col) {
        uint64_t index = row * 6 + (rank % 3) * 2 + col;
        EXPECT_EQ(values[row * 2 + col], normalValue(42, "w", index, 1, 0));
      }
  }
}

// 70,001 elements are five parts, the last one short; a piece that begins
// within one has the same values.
TEST(Initialize, ThreadsChangeNoValue) {
  Manifest mesh = meshOf({{"dp", 1}});
  RangeInfo range = normalRange({70001}, {70001});
  std::vector<float> expected = initialized(mesh, range, 0);
  for (int threads : {2, 3, 64}) {
    std::vector<float> values(expected.size() - 777, 9e9f);
    initializePiece(mesh, range, 0, 42, 777,
                    static_cast<int64_t>(values.size()),
                    reinterpret_cast<std::byte *>(values.data()), threads);
    EXPECT_TRUE(
        std::equal(values.begin(), values.end(), expected.begin() + 777))
        << threads << " threads";
  }
}

/// Every element of the full tensor lies in some rank's box, wherever it lies
/// there with the value of the whole tensor, and all else is zero. `shape` is
/// each rank's.
static void checkPieces(const Manifest &mesh, const RangeInfo &whole,
                        std::vector<int64_t> shape, RangePlacement placement) {
  ASSERT_EQ(whole.full.size(), 3u);
  std::vector<float> expected = initialized(mesh, whole, 0);
  RangeInfo part = whole;
  part.shape = std::move(shape);
  part.bytes = static_cast<uint64_t>(part.elements() * 4);
  part.placement = std::move(placement);
  std::vector<int> seen(expected.size(), 0);
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    ShardView view = mesh.shardView(part, rank);
    std::vector<float> values = initialized(mesh, part, rank);
    size_t at = 0;
    for (int64_t i = 0; i < part.shape[0]; ++i)
      for (int64_t j = 0; j < part.shape[1]; ++j)
        for (int64_t k = 0; k < part.shape[2]; ++k, ++at) {
          int64_t index[] = {i, j, k}, element = 0;
          bool inside = true;
          for (size_t d = 0; d < 3; ++d) {
            index[d] += view.offsets[d];
            inside &= index[d] < view.end(d);
            element = element * part.full[d] + index[d];
          }
          ASSERT_EQ(values[at],
                    inside ? expected[static_cast<size_t>(element)] : 0.0f)
              << "rank " << rank << " at " << i << " " << j << " " << k;
          if (inside)
            ++seen[static_cast<size_t>(element)];
        }
  }
  for (size_t i = 0; i < seen.size(); ++i)
    EXPECT_GT(seen[i], 0) << i;
}

// Any number of dimensions are sharded, over compute and storage axes and parts
// of them; the mesh has 2 x 4 x 3 ranks.
TEST(Initialize, PiecesOfAnyPlacementAreOneTensor) {
  Manifest mesh = meshOf({{"dp", 2}, {"tp", 4}, {"cp", 3}});
  AxisRef dp{0, 1, 2}, tp{1, 1, 4}, cp{2, 1, 3};
  AxisRef outer{1, 1, 2}, inner{1, 2, 2};
  using Dim = RangePlacement::Dim;
  RangeInfo w = normalRange({8, 5, 7}, {8, 5, 7});
  checkPieces(mesh, w, {8, 5, 7}, {{Dim{}, Dim{}, Dim{}}});
  // Rows: 4 even parts of 2; columns: 5 in 2 pieces of 3; depth 7 in 3 of 3.
  checkPieces(mesh, w, {2, 3, 3},
              {{Dim{{tp}, {}}, Dim{{}, {dp}}, Dim{{}, {cp}}}});
  // The halves of an axis on two dimensions; 4 rows of each half in 3 of 2.
  checkPieces(mesh, w, {2, 3, 4},
              {{Dim{{inner}, {cp}}, Dim{{}, {outer}}, Dim{{}, {dp}}}});
  // 8 storage ranks over 7: one each, the last has none.
  checkPieces(mesh, w, {8, 5, 1}, {{Dim{}, Dim{}, Dim{{}, {tp, dp}}}});
  RangeInfo table = w;
  table.full = table.shape = {6, 3, 2};
  table.bytes = 6 * 3 * 2 * 4;
  table.init->kind = Initializer::Kind::RotaryTable;
  table.init->frequencies = {1, 0.1, 0.01};
  checkPieces(mesh, table, {2, 2, 2}, {{Dim{{cp}, {}}, Dim{{}, {dp}}, Dim{}}});
}

TEST(Initialize, RotaryTablesHoldCosinesAndSines) {
  RangeInfo range;
  range.name = "rotary";
  range.role = RangeRole::Buffer;
  range.shape = range.full = {3, 2, 2};
  range.bytes = 48;
  range.init = Initializer();
  range.init->kind = Initializer::Kind::RotaryTable;
  range.init->frequencies = {1, 0.1};
  range.init->scale = 1.5;
  range.init->start = 10;
  std::vector<float> values = initialized(meshOf({{"dp", 1}}), range, 0);
  EXPECT_EQ(values[0], static_cast<float>(1.5 * std::cos(10.0)));
  EXPECT_EQ(values[1], static_cast<float>(1.5 * std::sin(10.0)));
  EXPECT_EQ(values[4 * 2 + 2], static_cast<float>(1.5 * std::cos(12 * 0.1)));
  EXPECT_EQ(values[4 * 2 + 3], static_cast<float>(1.5 * std::sin(12 * 0.1)));
}
