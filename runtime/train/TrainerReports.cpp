//===- TrainerReports.cpp - What a run tells and leaves -------------------===//
#include "Agreement.h"
#include "Evaluate.h"
#include "Step.h"
#include "Trainer.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Text.h"
#include "runtime/report/Console.h"
#include "runtime/report/LossUnit.h"
#include <algorithm>
#include <cmath>

using namespace fsdp;
using namespace fsdp::rt;

/// What is to be told of all steps, with those of the runs before.
void Trainer::summarize() {
  if (!metrics)
    return;
  std::chrono::duration<double> own = Clock::now() - trainBegin;
  double seconds = own.count();
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
  const LossUnit &unit = lossUnit(config);
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
// Evaluation
//===----------------------------------------------------------------------===//

void Trainer::introduceData() {
  const Dataset &data = *run.data;
  int64_t train = data.trainTokens(), heldOut = data.heldOutTokens();
  if (run.text)
    return print(format("text: %s bytes to train on, %s held out\n",
                        grouped(train).c_str(), grouped(heldOut).c_str()));
  print(format(
      "ids: %s to train on, %s of them labels; %s held out, %s of "
      "them labels\n",
      grouped(train).c_str(), grouped(data.countLabels(1, train)).c_str(),
      grouped(heldOut).c_str(),
      grouped(heldOut < 2 ? 0 : data.countLabels(train + 1, train + heldOut))
          .c_str()));
}

void Trainer::validate(int64_t done) {
  if (run.data->heldOutTokens() < 2)
    return;
  // A batch that was given is the next step's too.
  Batch batch = rank.batch();
  int64_t places = fixedBatch ? batch.rows * batch.sequence : 0;
  std::vector<int32_t> tokens(batch.tokens, batch.tokens + places),
      targets(batch.targets, batch.targets + places);
  std::optional<HeldOutScore> score =
      evaluateHeldOut(rank, *run.data, [this] { return goesOn(); });
  std::copy(tokens.begin(), tokens.end(), batch.tokens);
  std::copy(targets.begin(), targets.end(), batch.targets);
  if (metrics && score)
    metrics->addValidation({done, score->nats});
}

/// The run before this one may have been ended between the save of a step and
/// its validation.
void Trainer::validateAgain() {
  if (!start.isOwn || config.metrics.jsonl.empty() || isStopping ||
      done > config.training.steps || !isValidationPoint(done))
    return;
  const std::vector<ValidationRecord> &validations = before.validations;
  bool isValidated =
      !validations.empty() && validations.back().step == start.step;
  double isLost = isValidated ? 0 : 1;
  broadcast(&isLost, sizeof isLost); // the first rank has the metrics
  if (isLost != 0)
    validate(done);
}

void Trainer::evaluate() {
  if (run.data->heldOutTokens() < 2)
    return;
  std::optional<HeldOutScore> score =
      evaluateHeldOut(rank, *run.data, [this] { return goesOn(); });
  if (!rank.isFirst() || !score)
    return;
  const LossUnit &unit = lossUnit(config);
  double value = score->nats / unit.nats;
  print(format("held-out %s (%s %s predicted): %.4f %s", unit.tokens,
               grouped(score->predictions).c_str(), unit.counted, value,
               unit.name));
  curve.heldOut = value;
  summary[std::string("held_out_") + unit.key] = value;
  summary["held_out_predictions"] = score->predictions;
  if (!run.text) {
    summary["held_out_perplexity"] = std::exp(score->nats);
    print(format(", perplexity %.3f", std::exp(score->nats)));
  }
  print("\n");
}

/// What a model of bytes is worth beside a compressor. Takes seconds, so it
/// comes after the last collective, in which other ranks would wait for it.
/// Returns whether the summary has grown.
bool Trainer::compareWithGzip() {
  if (!rank.isFirst() || !run.text || !curve.heldOut)
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

/// Says what a sample costs: every byte takes a run of "evaluate".
void Trainer::announceSample() const {
  if (!rank.isFirst())
    return;
  const Manifest &manifest = run.artifact->manifest();
  auto bytes = static_cast<double>(*config.sample.length);
  const ProgramInfo &evaluate =
      manifest.programs[static_cast<size_t>(manifest.findProgram("evaluate"))];
  double steps = bytes * evaluate.flops / flopsOfStep(manifest);
  print(format("sample: %s bytes, each by a run of the program 'evaluate'",
               grouped(*config.sample.length).c_str()));
  if (std::isfinite(steps))
    print(format(": the work of about %s steps",
                 grouped(std::max<int64_t>(1, std::llround(steps))).c_str()));
  print("\n");
}

/// A line when another tenth of the sample is there.
void Trainer::tellProgress(int64_t bytes) const {
  int64_t length = *config.sample.length;
  if (rank.isFirst() && bytes > 0 &&
      bytes * 10 / length > (bytes - 1) * 10 / length)
    print(format("sample: %s of %s bytes\n", grouped(bytes).c_str(),
                 grouped(length).c_str()));
}

/// Generates and prints; the bytes, or nothing if the run is to end.
std::optional<std::string> Trainer::sample() {
  announceSample();
  int64_t bytes = 0;
  std::optional<std::string> story = generateText(rank, config, *run.text, [&] {
    tellProgress(bytes++);
    return goesOn();
  });
  if (rank.isFirst() && story)
    print(format("sample (temperature %g):\n%s\n", config.sample.temperature,
                 printable(*story).c_str()));
  return story;
}

void Trainer::writeSample() {
  if (*config.sample.length == 0)
    return;
  std::optional<std::string> story = sample();
  if (!rank.isFirst() || !story)
    return;
  writeFileAtomically(config.job.dumpFolder + "/sample.txt", *story);
  hasSample = true;
}

void Trainer::writeSummary() {
  // A path need not be UTF-8, as the picture must.
  const std::string &path = run.artifact->directory();
  curve.title = !config.job.description.empty() ? config.job.description
                : isPlainLine(path)             ? path
                                                : printable(path);
  curve.unit = lossUnit(config).name;
  curve.tokens = lossUnit(config).tokens;
  const std::string &folder = config.job.dumpFolder;
  // First, as it is kept where the curve cannot be written.
  writeFileAtomically(folder + "/summary.json", summary.dump(2) + "\n");
  if (!curve.losses.empty()) // of this run or one before it
    writeFileAtomically(folder + "/loss.svg", draw(curve));
}

void Trainer::tellWritten() const {
  print(format("written to %s: %ssummary.json", config.job.dumpFolder.c_str(),
               curve.losses.empty() ? "" : "loss.svg, "));
  if (hasSample)
    print(", sample.txt");
  if (!config.metrics.jsonl.empty())
    print(", " + config.metrics.jsonl);
  print("\n");
}

/// When all else is written, which a trace that cannot be does not undo.
void Trainer::writeTrace() {
  if (!hasTraces)
    return;
  std::string problem = problemOf([this] { rank.writeTrace(); });
  if (!problem.empty()) {
    problem = "the trace is lost: " + problem;
    if (options.trains())
      problem += "; the training is over, and what it writes is in '" +
                 config.job.dumpFolder + "'";
  }
  requireSuccess(rank.world(), problem);
}
