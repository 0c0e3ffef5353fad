//===- Ceilings.cpp - What a GPU can do at most ---------------------------===//
#include "Check.h"
#include "fsdp/Target/CudaWorkspaces.h"

using namespace fsdp;
using namespace fsdp::rt;

static constexpr int kTimes = 10;

static void checkCopy(size_t bytes) {
  gpu::Memory from(bytes), to(bytes);
  require(cudaMemsetAsync(from.at(), 1, bytes, gpu::stream()), "fill");
  double seconds = gpu::bestSeconds(kTimes, [&] {
    require(cudaMemcpyAsync(to.at(), from.at(), bytes, cudaMemcpyDeviceToDevice,
                            gpu::stream()),
            "copy");
  });
  // Read and written.
  gpu::print({{"name", "copy"},
              {"bytes", bytes},
              {"GB/s", 2e-9 * double(bytes) / seconds}});
}

static void checkMatmul(int64_t side) {
  GemmDesc desc{
      1,    side,  side,        side,        false,
      true, false, DType::BF16, DType::BF16, cuda::kGemmWorkspaceBytes};
  cublasLtHandle_t handle = nullptr;
  require(cublasLtCreate(&handle), "cuBLASLt");
  size_t elements = size_t(side) * size_t(side);
  // Zeros take less power than numbers do, and so less time.
  gpu::Numbers lhs(elements, DType::BF16, 1), rhs(elements, DType::BF16, 2);
  gpu::Memory out(elements * size_t(sizeOf(DType::BF16))),
      workspace(size_t(desc.workspace));
  GemmPlan plan(handle, desc);
  double seconds = gpu::bestSeconds(kTimes, [&] {
    plan.run(gpu::stream(), lhs.at(), rhs.at(), nullptr, out.at(),
             workspace.at());
  });
  gpu::print({{"name", "matmul"},
              {"side", side},
              {"TFLOP/s",
               2e-12 * double(side) * double(side) * double(side) / seconds}});
  require(cublasLtDestroy(handle), "cuBLASLt");
}

void gpu::checkCeilings(size_t bytes, int64_t side) {
  checkCopy(bytes);
  checkMatmul(side);
}
