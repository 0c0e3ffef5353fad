//===- runtime_bench.cpp - Speed of the runtime's operations on one thread ===//
//
// Prints GFLOP/s of attention (counting the scores that are visible) and GB/s
// of memory-bound kernels, the best of several runs, and the time of attention
// with a window, documents or a cap as a share of causal attention's.
//
//===----------------------------------------------------------------------===//
#include "../unit/kernels/TestContext.h"
#include "fsdp/Target/CpuWorkspaces.h"
#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace fsdp::rt;
using namespace fsdp::rt::test;

/// Least seconds of `body` over several runs: the machine may be shared.
template <typename Body> static double seconds(const Body &body) {
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) {
    auto begin = std::chrono::steady_clock::now();
    body();
    std::chrono::duration<double> d = std::chrono::steady_clock::now() - begin;
    times.push_back(d.count());
  }
  return *std::min_element(times.begin(), times.end());
}

namespace {
/// Seconds of both passes.
struct Passes {
  double forward = 0, backward = 0;
};
} // namespace

/// Scores that are visible in one head.
static double visibleScores(const AttentionDesc &d) {
  auto queries = double(d.qLen), keys = double(d.kvLen);
  if (!d.causal)
    return queries * keys;
  if (d.starts)
    return queries * keys / 16;
  double window = d.window == 0 ? keys : double(d.window);
  return queries * window - window * window / 2;
}

static Passes benchAttention(const AttentionDesc &d) {
  int64_t nq = d.batch * d.qLen * d.heads * d.headDim;
  int64_t nk = d.batch * d.kvLen * d.kvHeads * d.headDim;
  int64_t size = sizeOf(d.type);
  TestContext t;
  t.attentions = {d};
  t.bytes = uint64_t(1) << 28;
  std::vector<Ptr> p;
  for (int64_t count : {nq, nk, nk, nq, nq, nq, nk, nk})
    p.push_back(t.take<std::byte>(count * size));
  float *lse = t.take<float>(nq / d.headDim);
  // Documents of an eighth of the row.
  std::vector<int32_t> documents;
  for (int64_t i = 0; d.starts && i < d.batch * d.qLen; ++i)
    documents.push_back(int32_t(i % d.qLen / (d.qLen / 8) * (d.qLen / 8)));
  Ptr starts = d.starts ? ptr(t.take(documents)) : nullptr;
  Ptr space =
      t.take<std::byte>(std::max(cpu::attentionWorkspaceBytes(d, 1),
                                 cpu::attentionGradWorkspaceBytes(d, 1)));
  for (int i : {0, 1, 2, 4}) {
    int64_t count = i == 0 || i == 4 ? nq : nk;
    std::vector<float> values = normal(count, unsigned(i));
    for (int64_t j = 0; j < count; ++j)
      if (d.type == DType::F32)
        reinterpret_cast<float *>(p[i])[j] = values[j];
      else
        reinterpret_cast<BF16 *>(p[i])[j] = math::toBF16(values[j]);
  }
  double flops = 4.0 * double(d.batch * d.heads * d.headDim) * visibleScores(d);
  Passes passes;
  auto &[forward, backward] = passes;
  t.run([&](Context &c) {
    forward = seconds([&] {
      attention(c, Stream::Compute, 0, p[0], p[1], p[2], starts, p[3], ptr(lse),
                space);
    });
    backward = seconds([&] {
      attentionGrad(c, Stream::Compute, 0, p[0], p[1], p[2], p[3], ptr(lse),
                    p[4], starts, p[5], p[6], p[7], space);
    });
  });
  std::printf("attention %s B%ld S%ld H%ld/%ld D%ld W%ld cap %g: forward "
              "%6.1f GFLOP/s (%.2f ms), backward %6.1f GFLOP/s (%.2f ms)\n",
              d.type == DType::F32 ? "f32 " : "bf16", d.batch, d.qLen, d.heads,
              d.kvHeads, d.headDim, d.window, d.cap, flops / forward * 1e-9,
              forward * 1e3, 2.5 * flops / backward * 1e-9, backward * 1e3);
  return passes;
}

static void benchViews(const AttentionDesc &causal) {
  Passes all = benchAttention(causal);
  auto compare = [&](const char *name, const AttentionDesc &d) {
    Passes own = benchAttention(d);
    std::printf("  %s / causal: forward %.3f, backward %.3f, both %.3f\n", name,
                own.forward / all.forward, own.backward / all.backward,
                (own.forward + own.backward) / (all.forward + all.backward));
  };
  AttentionDesc window = causal, cap = causal;
  window.window = causal.kvLen / 8;
  cap.cap = 50;
  AttentionDesc documents = causal;
  documents.starts = true;
  compare("window of 1/8", window);
  compare("8 documents", documents);
  compare("cap", cap);
}

static void report(const char *name, double bytes, double time) {
  std::printf("%-24s %7.2f GB/s (%.3f ms)\n", name, bytes / time * 1e-9,
              time * 1e3);
}

static void benchKernels() {
  constexpr int64_t n = 4 << 20, width = 2048;
  TestContext t;
  t.bytes = uint64_t(1) << 28;
  float *p = t.take(normal(n, 1)), *g = t.take(normal(n, 2));
  float *m = t.take<float>(n), *v = t.take<float>(n), *y = t.take<float>(n);
  float *lr = t.take(std::vector<float>{1e-3f}), *one = t.take<float>(1);
  int32_t *step = t.take(std::vector<int32_t>{3});
  float *max = t.take<float>(1), *lse = t.take<float>(n),
        *losses = t.take<float>(n);
  int32_t *ids = t.take<int32_t>(n);
  int64_t *sum = t.take<int64_t>(2), counts[] = {n};
  *one = 1;
  t.run([&](Context &c) {
    Stream s = Stream::Compute;
    AdamWDesc d{0.9, 0.95, 1e-8, 0.1};
    report("adamw", 28.0 * n, seconds([&] {
             adamw(c, s, d, counts, nullptr, {ptr(p)}, {ptr(m)}, {ptr(v)},
                   {ptr(g)}, ptr(lr), ptr(step), ptr(one));
           }));
    report("abs_max", 4.0 * n,
           seconds([&] { absMax(c, s, counts, nullptr, {ptr(g)}, ptr(max)); }));
    report("sum_squares", 4.0 * n, seconds([&] {
             sumSquares(c, s, counts, nullptr, ptr(max), {ptr(g)}, ptr(sum));
           }));
    report("accumulate", 12.0 * n, seconds([&] {
             accumulate(c, s, counts, nullptr, {ptr(p)}, {ptr(g)});
           }));
    for (bool halves : {false, true})
      report(halves ? "rotary halves" : "rotary adjacent", 8.0 * n,
             seconds([&] {
               rotary(c, s, DType::F32, 8, 256, n / 2048 / 32, 32, halves,
                      false, ptr(g), ptr(m), ptr(y));
             }));
    report("cross_entropy", 4.0 * n, seconds([&] {
             crossEntropy(c, s, DType::F32, n / width, width, -100, ptr(g),
                          ptr(ids), ptr(losses), ptr(lse));
           }));
    report("cross_entropy_grad", 8.0 * n, seconds([&] {
             crossEntropyGrad(c, s, DType::F32, n / width, width, -100, ptr(g),
                              ptr(ids), ptr(lse), ptr(losses), ptr(y));
           }));
    report("count_labels", 4.0 * n,
           seconds([&] { countLabels(c, s, n, 1, -100, ptr(ids), ptr(sum)); }));
    report("embedding", 8.0 * n, seconds([&] {
             embedding(c, s, DType::F32, n / 256, 256, 256, /*absent=*/false,
                       ptr(ids), ptr(p), ptr(y));
           }));
    report("embedding_grad", 4.0 * n, seconds([&] {
             embeddingGrad(c, s, DType::F32, n / 256, 256, 256,
                           /*absent=*/false, ptr(ids), ptr(p), ptr(y), nullptr);
           }));
    int64_t shape[] = {2048, 2048}, swapped[] = {1, 0};
    report("transpose 2048x2048", 8.0 * n, seconds([&] {
             transpose(c, s, DType::F32, 2, shape, swapped, ptr(p), ptr(y));
           }));
  });
}

int main() {
  for (DType type : {DType::F32, DType::BF16})
    for (AttentionDesc d :
         {AttentionDesc{8, 256, 256, 8, 8, 32, 0.177, true, type},
          AttentionDesc{8, 256, 256, 8, 8, 64, 0.125, true, type},
          AttentionDesc{1, 512, 512, 32, 8, 64, 0.125, true, type},
          AttentionDesc{1, 2048, 2048, 8, 8, 128, 0.088, true, type}})
      benchAttention(d);
  for (DType type : {DType::F32, DType::BF16})
    for (int64_t headDim : {64, 128})
      benchViews({1, 4096, 4096, 4, 2, headDim, 0.1, true, type});
  benchKernels();
  leaveWorld();
}
