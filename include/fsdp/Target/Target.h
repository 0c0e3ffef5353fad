//===- Target.h - The targets of the compiler -------------------*- C++ -*-===//
#ifndef FSDP_TARGET_TARGET_H
#define FSDP_TARGET_TARGET_H

namespace fsdp::rt {

enum class Target { Cpu, Cuda };

/// As in --target.
inline const char *targetName(Target target) {
  return target == Target::Cuda ? "cuda" : "cpu";
}

} // namespace fsdp::rt

#endif // FSDP_TARGET_TARGET_H
