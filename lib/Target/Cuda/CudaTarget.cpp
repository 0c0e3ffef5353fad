//===- CudaTarget.cpp - NVIDIA GPUs: facts --------------------------------===//
#include "fsdp/Target/Target.h"

using namespace fsdp::rt;

static constexpr Target facts() {
  Target cuda;
  cuda.name = "cuda";
  cuda.summary = "NVIDIA GPUs";
  cuda.whoseWorkspaces = "a GPU's";
  cuda.language = "CUDA C++";
  cuda.sourceStage = "cuda";
  // cudaMalloc aligns the arena to as many bytes, and cuBLASLt is told that
  // operands begin at multiples of them.
  cuda.alignment = 256;
  cuda.hasCommunicators = true;
  cuda.architecture = "sm_";
  // Ranks see that another is lost, and one of them says why.
  cuda.endSeconds = 10;
  cuda.howToBuild = "this build has no CUDA target; build fsdp where CMake "
                    "finds the CUDA Toolkit, cuDNN and NCCL";
  return cuda;
}

const Target fsdp::rt::kCudaTarget = facts();
