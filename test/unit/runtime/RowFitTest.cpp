//===- RowFitTest.cpp - Published rows and their five scalars -------------===//
#include "fsdp/Simulation/RowFit.h"
#include "TemporaryFolder.h"
#include "fsdp/Support/AtomicFile.h"

using namespace fsdp;
using namespace fsdp::simulation;
using namespace fsdp::test;

static const std::string kRowColumns =
    "section,model,seq,gpus,gpu,mbs,accum,tok_s,prec,mp,shard,ac,cpuoff,"
    "params\n";
static const std::string kRowStart = "\"A \"\"B\"\", with 800 Gbps\",7b,2048,";
static const std::string kRowEnd =
    "a100_40gb,2,4,30000.5,bf16,PURE,FULL_SHARD,True,False,6658859008\n";

static std::vector<PublishedRow> rowsOf(const std::string &text) {
  return readRows(kRowColumns + text, "rows.csv");
}
static std::string rowError(const std::string &text) {
  return messageOf([&] { rowsOf(text); });
}
/// With a field of a good row replaced.
static PublishedRow rowWith(const std::string &from, const std::string &to) {
  std::string text = kRowStart + "16," + kRowEnd;
  return rowsOf(text.replace(text.find(from), from.size(), to)).front();
}

TEST(RowFit, ReadsARow) {
  PublishedRow row = rowWith("7b", "7b");
  EXPECT_EQ(row.line, 2);
  EXPECT_EQ(row.name(), "7b, 2048 tokens, 16 a100_40gb");
  EXPECT_EQ(row.globalTokens(), 2 * 4 * 16 * 2048);
  EXPECT_DOUBLE_EQ(row.tokensPerSecond, 30000.5);
  EXPECT_DOUBLE_EQ(row.networkBytesPerSecond, 100e9);
  EXPECT_TRUE(row.recomputes);
  EXPECT_FALSE(row.offloads);
  // Columns in another order, unknown ones, and lines of Windows.
  std::string first = kRowColumns.substr(0, kRowColumns.size() - 1);
  std::string second = kRowStart + "16," + kRowEnd;
  second.pop_back();
  EXPECT_EQ(readRows("x," + first + "\r\n\"1,2\"," + second + "\r\n\r\n", "w")
                .front()
                .gpus,
            16);
}

TEST(RowFit, SaysWhatIsWrongWithATable) {
  EXPECT_EQ(rowError(""),
            "rows.csv: no rows; the first line names the columns, each further "
            "line is a run");
  EXPECT_EQ(messageOf([] { readRows("model,seq\n", "r"); }),
            "r:1: no column is called 'ac'; the first line names the columns");
  EXPECT_EQ(messageOf([] { readRows("ac,ac\n", "r"); }),
            "r:1: two columns are called 'ac'; the first line names the "
            "columns");
  EXPECT_EQ(rowError("7b,2048\n"),
            "rows.csv:2: 2 fields, where line 1 has 14 columns");
  EXPECT_EQ(rowError(kRowStart + "8x," + kRowEnd),
            "rows.csv:2: column 'gpus': expected a whole number from 1 to "
            "65536, not '8x'");
  EXPECT_EQ(rowError("\"A" + kRowStart.substr(1) + "\"8\n"),
            "rows.csv:2: a quote has no end on its line");
  EXPECT_NE(messageOf([] {
              rowWith("30000.5", "nan");
            }).find("column 'tok_s': expected tokens per second"),
            std::string::npos);
  EXPECT_NE(messageOf([] {
              rowWith("7b", "8b");
            }).find("column 'model': expected 125m, 350m"),
            std::string::npos);
  EXPECT_EQ(messageOf([] { rowWith(",bf16", ",amp_fp8"); }),
            "rows.csv:2: column 'prec': a GPU of kind 'a100_40gb' does not "
            "compute in fp8; expected bf16 or amp_bf16");
  EXPECT_NE(rowError(std::string(200, ',') + "\n").find("more than 64 columns"),
            std::string::npos);
  std::string many;
  for (int i = 0; i < 10001; ++i)
    many += kRowStart + "8," + kRowEnd;
  EXPECT_EQ(rowError(many), "rows.csv:10002: more than 10000 rows");
}

TEST(RowFit, EachColumnChangesItsTerm) {
  RowTerms plain = termsOf(rowWith("7b", "7b"), "r");
  // Without recomputation three passes instead of four, and one of attention.
  RowTerms saved = termsOf(rowWith("True", "False"), "r");
  EXPECT_LT(saved.matmul, plain.matmul);
  EXPECT_DOUBLE_EQ(saved.attention / plain.attention, 3.5 / 4.5);
  EXPECT_EQ(saved.communication, plain.communication);
  // Gathered once.
  RowTerms kept = termsOf(rowWith("FULL_SHARD", "SHARD_GRAD_OP"), "r");
  EXPECT_LT(kept.communication, plain.communication);
  EXPECT_EQ(kept.memory, plain.memory);
  // Gradients of four bytes.
  EXPECT_GT(termsOf(rowWith("PURE", "DEFAULT"), "r").communication,
            plain.communication);
  EXPECT_GT(termsOf(rowWith("True,False", "True,True"), "r").host, 0);
  EXPECT_EQ(plain.host, 0);
  EXPECT_LT(termsOf(rowWith("800 Gbps", "1600 Gbps"), "r").communication,
            plain.communication);
  EXPECT_LT(termsOf(rowWith("16,a100_40gb", "16,h100_80gb"), "r").matmul,
            plain.matmul);
  EXPECT_EQ(messageOf([] { termsOf(rowWith("16,a", "12,a"), "r"); }),
            "r:2: column 'gpus': 12 GPUs are no number of whole nodes of 8");
}

TEST(RowFit, FindsTheScalarsOfAMachineThatIsKnown) {
  const Scalars known = {0.8, 0.6, 0.5, 1.5, 0.9};
  FitProblem problem;
  for (const char *model : {"125m", "1b", "7b"})
    for (const char *sequence : {"512", "4096", "32768"})
      for (const char *gpu : {"a100_40gb", "h100_80gb"}) {
        PublishedRow row =
            rowWith("7b,2048,16,a100_40gb",
                    std::string(model) + "," + sequence + ",16," + gpu);
        problem.terms.push_back(termsOf(row, "r"));
        problem.seconds.push_back(problem.terms.back().seconds(known));
      }
  Scalars found = fitScalars(problem);
  for (size_t i = 0; i < kScalars; ++i)
    EXPECT_NEAR(found[i], known[i], 0.01 * known[i]) << kScalarNames[i];
  // What stays fixed stays, and so does what no row depends on.
  problem.isFixed[0] = true;
  EXPECT_EQ(fitScalars(problem)[0], kFirstScalars[0]);
  for (RowTerms &row : problem.terms)
    row.isAmpere = false;
  EXPECT_EQ(fitScalars(problem)[4], kFirstScalars[4]);
  EXPECT_EQ(fitScalars(FitProblem()), kFirstScalars);
}

TEST(RowFit, AFileOfScalarsReadsAsItWasWritten) {
  const Scalars scalars = {0.1, 1.0 / 3, 3, 0.01, 100};
  std::string text = toToml(scalars);
  EXPECT_EQ(readScalars(text, "s"), scalars);
  auto error = [](const std::string &text) {
    return messageOf([&] { readScalars(text, "s.toml"); });
  };
  EXPECT_NE(error("").find("expected [scalars], as fsdp-sim --fit writes it"),
            std::string::npos);
  EXPECT_NE(error("[scalars]\nmatmul = 1\n").find("attention is missing"),
            std::string::npos);
  EXPECT_NE(error("[scalars]\nmatmul = 0\n")
                .find("matmul: expected a number from 0.01 to 100"),
            std::string::npos);
  EXPECT_NE(error(text + "clock = 1\n").find("clock"), std::string::npos);
}
