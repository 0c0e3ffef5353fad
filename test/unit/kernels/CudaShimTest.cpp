//===- CudaShimTest.cpp - CUDA kernels run on the host --------------------===//
//
// The reductions of CudaKernels.h and the CUDA runtime's sum over ranks,
// executed by the shim, against the CPU's kernels.
//
//===----------------------------------------------------------------------===//
#include <gtest/gtest.h>
#include <random>

// From here on this file is CUDA code.
#include "../../shim/CudaShim.h"

#include "RankTrees.h"
#include "runtime/cuda/kernels/Reduce.cu"
#include "runtime/cuda/kernels/ReferenceAttention.cu"
#include "runtime/kernels/Kernels.h"

using namespace fsdp::rt;

namespace {

std::vector<float> randomFloats(size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float &v : values)
    v = normal(engine);
  return values;
}

Context &noContext() {
  // The shim never looks at it.
  static char none;
  return reinterpret_cast<Context &>(none);
}

template <typename T> Ptr pointer(std::vector<T> &v) {
  return reinterpret_cast<Ptr>(v.data());
}

} // namespace

static __global__ void sumOfRows(int64_t rows, int64_t cols, const float *x,
                                 float *out) {
  const int64_t row = gpu::row();
  if (row >= rows)
    return;
  const float sum =
      math::sumLanes(cols, [&](int64_t j) { return x[row * cols + j]; });
  if (gpu::lane() == 0)
    out[row] = sum;
}

/// Shuffles between sixteen threads give the CPU's sixteen lanes and tree. The
/// last block is not full, nor is the last group of lanes.
TEST(CudaShim, RowReductionHasTheBitsOfTheCpu) {
  constexpr int64_t rows = 21;
  for (int64_t cols : {1, 15, 16, 17, 100, 1000}) {
    auto x = randomFloats(size_t(rows * cols), unsigned(cols));
    std::vector<float> ones(x.size(), 1.0f), out(rows), wanted(rows);
    kernels().rowDotF32(rows, cols, x.data(), ones.data(), cols, wanted.data());
    gpu::startWith(noContext(), Stream::Compute, "sum", sumOfRows,
                   gpu::rowsShape(rows), rows, cols, x.data(), out.data());
    EXPECT_EQ(out, wanted) << cols << " columns";
  }
}

static __global__ void sumOfColumns(int64_t rows, int64_t cols, const float *x,
                                    float *out) {
  math::sumRows(rows, cols, out,
                [&](int64_t row, int64_t col) { return x[row * cols + col]; });
}

/// Barriers between the threads of a block: rows in blocks of 32, in order.
TEST(CudaShim, ColumnReductionAddsBlocksOf32RowsInOrder) {
  constexpr int64_t cols = 37;
  for (int64_t rows : {1, 32, 33, 700}) {
    auto x = randomFloats(size_t(rows * cols), unsigned(rows));
    std::vector<float> out(cols);
    gpu::startWith(noContext(), Stream::Compute, "columns", sumOfColumns,
                   {gpu::blocksOf(cols, gpu::kColumns), gpu::kColumns,
                    gpu::kRowGroups, false},
                   rows, cols, x.data(), out.data());
    for (int64_t c = 0; c < cols; ++c) {
      float total = 0;
      for (int64_t top = 0; top < rows; top += 32) {
        float block = 0;
        for (int64_t r = top; r < std::min(top + 32, rows); ++r)
          block += x[size_t(r * cols + c)];
        total += block;
      }
      EXPECT_EQ(out[size_t(c)], total) << rows << " rows, column " << c;
    }
  }
}

template <int N>
static __global__ void sumOfVectors(int64_t rows, int64_t cols, const float *x,
                                    float *out) {
  math::sumRows<N>(rows, cols, out, [&](int64_t row, int64_t left) {
    return gpu::load<N>(x + row * cols + left);
  });
}

/// The same sums by vectors of columns, whatever the number of blocks of rows.
template <int N> static void compareVectors(int64_t rows, int64_t cols) {
  auto x = randomFloats(size_t(rows * cols), unsigned(rows));
  std::vector<float> out(size_t(cols) + 1, 7.0f),
      wanted(size_t(cols) + 1, 7.0f);
  gpu::startWith(noContext(), Stream::Compute, "columns", sumOfColumns,
                 {gpu::blocksOf(cols, gpu::kColumns), gpu::kColumns,
                  gpu::kRowGroups, false},
                 rows, cols, x.data(), wanted.data());
  gpu::startWith(noContext(), Stream::Compute, "vectors", sumOfVectors<N>,
                 gpu::columnVectorsShape(rows, cols, N), rows, cols, x.data(),
                 out.data());
  EXPECT_EQ(out, wanted) << rows << " x " << cols;
}

TEST(CudaShim, ColumnReductionByVectorsHasTheSameBits) {
  for (int64_t rows : {1, 32, 300, 4096, 4500}) {
    compareVectors<4>(rows, 4);
    compareVectors<4>(rows, 36);
    compareVectors<8>(rows, 40);
  }
}

template <int N, int64_t Cols>
static __global__ void blocksOfRows(int64_t, int64_t, const float *x,
                                    float *maxima, float *blocks,
                                    float *largest) {
  using Block = math::RowBlock<N, Cols>;
  typename Block::template Columns<math::AddRows> sums;
  typename Block::template Columns<math::MaxRows> most;
  const int64_t top = int64_t(blockIdx.x) * math::kRowBlock;
  for (int64_t row = top + threadIdx.y; row < top + math::kRowBlock;
       row += Block::kRows) {
    auto terms = [&](int64_t left) {
      return gpu::load<N>(x + row * Cols + left);
    };
    const float sum = Block::sumOfRow(terms);
    const float max = Block::maxOfRow(terms);
    if (threadIdx.x == 0)
      maxima[row] = max + sum;
    sums.combine(terms);
    most.combine(terms);
  }
  sums.store(blocks + blockIdx.x * Cols);
  most.store(largest + blockIdx.x * Cols);
}

static __global__ void sumOfBlocks(int64_t rows, int64_t cols, const float *x,
                                   float *out) {
  math::sumBlocks(rows, cols, out, [&](int64_t row, int64_t col) {
    return x[row * cols + col];
  });
}

/// A kernel that gives rows and blocks of them, and the one that adds these.
template <int N, int64_t Cols> static void compareBlocks(int64_t rows) {
  auto x = randomFloats(size_t(rows * Cols), unsigned(rows + Cols));
  const int64_t count = rows / math::kRowBlock;
  auto numbers = [](int64_t size) { return std::vector<float>(size_t(size)); };
  std::vector<float> ofRows = numbers(rows), wantedOfRows = numbers(rows);
  std::vector<float> blocks = numbers(count * Cols), largest = blocks;
  std::vector<float> out = numbers(Cols), wanted = numbers(Cols);
  gpu::startWith(noContext(), Stream::Compute, "blocks", blocksOfRows<N, Cols>,
                 gpu::rowBlocksShape(rows, Cols, N), rows, Cols, x.data(),
                 ofRows.data(), blocks.data(), largest.data());
  gpu::startWith(noContext(), Stream::Compute, "sum", sumOfBlocks,
                 gpu::blockSumsShape(Cols), count, Cols, blocks.data(),
                 out.data());
  gpu::startWith(noContext(), Stream::Compute, "columns", sumOfColumns,
                 {gpu::blocksOf(Cols, gpu::kColumns), gpu::kColumns,
                  gpu::kRowGroups, false},
                 rows, Cols, x.data(), wanted.data());
  std::vector<float> ones(x.size(), 1.0f);
  kernels().rowDotF32(rows, Cols, x.data(), ones.data(), Cols,
                      wantedOfRows.data());
  for (int64_t r = 0; r < rows; ++r) {
    const float *row = x.data() + r * Cols;
    wantedOfRows[size_t(r)] += *std::max_element(row, row + Cols);
  }
  EXPECT_EQ(out, wanted) << rows << " x " << Cols;
  EXPECT_EQ(ofRows, wantedOfRows) << rows << " x " << Cols;
  for (int64_t i = 0; i < count * Cols; ++i) {
    float most = x[size_t(i / Cols * math::kRowBlock * Cols + i % Cols)];
    for (int64_t r = 0; r < math::kRowBlock; ++r)
      most = std::max(
          most, x[size_t((i / Cols * math::kRowBlock + r) * Cols + i % Cols)]);
    EXPECT_EQ(largest[size_t(i)], most) << i;
  }
}

/// Two rows at a time to sixteen; columns of one part, of several, and of part
/// of one; more blocks than are added at a time.
TEST(CudaShim, BlocksOfRowsHaveTheBitsOfAColumnReduction) {
  compareBlocks<8, 8>(129 * math::kRowBlock);
  for (int64_t rows : {32, 160}) {
    compareBlocks<8, 40>(rows);
    compareBlocks<8, 2048>(rows);
    compareBlocks<8, 5000>(rows);
    compareBlocks<4, 1028>(rows);
    compareBlocks<1, 37>(rows);
    compareBlocks<1, 700>(rows);
  }
}

/// Sixteen threads have a query or a key; heads below, of and above as many
/// elements, grouped, causal or not, with windows and caps.
TEST(CudaShim, ReferenceAttentionHasTheBitsOfTheCpu) {
  for (const AttentionDesc &d :
       {AttentionDesc{2, 5, 5, 4, 2, 8, 0.3, true, DType::F32, true},
        AttentionDesc{1, 7, 7, 1, 1, 16, 0.2, true, DType::F32, true},
        AttentionDesc{1, 3, 6, 2, 1, 100, 0.1, false, DType::F32, true},
        AttentionDesc{2, 7, 7, 4, 2, 8, 0.3, true, DType::F32, true, 3, 0},
        AttentionDesc{1, 5, 5, 2, 1, 16, 0.9, true, DType::F32, true, 1, 0.5},
        AttentionDesc{1, 3, 6, 2, 1, 20, 0.9, false, DType::F32, true, 0, 2},
        AttentionDesc{2, 9, 9, 2, 1, 8, 0.3, true, DType::F32, true, 0, 0,
                      true},
        AttentionDesc{1, 12, 12, 2, 2, 8, 0.3, true, DType::F32, true, 3, 1,
                      true}}) {
    auto queries = size_t(d.batch * d.qLen * d.heads * d.headDim);
    auto keys = size_t(d.batch * d.kvLen * d.kvHeads * d.headDim);
    auto rows = size_t(d.batch * d.qLen * d.heads);
    auto q = randomFloats(queries, 1), dout = randomFloats(queries, 2);
    auto k = randomFloats(keys, 3), v = randomFloats(keys, 4);
    // Documents of three tokens, the second row's one later.
    std::vector<int32_t> starts;
    for (int64_t i = 0; d.starts && i < d.batch * d.qLen; ++i)
      starts.push_back(int32_t((i % d.qLen + i / d.qLen) / 3 * 3));
    const int32_t *documents = starts.empty() ? nullptr : starts.data();
    struct Results {
      std::vector<float> out, lse, delta, dq, dk, dv;
    };
    auto make = [&] {
      return Results{std::vector<float>(queries), std::vector<float>(rows),
                     std::vector<float>(rows),    std::vector<float>(queries),
                     std::vector<float>(keys),    std::vector<float>(keys)};
    };
    Results wanted = make(), got = make();
    reference::Tensors<float> t{q.data(),
                                k.data(),
                                v.data(),
                                wanted.out.data(),
                                dout.data(),
                                wanted.lse.data(),
                                wanted.delta.data(),
                                wanted.out.data(),
                                wanted.dk.data(),
                                wanted.dv.data(),
                                documents};
    const ReferenceAttentionKernels<float> &cpu = kernels().referenceF32;
    cpu.forward(shapeOf(d), t, 0, int64_t(rows));
    t.result = wanted.dq.data();
    cpu.queryGrads(shapeOf(d), t, 0, int64_t(rows));
    cpu.keyGrads(shapeOf(d), t, 0, d.batch * d.kvLen * d.kvHeads);

    Context &c = noContext();
    Ptr at = starts.empty() ? nullptr : pointer(starts);
    referenceAttention(c, Stream::Compute, d, pointer(q), pointer(k),
                       pointer(v), at, pointer(got.out), pointer(got.lse));
    referenceAttentionGrad(c, Stream::Compute, d, pointer(q), pointer(k),
                           pointer(v), pointer(got.out), pointer(got.lse),
                           pointer(dout), at, pointer(got.dq), pointer(got.dk),
                           pointer(got.dv), pointer(got.delta));
    EXPECT_EQ(got.out, wanted.out) << d.headDim;
    EXPECT_EQ(got.lse, wanted.lse) << d.headDim;
    EXPECT_EQ(got.delta, wanted.delta) << d.headDim;
    EXPECT_EQ(got.dq, wanted.dq) << d.headDim;
    EXPECT_EQ(got.dk, wanted.dk) << d.headDim;
    EXPECT_EQ(got.dv, wanted.dv) << d.headDim;
  }
}

static auto sumKernel(float) { return kernels().sumF32; }
static auto sumKernel(BF16) { return kernels().sumBF16; }
static float number(float x, float) { return x; }
static BF16 number(float x, BF16) { return math::toBF16(x); }

namespace {

/// A tensor of a launch: pieces of `count` elements, `slot` apart, that begin
/// `shift` elements after a multiple of 16 bytes.
struct Shape {
  int64_t count, slot, shift;
};

template <typename In> struct Summed {
  Summed(const Shape &shape, const RankTree &tree, int me, uint32_t seed);

  Pieces::Item item() {
    return {reinterpret_cast<Ptr>(own.data() + shape.shift), pointer(others),
            pointer(got), shape.slot, shape.count};
  }

  const Shape shape;
  std::vector<In> own, others;
  std::vector<float> wanted, got;
};

} // namespace

template <typename In>
Summed<In>::Summed(const Shape &shape, const RankTree &tree, int me,
                   uint32_t seed)
    : shape(shape), wanted(size_t(shape.count + 1)),
      got(size_t(shape.count + 1)) {
  int ranks = tree.ranks();
  for (float x : randomFloats(size_t(shape.count + shape.shift), seed))
    own.push_back(number(x, In()));
  for (float x : randomFloats(size_t(shape.slot) * size_t(ranks), seed + 1))
    others.push_back(number(x, In()));
  std::vector<const void *> pieces;
  for (int r = 0, at = 0; r < ranks; ++r)
    pieces.push_back(r == me ? own.data() + shape.shift
                             : others.data() + shape.slot * at++);
  sumKernel(In())(pieces.data(), tree, shape.count, wanted.data());
}

/// Adds tensors of all these shapes in one launch.
template <typename In>
static void compareSums(const RankTree &tree, int me,
                        const std::vector<Shape> &shapes) {
  std::vector<Summed<In>> tensors;
  for (const Shape &shape : shapes)
    tensors.emplace_back(shape, tree, me, uint32_t(2 * tensors.size() + 1));
  Pieces p{};
  p.me = me;
  p.ranks = tree;
  for (Summed<In> &tensor : tensors)
    p.item[p.items++] = tensor.item();
  reducePieces(noContext(), Stream::Reduce, ReduceKind::Sum,
               sizeof(In) == 2 ? DType::BF16 : DType::F32, p);
  for (const Summed<In> &tensor : tensors)
    EXPECT_EQ(tensor.got, tensor.wanted)
        << tensor.shape.count << " elements, rank " << me << " of "
        << tree.ranks() << ", shift " << tensor.shape.shift;
}

/// The sum over ranks is the CPU's tree for any mesh, wherever the own piece
/// stands, in whole vectors, with some elements after them, and where pieces
/// begin anywhere; of one tensor and of several.
TEST(CudaShim, SumOverRanksIsTheTreeOfTheCpu) {
  std::vector<RankTree> trees = test::someRankTrees();
  trees.push_back(test::rankTreeOf({16}));
  trees.push_back(test::rankTreeOf({2, 4}));
  for (const RankTree &tree : trees) {
    int ranks = tree.ranks();
    for (int me : {0, ranks / 2, ranks - 1}) {
      const std::vector<Shape> shapes = {
          {300, 320, 0}, {303, 304, 0}, {30, 33, 0}, {30, 32, 1}, {1, 8, 0}};
      compareSums<float>(tree, me, shapes);
      compareSums<BF16>(tree, me, {{301, 304, 0}, {7, 12, 0}, {3001, 3008, 0}});
      for (const Shape &shape : shapes)
        compareSums<float>(tree, me, {shape});
    }
  }
}
