//===- Gemms.cpp - Every matmul of artifacts ------------------------------===//
//
// The error is compared with what rounding allows: sums of products in f32 in
// any order are within k * 2^-24 * sum |a b| (Higham, Accuracy and Stability of
// Numerical Algorithms, section 3.1), and the result is rounded once.
//
//===----------------------------------------------------------------------===//
#include "Check.h"
#include "fsdp/Runtime/Artifact.h"
#include "fsdp/Target/Target.h"
#include <cmath>
#include <dlfcn.h>
#include <map>
#include <random>
#include <tuple>

using namespace fsdp;
using namespace fsdp::rt;

static const char *const kError = "error by what rounding allows";

using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, bool, bool, bool,
                       bool, DType, DType, int64_t>;

static Key keyOf(const GemmDesc &d) {
  return {d.batch, d.m,          d.n,  d.k,   d.transposeLhs, d.transposeRhs,
          d.bias,  d.accumulate, d.in, d.out, d.workspace};
}

static const fsdp_artifact &artifactIn(const std::string &folder) {
  std::string path = folder + "/step.so";
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error(dlerror());
  using GetArtifact = const fsdp_artifact *(*)();
  auto get = reinterpret_cast<GetArtifact>(dlsym(library, "fsdp_get_artifact"));
  if (!get || get()->abi != FSDP_ARTIFACT_ABI)
    throw Error(path + " is no artifact of this version");
  return *get();
}

namespace {

/// One product: operands on both sides, and results of runs.
class Product {
public:
  Product(cublasLtHandle_t handle, const GemmDesc &desc);

  /// Training takes one of the candidates, by its time.
  nlohmann::ordered_json checkAll();

private:
  nlohmann::ordered_json check();
  void run(size_t shift);
  std::vector<std::byte> result(size_t shift) {
    return out.read(shift, outBytes);
  }
  double largestError(const std::vector<std::byte> &got) const;
  double errorAt(const std::vector<std::byte> &got, int64_t batch, int64_t row,
                 int64_t col) const;

  /// Where the compiler aligns, and nobody more.
  static inline const size_t kShift = size_t(kCudaTarget.alignment);
  static constexpr int kSamples = 256;

  const GemmDesc desc;
  GemmPlan plan;
  std::vector<std::byte> lhsHost, rhsHost, biasHost;
  size_t outBytes;
  gpu::Memory lhs, rhs, bias, out, workspace;
};

} // namespace

static std::vector<std::byte> operand(int64_t elements, DType type,
                                      uint32_t seed) {
  return gpu::encode(gpu::normal(size_t(elements), seed), type);
}

Product::Product(cublasLtHandle_t handle, const GemmDesc &d)
    : desc(d), plan(handle, d), lhsHost(operand(d.batch * d.m * d.k, d.in, 1)),
      rhsHost(operand(d.batch * d.k * d.n, d.in, 2)),
      biasHost(operand(d.n, d.in, 3)),
      outBytes(size_t(d.batch * d.m * d.n * sizeOf(d.out))),
      lhs(lhsHost.size() + kShift), rhs(rhsHost.size() + kShift),
      bias(biasHost.size() + kShift), out(outBytes + kShift),
      workspace(size_t(d.workspace) + kShift) {}

/// All operands `shift` bytes after the beginning of memory, which is aligned
/// to 256 and more.
void Product::run(size_t shift) {
  lhs.set(shift, lhsHost);
  rhs.set(shift, rhsHost);
  bias.set(shift, biasHost);
  // One that adds gets the product alone.
  require(cudaMemsetAsync(out.at(shift), 0, outBytes, gpu::stream()), "fill");
  plan.run(gpu::stream(), lhs.at(shift), rhs.at(shift),
           desc.bias ? bias.at(shift) : nullptr, out.at(shift),
           workspace.at(shift));
}

/// The error of one element by what rounding allows: 1 is all of it.
double Product::errorAt(const std::vector<std::byte> &got, int64_t batch,
                        int64_t row, int64_t col) const {
  const GemmDesc &d = desc;
  double exact = 0, sizes = 0;
  for (int64_t i = 0; i < d.k; ++i) {
    int64_t left = d.transposeLhs ? i * d.m + row : row * d.k + i;
    int64_t right = d.transposeRhs ? col * d.k + i : i * d.n + col;
    double product =
        gpu::decode(lhsHost, size_t(batch * d.m * d.k + left), d.in) *
        gpu::decode(rhsHost, size_t(batch * d.k * d.n + right), d.in);
    exact += product;
    sizes += std::abs(product);
  }
  if (d.bias) {
    double added = gpu::decode(biasHost, size_t(col), d.in);
    exact += added;
    sizes += std::abs(added);
  }
  bool wide = d.in == DType::F64;
  double sumUnit = std::ldexp(1, wide ? -53 : -24);
  double roundUnit = d.out == DType::BF16 ? std::ldexp(1, -8) : sumUnit;
  double allowed =
      double(d.k + 1) * sumUnit * sizes + roundUnit * std::abs(exact);
  double value =
      gpu::decode(got, size_t((batch * d.m + row) * d.n + col), d.out);
  // A NaN is no small error.
  return std::isfinite(value) ? std::abs(value - exact) / allowed : INFINITY;
}

double Product::largestError(const std::vector<std::byte> &got) const {
  std::mt19937_64 generator(4);
  auto below = [&](int64_t n) { return int64_t(generator() % uint64_t(n)); };
  double largest = 0;
  for (int i = 0; i < kSamples; ++i)
    largest = std::max(
        largest, errorAt(got, below(desc.batch), below(desc.m), below(desc.n)));
  return largest;
}

nlohmann::ordered_json Product::check() {
  run(0);
  auto first = result(0);
  double error = largestError(first);
  bool repeats = true;
  for (int i = 0; i < 2; ++i) {
    run(0);
    repeats &= result(0) == first;
  }
  run(kShift);
  bool shifts = result(kShift) == first;
  double seconds = gpu::bestSeconds(8, [&] {
    plan.run(gpu::stream(), lhs.at(), rhs.at(), desc.bias ? bias.at() : nullptr,
             out.at(), workspace.at());
  });
  const GemmDesc &d = desc;
  double flops =
      2.0 * double(d.batch) * double(d.m) * double(d.n) * double(d.k);
  return {{kError, error},
          {"three runs are equal", repeats},
          {"as the compiler aligns is equal", shifts},
          {"microseconds", seconds * 1e6},
          {"TFLOP/s", flops / seconds * 1e-12},
          {"passed", error <= 1 && repeats && shifts}};
}

nlohmann::ordered_json Product::checkAll() {
  nlohmann::ordered_json worst, fastest;
  std::vector<cublasLtMatmulAlgo_t> candidates = plan.candidates();
  for (const cublasLtMatmulAlgo_t &candidate : candidates) {
    plan.use(candidate);
    nlohmann::ordered_json row = check();
    if (fastest.is_null() || row["microseconds"] < fastest["microseconds"])
      fastest = row;
    if (worst.is_null() || row["passed"] < worst["passed"] ||
        (row["passed"] == worst["passed"] && row[kError] > worst[kError]))
      worst = row;
  }
  worst["candidates"] = candidates.size();
  for (const char *key : {"microseconds", "TFLOP/s"})
    worst[key] = fastest[key];
  return worst;
}

static std::string nameOf(const GemmDesc &d) {
  auto type = [](DType t) {
    return t == DType::BF16 ? "bf16" : t == DType::F64 ? "f64" : "f32";
  };
  std::string name = d.batch == 1 ? "" : std::to_string(d.batch) + " x ";
  name += std::to_string(d.m) + (d.transposeLhs ? "^" : "") + " x " +
          std::to_string(d.k) + " x " + std::to_string(d.n) +
          (d.transposeRhs ? "^" : "") + " " + type(d.in);
  if (d.in != d.out)
    name += std::string(" to ") + type(d.out);
  return name + (d.bias ? " with bias" : "") + (d.accumulate ? ", adding" : "");
}

void gpu::checkGemms(const std::vector<std::string> &artifacts) {
  cublasLtHandle_t handle = nullptr;
  require(cublasLtCreate(&handle), "cuBLASLt");
  std::map<Key, GemmDesc> all;
  for (const std::string &folder : artifacts) {
    const fsdp_artifact &artifact = artifactIn(folder);
    for (int32_t i = 0; i < artifact.gemms; ++i)
      all.emplace(keyOf(artifact.gemm[i]), artifact.gemm[i]);
  }
  for (const auto &[key, desc] : all) {
    nlohmann::ordered_json row = {{"name", nameOf(desc)}};
    try {
      row.update(Product(handle, desc).checkAll());
    } catch (const Error &error) {
      row.update({{"error", error.what()}, {"passed", false}});
    }
    gpu::print(row);
  }
  require(cublasLtDestroy(handle), "cuBLASLt");
}
