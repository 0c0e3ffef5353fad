//===- Gemm.cpp - Matmuls of the artifact ---------------------------------===//
#include "Gemm.h"
#include "Parallel.h"
#include "fsdp/Core/Context.h"
#include "runtime/kernels/Kernels.h"
#include <stdexcept>

using namespace fsdp::rt;

static bool isWidened(const GemmDesc &d) {
  return d.in == DType::BF16 && !hasNativeBF16();
}

static MatmulShape shapeOf(const GemmDesc &d) {
  MatmulShape s;
  s.batch = d.batch;
  s.m = d.m;
  s.n = d.n;
  s.k = d.k;
  s.a[0] = d.transposeLhs ? 1 : d.k;
  s.a[1] = d.transposeLhs ? d.m : 1;
  s.b[0] = d.transposeRhs ? 1 : d.n;
  s.b[1] = d.transposeRhs ? d.k : 1;
  s.c[0] = d.n;
  s.c[1] = 1;
  s.aBatch = d.m * d.k;
  s.bBatch = d.k * d.n;
  s.cBatch = d.m * d.n;
  s.in = isWidened(d) ? DType::F32 : d.in;
  s.out = isWidened(d) ? DType::F32 : d.out;
  s.bias = d.bias;
  s.accumulate = d.accumulate;
  return s;
}

/// Bytes of `elements` floats, rounded up to a cache line.
static int64_t floats(int64_t elements) {
  return (elements * 4 + 63) / 64 * 64;
}

/// Bytes before the scratchpad: the operands, bias and result in f32.
static int64_t widenedBytes(const GemmDesc &d) {
  if (!isWidened(d))
    return 0;
  return floats(d.batch * d.m * d.k) + floats(d.batch * d.k * d.n) +
         (d.bias ? floats(d.n) : 0) +
         (d.out == DType::BF16 ? floats(d.batch * d.m * d.n) : 0);
}

Gemm::Gemm(const GemmDesc &d, int threadCount)
    : desc(d), threads(threadCount), widened(isWidened(d)),
      matmul(shapeOf(d), threadCount) {
  int64_t needed = widenedBytes(d) + matmul.scratchpadBytes();
  if (d.workspace != 0 && needed > d.workspace)
    throw std::runtime_error(
        "the matmul of " + std::to_string(d.batch) + " x " +
        std::to_string(d.m) + " x " + std::to_string(d.n) + " x " +
        std::to_string(d.k) + " needs a workspace of " +
        std::to_string(needed) + " bytes here, but the artifact has " +
        std::to_string(d.workspace) +
        ": it was compiled for another instruction set or thread count");
}

int64_t Gemm::workspaceBytes(const GemmDesc &d, int threads) {
  return widenedBytes(d) + Matmul::scratchpadBytes(shapeOf(d), threads);
}

/// Widens `count` bf16 values into `space`, which moves after them.
static std::byte *widenInto(std::byte *&space, const std::byte *from,
                            int64_t count, int threads) {
  std::byte *result = space;
  auto *to = reinterpret_cast<float *>(space);
  auto *in = reinterpret_cast<const BF16 *>(from);
  parallelFor(threads, count, 1, 64, [=](int64_t begin, int64_t end, int) {
    kernels().widen(in + begin, 0, to + begin, 0, 1, end - begin);
  });
  space += floats(count);
  return result;
}

void Gemm::run(std::byte *lhs, std::byte *rhs, std::byte *bias, std::byte *out,
               std::byte *workspace) const {
  if (!widened) {
    matmul.run(lhs, rhs, bias, out, workspace);
    return;
  }
  const GemmDesc &d = desc;
  lhs = widenInto(workspace, lhs, d.batch * d.m * d.k, threads);
  rhs = widenInto(workspace, rhs, d.batch * d.k * d.n, threads);
  if (d.bias)
    bias = widenInto(workspace, bias, d.n, threads);
  if (d.out != DType::BF16) {
    matmul.run(lhs, rhs, bias, out, workspace);
    return;
  }
  int64_t count = d.batch * d.m * d.n;
  auto *wide = reinterpret_cast<float *>(workspace);
  workspace += floats(count);
  matmul.run(lhs, rhs, bias, wide, workspace);
  auto *to = reinterpret_cast<BF16 *>(out);
  parallelFor(threads, count, 1, 64, [=](int64_t begin, int64_t end, int) {
    kernels().narrow(wide + begin, 0, to + begin, 0, 1, end - begin);
  });
}
