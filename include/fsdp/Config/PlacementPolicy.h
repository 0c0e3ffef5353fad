//===- PlacementPolicy.h - Where tensors are to lie -------------*- C++ -*-===//
//
// A placement policy: patterns over names of parameters, and what becomes of
// those that match. It comes from a table that is built in (tensor parallel
// decoders) or from a TOML file:
//
//   [stream]                  # the residual stream, which blocks add to
//   sequence = "tp"           # its sequence is sharded over this axis
//   loss = "tp"               # after the last addition, loss included
//
//   [[parameters]]
//   match = "layers.*.attention.w[qkv].weight"
//   shard = { tp = 0 }        # mesh axis = the dimension that it shards
//   key_heads = true          # by heads of keys; ranks beyond them share
//
//   [[parameters]]
//   match = "tok_embeddings.*"
//   frozen = true             # not trained
//   replicate = true          # also stored whole on every rank
//
// Rules apply in order, later ones over earlier ones; several axes shard one
// dimension in the order of the mesh. No MLIR here.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_CONFIG_PLACEMENTPOLICY_H
#define FSDP_CONFIG_PLACEMENTPOLICY_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fsdp {

struct PlacementPolicy {
  struct Parameters {
    std::string match; // glob: *, ?, [abc], {a,b}
    /// Mesh axes and the dimension that each shards, as one computes with it.
    std::optional<std::vector<std::pair<std::string, int64_t>>> shard;
    /// The dimension is heads of keys or values. An axis of more ranks than
    /// there are heads shards them by heads, and ranks of one head have the
    /// same.
    std::optional<bool> keyHeads;
    std::optional<bool> frozen, replicate;
    std::string origin; // where the rule stands, for messages
  };

  /// The residual stream, which the model's blocks add to, is kept in one
  /// place: sharded along its sequence over `sequence`, or whole if that is
  /// empty. Unset: it lies where it falls.
  struct Stream {
    std::string sequence;
    /// The same after the last addition, so for logits and loss.
    std::string loss;
    std::string origin;
  };

  std::vector<Parameters> parameters;
  std::optional<Stream> stream;
};

/// The layers of a decoder over a tensor axis (Shoeybi et al., 2019):
/// projections into heads and into the feed-forward network are sharded along
/// their outputs, those back along their inputs; biases and norms over all
/// heads follow. With `sequence` the stream between them is sharded along the
/// sequence (Korthikanti et al., 2022), with `loss` so are the logits.
PlacementPolicy tensorParallelPlan(const std::string &axis, bool sequence,
                                   bool loss);

/// Reads a policy. Throws fsdp::Error that names the file and line.
PlacementPolicy loadPolicy(const std::string &path);

/// What a policy says, wherever and in whatever layout: "[stream]" and
/// "[[parameters]] 1", … -> the rule with its keys in one order. Two policies
/// place alike if these are equal.
std::map<std::string, std::string> policyRules(const PlacementPolicy &policy);

} // namespace fsdp

#endif // FSDP_CONFIG_PLACEMENTPOLICY_H
