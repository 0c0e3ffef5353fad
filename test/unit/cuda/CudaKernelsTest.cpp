//===- CudaKernelsTest.cpp - The CUDA runtime's kernels on the host -------===//
//
// Executed by the shim, against the CPU's kernels, to the bit: sizes that are
// and are not whole vectors, and operands that begin anywhere. The shim ends
// the test at an access that is not aligned, and words around every result
// show one that goes too far.
//
//===----------------------------------------------------------------------===//
#include <gtest/gtest.h>
#include <random>
#include <tuple>
#include <utility>

// From here on this file is CUDA code.
#include "../../shim/CudaShim.h"

#include "runtime/cuda/kernels/EmbeddingGrad.cu"
#include "runtime/cuda/kernels/Layout.cu"
#include "runtime/cuda/kernels/Model.cu"
#include "runtime/cuda/kernels/Optimizer.cu"
#include "runtime/kernels/Kernels.h"

using namespace fsdp::rt;

static unsigned errors = 0;
unsigned *fsdp::rt::dataErrorFlags(Context &) { return &errors; }
static Coordinate place;
Coordinate fsdp::rt::placeIn(Context &, int) { return place; }
// Nobody observes a call here, and there is no context.
ObservedCall::ObservedCall(Context &context) : context(context) {}
ObservedCall::~ObservedCall() = default;
void fsdp::rt::fillZero(Context &, Stream, Ptr out, int64_t bytes) {
  std::memset(out, 0, size_t(bytes));
}

namespace {

constexpr Stream S = Stream::Compute;

Context &noContext() {
  // The shim never looks at it.
  static char none;
  return reinterpret_cast<Context &>(none);
}

float number(float x, float) { return x; }
BF16 number(float x, BF16) { return math::toBF16(x); }

/// `count` elements that begin `shift` elements after a multiple of 64 bytes.
template <typename T> class Buffer {
public:
  Buffer(int64_t count, int64_t shift, unsigned seed = 0)
      : count(count), shift(shift) {
    size_t bytes = (size_t(count + shift) * sizeof(T) + 191) / 64 * 64;
    memory.reset(static_cast<T *>(std::aligned_alloc(64, bytes)));
    std::memset(static_cast<void *>(memory.get()), 0x7a, bytes);
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; seed != 0 && i < count; ++i)
      data()[i] = number(normal(engine), T());
  }
  T *data() { return memory.get() + shift; }
  operator Ptr() { return reinterpret_cast<Ptr>(data()); }
  /// The bytes of the elements and of those around them.
  std::vector<char> bytes() {
    auto *begin = reinterpret_cast<char *>(memory.get());
    return {begin, begin + size_t(count + shift) * sizeof(T) + 64};
  }

private:
  struct Free {
    void operator()(T *p) const { std::free(p); }
  };
  int64_t count, shift;
  std::unique_ptr<T, Free> memory;
};

/// As many numbers as a list of pointers in a call has.
template <size_t... I> auto indices(std::index_sequence<I...>) {
  return std::make_tuple(I...);
}

/// body(T(), shift of the operands) for both types.
template <typename Body> void forOperands(const Body &body) {
  for (int64_t shift : {0, 1}) {
    body(float(), shift);
    body(BF16(), shift);
  }
}

auto rotaryKernel(float) { return kernels().rotaryF32; }
auto rotaryKernel(BF16) { return kernels().rotaryBF16; }
auto addRowKernel(float) { return kernels().addRowF32; }
auto addRowKernel(BF16) { return kernels().addRowBF16; }
auto logSumExpKernel(float) { return kernels().logSumExpF32; }
auto logSumExpKernel(BF16) { return kernels().logSumExpBF16; }
auto gradKernel(float) { return kernels().crossEntropyGradF32; }
auto gradKernel(BF16) { return kernels().crossEntropyGradBF16; }

DType typeOf(float) { return DType::F32; }
DType typeOf(BF16) { return DType::BF16; }

} // namespace

/// Heads of whole vectors of pairs, and of fewer.
TEST(CudaKernels, RotaryHasTheBitsOfTheCpu) {
  constexpr int64_t batch = 2, sequence = 5, heads = 3;
  forOperands([&](auto tag, int64_t shift) {
    using T = decltype(tag);
    for (int64_t dim : {2, 6, 16, 32, 80})
      for (int form = 0; form < 4; ++form) {
        bool halves = form & 1, inverse = form & 2;
        int64_t count = batch * sequence * heads * dim;
        Buffer<T> x(count, shift, 1), y(count, shift), wanted(count, shift);
        Buffer<float> table(sequence * dim, shift, 2);
        for (int64_t token = 0; token < batch * sequence; ++token)
          rotaryKernel(tag)(x.data() + token * heads * dim,
                            table.data() + token % sequence * dim,
                            wanted.data() + token * heads * dim, heads, dim,
                            halves, inverse);
        rotary(noContext(), S, typeOf(tag), batch, sequence, heads, dim, halves,
               inverse, x, table, y);
        EXPECT_EQ(y.bytes(), wanted.bytes())
            << dim << " of " << sizeof(T) << " bytes, form " << form;
      }
  });
}

/// The heads of one tensor, a token after another, are those of three that are
/// rotated by themselves.
TEST(CudaKernels, HeadsHaveTheBitsOfTheCpu) {
  constexpr int64_t batch = 2, sequence = 5, heads = 4, kvHeads = 2;
  constexpr int64_t tokens = batch * sequence, all = heads + 2 * kvHeads;
  forOperands([&](auto tag, int64_t shift) {
    using T = decltype(tag);
    for (int64_t dim : {2, 6, 16, 32, 80})
      for (bool halves : {false, true}) {
        const int64_t sizes[] = {heads * dim, kvHeads * dim, kvHeads * dim};
        Buffer<T> x(tokens * all * dim, shift, 1);
        Buffer<T> back(tokens * all * dim, shift);
        Buffer<T> wanted(tokens * all * dim, shift);
        Buffer<float> table(sequence * dim, shift, 2);
        std::vector<Buffer<T>> parts, wantedParts;
        for (auto *some : {&parts, &wantedParts})
          for (int64_t size : sizes)
            some->emplace_back(tokens * size, shift);
        for (int64_t token = 0; token < tokens; ++token) {
          const float *angles = table.data() + token % sequence * dim;
          int64_t at = token * all * dim;
          for (int p = 0; p < 3; at += sizes[p++]) {
            T *part = wantedParts[p].data() + token * sizes[p];
            if (p == 2) {
              std::copy_n(x.data() + at, sizes[p], part);
              std::copy_n(x.data() + at, sizes[p], wanted.data() + at);
              continue;
            }
            auto kernel = rotaryKernel(tag);
            kernel(x.data() + at, angles, part, sizes[p] / dim, dim, halves,
                   /*inverse=*/false);
            kernel(part, angles, wanted.data() + at, sizes[p] / dim, dim,
                   halves, /*inverse=*/true);
          }
        }
        splitHeads(noContext(), S, typeOf(tag), batch, sequence, heads, kvHeads,
                   dim, halves, x, table, parts[0], parts[1], parts[2]);
        joinHeads(noContext(), S, typeOf(tag), batch, sequence, heads, kvHeads,
                  dim, halves, parts[0], parts[1], parts[2], table, back);
        for (int p = 0; p < 3; ++p)
          EXPECT_EQ(parts[p].bytes(), wantedParts[p].bytes())
              << "part " << p << " with heads of " << dim;
        EXPECT_EQ(back.bytes(), wanted.bytes()) << "heads of " << dim;
      }
  });
}

/// Classes that many tokens have, that one has and that none has, tokens that
/// are no class, more tokens than threads sort, and numbers of one digit and of
/// three.
TEST(CudaKernels, EmbeddingAndItsGradientHaveTheBitsOfTheCpu) {
  struct Case {
    int64_t rows, classes, cols;
  };
  // With ids of rows that other ranks have, every fifth, and without.
  auto check = [&](auto tag, int64_t shift, bool absent) {
    using T = decltype(tag);
    for (const Case &size :
         {Case{1, 1, 8}, Case{12, 4, 8}, Case{40, 15, 24}, Case{33, 16, 5},
          Case{1500, 700, 40}, Case{70, 3, 2056}}) {
      auto [rows, classes, cols] = size;
      std::mt19937 engine(unsigned(rows + cols));
      Buffer<int32_t> ids(rows, shift);
      for (int64_t r = 0; r < rows; ++r) {
        auto id = int32_t(engine() % uint64_t(classes));
        ids.data()[r] = r % 3 == 1 ? id : r % 7 == 2 ? int32_t(classes) - 1 : 0;
        if (absent && r % 5 == 3)
          ids.data()[r] = -1;
      }
      if (rows > 20) { // both sides of the classes
        ids.data()[4] = int32_t(classes);
        ids.data()[9] = -3;
      }
      auto isClass = [&](int64_t r) {
        return ids.data()[r] >= 0 && ids.data()[r] < classes;
      };
      Buffer<T> table(classes * cols, shift, 1), dy(rows * cols, shift, 2);
      Buffer<T> out(rows * cols, shift), wantedOut(rows * cols, shift);
      Buffer<T> grad(classes * cols, shift), wanted(classes * cols, shift);
      std::vector<float> sums(size_t(classes * cols));
      for (int64_t r = 0; r < rows; ++r) {
        int64_t id = ids.data()[r];
        for (int64_t i = 0; i < cols; ++i)
          wantedOut.data()[r * cols + i] =
              isClass(r) ? table.data()[id * cols + i]
                         : number(absent && id == -1 ? -0.0f : 0.0f, tag);
        if (isClass(r))
          addRowKernel(tag)(dy.data() + r * cols, sums.data() + id * cols,
                            cols);
      }
      for (size_t i = 0; i < sums.size(); ++i)
        wanted.data()[i] = number(sums[i], tag);
      errors = 0;
      embedding(noContext(), S, typeOf(tag), rows, classes, cols, absent, ids,
                table, out);
      EXPECT_EQ(out.bytes(), wantedOut.bytes()) << rows << ' ' << cols;
      EXPECT_EQ(errors, rows > 20 ? unsigned(kTokenOutOfRange) : 0u);
      errors = 0;
      Buffer<uint32_t> workspace(2 * rows, 0), untouched(2 * rows, 0);
      embeddingGrad(noContext(), S, typeOf(tag), rows, classes, cols, absent,
                    ids, dy, grad, workspace);
      EXPECT_EQ(grad.bytes(), wanted.bytes()) << rows << ' ' << cols;
      EXPECT_EQ(errors, rows > 20 ? unsigned(kTokenOutOfRange) : 0u);
      // Nothing after the workspace that the compiler reserves.
      EXPECT_EQ(cuda::embeddingGradWorkspaceBytes(rows), 8 * rows);
      auto end = workspace.bytes(), whole = untouched.bytes();
      EXPECT_TRUE(std::equal(end.end() - 64, end.end(), whole.end() - 64));
    }
  };
  for (bool absent : {false, true})
    forOperands([&](auto tag, int64_t shift) { check(tag, shift, absent); });
}

// The second of three ranks has rows 4 to 7 of ten. One id is none.
TEST(CudaKernels, RowsOfAShardAreThoseOfThePlace) {
  constexpr int64_t count = 300;
  place = {1, 3};
  for (bool byRank : {false, true}) {
    Buffer<int32_t> ids(count, 0), rows(count, 0);
    for (int64_t i = 0; i < count; ++i)
      ids.data()[i] = i == 17 ? (byRank ? -1 : 10) : int32_t(i * 7 % 10);
    errors = 0;
    rowsOfShard(noContext(), S, 0, count, 10, byRank, ids, rows);
    EXPECT_EQ(errors, unsigned(kTokenOutOfRange));
    for (int64_t i = 0; i < count; ++i) {
      int row = ids.data()[i] - 4, first = byRank ? int(i / 100) * 4 : 0;
      EXPECT_EQ(rows.data()[i], row >= 0 && row < 4 ? first + row : -1) << i;
    }
  }
}

/// Rows shorter than a vector, of several parts of a block, and of odd ends.
TEST(CudaKernels, CrossEntropyHasTheBitsOfTheCpu) {
  constexpr int64_t rows = 5, ignored = -100;
  forOperands([&](auto tag, int64_t shift) {
    using T = decltype(tag);
    for (int64_t classes : {1, 3, 16, 100, 2048, 5000, 4099}) {
      Buffer<T> logits(rows * classes, shift, unsigned(classes));
      Buffer<float> dlosses(rows, 0, 3);
      Buffer<float> losses(rows, 0), lse(rows, 0), wantedLosses(rows, 0),
          wantedLse(rows, 0);
      Buffer<T> grad(rows * classes, shift), wanted(rows * classes, shift);
      Buffer<int32_t> targets(rows, 0);
      for (int64_t r = 0; r < rows; ++r)
        targets.data()[r] = int32_t((r * 7 + 1) % classes);
      targets.data()[1] = int32_t(ignored);
      targets.data()[3] = int32_t(classes);
      for (int64_t r = 0; r < rows; ++r) {
        const T *x = logits.data() + r * classes;
        int32_t target = targets.data()[r];
        bool counts = target >= 0 && target < classes;
        float total = logSumExpKernel(tag)(x, classes);
        wantedLse.data()[r] = total;
        wantedLosses.data()[r] = counts ? total - math::widen(x[target]) : 0;
        T *to = wanted.data() + r * classes;
        if (counts)
          gradKernel(tag)(x, classes, total, target, dlosses.data()[r], to);
        else
          std::fill(to, to + classes, number(0, tag));
      }
      errors = 0;
      crossEntropy(noContext(), S, typeOf(tag), rows, classes, ignored, logits,
                   targets, losses, lse);
      EXPECT_EQ(lse.bytes(), wantedLse.bytes()) << classes;
      EXPECT_EQ(losses.bytes(), wantedLosses.bytes()) << classes;
      EXPECT_EQ(errors, unsigned(kTargetOutOfRange));
      errors = 0;
      crossEntropyGrad(noContext(), S, typeOf(tag), rows, classes, ignored,
                       logits, targets, lse, dlosses, grad);
      EXPECT_EQ(grad.bytes(), wanted.bytes()) << classes;
      EXPECT_EQ(errors, unsigned(kTargetOutOfRange));
    }
  });
}

/// A NaN among the logits is that of the row, wherever it stands.
TEST(CudaKernels, CrossEntropyKeepsANaN) {
  constexpr int64_t classes = 300;
  for (int64_t at : {0, 17, 255, 256, 299}) {
    Buffer<float> logits(classes, 0, 1), losses(1, 0), lse(1, 0);
    Buffer<int32_t> targets(1, 0);
    logits.data()[at] = __builtin_nanf("");
    targets.data()[0] = 5;
    crossEntropy(noContext(), S, DType::F32, 1, classes, -100, logits, targets,
                 losses, lse);
    EXPECT_TRUE(std::isnan(lse.data()[0])) << at;
  }
}

/// More tensors than one launch has room for, whole vectors and not, and lists
/// that begin within 16 bytes.
TEST(CudaKernels, NarrowHasTheBitsOfTheCpu) {
  for (auto [from, to] : {std::pair(0, 0), {1, 0}, {0, 1}}) {
    constexpr size_t kTensors = 50;
    std::vector<int64_t> counts;
    std::vector<Buffer<float>> in;
    std::vector<Buffer<BF16>> out, expected;
    for (size_t i = 0; i < kTensors; ++i) {
      counts.push_back(i == 3 ? 9000 : i == 4 ? 4097 : int64_t(i) + 1);
      in.emplace_back(counts[i], from, unsigned(i) + 1);
      out.emplace_back(counts[i], to);
      expected.emplace_back(counts[i], to);
      kernels().narrow(in[i].data(), counts[i], expected[i].data(), counts[i],
                       1, counts[i]);
    }
    auto run = [&](auto... i) {
      narrow(noContext(), S, counts.data(), {in[i]...}, {out[i]...});
    };
    std::apply(run, indices(std::make_index_sequence<kTensors>()));
    for (size_t i = 0; i < kTensors; ++i)
      EXPECT_EQ(out[i].bytes(), expected[i].bytes()) << "tensor " << i;
  }
}

/// Several tensors: of one block and of more, with odd ends, and one of whose
/// lists begins within 16 bytes.
TEST(CudaKernels, SumsHaveTheBitsOfTheCpu) {
  const std::vector<int64_t> counts = {7, 9000, 4097};
  const DType types[] = {DType::BF16, DType::F32, DType::BF16};
  const Kernels &k = kernels();
  for (auto [ofSum, ofValue] : {std::pair(0, 0), {1, 0}, {0, 1}}) {
    std::vector<Buffer<float>> cpu, gpu;
    for (size_t i = 0; i < counts.size(); ++i)
      for (auto *side : {&cpu, &gpu})
        side->emplace_back(counts[i], ofSum, 20 + unsigned(i));
    Buffer<BF16> first(counts[0], ofValue, 1), last(counts[2], ofValue, 3);
    Buffer<float> middle(counts[1], ofValue, 2);
    k.optimizerBF16.accumulate(counts[0], cpu[0].data(), first.data());
    k.optimizerF32.accumulate(counts[1], cpu[1].data(), middle.data());
    k.optimizerBF16.accumulate(counts[2], cpu[2].data(), last.data());
    accumulate(noContext(), S, counts.data(), types, {gpu[0], gpu[1], gpu[2]},
               {first, middle, last});
    for (size_t i = 0; i < counts.size(); ++i)
      EXPECT_EQ(gpu[i].bytes(), cpu[i].bytes())
          << "tensor " << i << ", shifts " << ofSum << ", " << ofValue;
  }
}

TEST(CudaKernels, OptimizerHasTheBitsOfTheCpu) {
  const std::vector<int64_t> counts = {7, 9000, 4097};
  for (int64_t shift : {0, 1}) {
    std::vector<std::vector<Buffer<float>>> lists(8);
    std::vector<Ptr> p[4];
    for (int l = 0; l < 8; ++l)
      for (size_t i = 0; i < counts.size(); ++i) {
        // The same numbers twice, for the CPU and for the GPU.
        lists[size_t(l)].emplace_back(counts[i], l % 4 == 2 ? shift : 0,
                                      unsigned(10 * (l % 4) + int(i) + 1));
        // Second moments are squares.
        for (int64_t k = 0; l % 4 == 2 && k < counts[i]; ++k) {
          float &v = lists[size_t(l)].back().data()[k];
          v *= v;
        }
        if (l < 4)
          p[l].push_back(lists[size_t(l)].back());
      }
    uint32_t largest = 0, gotLargest = 0;
    int64_t digits[2] = {}, gotDigits[2] = {};
    for (size_t i = 0; i < counts.size(); ++i)
      largest = std::max(largest, kernels().optimizerF32.absMaxBits(
                                      lists[6][i].data(), counts[i]));
    absMax(noContext(), S, counts.data(), nullptr, {p[2][0], p[2][1], p[2][2]},
           reinterpret_cast<Ptr>(&gotLargest));
    EXPECT_EQ(gotLargest, largest);
    double inverse = powerOfTwo(-scaleExponent(math::fromBits(largest)));
    for (size_t i = 0; i < counts.size(); ++i)
      kernels().optimizerF32.sumSquares(lists[6][i].data(), counts[i], inverse,
                                        digits);
    sumSquares(noContext(), S, counts.data(), nullptr,
               reinterpret_cast<Ptr>(&gotLargest), {p[2][0], p[2][1], p[2][2]},
               reinterpret_cast<Ptr>(gotDigits));
    EXPECT_EQ(gotDigits[0], digits[0]);
    EXPECT_EQ(gotDigits[1], digits[1]);

    AdamWDesc desc{0.9, 0.95, 1e-8, 0.1};
    float lr = 3e-4f, coefficient = 0.5f;
    int32_t step = 3;
    AdamWStep scalars = adamwScalars(desc, lr, step, coefficient);
    for (size_t i = 0; i < counts.size(); ++i)
      kernels().optimizerF32.adamw(scalars, counts[i], lists[4][i].data(),
                                   lists[5][i].data(), lists[6][i].data(),
                                   lists[7][i].data());
    adamw(noContext(), S, desc, counts.data(), nullptr,
          {p[0][0], p[0][1], p[0][2]}, {p[1][0], p[1][1], p[1][2]},
          {p[2][0], p[2][1], p[2][2]}, {p[3][0], p[3][1], p[3][2]},
          reinterpret_cast<Ptr>(&lr), reinterpret_cast<Ptr>(&step),
          reinterpret_cast<Ptr>(&coefficient));
    for (size_t l = 0; l < 4; ++l)
      for (size_t i = 0; i < counts.size(); ++i)
        EXPECT_EQ(lists[l][i].bytes(), lists[l + 4][i].bytes())
            << "list " << l << ", tensor " << i << ", shift " << shift;
  }
}

/// Powers of two and what is next to them, far below the largest, and numbers
/// that are not normal, as the largest too; then more blocks than run.
TEST(CudaKernels, SquaresOfExtremeValuesHaveTheBitsOfTheCpu) {
  std::vector<std::vector<float>> cases = {{0.0f, -0.0f}};
  for (int largest : {127, 0, -100, -126, -127, -140, -149}) {
    std::vector<float> x = {std::ldexp(1.0f, largest)};
    for (int below = 0; below < 60; ++below)
      for (float m : {1.0f, -1.5f, 0.99999994f, 0.75000006f})
        if (float v = std::ldexp(m, largest - below); std::abs(v) <= x[0])
          x.push_back(v);
    cases.push_back(x);
  }
  std::vector<float> many(size_t(5) << 20);
  for (size_t i = 0; i < many.size(); ++i)
    many[i] = std::ldexp(float(i % 1021) - 500.0f, -int(i % 37));
  cases.push_back(many);
  for (const std::vector<float> &x : cases) {
    auto count = int64_t(x.size());
    Buffer<float> data(count, 0);
    std::copy(x.begin(), x.end(), data.data());
    uint32_t bits = kernels().optimizerF32.absMaxBits(x.data(), count), got = 0;
    absMax(noContext(), S, &count, nullptr, {data},
           reinterpret_cast<Ptr>(&got));
    ASSERT_EQ(got, bits);
    float largest = math::fromBits(bits);
    int64_t digits[2] = {}, gotDigits[2] = {};
    if (largest != 0)
      kernels().optimizerF32.sumSquares(
          x.data(), count, std::ldexp(1.0, -scaleExponent(largest)), digits);
    sumSquares(noContext(), S, &count, nullptr, reinterpret_cast<Ptr>(&largest),
               {data}, reinterpret_cast<Ptr>(gotDigits));
    EXPECT_EQ(gotDigits[0], digits[0]) << "largest " << largest;
    EXPECT_EQ(gotDigits[1], digits[1]) << "largest " << largest;
  }
}

TEST(CudaKernels, NarrowGradientsHaveTheBitsOfTheCpu) {
  const std::vector<int64_t> counts = {7, 9000, 4097};
  const DType types[] = {DType::BF16, DType::F32, DType::BF16};
  for (int64_t shift : {0, 1}) {
    Buffer<BF16> first(counts[0], shift, 1), last(counts[2], 0, 3);
    Buffer<float> middle(counts[1], 0, 2);
    const Kernels &k = kernels();
    uint32_t largest =
        std::max({k.optimizerBF16.absMaxBits(first.data(), counts[0]),
                  k.optimizerF32.absMaxBits(middle.data(), counts[1]),
                  k.optimizerBF16.absMaxBits(last.data(), counts[2])});
    uint32_t gotLargest = 0;
    absMax(noContext(), S, counts.data(), types, {first, middle, last},
           reinterpret_cast<Ptr>(&gotLargest));
    EXPECT_EQ(gotLargest, largest);
    double inverse = powerOfTwo(-scaleExponent(math::fromBits(largest)));
    int64_t digits[2] = {}, gotDigits[2] = {};
    k.optimizerBF16.sumSquares(first.data(), counts[0], inverse, digits);
    k.optimizerF32.sumSquares(middle.data(), counts[1], inverse, digits);
    k.optimizerBF16.sumSquares(last.data(), counts[2], inverse, digits);
    sumSquares(noContext(), S, counts.data(), types,
               reinterpret_cast<Ptr>(&gotLargest), {first, middle, last},
               reinterpret_cast<Ptr>(gotDigits));
    EXPECT_EQ(gotDigits[0], digits[0]);
    EXPECT_EQ(gotDigits[1], digits[1]);

    AdamWDesc desc{0.9, 0.95, 1e-8, 0.1};
    float lr = 3e-4f, coefficient = 0.5f;
    int32_t step = 3;
    AdamWStep scalars = adamwScalars(desc, lr, step, coefficient);
    // Parameters and moments, for the CPU and for the GPU.
    std::vector<Buffer<float>> cpu, gpu;
    for (unsigned list = 0; list < 3; ++list)
      for (int64_t count : counts)
        for (auto *side : {&cpu, &gpu}) {
          side->emplace_back(count, 0, 20 + list);
          for (int64_t i = 0; list == 2 && i < count; ++i)
            side->back().data()[i] *= side->back().data()[i];
        }
    auto at = [&](size_t list, size_t i) { return cpu[3 * list + i].data(); };
    k.optimizerBF16.adamw(scalars, counts[0], at(0, 0), at(1, 0), at(2, 0),
                          first.data());
    k.optimizerF32.adamw(scalars, counts[1], at(0, 1), at(1, 1), at(2, 1),
                         middle.data());
    k.optimizerBF16.adamw(scalars, counts[2], at(0, 2), at(1, 2), at(2, 2),
                          last.data());
    adamw(noContext(), S, desc, counts.data(), types, {gpu[0], gpu[1], gpu[2]},
          {gpu[3], gpu[4], gpu[5]}, {gpu[6], gpu[7], gpu[8]},
          {first, middle, last}, reinterpret_cast<Ptr>(&lr),
          reinterpret_cast<Ptr>(&step), reinterpret_cast<Ptr>(&coefficient));
    for (size_t i = 0; i < cpu.size(); ++i)
      EXPECT_EQ(cpu[i].bytes(), gpu[i].bytes())
          << "buffer " << i << ", shift " << shift;
  }
}

TEST(CudaKernels, CopiesOfParametersHaveTheBitsOfTheCpu) {
  for (int64_t shift : {0, 1}) {
    const std::vector<int64_t> counts = {7, shift == 0 ? 4200000 : 9000};
    AdamWDesc desc{0.9, 0.95, 1e-8, 0.1};
    float lr = 3e-4f, coefficient = 0.5f;
    int32_t step = 3;
    AdamWStep scalars = adamwScalars(desc, lr, step, coefficient);
    // Parameters, moments and gradients, for both sides; more blocks than run.
    std::vector<Buffer<float>> cpu, gpu;
    std::vector<Buffer<BF16>> copies, expected;
    for (unsigned list = 0; list < 4; ++list)
      for (int64_t count : counts)
        for (auto *side : {&cpu, &gpu}) {
          side->emplace_back(count, 0, 20 + list);
          for (int64_t i = 0; list == 2 && i < count; ++i)
            side->back().data()[i] *= side->back().data()[i];
        }
    for (size_t i = 0; i < 2; ++i) {
      copies.emplace_back(counts[i], shift);
      expected.emplace_back(counts[i], shift);
      kernels().optimizerF32.adamwCopy(scalars, counts[i], cpu[i].data(),
                                       cpu[2 + i].data(), cpu[4 + i].data(),
                                       expected[i].data(), cpu[6 + i].data());
    }
    adamwCopy(noContext(), S, desc, counts.data(), nullptr, {gpu[0], gpu[1]},
              {gpu[2], gpu[3]}, {gpu[4], gpu[5]}, {copies[0], copies[1]},
              {gpu[6], gpu[7]}, reinterpret_cast<Ptr>(&lr),
              reinterpret_cast<Ptr>(&step),
              reinterpret_cast<Ptr>(&coefficient));
    for (size_t i = 0; i < 2; ++i)
      EXPECT_EQ(copies[i].bytes(), expected[i].bytes()) << "shift " << shift;
    for (size_t i = 0; i < cpu.size(); ++i)
      EXPECT_EQ(cpu[i].bytes(), gpu[i].bytes()) << "buffer " << i;
  }
}

/// Boxes of whole vectors and of single elements, from and to places that are
/// and are not multiples of 16 bytes; transposes that keep neighbours and that
/// do not.
TEST(CudaKernels, CopiesMoveEveryElement) {
  struct Case {
    int64_t shape[3], in[3], inAt[3], out[3], outAt[3];
  };
  forOperands([&](auto tag, int64_t shift) {
    using T = decltype(tag);
    for (const Case &box :
         {Case{{3, 4, 16}, {5, 6, 32}, {1, 2, 8}, {3, 4, 16}, {0, 0, 0}},
          Case{{3, 4, 16}, {5, 6, 32}, {1, 2, 3}, {3, 8, 24}, {0, 1, 8}},
          Case{{2, 3, 5}, {2, 3, 7}, {0, 0, 1}, {4, 5, 6}, {1, 1, 1}}}) {
      auto size = [](const int64_t (&shape)[3]) {
        return shape[0] * shape[1] * shape[2];
      };
      auto place = [](const int64_t (&shape)[3], int64_t a, int64_t b,
                      int64_t c) { return (a * shape[1] + b) * shape[2] + c; };
      Buffer<T> in(size(box.in), shift, 1), out(size(box.out), shift, 2);
      Buffer<T> wanted(size(box.out), shift, 2);
      Buffer<T> turned(size(box.in), shift), wantedTurned(size(box.in), shift);
      Buffer<T> swapped(size(box.in), shift),
          wantedSwapped(size(box.in), shift);
      for (int64_t a = 0; a < box.shape[0]; ++a)
        for (int64_t b = 0; b < box.shape[1]; ++b)
          for (int64_t c = 0; c < box.shape[2]; ++c)
            wanted.data()[place(box.out, a + box.outAt[0], b + box.outAt[1],
                                c + box.outAt[2])] =
                in.data()[place(box.in, a + box.inAt[0], b + box.inAt[1],
                                c + box.inAt[2])];
      const int64_t other[3] = {box.in[1], box.in[0], box.in[2]};
      const int64_t last[3] = {box.in[2], box.in[0], box.in[1]};
      for (int64_t a = 0; a < box.in[0]; ++a)
        for (int64_t b = 0; b < box.in[1]; ++b)
          for (int64_t c = 0; c < box.in[2]; ++c) {
            T x = in.data()[place(box.in, a, b, c)];
            wantedSwapped.data()[place(other, b, a, c)] = x;
            wantedTurned.data()[place(last, c, a, b)] = x;
          }
      copyBox(noContext(), S, typeOf(tag), 3, box.shape, box.in, box.inAt,
              box.out, box.outAt, in, out);
      EXPECT_EQ(out.bytes(), wanted.bytes()) << shift;
      const int64_t swap[3] = {1, 0, 2}, turn[3] = {2, 0, 1};
      transpose(noContext(), S, typeOf(tag), 3, box.in, swap, in, swapped);
      EXPECT_EQ(swapped.bytes(), wantedSwapped.bytes()) << shift;
      transpose(noContext(), S, typeOf(tag), 3, box.in, turn, in, turned);
      EXPECT_EQ(turned.bytes(), wantedTurned.bytes()) << shift;
    }
  });
}
