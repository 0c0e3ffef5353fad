//===- Trainer.cpp - The run of one rank ----------------------------------===//
#include "Trainer.h"
#include "Agreement.h"
#include "Console.h"
#include "Evaluate.h"
#include "History.h"
#include "LastExport.h"
#include "LossCurve.h"
#include "Metrics.h"
#include "Nonfinite.h"
#include "Peak.h"
#include "Rank.h"
#include "Results.h"
#include "Resume.h"
#include "RunHeader.h"
#include "Saver.h"
#include "Schedule.h"
#include "Step.h"
#include "StopSignals.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/RangeNames.h"
#include "fsdp/Support/Signals.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iterator>
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
  /// "evaluate" or "sample".
  void runCommand(const std::string &command);
  void runAll();

private:
  void begin();
  void createSeedCheckpoint();
  void introduce(double peak, const std::string &peakText);
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
  bool isLastSaved() const;
  void checkLastSave();
  void exportLast();
  bool endOthers();
  std::string firstNonfinite(BegunStep step);
  std::string nameFirstValue(BegunStep &step, bool isBehindUpdate);
  void skipOrStop(const BegunStep &step, const StepRecord &record);
  [[noreturn]] void stop(const StepRecord &record, const std::string &why);
  void train();
  void summarize(double seconds);
  void validate(int64_t done);
  void validateAgain();
  void evaluate();
  std::optional<std::string> sample();
  void writeSample();
  void writeSummary();

  const PreparedRun &run;
  const RunConfig &config;
  const RunOptions &options;
  int threads;
  Rank rank;
  bool fixedBatch = false;
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
  std::vector<StepRecord> before;   // steps of the run that this goes on from
  bool isValidated = false;         // the last of those; of the first rank
  LossCurve curve;
  nlohmann::ordered_json summary;
};

} // namespace

Trainer::Trainer(const PreparedRun &run, const LoadedArtifact &artifact,
                 const RunOptions &options, World world)
    : run(run), config(run.config), options(options),
      threads(static_cast<int>(config.compile.threads)),
      rank(artifact, world, threads, options.trains(), !options.noGraph) {
  rank.initialize(static_cast<uint64_t>(config.training.seed));
  if (options.checkValues)
    values = readValueTable(*run.artifact);
  begin();
  if (!options.load.empty())
    fixedBatch = rank.load(options.load, options.trains());
}

/// Loads what the run begins with.
void Trainer::begin() {
  if (!options.checkpoint.empty())
    start.path = loadParameters(rank, options.checkpoint);
  if (!options.trains() || !config.checkpoint.enable)
    return;
  state = *run.state;
  start = beginFromCheckpoint(rank, config, state);
  done = start.step;
  skipped = start.skippedSteps;
  requireSuccess(rank.world(), problemOf([&] {
                   if (!rank.isFirst() || !savesCheckpoints(config))
                     return;
                   removeHalfExports(config);
                   checkExportPlace(config, start);
                 }));
  if (savesCheckpoints(config))
    saver = std::make_unique<Saver>(rank, config);
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
  if (values)
    print("values: every one of every step is looked at when it is made, which "
          "is slow\n");
  if (saver)
    print(format("host memory: %s bytes staging for checkpoints per rank, "
                 "allocated and touched\n",
                 grouped((int64_t)saver->stagingBytes()).c_str()));
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

/// A step's inputs, also if it is run again.
void Trainer::setInputs(BegunStep &step) {
  int64_t before = step.record.step - 1;
  if (!fixedBatch)
    run.text->sampleTraining(static_cast<uint64_t>(config.training.seed),
                             before, rank.dataShard(), rank.stepBatch());
  if (auto *lr = rank.scalar<float>(range_name::kLearningRate)) {
    *lr =
        static_cast<float>(learningRate(config, before - start.scheduleStart));
    step.record.lr = *lr;
  }
  if (auto *number = rank.scalar<int32_t>(range_name::kStep))
    *number = step.number;
}

Trainer::BegunStep Trainer::beginStep(int64_t step) {
  BegunStep begun{};
  begun.record.step = step + 1;
  begun.number =
      static_cast<int32_t>(step + 1 - skipped - start.optimizerStart);
  setInputs(begun);
  begun.begin = Clock::now();
  if (values) {
    checkStep(begun);
    return begun;
  }
  rank.beginStep();
  ++stepsBegun;
  return begun;
}

/// What of a step is not finite; empty: all is. The same on every rank.
static std::string nonfiniteOf(const StepRecord &record) {
  std::string what = !std::isfinite(record.loss) ? "loss" : "";
  if (record.gradNorm && !std::isfinite(*record.gradNorm))
    what += what.empty() ? "gradient norm" : " and gradient norm";
  return what;
}

/// Whether AdamW has left out a step of this gradient norm.
static bool changesNothing(const std::optional<double> &gradNorm) {
  return gradNorm && !std::isfinite(*gradNorm);
}

void Trainer::endStep(const BegunStep &step) {
  if (!values) {
    rank.endStep();
    --stepsBegun;
  }
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
  if (!nonfiniteOf(record).empty())
    skipOrStop(step, record);
  else
    skippedRow = 0;
  if (metrics)
    metrics->add(record);
  done = record.step;
  hearOthers();
}

/// What ranks tell each other behind every step of a run that saves: the signal
/// that one of them got, and that a save fails.
void Trainer::hearOthers() {
  if (!saver)
    return;
  constexpr size_t kSignals = std::size(kSavingSignals);
  double heard[kSignals + 1]; // the ranks that got each, and that fail
  for (size_t i = 0; i < kSignals; ++i)
    heard[i] = stopSignal() == kSavingSignals[i] ? 1 : 0;
  heard[kSignals] = saver->hasFailed() ? 1 : 0;
  allReduceSum(heard, kSignals + 1);
  for (size_t i = 0; i < kSignals; ++i)
    if (heard[i] > 0 && !isStopping) {
      isStopping = true;
      whyStopping = stoppedBy(kSavingSignals[i]);
    }
  if (heard[kSignals] > 0)
    saver->finish();
}

/// While nothing is trained.
bool Trainer::goesOn() {
  hearOthers();
  return !isStopping;
}

//===----------------------------------------------------------------------===//
// Values that are not finite
//===----------------------------------------------------------------------===//

/// What is on its way to a checkpoint is of good steps.
void Trainer::stop(const StepRecord &record, const std::string &why) {
  std::string problem = problemOf([&] {
    if (saver)
      saver->finish();
  });
  throw Error("step " + std::to_string(record.step) + ": " + why +
              (problem.empty() ? "" : "; " + problem));
}

/// Runs a step looking at every value; the first that is not finite ends the
/// run.
void Trainer::checkStep(const BegunStep &step) {
  std::string first = firstNonfiniteParameter(rank);
  if (!first.empty())
    stop(step.record, first);
  FoundValue found = firstNonfiniteOfStep(rank, *values);
  if (!found.problem.empty())
    throw Error(found.problem);
  if (!found.text.empty())
    stop(step.record, "the first value that is not finite: " + found.text);
}

/// Ends the steps that have begun meanwhile. Returns whether one has changed
/// the parameters.
bool Trainer::endOthers() {
  bool isChanged = false;
  for (; stepsBegun > 0; --stepsBegun) {
    rank.endStep();
    const auto *norm = rank.scalar<float>(range_name::kGradNorm);
    isChanged |= !norm || std::isfinite(*norm);
  }
  return isChanged;
}

/// Runs a step again that has changed nothing.
std::string Trainer::nameFirstValue(BegunStep &step, bool isBehindUpdate) {
  std::optional<ValueTable> table;
  std::string problem =
      problemOf([&] { table = readValueTable(*run.artifact); });
  Failures failures = countFailures(rank.world(), problem);
  if (failures.count > 0)
    problem = broadcastText(problem, failures.first);
  if (!problem.empty())
    return "all parameters are finite, the step's own values are not (" +
           problem + ")";
  setInputs(step);
  auto [first, mismatch] = firstNonfiniteOfStep(rank, *table);
  if (!isBehindUpdate &&
      std::isfinite(*rank.scalar<float>(range_name::kGradNorm)))
    stop(step.record,
         "it was not finite, and is so run again, with which it has changed "
         "the parameters; the run was stopped: sums of compile.reduce = "
         "\"fast\" may differ, and so may what a machine with a fault "
         "computes; go on from the last checkpoint");
  const std::string behind =
      "the step behind it, which had begun, has changed the parameters";
  if (!mismatch.empty())
    return "all parameters are finite, the step's own values are not (" +
           mismatch + ")";
  if (first.empty())
    return "all parameters are finite, and so are all values of the step run "
           "again" +
           (isBehindUpdate ? ": " + behind : "");
  return "the first value that is not finite: " + first +
         (isBehindUpdate ? "; of the step run again: " + behind : "");
}

/// Names the first parameter that is not finite, or else the first value of the
/// step. Collective.
std::string Trainer::firstNonfinite(BegunStep step) {
  bool isRepeatable = changesNothing(step.record.gradNorm);
  bool isBehindUpdate = endOthers();
  std::string parameter = firstNonfiniteParameter(rank);
  if (!parameter.empty())
    return parameter;
  if (isRepeatable)
    return nameFirstValue(step, isBehindUpdate);
  const char *why = step.record.gradNorm
                        ? "it has changed the parameters"
                        : "without a gradient norm it may have changed the "
                          "parameters";
  return std::string("all parameters are finite, the step's own values are "
                     "not; ") +
         why +
         " and cannot be run again, but fsdp-run --check-values finds the "
         "first such value when it is made";
}

/// A step whose gradient norm is not finite has changed nothing. Ends the run,
/// or counts the step. `step` is as it began, `record` as it ended.
void Trainer::skipOrStop(const BegunStep &step, const StepRecord &record) {
  std::string what = nonfiniteOf(record) + " is not finite";
  bool skips =
      config.training.onNonfinite == "skip" && changesNothing(record.gradNorm);
  ++skippedRow;
  ++skipped;
  bool isTooMuch = skips && skippedRow >= config.training.maxSkippedSteps;
  BegunStep again = step;
  again.record = record;
  if (!skips || isTooMuch) {
    std::string many = isTooMuch
                           ? format(" and so were %lld steps before it "
                                    "(training.max_skipped_steps)",
                                    static_cast<long long>(skippedRow - 1))
                           : "";
    stop(record, "the " + what + many +
                     "; the run was stopped: " + firstNonfinite(again));
  }
  // Once, for it takes longer than a step.
  std::string first = isNamed ? "" : ": " + firstNonfinite(again);
  isNamed = true;
  if (rank.isFirst())
    std::fprintf(stderr,
                 "fsdp-run: warning: step %lld: the %s; it was skipped (%lld "
                 "so far)%s\n",
                 static_cast<long long>(record.step), what.c_str(),
                 static_cast<long long>(skipped), first.c_str());
}

//===----------------------------------------------------------------------===//
// Between two steps
//===----------------------------------------------------------------------===//

bool Trainer::isSavePoint(int64_t done) const {
  const RunConfig::Checkpoint &checkpoint = config.checkpoint;
  return saver &&
         (done % checkpoint.interval == 0 || done == config.training.steps ||
          (done == 1 && checkpoint.enableFirstStepCheckpoint));
}

/// The last step is evaluated by itself.
bool Trainer::isValidationPoint(int64_t done) const {
  int64_t freq = config.validation.freq;
  return config.validation.enable && freq > 0 && done % freq == 0 &&
         done != config.training.steps;
}

void Trainer::pauseBehind(int64_t done) {
  if (isSavePoint(done))
    save(done);
  if (isValidationPoint(done))
    validate(done);
}

void Trainer::save(int64_t done) {
  checkpoint::RunState now = state;
  now.step = done;
  Batch batch = rank.stepBatch();
  now.tokens = start.tokens + (done - start.step) * batch.rows *
                                  batch.sequence * rank.dataShard().count();
  now.skippedSteps = skipped;
  now.scheduleStart = start.scheduleStart;
  now.optimizerStart = start.optimizerStart;
  bool isExport =
      done == config.training.steps && config.checkpoint.lastSaveModelOnly;
  saver->save(now, isExport ? SaveContents::Export : SaveContents::Everything);
}

/// Ends a run that a signal has asked to.
void Trainer::saveAndStop() {
  if (saver->lastStep() != done && done > start.step)
    save(done);
  saver->finish();
  bool isSaved = saver->lastStep() == done || done == start.step;
  if (!isSaved)
    throw Error(whyStopping +
                "; the steps behind the last checkpoint are lost");
  if (!rank.isFirst())
    return;
  print(
      format("%s behind step %s", whyStopping.c_str(), grouped(done).c_str()));
  std::string path =
      done == start.step
          ? start.path
          : checkpoint::stepFolder(checkpointFolder(config), done);
  if (done > 0)
    print(", which " + path + " has: " + commandThatGoesOn(config) +
          " goes on from there");
  print("\n");
}

/// Whether the step that is over last is a checkpoint of the run.
bool Trainer::isLastSaved() const {
  return saver->lastStep() == done || (start.isOwn && start.step == done);
}

/// A save that fails is tried again by the next one; the last has none.
void Trainer::checkLastSave() {
  if (!saver || done == start.step || isLastSaved())
    return;
  requireSuccess(rank.world(),
                 rank.isFirst()
                     ? "step " + std::to_string(done) +
                           ", the last one, is not saved (checkpoint.on_error "
                           "= continue); the same command goes on from the "
                           "newest checkpoint and tries again"
                     : "");
}

/// Behind the last step, which is saved, of a run that is not to end early.
void Trainer::exportLast() {
  if (!isLastSaved()) // as all ranks know, and the first has said
    return;
  hearOthers(); // a signal may have come while it was saved
  if (isStopping)
    return;
  std::string problem;
  if (rank.isFirst())
    problem = problemOf([&] { exportStep(config, done); });
  Failures failures = countFailures(rank.world(), problem);
  hearOthers(); // a signal that came while they waited for the first rank
  if (failures.count == 0)
    return;
  if (!problem.empty())
    problem += "; step " + std::to_string(done) + " itself is saved, and " +
               commandThatGoesOn(config) + " tries again";
  if (config.checkpoint.onError == "stop")
    requireSuccess(rank.world(), problem);
  else if (rank.isFirst())
    std::fprintf(stderr, "fsdp-run: warning: %s%s\n", problem.c_str(),
                 isStopping ? "" : "; the run goes on");
}

void Trainer::createSeedCheckpoint() {
  if (!start.path.empty())
    throw Error("checkpoint.create_seed_checkpoint = true, but there is '" +
                start.path + "' already; choose another checkpoint.folder");
  state.step = 0;
  saver->save(state, SaveContents::Parameters);
  saver->finish();
  if (saver->lastStep() != 0)
    throw Error("the seed checkpoint could not be saved");
}

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

void Trainer::runSteps() {
  std::optional<BegunStep> running;
  auto endRunning = [&] {
    if (running)
      endStep(*running);
    running.reset();
  };
  for (int64_t step = start.step; step < config.training.steps; ++step) {
    // Whether a step was skipped decides the number of the next.
    if (!rank.stepsOverlap() || config.training.onNonfinite == "skip")
      endRunning();
    if (isStopping)
      break;
    BegunStep next = beginStep(step);
    endRunning();
    running = next;
    if (!isSavePoint(step + 1) && !isValidationPoint(step + 1))
      continue;
    endRunning();
    pauseBehind(step + 1);
  }
  endRunning();
}

void Trainer::train() {
  if (!rank.scalar<float>(range_name::kLoss))
    throw Error("the artifact's program 'train' gives no loss");
  StepCosts costs = measureCosts();
  const std::string file = config.job.dumpFolder + "/" + config.metrics.jsonl;
  if (rank.isFirst() && start.isOwn && !config.metrics.jsonl.empty()) {
    History history = rewindMetrics(file, start.step);
    before = std::move(history.steps);
    isValidated = history.lastValidation == start.step;
    if (history.linesCut > 0)
      print(format("metrics: %s lines behind step %s were cut from %s\n",
                   grouped(history.linesCut).c_str(),
                   grouped(start.step).c_str(), file.c_str()));
  }
  std::optional<Resumption> from;
  if (!start.path.empty())
    from = {start.step, start.path, start.isOwn};
  if (rank.isFirst())
    metrics = std::make_unique<Metrics>(
        config, costs, runHeader(run, rank.world().size, from));
  if (rank.isFirst() && start.step >= config.training.steps)
    print(format("all %s steps are over\n",
                 grouped(config.training.steps).c_str()));
  Clock::time_point begin = Clock::now();
  hearOthers(); // a signal may have come before the first step
  validateAgain();
  runSteps();
  if (isStopping)
    return saveAndStop();
  if (saver)
    saver->finish();
  if (exportsLastStep(config))
    exportLast();
  if (isStopping)
    return saveAndStop();
  summarize(std::chrono::duration<double>(Clock::now() - begin).count());
}

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
  double gzipWhole = gzipBitsPerByte(run.text->text());
  double gzipHeldOut = gzipBitsPerByte(heldOut);
  print(format("held-out text (%s bytes predicted): %.4f bits per byte\n",
               grouped(score->predictions).c_str(), score->bitsPerByte));
  print(format("gzip -9: %.4f bits per byte on the whole text, %.4f on the "
               "held-out part\n",
               gzipWhole, gzipHeldOut));
  curve.heldOut = score->bitsPerByte;
  curve.gzipHeldOut = gzipHeldOut;
  summary["held_out_bits_per_byte"] = score->bitsPerByte;
  summary["held_out_predictions"] = score->predictions;
  summary["gzip_bits_per_byte_whole"] = gzipWhole;
  summary["gzip_bits_per_byte_held_out"] = gzipHeldOut;
}

/// Generates and prints; the bytes, or nothing if the run is to end.
std::optional<std::string> Trainer::sample() {
  std::optional<std::string> story =
      generateText(rank, config, *run.text, [this] { return goesOn(); });
  if (rank.isFirst() && story)
    print(format("sample (temperature %g):\n%s\n", config.sample.temperature,
                 printable(*story).c_str()));
  return story;
}

void Trainer::writeSample() {
  if (config.sample.length == 0)
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
  if (config.sample.length != 0)
    print(", sample.txt");
  if (!config.metrics.jsonl.empty())
    print(", " + config.metrics.jsonl);
  print("\n");
}

void Trainer::runCommand(const std::string &command) {
  if (rank.isFirst())
    print("parameters of " + start.path + "\n");
  if (command == "evaluate")
    evaluate();
  else
    sample();
}

void Trainer::runAll() {
  if (config.checkpoint.createSeedCheckpoint)
    return createSeedCheckpoint();
  train();
  if (isStopping)
    return;
  if (!options.dump.empty())
    rank.dump(options.dump);
  if (run.artifact->manifest().findProgram("evaluate") >= 0) {
    if (config.validation.enable)
      evaluate();
    if (!isStopping)
      writeSample();
  }
  if (isStopping)
    saveAndStop(); // all is saved
  else if (rank.isFirst())
    writeSummary();
  if (!isStopping)
    checkLastSave();
}

void fsdp::runRank(const PreparedRun &run, const LoadedArtifact &artifact,
                   const RunOptions &options, World world,
                   const HandleError &fail) {
  Trainer trainer(run, artifact, options, world);
  try {
    if (options.trains())
      trainer.runAll();
    else if (!options.program.empty())
      trainer.runProgramOnce();
    else
      trainer.runCommand(options.command);
  } catch (const std::exception &error) {
    fail(error);
    throw;
  }
}
