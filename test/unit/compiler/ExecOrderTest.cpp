//===- ExecOrderTest.cpp - Plan, events and their proof on random programs ===//
//
// exec-synchronize and exec-verify share no code. On random programs the one
// must satisfy the other, and no wait may be left out: so the verifier sees
// every missing event, and the synchronizer places no needless one.
//
//===----------------------------------------------------------------------===//
#include "dialects/Exec/Exec.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace fsdp;

namespace {

class ExecOrderTest : public ::testing::Test {
protected:
  ExecOrderTest() {
    DialectRegistry registry;
    registerFsdpDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    // Refused programs are expected here; their diagnostics are not news.
    context.getDiagEngine().registerHandler(
        [](Diagnostic &) { return success(); });
  }

  OwningOpRef<ModuleOp> parse(const std::string &text) {
    return parseSourceString<ModuleOp>(text, &context);
  }

  LogicalResult run(ModuleOp module,
                    std::vector<std::unique_ptr<Pass>> passes) {
    PassManager manager(&context);
    for (std::unique_ptr<Pass> &pass : passes)
      manager.addPass(std::move(pass));
    return manager.run(module);
  }

  LogicalResult planAndSynchronize(ModuleOp module) {
    std::vector<std::unique_ptr<Pass>> passes;
    passes.push_back(createPlanMemory());
    passes.push_back(createSynchronize());
    return run(module, std::move(passes));
  }

  LogicalResult verify(ModuleOp module) {
    std::vector<std::unique_ptr<Pass>> passes;
    passes.push_back(createVerifyExec());
    return run(module, std::move(passes));
  }

  MLIRContext context;
};

/// A program of copies on random streams between intervals that mostly were
/// written a little before. With `inFlight`, gathers and reductions have
/// tokens, awaited some time later.
std::string randomProgram(unsigned seed, int length, bool inFlight) {
  std::mt19937 random(seed);
  static const char *const streams[] = {"compute", "compute", "compute",
                                        "gather",  "reduce",  "copy"};
  std::string text = "  %0 = exec.get @w : memref<16xf32>\n";
  int buffers = 1;
  std::string reads, writes; // what the program states of @w, which is %0
  std::vector<std::string> tokens;
  auto await = [&](size_t which) {
    text += "  exec.await " + tokens[which] + "\n";
    tokens.erase(tokens.begin() + which);
  };
  for (int i = 0; i < length; ++i) {
    int from = std::max(0, buffers - 1 - int(random() % 8));
    int to = random() % 6 == 0 ? int(random() % buffers) : buffers;
    if (from == to)
      continue;
    if (from == 0 && writes.empty())
      reads = "\"w\"";
    if (to == 0)
      writes = "\"w\"";
    if (to == buffers) {
      text += "  %" + std::to_string(to) + " = exec.alloc : memref<16xf32>\n";
      ++buffers;
    }
    std::string stream = streams[random() % 6];
    std::string operands = "(%" + std::to_string(from) +
                           " : memref<16xf32>) outs(%" + std::to_string(to) +
                           " : memref<16xf32>)";
    if (inFlight && (stream == "gather" || stream == "reduce")) {
      tokens.push_back("%t" + std::to_string(i));
      text += "  " + tokens.back() + " = exec.collective all_gather on " +
              stream + " " + operands +
              " over @mesh[\"dp_shard\"] -> !exec.token\n";
    } else {
      text += "  exec.copy on " + stream + " " + operands + "\n";
    }
    if (!tokens.empty() && random() % 3 == 0)
      await(random() % tokens.size());
  }
  while (!tokens.empty())
    await(0);
  return "fsdp.mesh @mesh [\"dp_shard\" = 1]\n"
         "exec.range @w : memref<16xf32> role parameter\n"
         "exec.program @train attributes {exec.reads = [" +
         reads + "], exec.writes = [" + writes + "]} {\n" + text + "}\n";
}

template <typename OpT> std::vector<OpT> collect(ModuleOp module) {
  std::vector<OpT> ops;
  module.walk([&](OpT op) { ops.push_back(op); });
  return ops;
}

} // namespace

TEST_F(ExecOrderTest, RandomProgramsAreOrdered) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    OwningOpRef<ModuleOp> module = parse(randomProgram(seed, 60, true));
    ASSERT_TRUE(module);
    ASSERT_TRUE(succeeded(planAndSynchronize(*module))) << seed;
    EXPECT_TRUE(succeeded(verify(*module))) << seed;
  }
}

TEST_F(ExecOrderTest, EveryWaitIsNeeded) {
  size_t waits = 0;
  for (unsigned seed = 100; seed < 120; ++seed) {
    OwningOpRef<ModuleOp> module = parse(randomProgram(seed, 30, false));
    ASSERT_TRUE(module);
    ASSERT_TRUE(succeeded(planAndSynchronize(*module)));
    size_t count = collect<exec::WaitOp>(*module).size();
    for (size_t i = 0; i < count; ++i) {
      OwningOpRef<ModuleOp> copy = module->clone();
      collect<exec::WaitOp>(*copy)[i].erase();
      EXPECT_TRUE(failed(verify(*copy))) << "seed " << seed << " wait " << i;
    }
    waits += count;
  }
  EXPECT_GT(waits, 200u);
}

TEST_F(ExecOrderTest, OutliningKeepsTheOrder) {
  size_t calls = 0;
  for (unsigned seed = 200; seed < 240; ++seed) {
    OwningOpRef<ModuleOp> module = parse(randomProgram(seed, 80, true));
    ASSERT_TRUE(module);
    ASSERT_TRUE(succeeded(planAndSynchronize(*module)));
    // Copies are all alike, so that chance repeats blocks with most of the
    // irregular events there can be. The pass itself compares the order of
    // issue before and after.
    OutlineOptions options;
    options.minSaved = 1;
    std::vector<std::unique_ptr<Pass>> passes;
    passes.push_back(createOutline(options));
    ASSERT_TRUE(succeeded(run(*module, std::move(passes)))) << seed;
    EXPECT_TRUE(succeeded(verify(*module))) << seed;
    calls += collect<exec::CallOp>(*module).size();
  }
  EXPECT_GT(calls, 20u);
}
