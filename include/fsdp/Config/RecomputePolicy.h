//===- RecomputePolicy.h - Which values are computed again ------*- C++ -*-===//
//
// compile.recompute: the name of a policy, some of them with a parameter. What
// it says about the values of a program is fsdp/Schedule/RecomputedValues.h.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_CONFIG_RECOMPUTEPOLICY_H
#define FSDP_CONFIG_RECOMPUTEPOLICY_H

#include <cstdint>
#include <string>
#include <vector>

namespace fsdp {

/// About values that only their block uses in the forward pass.
struct RecomputePolicy {
  enum class Kind {
    None,
    Free,        ///< "free": values that one pass over kept values computes.
    Full,        ///< "full": all.
    Every,       ///< "every-N": all of every N-th block.
    Alternating, ///< "selective", "eager": all but attention, reductions and
                 ///< the first, third, … matmul of the block.
    Expensive,   ///< "sac": all but attention, reductions and matmuls.
    Save,        ///< "save:OPS": all but those.
    Again,       ///< "recompute:OPS": those.
  };
  Kind kind = Kind::None;
  int64_t every = 1;
  /// Each "OP" or "MODULE::OP", where MODULE is a glob over paths of modules.
  std::vector<std::string> ops;
};

/// What compile.recompute means, for help and reference.
inline constexpr const char *kRecomputeDoc =
    "values that the backward pass computes again instead of keeping "
    "them; auto: free, but none beside a plan that says it of any value; "
    "none; free: activation functions, products and norms of kept "
    "values in blocks, for almost no time; full: all of a block but its "
    "results, for about a quarter more operations; every-N: full in "
    "every N-th block; selective, or eager: all but attention, "
    "reductions and every second matmul of a block, as torchtitan's "
    "selective op; sac: all but attention, reductions and matmuls; "
    "save:OPS: all but OPS, recompute:OPS: OPS alone, where OPS are "
    "names of ops, or MODULE::OP with a glob over modules, separated by "
    "|; every value produces the same bits, and the rules of --plan "
    "override it";

/// The policies that have no parameter, and those that are shown with one, for
/// whoever compares them: "none", "free", "every-2".
const std::vector<std::string> &knownRecomputePolicies();

/// The policy that `text` stands for: "auto" is "free", and "none" beside a
/// plan that `saysOfValues` which are computed again.
std::string recomputePolicyFor(const std::string &text, bool saysOfValues);

/// What `text`, a policy, says. Throws fsdp::Error, which lists what can be
/// said.
RecomputePolicy parseRecomputePolicy(const std::string &text);

/// What the compiler calls the op that PyTorch calls `name`: "linear" for
/// "aten.mm.default"; `name` itself where it is no name of PyTorch's.
std::string opOfTorchName(const std::string &name);

} // namespace fsdp

#endif // FSDP_CONFIG_RECOMPUTEPOLICY_H
