//===- Manifest.h - What an artifact says about itself ----------*- C++ -*-===//
//
// The manifest of a compiled artifact: the settings it was compiled with, its
// mesh, its arena, every persistent range, every program and the programs that
// a step runs. parseManifest believes nothing: whatever later code relies on is
// checked here, so that a damaged manifest ends in one message and never in a
// stray write.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_ARTIFACT_MANIFEST_H
#define FSDP_ARTIFACT_MANIFEST_H

#include "fsdp/Artifact/Mesh.h"
#include "fsdp/Artifact/ProgramEffects.h"
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// How a tensor begins; see the attributes of the nn dialect.
struct Initializer {
  enum class Kind { Zeros, Ones, Normal, Uniform, RotaryTable };
  Kind kind = Kind::Zeros;
  double std = 0, cut = 0; // Normal; cut in units of std, 0: none
  double bound = 0;        // Uniform
  double theta = 0, factor = 1, low = 1, high = 4; // RotaryTable
  int64_t original = 8192, start = 0;              // RotaryTable
};

struct MeshAxis {
  std::string name;
  int64_t size;
};

/// Where the pieces of a tensor lie. The compute axes of a dimension divide it
/// evenly; its storage axes together cut each of these parts into pieces of
/// ceil(size / pieces), the last ones padded with zeros. The first axis is the
/// slowest. Over axes that nothing names, every rank has the same.
struct RangePlacement {
  struct Dim {
    std::vector<AxisRef> compute, storage;
  };
  std::vector<Dim> dims;

  /// The same axes in the same order everywhere.
  bool operator==(const RangePlacement &other) const;
};

/// The box of a full tensor that a rank holds: of every dimension the indices
/// [begin, end), stored in `size` >= end - begin, the rest zero.
struct ShardView {
  struct Dim {
    int64_t begin, end, size;
  };
  std::vector<Dim> dims;
};

/// A named range of the arena that persists between programs.
struct RangeInfo {
  std::string name;
  std::string role; // parameter, state, buffer, gradient, input, output
  DType dtype = DType::F32;
  std::vector<int64_t> shape; // as stored on one rank
  std::vector<int64_t> full; // of the whole tensor; equals shape if not sharded
  uint64_t offset = 0, bytes = 0;
  std::optional<Initializer> init;
  /// Unset: what each rank holds is its own.
  std::optional<RangePlacement> placement;

  int64_t elements() const;
};

struct ProgramInfo : ProgramEffects {
  uint64_t arenaBytes = 0;
  double flops = 0;      // of one rank
  double modelFlops = 0; // without what is computed a second time
};

/// The model that a manifest or a checkpoint is of.
struct ModelInfo {
  std::string family; // "llama3"
  /// The fields of ModelSpec.h by key, as text: "dim" -> "4096".
  std::map<std::string, std::string> fields;
};

struct Manifest {
  std::map<std::string, std::string> config, fingerprint;
  /// The key that names the file of the model, and what the file of
  /// parallelism.placement_policy says; empty: no file does.
  std::string modelFrom;
  std::map<std::string, std::string> policy;
  std::optional<ModelInfo> model; // unset: compiled from text that says nothing
  std::vector<MeshAxis> mesh;     // slowest first
  uint64_t arenaBytes = 0, persistentBytes = 0;
  std::vector<RangeInfo> ranges;
  std::vector<ProgramInfo> programs;
  /// What is run, in this order, for one step of that name.
  std::map<std::string, std::vector<ProgramRuns>> steps;

  /// Product of the mesh's axes.
  int64_t ranks() const;
  /// The sizes of the mesh's axes.
  std::vector<int64_t> meshSizes() const;
  /// "dp_replicate=2 x dp_shard=4".
  std::string meshText() const;
  /// Null if there is none of that name.
  const RangeInfo *findRange(const std::string &name) const;
  /// Index of the program, or -1.
  int findProgram(const std::string &name) const;
  /// The part of `range` that `rank` holds.
  ShardView shardView(const RangeInfo &range, int64_t rank) const;
};

/// Reads and checks a manifest. Throws fsdp::Error that begins with `origin`
/// (a path) and names the field.
Manifest parseManifest(const std::string &text, const std::string &origin);

/// Calls `run` with the longest runs of elements of the box that lie one after
/// another both where the rank stores them and in the full tensor: the first
/// one's place there and there, and how many they are.
void forEachRun(const ShardView &view, const std::vector<int64_t> &full,
                const std::function<void(int64_t stored, int64_t whole,
                                         int64_t count)> &run);

/// The same for the `count` stored elements from `first` on alone: a run that
/// is only partly there is cut.
void forEachRunWithin(int64_t first, int64_t count, const ShardView &view,
                      const std::vector<int64_t> &full,
                      const std::function<void(int64_t stored, int64_t whole,
                                               int64_t count)> &run);

/// "F32", "BF16", … as in safetensors.
const char *dtypeName(DType type);

/// Elements of a tensor of this shape.
int64_t elementCount(const std::vector<int64_t> &shape);

} // namespace fsdp::rt

#endif // FSDP_ARTIFACT_MANIFEST_H
