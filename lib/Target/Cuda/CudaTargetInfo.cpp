//===- CudaTargetInfo.cpp - NVIDIA GPUs: upper bounds ---------------------===//
#include "fsdp/Target/CudaWorkspaces.h"
#include "fsdp/Target/TargetInfo.h"

using namespace fsdp;

namespace {

class CudaTargetInfo : public TargetInfo {
public:
  CudaTargetInfo() : TargetInfo(rt::kCudaTarget) {}

  int64_t gemmWorkspaceBytes(const rt::GemmDesc &) const override {
    return rt::cuda::kGemmWorkspaceBytes;
  }
  int64_t attentionWorkspaceBytes(const rt::AttentionDesc &d) const override {
    return rt::cuda::attentionWorkspaceBytes(d);
  }
  int64_t
  attentionGradWorkspaceBytes(const rt::AttentionDesc &d) const override {
    return rt::cuda::attentionGradWorkspaceBytes(d);
  }
  int64_t embeddingGradWorkspaceBytes(rt::DType, int64_t rows, int64_t,
                                      int64_t) const override {
    return rt::cuda::embeddingGradWorkspaceBytes(rows);
  }
  bool hasAttention(rt::DType type) const override {
    return type == rt::DType::BF16;
  }
  llvm::StringRef whyNoLibrary(const rt::AttentionDesc &d) const override {
    if (d.starts)
      return "cuDNN's attention is not built for several documents in a row";
    return d.cap != 0 ? "cuDNN's attention has no cap on scores" : "";
  }
};

} // namespace

std::unique_ptr<TargetInfo> fsdp::makeCudaTargetInfo(int, std::string &) {
  return std::make_unique<CudaTargetInfo>();
}
