//===- TestTargetInfo.cpp - Sizes that are the same on every machine ------===//
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Target/TargetInfo.h"

using namespace fsdp;

namespace {

/// A matmul has 64 bytes, attention 4096 and its gradient 8192; a collective
/// has every rank's padded piece.
class TestTargetInfo : public TargetInfo {
public:
  TestTargetInfo() : TargetInfo(rt::kTestTarget) {}

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

std::unique_ptr<TargetInfo> fsdp::makeTestTargetInfo(int, std::string &) {
  return std::make_unique<TestTargetInfo>();
}
