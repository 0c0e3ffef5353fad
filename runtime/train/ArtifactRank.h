//===- ArtifactRank.h - The rank that runs an artifact ----------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_ARTIFACTRANK_H
#define FSDP_RUNTIME_TRAIN_ARTIFACTRANK_H

#include "Options.h"
#include "Prepare.h"
#include "ResumePoint.h"
#include "TrainingRank.h"
#include <chrono>

namespace fsdp {

/// The context of an artifact, the data and the learning rate's schedule.
class ArtifactRank : public TrainingRank {
public:
  /// Sets the initial values. Collective. Throws fsdp::Error.
  ArtifactRank(const PreparedRun &run, const rt::LoadedArtifact &artifact,
               const RunOptions &options, rt::World world);

  Rank &context() { return rank; }
  /// Sets ranges from --load, if it is given.
  void loadRanges();
  /// Begins the schedule of the learning rate with that step.
  void setScheduleStart(int64_t step) { scheduleStart = step; }
  /// Of all ranks, in a step.
  int64_t tokensOfStep();
  /// Writes the traces that ranks were asked for, when all else is written: one
  /// that cannot be written does not undo it. Collective. Throws fsdp::Error.
  void writeTraces();

  bool isFirst() const override { return rank.isFirst(); }
  double seconds() const override;
  int stopSignal() const override;
  void sum(double *values, int64_t count) override;
  bool ofFirst(bool value) override;
  Failures countFailures(const std::string &problem) override;
  void requireSuccess(const std::string &problem) override;
  bool stepsOverlap() const override { return rank.stepsOverlap(); }
  std::optional<double> setInputs(int64_t step, int32_t number) override;
  void beginStep(int64_t step) override;
  void endStep() override;
  int stepsBegun() const override { return begun; }
  double loss() override;
  std::optional<double> gradNorm() const override;
  std::string readValueNames() override;
  std::string firstNonfiniteParameter() override;
  FoundValue firstNonfiniteOfStep() override;
  bool hasHeldOut() const override;
  std::optional<HeldOutScore> evaluateHeldOut(const GoesOn &goesOn) override;

private:
  using Clock = std::chrono::steady_clock;

  const PreparedRun &run;
  const RunOptions &options;
  Clock::time_point created = Clock::now();
  Rank rank;
  std::optional<ValueTable> values;
  /// A rank is asked for a trace: at the end all agree on what became of it.
  bool hasTraces = false;
  bool fixedBatch = false; // --load has given one
  int64_t scheduleStart = 0;
  int begun = 0;
};

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_ARTIFACTRANK_H
