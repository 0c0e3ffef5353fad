//===- Introduction.cpp - What a run says before its steps ----------------===//
#include "Introduction.h"
#include "RooflinePeak.h"
#include "Step.h"
#include "fsdp/Data/MixedDataset.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/RangeNames.h"
#include "fsdp/Support/Text.h"
#include "runtime/report/Console.h"

using namespace fsdp;
using namespace fsdp::rt;

static std::string documentsOf(const TokenDataset &data) {
  std::string documents = grouped(data.documents()) +
                          (data.documents() == 1 ? " document" : " documents");
  if (data.heldOutTokens() == 0)
    return documents;
  return documents + (data.splitsDocument()
                          ? ", the end of the last one is held out"
                          : ", the last ones are held out");
}

static void introducePacking(const TokenDataset &data, int64_t sequence) {
  if (std::optional<TokenDataset::PackedShape> shape = data.packedShape()) {
    auto places = static_cast<double>(shape->rows * sequence);
    print(format("rows: %s of %s tokens in an epoch, %.1f %% of them padding\n",
                 grouped(shape->rows).c_str(), grouped(sequence).c_str(),
                 100 * static_cast<double>(shape->padding) / places));
  }
}

/// `share` says how many rows come from it; empty: all do.
static void introduceIds(const TokenStream &data, int64_t sequence,
                         std::string share = "") {
  int64_t train = data.trainTokens(), heldOut = data.heldOutTokens();
  const auto *source = dynamic_cast<const TokenDataset *>(&data);
  std::string about = std::move(share);
  if (source && source->documents() > 0)
    about += (about.empty() ? "" : ", ") + documentsOf(*source);
  if (!about.empty())
    print(source->name() + ": " + about + "\n");
  print(format(
      "ids: %s to train on, %s of them labels; %s held out, %s of "
      "them labels\n",
      grouped(train).c_str(), grouped(data.countLabels(1, train)).c_str(),
      grouped(heldOut).c_str(), grouped(data.heldOutLabels()).c_str()));
  if (source)
    introducePacking(*source, sequence);
}

static void introduceMixture(const MixedDataset &data, int64_t sequence) {
  for (size_t i = 0; i < data.sources(); ++i)
    introduceIds(data.source(i), sequence,
                 format("%s of %s rows", grouped(data.rows().share(i)).c_str(),
                        grouped(data.rows().cycle()).c_str()));
}

static void introduceData(const PreparedRun &run) {
  const Dataset &data = *run.data;
  int64_t sequence = run.config.training.seqLen;
  if (run.text)
    print(format("text: %s bytes to train on, %s held out\n",
                 grouped(data.trainTokens()).c_str(),
                 grouped(data.heldOutTokens()).c_str()));
  else if (const auto *mixed = dynamic_cast<const MixedDataset *>(&data))
    introduceMixture(*mixed, sequence);
  else
    introduceIds(*data.streams().front(), sequence);
}

static void introduce(const Rank &rank, const PreparedRun &run,
                      const IntroducedRun &what, const std::string &peak) {
  const Manifest &manifest = rank.manifest();
  auto threads = static_cast<int>(run.config.compile.threads);
  int64_t parameters = 0;
  for (const RangeInfo &range : manifest.ranges)
    if (range.role == RangeRole::Parameter)
      parameters += elementCount(range.full);
  print(format("%s: %s parameters on %d ranks (%s), %d thread%s each\n",
               run.artifact->directory().c_str(), grouped(parameters).c_str(),
               rank.world().size, manifest.meshText().c_str(), threads,
               threads == 1 ? "" : "s"));
  print(run.precisionLine + "\n");
  introduceData(run);
  print(format("memory: %s bytes of arena per rank, planned and allocated\n",
               grouped((int64_t)rank.arenaBytes()).c_str()));
  if (what.checksValues)
    print("values: every value of every step is checked as it is produced, "
          "which is slow\n");
  if (what.stagingBytes)
    print(format("host memory: %s bytes staging for checkpoints per rank, "
                 "allocated and touched\n",
                 grouped((int64_t)*what.stagingBytes).c_str()));
  print("peak: " + peak + "\n");
}

StepCosts fsdp::introduceRun(ArtifactRank &rank, const PreparedRun &run,
                             int64_t done, const IntroducedRun &what) {
  const Rank &context = rank.context();
  if (!context.scalar<float>(range_name::kLoss))
    throw Error("the artifact's program 'train' gives no loss");
  StepCosts costs;
  costs.tokens = rank.tokensOfStep();
  costs.flops = modelFlopsOfStep(context.manifest());
  costs.arenaBytes = context.arenaBytes();
  auto steps = static_cast<double>(run.config.training.steps - done);
  RooflinePeak peak =
      findRooflinePeak(context, run.config, steps * costs.flops);
  costs.peak = peak.flops;
  if (rank.isFirst())
    introduce(context, run, what, peak.text);
  return costs;
}
