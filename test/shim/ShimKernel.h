//===- ShimKernel.h - A kernel that can be called on the host ---*- C++ -*-===//
#ifndef FSDP_TEST_SHIM_SHIMKERNEL_H
#define FSDP_TEST_SHIM_SHIMKERNEL_H

#include "fsdp/Runtime/Runtime.h"
#include <cstring>
#include <type_traits>

/// A kernel and the shape of its launch, called with its buffers. It may be
/// copied.
class ShimKernel {
public:
  ShimKernel() = default;
  template <typename F> explicit ShimKernel(const F &kernel) {
    static_assert(std::is_trivially_copyable_v<F> &&
                  sizeof kernel <= sizeof state);
    std::memcpy(state, &kernel, sizeof kernel);
    call = [](const void *f, const fsdp::rt::Ptr *args) {
      (*static_cast<const F *>(f))(args);
    };
  }
  explicit operator bool() const { return call; }
  void operator()(const fsdp::rt::Ptr *args) const { call(state, args); }

private:
  alignas(void *) unsigned char state[48];
  void (*call)(const void *, const fsdp::rt::Ptr *args) = nullptr;
};

#endif // FSDP_TEST_SHIM_SHIMKERNEL_H
