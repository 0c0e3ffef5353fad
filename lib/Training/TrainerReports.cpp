//===- TrainerReports.cpp - What a run tells and leaves -------------------===//
#include "Console.h"
#include "Evaluate.h"
#include "Step.h"
#include "Trainer.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cmath>

using namespace fsdp;
using namespace fsdp::rt;

/// What is to be told of all steps, with those of the runs before.
void Trainer::summarize(double seconds) {
  if (!metrics)
    return;
  const std::vector<StepRecord> &own = metrics->records();
  if (!own.empty())
    print(format("trained %s steps in %.1f s\n",
                 grouped(static_cast<int64_t>(own.size())).c_str(), seconds));
  for (const StepRecord &record : before)
    seconds += record.seconds;
  before.insert(before.end(), own.begin(), own.end());
  summary["steps"] = done;
  if (skipped > 0)
    summary["skipped_steps"] = skipped;
  summary["training_seconds"] = seconds;
  if (before.empty())
    return;
  summary["final_loss"] = before.back().loss;
  // Lines of earlier runs may be lost.
  size_t first = before.size() - 1;
  while (first > 0 && before[first - 1].step + 1 == before[first].step)
    --first;
  curve.firstStep = before[first].step;
  for (size_t i = first; i < before.size(); ++i)
    curve.losses.push_back(before[i].loss / M_LN2);
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

void Trainer::validate(int64_t done) {
  if (run.text->heldOutText().size() < 2)
    return;
  // A batch that was given is the next step's too.
  Batch batch = rank.batch();
  int64_t places = fixedBatch ? batch.rows * batch.sequence : 0;
  std::vector<int32_t> tokens(batch.tokens, batch.tokens + places),
      targets(batch.targets, batch.targets + places);
  std::optional<HeldOutScore> score =
      evaluateHeldOut(rank, *run.text, [this] { return goesOn(); });
  std::copy(tokens.begin(), tokens.end(), batch.tokens);
  std::copy(targets.begin(), targets.end(), batch.targets);
  if (metrics && score)
    metrics->addValidation(done, score->bitsPerByte);
}

/// The run before this one may have been ended between the save of a step and
/// its validation.
void Trainer::validateAgain() {
  if (!start.isOwn || config.metrics.jsonl.empty() || isStopping ||
      done > config.training.steps || !isValidationPoint(done))
    return;
  double isLost = isValidated ? 0 : 1;
  broadcast(&isLost, sizeof isLost); // the first rank has the metrics
  if (isLost != 0)
    validate(done);
}

void Trainer::evaluate() {
  std::string_view heldOut = run.text->heldOutText();
  if (heldOut.size() < 2)
    return;
  std::optional<HeldOutScore> score =
      evaluateHeldOut(rank, *run.text, [this] { return goesOn(); });
  if (!rank.isFirst() || !score)
    return;
  print(format("held-out text (%s bytes predicted): %.4f bits per byte\n",
               grouped(score->predictions).c_str(), score->bitsPerByte));
  curve.heldOut = score->bitsPerByte;
  summary["held_out_bits_per_byte"] = score->bitsPerByte;
  summary["held_out_predictions"] = score->predictions;
}

/// What a model of bytes is worth beside a compressor. Takes seconds, so it
/// comes behind the last collective, in which other ranks would wait for it.
void Trainer::compareWithGzip() {
  if (!rank.isFirst() || !curve.heldOut)
    return;
  std::string_view heldOut = run.text->heldOutText();
  curve.gzipHeldOut = gzipBitsPerByte(heldOut);
  print(format("gzip -9: %.4f bits per byte on the %sheld-out text\n",
               *curve.gzipHeldOut,
               heldOut.size() > kMostGzipBytes ? "first 64 MiB of the " : ""));
  summary["gzip_bits_per_byte_held_out"] = *curve.gzipHeldOut;
}

/// Says what a sample costs: every byte takes a run of "evaluate".
void Trainer::announceSample() const {
  if (!rank.isFirst())
    return;
  const Manifest &manifest = run.artifact->manifest();
  auto bytes = static_cast<double>(*config.sample.length);
  const ProgramInfo &evaluate = manifest.programs[static_cast<size_t>(
      manifest.findProgram("evaluate"))];
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
  std::optional<std::string> story =
      generateText(rank, config, *run.text, [&] {
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
}

void Trainer::writeSummary() {
  // A path need not be UTF-8, as the picture must.
  const std::string &path = run.artifact->directory();
  curve.title = !config.job.description.empty() ? config.job.description
                : isPlainLine(path)             ? path
                                                : printable(path);
  const std::string &folder = config.job.dumpFolder;
  bool hasLosses = !curve.losses.empty(); // of this run or one before it
  if (hasLosses)
    writeFileAtomically(folder + "/loss.svg", drawLossCurve(curve));
  writeFileAtomically(folder + "/summary.json", summary.dump(2) + "\n");
  print(format("written to %s: %ssummary.json", folder.c_str(),
               hasLosses ? "loss.svg, " : ""));
  if (*config.sample.length != 0)
    print(", sample.txt");
  if (!config.metrics.jsonl.empty())
    print(", " + config.metrics.jsonl);
  print("\n");
}
