//===- Client.h - A process that uses the stand-in device -------*- C++ -*-===//
//
// In the stand-in libcudart; the other stand-in libraries use it from there.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_FAKECUDA_CLIENT_H
#define FSDP_TEST_FAKECUDA_CLIENT_H

#include "../FaultText.h"
#include "../Wire.h"
#include <atomic>
#include <cstdio>
#include <cuda_runtime_api.h>
#include <map>
#include <mutex>
#include <string>
#include <vector>

struct CUstream_st {
  uint32_t number;
  int priority;
};
struct CUevent_st {
  uint32_t number;
};
struct CUgraph_st {
  uint32_t number;
};
struct CUgraphExec_st {
  uint32_t number;
};

namespace fsdp::fake {

/// The connection to the device and what this process has made there. While one
/// thread waits for an answer, others may issue work.
class Client {
public:
  /// Connects at the first use; ends the process where there is no device.
  static Client &get();

  /// Issues work: `call` with its structure and `bytes` more.
  template <typename T>
  cudaError_t send(Call call, const T &body, const void *more = nullptr,
                   uint64_t bytes = 0) {
    if (isCapturing())
      return ask(call, body, nullptr, more, bytes);
    return post(call, /*isAsked=*/false, &body, sizeof body, more, bytes);
  }
  /// Asks and waits. `result` gets the answer's bytes.
  template <typename T>
  cudaError_t ask(Call call, const T &body, std::vector<char> *result = nullptr,
                  const void *more = nullptr, uint64_t bytes = 0) {
    std::lock_guard<std::mutex> lock(asking);
    cudaError_t status =
        post(call, /*isAsked=*/true, &body, sizeof body, more, bytes);
    return status == cudaSuccess ? await(result) : status;
  }

  cudaError_t allocate(uint64_t bytes, bool isHost, void **memory);
  cudaError_t free(void *memory, bool isHost);

  enum class Place { Pageable, Pinned, Device };
  Place placeOf(const void *pointer);

  uint32_t nextNumber() { return ++numbers; }

  /// A capture begins, or ends.
  void countCapture(int change) { captures += change; }
  /// True while a stream is captured: then calls can be refused at once.
  bool isCapturing() const { return captures > 0; }

  /// What the device said of the last error, which may have ended all.
  const std::string &lastText() const { return text; }
  bool failed() const { return hasFailed; }
  /// The last error of a call; an error of the device is never forgotten.
  cudaError_t lastError(bool forget);
  /// True where a fault of this kind is planted in the process: at the N-th
  /// call of this function with it, on the ranks that it names.
  bool isPlanted(const char *kind);
  /// A call that the stand-in refuses: says so and returns `status`.
  cudaError_t refuse(const std::string &what,
                     cudaError_t status = cudaErrorInvalidValue);

private:
  Client();
  cudaError_t post(Call call, bool isAsked, const void *body,
                   uint64_t bodyBytes, const void *more, uint64_t moreBytes);
  cudaError_t await(std::vector<char> *result);
  bool write(const void *data, uint64_t bytes);
  bool read(void *data, uint64_t bytes);
  cudaError_t lost();

  struct Memory {
    uint64_t bytes;
    bool isHost;
  };
  std::mutex asking;          // until the answer is there
  std::mutex writing;         // of one message
  std::mutex mutex;           // of `memory`
  int socket = -1, file = -1; // the file came with the last answer
  std::atomic<uint32_t> numbers{0};
  const int rank;
  const FaultText fault;
  std::atomic<uint64_t> faultCalls{0}; // that its kind concerns
  std::map<uintptr_t, Memory> memory;
  std::string text;
  cudaError_t refused = cudaSuccess;  // of the last refused call
  std::atomic<bool> hasFailed{false}; // `text` says why
  std::atomic<int> captures{0};
};

inline uint64_t addressOf(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}
inline uint32_t numberOf(cudaStream_t stream) {
  return stream ? stream->number : kLegacyStream;
}

/// A function of a library that the stand-in does not have: says its name.
int refuseFunction(const char *name, int status);

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_CLIENT_H
