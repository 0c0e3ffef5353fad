//===- TestTargetInfo.cpp - Sizes that are the same on every machine ------===//
#include "fsdp/Target/TargetInfo.h"

using namespace fsdp;

namespace {

/// A matmul has 64 bytes, attention 4096 and its gradient 8192.
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
};

} // namespace

std::unique_ptr<TargetInfo> fsdp::makeTestTargetInfo(int, std::string &) {
  return std::make_unique<TestTargetInfo>();
}
