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
#include "fsdp/Families/ModelSpec.h"
#include "fsdp/Memory/Report.h"
#include "fsdp/Schedule/Decisions.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Regex.h"
#include <array>
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

// What all files are read with: damaged, or of nothing but brackets.
TEST(Fuzz, Json) {
  const char *good = R"({"a": [1, -2.5e3, {"b": "x\"y", "\u0062c": []}],
    "d": null, "e": {"a": true}})";
  auto read = [](const std::string &text) -> llvm::Expected<nlohmann::json> {
    try {
      return parseJson(text, "text");
    } catch (const fsdp::Error &error) {
      return llvm::createStringError(error.what());
    }
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
  const char *plans[] = {
      R"({"version": 2, "rules": [
        {"match": ["fwd layers.*.wq all_gather", "fwd {a,b}.[cd]? linear"],
         "bucket": "layers.*", "merge": true, "overlap": false, "prefetch": 1,
         "start_after": "fwd layers.0 silu", "recompute": true},
        {"match": "bwd layers.0.wq reduce_scatter", "defer": 2,
         "await_before": "bwd layers.0.wq dw"}]})",
      R"({"version": 2, "rules": [{"match": "a", "bucket": ""},
        {"match": ["b", "*"], "merge": false, "defer": 0}]})"};
  MLIRContext context;
  context.loadDialect<dist::FsdpDialect>();
  auto origin = dist::OriginAttr::get(
      &context, {dist::Phase::Forward, "layers.0.wq", "all_gather"});
  auto read = [&](const std::string &text) {
    llvm::Expected<schedule::Plan> plan = schedule::parseJSON(text, "plan");
    if (!plan)
      return plan;
    // What it says can be asked, however odd its globs are.
    schedule::DecisionPoint point;
    point.kind = dist::CollectiveKind::AllGather;
    llvm::Expected<schedule::Rules> rules = schedule::Rules::compile(*plan);
    schedule::Decision decision;
    if (rules)
      rules->decide(origin, point, decision);
    else
      llvm::consumeError(rules.takeError());
    return plan;
  };
  Mutator mutate(1, {"null", "[]", "{}", "\"\"", "-1", "true", ",", "1e300",
                     "\"\\ud800\"", "[", "{a,", "\\\\", "**"});
  for (const char *good : plans)
    EXPECT_GT(countAccepted(good, 4000, mutate, read), 40);
}

TEST(Fuzz, Origin) {
  auto read = [](const std::string &text) {
    llvm::Expected<dist::Origin> origin = dist::parseOrigin(text);
    if (origin)
      EXPECT_EQ(origin->str(), text);
    return origin;
  };
  Mutator mutate(7, {"fwd ", "again ", "bwd ", "update ", " ", "#", "#2", "0"});
  EXPECT_GT(countAccepted("fwd layers.0.wq linear#3", 4000, mutate, read), 40);
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
                          "#fsdp.placement<[{}]>", "-1", "1.0"});
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

  /// Asks for everything that is computed from sizes: costs, kernel spaces,
  /// folders, addresses, the memory plan.
  void compute(ModuleOp module) {
    module.walk([](Operation *op) {
      if (auto cost = dyn_cast<nn::CostOpInterface>(op)) {
        EXPECT_GE(cost.getFlops(), 0);
        EXPECT_GE(cost.getBytes(), 0);
      }
      if (auto kernel = dyn_cast<nn::KernelOpInterface>(op)) {
        EXPECT_GE(kernel.getKernelSpace().rows, 0);
      }
    });
    PassManager passes(&context);
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createPlanMemory());
    if (failed(passes.run(module))) {
      EXPECT_NE(messages, "");
      return;
    }
    MemoryReport report = memoryReport(module);
    EXPECT_GE(report.arenaBytes, report.persistentBytes);
    EXPECT_LE(report.arenaBytes, kMaxArenaBytes);
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

// Every number of the text in turn is one at the edge of 64 bits: the verifiers
// refuse it, or nothing that is computed from it overflows.
TEST_P(FuzzDialect, HugeNumbers) {
  const std::string text = everyOp();
  auto isDigit = [](char c) { return llvm::isDigit(c); };
  int valid = 0, refused = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && isDigit(text[end]))
      ++end;
    // Of names ("%0", "f32", "@w2") the digits mean nothing.
    bool isNumber = end > at && at > 0 && !llvm::isAlpha(text[at - 1]) &&
                    !llvm::is_contained(llvm::StringRef("%#@_."), text[at - 1]);
    for (const char *huge :
         {"0", "4294967296", "4503599627370496", "9223372036854775807"}) {
      if (!isNumber)
        break;
      std::string changed = text;
      changed.replace(at, end - at, huge);
      messages.clear();
      OwningOpRef<ModuleOp> module =
          parseSourceString<ModuleOp>(changed, &context);
      ++(module ? valid : refused);
      EXPECT_TRUE(module || !messages.empty()) << changed;
      if (module)
        compute(*module);
    }
    at = std::max(end, at + 1);
  }
  EXPECT_GT(valid, 0);
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Dialects, FuzzDialect,
                         testing::Values("nn", "fsdp", "exec"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

//===----------------------------------------------------------------------===//
// Shapes that agree
//===----------------------------------------------------------------------===//

namespace {

/// Programs over the sizes A, B and C, whatever they are.
const char *const kPrograms[] = {
    R"(func.func @f(%x: tensor<AxBxf32> {nn.name = "x"}, %w: tensor<CxBxf32> {nn.name = "w"}) -> (tensor<AxCxf32> {nn.name = "y"}) {
      %y = nn.linear %x, %w : tensor<AxBxf32>, tensor<CxBxf32> -> tensor<AxCxf32>
      return %y : tensor<AxCxf32>
    })",
    R"(func.func @f(%x: tensor<AxBxCxbf16> {nn.name = "x"}) -> (tensor<AxBxBxbf16> {nn.name = "y"}) {
      %y = nn.matmul %x, %x {transpose_rhs} : tensor<AxBxCxbf16>, tensor<AxBxCxbf16> -> tensor<AxBxBxbf16>
      return %y : tensor<AxBxBxbf16>
    })",
    R"(func.func @f(%i: tensor<Axi32> {nn.name = "i"}, %t: tensor<BxCxbf16> {nn.name = "t"}) -> (tensor<AxCxbf16> {nn.name = "y"}) {
      %y = nn.embedding %i, %t : tensor<Axi32>, tensor<BxCxbf16> -> tensor<AxCxbf16>
      return %y : tensor<AxCxbf16>
    })",
    R"(func.func @f(%l: tensor<AxBxf32> {nn.name = "l"}, %t: tensor<Axi32> {nn.name = "t"}) -> (tensor<f32> {nn.name = "loss"}) {
      %rows, %lse = nn.cross_entropy %l, %t ignore_index -100 : tensor<AxBxf32>, tensor<Axi32>, tensor<Axf32>
      %sum = nn.sum %rows [0] : tensor<Axf32> to tensor<f32>
      %count = nn.count_labels %t ignore_index -100 : tensor<Axi32> -> tensor<i64>
      %loss = nn.divide_by_count %sum, %count : tensor<f32>, tensor<i64>
      return %loss : tensor<f32>
    })",
    R"(func.func @f(%x: tensor<AxBxCxf32> {nn.name = "x"}) -> (tensor<AxBxf32> {nn.name = "y"}) {
      %y = nn.sum %x [2] : tensor<AxBxCxf32> to tensor<AxBxf32>
      return %y : tensor<AxBxf32>
    })",
    R"(func.func @f(%x: tensor<Axf32> {nn.name = "x"}) -> (tensor<AxBxCxf32> {nn.name = "y"}) {
      %y = nn.broadcast %x [0] : tensor<Axf32> to tensor<AxBxCxf32>
      return %y : tensor<AxBxCxf32>
    })",
    R"(func.func @f(%q: tensor<1xAxBxCxf32> {nn.name = "q"}) -> (tensor<1xAxBxCxf32> {nn.name = "y"}) {
      %y, %lse = nn.attention %q, %q, %q scale 1.0 {causal} : tensor<1xAxBxCxf32>, tensor<1xAxBxCxf32>, tensor<1xBxAxf32>
      return %y : tensor<1xAxBxCxf32>
    })",
    R"(fsdp.mesh @mesh ["dp" = 1048576]
    func.func @f(%x: tensor<AxBxf32> {nn.name = "x"}) -> (tensor<AxBxf32> {nn.name = "y"}) {
      %y = fsdp.all_reduce sum %x on @mesh["dp"] : tensor<AxBxf32> -> tensor<AxBxf32>
      return %y : tensor<AxBxf32>
    })"};

class HugeShapes : public testing::TestWithParam<const char *> {};

std::string withSizes(const char *program,
                      const std::array<int64_t, 3> &sizes) {
  std::string text;
  for (const char *at = program; *at; ++at) {
    // In types alone is a letter a size: "<A", "xA".
    bool isSize = *at >= 'A' && *at <= 'C' && at > program &&
                  (at[-1] == '<' || at[-1] == 'x') && at[1] == 'x';
    text +=
        isSize ? std::to_string(sizes[size_t(*at - 'A')]) : std::string(1, *at);
  }
  return text;
}

} // namespace

// A program of any shape is lowered and planned, or refused with a reason.
TEST_P(HugeShapes, AreLoweredOrRefused) {
  DialectRegistry registry;
  registerFsdpDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string messages;
  context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
    messages += diagnostic.str();
    return success();
  });
  const int64_t values[] = {1, 24, INT32_MAX, int64_t(1) << 40,
                            int64_t(1) << 52};
  for (const char *program : kPrograms) {
    int planned = 0, refused = 0;
    for (int64_t a : values)
      for (int64_t b : values)
        for (int64_t c : values) {
          std::string text = withSizes(program, {a, b, c});
          messages.clear();
          auto module = parseSourceString<ModuleOp>(text, &context);
          PassManager passes(&context);
          passes.addPass(createExecLower({GetParam(), /*threads=*/4096}));
          passes.addPass(createPlanMemory());
          if (!module || failed(passes.run(*module))) {
            ++refused;
            EXPECT_NE(messages, "") << text;
            continue;
          }
          ++planned;
          int64_t arena = memoryReport(*module).arenaBytes;
          EXPECT_GT(arena, 0) << text;
          EXPECT_LE(arena, kMaxArenaBytes) << text;
        }
    EXPECT_GT(planned, 10) << program;
    EXPECT_GT(refused, 10) << program << messages;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, HugeShapes,
                         testing::Values("cpu", "cuda", "test"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });
