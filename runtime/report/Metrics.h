//===- Metrics.h - One line per step, for people and programs ---*- C++ -*-===//
#ifndef FSDP_RUNTIME_REPORT_METRICS_H
#define FSDP_RUNTIME_REPORT_METRICS_H

#include "LineFile.h"
#include "fsdp/Config/RunConfig.h"
#include <memory>
#include <optional>

namespace fsdp {

/// What a step told.
struct StepRecord {
  int64_t step; // from 1
  double loss;  // mean over the ranks
  std::optional<double> gradNorm, lr;
  double seconds;
};

/// The loss on what is held out of a source of a mixture.
struct SourceLoss {
  std::string path;
  int64_t predictions;
  double nats; // per token
};

/// The loss on what is held out, after a step.
struct ValidationRecord {
  int64_t step;
  double nats; // per token
  std::vector<SourceLoss> sources = {};
};

/// What does not change from step to step.
struct StepCosts {
  int64_t tokens; // of all ranks
  double flops;   // of one rank, without what is computed again
  double peak;    // flop/s of one rank; 0: not known
  uint64_t arenaBytes;
};

/// Writes the console lines and the JSON lines of the first rank. A step's
/// line is in the file when add() returns, after those of earlier runs; the
/// first goes with `header`, so that a run without a step leaves nothing.
class Metrics {
public:
  Metrics(const RunConfig &config, const StepCosts &costs, std::string header);

  void add(const StepRecord &record);
  void addValidation(const ValidationRecord &record);

  const std::vector<StepRecord> &records() const { return steps; }
  const std::vector<ValidationRecord> &validations() const { return heldOut; }

private:
  void printLine(const StepRecord &record);
  void writeJson(const StepRecord &record);
  void writeLine();

  const RunConfig &config;
  StepCosts costs;
  std::vector<StepRecord> steps;
  std::vector<ValidationRecord> heldOut;
  /// What is being written; at first the header, which the first step's JSON
  /// line takes along.
  std::string line;
  std::unique_ptr<LineFile> json;
  double secondsSinceLine = 0;
  int64_t stepsSinceLine = 0;
};

/// Resident memory of this process without pages of files: those of the text
/// come and go as the system likes.
uint64_t residentBytes();

/// "12,345,678".
std::string grouped(int64_t number);

} // namespace fsdp

#endif // FSDP_RUNTIME_REPORT_METRICS_H
