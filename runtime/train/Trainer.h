//===- Trainer.h - The run of one rank --------------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_TRAINER_H
#define FSDP_RUNTIME_TRAIN_TRAINER_H

#include "Options.h"
#include "Peak.h"
#include "Prepare.h"
#include "Rank.h"
#include "Saver.h"
#include "StartPoint.h"
#include "ValueTable.h"
#include "runtime/report/History.h"
#include "runtime/report/LossCurve.h"
#include "runtime/report/Metrics.h"
#include <chrono>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

namespace fsdp {

/// The run of one rank. Trainer.cpp has its steps, TrainerNonfinite.cpp what
/// becomes of values that are not finite, TrainerSaves.cpp checkpoints and
/// signals, TrainerReports.cpp what it tells of the model and leaves behind.
/// All is collective over the job and throws fsdp::Error.
class Trainer {
public:
  Trainer(const PreparedRun &run, const rt::LoadedArtifact &artifact,
          const RunOptions &options, rt::World world, DrawCurve draw);

  void runProgramOnce();
  /// "evaluate" or "sample".
  void runCommand(const std::string &command);
  void runAll();

private:
  using Clock = std::chrono::steady_clock;

  void begin();
  void createSeedCheckpoint();
  void introduce(const Peak &peak);
  StepCosts measureCosts();
  struct BegunStep {
    StepRecord record; // what is known when it begins
    int32_t number;    // of AdamW's updates, with this one
    Clock::time_point begin;
  };
  void setInputs(BegunStep &step);
  BegunStep beginStep(int64_t step);
  void endStep(const BegunStep &step);
  void checkStep(const BegunStep &step);
  void hearOthers();
  bool goesOn();
  bool isSavePoint(int64_t done) const;
  bool isValidationPoint(int64_t done) const;
  void pauseBehind(int64_t done);
  void runSteps();
  void save(int64_t done);
  void saveAndStop();
  void tellStop();
  bool isLastSaved() const;
  bool lacksLastSave() const;
  void checkLastSave();
  void exportLast();
  bool endOthers();
  std::string firstNonfinite(BegunStep step);
  std::string nameFirstValue(BegunStep &step, bool isBehindUpdate);
  static std::string nonfiniteOf(const StepRecord &record);
  void skipOrStop(const BegunStep &step, const StepRecord &record);
  [[noreturn]] void stop(const StepRecord &record, const std::string &why);
  void train();
  void introduceData();
  void summarize();
  void validate(int64_t done);
  void validateAgain();
  void evaluate();
  bool compareWithGzip();
  void announceSample() const;
  void tellProgress(int64_t bytes) const;
  std::optional<std::string> sample();
  void writeSample();
  void writeSummary();
  void tellWritten() const;
  void writeTrace();

  const PreparedRun &run;
  const RunConfig &config;
  const RunOptions &options;
  int threads;
  Rank rank;
  bool fixedBatch = false;
  /// A rank is asked for a trace: at the end all agree on what became of it.
  bool hasTraces = false;
  checkpoint::RunState state; // but for what changes from step to step
  StartPoint start;
  std::unique_ptr<Saver> saver;        // of a run that saves
  int64_t done = 0;                    // steps that are over
  int64_t skipped = 0, skippedRow = 0; // steps; of them behind the last good
  int stepsBegun = 0;                  // and not ended
  std::optional<ValueTable> values;    // with --check-values
  bool isNamed = false; // the first value of a step that was skipped
  bool isStopping = false;
  std::string whyStopping;
  Clock::time_point lastEnd;        // of a step
  std::unique_ptr<Metrics> metrics; // of the first rank
  History before; // of the run that this goes on from; of the first rank
  Clock::time_point trainBegin;
  bool hasSample = false;
  LossCurve curve;
  DrawCurve draw;
  nlohmann::ordered_json summary;
};

using HandleError = std::function<void(const std::exception &)>;

/// Trains, evaluates, samples and writes what the run is to leave behind; the
/// curve of the loss as `draw` draws it.
/// Collective over the job. Throws fsdp::Error; `fail` gets what is thrown
/// while the context still lives: its end may wait for other ranks, so a job of
/// several is ended by then.
void runRank(const PreparedRun &run, const rt::LoadedArtifact &artifact,
             const RunOptions &options, rt::World world, const DrawCurve &draw,
             const HandleError &fail);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_TRAINER_H
