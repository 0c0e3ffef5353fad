//===- CollectivesTest.cpp - Bits of collectives on several ranks ---------===//
//
// Every rank runs this program (see test/unit/CMakeLists.txt), alone and
// under mpirun, through shared memory and through MPI. Every rank can make
// the data of every other, so each computes what it must receive.
//
//===----------------------------------------------------------------------===//
#include "../../kernels/TestContext.h"
#include "fsdp/Target/CollectivePieces.h"
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <thread>

using namespace fsdp::rt;
using namespace fsdp::rt::test;

namespace {

/// Tensors of one bucket: sizes below and above the limit of small
/// all-reduces, and sizes that no number of ranks divides.
const std::vector<int64_t> kSizes = {1, 7, 1000, 4099, 30011};

int64_t ranks() { return joinWorld().size; }
int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// What `rank` contributes to tensor `item`, with values of many magnitudes,
/// so that another order of addition shows.
std::vector<float> contribution(int item, int64_t rank) {
  std::vector<float> x = normal(kSizes[item], unsigned(item * 100 + rank));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] *= std::ldexp(1.0f, int(i * 7 + size_t(rank) * 3) % 19 - 9);
  return x;
}

/// The tree along one axis: neighbours first, then neighbours of neighbours;
/// what is left alone joins later.
float tree(std::vector<float> values) {
  for (size_t step = 1; step < values.size(); step *= 2)
    for (size_t i = 0; i + step < values.size(); i += 2 * step)
      values[i] += values[i + step];
  return values[0];
}

/// Trees of `inner` consecutive values, and a tree over their results.
float nestedTree(const std::vector<float> &values, size_t inner) {
  std::vector<float> sums;
  for (size_t i = 0; i < values.size(); i += inner)
    sums.push_back(tree({values.begin() + i, values.begin() + i + inner}));
  return tree(sums);
}

/// The reduced tensor `item` on a group of `members`, of which `inner`
/// consecutive ones are along the mesh's last axis.
std::vector<float> reduced(int item, const std::vector<int64_t> &members,
                           bool bf16, size_t inner = 1) {
  std::vector<std::vector<float>> all;
  for (int64_t r : members)
    all.push_back(contribution(item, r));
  std::vector<float> result;
  for (int64_t i = 0; i < kSizes[item]; ++i) {
    std::vector<float> values;
    for (const std::vector<float> &x : all)
      values.push_back(bf16 ? math::roundBF16(x[i]) : x[i]);
    result.push_back(nestedTree(values, inner));
  }
  return result;
}

std::vector<int64_t> everybody() {
  std::vector<int64_t> all;
  for (int64_t r = 0; r < ranks(); ++r)
    all.push_back(r);
  return all;
}

/// A context with one bucket of all tensors over all ranks.
struct Bucket {
  Bucket(CollectiveKind kind, DType wire) {
    for (int64_t size : kSizes)
      items.push_back(
          {kind == CollectiveKind::AllReduce ? size : ceilDiv(size, ranks()),
           size});
    desc.kind = kind;
    desc.in = wire;
    desc.out = kind == CollectiveKind::AllGather ? wire : DType::F32;
    desc.items = int32_t(items.size());
    desc.item = items.data();
    desc.serves = "test";
    t.groups = {{1, &axis}};
    t.collectives = {desc};
    t.events = 4;
  }

  void addWorkspaces() {
    for (int i = 0; i < desc.items; ++i)
      workspace.push_back(
          t.take<std::byte>(collectiveWorkspaceBytes(desc, i, ranks())));
  }
  void addInputs(int64_t rank) {
    for (int i = 0; i < desc.items; ++i) {
      std::vector<float> x = contribution(i, rank);
      in.push_back(desc.in == DType::BF16 ? ptr(t.take(toBF16(x)))
                                          : ptr(t.take(x)));
    }
  }
  void addOutputs() {
    for (const CollectiveItem &item : items)
      out.push_back(ptr(t.take<float>(item.shard)));
  }
  void run(Stream stream, int index = 0) {
    std::string error = t.run([&](Context &c) {
      collective(c, stream, index, {in[0], in[1], in[2], in[3], in[4]},
                 {out[0], out[1], out[2], out[3], out[4]},
                 {workspace[0], workspace[1], workspace[2], workspace[3],
                  workspace[4]});
      record(c, 0, stream);
      wait(c, 0, Stream::Compute);
    });
    ASSERT_EQ(error, "");
  }

  TestContext t;
  AxisRef axis{0, 1, 0};
  std::vector<CollectiveItem> items;
  CollectiveDesc desc{};
  std::vector<Ptr> in, out, workspace;
};

class Reductions : public testing::TestWithParam<std::tuple<DType, Stream>> {};

TEST_P(Reductions, ReduceScatterKeepsTheTreeAndPadsWithZeros) {
  auto [wire, stream] = GetParam();
  Bucket b(CollectiveKind::ReduceScatter, wire);
  int64_t me = joinWorld().rank;
  b.addInputs(me);
  b.addOutputs();
  b.addWorkspaces();
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (size_t i = 0; i < b.items.size(); ++i)
      std::memset(b.out[i], 0x77, size_t(b.items[i].shard * 4));
    b.run(stream);
    for (size_t i = 0; i < b.items.size(); ++i) {
      std::vector<float> expected =
          reduced(int(i), everybody(), wire == DType::BF16);
      expected.resize(size_t(ranks() * b.items[i].shard), 0.0f);
      auto *got = reinterpret_cast<float *>(b.out[i]);
      EXPECT_EQ(0, std::memcmp(got, &expected[me * b.items[i].shard],
                               size_t(b.items[i].shard) * 4))
          << "tensor " << i;
    }
  }
}

TEST_P(Reductions, AllReduceHasTheBitsOfReduceScatter) {
  auto [wire, stream] = GetParam();
  Bucket b(CollectiveKind::AllReduce, wire);
  b.addInputs(joinWorld().rank);
  b.addOutputs();
  b.addWorkspaces();
  for (int repeat = 0; repeat < 3; ++repeat) {
    b.run(stream);
    for (size_t i = 0; i < b.items.size(); ++i) {
      std::vector<float> expected =
          reduced(int(i), everybody(), wire == DType::BF16);
      EXPECT_EQ(0, std::memcmp(b.out[i], expected.data(), expected.size() * 4))
          << "tensor " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types, Reductions,
    testing::Combine(testing::Values(DType::F32, DType::BF16),
                     testing::Values(Stream::Compute, Stream::Reduce)));

/// A bucket of all tensors in one level, as collective 0, and in two, as 1.
struct LevelsBucket : Bucket {
  LevelsBucket(CollectiveKind kind, DType wire, int nodeRanks)
      : Bucket(kind, wire) {
    desc.nodeRanks = nodeRanks;
    t.collectives.push_back(desc);
    addInputs(joinWorld().rank);
    addOutputs();
    addWorkspaces();
  }

  /// What collective `index` leaves in `out` and behind all workspaces.
  std::vector<std::byte> bytesOf(int index) {
    Ptr behind = t.take<std::byte>(64);
    std::memset(behind, 0x55, 64);
    for (size_t i = 0; i < items.size() && out[i] != in[i]; ++i)
      std::memset(out[i], 0x77, size_t(items[i].shard * 4));
    run(Stream::Reduce, index);
    std::vector<std::byte> bytes(behind, behind + 64);
    for (size_t i = 0; i < items.size(); ++i)
      bytes.insert(bytes.end(), out[i], out[i] + items[i].shard * 4);
    return bytes;
  }
};

// 4 ranks are 2 nodes of 2; 6 are 3 of 2; 8 are 2 of 4 and 4 of 2.
TEST(TwoLevels, HaveTheBitsOfOne) {
  int cases = 0;
  for (int nodeRanks = 2; nodeRanks < ranks(); nodeRanks *= 2) {
    if (ranks() % nodeRanks != 0)
      continue;
    for (DType wire : {DType::F32, DType::BF16})
      for (CollectiveKind kind :
           {CollectiveKind::ReduceScatter, CollectiveKind::AllReduce}) {
        LevelsBucket b(kind, wire, nodeRanks);
        std::vector<std::byte> expected = b.bytesOf(0);
        for (int repeat = 0; repeat < 2; ++repeat)
          EXPECT_EQ(b.bytesOf(1), expected) << nodeRanks << " ranks in a node";
        ++cases;
        if (kind != CollectiveKind::AllReduce || wire != DType::F32)
          continue;
        b.out = b.in;
        EXPECT_EQ(b.bytesOf(1), expected) << "in place";
      }
  }
  EXPECT_EQ(cases, ranks() == 8 ? 8 : ranks() % 2 == 0 && ranks() > 2 ? 4 : 0);
}

TEST(Collectives, AllReduceInPlace) {
  Bucket b(CollectiveKind::AllReduce, DType::F32);
  b.addInputs(joinWorld().rank);
  b.out = b.in;
  b.addWorkspaces();
  b.run(Stream::Compute);
  for (size_t i = 0; i < b.items.size(); ++i) {
    std::vector<float> expected = reduced(int(i), everybody(), false);
    EXPECT_EQ(0, std::memcmp(b.out[i], expected.data(), expected.size() * 4));
  }
}

TEST(Collectives, AllGatherPutsShardsInOrder) {
  Bucket b(CollectiveKind::AllGather, DType::F32);
  for (size_t i = 0; i < b.items.size(); ++i) {
    std::vector<float> x = contribution(int(i), 0);
    int64_t shard = b.items[i].shard;
    x.resize(size_t(shard * ranks()), 0.0f);
    int64_t begin = joinWorld().rank * shard;
    b.in.push_back(ptr(b.t.take(
        std::vector<float>(x.begin() + begin, x.begin() + begin + shard))));
    b.out.push_back(ptr(b.t.take<float>(shard * ranks())));
  }
  b.addWorkspaces();
  b.run(Stream::Gather);
  for (size_t i = 0; i < b.items.size(); ++i) {
    std::vector<float> expected = contribution(int(i), 0);
    EXPECT_EQ(0, std::memcmp(b.out[i], expected.data(), expected.size() * 4));
  }
}

TEST(Collectives, IntegersAndMaximaAreExact) {
  CollectiveItem item{2, 2};
  AxisRef axis{0, 1, 0};
  CollectiveDesc sum{CollectiveKind::AllReduce,
                     ReduceKind::Sum,
                     DType::I64,
                     DType::I64,
                     0,
                     1,
                     &item,
                     "sum"};
  CollectiveDesc max{CollectiveKind::AllReduce,
                     ReduceKind::Max,
                     DType::F32,
                     DType::F32,
                     0,
                     1,
                     &item,
                     "max"};
  TestContext t;
  t.groups = {{1, &axis}};
  t.collectives = {sum, max};
  int64_t me = joinWorld().rank, n = ranks();
  int64_t big = int64_t(1) << 60;
  int64_t *a = t.take(std::vector<int64_t>{big / n + me, -me});
  int64_t *as = t.take<int64_t>(2);
  float nan = std::nanf("");
  float *b = t.take(std::vector<float>{-float(me) - 1, me == 0 ? nan : 5.0f});
  float *bs = t.take<float>(2);
  Ptr w = t.take<std::byte>(4096);
  t.run([&](Context &c) {
    collective(c, Stream::Compute, 0, {ptr(a)}, {ptr(as)}, {w});
    collective(c, Stream::Compute, 1, {ptr(b)}, {ptr(bs)}, {w});
  });
  int64_t total = n * (n - 1) / 2;
  EXPECT_EQ(as[0], big / n * n + total);
  EXPECT_EQ(as[1], -total);
  EXPECT_EQ(bs[0], -1.0f);
  EXPECT_TRUE(std::isnan(bs[1]));
}

// On a mesh of 2 x n/2 the groups along one axis are independent of each
// other, and trees over several axes nest in the order of the mesh, in
// whatever order the group lists them.
TEST(Collectives, GroupsFollowTheMesh) {
  int64_t n = ranks(), me = joinWorld().rank;
  if (n % 2 != 0)
    GTEST_SKIP() << "needs an even number of ranks";
  int64_t inner = n / 2;
  AxisRef outerAxis{0, 1, 0}, innerAxis{1, 1, 0};
  AxisRef both[] = {outerAxis, innerAxis}, turned[] = {innerAxis, outerAxis};
  AxisRef half{0, 1, 2}; // the outer digit, as a sub-axis
  CollectiveItem item{kSizes[2], kSizes[2]};
  CollectiveDesc desc{CollectiveKind::AllReduce,
                      ReduceKind::Sum,
                      DType::F32,
                      DType::F32,
                      0,
                      1,
                      &item,
                      "group"};
  TestContext t;
  t.options.meshAxes = {2, inner};
  t.groups = {
      {1, &outerAxis}, {1, &innerAxis}, {2, both}, {1, &half}, {2, turned}};
  for (int g = 0; g < 5; ++g) {
    desc.group = g;
    t.collectives.push_back(desc);
  }
  float *in = t.take(contribution(2, me));
  Ptr w = t.take<std::byte>(1 << 16);
  std::vector<float *> out;
  for (int g = 0; g < 5; ++g)
    out.push_back(t.take<float>(kSizes[2]));
  t.run([&](Context &c) {
    for (int g = 0; g < 5; ++g)
      collective(c, Stream::Reduce, g, {ptr(in)}, {ptr(out[g])}, {w});
  });
  std::vector<int64_t> alongOuter = {me % inner, me % inner + inner};
  std::vector<int64_t> alongInner;
  for (int64_t i = 0; i < inner; ++i)
    alongInner.push_back(me / inner * inner + i);
  std::vector<int64_t> members[] = {alongOuter, alongInner, everybody(),
                                    alongOuter, everybody()};
  for (int g = 0; g < 5; ++g) {
    bool isWhole = members[g].size() == size_t(n);
    std::vector<float> expected =
        reduced(2, members[g], false, isWhole ? size_t(inner) : 1);
    EXPECT_EQ(0, std::memcmp(out[g], expected.data(), expected.size() * 4))
        << "group " << g;
  }
}

// Nodes that have whole axes of the mesh, also of three ranks, in whatever
// order a group lists its axes; and that have a part of the axis before.
TEST(TwoLevels, FollowTheMesh) {
  int64_t n = ranks(), me = joinWorld().rank, inner = n / 2;
  if (n % 2 != 0 || n < 4)
    GTEST_SKIP() << "needs an even number of ranks, 4 at least";
  AxisRef axes[] = {{0, 1, 0}, {1, 1, 0}}, turned[] = {axes[1], axes[0]};
  CollectiveItem item{ceilDiv(kSizes[4], n), kSizes[4]};
  TestContext t;
  t.options.meshAxes = {2, inner};
  t.groups = {{2, axes}, {2, turned}};
  CollectiveDesc desc{CollectiveKind::ReduceScatter,
                      ReduceKind::Sum,
                      DType::F32,
                      DType::F32,
                      0,
                      1,
                      &item,
                      "group"};
  int64_t workspace = 0;
  for (int g = 0; g < 2; ++g)
    for (int64_t nodeRanks : {int64_t(0), inner}) {
      desc.group = g;
      desc.nodeRanks = int32_t(nodeRanks);
      t.collectives.push_back(desc);
      workspace =
          std::max(workspace, collectiveWorkspaceBytes(desc, 0, ranks()));
    }
  float *in = t.take(contribution(4, me));
  Ptr w = t.take<std::byte>(workspace);
  std::vector<float *> out;
  for (int i = 0; i < 4; ++i)
    out.push_back(t.take<float>(item.shard));
  t.run([&](Context &c) {
    for (int i = 0; i < 4; ++i)
      collective(c, Stream::Reduce, i, {ptr(in)}, {ptr(out[i])}, {w});
  });
  int64_t places[] = {me, me % inner * 2 + me / inner};
  std::vector<float> expected = reduced(4, everybody(), false, size_t(inner));
  expected.resize(size_t(item.shard * n), 0.0f);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(0, std::memcmp(out[i], &expected[places[i / 2] * item.shard],
                             size_t(item.shard) * 4))
        << "collective " << i;
}

// Gathers and reductions on their own streams, many in flight, with compute
// in between that waits for each.
TEST(Collectives, StreamsOverlapInOrder) {
  AxisRef axis{0, 1, 0};
  int64_t n = ranks(), me = joinWorld().rank, shard = 5000;
  CollectiveItem item{shard, shard * n};
  CollectiveDesc gather{CollectiveKind::AllGather,
                        ReduceKind::Sum,
                        DType::F32,
                        DType::F32,
                        0,
                        1,
                        &item,
                        "gather"};
  CollectiveDesc reduce{CollectiveKind::ReduceScatter,
                        ReduceKind::Sum,
                        DType::F32,
                        DType::F32,
                        0,
                        1,
                        &item,
                        "reduce"};
  TestContext t;
  t.groups = {{1, &axis}};
  t.collectives = {gather, reduce};
  t.events = 3;
  float *x = t.take<float>(shard), *full = t.take<float>(shard * n);
  float *grad = t.take<float>(shard * n), *result = t.take<float>(shard);
  Ptr w = t.take<std::byte>(collectiveWorkspaceBytes(reduce, 0, n));
  std::fill(x, x + shard, float(me + 1));
  constexpr int rounds = 50;
  t.run([&](Context &c) {
    for (int i = 0; i < rounds; ++i) {
      record(c, 0, Stream::Compute);
      wait(c, 0, Stream::Gather);
      collective(c, Stream::Gather, 0, {ptr(x)}, {ptr(full)}, {});
      record(c, 1, Stream::Gather);
      wait(c, 1, Stream::Compute);
      std::copy(full, full + shard * n, grad);
      record(c, 2, Stream::Compute);
      wait(c, 2, Stream::Reduce);
      collective(c, Stream::Reduce, 1, {ptr(grad)}, {ptr(result)}, {w});
      record(c, 1, Stream::Reduce);
      wait(c, 1, Stream::Compute);
      for (int64_t j = 0; j < shard; ++j)
        x[j] = result[j] / float(n);
    }
  });
  // Each round multiplies by one: every rank reduces n copies of shard `me`.
  for (int64_t j = 0; j < shard; ++j)
    ASSERT_EQ(x[j], float(me + 1));
}

TEST(Job, HelpersReachEveryRank) {
  int64_t n = ranks(), me = joinWorld().rank;
  double values[2] = {double(me), 1};
  allReduceSum(values, 2);
  EXPECT_EQ(values[0], double(n * (n - 1) / 2));
  EXPECT_EQ(values[1], double(n));
  int word = me == 0 ? 42 : 0;
  broadcast(&word, sizeof word);
  EXPECT_EQ(word, 42);
  std::vector<int64_t> all(static_cast<size_t>(n), -1);
  gather(&me, sizeof me, all.data());
  if (me == 0) {
    EXPECT_EQ(all, everybody());
  }
}

TEST(Context, NamesTheWrongWorldSize) {
  TestContext t;
  t.options.meshAxes = {ranks() + 1};
  try {
    t.get();
    FAIL();
  } catch (const std::runtime_error &e) {
    EXPECT_NE(std::string(e.what()).find("mesh"), std::string::npos);
  }
}

} // namespace

/// A collective, and the same again, to which the last `late` ranks come after
/// `delay`.
static int reduceAfter(const std::function<void()> &delay, int late = 1) {
  Bucket b(CollectiveKind::AllReduce, DType::F32);
  b.desc.serves = "a collective that hangs";
  b.t.collectives = {b.desc};
  b.addInputs(joinWorld().rank);
  b.addOutputs();
  b.addWorkspaces();
  b.run(Stream::Reduce);
  if (joinWorld().rank >= joinWorld().size - late)
    delay();
  b.run(Stream::Reduce);
  return 0;
}

static void compute(std::chrono::seconds duration) {
  auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end)
    continue;
}

/// Once the rank's beats have said what it did before.
static void stop() {
  std::this_thread::sleep_for(std::chrono::seconds(2));
  std::raise(SIGSTOP);
}

int main(int argc, char **argv) {
  joinWorld();
  std::string mode = argc == 2 ? argv[1] : "";
  int status = 0;
  // The last rank never takes part: the others must end the job.
  if (mode == "--hang")
    status = reduceAfter(
        [] { std::this_thread::sleep_for(std::chrono::seconds(60)); });
  if (mode == "--stop")
    status = reduceAfter(stop);
  if (mode == "--stop-two")
    status = reduceAfter(stop, 2);
  if (mode == "--slow")
    status = reduceAfter([] { compute(std::chrono::seconds(6)); });
  if (!mode.empty()) {
    leaveWorld();
    return status;
  }
  testing::InitGoogleTest(&argc, argv);
  int result = RUN_ALL_TESTS();
  double failures = result;
  allReduceSum(&failures, 1);
  leaveWorld();
  return failures != 0;
}
