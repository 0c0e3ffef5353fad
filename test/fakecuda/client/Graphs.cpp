//===- Graphs.cpp - Captures and graphs of the CUDA runtime ---------------===//
//
// What a capture records, and what it refuses, the device decides; while there
// is one, it answers every call.
//
//===----------------------------------------------------------------------===//
#include "Client.h"
#include <cstring>

using namespace fsdp::fake;

//===----------------------------------------------------------------------===//
// Capture
//===----------------------------------------------------------------------===//

static CaptureMode modeOf(cudaStreamCaptureMode mode) {
  switch (mode) {
  case cudaStreamCaptureModeGlobal:
    return CaptureMode::Global;
  case cudaStreamCaptureModeThreadLocal:
    return CaptureMode::ThreadLocal;
  case cudaStreamCaptureModeRelaxed:
    break;
  }
  return CaptureMode::Relaxed;
}

extern "C" cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                              cudaStreamCaptureMode mode) {
  Client &client = Client::get();
  cudaError_t status = client.ask(Call::BeginCapture,
                                  BeginCapture{numberOf(stream), modeOf(mode)});
  if (status == cudaSuccess)
    client.countCapture(1);
  return status;
}

/// True if the stream is not captured any more, whatever has become of it.
static bool hasEnded(cudaError_t status) {
  return status == cudaSuccess || status == cudaErrorStreamCaptureInvalidated ||
         status == cudaErrorStreamCaptureUnjoined;
}

extern "C" cudaError_t cudaStreamEndCapture(cudaStream_t stream,
                                            cudaGraph_t *graph) {
  Client &client = Client::get();
  *graph = nullptr;
  uint32_t number = client.nextNumber();
  cudaError_t status =
      client.ask(Call::EndCapture, EndCapture{numberOf(stream), number});
  if (hasEnded(status))
    client.countCapture(-1);
  if (status == cudaSuccess)
    *graph = new CUgraph_st{number};
  return status;
}

static cudaError_t captureInfo(cudaStream_t stream,
                               cudaStreamCaptureStatus *state,
                               unsigned long long *id) {
  std::vector<char> result;
  cudaError_t status = Client::get().ask(
      Call::CaptureInfo, StreamCall{numberOf(stream), 0, false}, &result);
  if (status != cudaSuccess)
    return status;
  CaptureInfo info;
  std::memcpy(&info, result.data(), sizeof info);
  using State = CaptureInfo::State;
  *state = info.state == State::None     ? cudaStreamCaptureStatusNone
           : info.state == State::Active ? cudaStreamCaptureStatusActive
                                         : cudaStreamCaptureStatusInvalidated;
  if (id)
    *id = info.id;
  return cudaSuccess;
}

extern "C" cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                             cudaStreamCaptureStatus *state) {
  return captureInfo(stream, state, nullptr);
}
extern "C" cudaError_t
cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *state,
                         unsigned long long *id, cudaGraph_t *graph,
                         const cudaGraphNode_t **nodes,
                         const cudaGraphEdgeData **edges, size_t *count) {
  if (graph || nodes || edges || count)
    return Client::get().refuse("cudaStreamGetCaptureInfo knows state and "
                                "number alone",
                                cudaErrorNotSupported);
  return captureInfo(stream, state, id);
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

extern "C" cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable,
                                            cudaGraph_t graph,
                                            unsigned long long flags) {
  Client &client = Client::get();
  *executable = nullptr;
  constexpr unsigned long long priorities =
      cudaGraphInstantiateFlagUseNodePriority;
  if (flags & ~priorities)
    return client.refuse("cudaGraphInstantiate knows only UseNodePriority");
  uint32_t number = client.nextNumber();
  cudaError_t status =
      client.ask(Call::Instantiate,
                 Instantiate{graph->number, number, flags == priorities});
  if (status == cudaSuccess)
    *executable = new CUgraphExec_st{number};
  return status;
}

/// There is nothing to prepare.
extern "C" cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  return cudaSuccess;
}
extern "C" cudaError_t cudaGraphLaunch(cudaGraphExec_t executable,
                                       cudaStream_t stream) {
  return Client::get().send(Call::GraphLaunch,
                            GraphCall{executable->number, numberOf(stream)});
}
extern "C" cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  cudaError_t status =
      Client::get().send(Call::DestroyGraph, GraphCall{graph->number, 0});
  delete graph;
  return status;
}
extern "C" cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  cudaError_t status = Client::get().send(Call::DestroyExecutable,
                                          GraphCall{executable->number, 0});
  delete executable;
  return status;
}
