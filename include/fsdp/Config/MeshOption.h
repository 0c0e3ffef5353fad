//===- MeshOption.h - The mesh of a run as text -----------------*- C++ -*-===//
//
// A mesh is a list of axes, the slowest first: "dp_shard=4:data,tp=2:tensor".
// What an axis is for is its kind; passes ask that, never its name. No MLIR
// here.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_CONFIG_MESHOPTION_H
#define FSDP_CONFIG_MESHOPTION_H

#include "fsdp/Config/Spelling.h"
#include <cstdint>

namespace fsdp {

/// What the ranks along an axis of the mesh share.
enum class AxisKind {
  Data,   ///< The batch: each has a part of it.
  Tensor, ///< A layer: they compute it together.
};
template <> struct Spellings<AxisKind> {
  static constexpr Spelling<AxisKind> all[] = {
      {AxisKind::Data, "data", "batches are split over it"},
      {AxisKind::Tensor, "tensor", "its ranks compute a layer together"}};
};

/// An axis of a mesh that is to be made.
struct MeshAxisOption {
  std::string name;
  int64_t size; // ranks along it, at least 1
  /// Unset: of no kind; only a placement policy that names it uses it.
  std::optional<AxisKind> kind;
};

/// Reads NAME=SIZE or NAME=SIZE:KIND, separated by commas. Without a kind, an
/// axis with a name that torchtitan gives its axes has that one's: dp,
/// dp_replicate and dp_shard are for data, tp is for tensors; another has none.
/// Throws fsdp::Error that names the text and the part.
std::vector<MeshAxisOption> parseMesh(const std::string &text);

/// The text of a mesh, with the kinds of all axes that have one.
std::string meshText(const std::vector<MeshAxisOption> &mesh);

} // namespace fsdp

#endif // FSDP_CONFIG_MESHOPTION_H
