//===- Trainer.cpp - The run of one rank ----------------------------------===//
#include "Trainer.h"
#include "Console.h"
#include "Evaluate.h"
#include "LossCurve.h"
#include "Metrics.h"
#include "Peak.h"
#include "Rank.h"
#include "Results.h"
#include "RunHeader.h"
#include "Schedule.h"
#include "Step.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/RangeNames.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

using namespace fsdp;
using namespace fsdp::rt;

namespace {

using Clock = std::chrono::steady_clock;

class Trainer {
public:
  Trainer(const PreparedRun &run, const LoadedArtifact &artifact,
          const RunOptions &options, World world);

  void runProgramOnce();
  void runAll();

private:
  void introduce(double peak, const std::string &peakText);
  StepCosts measureCosts();
  struct BegunStep {
    StepRecord record; // what is known when it begins
    Clock::time_point begin;
  };
  BegunStep beginStep(int64_t step);
  void endStep(const BegunStep &step);
  void train();
  void evaluate();
  void writeSample();
  void writeSummary();

  const PreparedRun &run;
  const RunConfig &config;
  const RunOptions &options;
  int threads;
  Rank rank;
  bool fixedBatch = false;
  Clock::time_point lastEnd;        // of a step
  std::unique_ptr<Metrics> metrics; // of the first rank
  LossCurve curve;
  nlohmann::ordered_json summary;
};

} // namespace

Trainer::Trainer(const PreparedRun &run, const LoadedArtifact &artifact,
                 const RunOptions &options, World world)
    : run(run), config(run.config), options(options),
      threads(static_cast<int>(config.compile.threads)),
      rank(artifact, world, threads, options.program.empty(),
           !options.noGraph) {
  rank.initialize(static_cast<uint64_t>(config.training.seed));
  if (!options.load.empty())
    fixedBatch = rank.load(options.load, options.program.empty());
}

void Trainer::runProgramOnce() {
  std::string zeros = rank.unsetInputs(options.program);
  if (rank.isFirst() && !zeros.empty())
    std::fprintf(stderr,
                 "fsdp-run: warning: --program %s runs with zeros for %s; "
                 "--load sets them\n",
                 options.program.c_str(), zeros.c_str());
  rank.run(options.program);
  if (rank.isFirst())
    print(describeResults(rank, options.program));
  if (!options.dump.empty())
    rank.dump(options.dump);
}

void Trainer::introduce(double peak, const std::string &peakText) {
  const Manifest &manifest = run.artifact->manifest();
  int64_t parameters = 0;
  for (const RangeInfo &range : manifest.ranges)
    if (range.role == "parameter")
      parameters += elementCount(range.full);
  print(format("%s: %s parameters on %d ranks (%s), %d thread%s each\n",
               run.artifact->directory().c_str(), grouped(parameters).c_str(),
               rank.world().size, manifest.meshText().c_str(), threads,
               threads == 1 ? "" : "s"));
  print(run.precisionLine + "\n");
  print(format("text: %s bytes to train on, %s held out\n",
               grouped((int64_t)run.text->trainText().size()).c_str(),
               grouped((int64_t)run.text->heldOutText().size()).c_str()));
  print(format("memory: %s bytes of arena per rank, planned and allocated\n",
               grouped((int64_t)rank.arenaBytes()).c_str()));
  print(format("peak: %.1f GFLOP/s per rank (%s)\n", peak / 1e9,
               peakText.c_str()));
}

StepCosts Trainer::measureCosts() {
  const Manifest &manifest = run.artifact->manifest();
  StepCosts costs;
  Batch batch = rank.stepBatch();
  costs.tokens = batch.rows * batch.sequence * rank.dataShard().count();
  costs.flops = flopsOfStep(manifest);
  costs.arenaBytes = rank.arenaBytes();
  costs.peak = config.metrics.peakTflops * 1e12;
  std::string peakText = "as configured";
  if (costs.peak == 0) {
    bool narrow = config.training.mixedPrecisionParam == "bfloat16";
    Peak peak =
        measurePeak(rank.world(), threads, narrow ? DType::BF16 : DType::F32);
    costs.peak = peak.flops;
    auto side = static_cast<long long>(peak.side);
    peakText = format("measured: %s products of %lld x %lld matrices",
                      narrow ? "bf16" : "f32", side, side);
  }
  if (rank.isFirst())
    introduce(costs.peak, peakText);
  return costs;
}

Trainer::BegunStep Trainer::beginStep(int64_t step) {
  BegunStep begun{};
  begun.record.step = step + 1;
  if (!fixedBatch)
    run.text->sampleTraining(static_cast<uint64_t>(config.training.seed), step,
                             rank.dataShard(), rank.stepBatch());
  if (auto *lr = rank.scalar<float>(range_name::kLearningRate)) {
    *lr = static_cast<float>(learningRate(config, step));
    begun.record.lr = *lr;
  }
  if (auto *number = rank.scalar<int32_t>(range_name::kStep))
    *number = static_cast<int32_t>(step + 1);
  begun.begin = Clock::now();
  rank.beginStep();
  return begun;
}

/// Every rank sees the same values and stops at the same step.
static void requireFinite(const StepRecord &record) {
  std::string what = !std::isfinite(record.loss) ? "loss" : "";
  if (record.gradNorm && !std::isfinite(*record.gradNorm))
    what += what.empty() ? "gradient norm" : " and gradient norm";
  if (!what.empty())
    throw Error("step " + std::to_string(record.step) + ": the " + what +
                " is not finite; the run was stopped");
}

void Trainer::endStep(const BegunStep &step) {
  rank.endStep();
  StepRecord record = step.record;
  // Of steps that overlap, each lasts from the end of the one before.
  Clock::time_point end = Clock::now();
  std::chrono::duration<double> seconds = end - std::max(step.begin, lastEnd);
  lastEnd = end;
  record.seconds = seconds.count();
  record.loss = *rank.scalar<float>(range_name::kLoss);
  if (!rank.hasGlobalLoss()) {
    allReduceSum(&record.loss, 1);
    record.loss /= rank.world().size;
  }
  if (const auto *norm = rank.scalar<float>(range_name::kGradNorm))
    record.gradNorm = *norm;
  requireFinite(record);
  if (metrics)
    metrics->add(record);
}

void Trainer::train() {
  if (!rank.scalar<float>(range_name::kLoss))
    throw Error("the artifact's program 'train' gives no loss");
  StepCosts costs = measureCosts();
  if (rank.isFirst())
    metrics = std::make_unique<Metrics>(config, costs,
                                        runHeader(run, rank.world().size));
  Clock::time_point start = Clock::now();
  std::optional<BegunStep> running;
  auto endRunning = [&] {
    if (running)
      endStep(*running);
    running.reset();
  };
  for (int64_t step = 0; step < config.training.steps; ++step) {
    if (!rank.stepsOverlap())
      endRunning();
    BegunStep next = beginStep(step);
    endRunning();
    running = next;
  }
  endRunning();
  if (!metrics)
    return;
  std::chrono::duration<double> seconds = Clock::now() - start;
  print(format("trained %s steps in %.1f s\n",
               grouped(config.training.steps).c_str(), seconds.count()));
  summary["steps"] = config.training.steps;
  summary["training_seconds"] = seconds.count();
  summary["final_loss"] = metrics->records().back().loss;
  for (const StepRecord &record : metrics->records())
    curve.losses.push_back(record.loss / M_LN2);
}

void Trainer::evaluate() {
  std::string_view heldOut = run.text->heldOutText();
  if (!config.validation.enable || heldOut.size() < 2)
    return;
  HeldOutScore score = evaluateHeldOut(rank, *run.text);
  if (!rank.isFirst())
    return;
  double gzipWhole = gzipBitsPerByte(run.text->text());
  double gzipHeldOut = gzipBitsPerByte(heldOut);
  print(format("held-out text (%s bytes predicted): %.4f bits per byte\n",
               grouped(score.predictions).c_str(), score.bitsPerByte));
  print(format("gzip -9: %.4f bits per byte on the whole text, %.4f on the "
               "held-out part\n",
               gzipWhole, gzipHeldOut));
  curve.heldOut = score.bitsPerByte;
  curve.gzipHeldOut = gzipHeldOut;
  summary["held_out_bits_per_byte"] = score.bitsPerByte;
  summary["held_out_predictions"] = score.predictions;
  summary["gzip_bits_per_byte_whole"] = gzipWhole;
  summary["gzip_bits_per_byte_held_out"] = gzipHeldOut;
}

void Trainer::writeSample() {
  if (config.sample.length == 0)
    return;
  std::string story = generateText(rank, config, *run.text);
  if (!rank.isFirst())
    return;
  print(format("sample (temperature %g):\n%s\n", config.sample.temperature,
               printable(story).c_str()));
  writeFileAtomically(config.job.dumpFolder + "/sample.txt", story);
}

void Trainer::writeSummary() {
  // A path need not be UTF-8, as the picture must.
  const std::string &path = run.artifact->directory();
  curve.title = !config.job.description.empty() ? config.job.description
                : isPlainLine(path)             ? path
                                                : printable(path);
  const std::string &folder = config.job.dumpFolder;
  writeFileAtomically(folder + "/loss.svg", drawLossCurve(curve));
  writeFileAtomically(folder + "/summary.json", summary.dump(2) + "\n");
  print(format("written to %s: loss.svg, summary.json", folder.c_str()));
  if (config.sample.length != 0)
    print(", sample.txt");
  if (!config.metrics.jsonl.empty())
    print(", " + config.metrics.jsonl);
  print("\n");
}

void Trainer::runAll() {
  train();
  if (!options.dump.empty())
    rank.dump(options.dump);
  if (run.artifact->manifest().findProgram("evaluate") >= 0) {
    evaluate();
    writeSample();
  }
  if (rank.isFirst())
    writeSummary();
}

void fsdp::runRank(const PreparedRun &run, const LoadedArtifact &artifact,
                   const RunOptions &options, World world,
                   const HandleError &fail) {
  Trainer trainer(run, artifact, options, world);
  try {
    if (options.program.empty())
      trainer.runAll();
    else
      trainer.runProgramOnce();
  } catch (const std::exception &error) {
    fail(error);
    throw;
  }
}
