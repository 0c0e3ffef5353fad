//===- Kernels.cpp - Registration and launch of kernels -------------------===//
//
// Code that nvcc compiled registers every kernel with the address of its host
// function and its mangled name, and launches it by the address. The device has
// a host build of that name; it says how many bytes each argument has.
//
//===----------------------------------------------------------------------===//
#include "Client.h"
#include <csignal>
#include <cstring>
#include <unordered_map>
#include <vector_types.h>

using namespace fsdp::fake;

namespace {

struct Kernel {
  std::string name;
  bool isKnown = false; // `number` and `sizes` are the device's
  uint32_t number = 0;
  std::vector<uint32_t> sizes; // of the arguments in bytes
};

struct Kernels {
  std::mutex mutex;
  std::unordered_map<const void *, Kernel> byFunction;
};

Kernels &kernels() {
  static auto *k = new Kernels;
  return *k;
}

} // namespace

//===----------------------------------------------------------------------===//
// What nvcc puts into a library's initialisation
//===----------------------------------------------------------------------===//

extern "C" void **__cudaRegisterFatBinary(void *) {
  static void *handle;
  return &handle;
}
extern "C" void __cudaRegisterFatBinaryEnd(void **) {}
extern "C" void __cudaUnregisterFatBinary(void **) {}

extern "C" void __cudaRegisterFunction(void **, const char *function, char *,
                                       const char *name, int, uint3 *, uint3 *,
                                       dim3 *, dim3 *, int *) {
  std::lock_guard<std::mutex> lock(kernels().mutex);
  kernels().byFunction[function].name = name;
}

//===----------------------------------------------------------------------===//
// Launch
//===----------------------------------------------------------------------===//

static cudaError_t find(Kernel &kernel) {
  if (kernel.isKnown)
    return cudaSuccess;
  std::vector<char> result;
  cudaError_t status =
      Client::get().ask(Call::FindKernel, FindKernel{}, &result,
                        kernel.name.data(), kernel.name.size());
  if (status != cudaSuccess)
    return status;
  KernelInfo info;
  std::memcpy(&info, result.data(), sizeof info);
  kernel.number = info.kernel;
  kernel.sizes.resize(info.arguments);
  std::memcpy(kernel.sizes.data(), result.data() + sizeof info,
              info.arguments * sizeof(uint32_t));
  kernel.isKnown = true;
  return cudaSuccess;
}

/// What a program must not do while it captures. It goes on as if nothing had
/// happened.
static void plantIllegalCalls(cudaStream_t stream) {
  Client &client = Client::get();
  if (!client.isCapturing())
    return;
  if (client.isPlanted("captured-question"))
    cudaStreamQuery(stream);
  if (client.isPlanted("captured-legacy"))
    client.send(Call::Fill, Fill{kLegacyStream, 0, 0, 1});
  void *memory = nullptr;
  if (client.isPlanted("captured-allocation"))
    cudaMalloc(&memory, 1);
}

extern "C" cudaError_t cudaLaunchKernel(const void *function, dim3 grid,
                                        dim3 block, void **arguments,
                                        size_t sharedBytes,
                                        cudaStream_t stream) {
  std::lock_guard<std::mutex> lock(kernels().mutex);
  auto found = kernels().byFunction.find(function);
  if (found == kernels().byFunction.end())
    return Client::get().refuse("a launch of what is no kernel",
                                cudaErrorInvalidDeviceFunction);
  if (sharedBytes != 0)
    return Client::get().refuse("a launch with dynamic shared memory");
  Kernel &kernel = found->second;
  if (cudaError_t status = find(kernel); status != cudaSuccess)
    return status;
  if (Client::get().isPlanted("dead-rank"))
    std::raise(SIGKILL);
  plantIllegalCalls(stream);
  std::vector<char> bytes;
  for (size_t i = 0; i < kernel.sizes.size(); ++i) {
    auto *argument = static_cast<const char *>(arguments[i]);
    bytes.insert(bytes.end(), argument, argument + kernel.sizes[i]);
  }
  Launch launch{numberOf(stream),
                kernel.number,
                {grid.x, grid.y, grid.z},
                {block.x, block.y, block.z}};
  return Client::get().send(Call::Launch, launch, bytes.data(), bytes.size());
}

//===----------------------------------------------------------------------===//
// Attention, from the preloaded library
//===----------------------------------------------------------------------===//

extern "C" cudaError_t fsdp_fake_attention(cudaStream_t stream,
                                           const Attention *call) {
  Attention attention = *call;
  attention.stream = numberOf(stream);
  return Client::get().send(Call::Attention, attention);
}
