//===- TargetInfo.cpp - What the compiler must know of a target -----------===//
#include "fsdp/Target/TargetInfo.h"
#include "fsdp/Runtime/CudaWorkspaces.h"
#include "fsdp/Runtime/Runtime.h"
#include "fsdp/Support/CheckedSize.h"
#include <map>
#include <tuple>

using namespace fsdp;

namespace {

/// Asks the runtime library, which asks oneDNN on this machine. Making a
/// primitive to learn its size takes a while, so every answer is kept: a deep
/// model has the same few products over and over.
class CpuTarget : public TargetInfo {
public:
  explicit CpuTarget(int threads) : threads(threads) {}

  int64_t gemmWorkspaceBytes(const rt::GemmDesc &d) const override {
    auto [at, isNew] =
        gemms.try_emplace({d.batch, d.m, d.n, d.k, d.transposeLhs,
                           d.transposeRhs, d.bias, d.in, d.out});
    if (isNew)
      at->second = rt::gemmWorkspaceBytes(d, threads);
    return at->second;
  }
  int64_t attentionWorkspaceBytes(const rt::AttentionDesc &d) const override {
    return ask(attentions, d, rt::attentionWorkspaceBytes);
  }
  int64_t
  attentionGradWorkspaceBytes(const rt::AttentionDesc &d) const override {
    return ask(attentionGrads, d, rt::attentionGradWorkspaceBytes);
  }
  int64_t collectiveWorkspaceBytes(const rt::CollectiveDesc &desc, int item,
                                   int64_t ranks) const override {
    return rt::collectiveWorkspaceBytes(desc, item, ranks);
  }
  // Ranks read each other's memory; nobody adds on the way.
  bool hasFastReductions() const override { return false; }

private:
  using Gemms = std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, bool,
                                    bool, bool, rt::DType, rt::DType>,
                         int64_t>;
  using Attentions =
      std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                          double, bool, rt::DType, bool>,
               int64_t>;

  int64_t ask(Attentions &known, const rt::AttentionDesc &d,
              int64_t (*question)(const rt::AttentionDesc &, int)) const {
    auto [at, isNew] =
        known.try_emplace({d.batch, d.qLen, d.kvLen, d.heads, d.kvHeads,
                           d.headDim, d.scale, d.causal, d.type, d.plain});
    if (isNew)
      at->second = question(d, threads);
    return at->second;
  }

  int threads;
  mutable Gemms gemms;
  mutable Attentions attentions, attentionGrads;
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
  int64_t embeddingGradWorkspaceBytes(rt::DType, int64_t rows, int64_t,
                                      int64_t) const override {
    return rt::cuda::embeddingGradWorkspaceBytes(rows);
  }
  bool hasAttention(rt::DType type) const override {
    return type == rt::DType::BF16;
  }
  int64_t collectiveWorkspaceBytes(const rt::CollectiveDesc &desc, int item,
                                   int64_t ranks) const override {
    return rt::cuda::collectiveWorkspaceBytes(desc, item, ranks);
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
    if (desc.fast)
      return 0;
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
