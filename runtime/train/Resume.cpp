//===- Resume.cpp - Loading what a run begins with ------------------------===//
#include "Resume.h"
#include "Agreement.h"
#include "LastExport.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/Text.h"
#include "runtime/checkpoint/Open.h"
#include "runtime/checkpoint/native/CheckpointFolder.h"
#include "runtime/report/Console.h"
#include "runtime/report/Metrics.h"
#include <algorithm>
#include <cstdio>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;

/// Reads this rank's boxes.
static void load(Rank &rank, const FittingCheckpoint &from) {
  for (const auto &[range, tensor] : from.tensors) {
    TensorReader reader(*tensor,
                        rank.manifest().shardView(*range, rank.world().rank),
                        range->dtype);
    auto element = static_cast<uint64_t>(sizeOf(range->dtype));
    rank.write(*range, [&](std::byte *piece, uint64_t first, uint64_t bytes) {
      reader.read(static_cast<int64_t>(first / element),
                  static_cast<int64_t>(bytes / element), piece);
    });
  }
}

/// The first rank looks for a checkpoint, so that all ranks take the same: a
/// run may save another one meanwhile.
static ResumeSource findForAll(const Rank &rank,
                               const std::function<ResumeSource()> &find) {
  ResumeSource found;
  requireSuccess(rank.world(), problemOf([&] {
                   if (rank.isFirst())
                     found = find();
                 }));
  found.path = broadcastText(found.path);
  broadcast(&found.isOwn, sizeof found.isOwn);
  return found;
}

std::string fsdp::loadParameters(Rank &rank, const std::string &path) {
  std::string found = findForAll(rank, [&] {
                        return ResumeSource{findCheckpoint(path), false};
                      }).path;
  load(rank, openParameters(rank.manifest(), found));
  return found;
}

static void sayNewer(const RunConfig &config) {
  std::string folder = checkpointFolder(config);
  std::vector<int64_t> steps = committedSteps(folder);
  if (savesCheckpoints(config) && config.checkpoint.loadStep >= 0 &&
      config.checkpoint.loadStep != steps.back())
    printMessage(kRunWarning,
                 format("'%s' has newer checkpoints, up to step %lld: they "
                        "stay until this run comes to their steps, and a run "
                        "without checkpoint.load_step resumes from the newest",
                        folder.c_str(), static_cast<long long>(steps.back())));
}

static void sayOtherSteps(const RunState &then, const RunConfig &config) {
  auto steps = then.config.find("training.steps");
  std::string now = std::to_string(config.training.steps);
  if (steps != then.config.end() && steps->second != now)
    print("checkpoint: the learning rate continues as in a run of " + now +
          " steps; the checkpoint's was one of " +
          printableLine(steps->second) + "\n");
}

/// A setting of the checkpoint's run as text. One that it did not know yet was
/// what `standard` says.
static std::string settingThen(const RunState &then,
                               const ConfigOption &standard) {
  auto found = then.config.find(standard.name);
  if (found == then.config.end())
    return standard.text();
  return isPlainLine(found->second) ? found->second : "something unreadable";
}

/// Says which settings of the optimizer and of the learning rate's schedule are
/// others than the checkpoint's: no run has to keep them, but few mean to
/// change them. A schedule that begins anew is asked for.
static void warnOfOtherRates(const RunState &then, RunConfig now) {
  const std::vector<CheckpointPart> &anew = now.checkpoint.excludeFromLoading;
  bool isScheduleNew = std::find(anew.begin(), anew.end(),
                                 CheckpointPart::LrScheduler) != anew.end();
  RunConfig defaults;
  std::vector<ConfigOption> options = configOptions(now),
                            standards = configOptions(defaults);
  std::vector<std::string> differences;
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string &name = options[i].name;
    bool isSchedule = name.rfind("lr_scheduler.", 0) == 0;
    bool counts = name.rfind("optimizer.", 0) == 0 ||
                  (isSchedule && !isScheduleNew) || name == "training.max_norm";
    std::string before = settingThen(then, standards[i]);
    if (counts && before != options[i].text())
      differences.push_back(name + " = " + options[i].text() + " instead of " +
                            before);
  }
  if (!differences.empty())
    printMessage(
        kRunWarning,
        "the run continues with other settings than the checkpoint's: " +
            joinedText(differences, ", "));
}

static void clean(const std::string &folder) {
  for (const std::string &left : cleanCheckpoints(folder))
    printMessage(kRunWarning,
                 "'" + left +
                     "' stays: it contains a file that is not part of a "
                     "checkpoint, or is not a directory");
}

ResumePoint fsdp::beginFromCheckpoint(Rank &rank, const RunConfig &config,
                                      const RunState &now) {
  ResumeSource from = findForAll(rank, [&] {
    if (savesCheckpoints(config))
      clean(checkpointFolder(config));
    ResumeSource source = findResumeSource(config);
    sayNewer(config);
    return source;
  });
  FittingCheckpoint found =
      openResumeSource(config, rank.manifest(), now, from);
  if (!found.store)
    return {};
  try {
    load(rank, found);
  } catch (const Error &error) {
    // There are others, of which the checkpoint is not the cause.
    std::string problem = error.what();
    bool isDamage = problem.rfind("damaged ", 0) == 0;
    throw Error(problem + (from.isOwn && isDamage
                               ? remedyOfDamage(config, from.path)
                               : ""));
  }
  ResumePoint start = found.start;
  if (!rank.isFirst())
    return start;
  if (start.step > 0) {
    const RunState &then = *found.store->state();
    sayOtherSteps(then, config);
    if (!then.stepsAlone)
      warnOfOtherRates(then, config);
    print(format("checkpoint: resumes after step %s, from %s\n",
                 grouped(start.step).c_str(), start.path.c_str()));
  } else {
    print("checkpoint: starts from the parameters of " + start.path + "\n");
  }
  return start;
}

ResumePoint fsdp::beginTraining(Rank &rank, const PreparedRun &run) {
  const RunConfig &config = run.config;
  if (!config.checkpoint.enable)
    return {};
  ResumePoint start = beginFromCheckpoint(rank, config, *run.state);
  requireSuccess(rank.world(), problemOf([&] {
                   if (!rank.isFirst() || !savesCheckpoints(config))
                     return;
                   removeHalfExports(config);
                   checkExportPlace(config, start);
                 }));
  return start;
}
