//===- RowFitTest.cpp - Published rows and their five scalars -------------===//
#include "fsdp/Simulation/RowFit.h"
#include "TemporaryFolder.h"
#include "fsdp/Support/AtomicFile.h"
#include <map>

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
  return readRows(kRowColumns + text, "rows.csv").rows;
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
  EXPECT_TRUE(row.recompute == RowRecompute::Full);
  EXPECT_FALSE(row.offloads);
  // Columns in another order, unknown ones, and lines of Windows.
  std::string first = kRowColumns.substr(0, kRowColumns.size() - 1);
  std::string second = kRowStart + "16," + kRowEnd;
  second.pop_back();
  EXPECT_EQ(readRows("x," + first + "\r\n\"1,2\"," + second + "\r\n\r\n", "w")
                .rows.front()
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
            "rows.csv:2: column 'prec': expected bf16 or amp_bf16 (no fp8 on "
            "a100_40gb), not 'amp_fp8'");
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
  const Scalars known = {0.8, 0.6, 0.5, 1.5, 0.9, 1};
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
    row.clock = RowGpu::Own;
  EXPECT_EQ(fitScalars(problem)[4], kFirstScalars[4]);
  EXPECT_EQ(fitScalars(FitProblem()), kFirstScalars);
  // A clock that few rows have is not fitted to them.
  problem.isFixed[0] = false;
  for (size_t i = 0; i < kLeastOfClock; ++i) {
    EXPECT_EQ(fitScalars(problem)[5], 1);
    problem.terms[i].clock = RowGpu::Capped;
  }
  EXPECT_NE(fitScalars(problem)[5], 1);
}

TEST(RowFit, AFileOfScalarsReadsAsItWasWritten) {
  const Scalars scalars = {0.1, 1.0 / 3, 3, 0.01, 100, 1};
  std::string text = toToml(scalars);
  EXPECT_EQ(text.find("capped_h100_clock"), std::string::npos);
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

//===----------------------------------------------------------------------===//
// Columns of a framework
//===----------------------------------------------------------------------===//

static const std::string kFrameworkColumns =
    "id,model,params_B,layers,hidden,ffn,heads,kv_heads,vocab,seq,local_batch,"
    "accum,gpus,gpu,fsdp,tp,pp,cp,ac,precision,compile,tok_s_gpu,note\n";

/// A field of a run by its column, others as in a run of Llama 3 8B.
static std::string
frameworkLine(const std::map<std::string, std::string> &with) {
  std::map<std::string, std::string> fields = {
      {"id", "A"},           {"model", "8b"},       {"params_B", "8.03"},
      {"layers", "32"},      {"hidden", "4096"},    {"ffn", "14336"},
      {"heads", "32"},       {"kv_heads", "8"},     {"vocab", "128256"},
      {"seq", "8192"},       {"local_batch", "1"},  {"accum", "1"},
      {"gpus", "64"},        {"gpu", "DGX-H100"},   {"fsdp", "8"},
      {"tp", "1"},           {"pp", "1"},           {"cp", "1"},
      {"ac", "none"},        {"precision", "bf16"}, {"compile", "compile"},
      {"tok_s_gpu", "7000"}, {"note", ""}};
  for (const auto &[column, text] : with)
    fields.at(column) = text;
  std::string line, column;
  for (char c : kFrameworkColumns)
    if (c == ',' || c == '\n') {
      line += fields.at(column) + c;
      column.clear();
    } else {
      column += c;
    }
  return line;
}

static PublishedRow
frameworkRow(const std::map<std::string, std::string> &with) {
  return readRows(kFrameworkColumns + frameworkLine(with), "f.csv")
      .rows.front();
}
static RowTerms frameworkTerms(const std::map<std::string, std::string> &with) {
  return termsOf(frameworkRow(with), "f");
}
static std::string
frameworkError(const std::map<std::string, std::string> &with) {
  return messageOf([&] { frameworkTerms(with); });
}

TEST(RowFit, ReadsARowOfAFramework) {
  PublishedRow row = frameworkRow({{"tp", "2"}, {"pp", "4"}, {"accum", "16"}});
  EXPECT_EQ(row.name(), "A: 8b, 8192 tokens, 64 DGX-H100");
  EXPECT_EQ(row.profile, "torch-2.6-compile");
  EXPECT_EQ(row.dataRanks(), 8);
  EXPECT_EQ(row.globalTokens(), 8 * 16 * 8192);
  EXPECT_DOUBLE_EQ(row.tokensPerSecond, 64 * 7000.0);
  EXPECT_EQ(row.parameters, 8030000000);
  EXPECT_EQ(frameworkRow({{"note", "25.11 VP5"}}).partsOfStage, 5);
  EXPECT_EQ(frameworkRow({{"note", "VP"}}).partsOfStage, 1);
  EXPECT_EQ(frameworkRow({{"local_batch", "?"}}).microbatch, 1);
  EXPECT_EQ(frameworkRow({{"precision", "fp8-rowwise"}}).profile,
            "torch-2.6-compile-fp8-rowwise");
  EXPECT_TRUE(frameworkRow({{"compile", "TE"}}).communicatesOnce);
  EXPECT_TRUE(frameworkRow({{"fsdp", "ZeRO-1 DP8"}}).sharding ==
              RowSharding::GradAndOptimizer);
  // A column of its own names another profile.
  std::string columns = "profile," + kFrameworkColumns;
  EXPECT_EQ(readRows(columns + "llm-c," + frameworkLine({}), "f")
                .rows.front()
                .profile,
            "llm-c");
  EXPECT_EQ(
      readRows(columns + "fsdp," + frameworkLine({{"compile", "mine"}}), "f")
          .rows.front()
          .profile,
      "fsdp");
}

TEST(RowFit, LeavesOutWhatIsNotDense) {
  RowTable table = readRows(kFrameworkColumns + frameworkLine({}) +
                                frameworkLine({{"ffn", "moe"}}) +
                                frameworkLine({{"id", "B"}, {"tok_s_gpu", ""}}),
                            "f.csv");
  EXPECT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.leftOut,
            (std::vector<std::string>{"line 3: A has experts",
                                      "line 4: B says no tokens per second"}));
}

TEST(RowFit, SaysWhatIsWrongWithARowOfAFramework) {
  EXPECT_EQ(frameworkError({{"tp", "3"}}),
            "f.csv:2: column 'gpus': expected a multiple of tp x pp x cp, not "
            "'64'");
  EXPECT_EQ(frameworkError({{"tp", "16"}}),
            "f:2: column 'tp': 16 ranks are more than a node has");
  EXPECT_EQ(frameworkError({{"kv_heads", "64"}}),
            "f.csv:2: column 'kv_heads': expected a whole number from 1 to 32, "
            "not '64'");
  EXPECT_EQ(frameworkError({{"gpu", "A100-80GB"}, {"precision", "fp8"}}),
            "f.csv:2: column 'precision': expected bf16 (no fp8 on A100-80GB), "
            "not 'fp8'");
  EXPECT_EQ(frameworkError({{"compile", "graph"}, {"precision", "fp8"}}),
            "f.csv:2: column 'precision': expected what 'graph' has a profile "
            "for; say one in a column 'profile', not 'fp8'");
  EXPECT_NE(frameworkError({{"compile", "jit"}}).find("column 'compile'"),
            std::string::npos);
  EXPECT_NE(frameworkError({{"params_B", "0"}}).find("column 'params_B'"),
            std::string::npos);
}

TEST(RowFit, EachPropertyOfAFrameworkChangesItsTerm) {
  RowTerms plain = frameworkTerms({});
  RowTerms selective = frameworkTerms({{"ac", "selective-op"}});
  RowTerms full = frameworkTerms({{"ac", "full"}});
  EXPECT_LT(plain.matmul, selective.matmul);
  EXPECT_LT(selective.matmul, full.matmul);
  EXPECT_EQ(plain.attention, selective.attention);
  EXPECT_LT(selective.attention, full.attention);
  EXPECT_EQ(selective.memory, full.memory);
  // A tensor axis halves a rank's work and sends what grows with the tokens.
  RowTerms tensor = frameworkTerms({{"tp", "2"}});
  EXPECT_DOUBLE_EQ(tensor.matmul, plain.matmul / 2);
  EXPECT_GT(frameworkTerms({{"tp", "2"}, {"seq", "16384"}}).communication,
            tensor.communication);
  EXPECT_EQ(frameworkTerms({{"seq", "16384"}}).communication,
            plain.communication);
  // A stage has a fourth of the blocks and waits for the others.
  RowTerms stages = frameworkTerms({{"pp", "4"}, {"accum", "6"}});
  EXPECT_DOUBLE_EQ(stages.matmul, plain.matmul / 4 * 6 * 1.5);
  EXPECT_LT(
      frameworkTerms({{"pp", "4"}, {"accum", "6"}, {"note", "VP3"}}).matmul,
      stages.matmul);
  // More kernels, and slower attention, than later versions have.
  RowTerms eager = frameworkTerms({{"compile", "eager"}}),
           later = frameworkTerms({{"compile", "FSDP2-eager"}});
  EXPECT_GT(eager.memory, later.memory);
  EXPECT_GT(later.memory, plain.memory);
  EXPECT_GT(eager.attention, later.attention);
  // fp8 quantises, gathers half the bytes, and by row quantises twice.
  RowTerms tensorwise = frameworkTerms({{"precision", "fp8-tensorwise"}}),
           rowwise = frameworkTerms({{"precision", "fp8-rowwise"}});
  EXPECT_LT(tensorwise.matmul, plain.matmul);
  EXPECT_LT(tensorwise.communication, plain.communication);
  EXPECT_EQ(rowwise.communication, plain.communication);
  EXPECT_LT(plain.memory, tensorwise.memory);
  EXPECT_LT(tensorwise.memory, rowwise.memory);
  // Once a step, not with each microbatch.
  EXPECT_LT(frameworkTerms({{"compile", "TE"}, {"accum", "8"}}).communication,
            frameworkTerms({{"accum", "8"}}).communication);
  EXPECT_TRUE(frameworkTerms({{"gpu", "H100"}}).clock == RowGpu::Capped);
}
