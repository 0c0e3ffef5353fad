//===- Twin.h - The host's twin of a kernel ---------------------*- C++ -*-===//
//
// The source of a kernel compiled for the host through test/shim/CudaShim.h. A
// library of twins is loaded by the device and announces each by its mangled
// name, which nvcc gives the kernel too.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_FAKECUDA_TWIN_H
#define FSDP_TEST_FAKECUDA_TWIN_H

#include <cstdint>

namespace fsdp::fake {

struct Parameter {
  uint32_t bytes;
  bool isPointer;
};

struct Twin {
  const char *name; // mangled
  uint32_t count;
  const Parameter *parameters;
  /// Runs all threads of a grid; `arguments` holds their addresses.
  void (*run)(const uint32_t (&grid)[3], const uint32_t (&block)[3],
              void **arguments);
};

} // namespace fsdp::fake

/// The device's: takes note of a twin, which must live on.
extern "C" void fsdp_fake_announce(const fsdp::fake::Twin *twin);

#ifdef FSDP_CUDA_SHIM
#include <dlfcn.h>

namespace fsdp::fake {

template <typename... P, size_t... I>
void callTwin(void (*kernel)(P...), void **arguments,
              std::index_sequence<I...>) {
  kernel(*static_cast<P *>(arguments[I])...);
}

template <auto Kernel, typename... P>
void runTwin(const uint32_t (&grid)[3], const uint32_t (&block)[3],
             void **arguments) {
  std::function<void()> body = [=] {
    callTwin<P...>(Kernel, arguments, std::index_sequence_for<P...>());
  };
  for (blockIdx.z = 0; blockIdx.z < grid[2]; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < grid[1]; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < grid[0]; ++blockIdx.x)
        shim::block.run(block[0], block[1], body);
}

template <auto Kernel, typename... P> void announce(void (*kernel)(P...)) {
  static const Parameter parameters[] = {
      {uint32_t(sizeof(P)), std::is_pointer_v<P>}...};
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(kernel), &info) || !info.dli_sname) {
    std::fprintf(stderr, "a twin's kernel is no exported function\n");
    std::abort();
  }
  static const Twin twin = {info.dli_sname, sizeof...(P), parameters,
                            runTwin<Kernel, P...>};
  fsdp_fake_announce(&twin);
}

/// Announces the twins of these kernels while the library is loaded.
template <auto... Kernels> struct Twins {
  Twins() { (announce<Kernels>(Kernels), ...); }
};

} // namespace fsdp::fake
#endif // FSDP_CUDA_SHIM

#endif // FSDP_TEST_FAKECUDA_TWIN_H
