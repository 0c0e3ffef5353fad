//===- Manifest.h - What an artifact says about itself ----------*- C++ -*-===//
//
// The manifest of a compiled artifact: the settings it was compiled with, its
// mesh, its arena, every persistent range and every program. parseManifest
// believes nothing: whatever later code relies on is checked here, so that a
// damaged manifest ends in one message and never in a stray write.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_MANIFEST_H
#define FSDP_RUNTIME_MANIFEST_H

#include "fsdp/Runtime/Types.h"
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

/// The part of a full tensor that a rank holds: indices [begin, end) of
/// dimension `dim`, stored in `size` >= end - begin indices, the rest zero.
/// A replicated tensor is the part that is everything.
struct ShardView {
  int64_t dim = 0, begin = 0, end = 0, size = 0;
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
  std::optional<int64_t> shardDim;    // unset: every rank holds everything
  std::vector<std::string> shardAxes; // slowest first

  int64_t elements() const;
};

struct ProgramInfo {
  std::string name;
  std::vector<std::string> inputs, outputs; // names of ranges
  uint64_t arenaBytes = 0;
  double flops = 0; // of one rank
};

struct Manifest {
  std::map<std::string, std::string> config, fingerprint;
  std::vector<MeshAxis> mesh; // slowest first
  uint64_t arenaBytes = 0, persistentBytes = 0;
  std::vector<RangeInfo> ranges;
  std::vector<ProgramInfo> programs;

  /// Product of the mesh's axes.
  int64_t ranks() const;
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

/// Elements of a tensor of this shape.
int64_t elementCount(const std::vector<int64_t> &shape);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_MANIFEST_H
