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

#include "fsdp/Artifact/Box.h"
#include "fsdp/Artifact/Mesh.h"
#include "fsdp/Artifact/ProgramEffects.h"
#include "fsdp/Artifact/RangeRole.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// How a tensor begins; see the attributes of the nn dialect.
struct Initializer {
  enum class Kind { Zeros, Ones, Normal, Uniform, RotaryTable };
  Kind kind = Kind::Zeros;
  double std = 0, cut = 0;         // Normal; cut in units of std, 0: none
  double bound = 0;                // Uniform
  std::vector<double> frequencies; // RotaryTable; radians per position
  double scale = 1;                // RotaryTable
  int64_t start = 0;               // RotaryTable; the first row's position
};

struct MeshAxis {
  std::string name;
  int64_t size;
};

/// Where the pieces of a tensor lie. The compute axes of a dimension divide it
/// evenly; its storage axes together split each of these parts into pieces of
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

/// A named range of the arena that persists between programs.
struct RangeInfo {
  std::string name;
  RangeRole role = RangeRole::Parameter;
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
  int64_t nodeSize = 0; // consecutive ranks that share a node; 0: not stated
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

/// "F32", "BF16", … as in safetensors.
const char *dtypeName(DType type);

} // namespace fsdp::rt

#endif // FSDP_ARTIFACT_MANIFEST_H
