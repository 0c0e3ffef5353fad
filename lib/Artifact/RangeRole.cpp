//===- RangeRole.cpp - What a range of the arena is for -------------------===//
#include "fsdp/Artifact/RangeRole.h"

using namespace fsdp::rt;

std::string fsdp::rt::roleName(RangeRole role) {
  switch (role) {
  case RangeRole::Parameter:
    return "parameter";
  case RangeRole::State:
    return "state";
  case RangeRole::Buffer:
    return "buffer";
  case RangeRole::Gradient:
    return "gradient";
  case RangeRole::Input:
    return "input";
  case RangeRole::Output:
    return "output";
  case RangeRole::ComputeCopy:
    return "compute_copy";
  }
  return "";
}

std::optional<RangeRole> fsdp::rt::roleNamed(std::string_view name) {
  for (RangeRole role :
       {RangeRole::Parameter, RangeRole::State, RangeRole::Buffer,
        RangeRole::Gradient, RangeRole::Input, RangeRole::Output,
        RangeRole::ComputeCopy})
    if (name == roleName(role))
      return role;
  return std::nullopt;
}
