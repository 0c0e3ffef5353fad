//===- Streams.cpp - Streams and events of the CUDA runtime ---------------===//
#include "Client.h"
#include <cstdlib>
#include <cstring>
#include <cuda.h>

using namespace fsdp::fake;

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

static constexpr int kLeastPriority = 0, kGreatestPriority = -5;

extern "C" cudaError_t cudaDeviceGetStreamPriorityRange(int *least,
                                                        int *greatest) {
  *least = kLeastPriority;
  *greatest = kGreatestPriority;
  return cudaSuccess;
}

extern "C" cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream,
                                                    unsigned flags,
                                                    int priority) {
  Client &client = Client::get();
  // A blocking stream would wait for the legacy stream, and that for it.
  if (flags != cudaStreamNonBlocking)
    return client.refuse("streams must be made with cudaStreamNonBlocking");
  if (priority > kLeastPriority || priority < kGreatestPriority)
    return client.refuse("a stream's priority outside the range");
  *stream = new CUstream_st{client.nextNumber(), priority};
  return client.send(Call::CreateStream,
                     StreamCall{(*stream)->number, priority, false});
}
extern "C" cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream,
                                                 unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, kLeastPriority);
}
extern "C" cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
extern "C" cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  cudaError_t status = Client::get().send(
      Call::DestroyStream, StreamCall{numberOf(stream), 0, false});
  delete stream;
  return status;
}

extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (Client::get().isPlanted("drop-synchronize"))
    return cudaSuccess;
  return Client::get().ask(Call::Synchronize,
                           StreamCall{numberOf(stream), 0, false});
}
extern "C" cudaError_t cudaDeviceSynchronize() {
  return Client::get().ask(Call::Synchronize, StreamCall{0, 0, true});
}
extern "C" cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return Client::get().ask(Call::IsDone,
                           StreamCall{numberOf(stream), 0, false});
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

extern "C" cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event,
                                                unsigned flags) {
  *event = new CUevent_st{Client::get().nextNumber()};
  return cudaSuccess;
}
extern "C" cudaError_t cudaEventCreate(cudaEvent_t *event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
extern "C" cudaError_t cudaEventDestroy(cudaEvent_t event) {
  cudaError_t status =
      Client::get().send(Call::DestroyEvent, EventCall{event->number, 0});
  delete event;
  return status;
}
extern "C" cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return Client::get().send(Call::Record,
                            EventCall{event->number, numberOf(stream)});
}
extern "C" cudaError_t cudaStreamWaitEvent(cudaStream_t stream,
                                           cudaEvent_t event, unsigned flags) {
  return Client::get().send(Call::Wait,
                            EventCall{event->number, numberOf(stream)});
}
extern "C" cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (Client::get().isPlanted("drop-event-synchronize"))
    return cudaSuccess;
  return Client::get().ask(Call::EventSynchronize, EventCall{event->number, 0});
}
extern "C" cudaError_t cudaEventQuery(cudaEvent_t event) {
  return Client::get().ask(Call::EventIsDone, EventCall{event->number, 0});
}
extern "C" cudaError_t
cudaEventElapsedTime(float *milliseconds, cudaEvent_t first, cudaEvent_t last) {
  std::vector<char> result;
  cudaError_t status = Client::get().ask(
      Call::EventElapsed, EventPair{first->number, last->number}, &result);
  if (status == cudaSuccess)
    std::memcpy(milliseconds, result.data(), sizeof *milliseconds);
  return status;
}

//===----------------------------------------------------------------------===//
// Words of pinned memory
//===----------------------------------------------------------------------===//

static bool canWrite() { return !std::getenv("FSDP_FAKECUDA_NO_WRITES"); }

static int writeValue(cudaStream_t stream, unsigned long long address,
                      uint64_t value, unsigned flags) {
  Client &client = Client::get();
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  auto *place = reinterpret_cast<void *>(address);
  if (flags != 0 || address % sizeof value != 0 ||
      client.placeOf(place) != Client::Place::Pinned)
    return client.refuse("cuStreamWriteValue64 elsewhere than to a word of "
                         "pinned memory, or with flags");
  if (!canWrite())
    return client.refuse("cuStreamWriteValue64 on a GPU that has it not",
                         cudaErrorNotSupported);
  return client.send(Call::Write, Write{numberOf(stream), address, value});
}

static int deviceAttribute(int *value, int name, int) {
  if (name != CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS)
    return Client::get().refuse(
        "cuDeviceGetAttribute does not know attribute " + std::to_string(name),
        cudaErrorNotSupported);
  const char *no = std::getenv("FSDP_FAKECUDA_NO_WRITES");
  if (no && std::strcmp(no, "unknown") == 0)
    return cudaErrorInvalidValue;
  *value = canWrite();
  return cudaSuccess;
}

/// The driver has two functions.
extern "C" cudaError_t
cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned,
                                 unsigned long long,
                                 cudaDriverEntryPointQueryResult *result) {
  *function = nullptr;
  if (std::strcmp(name, "cuStreamWriteValue64") == 0)
    *function = reinterpret_cast<void *>(&writeValue);
  if (std::strcmp(name, "cuDeviceGetAttribute") == 0)
    *function = reinterpret_cast<void *>(&deviceAttribute);
  *result = *function ? cudaDriverEntryPointSuccess
                      : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
