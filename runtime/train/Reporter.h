//===- Reporter.h - What a run tells and leaves behind ----------*- C++ -*-===//
//
// The console, metrics.jsonl, summary.json and loss.svg of a run. One rank
// reports, the first; on others every call does nothing.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_TRAIN_REPORTER_H
#define FSDP_RUNTIME_TRAIN_REPORTER_H

#include "Evaluate.h"
#include "ResumePoint.h"
#include "runtime/report/History.h"
#include "runtime/report/LossCurve.h"
#include <nlohmann/json.hpp>

namespace fsdp {

class Reporter {
public:
  /// Of what it reports, and how.
  struct Run {
    const RunConfig &config;
    std::string title;                     // of the curve: a path or text
    const rt::ByteDataset *text = nullptr; // null: the tokens are ids
    DrawCurve draw;
    std::function<double()> clock; // seconds
    bool isFirst = true;
  };
  explicit Reporter(Run run) : run(std::move(run)) {}

  /// Before the first step of this run: removes the lines of later steps than
  /// `start` that another run has left. Throws fsdp::Error.
  void beginTraining(const ResumePoint &start, const StepCosts &costs,
                     std::string header);
  /// Whether the runs before have a validation after `step` as their last.
  bool hasValidation(int64_t step) const;

  /// A line of metrics.jsonl, and one of the console where metrics.log_freq
  /// asks for it, after the first step and after the last.
  void addStep(const StepRecord &record);
  void addValidation(int64_t step, const HeldOutScore &score);
  /// What is to be told of all steps, with those of the runs before: `done`,
  /// of which `skipped` were left out.
  void endTraining(int64_t done, int64_t skipped);

  /// The score after the last step, or of the command "evaluate".
  void addHeldOut(const HeldOutScore &score);
  /// Compares it with a compressor. Takes seconds, so it comes after the last
  /// collective, in which other ranks would wait for it. Returns whether the
  /// summary has grown.
  bool compareWithGzip();

  /// The end of a run that a signal has stopped: how, which command goes on,
  /// and the summary of its steps. Throws fsdp::Error.
  void endStopped(const std::string &why, int64_t done, int64_t skipped,
                  const ResumePoint &start);

  /// Throws fsdp::Error.
  void writeSample(const std::string &text);
  void writeSummary();
  /// Which files are written.
  void tellWritten() const;
  /// Throws fsdp::Error if somebody has removed the lines of this run.
  void requireMetrics() const;

private:
  std::vector<SourceLoss> sourcesOf(const HeldOutScore &score) const;
  bool hasMetricsFile() const;

  Run run;
  std::unique_ptr<Metrics> metrics;
  History before; // of the run that this goes on from
  double trainBegin = 0;
  LossCurve curve;
  nlohmann::ordered_json summary;
  bool hasSample = false;
};

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_REPORTER_H
