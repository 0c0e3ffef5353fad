//===- ProbeKernels.cpp - Kernels like those of programs ------------------===//
//
// As emitted code, they call functions of KernelMath.h in a loop that the
// compiler vectorises, for the instructions of this machine.
//
//===----------------------------------------------------------------------===//
#include "ProbeKernels.h"
#include "fsdp/Runtime/KernelMath.h"
#include <vector>

using namespace fsdp;
using namespace fsdp::rt;

/// Elements of a row.
static constexpr int64_t kColumns = 512;

#define FSDP_EVERY_CPU                                                         \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))

FSDP_EVERY_CPU static void addRows(int64_t begin, int64_t end,
                                   const Ptr *args) {
  const auto *x = reinterpret_cast<const float *>(args[0]);
  const auto *y = reinterpret_cast<const float *>(args[1]);
  auto *z = reinterpret_cast<float *>(args[2]);
#pragma GCC ivdep
  for (int64_t i = begin * kColumns; i < end * kColumns; ++i)
    z[i] = x[i] + y[i];
}

FSDP_EVERY_CPU static void siluRows(int64_t begin, int64_t end,
                                    const Ptr *args) {
  const auto *x = reinterpret_cast<const float *>(args[0]);
  const auto *y = reinterpret_cast<const float *>(args[1]);
  auto *z = reinterpret_cast<float *>(args[2]);
#pragma GCC ivdep
  for (int64_t i = begin * kColumns; i < end * kColumns; ++i)
    z[i] = x[i] * math::sigmoid(x[i]) * y[i];
}

/// As the forward pass has it: the backward pass reads the gate.
FSDP_EVERY_CPU static void siluRowsBF16(int64_t begin, int64_t end,
                                        const Ptr *args) {
  const auto *x = reinterpret_cast<const BF16 *>(args[0]);
  const auto *y = reinterpret_cast<const BF16 *>(args[1]);
  auto *gate = reinterpret_cast<BF16 *>(args[2]);
  auto *z = reinterpret_cast<BF16 *>(args[3]);
#pragma GCC ivdep
  for (int64_t i = begin * kColumns; i < end * kColumns; ++i) {
    float t = math::widen(x[i]) * math::sigmoid(math::widen(x[i]));
    gate[i] = math::toBF16(t);
    z[i] = math::toBF16(math::roundBF16(t) * math::widen(y[i]));
  }
}

template <RowKernel kernel, int64_t kElementBytes = 4>
static void runRows(Context &c, int64_t count, Ptr in, Ptr out) {
  launch(c, Stream::Compute, "probe", kernel, count / kColumns, kColumns,
         {in, in + count * kElementBytes, out, out + count * kElementBytes});
}

static void runCopy(Context &c, int64_t count, Ptr in, Ptr out) {
  copy(c, Stream::Compute, in, out, count);
}

static void runNarrow(Context &c, int64_t count, Ptr in, Ptr out) {
  narrow(c, Stream::Compute, &count, {in}, {out});
}

static void runAdamW(Context &c, int64_t count, Ptr in, Ptr out) {
  static float lr = 1e-3f, coefficient = 1;
  static int32_t step = 3;
  auto scalar = [](auto &value) { return reinterpret_cast<Ptr>(&value); };
  int64_t bytes = count * 4;
  adamw(c, Stream::Compute, {0.9, 0.95, 1e-8, 0.1}, &count, nullptr, {out},
        {out + bytes}, {out + 2 * bytes}, {in}, scalar(lr), scalar(step),
        scalar(coefficient));
}

static void runAbsMax(Context &c, int64_t count, Ptr in, Ptr out) {
  absMax(c, Stream::Compute, &count, nullptr, {in}, out);
}

static void runSumSquares(Context &c, int64_t count, Ptr in, Ptr out) {
  sumSquares(c, Stream::Compute, &count, nullptr, in, {in}, out);
}

// Of a model: the rows of a table, a vocabulary, the elements of a head.
static constexpr int64_t kClasses = 4096, kWidth = 1024, kHead = 64;

/// As many rows as there are elements for; ids of zero.
static Ptr zeroIds(int64_t rows) {
  static std::vector<int32_t> ids;
  if (ids.size() < size_t(rows))
    ids.resize(size_t(rows), 0);
  return reinterpret_cast<Ptr>(ids.data());
}

static void runCrossEntropy(Context &c, int64_t count, Ptr in, Ptr out) {
  int64_t rows = count / kClasses;
  crossEntropy(c, Stream::Compute, DType::F32, rows, kClasses, -100, in,
               zeroIds(rows), out, out + rows * 4);
}

static void runCrossEntropyGrad(Context &c, int64_t count, Ptr in, Ptr out) {
  int64_t rows = count / kClasses;
  crossEntropyGrad(c, Stream::Compute, DType::F32, rows, kClasses, -100, in,
                   zeroIds(rows), in, in, out);
}

static void runEmbeddingGrad(Context &c, int64_t count, Ptr in, Ptr out) {
  // Half of what moves is the table.
  int64_t rows = count / kWidth;
  embeddingGrad(c, Stream::Compute, DType::F32, rows, rows, kWidth,
                /*absent=*/false, zeroIds(rows), in, out, nullptr);
}

static void runRotary(Context &c, int64_t count, Ptr in, Ptr out) {
  int64_t positions = count / kWidth;
  rotary(c, Stream::Compute, DType::F32, 1, positions, kWidth / kHead, kHead,
         false, false, in, in + count * 4, out);
}

const ProbeKernel *fsdp::rt::probeKernels() {
  static const ProbeKernel all[kProbeKernels] = {
      {kPointwiseKernel, 12, runRows<addRows>},
      {kExpensiveKernel, 12, runRows<siluRows>},
      {kExpensiveBF16Kernel, 8, runRows<siluRowsBF16, 2>},
      {kCopyKernel, 2, runCopy},
      {kNarrowKernel, 6, runNarrow},
      {kUpdateKernel, 28, runAdamW},
      {"abs_max", 4, runAbsMax},
      {"sum_squares", 4, runSumSquares},
      {"cross_entropy", 4, runCrossEntropy},
      {"cross_entropy_grad", 8, runCrossEntropyGrad},
      {"embedding_grad", 8, runEmbeddingGrad},
      {"rotary", 8, runRotary}};
  return all;
}
