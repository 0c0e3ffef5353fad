//===- Status.cpp - What failed calls of libraries end --------------------===//
#include "CudaContext.h"
#include "JobMonitor.h"

using namespace fsdp;
using namespace fsdp::rt;

const char *rt::statusText(cudaError_t status) {
  return cudaGetErrorString(status);
}

static thread_local bool isCapturing = false;

static const char *const kCapture = "making a CUDA graph of a training step";

/// Other threads of the process, as those of NCCL, may go on meanwhile with
/// what this one must not do.
Capturing::Capturing(cudaStream_t stream) : stream(stream) {
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
          kCapture);
  isCapturing = true;
}

Capturing::~Capturing() {
  isCapturing = false;
  if (!isOpen)
    return;
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(stream, &graph));
  if (graph)
    static_cast<void>(cudaGraphDestroy(graph));
  // That it is invalid has been said.
  static_cast<void>(cudaGetLastError());
}

cudaGraph_t Capturing::end() {
  isOpen = false;
  cudaGraph_t graph = nullptr;
  require(cudaStreamEndCapture(stream, &graph), kCapture);
  return graph;
}

void rt::failOnStepPath(const std::string &problem) {
  if (isCapturing)
    throw Error(std::string(kCapture) + ": " + problem);
  abortWorld(problem);
}

const char *rt::statusText(cublasStatus_t status) {
  return cublasLtGetStatusString(status);
}
const char *rt::statusText(ncclResult_t status) {
  return ncclGetErrorString(status);
}
const char *rt::statusText(cudnnStatus_t status) {
  return cudnnGetErrorString(status);
}

void rt::check(ncclResult_t status, const char *what) {
  if (status == ncclSuccess)
    return;
  std::string problem = std::string(what) + ": " + statusText(status);
  if (LivenessMonitor *monitor = jobMonitor(); monitor && !isCapturing)
    monitor->fail(problem);
  failOnStepPath(problem);
}
