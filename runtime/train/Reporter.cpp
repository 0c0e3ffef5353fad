//===- Reporter.cpp - What a run tells and leaves behind ------------------===//
#include "Reporter.h"
#include "fsdp/Data/MixedDataset.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Text.h"
#include "runtime/checkpoint/native/CheckpointFolder.h"
#include "runtime/report/Console.h"
#include "runtime/report/LossUnit.h"
#include <cmath>
#include <filesystem>

using namespace fsdp;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void Reporter::beginTraining(const ResumePoint &start, const StepCosts &costs,
                             std::string header) {
  if (!run.isFirst)
    return;
  const RunConfig &config = run.config;
  const std::string file = config.job.dumpFolder + "/" + config.metrics.jsonl;
  if (start.isOwn && !config.metrics.jsonl.empty()) {
    before = rewindMetrics(file, start.step);
    if (before.linesCut > 0)
      print(format("metrics: %s lines after step %s were removed from %s\n",
                   grouped(before.linesCut).c_str(),
                   grouped(start.step).c_str(), file.c_str()));
  }
  metrics = std::make_unique<Metrics>(config, costs, std::move(header));
  if (start.step >= config.training.steps)
    print(format("all %s steps are over\n",
                 grouped(config.training.steps).c_str()));
  trainBegin = run.clock();
}

bool Reporter::hasValidation(int64_t step) const {
  const std::vector<ValidationRecord> &validations = before.validations;
  return !validations.empty() && validations.back().step == step;
}

void Reporter::addStep(const StepRecord &record) {
  if (metrics)
    metrics->add(record);
}

void Reporter::addValidation(int64_t step, const HeldOutScore &score) {
  if (metrics)
    metrics->addValidation({step, score.nats, sourcesOf(score)});
}

void Reporter::endTraining(int64_t done, int64_t skipped) {
  if (!metrics)
    return;
  double seconds = run.clock() - trainBegin;
  const std::vector<StepRecord> &records = metrics->records();
  if (!records.empty())
    print(format("trained %s steps in %.1f s\n",
                 grouped(static_cast<int64_t>(records.size())).c_str(),
                 seconds));
  std::vector<StepRecord> steps = before.steps;
  for (const StepRecord &record : steps)
    seconds += record.seconds;
  steps.insert(steps.end(), records.begin(), records.end());
  summary["steps"] = done;
  if (skipped > 0)
    summary["skipped_steps"] = skipped;
  summary["training_seconds"] = seconds;
  if (steps.empty())
    return;
  summary["final_loss"] = steps.back().loss;
  // Lines of earlier runs may be lost.
  size_t first = steps.size() - 1;
  while (first > 0 && steps[first - 1].step + 1 == steps[first].step)
    --first;
  const LossUnit &unit = lossUnit(run.config);
  curve.firstStep = steps[first].step;
  for (size_t i = first; i < steps.size(); ++i)
    curve.losses.push_back(steps[i].loss / unit.nats);
  std::vector<ValidationRecord> validations = before.validations;
  validations.insert(validations.end(), metrics->validations().begin(),
                     metrics->validations().end());
  for (const ValidationRecord &validation : validations)
    if (validation.step >= curve.firstStep)
      curve.validations.emplace_back(validation.step,
                                     validation.nats / unit.nats);
}

//===----------------------------------------------------------------------===//
// What is held out
//===----------------------------------------------------------------------===//

/// Of a mixture, those that have something held out.
std::vector<SourceLoss> Reporter::sourcesOf(const HeldOutScore &score) const {
  std::vector<SourceLoss> losses;
  for (size_t i = 0; i < score.streams.size(); ++i)
    if (score.streams[i].predictions > 0)
      losses.push_back({parseMixedSource(run.config.training.mixture[i]).path,
                        score.streams[i].predictions, score.streams[i].nats});
  return losses;
}

void Reporter::addHeldOut(const HeldOutScore &score) {
  if (!run.isFirst)
    return;
  const LossUnit &unit = lossUnit(run.config);
  double value = score.nats / unit.nats;
  print(format("held-out %s (%s %s predicted): %.4f %s", unit.tokens,
               grouped(score.predictions).c_str(), unit.counted, value,
               unit.name));
  curve.heldOut = value;
  summary[std::string("held_out_") + unit.key] = value;
  summary["held_out_predictions"] = score.predictions;
  if (!run.text) {
    summary["held_out_perplexity"] = std::exp(score.nats);
    print(format(", perplexity %.3f", std::exp(score.nats)));
  }
  print("\n");
  for (const SourceLoss &source : sourcesOf(score)) {
    print(format("  %s (%s %s): %.4f %s\n", source.path.c_str(),
                 grouped(source.predictions).c_str(), unit.counted,
                 source.nats / unit.nats, unit.name));
    summary["held_out_sources"].push_back(
        {{"path", source.path},
         {"predictions", source.predictions},
         {unit.key, source.nats / unit.nats}});
  }
}

bool Reporter::compareWithGzip() {
  if (!run.isFirst || !run.text || !curve.heldOut)
    return false;
  curve.gzipHeldOut = gzipBitsPerByte(run.text->heldOutText(kMostGzipBytes));
  print(format("gzip -9: %.4f bits per byte on the %sheld-out text\n",
               *curve.gzipHeldOut,
               run.text->heldOutTokens() > kMostGzipBytes
                   ? "first 64 MiB of the "
                   : ""));
  summary["gzip_bits_per_byte_held_out"] = *curve.gzipHeldOut;
  return true;
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

void Reporter::endStopped(const std::string &why, int64_t done, int64_t skipped,
                          const ResumePoint &start) {
  if (!run.isFirst)
    return;
  print(format("%s after step %s", why.c_str(), grouped(done).c_str()));
  std::string path =
      done == start.step
          ? start.path
          : checkpoint::stepFolder(checkpointFolder(run.config), done);
  if (done > 0)
    print(", which " + path + " has: " + commandThatGoesOn(run.config) +
          " resumes from there");
  print("\n");
  if (done == 0)
    return;
  if (summary.empty()) // the signal came before the last step was over
    endTraining(done, skipped);
  summary["interrupted"] = why;
  writeSummary();
  tellWritten();
  requireMetrics();
}

void Reporter::writeSample(const std::string &text) {
  if (!run.isFirst)
    return;
  writeFileAtomically(run.config.job.dumpFolder + "/sample.txt", text);
  hasSample = true;
}

void Reporter::writeSummary() {
  if (!run.isFirst)
    return;
  curve.title = run.title;
  curve.unit = lossUnit(run.config).name;
  curve.tokens = lossUnit(run.config).tokens;
  const std::string &folder = run.config.job.dumpFolder;
  // First, as it is kept where the curve cannot be written.
  writeFileAtomically(folder + "/summary.json", summary.dump(2) + "\n");
  if (!curve.losses.empty()) // of this run or one before it
    writeFileAtomically(folder + "/loss.svg", run.draw(curve));
}

void Reporter::tellWritten() const {
  if (!run.isFirst)
    return;
  print(format("written to %s: %ssummary.json",
               run.config.job.dumpFolder.c_str(),
               curve.losses.empty() ? "" : "loss.svg, "));
  if (hasSample)
    print(", sample.txt");
  if (hasMetricsFile())
    print(", " + run.config.metrics.jsonl);
  print("\n");
}

bool Reporter::hasMetricsFile() const {
  std::error_code error; // what cannot be looked at is not there
  const std::string &name = run.config.metrics.jsonl;
  return !name.empty() &&
         std::filesystem::exists(run.config.job.dumpFolder + "/" + name, error);
}

void Reporter::requireMetrics() const {
  bool hasWritten = metrics && !metrics->records().empty() &&
                    !run.config.metrics.jsonl.empty();
  if (run.isFirst && hasWritten && !hasMetricsFile())
    throw Error("'" + run.config.job.dumpFolder + "/" +
                run.config.metrics.jsonl +
                "' was removed while the run wrote it; its lines are lost");
}
