//===- TestContext.h - A context for one operation --------------*- C++ -*-===//
#ifndef FSDP_TEST_UNIT_KERNELS_TESTCONTEXT_H
#define FSDP_TEST_UNIT_KERNELS_TESTCONTEXT_H

#include "fsdp/Core/Context.h"
#include "fsdp/Runtime/KernelMath.h"
#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>

namespace fsdp::rt::test {

/// An artifact made by hand, its context, and ranges taken from the arena one
/// after the other.
class TestContext {
public:
  std::vector<GemmDesc> gemms;
  std::vector<AttentionDesc> attentions;
  std::vector<GroupDesc> groups;
  std::vector<CollectiveDesc> collectives;
  ContextOptions options;
  int events = 0;
  uint64_t bytes = 64 << 20;

  Context &get() {
    if (!context)
      create();
    return *context;
  }

  template <typename T> T *take(int64_t count) {
    uint64_t at = used;
    used += (uint64_t(count) * sizeof(T) + 63) / 64 * 64;
    if (used > bytes)
      throw std::runtime_error("the test's arena is too small");
    return reinterpret_cast<T *>(rt::at(get(), at));
  }
  template <typename T> T *take(const std::vector<T> &values) {
    T *p = take<T>(int64_t(values.size()));
    std::copy(values.begin(), values.end(), p);
    return p;
  }

  /// Runs `body` as the artifact's only program.
  std::string run(const std::function<void(Context &)> &body) {
    get();
    current() = &body;
    std::string error;
    runProgram(*context, 0, error);
    return error;
  }

private:
  static const std::function<void(Context &)> *&current() {
    static const std::function<void(Context &)> *body = nullptr;
    return body;
  }
  void create() {
    program = {"test", [](Context &c) { (*current())(c); }};
    artifact.abi = FSDP_ARTIFACT_ABI;
    artifact.arena_bytes = bytes;
    artifact.events = events;
    artifact.gemms = int32_t(gemms.size());
    artifact.gemm = gemms.data();
    artifact.attentions = int32_t(attentions.size());
    artifact.attention = attentions.data();
    artifact.groups = int32_t(groups.size());
    artifact.group = groups.data();
    artifact.collectives = int32_t(collectives.size());
    artifact.collective = collectives.data();
    artifact.programs = 1;
    artifact.program = &program;
    if (options.meshAxes.empty())
      options.meshAxes = {joinWorld().size};
    std::string error;
    context = createContext(artifact, options, error);
    if (!context)
      throw std::runtime_error(error);
  }

  fsdp_program program{};
  fsdp_artifact artifact{};
  ContextPtr context;
  uint64_t used = 0;
};

template <typename T> Ptr ptr(T *p) { return reinterpret_cast<Ptr>(p); }

/// Normal values; the same for the same seed.
inline std::vector<float> normal(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> values(static_cast<size_t>(count));
  for (float &v : values)
    v = distribution(generator);
  return values;
}

inline std::vector<BF16> toBF16(const std::vector<float> &values) {
  std::vector<BF16> result;
  for (float v : values)
    result.push_back(math::toBF16(v));
  return result;
}
inline std::vector<float> widen(const BF16 *values, int64_t count) {
  std::vector<float> result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(math::widen(values[i]));
  return result;
}

/// ||a - b|| / ||b||.
template <typename A, typename B>
double relativeError(const A *a, const B *b, int64_t count) {
  double difference = 0, norm = 0;
  for (int64_t i = 0; i < count; ++i) {
    difference += std::pow(double(a[i]) - double(b[i]), 2);
    norm += std::pow(double(b[i]), 2);
  }
  return std::sqrt(difference / (norm == 0 ? 1 : norm));
}

} // namespace fsdp::rt::test

#endif // FSDP_TEST_UNIT_KERNELS_TESTCONTEXT_H
