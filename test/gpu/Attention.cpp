//===- Attention.cpp - cuDNN's attention ----------------------------------===//
//
// Its plans must fit into what the compiler reserves, and two runs must give
// the same bits. Some rows of the result and of the gradients are compared with
// attention in f64, by what rounding to bf16 allows.
//
//===----------------------------------------------------------------------===//
#include "AttentionReference.h"
#include "Check.h"
#include "fsdp/Target/CudaWorkspaces.h"
#include <cmath>

using namespace fsdp;
using namespace fsdp::rt;

namespace {

/// Causal attention of 8B's heads over one sequence, with a window if that is
/// not 0.
class Heads {
public:
  Heads(cudnnHandle_t handle, int64_t sequence, int64_t window);

  nlohmann::ordered_json check();

private:
  /// Of one run, in the GPU's memory.
  struct Results {
    explicit Results(const AttentionDesc &desc);
    bool operator==(const Results &other) const;

    const size_t queryBytes, keyBytes, lseBytes;
    gpu::Memory out, lse, dq, dk, dv;
  };
  void forward(const Results &results);
  void backward(const Results &results);
  /// Of sampled rows, by what rounding allows: 1 is all of it.
  nlohmann::ordered_json errors(const Results &results) const;

  const AttentionDesc desc;
  std::unique_ptr<AttentionPlan> plan;
  const gpu::Numbers q, k, v, dout;
  gpu::Memory workspace;
};

} // namespace

static AttentionDesc describe(int64_t sequence, int64_t window) {
  return {1,    sequence,    sequence, 32,    8, 128, 1 / std::sqrt(128),
          true, DType::BF16, false,    window};
}

static size_t elementsOf(const AttentionDesc &d, int64_t heads) {
  return size_t(d.batch * d.qLen * heads * d.headDim);
}

static gpu::Numbers numbers(const AttentionDesc &d, int64_t heads,
                            uint32_t seed) {
  return {elementsOf(d, heads), d.type, seed};
}

Heads::Heads(cudnnHandle_t handle, int64_t sequence, int64_t window)
    : desc(describe(sequence, window)), plan(makeAttentionPlan(handle, desc)),
      q(numbers(desc, desc.heads, 1)), k(numbers(desc, desc.kvHeads, 2)),
      v(numbers(desc, desc.kvHeads, 3)), dout(numbers(desc, desc.heads, 4)),
      workspace(size_t(std::max(cuda::attentionWorkspaceBytes(desc),
                                cuda::attentionGradWorkspaceBytes(desc)))) {}

Heads::Results::Results(const AttentionDesc &d)
    : queryBytes(elementsOf(d, d.heads) * size_t(sizeOf(d.type))),
      keyBytes(elementsOf(d, d.kvHeads) * size_t(sizeOf(d.type))),
      lseBytes(size_t(d.batch * d.heads * d.qLen) * sizeof(float)),
      out(queryBytes), lse(lseBytes), dq(queryBytes), dk(keyBytes),
      dv(keyBytes) {}

bool Heads::Results::operator==(const Results &other) const {
  return gpu::areEqual(out.at(), other.out.at(), queryBytes) &&
         gpu::areEqual(lse.at(), other.lse.at(), lseBytes) &&
         gpu::areEqual(dq.at(), other.dq.at(), queryBytes) &&
         gpu::areEqual(dk.at(), other.dk.at(), keyBytes) &&
         gpu::areEqual(dv.at(), other.dv.at(), keyBytes);
}

void Heads::forward(const Results &to) {
  plan->forward(gpu::stream(), q.at(), k.at(), v.at(), to.out.at(), to.lse.at(),
                workspace.at());
}

void Heads::backward(const Results &to) {
  plan->backward(gpu::stream(), q.at(), k.at(), v.at(), to.out.at(),
                 to.lse.at(), dout.at(), to.dq.at(), to.dk.at(), to.dv.at(),
                 workspace.at());
}

/// The largest error of a row that begins at element `first`.
static double errorOf(const gpu::Memory &got, int64_t first,
                      const gpu::AttentionReference::Row &row) {
  auto size = size_t(sizeOf(DType::BF16));
  std::vector<std::byte> content =
      got.read(size_t(first) * size, row.value.size() * size);
  double largest = 0;
  for (size_t i = 0; i < row.value.size(); ++i) {
    double value = gpu::decode(content, i, DType::BF16);
    double error = std::abs(value - row.value[i]) / row.allowed[i];
    // A NaN is no small error.
    largest = std::isfinite(value) ? std::max(largest, error) : INFINITY;
  }
  return largest;
}

nlohmann::ordered_json Heads::errors(const Results &results) const {
  gpu::AttentionReference exact(desc, q.values(), k.values(), v.values(),
                                dout.values());
  double out = 0, dq = 0, dk = 0, dv = 0;
  for (int64_t sample = 0; sample < 8; ++sample) {
    int64_t query = (desc.qLen - 1) * sample / 7;
    int64_t head = sample * 5 % desc.heads;
    int64_t first = (query * desc.heads + head) * desc.headDim;
    out = std::max(out, errorOf(results.out, first, exact.out(query, head)));
    dq = std::max(dq, errorOf(results.dq, first, exact.dq(query, head)));
  }
  // Near the end, where few queries see them.
  for (int64_t back : {1, 7, 16}) {
    int64_t key = desc.kvLen - back, head = back % desc.kvHeads;
    int64_t first = (key * desc.kvHeads + head) * desc.headDim;
    dk = std::max(dk, errorOf(results.dk, first, exact.dk(key, head)));
    dv = std::max(dv, errorOf(results.dv, first, exact.dv(key, head)));
  }
  return {{"error of out by what rounding allows", out},
          {"of dq", dq},
          {"of dk", dk},
          {"of dv", dv}};
}

nlohmann::ordered_json Heads::check() {
  Results first(desc), second(desc);
  for (const Results *results : {&first, &second}) {
    forward(*results);
    backward(*results);
  }
  bool repeats = second == first;
  nlohmann::ordered_json row = errors(first);
  bool isNear = true;
  for (const auto &[name, error] : row.items())
    isNear &= error.get<double>() <= 1;
  double there = gpu::bestSeconds(5, [&] { forward(second); });
  double back = gpu::bestSeconds(5, [&] { backward(second); });
  // Of the scores those that are visible. Two products there, five back.
  double keys = double(desc.kvLen);
  double window = desc.window == 0 ? keys : double(desc.window);
  double flops = 2.0 * double(desc.heads * desc.headDim) *
                 (keys * window - window * window / 2);
  row.update(
      {{"two runs are equal", repeats},
       {"forward TFLOP/s", 2 * flops / there * 1e-12},
       {"backward TFLOP/s", 5 * flops / back * 1e-12},
       {"workspace reserved, bytes", cuda::attentionGradWorkspaceBytes(desc)},
       {"passed", isNear && repeats}});
  return row;
}

void gpu::checkAttention(int64_t longest) {
  cudnnHandle_t handle = nullptr;
  require(cudnnCreate(&handle), "cuDNN");
  for (int64_t sequence = 64; sequence <= longest; sequence *= 2)
    for (int64_t window : {int64_t(0), sequence / 8}) {
      std::string name = std::to_string(sequence) + " tokens";
      if (window != 0)
        name += ", a window of " + std::to_string(window);
      nlohmann::ordered_json row = {{"name", name}};
      try {
        row.update(Heads(handle, sequence, window).check());
      } catch (const Error &error) {
        row.update({{"error", error.what()}, {"passed", false}});
      }
      gpu::print(row);
    }
  require(cudnnDestroy(handle), "cuDNN");
}
