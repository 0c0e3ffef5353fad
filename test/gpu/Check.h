//===- Check.h - Checks of libraries on a GPU -------------------*- C++ -*-===//
//
// fsdp-gpu-check prints one JSON object per check: "name", what was measured
// with its unit as the key, and "passed" where there is something to pass.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_GPU_CHECK_H
#define FSDP_TEST_GPU_CHECK_H

#include "runtime/cuda/CudaContext.h"
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fsdp::gpu {

/// Memory of the GPU that ends with the object.
class Memory {
public:
  explicit Memory(size_t bytes);
  explicit Memory(const std::vector<std::byte> &content);
  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  rt::Ptr at(size_t offset = 0) const { return data + offset; }
  void set(size_t offset, const std::vector<std::byte> &content) const;
  /// Waits for all work of stream().
  std::vector<std::byte> read(size_t offset, size_t bytes) const;

private:
  rt::Ptr data = nullptr;
};

/// What this program has made and moved on the host so far.
struct HostWork {
  uint64_t randomNumbers = 0, bytesCopied = 0;
};
HostWork &hostWork();

/// Normal numbers in the GPU's memory. They repeat after a prime number of
/// elements, so that rows of a matrix differ and the host makes few of them.
class Numbers {
public:
  /// `count` elements that begin `shift` bytes after an address aligned to 256
  /// bytes.
  Numbers(size_t count, rt::DType type, uint32_t seed, size_t shift = 0);

  rt::Ptr at() const { return memory.at(shift); }
  double operator[](size_t index) const;
  /// All elements, on the host.
  std::vector<float> values() const;

private:
  struct Period;
  static const Period &periodOf(rt::DType type, uint32_t seed);

  const size_t count;
  const rt::DType type;
  const size_t shift;
  const Period &period;
  Memory memory;
};

/// Whether both places have the same bytes, an even number of them.
bool areEqual(rt::Ptr a, rt::Ptr b, size_t bytes);

/// The one stream of this program.
cudaStream_t stream();

/// Seconds of one call of `issue`: the best of `times`, after one that is not
/// counted.
double bestSeconds(int times, const std::function<void()> &issue);

/// Normal numbers, the same ones for the same seed.
std::vector<float> normal(size_t count, uint32_t seed);
/// In the form of an element type: f32, bf16 or f64.
std::vector<std::byte> encode(const std::vector<float> &values, rt::DType type);
double decode(const std::vector<std::byte> &content, size_t index,
              rt::DType type);

void print(const nlohmann::ordered_json &row);

/// How fast a GPU copies, and multiplies matrices of `side`.
void checkCeilings(size_t bytes, int64_t side);
/// Every matmul of the artifacts: its error, its repeats, its time.
void checkGemms(const std::vector<std::string> &artifacts);
/// cuDNN's attention of 8B's heads for sequences from 64 up to `longest`, each
/// also with a window of an eighth.
void checkAttention(int64_t longest);

} // namespace fsdp::gpu

#endif // FSDP_TEST_GPU_CHECK_H
