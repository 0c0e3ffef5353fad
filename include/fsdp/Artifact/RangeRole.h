//===- RangeRole.h - What a range of the arena is for -----------*- C++ -*-===//
#ifndef FSDP_ARTIFACT_RANGEROLE_H
#define FSDP_ARTIFACT_RANGEROLE_H

#include <optional>
#include <string>
#include <string_view>

namespace fsdp::rt {

/// As manifests and checkpoints have it.
enum class RangeRole {
  Parameter,
  State,
  Buffer,
  Gradient,
  Input,
  Output,
  ComputeCopy, ///< A parameter in the type of compute; no file has it.
};

/// "parameter", …
std::string roleName(RangeRole role);
/// Unset: there is none of that name.
std::optional<RangeRole> roleNamed(std::string_view name);

} // namespace fsdp::rt

#endif // FSDP_ARTIFACT_RANGEROLE_H
