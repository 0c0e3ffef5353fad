//===- ShardsTest.cpp - What a rank's place gives it ----------------------===//
//
// Shards of what every rank has, and rows of a shard. Nothing travels.
//
//===----------------------------------------------------------------------===//
#include "../../kernels/TestContext.h"
#include <gtest/gtest.h>

using namespace fsdp::rt;
using namespace fsdp::rt::test;

namespace {

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// A mesh of 2 x n/2 and groups that list its axes in either order; the third
/// has the first axis alone.
struct TwoAxes {
  int64_t n = joinWorld().size, me = joinWorld().rank,
          outer = n % 2 == 0 ? 2 : 1;
  int64_t inner = n / outer;
  AxisRef axes[2] = {{0, 1, outer}, {1, 1, inner}},
          turned[2] = {axes[1], axes[0]};
  int64_t places[3] = {me, (me % inner) * outer + me / inner, me / inner};

  void give(TestContext &t) {
    t.options.meshAxes = {outer, inner};
    t.groups = {{2, axes}, {2, turned}, {1, &axes[0]}};
  }
};

// Rows of 3 in parts over all ranks; nothing but a part needs these groups. On
// 2 and 4 ranks, 5 rows leave the last rank a short part; on more, an empty
// one.
TEST(ShardOf, CopiesThePartOfTheRanksPlace) {
  TwoAxes mesh;
  int64_t rows = ceilDiv(5, mesh.n);
  TestContext t;
  mesh.give(t);
  std::vector<float> values(15);
  for (int i = 0; i < 15; ++i)
    values[i] = float(i + 1);
  float *in = t.take(values);
  for (int g = 0; g < 3; ++g) {
    int64_t size = (g == 2 ? ceilDiv(5, mesh.outer) : rows) * 3;
    float *out = t.take(std::vector<float>(size_t(size) + 1, -1.0f));
    t.run([&](Context &c) {
      shardOf(c, Stream::Compute, g, 15 * 4, size * 4, ptr(in), ptr(out));
    });
    for (int64_t i = 0; i < size; ++i) {
      int64_t from = mesh.places[g] * size + i;
      EXPECT_EQ(out[i], from < 15 ? values[size_t(from)] : 0.0f)
          << "group " << g << " at " << i;
    }
    EXPECT_EQ(out[size], -1.0f);
  }
}

// Tables of 5 rows in shards of all ranks: of each rank's two ids, which are
// everybody's.
TEST(RowsOfShard, AreThoseOfTheRanksPlace) {
  TwoAxes mesh;
  int64_t n = mesh.n, rows = ceilDiv(5, n);
  TestContext t;
  mesh.give(t);
  std::vector<int32_t> values;
  for (int64_t i = 0; i < 2 * n; ++i)
    values.push_back(int32_t(i * 3 % 5));
  int32_t *ids = t.take(values);
  for (int g = 0; g < 2; ++g)
    for (bool byRank : {false, true}) {
      int32_t *out = t.take<int32_t>(2 * n);
      t.run([&](Context &c) {
        rowsOfShard(c, Stream::Compute, g, 2 * n, 5, byRank, ptr(ids),
                    ptr(out));
      });
      for (int64_t i = 0; i < 2 * n; ++i) {
        int64_t id = values[size_t(i)], piece = byRank ? i / 2 : 0;
        bool isOwn = id / rows == mesh.places[g];
        EXPECT_EQ(out[i], isOwn ? piece * rows + id % rows : -1)
            << "group " << g << " at " << i;
      }
    }
  for (int32_t bad : {-1, 5}) {
    ids[1] = bad;
    std::string error = t.run([&](Context &c) {
      rowsOfShard(c, Stream::Compute, 0, 2 * n, 5, true, ptr(ids), ptr(ids));
    });
    EXPECT_NE(error.find("token"), std::string::npos) << bad;
  }
}

} // namespace
