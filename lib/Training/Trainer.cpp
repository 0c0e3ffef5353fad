//===- Trainer.cpp - The run of one rank ----------------------------------===//
#include "Trainer.h"
#include "Agreement.h"
#include "Console.h"
#include "Evaluate.h"
#include "History.h"
#include "LastExport.h"
#include "LossCurve.h"
#include "Metrics.h"
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
    Clock::time_point begin;
  };
  BegunStep beginStep(int64_t step);
  void endStep(const BegunStep &step);
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
  std::string firstNonfinite();
  void skipOrStop(const StepRecord &record, const std::string &what);
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
  state = stateOf(config, rank.manifest(), *run.text);
  start = beginFromCheckpoint(rank, config, state);
  done = start.step;
  skipped = start.skippedSteps;
  requireSuccess(rank.world(), problemOf([&] {
                   if (rank.isFirst() && start.step < config.training.steps)
                     checkExportPlace(config);
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

Trainer::BegunStep Trainer::beginStep(int64_t step) {
  BegunStep begun{};
  begun.record.step = step + 1;
  if (!fixedBatch)
    run.text->sampleTraining(static_cast<uint64_t>(config.training.seed), step,
                             rank.dataShard(), rank.stepBatch());
  if (auto *lr = rank.scalar<float>(range_name::kLearningRate)) {
    *lr = static_cast<float>(learningRate(config, step - start.scheduleStart));
    begun.record.lr = *lr;
  }
  if (auto *number = rank.scalar<int32_t>(range_name::kStep))
    *number = static_cast<int32_t>(step + 1 - skipped - start.optimizerStart);
  begun.begin = Clock::now();
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

/// Names the first parameter, by the ranks and then by the artifact's order,
/// that is not finite. Collective.
std::string Trainer::firstNonfinite() {
  for (; stepsBegun > 0; --stepsBegun)
    rank.endStep();
  std::string found;
  for (const RangeInfo &range : rank.manifest().ranges) {
    if (range.role != "parameter" || range.dtype != DType::F32)
      continue;
    int64_t at = rank.firstNonfinite(range);
    if (at >= 0)
      found = format("'%s' is not finite: element %lld of rank %d's part",
                     range.name.c_str(), static_cast<long long>(at),
                     rank.world().rank);
    if (at >= 0)
      break;
  }
  Failures failures = countFailures(rank.world(), found);
  if (failures.count == 0)
    return "all parameters are finite, the step's own values are not";
  // Of those that found one, the first speaks.
  auto size = static_cast<int64_t>(found.size());
  broadcast(&size, sizeof size, failures.first);
  found.resize(static_cast<size_t>(size));
  broadcast(found.data(), size, failures.first);
  return "the parameter " + found;
}

/// A step that is not finite has changed nothing. Ends the run, or counts it.
void Trainer::skipOrStop(const StepRecord &record, const std::string &what) {
  bool skips = config.training.onNonfinite == "skip" && record.gradNorm &&
               !std::isfinite(*record.gradNorm);
  ++skippedRow;
  ++skipped;
  bool isTooMuch = skips && skippedRow >= config.training.maxSkippedSteps;
  if (skips && !isTooMuch) {
    if (rank.isFirst())
      std::fprintf(stderr,
                   "fsdp-run: warning: step %lld: the %s is not finite; it was "
                   "skipped (%lld so far)\n",
                   static_cast<long long>(record.step), what.c_str(),
                   static_cast<long long>(skipped));
    return;
  }
  std::string first = firstNonfinite();
  std::string problem = problemOf([&] {
    if (saver)
      saver->finish(); // what is on its way is of good steps
  });
  std::string many = isTooMuch ? format(" and so were %lld steps before it "
                                        "(training.max_skipped_steps)",
                                        static_cast<long long>(skippedRow - 1))
                               : "";
  throw Error("step " + std::to_string(record.step) + ": the " + what +
              " is not finite" + many + "; the run was stopped: " + first +
              (problem.empty() ? "" : "; " + problem));
}

void Trainer::endStep(const BegunStep &step) {
  rank.endStep();
  --stepsBegun;
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
  std::string what = nonfiniteOf(record);
  if (!what.empty())
    skipOrStop(record, what);
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
    print(", which " + path + " has: the same command goes on from there");
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
  if (!isLastSaved()) // all ranks know, and were told
    return;
  std::string problem;
  if (rank.isFirst())
    problem = problemOf([&] { exportStep(config, done); });
  hearOthers();
  if (isStopping || countFailures(rank.world(), problem).count == 0)
    return;
  if (!problem.empty())
    problem += "; step " + std::to_string(done) +
               " itself is saved, and the same command tries again";
  if (config.checkpoint.onError == "stop")
    requireSuccess(rank.world(), problem);
  else if (rank.isFirst())
    std::fprintf(stderr, "fsdp-run: warning: %s; the run goes on\n",
                 problem.c_str());
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
