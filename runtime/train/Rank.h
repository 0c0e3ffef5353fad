//===- Rank.h - One rank's context and its named ranges ---------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_RANK_H
#define FSDP_RUNTIME_TRAIN_RANK_H

#include "fsdp/Artifact/Loader.h"
#include "fsdp/Core/Context.h"
#include "fsdp/Data/Dataset.h"
#include "fsdp/Data/Safetensors.h"
#include <optional>
#include <set>

namespace fsdp {

/// A call of the runtime in a step.
struct StepCall {
  size_t run;    // position of the program's run in the step
  int program;   // index
  int64_t slice; // of the batch that the run takes; -1: the whole
  int64_t call;  // number in the program
};

/// The context of a loaded artifact on this rank.
class Rank {
public:
  /// Collective over all ranks. Only one that `trains` runs steps; it has the
  /// inputs of a batch. `graphs`: see rt::ContextOptions. Throws fsdp::Error.
  Rank(const rt::LoadedArtifact &artifact, rt::World world, int threads,
       bool trains, bool graphs);

  const rt::Manifest &manifest() const { return artifact.manifest(); }
  rt::World world() const { return place; }
  bool isFirst() const { return place.rank == 0; }
  uint64_t arenaBytes() const;

  /// Where the host reads and writes a range that a program takes from it or
  /// gives it: an input, or an output of one element. Null if the artifact has
  /// none of this name.
  std::byte *find(const std::string &name) const;
  /// Hands the bytes of a range to `take`, in order, in pieces of whole
  /// elements.
  void read(const rt::RangeInfo &range, const rt::TakePiece &take) const;
  /// Copies `bytes` of an output from byte `first` on.
  void read(const rt::RangeInfo &range, uint64_t first, uint64_t bytes,
            std::byte *to) const;
  /// Hands bytes of the arena to `take`, likewise.
  void read(const rt::ArenaRange &range, const rt::TakePiece &take) const;
  /// Sets the bytes of a range to what `fill` makes of such pieces.
  void write(const rt::RangeInfo &range, const rt::FillPiece &fill);
  /// A scalar of type T; null if there is none. The sizes must agree.
  template <typename T> T *scalar(const std::string &name) const {
    return reinterpret_cast<T *>(findScalar(name, sizeof(T)));
  }
  /// The inputs "tokens" and "targets".
  rt::Batch batch() const;
  /// Makes one document of each row, where the model takes starts of documents.
  void seeWholeRows(const rt::Batch &batch) const;
  /// The tokens and targets of a step: its microbatches, one after another,
  /// or batch() if it has one. So the microbatches of b rows of a step are what
  /// one batch of as many times b rows would be.
  rt::Batch stepBatch();
  /// Which piece of the global batch they are.
  rt::DataShard dataShard() const { return shard; }
  /// True if "loss" is the mean over the global batch, the same on every rank;
  /// else it is the mean over this rank's batch.
  bool hasGlobalLoss() const;

  /// Runs a program by name. Collective. Throws fsdp::Error.
  void run(const std::string &program);
  /// Begins the step "train", the run's `number`th, on stepBatch() and the
  /// other inputs, which belong to the next step when this has returned.
  /// Collective.
  void beginStep(int64_t number);
  /// Waits for the first step that has begun and not ended; then the outputs
  /// are its own. Throws fsdp::Error.
  void endStep();
  /// Runs the step as beginStep() and endStep() do, to the bit, and hands every
  /// call to `observe` when the arena has what it produces; see
  /// rt::ObserveCall. Slow; no step may be on its way. Collective. Throws
  /// fsdp::Error.
  void runStep(const std::function<void(const StepCall &)> &observe);
  /// True if the next may begin while the last one runs.
  bool stepsOverlap() const { return rt::stepsOverlap(*context); }
  /// See rt::writeTrace.
  void writeTrace() { rt::writeTrace(*context); }
  /// See rt::deviceName.
  std::string deviceName() const { return rt::deviceName(*context); }

  /// Writes every range to the file of this rank, but outputs of programs that
  /// ran before the last one, whose bytes may have been used again, and compute
  /// copies of parameters. The inputs of a step of several microbatches are
  /// whole, as load() wants them.
  void dump(const std::string &path) const;
  /// Sets ranges by name from a file of full or of this rank's tensors; the
  /// part after the last dot may be preceded by `.rankN`. Returns whether
  /// both inputs of a batch were among them; with `wholeBatch` they are those
  /// of a step, and one without the other is an error.
  bool load(const std::string &path, bool wholeBatch);
  /// The first values of all ranges, made on so many threads.
  void initialize(uint64_t seed, int threads);
  /// See rt::algorithmDigest().
  std::string algorithmDigest() const;
  /// "'tokens', 'targets'": the inputs of a program that load() has not set.
  std::string unsetInputs(const std::string &program) const;

private:
  std::byte *inputAddress(const rt::RangeInfo &range) const;
  bool holds(const rt::RangeInfo &range) const;
  void copyParameters();
  void listStepRuns();
  void setInputsOfStep();
  void setInputsOfRun(size_t run);
  void setMicrobatch(int64_t index);
  const int32_t *placeInStep(const std::string &input) const;
  int32_t *placeInStep(const std::string &input);
  /// Numbers of a batch's starts: its rows are whole.
  int64_t startsOf(const rt::Batch &batch) const {
    return batch.rows * batch.sequence * shard.columns.count;
  }
  rt::TensorSource sourceOf(const rt::RangeInfo &range) const;
  std::byte *findScalar(const std::string &name, size_t bytes) const;

  const rt::LoadedArtifact &artifact;
  rt::World place;
  rt::DataShard shard;
  rt::ContextPtr context;
  int64_t microbatches;
  // Of several microbatches; starts where the model takes them.
  std::vector<int32_t> stepTokens, stepTargets, stepStarts;
  /// A run of a program in the step "train", and the slice of the batch that it
  /// takes; -1: the inputs are what they are.
  struct StepRun {
    int program;
    int64_t slice;
  };
  std::vector<StepRun> stepRuns;
  std::string lastProgram;
  std::set<std::string> loaded;
  /// Parameters have been written since compute copies were made of them.
  bool areCopiesStale = false;
};

/// The piece of the global batch that a rank gets: that of its coordinates over
/// the axes of the input "tokens". Where the input says nothing of its place,
/// every rank gets its own.
rt::DataShard dataShard(const rt::Manifest &manifest, rt::World world);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_RANK_H
