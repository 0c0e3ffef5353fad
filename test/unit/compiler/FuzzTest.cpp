//===- FuzzTest.cpp - Damaged input never crashes the compiler ------------===//
//
// Some thousand damaged copies of every text that the compiler reads: plans,
// config.json, and the three dialects in their own and in MLIR's generic form,
// which goes past our parsers and so straight to the verifiers. Each copy is
// refused with a diagnostic, or is valid and can be printed.
//
//===----------------------------------------------------------------------===//
#include "../Mutator.h"
#include "dialects/Exec/Exec.h"
#include "fsdp/Schedule/Plan.h"
#include "fsdp/Support/StrictJson.h"
#include "fsdp/Trace/ModelSpec.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "passes/Pipelines.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Regex.h"
#include <gtest/gtest.h>

using namespace fsdp;
using namespace fsdp::test;
using namespace mlir;

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

namespace {

/// Counts the damaged copies of `text` that `read` takes; the others must come
/// back with a message.
template <typename Read>
int countAccepted(const std::string &text, int mutations, Mutator mutate,
                  Read read) {
  int accepted = 0;
  for (int i = 0; i < mutations; ++i) {
    std::string damaged = mutate(text);
    auto result = read(damaged);
    if (result) {
      ++accepted;
      continue;
    }
    EXPECT_NE(llvm::toString(result.takeError()), "") << damaged;
  }
  return accepted;
}

} // namespace

// What both files are read with: damaged, or of nothing but brackets.
TEST(Fuzz, StrictJson) {
  const char *good = R"({"a": [1, -2.5e3, {"b": "x\"y", "\u0062c": []}],
    "d": null, "e": {"a": true}})";
  auto read = [](const std::string &text) {
    return parseStrictJson(text, "text");
  };
  Mutator mutate(5,
                 {"null", "[", "{", "]", "}", "\"a\":", "\"", "\\", "1e999"});
  EXPECT_GT(countAccepted(good, 4000, mutate, read), 40);
  for (const char *piece : {"[", "{", "{\"a\":", "[{", "{\"", "\\", "[[]"}) {
    std::string text;
    for (int i = 0; i < 300000; ++i)
      text += piece;
    auto value = read(text);
    ASSERT_FALSE(static_cast<bool>(value)) << piece;
    EXPECT_NE(llvm::toString(value.takeError()), "") << piece;
  }
}

TEST(Fuzz, Plan) {
  llvm::StringRef parameters[] = {
      "tok_embeddings.weight", "layers.0.attention.wq.weight",
      "layers.1.attention.wq.weight", "norm.weight", "output.weight"};
  schedule::Plan plan = schedule::planByRule(parameters, {});
  std::string good = llvm::formatv("{0:2}", schedule::toJSON(plan)).str();
  auto read = [&](const std::string &text) {
    llvm::Expected<schedule::Plan> plan = schedule::parseJSON(text);
    if (plan)
      schedule::check(*plan, parameters);
    return plan;
  };
  Mutator mutate(1, {"null", "[]", "{}", "\"\"", "-1", "true", ",", "1e300",
                     "\"\\ud800\""});
  EXPECT_GT(countAccepted(good, 4000, mutate, read), 40);
}

TEST(Fuzz, HuggingFaceConfig) {
  const char *good = R"({"model_type": "llama", "hidden_act": "silu",
    "attention_bias": false, "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "intermediate_size": 160, "vocab_size": 256,
    "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0, "tie_word_embeddings": true,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
      "low_freq_factor": 1.0, "high_freq_factor": 4.0,
      "original_max_position_embeddings": 8192}})";
  auto read = [](const std::string &text) {
    return parseHuggingFaceConfig(text, "config.json");
  };
  Mutator mutate(2, {"null", "[]", "{}", "\"\"", "-1", "true", ",", "1e300"});
  EXPECT_GT(countAccepted(good, 4000, mutate, read), 40);
}

//===----------------------------------------------------------------------===//
// The dialects
//===----------------------------------------------------------------------===//

namespace {

class FuzzDialect : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    DialectRegistry registry;
    registerFsdpDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
      messages += diagnostic.str();
      return success();
    });
  }

  /// The dialect's test of every op, without its comments.
  std::string everyOp() {
    std::string path = std::string(FSDP_GOLDEN_DIR) + "/../dialects/" +
                       GetParam() + "/ops.mlir";
    auto buffer = llvm::MemoryBuffer::getFile(path);
    EXPECT_TRUE(buffer) << path;
    std::string text;
    llvm::SmallVector<llvm::StringRef> lines;
    (*buffer)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef line : lines)
      if (!line.ltrim().starts_with("//"))
        text += line.str() + "\n";
    return text;
  }

  static std::string print(ModuleOp module, bool generic) {
    OpPrintingFlags flags;
    flags.printGenericOpForm(generic);
    std::string text;
    llvm::raw_string_ostream os(text);
    module->print(os, flags);
    return text;
  }

  void damage(const std::string &text, int mutations, unsigned seed) {
    Mutator mutate(seed, {"dense<1>", "tensor<2x3xf32>", "memref<4xi32>",
                          "tensor<*xf32>", "tensor<?xf32>", "i32", "unit", "@w",
                          "@mesh", "%x", "[]", "{", "}", "\"\"", "#nn.zeros",
                          "#fsdp.replicated", "-1", "1.0"});
    llvm::Regex hugeResult("#[0-9]{8,}");
    int valid = 0;
    for (int i = 0; i < mutations; ++i) {
      std::string damaged = mutate(text);
      // MLIR's parser makes room for as many results as "%a#N" speaks of.
      if (hugeResult.match(damaged))
        continue;
      messages.clear();
      OwningOpRef<ModuleOp> module =
          parseSourceString<ModuleOp>(damaged, &context);
      if (module) {
        ++valid;
        print(*module, /*generic=*/false);
      } else {
        EXPECT_NE(messages, "") << damaged;
      }
    }
    // Or the damage is such that nothing deep is reached.
    EXPECT_GT(valid, mutations / 100);
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::string messages;
};

} // namespace

TEST_P(FuzzDialect, OwnForm) { damage(everyOp(), 2000, 3); }

TEST_P(FuzzDialect, GenericForm) {
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(everyOp(), &context);
  ASSERT_TRUE(module) << messages;
  damage(print(*module, /*generic=*/true), 2000, 4);
}

INSTANTIATE_TEST_SUITE_P(Dialects, FuzzDialect,
                         testing::Values("nn", "fsdp", "exec"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });
