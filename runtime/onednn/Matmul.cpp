//===- Matmul.cpp - One prepared oneDNN matmul ----------------------------===//
#include "Matmul.h"
#include "fsdp/Core/Context.h"
#include "fsdp/Core/Variables.h"
#include <dnnl.hpp>
#include <omp.h>
#include <stdexcept>
#include <vector>

using namespace fsdp::rt;

namespace {

/// oneDNN reads the thread count when a primitive is made.
class ThreadCount {
public:
  explicit ThreadCount(int threads) : before(omp_get_max_threads()) {
    omp_set_num_threads(threads);
  }
  ~ThreadCount() { omp_set_num_threads(before); }

private:
  int before;
};

dnnl::engine &engine() {
  static dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}

dnnl::memory::data_type dataType(DType type) {
  return type == DType::BF16 ? dnnl::memory::data_type::bf16
                             : dnnl::memory::data_type::f32;
}

dnnl::memory::desc matrix(int64_t batch, int64_t rows, int64_t cols,
                          const int64_t *strides, int64_t batchStride,
                          DType type) {
  if (batch == 1)
    return {{rows, cols}, dataType(type), {strides[0], strides[1]}};
  return {{batch, rows, cols},
          dataType(type),
          {batchStride, strides[0], strides[1]}};
}

dnnl::matmul::primitive_desc describe(const MatmulShape &s) {
  using dnnl::memory;
  memory::desc a = matrix(s.batch, s.m, s.k, s.a, s.aBatch, s.in);
  memory::desc b = matrix(s.batch, s.k, s.n, s.b, s.bBatch, s.in);
  memory::desc c = matrix(s.batch, s.m, s.n, s.c, s.cBatch, s.out);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.accumulate) {
    dnnl::post_ops add;
    add.append_sum(1.0f);
    attributes.set_post_ops(add);
  }
  if (!s.bias)
    return {dnnl::matmul::desc(a, b, c), attributes, engine()};
  memory::dims shape =
      s.batch == 1 ? memory::dims{1, s.n} : memory::dims{1, 1, s.n};
  memory::dims strides =
      s.batch == 1 ? memory::dims{s.n, 1} : memory::dims{s.n, s.n, 1};
  return {dnnl::matmul::desc(a, b, {shape, dataType(s.in), strides}, c),
          attributes, engine()};
}

std::string text(const MatmulShape &s) {
  return "matmul of " + std::to_string(s.batch) + " x " + std::to_string(s.m) +
         " x " + std::to_string(s.n) + " x " + std::to_string(s.k) +
         (s.in == DType::BF16 ? " in bf16" : " in f32");
}

dnnl::matmul::primitive_desc describeOrThrow(const MatmulShape &s,
                                             int threads) {
  for (DType t : {s.in, s.out})
    if (t != DType::F32 && t != DType::BF16)
      throw std::runtime_error("a matmul takes f32 or bf16 on the CPU target");
  // oneDNN's blocking counts in int.
  for (int64_t size : {s.batch, s.m, s.n, s.k})
    if (size > INT32_MAX)
      throw std::runtime_error("oneDNN has no " + text(s) +
                               ": a size is above 2^31 - 1");
  ThreadCount count(threads);
  try {
    return describe(s);
  } catch (const dnnl::error &e) {
    throw std::runtime_error("oneDNN has no " + text(s) + ": " + e.what());
  }
}

} // namespace

struct Matmul::Impl {
  /// Arguments of one execution; the handles change, the objects stay, so
  /// that a run allocates nothing of ours.
  struct Executor {
    dnnl::stream stream{engine()};
    dnnl::memory a, b, bias, c, scratchpad;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  dnnl::matmul primitive;
  int64_t scratchpad = 0;
  std::vector<Executor> executors;
};

Matmul::Matmul(const MatmulShape &shape, int threads, int executors)
    : impl(std::make_unique<Impl>()) {
  dnnl::matmul::primitive_desc pd = describeOrThrow(shape, threads);
  ThreadCount count(threads);
  impl->primitive = dnnl::matmul(pd);
  impl->scratchpad = int64_t(pd.scratchpad_desc().get_size());
  for (int i = 0; i < executors; ++i) {
    Impl::Executor &e = impl->executors.emplace_back();
    auto argument = [&](dnnl::memory &m, const dnnl::memory::desc &d, int id) {
      m = dnnl::memory(d, engine(), nullptr);
      e.arguments.push_back({id, m.get()});
    };
    argument(e.a, pd.src_desc(), DNNL_ARG_SRC);
    argument(e.b, pd.weights_desc(), DNNL_ARG_WEIGHTS);
    argument(e.c, pd.dst_desc(), DNNL_ARG_DST);
    argument(e.scratchpad, pd.scratchpad_desc(), DNNL_ARG_SCRATCHPAD);
    if (shape.bias)
      argument(e.bias, pd.bias_desc(), DNNL_ARG_BIAS);
  }
}

Matmul::~Matmul() = default;
Matmul::Matmul(Matmul &&) noexcept = default;

int64_t Matmul::scratchpadBytes() const { return impl->scratchpad; }

void Matmul::run(const void *a, const void *b, const void *bias, void *c,
                 void *scratchpad, int executor) const {
  Impl::Executor &e = impl->executors[size_t(executor)];
  auto set = [](dnnl::memory &m, const void *p) {
    dnnl_memory_set_data_handle(m.get(), const_cast<void *>(p));
  };
  set(e.a, a);
  set(e.b, b);
  set(e.c, c);
  set(e.scratchpad, scratchpad);
  if (e.bias)
    set(e.bias, bias);
  dnnl_status_t status =
      dnnl_primitive_execute(impl->primitive.get(), e.stream.get(),
                             int(e.arguments.size()), e.arguments.data());
  if (status != dnnl_success)
    abortWorld("oneDNN failed to run a matmul (status " +
               std::to_string(int(status)) + ")");
}

int64_t Matmul::scratchpadBytes(const MatmulShape &shape, int threads) {
  return int64_t(describeOrThrow(shape, threads).scratchpad_desc().get_size());
}

static bool has(dnnl_cpu_isa_t isa) {
  return (int(dnnl_get_effective_cpu_isa()) & int(isa)) == int(isa);
}

/// AMX, or AVX512-BF16 outside Intel: Intel's cores without AMX do a bf16 dot
/// product at half the rate of f32 multiply-add (110 against 200 GFLOP/s
/// measured with oneDNN 2.6 on Sapphire Rapids), so widening is faster there.
bool fsdp::rt::hasNativeBF16() {
  bool possible = has(dnnl_cpu_isa_avx512_core_bf16);
  if (auto wanted = wantsNativeBF16())
    return possible && *wanted;
  __builtin_cpu_init();
  return has(dnnl_cpu_isa_avx512_core_amx) ||
         (possible && !__builtin_cpu_is("intel"));
}
