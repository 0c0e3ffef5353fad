//===- Rank.cpp - One rank's context and its named ranges -----------------===//
#include "Rank.h"
#include "LoadedFile.h"
#include "Outputs.h"
#include "Step.h"
#include "ValueTable.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Data/Initialize.h"
#include "fsdp/Data/Safetensors.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/RangeNames.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>
#include <utility>

using namespace fsdp;
using namespace fsdp::rt;

/// Inputs, which the host writes, and outputs of one element, which it reads
/// after every run. Larger ones are read when somebody asks.
static std::vector<ProgramExchange> exchangesOf(const Manifest &manifest) {
  std::vector<ProgramExchange> exchanges;
  for (const ProgramInfo &program : manifest.programs) {
    ProgramExchange &exchange = exchanges.emplace_back();
    for (const std::string &name : program.inputs)
      if (const RangeInfo *range = manifest.findRange(name);
          range->role == RangeRole::Input)
        exchange.inputs.push_back({range->offset, range->bytes});
    for (const std::string &name : program.outputs)
      if (const RangeInfo *range = manifest.findRange(name);
          range->elements() == 1)
        exchange.outputs.push_back({range->offset, range->bytes});
  }
  return exchanges;
}

Rank::Rank(const LoadedArtifact &artifact, World world, int threads,
           bool trains, bool graphs)
    : artifact(artifact), place(world),
      shard(fsdp::dataShard(artifact.manifest(), world)),
      microbatches(trains ? microbatchesOf(artifact.manifest()) : 1) {
  ContextOptions options;
  options.threads = threads;
  options.meshAxes = manifest().meshSizes();
  options.exchanges = exchangesOf(manifest());
  options.graphs = graphs;
  options.cacheFolder = cacheFolder();
  if (!tracePath("", world.rank).empty())
    options.callNames = callNames(readValueTable(artifact.artifactFolder()));
  if (trains)
    listStepRuns();
  for (const StepRun &run : stepRuns)
    options.step.push_back(run.program);
  const auto &fingerprint = manifest().fingerprint;
  if (auto target = fingerprint.find("target"); target != fingerprint.end())
    options.target = target->second;
  std::string error;
  context = createContext(artifact.artifact(), options, error);
  if (!context)
    throw Error(error);
  if (microbatches == 1)
    return;
  Batch whole = stepBatch();
  auto places = static_cast<size_t>(whole.rows * whole.sequence);
  try {
    stepTokens.resize(places);
    stepTargets.resize(places);
    if (batch().starts)
      stepStarts.resize(static_cast<size_t>(startsOf(whole)));
  } catch (const std::bad_alloc &) {
    throw Error("there is no memory for the tokens and targets of " +
                std::to_string(microbatches) + " microbatches, " +
                std::to_string(2 * sizeof(int32_t) * places) +
                " bytes; lower training.global_batch_size");
  }
}

void Rank::listStepRuns() {
  for (const ProgramRuns &runs : trainStepOf(manifest())) {
    bool isSliced =
        microbatches > 1 && takesMicrobatch(manifest().programs[runs.program]);
    for (int64_t i = 0; i < runs.times; ++i)
      stepRuns.push_back({int(runs.program), isSliced ? i : -1});
  }
}

uint64_t Rank::arenaBytes() const { return rt::arenaBytes(*context); }

std::byte *Rank::find(const std::string &name) const {
  const RangeInfo *range = manifest().findRange(name);
  return range ? hostAddress(*context, range->offset) : nullptr;
}

/// Where the host keeps an input until a program takes it; null for what is in
/// the arena alone.
std::byte *Rank::inputAddress(const RangeInfo &range) const {
  return range.role == RangeRole::Input ? hostAddress(*context, range.offset)
                                        : nullptr;
}

void Rank::read(const RangeInfo &range, const TakePiece &take) const {
  if (std::byte *here = inputAddress(range))
    take(here, 0, range.bytes);
  else
    read(ArenaRange{range.offset, range.bytes}, take);
}

void Rank::read(const ArenaRange &range, const TakePiece &take) const {
  download(*context, range, take);
}

void Rank::read(const RangeInfo &range, uint64_t first, uint64_t bytes,
                std::byte *to) const {
  download(*context, {range.offset + first, bytes},
           [&](const std::byte *piece, uint64_t at, uint64_t count) {
             std::memcpy(to + at, piece, count);
           });
}

void Rank::write(const RangeInfo &range, const FillPiece &fill) {
  areCopiesStale |= range.role == RangeRole::Parameter;
  if (std::byte *here = inputAddress(range))
    fill(here, 0, range.bytes);
  else
    upload(*context, {range.offset, range.bytes}, fill);
}

std::byte *Rank::findScalar(const std::string &name, size_t bytes) const {
  const RangeInfo *range = manifest().findRange(name);
  if (range && range->bytes != bytes)
    throw Error("the range '" + name + "' of the artifact is no scalar of " +
                std::to_string(bytes) + " bytes");
  return find(name);
}

Batch Rank::batch() const {
  const RangeInfo *tokens = manifest().findRange(range_name::kTokens);
  return {tokens->shape[0], tokens->shape[1],
          reinterpret_cast<int32_t *>(find(range_name::kTokens)),
          reinterpret_cast<int32_t *>(find(range_name::kTargets)),
          reinterpret_cast<int32_t *>(find(range_name::kDocumentStarts))};
}

Batch Rank::stepBatch() {
  Batch one = batch();
  if (microbatches == 1)
    return one;
  return {one.rows * microbatches, one.sequence, stepTokens.data(),
          stepTargets.data(), one.starts ? stepStarts.data() : nullptr};
}

/// Copies a slice of the step's batch to the inputs of the programs.
void Rank::setMicrobatch(int64_t index) {
  Batch one = batch();
  int64_t places = one.rows * one.sequence;
  std::copy_n(stepTokens.data() + index * places, places, one.tokens);
  std::copy_n(stepTargets.data() + index * places, places, one.targets);
  if (one.starts)
    std::copy_n(stepStarts.data() + index * startsOf(one), startsOf(one),
                one.starts);
}

/// Where all slices of an input are kept; null if it has none.
const int32_t *Rank::placeInStep(const std::string &input) const {
  if (microbatches == 1)
    return nullptr;
  return input == range_name::kTokens    ? stepTokens.data()
         : input == range_name::kTargets ? stepTargets.data()
         : input == range_name::kDocumentStarts && !stepStarts.empty()
             ? stepStarts.data()
             : nullptr;
}

int32_t *Rank::placeInStep(const std::string &input) {
  return const_cast<int32_t *>(std::as_const(*this).placeInStep(input));
}

void Rank::setInputsOfRun(size_t run) {
  if (stepRuns[run].slice >= 0)
    setMicrobatch(stepRuns[run].slice);
}

/// Those that no single run has alone.
void Rank::setInputsOfStep() {
  Batch whole = stepBatch();
  int64_t places = whole.rows * whole.sequence;
  for (const auto &[input, from] :
       {std::pair(range_name::kTokens, whole.tokens),
        std::pair(range_name::kTargets, whole.targets)})
    if (std::byte *to = find(std::string(input) + range_name::kOfStepSuffix))
      std::copy_n(from, places, reinterpret_cast<int32_t *>(to));
  lastProgram =
      manifest().programs[static_cast<size_t>(stepRuns.back().program)].name;
}

static bool isComputeCopy(const RangeInfo &range) {
  return range.role == RangeRole::ComputeCopy;
}

/// Before copies had a role they were buffers with that name.
static bool isCopyWithoutRole(const RangeInfo &range) {
  return range.role == RangeRole::Buffer &&
         endsWith(range.name, range_name::kComputeCopySuffix);
}

/// Whoever has written parameters, programs read copies of them. Without copies
/// a program of that name is some text's own.
void Rank::copyParameters() {
  const std::vector<RangeInfo> &ranges = manifest().ranges;
  auto has = [&](bool (*is)(const RangeInfo &)) {
    return std::any_of(ranges.begin(), ranges.end(), is);
  };
  if (!std::exchange(areCopiesStale, false))
    return;
  int program = manifest().findProgram(range_name::kCopyParameters);
  if (has(isCopyWithoutRole) || (has(isComputeCopy) && program < 0))
    throw Error("the artifact has copies of parameters in bf16 that nothing "
                "writes after a load; compile it again");
  std::string error;
  if (has(isComputeCopy) && !runProgram(*context, program, error))
    throw Error("the copies of parameters in bf16: " + error);
}

void Rank::beginStep(int64_t number) {
  copyParameters();
  setInputsOfStep();
  rt::beginStep(*context, number, [this](size_t run) { setInputsOfRun(run); });
}

void Rank::endStep() {
  std::string error;
  if (!rt::endStep(*context, error))
    throw Error(error);
}

void Rank::runStep(const std::function<void(const StepCall &)> &observe) {
  copyParameters();
  setInputsOfStep();
  for (size_t i = 0; i < stepRuns.size(); ++i) {
    setInputsOfRun(i);
    StepCall call{i, stepRuns[i].program, stepRuns[i].slice, 0};
    auto observeOne = [&](int64_t number) {
      call.call = number;
      observe(call);
    };
    std::string error;
    if (!observeProgram(*context, call.program, observeOne, error))
      throw Error("program '" +
                  manifest().programs[static_cast<size_t>(call.program)].name +
                  "': " + error);
  }
}

bool Rank::hasGlobalLoss() const {
  const RangeInfo *loss = manifest().findRange(range_name::kLoss);
  return loss && loss->placement;
}

DataShard fsdp::dataShard(const Manifest &manifest, World world) {
  const RangeInfo *tokens = manifest.findRange(range_name::kTokens);
  if (!tokens || !tokens->placement || tokens->full.size() != 2)
    return {{world.rank, world.size}, {}};
  std::vector<int64_t> mesh = manifest.meshSizes();
  const std::vector<RangePlacement::Dim> &dims = tokens->placement->dims;
  return {coordinateOf(dims[0].compute, mesh, world.rank),
          coordinateOf(dims[1].compute, mesh, world.rank)};
}

std::string Rank::algorithmDigest() const {
  return rt::algorithmDigest(*context);
}

void Rank::run(const std::string &program) {
  copyParameters();
  lastProgram = program;
  std::string error;
  if (!runProgram(*context, manifest().findProgram(program), error))
    throw Error("program '" + program + "': " + error);
}

void Rank::initialize(uint64_t seed, int threads) {
  for (const RangeInfo &range : manifest().ranges) {
    auto element = static_cast<uint64_t>(sizeOf(range.dtype));
    write(range, [&](std::byte *piece, uint64_t first, uint64_t bytes) {
      initializePiece(manifest(), range, place.rank, seed,
                      static_cast<int64_t>(first / element),
                      static_cast<int64_t>(bytes / element), piece, threads);
    });
  }
}

/// After the persistent ranges, only outputs of the last program are whole.
bool Rank::holds(const RangeInfo &range) const {
  if (range.offset + range.bytes <= manifest().persistentBytes)
    return true;
  int program = manifest().findProgram(lastProgram);
  if (program < 0)
    return false;
  const std::vector<std::string> &given =
      manifest().programs[static_cast<size_t>(program)].outputs;
  return std::find(given.begin(), given.end(), range.name) != given.end();
}

/// A range as a dump has it.
TensorSource Rank::sourceOf(const RangeInfo &range) const {
  auto take = [](const auto &write) {
    return [&write](const std::byte *piece, uint64_t, uint64_t bytes) {
      write(
          {reinterpret_cast<const char *>(piece), static_cast<size_t>(bytes)});
    };
  };
  const int32_t *slices = placeInStep(range.name);
  if (!slices)
    return {range.name, range.dtype, range.shape,
            [=, &range](const auto &write) { read(range, take(write)); }};
  RangeInfo whole = ofStep(range, microbatches);
  return {range.name, range.dtype, whole.shape, [=](const auto &write) {
            take(write)(reinterpret_cast<const std::byte *>(slices), 0,
                        whole.bytes);
          }};
}

void Rank::dump(const std::string &path) const {
  std::vector<TensorSource> tensors;
  for (const RangeInfo &range : manifest().ranges)
    if (holds(range) && !isComputeCopy(range))
      tensors.push_back(sourceOf(range));
  writeSafetensors(pathOfRank(path, place.rank), std::move(tensors),
                   {{"rank", std::to_string(place.rank)},
                    {"ranks", std::to_string(place.size)}});
}

/// Fills a piece of a range from a tensor that is full or this rank's part;
/// padding becomes zero.
static void copyPiece(const RangeInfo &range, const ShardView &view,
                      const TensorView &tensor, std::byte *piece,
                      uint64_t first, uint64_t bytes) {
  if (tensor.shape != range.full) {
    std::memcpy(piece, tensor.data + first, bytes);
    return;
  }
  int64_t element = sizeOf(range.dtype);
  auto begin = static_cast<int64_t>(first) / element;
  std::memset(piece, 0, bytes);
  forEachRunWithin(begin, static_cast<int64_t>(bytes) / element, view,
                   range.full,
                   [&](int64_t stored, int64_t whole, int64_t count) {
                     std::memcpy(piece + (stored - begin) * element,
                                 tensor.data + whole * element,
                                 static_cast<size_t>(count * element));
                   });
}

/// Throws if the file that `name` leads to has the parts of another rank, as
/// dump() notes them.
static void checkParts(const SafetensorsFile &file, const std::string &name,
                       const World &place) {
  auto said = [&](const char *key, int own) {
    auto at = file.metadata().find(key);
    return at == file.metadata().end() ? std::to_string(own) : at->second;
  };
  std::string rank = said("rank", place.rank),
              ranks = said("ranks", place.size);
  if (rank == std::to_string(place.rank) && ranks == std::to_string(place.size))
    return;
  throw Error(name + ": it has the parts of rank " + printableLine(rank) +
              " of " + printableLine(ranks) + ", and this is rank " +
              std::to_string(place.rank) + " of " + std::to_string(place.size) +
              (ranks == std::to_string(place.size)
                   ? "; name the file as --dump was given it, of which each "
                     "rank takes its own"
                   : "; a dump of parts goes with as many ranks"));
}

bool Rank::load(const std::string &path, bool wholeBatch) {
  std::string name = fileToLoad(path, place.rank);
  SafetensorsFile file(name);
  for (const TensorView &tensor : file.tensors()) {
    const RangeInfo *found = manifest().findRange(tensor.name);
    if (!found)
      throw Error(path + ": the artifact has no range '" + tensor.name + "'");
    RangeInfo range = *found;
    int32_t *slices = wholeBatch ? placeInStep(tensor.name) : nullptr;
    if (slices)
      range = ofStep(std::move(range), microbatches);
    if (range.dtype != tensor.dtype ||
        (tensor.shape != range.full && tensor.shape != range.shape))
      throw Error(path + ": '" + tensor.name +
                  "' has another type or shape than in the artifact");
    if (tensor.shape != range.full)
      checkParts(file, name, place);
    ShardView view = manifest().shardView(range, place.rank);
    auto fill = [&](std::byte *piece, uint64_t first, uint64_t bytes) {
      copyPiece(range, view, tensor, piece, first, bytes);
    };
    if (slices)
      fill(reinterpret_cast<std::byte *>(slices), 0, range.bytes);
    else
      write(range, fill);
    loaded.insert(tensor.name);
  }
  bool tokens = loaded.count(range_name::kTokens),
       targets = loaded.count(range_name::kTargets);
  if (tokens != targets && wholeBatch)
    throw Error(name + ": it has '" +
                (tokens ? range_name::kTokens : range_name::kTargets) +
                "' but no '" +
                (tokens ? range_name::kTargets : range_name::kTokens) +
                "'; a batch to train on needs both");
  if (wholeBatch && tokens && targets &&
      !loaded.count(range_name::kDocumentStarts))
    seeWholeRows(stepBatch());
  return tokens && targets;
}

void Rank::seeWholeRows(const Batch &batch) const {
  if (batch.starts)
    std::fill_n(batch.starts, startsOf(batch), 0);
}

std::string Rank::unsetInputs(const std::string &program) const {
  std::string names;
  for (const std::string &name :
       manifest().programs[manifest().findProgram(program)].inputs)
    if (manifest().findRange(name)->role == RangeRole::Input &&
        !loaded.count(name))
      names += (names.empty() ? "'" : ", '") + name + "'";
  return names;
}
