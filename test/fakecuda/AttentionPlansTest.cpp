//===- AttentionPlansTest.cpp - What cuDNN's attention wants --------------===//
//
// Builds the CUDA runtime's attention with the real cuDNN and no GPU: cuDNN is
// told what the GPU is like, and a driver that has no device takes its kernels
// (driver/Driver.cpp). The compiler must have reserved what a plan wants.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Target/CudaWorkspaces.h"
#include "runtime/cuda/AttentionGraphs.h"
#include <gtest/gtest.h>

using namespace fsdp::rt;
namespace fe = cudnn_frontend;

/// What cuDNN would ask a GPU of compute capability `major`.0.
static std::shared_ptr<fe::DeviceProperties> gpuOf(int major) {
  std::string version = std::to_string(major * 100);
  std::string text =
      R"({"deviceName": "GPU", "cudaDeviceId": 0, "driverVer": 13000,)"
      R"("deviceVer": )" +
      version + R"(, "smVersion": )" + version + R"(, "ccMajor": )" +
      std::to_string(major) +
      R"(, "ccMinor": 0,)"
      R"("maxGridSize": [2147483647, 65535, 65535],)"
      R"("maxBlockSize": [1024, 1024, 64], "maxThreadsPerBlock": 1024,)"
      R"("maxThreadsPerSM": 2048, "maxCtasPerSM": 32, "warpSize": 32,)"
      R"("multiProcessorCount": 132, "regsPerBlock": 65536,)"
      R"("maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152,)"
      R"("maxSharedMemoryPerBlockOptin": 232448,)"
      R"("reservedSharedMemoryPerBlock": 1024,)"
      R"("maxSharedMemoryPerSM": 233472, "sharedMemoryPerSM": 233472,)"
      R"("l2CacheSize": 62914560, "totalGlobalMem": 150754820096,)"
      R"("smClockRateKHz": 1980000, "memClockRateKHz": 3201000,)"
      R"("memBusWidth": 6144, "memoryBusWidth": 6144, "isTccDriver": 0,)"
      R"("pciDeviceId": 0, "pciDeviceID": 0, "supportCoopLaunch": 1})";
  auto gpu = std::make_shared<fe::DeviceProperties>();
  std::vector<uint8_t> bytes(text.c_str(), text.c_str() + text.size() + 1);
  fe::error_t status = gpu->deserialize(bytes);
  EXPECT_TRUE(status.is_good()) << status.get_message();
  return gpu;
}

/// The bytes that a plan wants on such a GPU; -1 if there is none.
static int64_t wantedBytes(void (*describe)(fe::graph::Graph &,
                                            const AttentionDesc &),
                           const AttentionDesc &desc, int major) {
  fe::graph::Graph g;
  g.set_sm_version(major * 10);
  describe(g, desc);
  g.set_device_properties(gpuOf(major));
  int64_t bytes = -1;
  for (fe::error_t status :
       {g.validate(), g.build_operation_graph(),
        g.create_execution_plans({fe::HeurMode_t::A}), g.check_support(),
        g.build_plans(), g.get_workspace_size(bytes)})
    if (status.is_bad()) {
      ADD_FAILURE() << status.get_message();
      return -1;
    }
  return bytes;
}

static AttentionDesc shape(int64_t batch, int64_t tokens, int64_t heads,
                           int64_t kvHeads, int64_t headDim) {
  return {batch,   tokens, tokens, heads,      kvHeads,
          headDim, 0.125,  true,   DType::BF16};
}

/// A plan must exist and want no more than what is reserved.
static void expectRoom(const AttentionDesc &desc, int major) {
  SCOPED_TRACE(testing::Message()
               << desc.batch << " x " << desc.qLen << " tokens, " << desc.heads
               << " heads x " << desc.headDim << ", sm_" << major * 10);
  int64_t forward = wantedBytes(describeAttention, desc, major);
  EXPECT_GE(forward, 0);
  EXPECT_LE(forward, cuda::attentionWorkspaceBytes(desc));
  int64_t backward = wantedBytes(describeAttentionGrad, desc, major);
  EXPECT_GE(backward, 0);
  EXPECT_LE(backward, cuda::attentionGradWorkspaceBytes(desc));
}

/// Llama 8B, 1B and 405B at lengths that they train at, and lengths that fill
/// no tile.
TEST(AttentionPlans, FitIntoTheirWorkspaces) {
  for (const AttentionDesc &desc :
       {shape(1, 512, 32, 8, 128), shape(1, 8192, 32, 8, 128),
        shape(8, 2048, 32, 8, 64), shape(1, 8192, 128, 8, 128),
        shape(1, 36, 16, 16, 16), shape(3, 1000, 32, 8, 128)})
    expectRoom(desc, 9);
  for (int major : {8, 10})
    expectRoom(shape(1, 8192, 32, 8, 128), major);
}

/// Without a fixed order of sums the workspace is linear in the sequence.
TEST(AttentionPlans, FastOnesAreLinear) {
  for (int major : {8, 9, 10})
    for (int64_t tokens : {8192, 32768}) {
      AttentionDesc desc = shape(1, tokens, 32, 8, 128);
      int64_t exact = cuda::attentionGradWorkspaceBytes(desc);
      desc.fast = true;
      expectRoom(desc, major);
      EXPECT_LT(cuda::attentionGradWorkspaceBytes(desc) * 8, exact);
    }
}

/// Windows of one key, and of several tiles.
TEST(AttentionPlans, ExistForWindows) {
  for (int64_t window : {1, 1024}) {
    SCOPED_TRACE(testing::Message() << "window of " << window);
    AttentionDesc desc = shape(1, 4096, 32, 8, 128);
    desc.window = window;
    expectRoom(desc, 9);
  }
}

/// Tiles that are full leave only cuDNN's bookkeeping between both.
TEST(AttentionPlans, NoMoreIsReservedThanHopperWants) {
  for (int64_t tokens : {512, 8192}) {
    AttentionDesc desc = shape(1, tokens, 32, 8, 128);
    int64_t backward = wantedBytes(describeAttentionGrad, desc, 9);
    EXPECT_LE(cuda::attentionGradWorkspaceBytes(desc),
              backward + cuda::kAttentionSlackBytes);
  }
}
