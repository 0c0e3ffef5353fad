//===- Metrics.h - One line per step, for people and programs ---*- C++ -*-===//
#ifndef FSDP_RUN_METRICS_H
#define FSDP_RUN_METRICS_H

#include "fsdp/Config/RunConfig.h"
#include "fsdp/Runtime/AtomicFile.h"
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

/// What does not change from step to step.
struct StepCosts {
  int64_t tokens; // of all ranks
  double flops;   // of one rank
  double peak;    // flop/s of one rank
  uint64_t arenaBytes;
};

/// Writes the console lines and the JSON lines of the first rank.
class Metrics {
public:
  Metrics(const RunConfig &config, const StepCosts &costs);

  void add(const StepRecord &record);
  /// Gives the file of JSON lines its name.
  void finish();

  const std::vector<StepRecord> &records() const { return steps; }

private:
  void printLine(const StepRecord &record);
  void writeJson(const StepRecord &record);

  const RunConfig &config;
  StepCosts costs;
  std::vector<StepRecord> steps;
  std::unique_ptr<rt::AtomicFile> json;
  double secondsSinceLine = 0;
  int64_t stepsSinceLine = 0;
};

/// Resident memory of this process without pages of files: those of the text
/// come and go as the system likes.
uint64_t residentBytes();

/// "12,345,678".
std::string grouped(int64_t number);

/// snprintf into a string.
std::string format(const char *pattern, ...)
    __attribute__((format(printf, 1, 2)));

} // namespace fsdp

#endif // FSDP_RUN_METRICS_H
