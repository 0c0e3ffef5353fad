//===- CompareKernels.cpp - Emitted kernels of both targets, bit by bit ---===//
//
//   compare-kernels cpu/step.so cuda-on-host/step.so
//
// Runs the programs of both artifacts with a runtime that does nothing but
// note the kernels that are launched. Then every kernel runs on both sides on
// the same random buffers, and all bytes must be equal. The second artifact is
// generated CUDA compiled with CudaShim.h.
//
//===----------------------------------------------------------------------===//
#include "ShimKernel.h"
#include "fsdp/Runtime/Artifact.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <string>
#include <vector>

using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// What is launched
//===----------------------------------------------------------------------===//

namespace {

struct Kernel {
  int64_t rows = 0, cols = 0;
  size_t buffers = 0;
  std::function<void(const Ptr *)> cpu, cuda;
};

std::map<std::string, Kernel> seen;

void note(const char *name, RowKernel kernel, int64_t rows, int64_t cols,
          int64_t end, size_t buffers) {
  Kernel &k = seen[name];
  k.rows = rows;
  k.cols = cols;
  k.buffers = buffers;
  k.cpu = [=](const Ptr *args) { kernel(0, end, args); };
}

} // namespace

extern "C" void fsdp_shim_observe(const char *name, size_t,
                                  const ShimKernel *run) {
  seen[name].cuda = *run;
}

//===----------------------------------------------------------------------===//
// The runtime: buffers are never touched, so any address will do
//===----------------------------------------------------------------------===//

class fsdp::rt::Context {};

namespace fsdp::rt {

Ptr at(Context &, uint64_t offset) {
  return reinterpret_cast<Ptr>(uintptr_t(4096) + offset);
}
void launch(Context &, Stream, const char *name, RowKernel kernel, int64_t rows,
            int64_t cols, Ptrs args) {
  note(name, kernel, rows, cols, rows, args.size());
}
void launchColumns(Context &, Stream, const char *name, RowKernel kernel,
                   int64_t rows, int64_t cols, Ptrs args) {
  note(name, kernel, rows, cols, cols, args.size());
}
void record(Context &, int, Stream) {}
void wait(Context &, int, Stream) {}
void gemm(Context &, Stream, int, Ptr, Ptr, Ptr, Ptr, Ptr) {}
void collective(Context &, Stream, int, Ptrs, Ptrs, Ptrs) {}
void copy(Context &, Stream, Ptr, Ptr, int64_t) {}
void attention(Context &, Stream, int, Ptr, Ptr, Ptr, Ptr, Ptr, Ptr, Ptr) {}
void attentionGrad(Context &, Stream, int, Ptr, Ptr, Ptr, Ptr, Ptr, Ptr, Ptr,
                   Ptr, Ptr, Ptr, Ptr) {}
void rotary(Context &, Stream, DType, int64_t, int64_t, int64_t, int64_t, bool,
            bool, Ptr, Ptr, Ptr) {}
void splitHeads(Context &, Stream, DType, int64_t, int64_t, int64_t, int64_t,
                int64_t, bool, Ptr, Ptr, Ptr, Ptr, Ptr) {}
void joinHeads(Context &, Stream, DType, int64_t, int64_t, int64_t, int64_t,
               int64_t, bool, Ptr, Ptr, Ptr, Ptr, Ptr) {}
void embedding(Context &, Stream, DType, int64_t, int64_t, int64_t, bool, Ptr,
               Ptr, Ptr) {}
void embeddingGrad(Context &, Stream, DType, int64_t, int64_t, int64_t, bool,
                   Ptr, Ptr, Ptr, Ptr) {}
void rowsOfShard(Context &, Stream, int, int64_t, int64_t, bool, Ptr, Ptr) {}
void crossEntropy(Context &, Stream, DType, int64_t, int64_t, int64_t, Ptr, Ptr,
                  Ptr, Ptr) {}
void crossEntropyGrad(Context &, Stream, DType, int64_t, int64_t, int64_t, Ptr,
                      Ptr, Ptr, Ptr, Ptr) {}
void countLabels(Context &, Stream, int64_t, int64_t, int64_t, Ptr, Ptr) {}
void transpose(Context &, Stream, DType, int, const int64_t *, const int64_t *,
               Ptr, Ptr) {}
void copyBox(Context &, Stream, DType, int, const int64_t *, const int64_t *,
             const int64_t *, const int64_t *, const int64_t *, Ptr, Ptr) {}
void fillZero(Context &, Stream, Ptr, int64_t) {}
void shardOf(Context &, Stream, int, int64_t, int64_t, Ptr, Ptr) {}
void narrow(Context &, Stream, const int64_t *, Ptrs, Ptrs) {}
void accumulate(Context &, Stream, const int64_t *, const DType *, Ptrs, Ptrs) {
}
void absMax(Context &, Stream, const int64_t *, const DType *, Ptrs, Ptr) {}
void sumSquares(Context &, Stream, const int64_t *, const DType *, Ptr, Ptrs,
                Ptr) {}
void clipCoefficient(Context &, Stream, double, int64_t, Ptr, Ptr, Ptr, Ptr) {}
void adamw(Context &, Stream, const AdamWDesc &, const int64_t *, const DType *,
           Ptrs, Ptrs, Ptrs, Ptrs, Ptr, Ptr, Ptr) {}
void adamwCopy(Context &, Stream, const AdamWDesc &, const int64_t *,
               const DType *, Ptrs, Ptrs, Ptrs, Ptrs, Ptrs, Ptr, Ptr, Ptr) {}

} // namespace fsdp::rt

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

static void observe(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  using GetArtifact = const fsdp_artifact *(*)();
  auto get =
      library
          ? reinterpret_cast<GetArtifact>(dlsym(library, "fsdp_get_artifact"))
          : nullptr;
  if (!get) {
    std::fprintf(stderr, "%s: %s\n", path, dlerror());
    std::exit(2);
  }
  Context context;
  for (int32_t i = 0; i < get()->programs; ++i)
    get()->program[i].run(context);
}

/// Numbers of either sign between 2^-7 and 2 in magnitude, read as bf16 or,
/// two at a time, as f32.
static void fill(std::vector<uint16_t> &buffer, uint64_t &state) {
  for (uint16_t &half : buffer) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint64_t bits = state >> 33;
    half = uint16_t((bits & 1) << 15 | (120 + (bits >> 1 & 7)) << 7 |
                    (bits >> 4 & 127));
  }
}

/// True if both sides leave the same bytes in all buffers.
static bool agree(const Kernel &k) {
  // Large enough for any access of either type.
  size_t halves = size_t(k.rows) * size_t(k.cols) * 2 + 64;
  std::vector<std::vector<uint16_t>> a(k.buffers,
                                       std::vector<uint16_t>(halves));
  uint64_t state = 1;
  for (auto &buffer : a)
    fill(buffer, state);
  auto b = a;
  auto run = [](const std::function<void(const Ptr *)> &kernel, auto &buffers) {
    std::vector<Ptr> args;
    for (auto &buffer : buffers)
      args.push_back(reinterpret_cast<Ptr>(buffer.data()));
    kernel(args.data());
  };
  auto untouched = a;
  run(k.cpu, a);
  run(k.cuda, b);
  return a == b && a != untouched;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: compare-kernels CPU.so CUDA-ON-HOST.so\n");
    return 2;
  }
  observe(argv[1]);
  observe(argv[2]);
  int differing = 0;
  for (auto &[name, kernel] : seen) {
    bool same = kernel.cpu && kernel.cuda && agree(kernel);
    differing += !same;
    std::printf("%s (%lld x %lld): %s\n", name.c_str(),
                static_cast<long long>(kernel.rows),
                static_cast<long long>(kernel.cols),
                same                        ? "equal"
                : kernel.cpu && kernel.cuda ? "DIFFERENT"
                                            : "on one target only");
  }
  std::printf("%zu kernels, %d different\n", seen.size(), differing);
  return differing != 0 || seen.empty();
}
