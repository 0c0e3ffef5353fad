//===- Memory.cpp - Memory, copies and fills of the CUDA runtime ----------===//
//
// What a copy waits for follows "API synchronization behavior" of the CUDA
// manual: bytes of pageable memory are taken at the call, of pinned memory when
// the stream comes to it; a copy to pageable memory is over when it returns.
//
//===----------------------------------------------------------------------===//
#include "Client.h"
#include <cstring>

using namespace fsdp::fake;
using Place = Client::Place;

//===----------------------------------------------------------------------===//
// Allocation
//===----------------------------------------------------------------------===//

extern "C" cudaError_t cudaMalloc(void **memory, size_t bytes) {
  return Client::get().allocate(bytes, /*isHost=*/false, memory);
}
extern "C" cudaError_t cudaFree(void *memory) {
  return Client::get().free(memory, /*isHost=*/false);
}
extern "C" cudaError_t cudaMallocHost(void **memory, size_t bytes) {
  return Client::get().allocate(bytes, /*isHost=*/true, memory);
}
extern "C" cudaError_t cudaHostAlloc(void **memory, size_t bytes,
                                     unsigned flags) {
  if (flags & ~unsigned(cudaHostAllocPortable))
    return Client::get().refuse("cudaHostAlloc knows only Default and "
                                "Portable");
  return cudaMallocHost(memory, bytes);
}
extern "C" cudaError_t cudaFreeHost(void *memory) {
  return Client::get().free(memory, /*isHost=*/true);
}

extern "C" cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
  *available = *total = size_t(80) << 30;
  return cudaSuccess;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

static bool isDevice(Place place) { return place == Place::Device; }

/// True if the pointers are what the call says of them.
static bool isKind(cudaMemcpyKind kind, Place from, Place to) {
  switch (kind) {
  case cudaMemcpyHostToHost:
    return !isDevice(from) && !isDevice(to);
  case cudaMemcpyHostToDevice:
    return !isDevice(from) && isDevice(to);
  case cudaMemcpyDeviceToHost:
    return isDevice(from) && !isDevice(to);
  case cudaMemcpyDeviceToDevice:
    return isDevice(from) && isDevice(to);
  case cudaMemcpyDefault:
    return true;
  }
  return false;
}

static cudaError_t copyOut(uint32_t stream, void *to, const void *from,
                           size_t bytes) {
  std::vector<char> result;
  cudaError_t status = Client::get().ask(
      Call::CopyOut, HostCopy{stream, addressOf(from), bytes}, &result);
  if (status == cudaSuccess)
    std::memcpy(to, result.data(), bytes);
  return status;
}

static cudaError_t copy(void *to, const void *from, size_t bytes,
                        cudaMemcpyKind kind, uint32_t stream, bool waits) {
  Client &client = Client::get();
  Place source = client.placeOf(from), target = client.placeOf(to);
  if (!isKind(kind, source, target))
    return client.refuse("a copy whose pointers are not of the kind it says");
  if (source == Place::Pageable && target == Place::Pageable)
    return client.refuse("a copy between two places of pageable memory");
  if (bytes == 0)
    return cudaSuccess;
  if (target == Place::Pageable)
    return copyOut(stream, to, from, bytes);
  if (source == Place::Pageable)
    return client.send(Call::CopyIn, HostCopy{stream, addressOf(to), bytes},
                       from, bytes);
  const void *ofDevice = source == Place::Device ? from : to;
  if (client.isPlanted("host-read"))
    (void)*static_cast<const volatile char *>(ofDevice);
  if (client.isPlanted("host-write"))
    *static_cast<volatile char *>(const_cast<void *>(ofDevice)) = 0;
  // What a host writes after the call may be what the copy takes. It always is
  // if the host writes before.
  if (source == Place::Pinned && client.isPlanted("reuse-pinned"))
    *static_cast<char *>(const_cast<void *>(from)) ^= 1;
  cudaError_t status = client.send(
      Call::Copy, Copy{stream, addressOf(from), addressOf(to), bytes});
  // Between two places of the device not even the synchronous call waits.
  bool touchesHost = source == Place::Pinned || target == Place::Pinned;
  if (status == cudaSuccess && waits && touchesHost)
    status = client.ask(Call::Synchronize, StreamCall{stream, 0, false});
  return status;
}

extern "C" cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                                       cudaMemcpyKind kind,
                                       cudaStream_t stream) {
  return copy(to, from, bytes, kind, numberOf(stream), /*waits=*/false);
}
extern "C" cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                                  cudaMemcpyKind kind) {
  return copy(to, from, bytes, kind, kLegacyStream, /*waits=*/true);
}

//===----------------------------------------------------------------------===//
// Fills
//===----------------------------------------------------------------------===//

extern "C" cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes,
                                       cudaStream_t stream) {
  if (bytes == 0)
    return cudaSuccess;
  return Client::get().send(
      Call::Fill,
      Fill{numberOf(stream), uint32_t(value & 0xff), addressOf(memory), bytes});
}
/// On the legacy stream, which streams made with NonBlocking do not wait for.
extern "C" cudaError_t cudaMemset(void *memory, int value, size_t bytes) {
  return cudaMemsetAsync(memory, value, bytes, nullptr);
}
