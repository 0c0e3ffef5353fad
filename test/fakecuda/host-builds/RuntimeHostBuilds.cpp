//===- RuntimeHostBuilds.cpp - Of the kernels of the CUDA runtime ---------===//
//
// And of fsdp-gpu-check.
//
// A kernel that is missing here is reported by name when it is launched. The
// launchers of those files are not called here: what they call is undefined.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/EmbeddingGrad.cu"
#include "runtime/cuda/kernels/Layout.cu"
#include "runtime/cuda/kernels/Model.cu"
#include "runtime/cuda/kernels/Optimizer.cu"
#include "runtime/cuda/kernels/Reduce.cu"
#include "runtime/cuda/kernels/ReferenceAttention.cu"
#include "test/gpu/Compare.cu"

#include "HostBuild.h"

using namespace fsdp::rt::device;

static fsdp::fake::HostBuilds<
    copyElements<uint8_t>, copyElements<uint16_t>, copyElements<uint32_t>,
    copyElements<uint64_t>, copyElements<Words>, rotaryPairs<float, 1>,
    rotaryPairs<float, 4>, rotaryPairs<BF16, 1>, rotaryPairs<BF16, 8>,
    splitHeadPairs<float, 1>, splitHeadPairs<float, 4>, splitHeadPairs<BF16, 1>,
    splitHeadPairs<BF16, 8>, joinHeadPairs<float, 1>, joinHeadPairs<float, 4>,
    joinHeadPairs<BF16, 1>, joinHeadPairs<BF16, 8>, embeddingRows<float, 1>,
    embeddingRows<float, 4>, embeddingRows<BF16, 1>, embeddingRows<BF16, 8>,
    shardRows, sortTokens, embeddingGradRows<float, 1>,
    embeddingGradRows<float, 4>, embeddingGradRows<BF16, 1>,
    embeddingGradRows<BF16, 8>, crossEntropyRows<float>, crossEntropyRows<BF16>,
    crossEntropyGradRows<float>, crossEntropyGradRows<BF16>, labelsOfBlock,
    device::referenceAttention<float>, device::referenceAttention<BF16>,
    referenceQueryGrad<float>, referenceQueryGrad<BF16>,
    referenceKeyGrad<float>, referenceKeyGrad<BF16>, narrowElements,
    addElements, absMaxBits, squareDigits, finishNorm, adamwStep, adamwCopyStep,
    reduceRanks<Add, int64_t, int64_t, 3>, reduceRanks<Add, float, BF16, 3>,
    reduceRanks<Add, float, float, 3>, reduceRanks<Max, float, float, 3>,
    addRanks<float, BF16, 2>, addRanks<float, BF16, 4>,
    addRanks<float, BF16, 8>, addRanks<float, BF16, 16>,
    addRanks<float, float, 2>, addRanks<float, float, 4>,
    addRanks<float, float, 8>, addRanks<float, float, 16>,
    fsdp::gpu::countDifferences>
    hostBuilds;
