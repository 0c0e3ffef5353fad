//===- Attention.cpp - Attention without cuDNN ----------------------------===//
//
// Preloaded: this makeAttentionPlan comes before the CUDA runtime's. It hands
// attention to the device, which computes it as the CPU target does. The
// library is preloaded into every program of a job, so it needs no other.
//
//===----------------------------------------------------------------------===//
#include "../RankVariable.h"
#include "../Wire.h"
#include "runtime/cuda/CudaContext.h"

using namespace fsdp;
using namespace fsdp::rt;

/// In the stand-in libcudart; null in a program that does not use CUDA.
extern "C" __attribute__((weak)) cudaError_t
fsdp_fake_attention(cudaStream_t stream, const fake::Attention *call);

namespace {

class DeviceAttention : public AttentionPlan {
public:
  explicit DeviceAttention(const AttentionDesc &desc) : desc(desc) {}

  void forward(cudaStream_t stream, Ptr q, Ptr k, Ptr v, Ptr out, Ptr lse,
               Ptr workspace) override {
    issue(stream, false, {q, k, v, out, lse}, workspace, "attention");
  }
  void backward(cudaStream_t stream, Ptr q, Ptr k, Ptr v, Ptr out, Ptr lse,
                Ptr dout, Ptr dq, Ptr dk, Ptr dv, Ptr workspace) override {
    issue(stream, true, {q, k, v, out, lse, dout, dq, dk, dv}, workspace,
          "attention_grad");
  }

private:
  void issue(cudaStream_t stream, bool isBackward, Ptrs pointers, Ptr workspace,
             const char *what) const {
    fake::Attention call{};
    uint64_t *const fields[] = {&call.q,   &call.k,   &call.v,
                                &call.out, &call.lse, &call.dout,
                                &call.dq,  &call.dk,  &call.dv};
    for (size_t i = 0; i < pointers.size(); ++i)
      *fields[i] = reinterpret_cast<uintptr_t>(pointers.begin()[i]);
    call.isBackward = isBackward;
    call.desc = desc;
    call.workspace = reinterpret_cast<uintptr_t>(workspace);
    check(fsdp_fake_attention(stream, &call), what);
  }

  const AttentionDesc desc;
};

} // namespace

std::unique_ptr<AttentionPlan> rt::makeAttentionPlan(cudnnHandle_t,
                                                     const AttentionDesc &d) {
  if (d.type != DType::BF16)
    throw Error("cuDNN's attention takes bf16");
  if (d.cap != 0)
    throw Error("cuDNN's attention has no cap on scores");
  if (fsdp::fake::namesThisRank("FSDP_FAKECUDA_NO_ATTENTION"))
    throw Error("cuDNN attention: no engine computes it");
  if (!fsdp_fake_attention)
    throw Error("the stand-in CUDA runtime is not loaded");
  return std::make_unique<DeviceAttention>(d);
}
