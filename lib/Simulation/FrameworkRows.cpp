//===- FrameworkRows.cpp - Columns that say a run in full -----------------===//
#include "RowColumns.h"
#include "fsdp/Machine/SoftwareProfile.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <cmath>

using namespace fsdp;
using namespace fsdp::simulation;

/// Best matmuls: stas00's tables. Meta's H100s have 96 GB of HBM2e at 2.4e12
/// bytes per second and are capped at 500 W (torchtitan's benchmarks, torchao's
/// roofline). The rate of attention is a profile's.
static constexpr RowGpu kGpus[] = {
    {"A100-80GB", "a100-80gb", 271.2e12, 0, 0, RowGpu::Ampere},
    {"DGX-H100", "h100", 794.5e12, 1402.6e12, 0},
    {"H100-80GB", "h100", 794.5e12, 1402.6e12, 0},
    {"H100", "h100", 794.5e12, 1402.6e12, 0, RowGpu::Capped, 2.4e12},
    {"H100-95GB", "h100", 794.5e12, 1402.6e12, 0, RowGpu::Capped, 2.4e12},
    {"H100-96GB-500W", "h100", 794.5e12, 1402.6e12, 0, RowGpu::Capped, 2.4e12},
    {"H200", "h200", 794.5e12, 1453.4e12, 0}};

namespace {
/// What runs where the column 'compile' says so.
struct Framework {
  const char *name;
  /// Profiles by recipe of fp8 (Fp8Recipe); null: none is known.
  const char *profiles[3];
  int64_t gradientBytes = 4;
  bool communicatesOnce = false;
};
struct KnownRecompute {
  const char *name;
  RowRecompute recompute;
};
struct KnownPrecision {
  const char *name;
  Fp8Recipe recipe;
};
} // namespace

/// By how the column begins.
static constexpr Framework kFrameworks[] = {
    {"eager", {"torch-2.6-eager"}},
    {"compile",
     {"torch-2.6-compile", "torch-2.6-compile-fp8",
      "torch-2.6-compile-fp8-rowwise"}},
    {"regional compile",
     {"torch-2.6-compile", "torch-2.6-compile-fp8",
      "torch-2.6-compile-fp8-rowwise"}},
    {"FSDP2-eager", {"torch-2.9-eager"}},
    {"SimpleFSDP", {"torch-2.9-eager"}},
    {"graph", {"torch-2.9-graph"}},
    // Megatron's distributed optimizer: f32 gradients, once a step.
    {"TE", {"megatron", "megatron-fp8"}, 4, true},
    {"llm.c", {"llm-c"}, 2, true}};

static constexpr KnownRecompute kRecomputes[] = {
    {"none", RowRecompute::None},
    {"?", RowRecompute::None},
    {"full", RowRecompute::Full},
    {"selective", RowRecompute::Selective},
    {"default policy", RowRecompute::Selective}};

static constexpr KnownPrecision kPrecisions[] = {
    {"bf16", Fp8Recipe::None},
    {"fp8-rowwise", Fp8Recipe::Rowwise},
    // "fp8-cs" is Transformer Engine's current scaling.
    {"fp8", Fp8Recipe::Tensorwise}};

/// With a profile of its own: one that shards as FSDP does.
static constexpr Framework kOtherFramework = {"", {}};

/// The first of `all` whose name the field begins with; null if there is none.
template <typename Known, size_t size>
static const Known *findBegun(const CsvField &field, const Known (&all)[size]) {
  for (const Known &one : all)
    if (field.text.rfind(one.name, 0) == 0)
      return &one;
  return nullptr;
}
template <typename Known, size_t size>
static const Known &begunBy(const CsvField &field, const Known (&all)[size]) {
  const Known *found = findBegun(field, all);
  return found ? *found : field.named(all);
}

/// "ZeRO-1 DP8", or how many ranks parameters are sharded over.
static RowSharding shardingOf(const CsvField &field) {
  for (const char *stage : {"ZeRO-1", "ZeRO-2"})
    if (field.text.rfind(stage, 0) == 0)
      return RowSharding::GradAndOptimizer;
  if (field.text.rfind("ZeRO-3", 0) == 0)
    return RowSharding::Full;
  return field.count(1 << 16) == 1 ? RowSharding::None : RowSharding::Full;
}

/// "25.11 VP5": each stage has five parts of the model.
static int64_t partsOf(const std::string &note) {
  size_t at = note.find("VP");
  int64_t parts = 0;
  for (at = at == std::string::npos ? note.size() : at + 2;
       at < note.size() && note[at] >= '0' && note[at] <= '9' && parts < 1000;
       ++at)
    parts = 10 * parts + (note[at] - '0');
  return std::max<int64_t>(parts, 1);
}

static RowModel modelOf(const RowFields &fields) {
  RowModel model;
  model.name = printableLine(fields["model"].text);
  model.isGated = model.name.rfind("gpt2", 0) != 0;
  model.layers = fields["layers"].count(10000);
  model.width = fields["hidden"].count(1 << 18);
  model.hidden = fields["ffn"].count(1 << 20);
  model.heads = fields["heads"].count(1 << 12);
  model.keyHeads = fields["kv_heads"].count(model.heads);
  model.vocabulary = fields["vocab"].count(1 << 24);
  return model;
}

static void readLayout(const RowFields &fields, PublishedRow &row) {
  row.gpus = fields["gpus"].count(1 << 16);
  row.tensorRanks = fields["tp"].count(1 << 10);
  row.stages = fields["pp"].count(row.model.layers);
  row.contextRanks = fields["cp"].count(1 << 10);
  row.partsOfStage = partsOf(fields["note"].text);
  row.sharding = shardingOf(fields["fsdp"]);
  if (row.gpus % (row.tensorRanks * row.stages * row.contextRanks) != 0)
    fields["gpus"].fail("a multiple of tp x pp x cp");
}

static void readSoftware(const RowFields &fields, PublishedRow &row) {
  bool isSaid = fields.has("profile") && !fields["profile"].text.empty();
  CsvField said = fields[kFrameworkColumn];
  const Framework &framework = isSaid && !findBegun(said, kFrameworks)
                                   ? kOtherFramework
                                   : begunBy(said, kFrameworks);
  Fp8Recipe recipe = begunBy(fields["precision"], kPrecisions).recipe;
  row.isFp8 = recipe != Fp8Recipe::None;
  row.gradientBytes = framework.gradientBytes;
  row.communicatesOnce = framework.communicatesOnce;
  if (isSaid)
    row.profile = fields["profile"].text;
  else if (const char *profile =
               framework.profiles[static_cast<size_t>(recipe)])
    row.profile = profile;
  else
    fields["precision"].fail(std::string("what '") + framework.name +
                             "' has a profile for; say one in a column "
                             "'profile'");
  if (row.isFp8 && row.gpu->bestFp8 == 0)
    fields["precision"].fail(std::string("bf16 (no fp8 on ") + row.gpu->name +
                             ")");
}

static std::optional<std::string> readFrameworkRow(const RowFields &fields,
                                                   PublishedRow &row) {
  row.label = printableLine(fields["id"].text);
  if (fields["ffn"].text == "moe")
    return row.label + " has experts";
  if (fields["tok_s_gpu"].text.empty())
    return row.label + " says no tokens per second";
  row.model = modelOf(fields);
  row.gpu = &fields["gpu"].named(kGpus);
  row.parameters = std::llround(
      1e9 * fields["params_B"].number("billions of parameters", 1e-3, 1e4));
  row.sequence = fields["seq"].count(1 << 24);
  // What a source does not say is 1.
  if (fields["local_batch"].text != "?")
    row.microbatch = fields["local_batch"].count(1 << 12);
  if (fields["accum"].text != "?")
    row.accumulation = fields["accum"].count(1 << 10);
  readLayout(fields, row);
  readSoftware(fields, row);
  row.recompute = begunBy(fields["ac"], kRecomputes).recompute;
  row.tokensPerSecond =
      fields["tok_s_gpu"].tokensPerSecond() * static_cast<double>(row.gpus);
  return std::nullopt;
}

const RowColumns &simulation::frameworkColumns() {
  static const RowColumns columns = {
      {"ac",        "accum",       kFrameworkColumn,
       "cp",        "ffn",         "fsdp",
       "gpu",       "gpus",        "heads",
       "hidden",    "id",          "kv_heads",
       "layers",    "local_batch", "model",
       "note",      "params_B",    "pp",
       "precision", "seq",         "tok_s_gpu",
       "tp",        "vocab"},
      readFrameworkRow};
  return columns;
}
