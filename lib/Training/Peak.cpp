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

/// Matrices in f32 fill so many bytes; in narrower types less.
static constexpr uint64_t matrixBytes(int64_t side) {
  return static_cast<uint64_t>(side * side) * 4;
}

/// One program for each size: it has no argument but the context.
template <int64_t side> static void multiply(Context &c) {
  constexpr uint64_t bytes = matrixBytes(side);
  gemm(c, Stream::Compute, 0, at(c, 0), at(c, bytes), nullptr, at(c, 2 * bytes),
       at(c, 3 * bytes));
}

/// The best rate of products of one size.
template <int64_t side>
static double measureProducts(World world, int threads, DType type) {
  GemmDesc product{};
  product.batch = 1;
  product.m = product.n = product.k = side;
  product.transposeRhs = true; // as in a linear layer
  product.in = product.out = type;
  fsdp_program program{"multiply", multiply<side>};
  fsdp_artifact artifact{};
  artifact.abi = FSDP_ARTIFACT_ABI;
  artifact.manifest = "{}";
  int64_t workspace = gemmWorkspaceBytes(product, threads);
  artifact.arena_bytes =
      3 * matrixBytes(side) + static_cast<uint64_t>((workspace + 63) / 64 * 64);
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
    best = std::max(best, 2.0 * side * side * side / seconds.count());
  }
  if (!context)
    throw Error("cannot measure a matrix product: " + error);
  return best;
}

/// Goes on to larger matrices where these take too little time to show what
/// the machine can. All ranks do as the slowest.
template <int64_t side>
static Peak measureFrom(World world, int threads, DType type) {
  double best = measureProducts<side>(world, threads, type);
  if constexpr (side < 4096) {
    constexpr double work = 2.0 * side * side * side, enough = 1e-3;
    double slow = work / best > enough ? 1 : 0;
    if (runtimeTarget() == Target::Cuda) {
      allReduceSum(&slow, 1);
      if (slow == 0)
        return measureFrom<2 * side>(world, threads, type);
    }
  }
  return {best, side};
}

Peak fsdp::measurePeak(World world, int threads, DType type) {
  return measureFrom<1024>(world, threads, type);
}
