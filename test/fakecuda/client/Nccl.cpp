//===- Nccl.cpp - Communicators and transfers -----------------------------===//
//
// A group call is one message per communicator and stream. Who meets whom, and
// whether both agree, is found by the device, which sees all ranks.
//
//===----------------------------------------------------------------------===//
#include "../RankVariable.h"
#include "Client.h"
#include <cstdlib>
#include <cstring>
#include <nccl.h>
#include <unistd.h>
#include <utility>

using namespace fsdp::fake;

struct ncclComm {
  uint32_t number;
  int rank, size;
};

namespace {

/// The transfers of an open group call, by communicator in order of use.
struct Part {
  ncclComm *comm;
  cudaStream_t stream;
  std::vector<Transfer> transfers;
};
thread_local std::vector<Part> parts;
thread_local int depth = 0;
thread_local bool hasFailed = false; // one of its calls, and so all of it

} // namespace

static ncclResult_t refuse(const char *what) {
  std::fprintf(stderr, "fakecuda: NCCL: %s\n", what);
  return ncclInvalidUsage;
}
static ncclResult_t resultOf(cudaError_t status) {
  return status == cudaSuccess                 ? ncclSuccess
         : status == cudaErrorMemoryAllocation ? ncclSystemError
                                               : ncclUnhandledCudaError;
}

extern "C" const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess:
    return "no error";
  case ncclSystemError:
    return "out of memory";
  case ncclRemoteError:
    return "remote process exited or there was a network error";
  case ncclUnhandledCudaError:
    return Client::get().lastText().c_str();
  default:
    return "the stand-in NCCL refuses this";
  }
}

extern "C" ncclResult_t ncclMemAlloc(void **memory, size_t bytes) {
  return resultOf(Client::get().allocate(bytes, /*isHost=*/false, memory));
}
extern "C" ncclResult_t ncclMemFree(void *memory) {
  return resultOf(Client::get().free(memory, /*isHost=*/false));
}

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

extern "C" ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  std::vector<char> result;
  cudaError_t status = Client::get().ask(Call::UniqueId, UniqueId{}, &result);
  *id = {};
  if (status == cudaSuccess)
    std::memcpy(id, result.data(), sizeof(UniqueId));
  return resultOf(status);
}

/// Asks until all ranks have come, and makes the communicator.
template <typename T>
static ncclResult_t rendezvous(Call call, const T &body, ncclComm_t *comm) {
  std::vector<char> result;
  cudaError_t status = Client::get().ask(call, body, &result);
  *comm = nullptr;
  // A rank that takes no part in a split gets nothing.
  if (status == cudaSuccess && !result.empty()) {
    CommPlace place;
    std::memcpy(&place, result.data(), sizeof place);
    *comm = new ncclComm{body.comm, place.rank, place.size};
  }
  return resultOf(status);
}

extern "C" ncclResult_t ncclCommInitRank(ncclComm_t *comm, int size,
                                         ncclUniqueId id, int rank) {
  while (Client::get().isPlanted("hang-connect"))
    ::pause();
  UniqueId value;
  std::memcpy(&value, &id, sizeof value);
  return rendezvous(
      Call::CommInit,
      CommInit{value.value, Client::get().nextNumber(), rank, size}, comm);
}

extern "C" ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key,
                                      ncclComm_t *comm, ncclConfig_t *config) {
  if (config)
    return refuse("ncclCommSplit with a configuration");
  return rendezvous(
      Call::CommSplit,
      CommSplit{parent->number, Client::get().nextNumber(), color, key}, comm);
}

extern "C" ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  cudaError_t status =
      Client::get().ask(Call::CommDestroy, CommDestroy{comm->number});
  delete comm;
  return resultOf(status);
}
/// What is issued on it does not run any more. Another thread may be about to
/// use it, so it stays.
extern "C" ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return resultOf(
      Client::get().send(Call::CommAbort, CommDestroy{comm->number}));
}
/// Does not wait for a thread that waits for the device.
extern "C" ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *error) {
  Client &client = Client::get();
  *error = client.isPlanted("async-error") ? ncclRemoteError
           : client.failed()               ? ncclUnhandledCudaError
                                           : ncclSuccess;
  return ncclSuccess;
}

static ncclResult_t registerMemory(const ncclComm &comm, bool isSymmetric,
                                   void *memory, size_t bytes, void **handle) {
  auto *registration = new Registration{comm.number, isSymmetric,
                                        addressOf(memory), uint64_t(bytes)};
  *handle = registration;
  return resultOf(Client::get().send(Call::Register, *registration));
}
extern "C" ncclResult_t ncclCommRegister(ncclComm *const comm, void *memory,
                                         size_t bytes, void **handle) {
  if (namesThisRank("FSDP_FAKECUDA_UNREGISTERED")) {
    *handle = nullptr;
    return ncclInvalidUsage;
  }
  return registerMemory(*comm, /*isSymmetric=*/false, memory, bytes, handle);
}
extern "C" ncclResult_t ncclCommDeregister(ncclComm *const, void *handle) {
  auto *registration = static_cast<Registration *>(handle);
  cudaError_t status = Client::get().send(Call::Deregister, *registration);
  delete registration;
  return resultOf(status);
}

/// Where windows are missing NCCL says success and makes none; what it refuses,
/// it may still register as usual.
extern "C" ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory,
                                               size_t bytes,
                                               ncclWindow_t *window,
                                               int flags) {
  if (const char *none = std::getenv("FSDP_FAKECUDA_NO_WINDOWS"))
    return std::strcmp(none, "refused") == 0 ? ncclInvalidUsage : ncclSuccess;
  if (flags != NCCL_WIN_COLL_SYMMETRIC)
    return refuse("a window that is not symmetric");
  if (namesThisRank("FSDP_FAKECUDA_UNREGISTERED"))
    return ncclInvalidUsage;
  void *handle = nullptr;
  ncclResult_t status =
      registerMemory(*comm, /*isSymmetric=*/true, memory, bytes, &handle);
  *window = static_cast<ncclWindow_t>(handle);
  return status;
}
extern "C" ncclResult_t ncclCommWindowDeregister(ncclComm_t comm,
                                                 ncclWindow_t window) {
  return ncclCommDeregister(comm, window);
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

static ncclResult_t issueGroup() {
  std::vector<Part> all = std::move(parts);
  parts.clear();
  for (const Part &part : all) {
    cudaError_t status = Client::get().send(
        Call::Group, Group{numberOf(part.stream), part.comm->number},
        part.transfers.data(), part.transfers.size() * sizeof(Transfer));
    if (status != cudaSuccess)
      return resultOf(status);
  }
  return ncclSuccess;
}

extern "C" ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
extern "C" ncclResult_t ncclGroupEnd() {
  if (depth == 0)
    return refuse("ncclGroupEnd without ncclGroupStart");
  if (--depth > 0)
    return ncclSuccess;
  if (!std::exchange(hasFailed, false))
    return issueGroup();
  parts.clear();
  return ncclInvalidUsage;
}

static ncclResult_t add(ncclComm *comm, cudaStream_t stream,
                        const Transfer &transfer) {
  Client &client = Client::get();
  if (client.isCapturing() && client.isPlanted("captured-transfer")) {
    hasFailed = depth > 0;
    return refuse("a transfer while a stream is captured");
  }
  Part *mine = nullptr;
  for (Part &part : parts)
    if (part.comm == comm)
      mine = &part;
  if (!mine) {
    parts.push_back({comm, stream, {}});
    mine = &parts.back();
  }
  if (mine->stream != stream)
    return refuse("a group call on two streams of one communicator");
  mine->transfers.push_back(transfer);
  return depth > 0 ? ncclSuccess : issueGroup();
}

static bool isBytes(ncclDataType_t type) {
  return type == ncclInt8 || type == ncclUint8;
}

extern "C" ncclResult_t ncclAllGather(const void *from, void *to, size_t count,
                                      ncclDataType_t type, ncclComm_t comm,
                                      cudaStream_t stream) {
  if (!isBytes(type))
    return refuse("a transfer of other things than bytes");
  return add(
      comm, stream,
      {TransferKind::AllGather, -1, addressOf(from), addressOf(to), count});
}
extern "C" ncclResult_t ncclSend(const void *from, size_t count,
                                 ncclDataType_t type, int peer, ncclComm_t comm,
                                 cudaStream_t stream) {
  if (!isBytes(type) || peer < 0 || peer >= comm->size)
    return refuse("a send of other things than bytes, or to nobody");
  return add(comm, stream,
             {TransferKind::Send, peer, addressOf(from), 0, count});
}
extern "C" ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type,
                                 int peer, ncclComm_t comm,
                                 cudaStream_t stream) {
  if (!isBytes(type) || peer < 0 || peer >= comm->size)
    return refuse("a receive of other things than bytes, or from nobody");
  return add(comm, stream,
             {TransferKind::Receive, peer, 0, addressOf(to), count});
}

static SumType sumTypeOf(ncclDataType_t type, ncclRedOp_t operation) {
  if (operation != ncclSum)
    return SumType::None;
  return type == ncclFloat32 ? SumType::F32
         : type == ncclInt64 ? SumType::I64
                             : SumType::None;
}

static ncclResult_t addSum(ncclComm *comm, cudaStream_t stream,
                           TransferKind kind, int root, const void *from,
                           void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation) {
  SumType sum = sumTypeOf(type, operation);
  if (sum == SumType::None)
    return refuse("a reduction that is no sum of f32 or of i64");
  size_t bytes = count * (sum == SumType::F32 ? 4 : 8);
  return add(comm, stream,
             {kind, root, addressOf(from), addressOf(to), bytes, sum});
}

extern "C" ncclResult_t ncclAllReduce(const void *from, void *to, size_t count,
                                      ncclDataType_t type, ncclRedOp_t op,
                                      ncclComm_t comm, cudaStream_t stream) {
  return addSum(comm, stream, TransferKind::AllReduce, -1, from, to, count,
                type, op);
}
extern "C" ncclResult_t ncclReduceScatter(const void *from, void *to,
                                          size_t count, ncclDataType_t type,
                                          ncclRedOp_t op, ncclComm_t comm,
                                          cudaStream_t stream) {
  return addSum(comm, stream, TransferKind::ReduceScatter, -1, from, to, count,
                type, op);
}
extern "C" ncclResult_t ncclReduce(const void *from, void *to, size_t count,
                                   ncclDataType_t type, ncclRedOp_t op,
                                   int root, ncclComm_t comm,
                                   cudaStream_t stream) {
  if (root < 0 || root >= comm->size)
    return refuse("a reduction to nobody");
  return addSum(comm, stream, TransferKind::Reduce, root, from, to, count, type,
                op);
}

extern "C" ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
