//===- ProgramTest.cpp - The steps of a schedule --------------------------===//
#include "fsdp/Schedule/Program.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::schedule;

namespace {

TEST(Program, StepsHaveCostsPlacesAndNeeds) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect, dist::FsdpDialect, func::FuncDialect>();
  auto module = parseSourceString<ModuleOp>(R"(
    fsdp.mesh @mesh ["dp" = 2]
    nn.parameter @w.weight : tensor<4x8xf32> init #nn.zeros
    nn.buffer @m : tensor<4x8xf32> init #nn.zeros {nn.state_of = @w.weight}
    nn.buffer @v : tensor<4x8xf32> init #nn.zeros {nn.state_of = @w.weight}
    func.func @step(%x: tensor<2x8xf32>, %lr: tensor<f32>, %step: tensor<i32>,
                    %clip: tensor<f32>, %g: tensor<4x8xf32>) -> tensor<2x8xf32> {
      %s = nn.read @w.weight : tensor<4x8xf32>
      %f = fsdp.async : <tensor<8x8xf32>> {
        %w = fsdp.all_gather %s on @mesh["dp"] dim 0 {fsdp.parameters = [@w.weight]} : tensor<4x8xf32> -> tensor<8x8xf32>
        fsdp.yield %w : tensor<8x8xf32>
      }
      %a = nn.silu %x : tensor<2x8xf32>
      %w = fsdp.await %f : <tensor<8x8xf32>> -> tensor<8x8xf32>
      %y = nn.linear %a, %w {nn.module = "w"} : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
      nn.adamw [@w.weight] moments [@m], [@v](%g) lr %lr step %step clip %clip {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1} : tensor<4x8xf32>
      %late = nn.read @w.weight : tensor<4x8xf32>
      return %y : tensor<2x8xf32>
    })",
                                            &context);
  ASSERT_TRUE(module);
  const nn::AdjacentReads adjacent(*module, 64);
  std::vector<Step> steps =
      stepsOf(*module->getOps<func::FuncOp>().begin(),
              *module->getOps<dist::MeshOp>().begin(), adjacent);
  ASSERT_EQ(steps.size(), 7u);
  using Needs = std::vector<unsigned>;
  EXPECT_EQ(steps[0].name, "read");
  EXPECT_EQ(steps[1].name, "fwd w all_gather");
  EXPECT_EQ(steps[1].kind, "all_gather");
  EXPECT_EQ(steps[1].where, Where::Gather);
  EXPECT_EQ(steps[1].needs, Needs{0});
  EXPECT_EQ(steps[1].wireBytes, 4 * 8 * 4);
  EXPECT_EQ(steps[2].name, "fwd silu");
  EXPECT_EQ(steps[2].kind, "kernel");
  EXPECT_EQ(steps[2].needs, Needs{});
  EXPECT_EQ(steps[3].name, "await fwd w all_gather");
  EXPECT_EQ(steps[3].needs, Needs{1});
  EXPECT_EQ(steps[3].kind, "");
  EXPECT_EQ(steps[3].bytes, 0);
  EXPECT_EQ(steps[4].name, "fwd w linear");
  EXPECT_EQ(steps[4].kind, "matmul");
  EXPECT_EQ(steps[4].needs, (Needs{2, 3}));
  EXPECT_EQ(steps[4].flops, 2 * 2 * 8 * 8);
  // An update waits for those who read before it, and a read for the update.
  EXPECT_EQ(steps[5].needs, Needs{0});
  EXPECT_EQ(steps[5].bytes, 7 * 4 * 8 * 4);
  EXPECT_EQ(steps[6].needs, Needs{5});
}

} // namespace
