//===- CollectiveFactsTest.cpp - Kinds, layouts and records agree ---------===//
#include "DialectOps.h"
#include "dialects/Exec/Exec.h"
#include "fsdp/Target/CollectivePieces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>
#include <set>

using namespace mlir;
using namespace fsdp;

namespace {

/// Every collective on four ranks, of 16 x 8 elements of bf16 or what they
/// make.
constexpr const char *kProgram = R"(
  fsdp.mesh @mesh ["a" = 4]
  func.func @f(%whole: tensor<16x8xbf16>, %part: tensor<4x8xbf16>) {
    %0 = fsdp.all_gather %part on @mesh["a"] dim 0 : tensor<4x8xbf16> -> tensor<16x8xbf16>
    %1 = fsdp.reduce_scatter sum %whole on @mesh["a"] dim 0 : tensor<16x8xbf16> -> tensor<4x8xf32>
    %2 = fsdp.all_reduce sum %whole on @mesh["a"] : tensor<16x8xbf16> -> tensor<16x8xf32>
    %3 = fsdp.all_to_all %part on @mesh["a"] split 1 join 0 : tensor<4x8xbf16> -> tensor<16x2xbf16>
    return
  })";

class CollectiveFacts : public testing::Test {
protected:
  CollectiveFacts() {
    context.loadDialect<dist::FsdpDialect, exec::ExecDialect, nn::NNDialect,
                        func::FuncDialect>();
    module = parseSourceString<ModuleOp>(kProgram, &context);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(CollectiveFacts, RecordsSayWhatTheLayoutAsksFor) {
  ASSERT_TRUE(module);
  std::set<StringRef> found;
  module->walk([&](dist::CollectiveOpInterface op) {
    StringRef name = op->getName().stripDialect();
    SCOPED_TRACE(name.str());
    found.insert(name);
    dist::CollectiveKind kind = op.getCollectiveKind();
    dist::CollectiveLayout layout = dist::layoutOf(kind);
    EXPECT_EQ(stringifyCollectiveKind(kind), name);
    EXPECT_EQ(op.getReduction().has_value(), layout.combines);
    EXPECT_EQ(op.getJoinedDim().has_value(), layout.joins);
    EXPECT_EQ(op.getSplitDim().has_value(), layout.splits);
    // The sizes say the same.
    auto in = cast<RankedTensorType>(op->getOperand(0).getType());
    auto out = cast<RankedTensorType>(op->getResult(0).getType());
    for (int64_t dim : {0, 1}) {
      int64_t size = in.getDimSize(dim);
      if (op.getJoinedDim() == dim)
        size *= 4;
      if (op.getSplitDim() == dim)
        size /= 4;
      EXPECT_EQ(out.getDimSize(dim), size);
    }
    EXPECT_EQ(out.getElementType().isF32(), layout.combines);
  });
  for (RegisteredOperationName name : opsOf(context, "fsdp"))
    EXPECT_EQ(name.hasInterface<dist::CollectiveOpInterface>(),
              found.count(name.stripDialect()) == 1)
        << name.getStringRef().str();
}

// A gather and an exchange send pieces of 64 and 16 bytes to three others, a
// reduction those of 64 to be added, and those of sums are twice as wide.
TEST_F(CollectiveFacts, BytesOnTheWire) {
  ASSERT_TRUE(module);
  std::map<std::string, int64_t> bytes;
  module->walk([&](dist::CollectiveOpInterface op) {
    bytes[op->getName().stripDialect().str()] = op.getWireBytes(4);
  });
  EXPECT_EQ(bytes["all_gather"], 3 * 64);
  EXPECT_EQ(bytes["reduce_scatter"], 3 * 64);
  EXPECT_EQ(bytes["all_reduce"], 3 * (64 + 128));
  EXPECT_EQ(bytes["all_to_all"], 3 * 16);
}

TEST(CollectiveKinds, BeginWithThoseOfTheRuntime) {
  for (auto [number, name] : llvm::enumerate(rt::kCollectiveNames)) {
    auto kind = dist::symbolizeCollectiveKind(name);
    ASSERT_TRUE(kind) << name;
    EXPECT_EQ(static_cast<size_t>(*kind), number);
    EXPECT_TRUE(exec::isRuntimeCollective(*kind));
    // Each half has a function of its own for its own enumeration.
    EXPECT_EQ(rt::isReduction(static_cast<rt::CollectiveKind>(number)),
              dist::isReduction(*kind));
  }
  EXPECT_EQ(static_cast<int>(rt::CollectiveKind::AllGather),
            static_cast<int>(dist::CollectiveKind::AllGather));
  EXPECT_EQ(static_cast<int>(rt::CollectiveKind::ReduceScatter),
            static_cast<int>(dist::CollectiveKind::ReduceScatter));
  EXPECT_EQ(static_cast<int>(rt::CollectiveKind::AllReduce),
            static_cast<int>(dist::CollectiveKind::AllReduce));
  EXPECT_FALSE(exec::isRuntimeCollective(dist::CollectiveKind::AllToAll));
}

} // namespace
