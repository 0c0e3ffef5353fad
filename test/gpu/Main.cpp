//===- Main.cpp - fsdp-gpu-check: libraries on a GPU ----------------------===//
#include "Check.h"
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <iostream>

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

gpu::HostWork &gpu::hostWork() {
  static HostWork work;
  return work;
}

void gpu::Memory::set(size_t offset,
                      const std::vector<std::byte> &content) const {
  hostWork().bytesCopied += content.size();
  require(cudaMemcpyAsync(data + offset, content.data(), content.size(),
                          cudaMemcpyHostToDevice, stream()),
          "copy");
  require(cudaStreamSynchronize(stream()), "copy");
}

std::vector<std::byte> gpu::Memory::read(size_t offset, size_t bytes) const {
  std::vector<std::byte> content(bytes);
  hostWork().bytesCopied += bytes;
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
// The command line
//===----------------------------------------------------------------------===//

void gpu::print(const nlohmann::ordered_json &row) {
  std::cout << row.dump() << std::endl;
}

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
    const gpu::HostWork &work = gpu::hostWork();
    gpu::print({{"name", "work of the host"},
                {"random numbers", work.randomNumbers},
                {"bytes copied", work.bytesCopied}});
  } catch (const CLI::ParseError &error) {
    return app.exit(error);
  } catch (const Error &error) {
    std::fprintf(stderr, "fsdp-gpu-check: %s\n", error.what());
    return 1;
  }
  return 0;
}
