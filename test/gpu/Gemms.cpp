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
  /// Operands somewhere, and a result of its own.
  struct Place {
    Place(const GemmDesc &desc, size_t shift);

    gpu::Numbers lhs, rhs, bias;
    gpu::Memory out, workspace;
    size_t shift;
  };

  nlohmann::ordered_json check();
  void issue(const Place &place) const;
  void run(const Place &place) const;
  /// Whether another run has the bits of `first`.
  bool repeats(const Place &place) const;
  double largestError() const;
  double errorAt(int64_t batch, int64_t row, int64_t col) const;

  /// Where the compiler aligns, and nobody more.
  static inline const size_t kShift = size_t(kCudaTarget.alignment);
  static constexpr int kSamples = 256;

  const GemmDesc desc;
  GemmPlan plan;
  const size_t outBytes;
  /// Aligned to 256 bytes and more; as the compiler aligns.
  const Place aligned, shifted;
  const gpu::Memory first;
};

} // namespace

static size_t outBytesOf(const GemmDesc &d) {
  return size_t(d.batch * d.m * d.n * sizeOf(d.out));
}

Product::Place::Place(const GemmDesc &d, size_t shift)
    : lhs(size_t(d.batch * d.m * d.k), d.in, 1, shift),
      rhs(size_t(d.batch * d.k * d.n), d.in, 2, shift),
      bias(size_t(d.n), d.in, 3, shift), out(outBytesOf(d) + shift),
      workspace(size_t(d.workspace) + shift + 1), shift(shift) {}

Product::Product(cublasLtHandle_t handle, const GemmDesc &d)
    : desc(d), plan(handle, d), outBytes(outBytesOf(d)), aligned(d, 0),
      shifted(d, kShift), first(outBytes) {}

void Product::issue(const Place &place) const {
  plan.run(gpu::stream(), place.lhs.at(), place.rhs.at(),
           desc.bias ? place.bias.at() : nullptr, place.out.at(place.shift),
           place.workspace.at(place.shift));
}

void Product::run(const Place &place) const {
  // One that adds gets the product alone. A result that is not written is not
  // a number otherwise.
  require(cudaMemsetAsync(place.out.at(place.shift), desc.accumulate ? 0 : 0xff,
                          outBytes, gpu::stream()),
          "fill");
  issue(place);
}

bool Product::repeats(const Place &place) const {
  run(place);
  return gpu::areEqual(place.out.at(place.shift), first.at(), outBytes);
}

/// The error of one element by what rounding allows: 1 is all of it.
double Product::errorAt(int64_t batch, int64_t row, int64_t col) const {
  const GemmDesc &d = desc;
  double exact = 0, sizes = 0;
  for (int64_t i = 0; i < d.k; ++i) {
    int64_t left = d.transposeLhs ? i * d.m + row : row * d.k + i;
    int64_t right = d.transposeRhs ? col * d.k + i : i * d.n + col;
    double product = aligned.lhs[size_t(batch * d.m * d.k + left)] *
                     aligned.rhs[size_t(batch * d.k * d.n + right)];
    exact += product;
    sizes += std::abs(product);
  }
  if (d.bias) {
    double added = aligned.bias[size_t(col)];
    exact += added;
    sizes += std::abs(added);
  }
  bool wide = d.in == DType::F64;
  double sumUnit = std::ldexp(1, wide ? -53 : -24);
  double roundUnit = d.out == DType::BF16 ? std::ldexp(1, -8) : sumUnit;
  double allowed =
      double(d.k + 1) * sumUnit * sizes + roundUnit * std::abs(exact);
  auto size = size_t(sizeOf(d.out));
  auto index = size_t((batch * d.m + row) * d.n + col);
  double value = gpu::decode(first.read(index * size, size), 0, d.out);
  // A NaN is no small error.
  return std::isfinite(value) ? std::abs(value - exact) / allowed : INFINITY;
}

double Product::largestError() const {
  std::mt19937_64 generator(4);
  auto below = [&](int64_t n) { return int64_t(generator() % uint64_t(n)); };
  double largest = 0;
  for (int i = 0; i < kSamples; ++i)
    largest = std::max(
        largest, errorAt(below(desc.batch), below(desc.m), below(desc.n)));
  return largest;
}

nlohmann::ordered_json Product::check() {
  run(aligned);
  require(cudaMemcpyAsync(first.at(), aligned.out.at(), outBytes,
                          cudaMemcpyDeviceToDevice, gpu::stream()),
          "copy");
  double error = largestError();
  bool repeat = repeats(aligned) && repeats(aligned);
  bool shifts = repeats(shifted);
  double seconds = gpu::bestSeconds(8, [&] { issue(aligned); });
  const GemmDesc &d = desc;
  double flops =
      2.0 * double(d.batch) * double(d.m) * double(d.n) * double(d.k);
  return {{kError, error},
          {"three runs are equal", repeat},
          {"as the compiler aligns is equal", shifts},
          {"microseconds", seconds * 1e6},
          {"TFLOP/s", flops / seconds * 1e-12},
          {"passed", error <= 1 && repeat && shifts}};
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
