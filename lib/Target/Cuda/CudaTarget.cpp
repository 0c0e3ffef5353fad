//===- CudaTarget.cpp - NVIDIA GPUs: facts --------------------------------===//
#include "fsdp/Target/CudaWorkspaces.h"
#include "fsdp/Target/Target.h"

using namespace fsdp::rt;

static constexpr Target facts() {
  Target target;
  target.name = "cuda";
  target.summary = "NVIDIA GPUs";
  target.whoseWorkspaces = "a GPU's";
  target.language = "CUDA C++";
  target.sourceStage = "cuda";
  // cudaMalloc aligns the arena to as many bytes, and cuBLASLt is told that
  // operands begin at multiples of them.
  target.alignment = 256;
  // An H100 or H200 has 132 multiprocessors.
  target.leastRowBlocks = 132;
  target.collectiveWorkspaceBytes = cuda::collectiveWorkspaceBytes;
  target.hasCommunicators = true;
  target.architecture = "sm_";
  // Ranks see that another is lost, and one of them says why.
  target.endSeconds = 10;
  target.howToBuild = "this build has no CUDA target; build fsdp where CMake "
                      "finds the CUDA Toolkit, cuDNN and NCCL";
  return target;
}

const Target fsdp::rt::kCudaTarget = facts();
