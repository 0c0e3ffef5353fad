//===- matmul_floor.cpp - How long a step's matmuls take by themselves ----===//
//
// Reads lines "COUNT BATCH M N K LAYOUT TYPE" (LAYOUT: nn, nt, tn or tt; TYPE:
// f32 or bf16) and prints the seconds that oneDNN needs on one thread for
// COUNT of each: the median of several runs on operands that lie ready. With
// bf16 the faster of native and f32 products counts, since a CPU without AMX
// is better off with f32.
//
//===----------------------------------------------------------------------===//
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <dnnl.hpp>
#include <omp.h>
#include <vector>

using dnnl::memory;

namespace {
struct Product {
  long count, batch, m, n, k;
  char layout[8], type[8];
};
} // namespace

static constexpr int kRuns = 9;

static memory::desc matrix(long batch, long rows, long cols, bool transposed,
                           memory::data_type type) {
  long row = transposed ? 1 : cols, col = transposed ? rows : 1;
  if (batch == 1)
    return {{rows, cols}, type, memory::dims{row, col}};
  return {{batch, rows, cols}, type, memory::dims{rows * cols, row, col}};
}

/// Seconds of one product, or infinity if oneDNN has none of this type.
static double seconds(const Product &p, memory::data_type type) {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  static dnnl::stream stream(engine);
  memory::desc a = matrix(p.batch, p.m, p.k, p.layout[0] == 't', type);
  memory::desc b = matrix(p.batch, p.k, p.n, p.layout[1] == 't', type);
  memory::desc c = matrix(p.batch, p.m, p.n, false, type);
  try {
    dnnl::matmul::primitive_desc description({a, b, c}, engine);
    dnnl::matmul primitive(description);
    memory operands[] = {{a, engine}, {b, engine}, {c, engine}};
    for (const memory &operand : operands)
      std::memset(operand.get_data_handle(), 0, operand.get_desc().get_size());
    std::vector<double> times;
    for (int run = 0; run < kRuns; ++run) {
      auto begin = std::chrono::steady_clock::now();
      primitive.execute(stream, {{DNNL_ARG_SRC, operands[0]},
                                 {DNNL_ARG_WEIGHTS, operands[1]},
                                 {DNNL_ARG_DST, operands[2]}});
      std::chrono::duration<double> time =
          std::chrono::steady_clock::now() - begin;
      times.push_back(time.count());
    }
    std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
    return times[kRuns / 2];
  } catch (const dnnl::error &) {
    return __builtin_inf();
  }
}

int main() {
  omp_set_num_threads(1);
  double total = 0, flops = 0;
  Product p;
  while (std::scanf("%ld %ld %ld %ld %ld %7s %7s", &p.count, &p.batch, &p.m,
                    &p.n, &p.k, p.layout, p.type) == 7) {
    double time = seconds(p, memory::data_type::f32);
    if (std::strcmp(p.type, "bf16") == 0)
      time = std::min(time, seconds(p, memory::data_type::bf16));
    total += time * double(p.count);
    flops += 2.0 * double(p.count * p.batch * p.m * p.n * p.k);
  }
  std::printf("{\"seconds\": %.6f, \"flops\": %.0f}\n", total, flops);
}
