//===- Peak.cpp - How fast this machine multiplies ------------------------===//
//
// A small artifact made by hand: one program with one matrix product, run by
// the same runtime as the training step.
//
//===----------------------------------------------------------------------===//
#include "Peak.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <chrono>

using namespace fsdp;
using namespace fsdp::rt;

static constexpr int64_t kSide = 1024;

/// Matrices in f32 fill this many bytes; in narrower types less.
static constexpr uint64_t kMatrixBytes = kSide * kSide * 4;

static void multiply(Context &c) {
  gemm(c, Stream::Compute, 0, at(c, 0), at(c, kMatrixBytes), nullptr,
       at(c, 2 * kMatrixBytes), at(c, 3 * kMatrixBytes));
}

double fsdp::measurePeak(World world, int threads, DType type) {
  GemmDesc product{};
  product.batch = 1;
  product.m = product.n = product.k = kSide;
  product.transposeRhs = true; // as in a linear layer
  product.in = product.out = type;
  fsdp_program program{"multiply", multiply};
  fsdp_artifact artifact{};
  artifact.abi = FSDP_ARTIFACT_ABI;
  artifact.manifest = "{}";
  int64_t workspace = gemmWorkspaceBytes(product, threads);
  artifact.arena_bytes =
      3 * kMatrixBytes + static_cast<uint64_t>((workspace + 63) / 64 * 64);
  artifact.gemms = 1;
  artifact.gemm = &product;
  artifact.programs = 1;
  artifact.program = &program;

  ContextOptions options;
  options.threads = threads;
  options.meshAxes = {world.size};
  std::string error;
  ContextPtr context = createContext(artifact, options, error);
  using Clock = std::chrono::steady_clock;
  Clock::time_point end = Clock::now() + std::chrono::milliseconds(100);
  double best = 0;
  for (int run = 0; context && (run < 3 || Clock::now() < end); ++run) {
    Clock::time_point start = Clock::now();
    if (!runProgram(*context, 0, error))
      throw Error("cannot measure a matrix product: " + error);
    std::chrono::duration<double> seconds = Clock::now() - start;
    best = std::max(best, 2.0 * kSide * kSide * kSide / seconds.count());
  }
  if (!context)
    throw Error("cannot measure a matrix product: " + error);
  return best;
}
