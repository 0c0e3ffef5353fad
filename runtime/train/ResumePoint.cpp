//===- ResumePoint.cpp - Where a run begins -------------------------------===//
#include "ResumePoint.h"
#include "Data.h"
#include "RunHeader.h"
#include "fsdp/Data/MixedDataset.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Paths.h"
#include "fsdp/Support/Text.h"
#include "runtime/checkpoint/Open.h"
#include "runtime/checkpoint/native/CheckpointFolder.h"
#include "runtime/report/Metrics.h"
#include <algorithm>
#include <filesystem>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// What a run is of
//===----------------------------------------------------------------------===//

/// As a checkpoint has it, where drawn windows have no word.
static std::string orderText(WindowOrder order) {
  switch (order) {
  case WindowOrder::Random:
    return "";
  case WindowOrder::Shuffled:
    return spelled(DataOrder::Shuffle);
  case WindowOrder::Documents:
    return spelled(DataOrder::Documents);
  }
  return "";
}

/// Absolute; of a mixture "PATH=WEIGHT, PATH=WEIGHT".
static std::string pathOfData(const RunConfig::Training &training) {
  std::string paths;
  for (const std::string &text : training.mixture) {
    MixedSource source = parseMixedSource(text);
    paths += (paths.empty() ? "" : ", ") + absolutePath(source.path) + "=" +
             source.weight;
  }
  return paths.empty() ? absolutePath(training.datasetPath) : paths;
}

RunState fsdp::stateOf(const RunConfig &config, const Manifest &manifest,
                       const Dataset &data) {
  RunState state;
  state.seed = static_cast<uint64_t>(config.training.seed);
  state.dataset = spelled(config.training.dataset);
  state.datasetPath = pathOfData(config.training);
  DataIdentity identity = data.identity();
  state.datasetBytes = identity.bytes;
  state.trainBytes = identity.trainBytes;
  state.datasetChecksum = identity.checksum;
  state.maskChecksum = identity.maskChecksum;
  if (config.training.dataset == DatasetKind::Ids)
    state.idsType = spelled(config.training.idsDtype);
  state.dataOrder = orderText(orderOf(config));
  if (config.training.packing != DataPacking::Wrapped)
    state.packing = spelled(config.training.packing);
  state.globalBatch = config.training.localBatchSize *
                      dataParallelRanks(config) * microbatches(config);
  state.sequence = config.training.seqLen;
  state.mesh = manifest.meshText();
  state.ranks = manifest.ranks();
  state.config = settingsOf(config);
  return state;
}

static bool excludes(const RunConfig &config, CheckpointPart what) {
  const std::vector<CheckpointPart> &all = config.checkpoint.excludeFromLoading;
  return std::find(all.begin(), all.end(), what) != all.end();
}

/// Options that are of a beginning and, given again, would begin again;
/// "dataloader" changes nothing in a folder whose data are those of now.
static std::string optionsOfBeginning(const RunConfig &config) {
  bool excludesMore = excludes(config, CheckpointPart::TrainState) ||
                      excludes(config, CheckpointPart::Optimizer) ||
                      excludes(config, CheckpointPart::LrScheduler);
  std::string options;
  if (config.checkpoint.loadStep >= 0)
    options = "checkpoint.load_step";
  if (excludesMore)
    options += std::string(options.empty() ? "" : " and ") +
               "checkpoint.exclude_from_loading";
  return options;
}

std::string fsdp::commandThatGoesOn(const RunConfig &config) {
  std::string options = optionsOfBeginning(config);
  return "the same command" + (options.empty() ? "" : " without " + options);
}

//===----------------------------------------------------------------------===//
// What is loaded
//===----------------------------------------------------------------------===//

namespace {

/// What a checkpoint is to give a run.
struct Wanted {
  bool optimizer = true;
  /// The optimizer may be absent: at the beginning its moments are zero, and
  /// after the last step nobody needs them.
  bool optimizerMayLack = false;
};

/// Ranges and tensors that belong together, and what does not fit.
class Matching {
public:
  Matching(const Manifest &manifest, const TensorStore &store, Wanted wanted);

  /// Throws fsdp::Error with all that differs.
  void check(const TensorStore &store) const;
  const std::vector<std::pair<const RangeInfo *, const StoredTensor *>> &
  pairs() const {
    return found;
  }

private:
  void compare(const RangeInfo &range, const StoredTensor &tensor);

  std::vector<std::pair<const RangeInfo *, const StoredTensor *>> found;
  std::vector<std::string> problems;
  bool onlyOptimizer = true; // concern the optimizer
};

} // namespace

void Matching::compare(const RangeInfo &range, const StoredTensor &tensor) {
  std::string difference;
  if (range.full != tensor.shape)
    difference = "is " + shapeText(tensor.shape) + " there and " +
                 shapeText(range.full) + " in the artifact";
  else if (tensor.role != range.role)
    difference = "is a " + roleName(tensor.role) + " there and a " +
                 roleName(range.role) + " in the artifact";
  else if (isFloat(tensor.dtype) != isFloat(range.dtype))
    difference = std::string("has the type ") + dtypeName(tensor.dtype) +
                 " there and " + dtypeName(range.dtype) + " in the artifact";
  if (difference.empty())
    return found.emplace_back(&range, &tensor), void();
  problems.push_back("'" + range.name + "' " + difference);
  onlyOptimizer &= range.role == RangeRole::State;
}

Matching::Matching(const Manifest &manifest, const TensorStore &store,
                   Wanted wanted) {
  for (const RangeInfo &range : manifest.ranges) {
    bool isState = range.role == RangeRole::State;
    if (!isSaved(range) || (isState && !wanted.optimizer))
      continue;
    if (const StoredTensor *tensor = store.find(range.name)) {
      compare(range, *tensor);
    } else if (!isState || !wanted.optimizerMayLack) {
      problems.push_back("'" + range.name + "', a " + roleName(range.role) +
                         " of the artifact, is not there");
      onlyOptimizer &= isState;
    }
  }
  for (const StoredTensor &tensor : store.tensors()) {
    const RangeInfo *range = manifest.findRange(tensor.name);
    bool isState = tensor.role == RangeRole::State;
    if ((range && isSaved(*range)) || (isState && !wanted.optimizer))
      continue;
    problems.push_back("'" + tensor.name + "' is not in the artifact");
    onlyOptimizer &= isState;
  }
}

void Matching::check(const TensorStore &store) const {
  if (problems.empty())
    return;
  constexpr size_t kMost = 20;
  std::string text =
      "the checkpoint '" + store.path() + "' does not fit the artifact:";
  for (size_t i = 0; i < std::min(problems.size(), kMost); ++i)
    text += "\n  " + problems[i];
  if (problems.size() > kMost)
    text += "\n  and " +
            grouped(static_cast<int64_t>(problems.size() - kMost)) + " more";
  if (onlyOptimizer)
    text += "\n--checkpoint.exclude_from_loading=optimizer starts with moments "
            "of zero";
  throw Error(text);
}

//===----------------------------------------------------------------------===//
// Where the steps go on
//===----------------------------------------------------------------------===//

static std::string listOf(const std::vector<int64_t> &steps) {
  std::string text;
  for (int64_t step : steps)
    text += (text.empty() ? "" : ", ") + std::to_string(step);
  return text;
}

static bool hasStep(const std::vector<int64_t> &steps, int64_t step) {
  return std::find(steps.begin(), steps.end(), step) != steps.end();
}

bool fsdp::lacksLoadStep(const RunConfig &config) {
  int64_t wanted = config.checkpoint.loadStep;
  return wanted >= 0 &&
         !hasStep(committedSteps(checkpointFolder(config)), wanted);
}

std::string fsdp::findOwnCheckpoint(const RunConfig &config) {
  std::string folder = checkpointFolder(config);
  std::vector<int64_t> steps = committedSteps(folder);
  int64_t wanted = config.checkpoint.loadStep;
  if (wanted < 0)
    return steps.empty() ? "" : stepFolder(folder, steps.back());
  if (!hasStep(steps, wanted))
    throw Error("checkpoint.load_step = " + std::to_string(wanted) + ", but '" +
                folder +
                (steps.empty() ? "' has no checkpoint"
                               : "' has those of steps " + listOf(steps) +
                                     "; " + commandThatGoesOn(config) +
                                     " resumes from the newest"));
  return stepFolder(folder, wanted);
}

ResumeSource fsdp::findResumeSource(const RunConfig &config) {
  std::string own = findOwnCheckpoint(config);
  if (!own.empty())
    return {own, true};
  return {findCheckpoint(config.checkpoint.initialLoadPath), false};
}

/// A line, where a text differs; an empty one is called `unset`.
static std::string differenceOf(const char *key, const std::string &before,
                                const std::string &after,
                                const std::string &unset = "") {
  if (before == after)
    return "";
  return std::string("\n  ") + key + ": " + (before.empty() ? unset : before) +
         " in the checkpoint, " + (after.empty() ? unset : after) + " now";
}

/// Throws unless the data of the next steps are those that the checkpoint's run
/// would have had.
static void checkData(const RunState &then, const RunState &now,
                      const std::string &path) {
  constexpr char kRemedy[] = "\n"
                             "--checkpoint.exclude_from_loading=dataloader "
                             "continues with the current data";
  if (then.stepsAlone)
    throw Error("the checkpoint '" + path +
                "' does not say which data its run had (seed, text, batch), so "
                "their order cannot be continued" +
                kRemedy);
  std::string differences;
  auto compare = [&](const char *what, const auto &before, const auto &after) {
    if (before != after)
      differences +=
          format("\n  %s: %s in the checkpoint, %s now", what,
                 std::to_string(before).c_str(), std::to_string(after).c_str());
  };
  compare("training.seed", then.seed, now.seed);
  differences += differenceOf("training.dataset", then.dataset, now.dataset);
  std::string tokens = now.dataset == spelled(DatasetKind::Bytes) ? "text" : "ids";
  compare(("bytes of the " + tokens).c_str(), then.datasetBytes,
          now.datasetBytes);
  if (then.datasetBytes == now.datasetBytes && then.datasetChecksum &&
      then.datasetChecksum != now.datasetChecksum)
    differences +=
        "\n  the " + tokens +
        ": as many bytes as in the checkpoint, but others, in '" +
        now.datasetPath + "'" +
        (then.datasetPath.empty() || then.datasetPath == now.datasetPath
             ? ""
             : "; the checkpoint's were in '" + then.datasetPath + "'");
  if (then.dataset == now.dataset)
    differences +=
        differenceOf("training.ids_dtype", then.idsType, now.idsType);
  if (then.dataset == now.dataset && then.maskChecksum != now.maskChecksum)
    differences += std::string("\n  training.ids_mask_path: ") +
                   (then.maskChecksum && now.maskChecksum
                        ? "another mask than in the checkpoint"
                    : now.maskChecksum ? "no mask in the checkpoint, one now"
                                       : "a mask in the checkpoint, none now");
  differences += differenceOf("training.data_order", then.dataOrder,
                              now.dataOrder, spelled(DataOrder::Random));
  differences += differenceOf("training.packing", then.packing, now.packing,
                              spelled(DataPacking::Wrapped));
  compare("bytes of it to train on (validation.fraction)", then.trainBytes,
          now.trainBytes);
  compare("sequences in the batch of all ranks (training.local_batch_size, "
          "training.global_batch_size)",
          then.globalBatch, now.globalBatch);
  compare("training.seq_len", then.sequence, now.sequence);
  if (!differences.empty())
    throw Error("the order of the data would not be that of the checkpoint '" +
                path + "':" + differences + kRemedy);
}

/// What `store` says of the steps before.
static ResumePoint resumeFrom(const TensorStore &store, const RunConfig &config,
                              const RunState &now) {
  ResumePoint start;
  start.path = store.path();
  const RunState &then = *store.state();
  if (excludes(config, CheckpointPart::TrainState))
    return start;
  start.step = then.step;
  start.tokens = then.tokens;
  start.skippedSteps = then.skippedSteps;
  start.scheduleStart = excludes(config, CheckpointPart::LrScheduler)
                            ? then.step
                            : then.scheduleStart;
  start.optimizerStart = excludes(config, CheckpointPart::Optimizer)
                             ? then.step - then.skippedSteps
                             : then.optimizerStart;
  // Where no step is over, no data were seen.
  if (then.step > 0 && !excludes(config, CheckpointPart::DataLoader))
    checkData(then, now, store.path());
  return start;
}

static constexpr Wanted kParameters{false, false};

namespace {
/// A checkpoint, and what it is to give.
struct Found {
  std::unique_ptr<TensorStore> store;
  ResumePoint start;
  Wanted wanted = kParameters;
};
} // namespace

static Wanted wantedOf(const TensorStore &store, const RunConfig &config) {
  int64_t step = store.state()->step;
  bool optimizer = !excludes(config, CheckpointPart::Optimizer);
  if (optimizer && !store.optimizerProblem().empty())
    throw Error("the optimizer cannot resume from '" + store.path() +
                "': " + store.optimizerProblem() +
                "\n--checkpoint.exclude_from_loading=optimizer starts with "
                "moments of zero");
  return {optimizer, step == 0 || step >= config.training.steps};
}

std::string fsdp::remedyOfDamage(const RunConfig &config,
                                 const std::string &path) {
  // Whoever has asked for this step can ask for others.
  if (config.checkpoint.loadStep >= 0)
    return "\n" + commandThatGoesOn(config) +
           " resumes from the newest checkpoint";
  std::string folder = checkpointFolder(config);
  std::optional<int64_t> older;
  for (int64_t step : committedSteps(folder)) {
    if (stepFolder(folder, step) == path)
      break;
    older = step;
  }
  if (!older)
    return "\nwith '" + path + "' moved away, the run starts anew";
  return "\n--checkpoint.load_step=" + std::to_string(*older) +
         " resumes from the one before, and so does the same command with '" +
         path + "' moved away";
}

static std::unique_ptr<TensorStore> openOwnStore(const RunConfig &config,
                                                 const std::string &path) {
  try {
    return openTensorStore(path);
  } catch (const Error &error) {
    throw Error(error.what() + remedyOfDamage(config, path));
  }
}

/// A step under another's name would be gone on from again and again, as the
/// newest, and be replaced where its name comes again.
static void checkName(const std::string &path, int64_t step) {
  std::filesystem::path place(path);
  std::string own = stepFolder(place.parent_path().string(), step);
  if (place != own)
    throw Error("'" + path + "' is a checkpoint of step " +
                std::to_string(step) + "; call it '" + own +
                "', or move it out of the folder");
}

static Found openOwn(const RunConfig &config, const RunState &now,
                     const std::string &path) {
  Found found;
  found.store = openOwnStore(config, path);
  if (!found.store->state())
    throw Error("'" + path + "' does not say at which step it was saved");
  checkName(path, found.store->state()->step);
  if (excludes(config, CheckpointPart::TrainState))
    throw Error(
        "checkpoint.exclude_from_loading = train_state counts steps "
        "from 1 again, but '" +
        checkpointFolder(config) +
        "' has checkpoints already: " + commandThatGoesOn(config) +
        " resumes from the newest; to start anew, name one as "
        "checkpoint.initial_load_path and choose another checkpoint.folder");
  found.start = resumeFrom(*found.store, config, now);
  found.start.isOwn = found.start.step > 0;
  found.wanted = wantedOf(*found.store, config);
  return found;
}

static bool hasMoments(const TensorStore &store) {
  const auto &tensors = store.tensors();
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const StoredTensor &tensor) {
                       return tensor.role == RangeRole::State;
                     });
}

static Found openInitial(const RunConfig &config, const RunState &now,
                         const std::string &path) {
  const RunConfig::Checkpoint &checkpoint = config.checkpoint;
  Found found;
  found.store = openTensorStore(path);
  const std::optional<RunState> &then = found.store->state();
  if (checkpoint.initialLoadInHf && then)
    throw Error("checkpoint.initial_load_in_hf = true, but '" +
                checkpoint.initialLoadPath +
                "' is a checkpoint of a run, not a Hugging Face directory");
  found.start.path = found.store->path();
  if (checkpoint.initialLoadModelOnly)
    return found;
  if (!then)
    throw Error("'" + checkpoint.initialLoadPath +
                "' has only parameters: keep "
                "checkpoint.initial_load_model_only = true");
  found.start = resumeFrom(*found.store, config, now);
  found.wanted = wantedOf(*found.store, config);
  if (excludes(config, CheckpointPart::TrainState) && found.wanted.optimizer &&
      then->step > 0 && hasMoments(*found.store))
    throw Error("checkpoint.exclude_from_loading = train_state counts steps "
                "from 1 again, but the moments of '" +
                found.start.path + "' are those of step " +
                std::to_string(then->step) +
                "; --checkpoint.exclude_from_loading=train_state,optimizer "
                "starts them anew too");
  return found;
}

/// Weights of another model than the artifact's are refused, those of another
/// rotary layout are given its own.
static FittingCheckpoint fit(const Manifest &manifest, Found found) {
  if (manifest.model)
    found.store->adaptTo(*manifest.model);
  Matching matching(manifest, *found.store, found.wanted);
  matching.check(*found.store);
  return {std::move(found.store), std::move(found.start), matching.pairs()};
}

FittingCheckpoint fsdp::openResumeSource(const RunConfig &config,
                                         const Manifest &manifest,
                                         const RunState &now,
                                         const ResumeSource &from) {
  if (from.path.empty())
    return {};
  return fit(manifest, from.isOwn ? openOwn(config, now, from.path)
                                  : openInitial(config, now, from.path));
}

FittingCheckpoint fsdp::openParameters(const Manifest &manifest,
                                       const std::string &path) {
  return fit(manifest, {openTensorStore(path), {}, kParameters});
}
