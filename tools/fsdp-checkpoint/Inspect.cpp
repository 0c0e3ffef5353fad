//===- Inspect.cpp - fsdp-checkpoint inspect ------------------------------===//
#include "Commands.h"
#include "Table.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/Text.h"
#include "runtime/checkpoint/Open.h"
#include "runtime/checkpoint/native/CheckpointFolder.h"
#include "runtime/checkpoint/native/Description.h"
#include <cstdio>
#include <set>

using namespace fsdp;
using namespace fsdp::checkpoint;

static void printRun(const RunState &state) {
  std::printf(", %lld tokens, seed %llu; saved by %lld rank%s%s%s",
              static_cast<long long>(state.tokens),
              static_cast<unsigned long long>(state.seed),
              static_cast<long long>(state.ranks), state.ranks == 1 ? "" : "s",
              state.mesh.empty() ? "" : ", ", state.mesh.c_str());
}

static void printState(const RunState &state) {
  std::printf("step %lld", static_cast<long long>(state.step));
  if (!state.stepsAlone)
    printRun(state);
  std::printf("\n");
  if (state.skippedSteps > 0)
    std::printf("%lld steps were skipped: something was not finite\n",
                static_cast<long long>(state.skippedSteps));
  if (state.scheduleStart > 0)
    std::printf("the learning rate's schedule started after step %lld\n",
                static_cast<long long>(state.scheduleStart));
  if (state.optimizerStart > 0)
    std::printf("the optimizer's moments have %lld updates\n",
                static_cast<long long>(state.step - state.skippedSteps -
                                       state.optimizerStart));
  if (!state.dataset.empty() || !state.datasetPath.empty())
    std::printf("data %s%s '%s'%s, %lld bytes, %lld of them to train on; "
                "%lld x %lld tokens a step\n",
                state.dataset.c_str(),
                state.idsType.empty() ? "" : (" of " + state.idsType).c_str(),
                printableLine(state.datasetPath).c_str(),
                state.maskChecksum ? " with a mask" : "",
                static_cast<long long>(state.datasetBytes),
                static_cast<long long>(state.trainBytes),
                static_cast<long long>(state.globalBatch),
                static_cast<long long>(state.sequence));
}

static void printModel(const rt::ModelInfo &model) {
  std::string fields;
  for (const auto &[key, value] : model.fields)
    fields += ", " + key + " " + value;
  std::printf("model %s\n", printableLine(model.family + fields).c_str());
}

/// How many tensors there are of each role, and how large they are together.
static void printSizes(const TensorStore &store) {
  struct Sum {
    int64_t tensors = 0;
    uint64_t bytes = 0;
  };
  std::map<std::string, Sum> roles;
  Sum all;
  std::set<std::string> files;
  for (const StoredTensor &tensor : store.tensors()) {
    for (Sum *sum : {&roles[rt::roleName(tensor.role)], &all}) {
      ++sum->tensors;
      sum->bytes += static_cast<uint64_t>(bytesOf(tensor));
    }
    for (const Chunk &chunk : tensor.chunks)
      files.insert(chunk.file);
  }
  std::printf("%lld tensors, %s in %zu file%s",
              static_cast<long long>(all.tensors), bytesText(all.bytes).c_str(),
              files.size(), files.size() == 1 ? "" : "s");
  for (const auto &[role, sum] : roles)
    std::printf("; role %s: %lld, %s", role.c_str(),
                static_cast<long long>(sum.tensors),
                bytesText(sum.bytes).c_str());
  std::printf("\n\n");
}

static void printTensors(const TensorStore &store) {
  Table table({"tensor", "role", "type", "shape", ">bytes", ">boxes"});
  for (const StoredTensor &tensor : store.tensors())
    table.add({tensor.name, rt::roleName(tensor.role), dtypeName(tensor.dtype),
               shapeText(tensor.shape), std::to_string(bytesOf(tensor)),
               std::to_string(tensor.chunks.size())});
  std::printf("%s", table.text().c_str());
}

/// What cannot be read, counted by where it lies: optimizers have an object
/// for every setting of every parameter.
static void printLeftOut(const TensorStore &store) {
  std::map<std::pair<std::string, std::string>, int> counts;
  for (const LeftOut &entry : store.leftOut())
    ++counts[{entry.name.substr(0, entry.name.find('.')), entry.what}];
  if (!counts.empty())
    std::printf("\nnot read\n");
  for (const auto &[key, count] : counts)
    std::printf("  %s: %d times %s\n", printableLine(key.first).c_str(), count,
                printableLine(key.second).c_str());
}

static void printSettings(const RunState &state) {
  std::printf("\nsettings\n");
  for (const auto &[key, value] : state.config)
    std::printf("  %s = %s\n", printableLine(key).c_str(),
                printableLine(value).c_str());
}

bool checkpoint::warnOfDamage(const std::string &folder, const char *then) {
  std::vector<DamagedStep> damaged = damagedSteps(folder);
  for (const DamagedStep &step : damaged)
    printMessage("fsdp-checkpoint", "'" + stepFolder(folder, step.step) +
                                        "' is damaged: " + step.why + "; " +
                                        then);
  return !damaged.empty();
}

std::function<int()> checkpoint::declareInspect(CLI::App &app) {
  struct Options {
    std::string path;
    bool json = false, settings = false;
  };
  auto options = std::make_shared<Options>();
  app.add_option("PATH", options->path, kPathHelp)->required();
  app.add_flag("--json", options->json,
               "print JSON, with every box of every tensor");
  app.add_flag("--settings", options->settings,
               "also print the settings that it was trained with");
  return [options] {
    auto store = openTensorStore(options->path);
    // Of a folder the newest step is shown, whatever is beside it.
    if (findCheckpoint(options->path) != options->path)
      warnOfDamage(options->path, "it was skipped");
    if (options->json) {
      std::printf("%s", descriptionText(*store).c_str());
      return 0;
    }
    std::printf("%s\n", store->path().c_str());
    if (store->state())
      printState(*store->state());
    if (store->model())
      printModel(*store->model());
    printSizes(*store);
    printTensors(*store);
    printLeftOut(*store);
    if (options->settings && store->state())
      printSettings(*store->state());
    return 0;
  };
}
