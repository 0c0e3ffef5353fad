//===- Main.cpp - fsdp-gpu-check: libraries on a GPU ----------------------===//
#include "Check.h"
#include "fsdp/Runtime/KernelMath.h"
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <random>

using namespace fsdp;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// The GPU
//===----------------------------------------------------------------------===//

cudaStream_t gpu::stream() {
  static cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    require(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "stream");
    return made;
  }();
  return stream;
}

gpu::Memory::Memory(size_t bytes) {
  require(cudaMalloc(reinterpret_cast<void **>(&data), bytes), "memory");
}

gpu::Memory::Memory(const std::vector<std::byte> &content)
    : Memory(content.size()) {
  set(0, content);
}

gpu::Memory::~Memory() { cudaFree(data); }

void gpu::Memory::set(size_t offset,
                      const std::vector<std::byte> &content) const {
  require(cudaMemcpyAsync(data + offset, content.data(), content.size(),
                          cudaMemcpyHostToDevice, stream()),
          "copy");
  require(cudaStreamSynchronize(stream()), "copy");
}

std::vector<std::byte> gpu::Memory::read(size_t offset, size_t bytes) const {
  std::vector<std::byte> content(bytes);
  require(cudaMemcpyAsync(content.data(), data + offset, bytes,
                          cudaMemcpyDeviceToHost, stream()),
          "copy");
  require(cudaStreamSynchronize(stream()), "copy");
  return content;
}

double gpu::bestSeconds(int times, const std::function<void()> &issue) {
  cudaEvent_t begin = nullptr, end = nullptr;
  require(cudaEventCreateWithFlags(&begin, cudaEventDefault), "event");
  require(cudaEventCreateWithFlags(&end, cudaEventDefault), "event");
  issue();
  double best = INFINITY;
  for (int i = 0; i < times; ++i) {
    require(cudaEventRecord(begin, stream()), "event");
    issue();
    require(cudaEventRecord(end, stream()), "event");
    require(cudaStreamSynchronize(stream()), "work");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin, end), "event");
    best = std::min(best, milliseconds * 1e-3);
  }
  require(cudaEventDestroy(begin), "event");
  require(cudaEventDestroy(end), "event");
  return best;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

std::vector<float> gpu::normal(size_t count, uint32_t seed) {
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

void gpu::print(const nlohmann::ordered_json &row) {
  std::cout << row.dump() << std::endl;
}

//===----------------------------------------------------------------------===//
// The command line
//===----------------------------------------------------------------------===//

static void printVersions() {
  int driver = 0, runtime = 0, nccl = 0;
  require(cudaDriverGetVersion(&driver), "driver");
  require(cudaRuntimeGetVersion(&runtime), "CUDA runtime");
  require(ncclGetVersion(&nccl), "NCCL");
  gpu::print({{"name", "versions"},
              {"driver for CUDA", driver},
              {"CUDA runtime", runtime},
              {"cuBLASLt", cublasLtGetVersion()},
              {"cuDNN", cudnnGetVersion()},
              {"NCCL", nccl}});
}

int main(int argc, char **argv) {
  CLI::App app("Checks and times the libraries that training on a GPU uses; "
               "one JSON object a line. tools/gpu-report.sh runs it.");
  app.require_subcommand(1);
  app.add_subcommand("versions", "versions of driver and libraries")
      ->callback(printVersions);

  size_t bytes = size_t(4) << 30;
  int64_t side = 8192;
  CLI::App *ceilings =
      app.add_subcommand("ceilings", "bandwidth of a copy, speed of a matmul");
  ceilings->add_option("--bytes", bytes, "of the copy")->capture_default_str();
  ceilings->add_option("--side", side, "of the matrices")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 16));
  ceilings->callback([&] { gpu::checkCeilings(bytes, side); });

  std::vector<std::string> artifacts;
  CLI::App *gemms = app.add_subcommand("gemms", "every matmul of artifacts");
  gemms->add_option("artifact", artifacts, "folders with step.so")->required();
  gemms->callback([&] { gpu::checkGemms(artifacts); });

  int64_t longest = 8192;
  CLI::App *attention = app.add_subcommand("attention", "cuDNN's attention");
  attention->add_option("--longest", longest, "sequence")
      ->capture_default_str()
      ->check(CLI::Range(64, 1 << 17));
  attention->callback([&] { gpu::checkAttention(longest); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error);
  } catch (const Error &error) {
    std::fprintf(stderr, "fsdp-gpu-check: %s\n", error.what());
    return 1;
  }
  return 0;
}
