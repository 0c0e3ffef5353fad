//===- Numbers.cpp - Operands of checks, and their comparison -------------===//
#include "Check.h"
#include "Compare.h"
#include "fsdp/Runtime/KernelMath.h"
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>

using namespace fsdp;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

std::vector<float> gpu::normal(size_t count, uint32_t seed) {
  hostWork().randomNumbers += count;
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> values(count);
  for (float &value : values)
    value = distribution(generator);
  return values;
}

template <typename T, typename Convert>
static std::vector<std::byte> bytesOf(const std::vector<float> &values,
                                      const Convert &convert) {
  std::vector<std::byte> content(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T element = convert(values[i]);
    std::memcpy(content.data() + i * sizeof(T), &element, sizeof(T));
  }
  return content;
}

std::vector<std::byte> gpu::encode(const std::vector<float> &values,
                                   DType type) {
  if (type == DType::BF16)
    return bytesOf<BF16>(values, [](float x) { return math::toBF16(x); });
  if (type == DType::F64)
    return bytesOf<double>(values, [](float x) { return double(x); });
  return bytesOf<float>(values, [](float x) { return x; });
}

template <typename T>
static T elementOf(const std::vector<std::byte> &content, size_t index) {
  T element;
  std::memcpy(&element, content.data() + index * sizeof(T), sizeof(T));
  return element;
}

double gpu::decode(const std::vector<std::byte> &content, size_t index,
                   DType type) {
  if (type == DType::BF16)
    return math::widen(elementOf<BF16>(content, index));
  if (type == DType::F64)
    return elementOf<double>(content, index);
  return elementOf<float>(content, index);
}

//===----------------------------------------------------------------------===//
// Numbers in the GPU's memory
//===----------------------------------------------------------------------===//

/// A prime: no size of a matrix divides it.
static constexpr size_t kPeriod = 1000003;

/// Made once for a type and seed, and copied once.
struct gpu::Numbers::Period {
  Period(DType type, uint32_t seed)
      : onHost(encode(normal(kPeriod, seed), type)), onGpu(onHost) {}

  const std::vector<std::byte> onHost;
  const Memory onGpu;
};

const gpu::Numbers::Period &gpu::Numbers::periodOf(DType type, uint32_t seed) {
  // Never destroyed: at the end of the program CUDA may be gone.
  static auto *made =
      new std::map<std::pair<DType, uint32_t>, std::unique_ptr<Period>>;
  std::unique_ptr<Period> &period = (*made)[{type, seed}];
  if (!period)
    period = std::make_unique<Period>(type, seed);
  return *period;
}

static void copy(Ptr to, Ptr from, size_t bytes) {
  require(
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, gpu::stream()),
      "copy");
}

gpu::Numbers::Numbers(size_t count, DType type, uint32_t seed, size_t shift)
    : count(count), type(type), shift(shift), period(periodOf(type, seed)),
      memory(count * size_t(sizeOf(type)) + shift) {
  size_t bytes = count * size_t(sizeOf(type));
  size_t done = std::min(bytes, period.onHost.size());
  copy(at(), period.onGpu.at(), done);
  // What is there is a whole number of periods until the last copy.
  while (done < bytes) {
    size_t next = std::min(done, bytes - done);
    copy(at() + done, at(), next);
    done += next;
  }
}

double gpu::Numbers::operator[](size_t index) const {
  return decode(period.onHost, index % kPeriod, type);
}

std::vector<float> gpu::Numbers::values() const {
  std::vector<float> all(count);
  for (size_t i = 0; i < count; ++i)
    all[i] = float((*this)[i]);
  return all;
}

bool gpu::areEqual(Ptr a, Ptr b, size_t bytes) {
  static const Memory differences(sizeof(unsigned long long));
  require(cudaMemsetAsync(differences.at(), 0, sizeof(unsigned long long),
                          stream()),
          "fill");
  require(
      issueCompare(stream(), a, b, bytes,
                   reinterpret_cast<unsigned long long *>(differences.at())),
      "comparison");
  unsigned long long found = 0;
  std::vector<std::byte> content = differences.read(0, sizeof found);
  std::memcpy(&found, content.data(), sizeof found);
  return found == 0;
}
