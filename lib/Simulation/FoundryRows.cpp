//===- FoundryRows.cpp - Columns of llm-foundry's tables ------------------===//
#include "RowColumns.h"
#include "fsdp/Support/Error.h"
#include <charconv>

using namespace fsdp;
using namespace fsdp::simulation;

namespace {
struct FoundryModel {
  const char *name;
  int64_t width, layers, headSize;
};
} // namespace

/// MPT.
static constexpr FoundryModel kFoundryModels[] = {
    {"125m", 768, 12, 64},  {"350m", 1024, 24, 64}, {"760m", 1536, 24, 128},
    {"1b", 2048, 24, 128},  {"3b", 2560, 32, 128},  {"7b", 4096, 32, 128},
    {"13b", 5120, 40, 128}, {"30b", 7168, 48, 128}, {"70b", 8192, 80, 128}};
static constexpr int64_t kFoundryVocabulary = 50368;

/// Best matmuls: stas00's tables. FlashAttention-2: on an H100 335e12, measured
/// causal and forward with heads of 128 (FlashAttention-3, Shah et al., 2024);
/// on an A100 0.60 of the peak, of 0.50 to 0.73 (Dao, 2023), as in its machine
/// file.
static constexpr RowGpu kFoundryGpus[] = {
    {"a100_40gb", "a100-40gb", 271.2e12, 0, 187e12, RowGpu::Ampere},
    {"a100_80gb", "a100-80gb", 271.2e12, 0, 187e12, RowGpu::Ampere},
    {"h100_80gb", "h100", 794.5e12, 1402.6e12, 335e12},
    {"h200", "h200", 794.5e12, 1453.4e12, 335e12}};

static RowModel modelOf(const CsvField &field) {
  const FoundryModel &known = field.named(kFoundryModels);
  RowModel model;
  model.name = known.name;
  model.width = known.width;
  model.layers = known.layers;
  model.hidden = 4 * known.width;
  model.heads = model.keyHeads = known.width / known.headSize;
  model.vocabulary = kFoundryVocabulary;
  return model;
}

static bool flagOf(const CsvField &field) {
  if (field.text != "True" && field.text != "False")
    field.fail("True or False");
  return field.text == "True";
}

template <typename Choice> static Choice rowChoiceOf(const CsvField &field) {
  if (std::optional<Choice> choice = readSpelling<Choice>(field.text))
    return *choice;
  field.fail(joinedText(allSpellings<Choice>(), ", "));
}

/// "A100 40GB with 1600 Gbps node-node interconnect": of a node. 0 without.
static double networkOf(const std::string &section) {
  size_t end = section.find(" Gbps"), begin = end;
  if (end == std::string::npos)
    return 0;
  while (begin > 0 && section[begin - 1] >= '0' && section[begin - 1] <= '9')
    --begin;
  int gigabits = 0;
  std::from_chars(section.data() + begin, section.data() + end, gigabits);
  return gigabits < 1 || gigabits > 1000000 ? 0 : gigabits * 1e9 / 8;
}

static std::optional<std::string> readFoundryRow(const RowFields &fields,
                                                 PublishedRow &row) {
  row.networkBytesPerSecond = networkOf(fields["section"].text);
  row.model = modelOf(fields["model"]);
  row.gpu = &fields["gpu"].named(kFoundryGpus);
  row.sequence = fields["seq"].count(1 << 24);
  row.gpus = fields["gpus"].count(1 << 16);
  row.microbatch = fields["mbs"].count(1 << 12);
  row.accumulation = fields["accum"].count(1 << 10);
  row.tokensPerSecond = fields["tok_s"].tokensPerSecond();
  row.isFp8 = rowChoiceOf<RowPrecision>(fields["prec"]) == RowPrecision::AmpFp8;
  if (row.isFp8 && row.gpu->bestFp8 == 0)
    fields["prec"].fail(std::string("bf16 or amp_bf16 (no fp8 on ") +
                        row.gpu->name + ")");
  row.gradientBytes =
      rowChoiceOf<RowMixedPrecision>(fields["mp"]) == RowMixedPrecision::Pure
          ? 2
          : 4;
  row.sharding = rowChoiceOf<RowSharding>(fields["shard"]);
  row.recompute =
      flagOf(fields["ac"]) ? RowRecompute::Full : RowRecompute::None;
  row.offloads = flagOf(fields["cpuoff"]);
  row.parameters = fields["params"].count(int64_t(1) << 44);
  return std::nullopt;
}

const RowColumns &simulation::foundryColumns() {
  static const RowColumns columns = {{"ac", "accum", "cpuoff", "gpu", "gpus",
                                      "mbs", "model", "mp", "params", "prec",
                                      "section", "seq", "shard", "tok_s"},
                                     readFoundryRow};
  return columns;
}
