//===- Trainer.h - A training, put together ---------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_TRAINER_H
#define FSDP_RUNTIME_TRAIN_TRAINER_H

#include "ArtifactRank.h"
#include "Checkpointer.h"
#include "RunCheckpoints.h"
#include "StepLoop.h"
#include "Validation.h"

namespace fsdp {

/// A training on one rank: puts its pieces together and says what comes after
/// what. All is collective over the job and throws fsdp::Error.
class Trainer {
public:
  /// Loads what the run begins with.
  Trainer(ArtifactRank &rank, const PreparedRun &run, const RunOptions &options,
          Reporter &reporter);
  // Its pieces refer to each other.
  Trainer(const Trainer &) = delete;
  Trainer &operator=(const Trainer &) = delete;

  /// Trains, evaluates, samples and writes what the run is to leave behind.
  void run();

private:
  void train();
  void evaluate();
  void pause(int64_t done);
  void stop();

  ArtifactRank &rank;
  const PreparedRun &prepared;
  const RunConfig &config;
  const RunOptions &options;
  Reporter &reporter;
  ResumePoint start;
  std::unique_ptr<Checkpointer> checkpointer; // of a run that saves
  RunControl control;
  RunCheckpoints checkpoints;
  NonfiniteSteps nonfinite;
  Validation validation;
  StepLoop steps;
};

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_TRAINER_H
