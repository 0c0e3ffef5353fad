//===- Target.h - The targets of the compiler -------------------*- C++ -*-===//
//
// A target is a folder, lib/Target/NAME, and a line of Targets.def. In the
// folder are its facts (NAMETarget.cpp), which compiler and runtime share; what
// the passes ask it on a machine (NAMETargetInfo.cpp); and, where programs run
// on it, how they are spelled and compiled (NAMEBackend.cpp). No MLIR here.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TARGET_TARGET_H
#define FSDP_TARGET_TARGET_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fsdp::rt {

struct CollectiveDesc;

/// What is known of a target without asking a machine.
struct Target {
  /// As in --target, --workspaces and exec.target. Ranks run fsdp-rank-NAME.
  const char *name = nullptr;
  /// What programs run on, for --help; null: they are only planned for it.
  const char *summary = nullptr;
  /// Whose sizes of workspaces it has, for --help.
  const char *whoseWorkspaces = nullptr;
  /// The language of generated source, and the value of --emit that prints it.
  const char *language = nullptr, *sourceStage = nullptr;

  /// Ranges, buffers and what a library computes with begin at multiples of
  /// so many bytes of the arena. A power of two, exec::kAlignment at least.
  int64_t alignment = 0;
  /// A kernel of rows that sums over them takes blocks of 32 rows, each at
  /// once. Fewer blocks than this leave the device idle.
  int64_t leastRowBlocks = 1;
  /// Bytes that item `item` of a collective over `ranks` ranks needs beside
  /// what it sends and gives.
  int64_t (*collectiveWorkspaceBytes)(const CollectiveDesc &desc, int item,
                                      int64_t ranks) = nullptr;
  /// Why compile.reduce = "fast" is not for it, after that setting in a
  /// message; null: a library of the target adds over ranks.
  const char *whyNoFastReductions = nullptr;
  /// Why compile.attention = "fast" is not for it, likewise; null: a library of
  /// the target has a gradient of attention that adds in no fixed order.
  const char *whyNoFastAttention = nullptr;
  /// Groups of ranks that send are communicators of a library, which has
  /// memory of its own for each.
  bool hasCommunicators = false;

  /// How the name of an architecture that it compiles for begins ("sm_"), as
  /// in fingerprints; empty: with anything else. Null: it compiles for none.
  const char *architecture = nullptr;
  /// Ranks compute on CPUs: each is bound to cores of its own, and those of one
  /// machine share memory.
  bool isHost = false;
  /// What other ranks of a machine have to end by themselves when one is lost,
  /// in seconds.
  double endSeconds = 0;
  /// What to do where there is no fsdp-rank-NAME.
  const char *howToBuild = nullptr;
};

/// A program and its libraries each have these objects once more.
inline bool operator==(const Target &a, const Target &b) {
  return std::string_view(a.name) == b.name;
}
inline bool operator!=(const Target &a, const Target &b) { return !(a == b); }

#define FSDP_TARGET(Name) extern const Target k##Name##Target;
#include "fsdp/Target/Targets.def"

/// All of them, in the order of the list.
const std::vector<const Target *> &allTargets();
/// The target of this name; null if there is none.
const Target *findTarget(std::string_view name);
/// "cpu, cuda and test".
std::string targetNames();
/// The target whose code is for `architecture`: "sm_90, nvcc 13.0.88".
const Target &targetOfArchitecture(std::string_view architecture);

} // namespace fsdp::rt

#endif // FSDP_TARGET_TARGET_H
