//===- TargetInfo.cpp - What the compiler must know of a target -----------===//
#include "fsdp/Target/TargetInfo.h"
#include "fsdp/Runtime/CudaWorkspaces.h"
#include "fsdp/Runtime/Runtime.h"
#include "fsdp/Support/CheckedSize.h"

using namespace fsdp;

namespace {

/// Asks the runtime library, which asks oneDNN on this machine.
class CpuTarget : public TargetInfo {
public:
  explicit CpuTarget(int threads) : threads(threads) {}

  int64_t gemmWorkspaceBytes(const rt::GemmDesc &desc) const override {
    return rt::gemmWorkspaceBytes(desc, threads);
  }
  int64_t
  attentionWorkspaceBytes(const rt::AttentionDesc &desc) const override {
    return rt::attentionWorkspaceBytes(desc, threads);
  }
  int64_t
  attentionGradWorkspaceBytes(const rt::AttentionDesc &desc) const override {
    return rt::attentionGradWorkspaceBytes(desc, threads);
  }
  int64_t collectiveWorkspaceBytes(const rt::CollectiveDesc &desc, int item,
                                   int64_t ranks) const override {
    return rt::collectiveWorkspaceBytes(desc, item, ranks);
  }

private:
  int threads;
};

class CudaTarget : public TargetInfo {
public:
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
  /// A reduction is the same exchange of pieces as on the CPU.
  int64_t collectiveWorkspaceBytes(const rt::CollectiveDesc &desc, int item,
                                   int64_t ranks) const override {
    return rt::collectiveWorkspaceBytes(desc, item, ranks);
  }
};

class TestTarget : public TargetInfo {
public:
  int64_t gemmWorkspaceBytes(const rt::GemmDesc &) const override { return 64; }
  int64_t attentionWorkspaceBytes(const rt::AttentionDesc &) const override {
    return 4096;
  }
  int64_t
  attentionGradWorkspaceBytes(const rt::AttentionDesc &) const override {
    return 8192;
  }
  int64_t collectiveWorkspaceBytes(const rt::CollectiveDesc &desc, int item,
                                   int64_t ranks) const override {
    int64_t piece = desc.kind == rt::CollectiveKind::ReduceScatter
                        ? desc.item[item].shard
                        : ceilDiv(desc.item[item].full, ranks);
    return (CheckedSize(ranks * rt::sizeOf(desc.in)) * piece).saturated();
  }
};

} // namespace

std::unique_ptr<TargetInfo> fsdp::makeCpuTarget(int threads) {
  return std::make_unique<CpuTarget>(threads);
}

std::unique_ptr<TargetInfo> fsdp::makeCudaTarget() {
  return std::make_unique<CudaTarget>();
}

std::unique_ptr<TargetInfo> fsdp::makeTestTarget() {
  return std::make_unique<TestTarget>();
}

std::unique_ptr<TargetInfo> fsdp::makeTarget(llvm::StringRef name,
                                             int threads) {
  if (name == "cpu")
    return makeCpuTarget(threads);
  if (name == "cuda")
    return makeCudaTarget();
  if (name == "test")
    return makeTestTarget();
  return nullptr;
}
