//===- Attention.cpp - cuDNN's attention ----------------------------------===//
//
// Its plans must fit into what the compiler reserves, and two runs must give
// the same bits. Some rows of the result are compared with attention in f64:
// probabilities and results are bf16, each rounded by at most 2^-8 of itself,
// and the largest result bounds both.
//
//===----------------------------------------------------------------------===//
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
  struct Results {
    std::vector<std::byte> out, lse, dq, dk, dv;
    bool operator==(const Results &other) const {
      return out == other.out && lse == other.lse && dq == other.dq &&
             dk == other.dk && dv == other.dv;
    }
  };
  void forward();
  void backward();
  Results run();
  std::vector<double> exactRow(int64_t query, int64_t head) const;
  double largestError(const Results &results) const;
  size_t queryBytes() const { return qHost.size(); }
  size_t keyBytes() const { return kHost.size(); }
  size_t lseBytes() const { return size_t(desc.heads * desc.qLen) * 4; }

  const AttentionDesc desc;
  std::unique_ptr<AttentionPlan> plan;
  std::vector<std::byte> qHost, kHost, vHost, doutHost;
  gpu::Memory q, k, v, dout, out, lse, dq, dk, dv, workspace;
};

} // namespace

static AttentionDesc describe(int64_t sequence, int64_t window) {
  return {1,    sequence,    sequence, 32,    8, 128, 1 / std::sqrt(128),
          true, DType::BF16, false,    window};
}

static std::vector<std::byte> numbers(int64_t sequence, int64_t heads,
                                      uint32_t seed) {
  return gpu::encode(gpu::normal(size_t(sequence * heads * 128), seed),
                     DType::BF16);
}

Heads::Heads(cudnnHandle_t handle, int64_t sequence, int64_t window)
    : desc(describe(sequence, window)), plan(makeAttentionPlan(handle, desc)),
      qHost(numbers(sequence, desc.heads, 1)),
      kHost(numbers(sequence, desc.kvHeads, 2)),
      vHost(numbers(sequence, desc.kvHeads, 3)),
      doutHost(numbers(sequence, desc.heads, 4)), q(qHost), k(kHost), v(vHost),
      dout(doutHost), out(queryBytes()), lse(lseBytes()), dq(queryBytes()),
      dk(keyBytes()), dv(keyBytes()),
      workspace(size_t(std::max(cuda::attentionWorkspaceBytes(desc),
                                cuda::attentionGradWorkspaceBytes(desc)))) {}

void Heads::forward() {
  plan->forward(gpu::stream(), q.at(), k.at(), v.at(), out.at(), lse.at(),
                workspace.at());
}

void Heads::backward() {
  plan->backward(gpu::stream(), q.at(), k.at(), v.at(), out.at(), lse.at(),
                 dout.at(), dq.at(), dk.at(), dv.at(), workspace.at());
}

Heads::Results Heads::run() {
  forward();
  backward();
  return {out.read(0, queryBytes()), lse.read(0, lseBytes()),
          dq.read(0, queryBytes()), dk.read(0, keyBytes()),
          dv.read(0, keyBytes())};
}

std::vector<double> Heads::exactRow(int64_t query, int64_t head) const {
  auto at = [&](const std::vector<std::byte> &x, int64_t token, int64_t heads,
                int64_t h, int64_t i) {
    return gpu::decode(x, size_t((token * heads + h) * desc.headDim + i),
                       DType::BF16);
  };
  int64_t group = head / (desc.heads / desc.kvHeads);
  int64_t first =
      desc.window == 0 ? 0 : std::max<int64_t>(query - desc.window + 1, 0);
  std::vector<double> scores(size_t(query) + 1), row(size_t(desc.headDim));
  double largest = -INFINITY, sum = 0;
  for (int64_t key = first; key <= query; ++key) {
    double score = 0;
    for (int64_t i = 0; i < desc.headDim; ++i)
      score += at(qHost, query, desc.heads, head, i) *
               at(kHost, key, desc.kvHeads, group, i);
    scores[size_t(key)] = score * desc.scale;
    largest = std::max(largest, scores[size_t(key)]);
  }
  for (int64_t key = first; key <= query; ++key)
    sum += scores[size_t(key)] = std::exp(scores[size_t(key)] - largest);
  for (int64_t key = first; key <= query; ++key)
    for (int64_t i = 0; i < desc.headDim; ++i)
      row[size_t(i)] +=
          scores[size_t(key)] / sum * at(vHost, key, desc.kvHeads, group, i);
  return row;
}

/// Relative to the largest element of the row.
double Heads::largestError(const Results &results) const {
  double error = 0;
  for (int64_t sample = 0; sample < 8; ++sample) {
    int64_t query = (desc.qLen - 1) * sample / 7;
    int64_t head = sample * 5 % desc.heads;
    std::vector<double> exact = exactRow(query, head);
    double size = 0, difference = 0;
    for (int64_t i = 0; i < desc.headDim; ++i) {
      size_t index = size_t((query * desc.heads + head) * desc.headDim + i);
      double value = gpu::decode(results.out, index, DType::BF16);
      size = std::max(size, std::abs(exact[size_t(i)]));
      difference =
          std::isfinite(value)
              ? std::max(difference, std::abs(value - exact[size_t(i)]))
              : INFINITY;
    }
    error = std::max(error, difference / size);
  }
  return error;
}

nlohmann::ordered_json Heads::check() {
  Results first = run();
  bool repeats = run() == first;
  double error = largestError(first);
  double there = gpu::bestSeconds(5, [&] { forward(); });
  double back = gpu::bestSeconds(5, [&] { backward(); });
  // Of the scores those that are visible. Two products there, five back.
  double keys = double(desc.kvLen);
  double window = desc.window == 0 ? keys : double(desc.window);
  double flops = 2.0 * double(desc.heads * desc.headDim) *
                 (keys * window - window * window / 2);
  return {
      {"error of the largest", error},
      {"two runs are equal", repeats},
      {"forward TFLOP/s", 2 * flops / there * 1e-12},
      {"backward TFLOP/s", 5 * flops / back * 1e-12},
      {"workspace reserved, bytes", cuda::attentionGradWorkspaceBytes(desc)},
      {"passed", error <= std::ldexp(3, -8) && repeats}};
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
