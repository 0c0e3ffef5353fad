//===- OriginTest.cpp - Where in a program something comes from -----------===//
#include "TinyLlama.h"
#include "dialects/Fsdp/Fsdp.h"
#include "fsdp/Families/TraceModel.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Pipelines.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::dist;

namespace {

TEST(Origin, HasWords) {
  const std::pair<const char *, Origin> table[] = {
      {"fwd layers.3.wq linear", {Phase::Forward, "layers.3.wq", "linear"}},
      {"again layers.3 rotary#2", {Phase::Again, "layers.3", "rotary", 2}},
      {"bwd sum", {Phase::Backward, "", "sum"}},
      {"bwd sum#12", {Phase::Backward, "", "sum", 12}},
      {"update optimizer adamw", {Phase::Update, "optimizer", "adamw"}},
      {"fwd output#2 linear#3", {Phase::Forward, "output#2", "linear", 3}},
      // A bucket by rule, and one that a person has named.
      {"fwd head (2) all_gather", {Phase::Forward, "head (2)", "all_gather"}},
      {"fwd \"a\"  all_gather", {Phase::Forward, "\"a\" ", "all_gather"}},
      {"fwd op#4294967295", {Phase::Forward, "", "op", 4294967295u}},
  };
  for (const auto &[words, origin] : table) {
    EXPECT_EQ(origin.str(), words);
    llvm::Expected<Origin> parsed = parseOrigin(words);
    ASSERT_TRUE(static_cast<bool>(parsed))
        << llvm::toString(parsed.takeError());
    EXPECT_TRUE(*parsed == origin) << words;
  }
}

TEST(Origin, MayBeAllOfAPath) {
  for (StringRef words : {"fwd layers.3", "again head (2)", "bwd a#2", "fwd  "})
    EXPECT_EQ(llvm::cantFail(parseOriginOfPath(words)).str(), words);
  EXPECT_EQ(llvm::cantFail(parseOriginOfPath("fwd a linear")).path, "a linear");
}

std::string problemOf(llvm::Expected<Origin> origin) {
  return origin ? "none" : llvm::toString(origin.takeError());
}

TEST(Origin, OtherWordsAreRefused) {
  const std::pair<const char *, const char *> table[] = {
      {"", "it has to begin with"},
      {"fwd", "it has to begin with"},
      {"forward linear", "it has to begin with"},
      {"fwdx linear", "it has to begin with"},
      {" fwd linear", "it has to begin with"},
      {"FWD linear", "it has to begin with"},
      {"fwd\tlinear", "it has to begin with"},
      {"fwd ", "the op has no name"},
      {"fwd layers.3 ", "the op has no name"},
      {"fwd layers.3 #2", "the op has no name"},
      {"fwd  linear", "the path is empty"},
      {"fwd a linear#", "'' is no number"},
      {"fwd a linear#0", "'0' is no number"},
      {"fwd a linear#1", "'1' is no number"},
      {"fwd a linear#02", "'02' is no number"},
      {"fwd a linear#+2", "'+2' is no number"},
      {"fwd a linear#2x", "'2x' is no number"},
      {"fwd a linear#2#3", "'2#3' is no number"},
      {"fwd a linear#4294967296", "'4294967296' is no number"},
      {"fwd a linear#99999999999999999999999", "is no number"},
  };
  for (const auto &[words, message] : table) {
    std::string problem = problemOf(parseOrigin(words));
    EXPECT_NE(problem.find(message), std::string::npos)
        << "'" << words << "': " << problem;
    EXPECT_EQ(problem.find("'" + std::string(words) + "' is no origin: "), 0u)
        << problem;
  }
  EXPECT_NE(problemOf(parseOriginOfPath("fwd ")).find("the path is empty"),
            std::string::npos);
  EXPECT_NE(
      problemOf(parseOriginOfPath("layers.3")).find("it has to begin with"),
      std::string::npos);
}

TEST(Origin, ErrorsNameAllPhases) {
  EXPECT_EQ(problemOf(parseOrigin("")),
            "'' is no origin: it has to begin with 'fwd ', 'again ', 'bwd ' or "
            "'update '");
}

TEST(Origin, IsValidIfItsWordsAreReadBack) {
  EXPECT_TRUE((Origin{Phase::Update, "", "adamw"}).isValid());
  EXPECT_TRUE((Origin{Phase::Forward, "a b", "linear", 2}).isValid());
  EXPECT_TRUE((Origin{Phase::Forward, "a", ""}).isValid());
  EXPECT_FALSE((Origin{Phase::Forward, "", ""}).isValid());
  EXPECT_FALSE((Origin{Phase::Forward, "a", "", 2}).isValid());
  EXPECT_FALSE((Origin{Phase::Forward, "a", "linear", 0}).isValid());
  EXPECT_FALSE((Origin{Phase::Forward, "a", "linear#2"}).isValid());
  EXPECT_FALSE((Origin{Phase::Forward, "a", "b linear"}).isValid());
}

/// Of every op, member of a bucket and served path of a scheduled model.
SmallVector<OriginAttr> originsOf(ModuleOp module) {
  SmallVector<OriginAttr> found;
  module.walk([&](Operation *op) {
    op->getAttrDictionary().walk(
        [&](OriginAttr origin) { found.push_back(origin); });
  });
  return found;
}

TEST(Origin, AModelsAreReadBack) {
  MLIRContext context;
  ModelSpec spec{"tiny", tinyLlama(/*tied=*/true), /*batch=*/2, /*sequence=*/4};
  auto module = llvm::cantFail(traceModel(context, spec, {2, 4}));
  CompileOptions options;
  options.pipeline.mesh = "dp_shard=2";
  options.compile.recompute = "full";
  PassManager manager(&context);
  buildTrainPipeline(manager, options, PipelineLevel::Schedule);
  ASSERT_TRUE(succeeded(manager.run(*module)));
  unsigned withOp = 0, again = 0, numbered = 0, served = 0;
  for (OriginAttr origin : originsOf(*module)) {
    StringRef words = origin.getText();
    bool hasOp = !origin.getOp().empty();
    Origin parsed =
        llvm::cantFail(hasOp ? parseOrigin(words) : parseOriginOfPath(words));
    EXPECT_TRUE(parsed == origin.getOrigin()) << words.str();
    EXPECT_EQ(parsed.str(), words);
    EXPECT_EQ(OriginAttr::get(&context, parsed), origin) << "is unique";
    std::string text;
    llvm::raw_string_ostream(text) << origin;
    EXPECT_EQ(parseAttribute(text, &context), origin) << text;
    withOp += hasOp;
    served += !hasOp;
    again += origin.getPhase() == Phase::Again;
    numbered += origin.getIndex() > 1;
  }
  EXPECT_GT(withOp, 100u);
  EXPECT_GT(served, 4u);
  EXPECT_GT(again, 10u);
  EXPECT_GT(numbered, 4u);
}

} // namespace
