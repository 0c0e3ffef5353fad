//===- HostBuild.h - A kernel compiled for the host -------------*- C++ -*-===//
//
// The source of a kernel compiled for the host through test/shim/CudaShim.h. A
// library of host builds is loaded by the device and announces each by its
// mangled name, which nvcc gives the kernel too.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_FAKECUDA_HOSTBUILD_H
#define FSDP_TEST_FAKECUDA_HOSTBUILD_H

#include <cstdint>

namespace fsdp::fake {

struct Parameter {
  uint32_t bytes;
  bool isPointer;
};

struct HostBuild {
  const char *name; // mangled
  uint32_t count;
  const Parameter *parameters;
  /// Runs all threads of a grid; `arguments` holds their addresses.
  void (*run)(const uint32_t (&grid)[3], const uint32_t (&block)[3],
              void **arguments);
};

} // namespace fsdp::fake

/// The device's: takes note of a host build, which must live on.
extern "C" void fsdp_fake_announce(const fsdp::fake::HostBuild *build);

#ifdef FSDP_CUDA_SHIM
#include <dlfcn.h>

namespace fsdp::fake {

template <typename... P, size_t... I>
void callHostBuild(void (*kernel)(P...), void **arguments,
                   std::index_sequence<I...>) {
  kernel(*static_cast<P *>(arguments[I])...);
}

/// Once for all kernels: inlined, it would take longer to compile than they do.
[[gnu::noinline]] inline void runGrid(const uint32_t (&grid)[3],
                                      const uint32_t (&block)[3],
                                      const shim::Body &body) {
  for (blockIdx.z = 0; blockIdx.z < grid[2]; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < grid[1]; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < grid[0]; ++blockIdx.x)
        shim::block.run(block[0], block[1], body);
}

template <auto Kernel, typename... P>
void runHostBuild(const uint32_t (&grid)[3], const uint32_t (&block)[3],
                  void **arguments) {
  runGrid(grid, block, [=] {
    callHostBuild<P...>(Kernel, arguments, std::index_sequence_for<P...>());
  });
}

template <auto Kernel, typename... P> void announce(void (*kernel)(P...)) {
  static const Parameter parameters[] = {
      {uint32_t(sizeof(P)), std::is_pointer_v<P>}...};
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(kernel), &info) || !info.dli_sname) {
    std::fprintf(stderr, "a host build's kernel is no exported function\n");
    std::abort();
  }
  static const HostBuild build = {info.dli_sname, sizeof...(P), parameters,
                                  runHostBuild<Kernel, P...>};
  fsdp_fake_announce(&build);
}

/// Announces the host builds of these kernels while the library is loaded.
template <auto... Kernels> struct HostBuilds {
  HostBuilds() { (announce<Kernels>(Kernels), ...); }
};

} // namespace fsdp::fake
#endif // FSDP_CUDA_SHIM

#endif // FSDP_TEST_FAKECUDA_HOSTBUILD_H
